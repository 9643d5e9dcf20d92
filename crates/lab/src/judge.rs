//! From what the nodes of a trial say and recorded to a cell of `run.json`: figures, or the reasons
//! why there are none.
//!
//! Nothing that a node reports is accepted by itself: its counts are checked against its table, its table
//! against the tables of its neighbours. A cell that fails any check is invalid and has no summary;
//! no sample is ever dropped to make a figure look better.

use noctule_peer::{Line, Slot};

use crate::cell_statistics as statistics;
use crate::clock_translation::Translation;
use crate::dimensions::Mode;
use crate::link_record::LinkRecord;
use crate::plan::CellPlan;
use crate::run::{Beside, Cell};
use crate::samples::{CellSamples, Sample};
use crate::statistics::{LatencySummary, order_statistic};
use crate::trial::{NodeResult, Trial};
use crate::validity::Invalid;

/// A sender may end this much later than scheduled, as a share of the trial's length.
const RATE_TOLERANCE: f64 = 0.01;
/// The least tolerance, ns: in a short trial 1 % is less than one time slice.
const RATE_TOLERANCE_NS: f64 = 2e6;

/// Judges one trial. `outcome` is the fault if the trial did not complete.
pub(crate) fn judge(plan: &CellPlan, trial: u32, outcome: Result<Trial, Invalid>) -> (Cell, CellSamples) {
    let mut cell = empty_cell(plan, trial);
    let Trial { nodes, beside, wire_bytes, link, clocks, line } = match outcome {
        Ok(trial) => trial,
        Err(why) => {
            cell.why_invalid.push(why);
            return (cell, CellSamples::new());
        }
    };
    let mut samples = collect(plan, &nodes);
    let translation = clocks.map(|clocks| clocks.translate(&mut samples)).unwrap_or_default();
    cell.clock_bound_ns = translation.bound_ns;
    cell.clock_sigma_ns = translation.sigma_ns;
    fill(&mut cell, plan, &nodes, &samples);
    cell.wire_bytes = wire_bytes;
    cell.facts.extend(line.facts);
    let mut why = Vec::new();
    if let (Some(plan), Some(nodes)) = (plan.beside.as_deref(), beside) {
        let (other, _) = judge(plan, cell.trial, Ok(Trial { nodes, ..Trial::default() }));
        why.extend(other.why_invalid.into_iter().map(|why| Invalid::Background(Box::new(why))));
        cell.beside = Some(Beside {
            peer: other.peer,
            payload_bytes: other.payload_bytes,
            rate_hz: other.rate_hz,
            sent: other.sent,
            received: other.received,
            received_hz: other.received_hz,
        });
    }
    check_counts(&nodes, &mut why);
    check_neighbours(plan, &nodes, &mut why);
    cell.rate_held = check_rate(plan, &nodes, &mut why);
    check_latencies(plan, &samples, &mut why);
    check_way(&cell, link.is_some(), &mut why);
    let mut faults: Vec<Invalid> = link.iter().flat_map(LinkRecord::faults).collect();
    faults.extend(line.faults);
    faults.extend(Translation::faults(&translation));
    if faults.iter().any(Invalid::is_of_the_lab) {
        // A peer may saturate; the tool's links, lines and comparison of clocks may not.
        cell.expect = None;
    }
    why.extend(faults);
    cell.emulated_link = link;
    if cell.received == 0 {
        why.push(Invalid::NothingArrived { sent: cell.sent });
    }
    cell.valid = why.is_empty();
    cell.why_invalid = why;
    if !cell.valid {
        cell.latency_ns = None;
        cell.hops.iter_mut().for_each(|hop| hop.latency_ns = None);
        cell.blocks.clear();
        cell.received_hz = None;
    }
    (cell, samples)
}

fn empty_cell(plan: &CellPlan, trial: u32) -> Cell {
    Cell {
        nodes: plan.nodes,
        wait: plan.wait,
        placement: plan.placement(),
        format: plan.format.clone(),
        payload_bytes: plan.payload_bytes,
        rate_hz: plan.rate_hz,
        deadline_ns: plan.deadline_ns,
        trial,
        expect: plan.expect.clone(),
        is_floor: plan.is_floor,
        hosts: plan.hosts,
        clocks: plan.clocks.clone(),
        options: plan.options.clone(),
        beside: plan.beside.as_deref().map(|beside| Beside {
            peer: beside.peer.clone(),
            payload_bytes: beside.payload_bytes,
            rate_hz: beside.rate_hz,
            ..Beside::default()
        }),
        warm_up_sent: plan.warm_up_sent(),
        ..Cell::unmeasured(&plan.peer, plan.run_link(), plan.mode)
    }
}

/// Nodes whose arrivals are measured. Hosts are namespaces of one machine: all stamps are of its clock, unless the clocks of both hosts are artificial, and compared.
fn receivers(plan: &CellPlan) -> Vec<u32> {
    match plan.mode {
        _ if plan.nodes == 1 => vec![0],
        Mode::RoundTrip => vec![0],
        // A chain between two hosts comes back to the source's at every second node: as one is measured whose hosts have clocks of their own.
        Mode::Chain if plan.hosts == 2 && plan.across.is_none() && plan.clocks.is_empty() => {
            (2..plan.nodes).step_by(2).collect()
        }
        _ => (1..plan.nodes).collect(),
    }
}

fn collect(plan: &CellPlan, nodes: &[NodeResult]) -> CellSamples {
    let Some(source) = nodes.first() else {
        return CellSamples::new();
    };
    let mut samples = CellSamples::new();
    for node in receivers(plan) {
        let Some(result) = nodes.get(node as usize) else {
            continue;
        };
        let arrivals = (0..).zip(result.table.slots()).filter(|(_, slot)| slot.arrivals > 0);
        samples.extend(arrivals.map(|(index, slot): (u64, &Slot)| {
            let sent = source.table.slots().get(index as usize).copied().unwrap_or_default();
            Sample {
                index,
                node: node as u16,
                scheduled_ns: sent.scheduled_ns,
                sent_ns: sent.sent_ns,
                received_ns: slot.received_ns,
            }
        }));
    }
    samples
}

fn fill(cell: &mut Cell, plan: &CellPlan, nodes: &[NodeResult], samples: &CellSamples) {
    let Some(source) = nodes.first() else { return };
    let measured_nodes = cell.measured_nodes();
    let latencies = statistics::end_to_end(plan.mode, measured_nodes, samples);
    let last = match plan.mode {
        Mode::RoundTrip => 0,
        _ => (measured_nodes - 1) as u16,
    };
    let fan = if plan.mode == Mode::FanOut { u64::from(plan.nodes - 1) } else { 1 };
    cell.sent = source.table.sent() * fan;
    cell.scheduled = plan.rate_hz.map(|_| plan.messages * fan);
    cell.received = latencies.len() as u64;
    cell.lost = cell.sent.saturating_sub(cell.received);
    cell.late = plan.deadline_ns.map_or(0, |deadline_ns| statistics::late(&latencies, deadline_ns));
    cell.duplicated = nodes.iter().map(|node| node.table.duplicated()).sum();
    cell.reordered = Some(statistics::reordered(samples, last));
    cell.blocks = statistics::blocks(&latencies);
    cell.hops = match plan.mode {
        Mode::Chain => statistics::chain_hops(samples, &receivers(plan)),
        Mode::FanOut => statistics::fan_out_hops(samples, plan.nodes),
        _ => vec![],
    };
    if plan.rate_hz.is_some() {
        let sent = source.table.slots().iter().filter(|slot| slot.sent_ns != 0);
        cell.send_lag_ns = statistics::send_lag(sent.map(|slot| slot.sent_ns - slot.scheduled_ns).collect());
    }
    let cpu_ns: f64 = nodes.iter().filter_map(|node| number(&node.done, "cpu_ns")).sum();
    cell.cpu_ns_per_message = (source.table.sent() > 0).then(|| cpu_ns / source.table.sent() as f64);
    cell.recorder_ns = number(&source.done, "recorder_ns");
    cell.settings = nodes.iter().flat_map(|node| node.settings.iter().cloned()).collect();
    let fact =
        |(name, value): (String, String)| Some((name, value.parse().ok().filter(|x: &f64| x.is_finite())?));
    cell.facts = source.done.with_prefix("fact.").into_iter().filter_map(fact).collect();
    cell.redundancy = cell.facts.remove("redundancy");
    cell.received_hz = statistics::rate_hz(samples);
    cell.latency_ns = LatencySummary::of(latencies);
}

fn number(line: &Line, key: &str) -> Option<f64> {
    line.word(key)?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A node's own counts against its own table.
fn check_counts(nodes: &[NodeResult], why: &mut Vec<Invalid>) {
    for (node, result) in nodes.iter().enumerate() {
        let table = &result.table;
        let counts =
            [("sent", table.sent()), ("received", table.received()), ("duplicated", table.duplicated())];
        for (what, found) in counts {
            let said = result.done.word(what).unwrap_or("nothing");
            if said != found.to_string() {
                why.push(Invalid::Count { node, what, said: said.to_owned(), found });
            }
        }
        match number(&result.done, "overrun") {
            Some(0.0) => {}
            Some(samples) => why.push(Invalid::RecorderDropped { node, samples }),
            None => why.push(Invalid::RecorderUnknown { node }),
        }
        if let Some(messages) = number(&result.done, "unexpected").filter(|&count| count > 0.0) {
            why.push(Invalid::Unexpected { node, messages });
        }
    }
}

/// A node must not receive messages that the node before it never sent.
fn check_neighbours(plan: &CellPlan, nodes: &[NodeResult], why: &mut Vec<Invalid>) {
    for (node, result) in nodes.iter().enumerate() {
        let before = match (plan.mode, node) {
            (Mode::RoundTrip, 0) => 1,
            _ if plan.nodes == 1 => 0,
            (_, 0) => continue,
            (Mode::Chain, _) => node - 1,
            _ => 0,
        };
        let Some(sender) = nodes.get(before) else {
            continue;
        };
        let never_sent = |(index, slot): (usize, &Slot)| {
            slot.arrivals > 0 && sender.table.slots().get(index).is_none_or(|sent| sent.sent_ns == 0)
        };
        let messages = result.table.slots().iter().enumerate().filter(|&slot| never_sent(slot)).count();
        if messages > 0 {
            why.push(Invalid::NeverSent { node, before, messages });
        }
    }
}

/// Open loop: did the source keep its schedule?
fn check_rate(plan: &CellPlan, nodes: &[NodeResult], why: &mut Vec<Invalid>) -> Option<bool> {
    let (rate_hz, source) = (plan.rate_hz?, nodes.first()?);
    let sent = source.table.sent();
    if sent < plan.messages {
        why.push(Invalid::NotAllSent { sent, messages: plan.messages });
        return Some(false);
    }
    // The typical lag of the last tenth: a backlog grows and stays, a hiccup is caught up with, even
    // if it comes at the very end.
    let slots: Vec<&Slot> = source.table.slots().iter().filter(|slot| slot.sent_ns != 0).collect();
    let last_tenth = &slots[slots.len() * 9 / 10..];
    let mut lags_ns: Vec<i64> = last_tenth.iter().map(|slot| slot.sent_ns - slot.scheduled_ns).collect();
    lags_ns.sort_unstable();
    let lag_ns = order_statistic(&lags_ns, 0.5).unwrap_or(0) as f64;
    let length_ns = plan.messages as f64 / rate_hz * 1e9;
    let is_behind = lag_ns > (length_ns * RATE_TOLERANCE).max(RATE_TOLERANCE_NS);
    if is_behind {
        let held_hz = plan.messages as f64 / ((length_ns + lag_ns) / 1e9);
        why.push(Invalid::TooSlow { rate_hz, held_hz, lag_ns });
    }
    Some(!is_behind)
}

/// Hosts of one machine share its memory, and a middleware that notices does not need the link.
fn check_way(cell: &Cell, across: bool, why: &mut Vec<Invalid>) {
    let Some(wire_bytes) = cell.wire_bytes.filter(|_| across) else { return };
    let fan = if cell.mode == Mode::FanOut { u64::from(cell.nodes.max(2) - 1) } else { 1 };
    // To a group one packet is enough for all receivers.
    let least_bytes = (cell.received / fan).saturating_mul(cell.payload_bytes);
    if wire_bytes < least_bytes {
        why.push(Invalid::AnotherWay { wire_bytes, least_bytes });
    }
}

fn check_latencies(plan: &CellPlan, samples: &CellSamples, why: &mut Vec<Invalid>) {
    let negative = samples.iter().filter(|sample| sample.received_ns < sample.sent_ns);
    let count = negative.clone().count();
    if count > 0 {
        let worst_ns = negative.map(|sample| sample.received_ns.saturating_sub(sample.sent_ns)).min();
        let (of, worst_ns) = (samples.len(), worst_ns.unwrap_or(0));
        why.push(Invalid::Negative { count, of, worst_ns, peer: plan.peer.clone() });
    }
}

#[cfg(test)]
#[path = "judge/tests.rs"]
mod tests;
