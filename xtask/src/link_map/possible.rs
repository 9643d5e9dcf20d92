//! Bounds for a cell of the map, where one is known: fixed delays, losses of one kind, no limit of the rate.

use std::cell::RefCell;
use std::collections::BTreeMap;

use noctule_netsim::bound::{Stream, capacity};
use noctule_netsim::link::{Burst, Direction, LinkSpec, Reorder, no_recordings};
use noctule_timebase::Span;

use super::Cell;

/// Share of samples that may fail.
pub(super) const TARGET: f64 = 1e-4;
/// Larger windows have too many states for the code's program; the capacity is a bound there, too.
const REPAIR_SLOTS_MOST: usize = 10;
const FEEDBACK_SLOTS_MOST: usize = 4;

/// Bounds that nothing on that link is better than.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Possible {
    /// Share of samples that fail whatever is sent: the channel is bad for all their time.
    pub(super) residual: f64,
    /// Extras a datagram that keep [`TARGET`]; `None` if nothing does.
    pub(super) redundancy: Option<f64>,
    /// The same for schemes that repeat each sample for itself.
    pub(super) repetition: Option<f64>,
}

/// Least extras of a code and of repetition, by stream.
type Solutions = BTreeMap<String, [Option<f64>; 2]>;

thread_local! {
    static KNOWN: RefCell<Solutions> = RefCell::default();
}

/// The bounds of a cell, or `None` where there are none of this kind.
pub(super) fn of(cell: &Cell) -> Option<Possible> {
    let interval = match cell.load.as_str() {
        "115 B at 200 Hz" => Span::from_ms(5),
        "1200 B at 1 kHz" => Span::from_ms(1),
        _ => return None,
    };
    let spec = LinkSpec::parse(&cell.link, &mut no_recordings).ok()?;
    if !cell.beside.is_empty() || !is_simple(&spec.a_to_b) || !is_simple(&spec.b_to_a) {
        return None;
    }
    let there = &spec.a_to_b.initial;
    let left = Span::from_us((cell.deadline_ms * 1e3) as i64) - there.delay;
    let loss = there.loss.as_f64();
    let residual = match there.burst {
        Burst::Time { mean } => loss * (-(left.ns() as f64) / mean.ns() as f64).exp(),
        _ => 0.0,
    };
    if residual > TARGET {
        return Some(Possible { residual, redundancy: None, repetition: None });
    }
    let stream = stream(&spec, interval, left);
    let is_small = stream.repair_slots <= REPAIR_SLOTS_MOST && stream.feedback_slots <= FEEDBACK_SLOTS_MOST;
    let least = capacity(loss, TARGET);
    let [coded, repetition] = if is_small && loss > TARGET { solved(&stream) } else { [None; 2] };
    let redundancy = Some(coded.map_or(least, |coded| coded.max(least)));
    Some(Possible { residual, redundancy, repetition })
}

fn is_simple(direction: &Direction) -> bool {
    let state = &direction.initial;
    direction.script.is_empty()
        && state.jitter == Span::ZERO
        && state.reorder == Reorder::Never
        && (state.rate_bps, state.police, state.stall) == (None, None, None)
}

fn stream(spec: &LinkSpec, interval: Span, left: Span) -> Stream {
    let there = &spec.a_to_b.initial;
    let round_trip = there.delay + spec.b_to_a.initial.delay;
    let loss = there.loss.as_f64();
    let (by_packet, by_slot) = match there.burst {
        Burst::Independent => ([loss, 1.0 - loss], [0.0; 2]),
        Burst::Packets { mean_thousandths } => {
            let ends = 1_000.0 / f64::from(mean_thousandths);
            ([ends * loss / (1.0 - loss), ends], [0.0; 2])
        }
        Burst::Time { mean } => {
            let memory = (-(interval.ns() as f64) / (mean.ns() as f64 * (1.0 - loss))).exp();
            ([0.0; 2], [loss * (1.0 - memory), (1.0 - loss) * (1.0 - memory)])
        }
    };
    let slots = |span: Span| span.ns().max(0) as f64 / interval.ns() as f64;
    Stream {
        loss,
        by_packet,
        by_slot,
        repair_slots: slots(left) as usize,
        feedback_slots: (slots(round_trip).ceil() as usize).max(2),
    }
}

/// Many cells differ in nothing that the program looks at.
fn solved(stream: &Stream) -> [Option<f64>; 2] {
    let key = format!("{stream:?}");
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).copied()) {
        return known;
    }
    let found = [stream.coding(TARGET), stream.repetition(TARGET)];
    KNOWN.with_borrow_mut(|known| known.insert(key, found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(link: &str) -> Cell {
        Cell { load: "115 B at 200 Hz".into(), deadline_ms: 60.0, link: link.into(), ..Cell::default() }
    }

    #[test]
    fn bursts_in_time_lose_what_they_outlast() {
        // Bad for all of 50 ms: golden values of the audit's Monte Carlo.
        for (burst, expected) in [("10ms", 3.4e-4), ("15ms", 1.8e-3), ("30ms", 9.4e-3), ("60ms", 2.2e-2)] {
            let possible = of(&cell(&format!("delay=10ms loss=5% burst={burst}"))).unwrap();
            assert!((possible.residual / expected - 1.0).abs() < 0.03, "{burst}: {possible:?}");
            assert_eq!(possible.redundancy, None);
        }
    }

    #[test]
    fn a_cell_has_a_bound_only_if_nothing_else_happens_in_it() {
        let clean = of(&cell("delay=10ms")).unwrap();
        assert_eq!(clean, Possible { residual: 0.0, redundancy: Some(0.0), repetition: None });
        for link in
            ["delay=10ms jitter=1ms", "delay=10ms; @3s: down", "delay=10ms rate=1mbit", "replay=x", "what"]
        {
            assert_eq!(of(&cell(link)), None, "{link}");
        }
        assert_eq!(of(&Cell { beside: "CUBIC".into(), ..cell("delay=10ms") }), None);
    }
}
