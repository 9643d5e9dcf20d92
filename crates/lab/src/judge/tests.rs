//! Every check must be able to fail.

use noctule_peer::{Table, Touch};

use super::*;
use crate::clock_translation::ClockTranslation;
use crate::dimensions::{Link, Wait};
use crate::serial_line::LineFigures;

fn plan(mode: Mode, nodes: u32, rate_hz: Option<f64>) -> CellPlan {
    CellPlan {
        peer: "x".into(),
        link: Link::Udp,
        mode,
        nodes,
        payload_bytes: 64,
        rate_hz,
        wait: Wait::Block,
        cores: vec![0, 1],
        format: "raw".into(),
        touch: Touch::Header,
        hosts: 1,
        clocks: vec![],
        beside: None,
        across: None,
        deadline_ns: rate_hz.map(|hz| (1e9 / hz) as u64),
        expect: None,
        options: Default::default(),
        seconds: 1.0,
        messages: 100,
        trials: 1,
        warm_up_messages: 0,
        warm_up_ms: 0,
        window: 1,
        is_floor: false,
    }
}

/// Message i is due and sent at i ms, plus 1 s.
fn sent_at(index: u64) -> i64 {
    1_000_000_000 + index as i64 * 1_000_000
}

/// A node that saw every message, `received_after_ns` after it was sent.
fn node(sends: bool, received_after_ns: Option<i64>) -> NodeResult {
    let slots: Vec<Slot> = (0..100)
        .map(|index| Slot {
            scheduled_ns: sent_at(index),
            sent_ns: if sends { sent_at(index) } else { 0 },
            received_ns: received_after_ns.map_or(0, |after| sent_at(index) + after),
            arrivals: received_after_ns.is_some().into(),
        })
        .collect();
    NodeResult {
        done: Line::new("done"),
        table: Table::from_slots(slots),
        settings: vec![],
        exchanges: vec![],
    }
}

fn honest(mut node: NodeResult) -> NodeResult {
    node.done = Line::new("done")
        .with("sent", node.table.sent())
        .with("received", node.table.received())
        .with("duplicated", node.table.duplicated())
        .with("unexpected", 0)
        .with("overrun", 0)
        .with("cpu_ns", 1000)
        .with("recorder_ns", "20.5");
    node
}

fn edit(node: NodeResult, edit: impl Fn(usize, &mut Slot)) -> NodeResult {
    let mut slots = node.table.slots().to_vec();
    slots.iter_mut().enumerate().for_each(|(index, slot)| edit(index, slot));
    NodeResult { table: Table::from_slots(slots), ..node }
}

fn reasons(plan: &CellPlan, nodes: Vec<NodeResult>) -> Vec<String> {
    let (cell, _) = judge(plan, 0, Ok(Trial { nodes, ..Trial::default() }));
    assert_eq!(cell.valid, cell.why_invalid.is_empty());
    assert_eq!(cell.valid, cell.latency_ns.is_some(), "a summary exactly if valid");
    said(&cell)
}

/// The reasons as `run.json` has them.
fn said(cell: &Cell) -> Vec<String> {
    cell.why_invalid.iter().map(ToString::to_string).collect()
}

#[test]
fn honest_trial_is_valid_and_every_message_accounted_for() {
    let lossy = edit(node(false, Some(50_000)), |index, slot| {
        if index == 3 {
            *slot = Slot::default();
        }
        if index == 5 {
            slot.arrivals = 3;
        }
        if index == 7 {
            slot.received_ns += 1_000_000;
        }
    });
    let nodes = vec![honest(node(true, None)), honest(lossy)];
    let (cell, samples) =
        judge(&plan(Mode::OneWay, 2, Some(1000.0)), 4, Ok(Trial { nodes, ..Trial::default() }));
    assert_eq!(said(&cell), Vec::<String>::new());
    assert_eq!((cell.sent, cell.received, cell.lost, cell.late, cell.duplicated), (100, 99, 1, 1, 2));
    assert_eq!((cell.trial, samples.len()), (4, 99));
    assert_eq!((cell.scheduled, cell.rate_held, cell.is_only_slow()), (Some(100), Some(true), false));
    assert_eq!(cell.latency_ns.unwrap().p50, Some(50_000));
    assert_eq!(cell.cpu_ns_per_message, Some(20.0));
    assert_eq!(cell.send_lag_ns.unwrap().max, 0);
}

#[test]
fn fan_out_counts_deliveries() {
    let nodes = vec![honest(node(true, None)), honest(node(false, Some(10))), honest(node(false, Some(30)))];
    let (cell, _) = judge(&plan(Mode::FanOut, 3, None), 0, Ok(Trial { nodes, ..Trial::default() }));
    assert_eq!((cell.sent, cell.received, cell.hops.len()), (200, 200, 2));
}

#[test]
fn chain_latency_ends_at_the_last_node_and_hops_add_up() {
    // The forwarder sends a little after it has received.
    let forwarder = edit(node(true, Some(10_000)), |_, slot| slot.sent_ns = slot.received_ns + 5);
    let nodes = vec![honest(node(true, None)), honest(forwarder), honest(node(false, Some(35_000)))];
    let (cell, _) = judge(&plan(Mode::Chain, 3, None), 0, Ok(Trial { nodes, ..Trial::default() }));
    assert!(cell.valid, "{:?}", cell.why_invalid);
    let hops: Vec<_> = cell.hops.iter().map(|hop| hop.latency_ns.unwrap().max).collect();
    assert_eq!(hops, [10_000, 25_000]);
    assert_eq!(cell.latency_ns.unwrap().max, 35_000);
}

#[test]
fn two_hosts_are_measured_by_stamps_of_one() {
    let mut plan = plan(Mode::Chain, 5, None);
    plan.hosts = 2;
    let forward = |after| honest(edit(node(true, Some(after)), |_, slot| slot.sent_ns = slot.received_ns));
    let nodes =
        vec![honest(node(true, None)), forward(10), forward(20), forward(30), honest(node(false, Some(44)))];
    let (cell, samples) = judge(&plan, 0, Ok(Trial { nodes, ..Trial::default() }));
    assert!(cell.valid, "{:?}", cell.why_invalid);
    assert_eq!(cell.link, Link::veth());
    assert!(samples.iter().all(|sample| sample.node % 2 == 0));
    let hops: Vec<_> = cell.hops.iter().map(|hop| (hop.from, hop.to, hop.latency_ns.unwrap().max)).collect();
    assert_eq!(hops, [(0, 2, 20), (2, 4, 24)]);
}

#[test]
fn failed_trial_is_a_cell_with_its_reason() {
    let mut planned = plan(Mode::OneWay, 2, None);
    planned.beside = Some(Box::new(plan(Mode::OneWay, 2, Some(50.0))));
    let (cell, samples) =
        judge(&planned, 0, Err(Invalid::Failed("node 1 (x) exited with code 3 while sending".into())));
    assert_eq!(
        cell.key().beside.map(|beside| beside.rate_mhz),
        Some(Some(50_000)),
        "still its own experiment"
    );
    assert!(!cell.valid && samples.is_empty() && cell.latency_ns.is_none());
    assert_eq!(said(&cell), ["node 1 (x) exited with code 3 while sending"]);
}

#[test]
fn a_node_that_lies_about_its_counts_is_found_out() {
    let mut liar = honest(node(false, Some(5)));
    liar.done = liar.done.with("received", 101);
    let why = reasons(&plan(Mode::OneWay, 2, None), vec![honest(node(true, None)), liar]);
    assert_eq!(why, ["node 1 says received=101, its record holds 100"]);
}

#[test]
fn messages_that_nobody_sent_are_a_disagreement() {
    let source = honest(edit(node(true, None), |index, slot| {
        if index >= 90 {
            slot.sent_ns = 0;
        }
    }));
    let why = reasons(&plan(Mode::OneWay, 2, None), vec![source, honest(node(false, Some(5)))]);
    assert!(
        why.contains(&"peers disagree: node 1 received 10 messages that node 0 never sent".to_owned()),
        "{why:?}"
    );
}

#[test]
fn dropped_samples_and_torn_messages_are_named() {
    let mut sink = honest(node(false, Some(5)));
    sink.done = sink.done.with("overrun", 4).with("unexpected", 2);
    let why = reasons(&plan(Mode::OneWay, 2, None), vec![honest(node(true, None)), sink]);
    assert_eq!(
        why,
        [
            "the recorder of node 1 dropped 4 samples",
            "node 1 received 2 messages that were truncated, torn or never sent"
        ]
    );
}

#[test]
fn negative_latency_is_an_error_and_not_hidden() {
    let sink = honest(edit(node(false, Some(5)), |index, slot| {
        if index == 50 {
            slot.received_ns -= 1000;
        }
    }));
    let why = reasons(&plan(Mode::OneWay, 2, None), vec![honest(node(true, None)), sink]);
    assert_eq!(why, ["1 of 100 latencies are negative (down to -995 ns): a clock or a stamp of x is wrong"]);
}

#[test]
fn a_rate_that_was_not_held_is_named_with_what_was_achieved() {
    let behind = honest(edit(node(true, None), |index, slot| slot.sent_ns += index as i64 * 1_000_000));
    let why =
        reasons(&plan(Mode::OneWay, 2, Some(1000.0)), vec![behind, honest(node(false, Some(200_000_000)))]);
    assert_eq!(
        why,
        [
            "the rate was not held: 1000 Hz were asked for, 513 Hz achieved (the last messages left 95.0 ms late)"
        ]
    );
    let short = honest(edit(node(true, None), |index, slot| {
        if index >= 60 {
            slot.sent_ns = 0;
        }
    }));
    let sink = honest(edit(node(false, Some(5)), |index, slot| {
        if index >= 60 {
            *slot = Slot::default();
        }
    }));
    let (cell, _) = judge(
        &plan(Mode::OneWay, 2, Some(1000.0)),
        0,
        Ok(Trial { nodes: vec![short, sink], ..Trial::default() }),
    );
    assert_eq!(said(&cell), ["the rate was not held: 60 of 100 messages were sent"]);
    assert_eq!((cell.sent, cell.scheduled, cell.is_only_slow()), (60, Some(100), true));
}

#[test]
fn a_hiccup_that_was_caught_up_with_is_late_not_invalid() {
    let hiccup = honest(edit(node(true, None), |index, slot| {
        if (40..45).contains(&index) {
            slot.sent_ns = sent_at(45);
        }
    }));
    let sink = honest(node(false, Some(5_900_000)));
    let (cell, _) = judge(
        &plan(Mode::OneWay, 2, Some(1000.0)),
        0,
        Ok(Trial { nodes: vec![hiccup, sink], ..Trial::default() }),
    );
    assert!(cell.valid, "{:?}", cell.why_invalid);
    assert_eq!(cell.late, 100);
    assert_eq!(cell.send_lag_ns.unwrap().max, 5_000_000);
}

#[test]
fn silence_is_not_a_result() {
    let deaf = honest(node(false, None));
    let why = reasons(&plan(Mode::OneWay, 2, None), vec![honest(node(true, None)), deaf]);
    assert_eq!(why, ["nothing arrived: 100 messages were sent, none received"]);
}

#[test]
fn arrivals_on_another_clock_are_translated_and_their_bound_is_reported() {
    let mut plan = plan(Mode::OneWay, 2, Some(1000.0));
    plan.hosts = 2;
    plan.clocks = vec![String::new(), "offset=1s".into()];
    // The receiver's clock is a second ahead; 40 µs each way, and 70 µs for a message.
    let exchange = |number: i64| {
        let at_ns = 900_000_000 + number * 10_000_000;
        let local_ns = at_ns + 1_000_000_000;
        crate::trace::TraceRow {
            exchange: noctule_time_sync::Exchange::from_ns(
                local_ns,
                at_ns + 40_000,
                at_ns + 40_000,
                local_ns + 80_000,
            ),
            offset_true_ns: None,
            step_in_flight: false,
        }
    };
    let judged = |remote: &str| {
        let nodes = vec![honest(node(true, None)), honest(node(false, Some(1_000_070_000)))];
        let clocks = ClockTranslation {
            exchanges: (0..30).map(exchange).collect(),
            remote: remote.parse().unwrap(),
            local: "offset=1s,since=0".parse().unwrap(),
            wire: noctule_timebase::Span::ZERO,
        };
        judge(&plan, 0, Ok(Trial { nodes, clocks: Some(clocks), ..Trial::default() })).0
    };
    let cell = judged("since=0");
    assert_eq!(said(&cell), Vec::<String>::new());
    assert_eq!(cell.received, 100, "a receiver on the other host is measured");
    let latency = cell.latency_ns.unwrap();
    assert!((69_000..71_000).contains(&latency.p50.unwrap()), "{latency:?}");
    assert!((40_000..60_000).contains(&cell.clock_bound_ns), "{}", cell.clock_bound_ns);

    let cell = judged("offset=1ms,since=0");
    assert!(said(&cell)[0].starts_with("100 of 100 latencies are wrong by more than their clock bound"));
    assert_eq!(cell.latency_ns, None);
}

#[test]
fn facts_are_those_of_the_first_node_and_only_numbers() {
    let (mut initiator, mut echo) = (honest(node(true, Some(500))), honest(node(true, Some(200))));
    initiator.done =
        initiator.done.with("fact.encode_ns", 12.5).with("fact.note", "fast").with("fact.rate", "inf");
    echo.done = echo.done.with("fact.encode_ns", 99);
    let nodes = vec![initiator, echo];
    let (cell, _) = judge(&plan(Mode::RoundTrip, 2, None), 0, Ok(Trial { nodes, ..Trial::default() }));
    assert_eq!(said(&cell), [""; 0]);
    assert_eq!(cell.facts.into_iter().collect::<Vec<_>>(), [("encode_ns".to_owned(), 12.5)]);
}

#[test]
fn what_flows_beside_is_judged_too_and_its_fault_is_the_cells() {
    let mut measured = plan(Mode::OneWay, 2, Some(1000.0));
    measured.beside = Some(Box::new(CellPlan { payload_bytes: 1000, ..measured.clone() }));
    let nodes = || vec![honest(node(true, None)), honest(node(false, Some(10)))];
    let judged = |other: Vec<NodeResult>| {
        let trial = Trial { nodes: nodes(), beside: Some(other), ..Trial::default() };
        judge(&measured, 0, Ok(trial)).0
    };
    let cell = judged(nodes());
    assert_eq!(said(&cell), Vec::<String>::new());
    let beside = cell.beside.unwrap();
    assert_eq!((beside.payload_bytes, beside.sent, beside.received), (1000, 100, 100));
    let stopped = edit(node(true, None), |index, slot| {
        if index >= 40 {
            *slot = Slot::default();
        }
    });
    let heard = edit(node(false, Some(10)), |index, slot| {
        if index >= 40 {
            *slot = Slot::default();
        }
    });
    let cell = judged(vec![honest(stopped), honest(heard)]);
    assert_eq!(said(&cell), ["beside it: the rate was not held: 40 of 100 messages were sent"]);
    assert_eq!(cell.latency_ns, None);
}

#[test]
fn across_an_emulated_link_all_stamps_are_of_one_clock() {
    let mut plan = plan(Mode::OneWay, 2, None);
    (plan.hosts, plan.across) = (2, Some("wifi".into()));
    let nodes = vec![honest(node(true, None)), honest(node(false, Some(10)))];
    let trial = Trial { nodes, wire_bytes: Some(12_800), ..Trial::default() };
    let (cell, _) = judge(&plan, 0, Ok(trial));
    assert_eq!(
        (cell.link.to_string().as_str(), cell.received, cell.wire_bytes),
        ("link:wifi", 100, Some(12_800))
    );
}

#[test]
fn a_way_round_the_link_and_a_faulty_emulator_make_the_cell_invalid() {
    let mut plan = plan(Mode::OneWay, 2, None);
    (plan.hosts, plan.across, plan.expect) = (2, Some("wifi".into()), Some("may_saturate".into()));
    let judged = |wire_bytes, refused| {
        let nodes = vec![honest(node(true, None)), honest(node(false, Some(10)))];
        let link = Some(LinkRecord { refused, ..LinkRecord::default() });
        judge(&plan, 0, Ok(Trial { nodes, wire_bytes: Some(wire_bytes), link, ..Trial::default() })).0
    };
    assert_eq!(said(&judged(6_400, 0)), Vec::<String>::new());
    assert_eq!(judged(6_400, 0).emulated_link, Some(LinkRecord::default()));
    let round = judged(6_399, 0);
    assert!(said(&round)[0].starts_with("the messages took another way than the link"), "{round:?}");
    let faulty = judged(6_400, 3);
    assert!(said(&faulty)[0].contains("overflowed: 3 packets"), "{faulty:?}");
    assert_eq!((faulty.valid, faulty.latency_ns), (false, None));
    assert_eq!(
        (round.expect.is_some(), faulty.expect),
        (true, None),
        "a peer may saturate, the tool may not"
    );
}

#[test]
fn a_line_that_was_late_itself_is_not_excused_by_what_its_peer_may_do() {
    let mut plan = plan(Mode::OneWay, 2, None);
    plan.expect = Some("may_saturate".into());
    let judged = |faults: &[Invalid]| {
        let nodes = vec![honest(node(true, None)), honest(node(false, Some(10)))];
        let line = LineFigures { faults: faults.to_vec(), ..LineFigures::default() };
        judge(&plan, 0, Ok(Trial { nodes, line, ..Trial::default() })).0
    };
    assert_eq!((judged(&[]).valid, judged(&[]).expect.as_deref()), (true, Some("may_saturate")));
    let fault = Invalid::LineLate { late_ns: 250_000, real_time: true };
    let late = judged(std::slice::from_ref(&fault));
    assert_eq!((late.valid, late.expect, late.why_invalid), (false, None, vec![fault]));
}

#[test]
fn between_hosts_all_receivers_are_measured_but_of_a_chain_in_which_each_second_comes_back_to_the_source() {
    let between = |mode, nodes, change: fn(&mut CellPlan)| {
        let mut plan = CellPlan { hosts: 2, ..plan(mode, nodes, None) };
        change(&mut plan);
        receivers(&plan)
    };
    assert_eq!(between(Mode::OneWay, 2, |_| ()), [1]);
    assert_eq!(between(Mode::FanOut, 4, |_| ()), [1, 2, 3]);
    assert_eq!(between(Mode::Chain, 5, |_| ()), [2, 4]);
    assert_eq!(between(Mode::Chain, 5, |plan| plan.across = Some("delay=1ms".into())), [1, 2, 3, 4]);
    assert_eq!(between(Mode::Chain, 5, |plan| plan.clocks = vec![String::new(); 2]), [1, 2, 3, 4]);
    assert_eq!(between(Mode::RoundTrip, 2, |_| ()), [0]);
}
