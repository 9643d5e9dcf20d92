//! A specification as one line that reads as itself.

use std::fmt;

use noctule_timebase::Span;

use super::super::Distribution;
use super::super::spec::{Advance, Burst, Direction, Impairments, LinkSpec, QueueLimit, Reorder, Share};

impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sections = Vec::new();
        let nothing = Impairments::default();
        let both = [("a>b", &self.a_to_b), ("b>a", &self.b_to_a)];
        if self.a_to_b.initial == self.b_to_a.initial {
            sections.push(changes(&nothing, &self.a_to_b.initial));
        } else {
            for (name, direction) in both {
                sections.push(format!("{name}: {}", changes(&nothing, &direction.initial)));
            }
        }
        // Sections stand in the order of time, whichever direction they are of.
        let mut steps: Vec<(Span, String)> = Vec::new();
        for (name, direction) in both {
            steps.extend(script(name, direction));
        }
        steps.sort_by_key(|(at, _)| *at);
        sections.extend(steps.into_iter().map(|(_, section)| section));
        sections.retain(|section| !section.is_empty());
        f.write_str(sections.join("; ").trim())
    }
}

fn script(name: &str, direction: &Direction) -> Vec<(Span, String)> {
    let mut before = &direction.initial;
    let mut sections = Vec::new();
    for step in &direction.script {
        let section = format!("@{} {name}: {}", time(step.at), changes(before, &step.impairments));
        sections.push((step.at, section));
        before = &step.impairments;
    }
    sections
}

/// The settings that lead from one state to another.
fn changes(from: &Impairments, to: &Impairments) -> String {
    let before = settings(from);
    let words = settings(to).into_iter().zip(before).filter(|(new, old)| new != old);
    let mut words: Vec<String> = words.map(|(new, _)| new).collect();
    // Replaced recordings are played by time unless the text has it again.
    if to.replay != from.replay
        && let Some(replay) = &to.replay
    {
        words.retain(|word| !word.starts_with("replay"));
        words.push(format!("replay={} replay_by={}", replay.name, advance(replay.advance)));
    }
    words.join(" ")
}

/// Every setting, also those at their defaults, in a fixed order.
fn settings(state: &Impairments) -> Vec<String> {
    let name = Distribution::NAMES.into_iter().find(|(_, shape)| *shape == state.distribution);
    let none = || "none".to_owned();
    vec![
        if state.down { "down".into() } else { "up".into() },
        format!("delay={}", time(state.delay)),
        format!("jitter={}", time(state.jitter)),
        format!("distribution={}", name.map_or("normal", |(name, _)| name)),
        format!("replay={}", state.replay.as_ref().map_or_else(none, |replay| replay.name.clone())),
        format!("loss={}", share(state.loss)),
        format!("burst={}", burst(state.burst)),
        format!("burst_loss={}", share(state.burst_loss)),
        format!("gap_loss={}", share(state.gap_loss)),
        format!("rate={}", state.rate_bps.map_or_else(none, rate)),
        match state.queue {
            QueueLimit::Bytes(bytes) => format!("queue={bytes}B"),
            QueueLimit::Time(limit) => format!("queue={}", time(limit)),
        },
        format!("queue_packets={}", state.queue_packets.map_or_else(none, |packets| packets.to_string())),
        format!("mark={}", state.mark.map_or_else(none, time)),
        state.police.map_or_else(
            || "police=none".into(),
            |policer| format!("police={}/{}B", rate(policer.rate_bps), policer.burst_bytes),
        ),
        format!("overhead={}B", state.overhead_bytes),
        format!("preamble={}", time(state.preamble)),
        match state.stall {
            None => "stall=none".into(),
            Some(stall) => format!("stall={}/{}", time(stall.duration), time(stall.interval)),
        },
        match state.reorder {
            Reorder::Never => "reorder=none".into(),
            Reorder::ByJitter => "reorder=jitter".into(),
            Reorder::Held { share: held, by } => format!("reorder={}/{}", share(held), time(by)),
        },
        format!("duplicate={}", share(state.duplicate)),
        format!("corrupt={}", share(state.corrupt)),
        format!("mtu={}", state.mtu_bytes.map_or_else(none, |mtu| format!("{mtu}B"))),
    ]
}

fn advance(advance: Advance) -> &'static str {
    match advance {
        Advance::Time => "time",
        Advance::Packet => "packet",
    }
}

fn burst(burst: Burst) -> String {
    match burst {
        Burst::Independent => "none".into(),
        Burst::Packets { mean_thousandths } => decimal(u64::from(mean_thousandths), 1_000),
        Burst::Time { mean } => time(mean),
    }
}

fn rate(rate_bps: u64) -> String {
    let units = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")];
    largest(rate_bps, &units)
}

pub(super) fn time(span: Span) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    largest(span.ns().max(0).unsigned_abs(), &units)
}

fn share(share: Share) -> String {
    format!("{}%", decimal(u64::from(share.billionths()), 10_000_000))
}

fn largest(value: u64, units: &[(u64, &str)]) -> String {
    let fits = units.iter().find(|(scale, _)| value.is_multiple_of(*scale) && value > 0);
    match fits {
        Some((scale, unit)) => format!("{}{unit}", value / scale),
        None => "0".into(),
    }
}

/// `value / scale` in decimals, exactly; `scale` is a power of ten.
fn decimal(value: u64, scale: u64) -> String {
    let places = scale.ilog10() as usize;
    let text = format!("{}.{:0places$}", value / scale, value % scale);
    text.trim_end_matches('0').trim_end_matches('.').into()
}
