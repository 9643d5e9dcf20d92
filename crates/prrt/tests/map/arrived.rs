//! What of a stream has arrived, and when.

use noctule_timebase::Span;

use super::PARTS;

/// Arrivals at the receiver.
pub struct Arrived {
    pub deadline: Span,
    seen: Vec<bool>,
    pub on_time: u64,
    pub late: u64,
    /// Samples in time by equal parts of the run.
    pub on_time_by_part: [u64; PARTS],
    pub latencies: Vec<Span>,
}

impl Arrived {
    pub fn new(deadline: Span, samples: u64) -> Arrived {
        Arrived {
            deadline,
            seen: vec![false; samples as usize],
            on_time: 0,
            late: 0,
            on_time_by_part: [0; PARTS],
            latencies: Vec::with_capacity(samples as usize),
        }
    }

    /// A sample has arrived, counted from 1.
    pub fn take(&mut self, sequence: u64, latency: Span) {
        let samples = self.seen.len() as u64;
        let Some(seen) = self.seen.get_mut(sequence as usize - 1) else { return };
        if std::mem::replace(seen, true) {
            return;
        }
        self.latencies.push(latency);
        if latency > self.deadline {
            self.late += 1;
            return;
        }
        self.on_time += 1;
        self.on_time_by_part[((sequence - 1) * PARTS as u64 / samples) as usize] += 1;
    }

    /// The latency that this share of those that arrived do not exceed, ms.
    pub fn latency_ms(&mut self, share: f64) -> f64 {
        self.latencies.sort_unstable();
        let place = (self.latencies.len() as f64 * share) as usize;
        self.latencies.get(place).map_or(f64::NAN, |latency| latency.ns() as f64 * 1e-6)
    }
}
