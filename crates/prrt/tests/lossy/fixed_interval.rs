//! The yardstick for bursts in time: a sender that knows nothing of the channel and sends again at a fixed interval.

use std::collections::BTreeSet;

use noctule_timebase::{Instant, Span};

use super::{Cell, Direction, START};
use noctule_prrt::Local;

/// Results of the fixed interval.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    pub residual: f64,
    pub redundancy: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A sample is sent for the so-many-th time.
    Send(u32),
    /// An acknowledgement, not lost, arrives at the sender.
    Acknowledged,
}

/// By time, and which sample they are of.
type Events = BTreeSet<(Instant<Local>, u64, Event)>;

/// Each sample is sent, again `every` after its acknowledgement should have been there, and so on until it is
/// acknowledged or could not arrive in time. Each datagram that arrives is acknowledged at once, and the
/// acknowledgement names all that arrived before.
pub fn run_fixed(cell: Cell, samples: u64, every: Span, seed: u64) -> Fixed {
    let mut directions = [0, 1].map(|part| Direction::new(&cell, seed, part));
    let written = |sample: u64| START + cell.interval * sample as i64;
    let one_way = cell.round_trip / 2;
    let mut events = Events::new();
    for sample in 0..samples {
        events.insert((written(sample), sample, Event::Send(0)));
    }
    let mut arrived = vec![false; samples as usize];
    let mut acknowledged = vec![false; samples as usize];
    let (mut repeats, mut failed) = (0, 0);
    while let Some((now, sample, event)) = events.pop_first() {
        let place = sample as usize;
        match event {
            Event::Acknowledged => {
                // All that had arrived when it left.
                let left = now - one_way;
                let reach = ((now - START).ns() / cell.interval.ns()) as usize;
                for earlier in (reach.saturating_sub(64)..=place).filter(|earlier| arrived[*earlier]) {
                    acknowledged[earlier] |= written(earlier as u64) + one_way <= left;
                }
            }
            Event::Send(attempt) => {
                if now + one_way > written(sample) + cell.deadline {
                    failed += u64::from(!arrived[place]);
                    continue;
                }
                if acknowledged[place] {
                    continue;
                }
                repeats += u64::from(attempt > 0);
                if !directions[0].is_bad(&cell, now) {
                    arrived[place] = true;
                    // Its own draw in the order of leaving is of no matter: feedback of one interval shares a state.
                    if !directions[1].is_bad(&cell, now + one_way) {
                        events.insert((now + cell.round_trip, sample, Event::Acknowledged));
                    }
                }
                let again = if attempt == 0 { cell.round_trip + Span::from_ms(1) } else { every };
                events.insert((now + again, sample, Event::Send(attempt + 1)));
            }
        }
    }
    Fixed { residual: failed as f64 / samples as f64, redundancy: repeats as f64 / samples as f64 }
}
