//! The loss event rate of RFC 5348: how many packets a TCP flow could have on its way at these losses.
//!
//! A queue that does not become shorter may be another flow's. But where packets are lost by chance a flow that losses slow down has few
//! packets on its way and fills no queue; then what is long is jitter, or a longer route.

/// Loss intervals are averaged over about so many (RFC 5348 has eight).
const INTERVALS: f64 = 8.0;
/// The packets of TCP at a loss event rate of `p` are `1.22 / sqrt(p)` (Mathis et al. 1997); so many times more, no flow like it has.
const TCP: f64 = 1.22;
const MORE: f64 = 2.0;
/// Fewer say nothing: so many leave at the start (RFC 6928).
const PACKETS_LEAST: f64 = 10.0;

/// Packets between loss events; losses within a round trip are one.
#[derive(Debug, Default)]
pub(super) struct LossEvents {
    /// Packets since the last event, and in the mean between two; 0 before the first.
    packets: f64,
    mean: f64,
    /// Losses of packets before this one belong to the last event.
    until: u64,
}

impl LossEvents {
    pub(super) fn arrived(&mut self, packets: u32) {
        self.packets += f64::from(packets);
    }

    /// Packet `number` was lost; `next` will be the next one.
    pub(super) fn lost(&mut self, number: u64, next: u64) {
        if number < self.until {
            return;
        }
        self.until = next;
        let interval = std::mem::take(&mut self.packets) + 1.0;
        self.mean = if self.mean > 0.0 { self.mean + (interval - self.mean) / INTERVALS } else { interval };
    }

    /// Whether a flow that losses slow down could have so many packets on its way.
    pub(super) fn allows(&self, packets: f64) -> bool {
        let possible = MORE * TCP * self.mean.max(self.packets).sqrt();
        self.mean == 0.0 || packets < possible.max(PACKETS_LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a long time with a loss every so many packets, of which `window` are on their way.
    fn after(interval: u64, window: u64) -> LossEvents {
        let mut events = LossEvents::default();
        for number in 0..100 * interval {
            if number % interval == 0 { events.lost(number, number + window) } else { events.arrived(1) }
        }
        events
    }

    #[test]
    fn a_flow_that_losses_slow_down_is_possible_where_losses_are_as_rare_as_its_own() {
        // A window of 50 packets loses one in about 940 (3/8 of its square).
        assert!(after(940, 50).allows(50.0));
        assert!(!after(50, 50).allows(50.0), "2 % lost by chance");
        assert!(after(50, 8).allows(8.0));
    }

    #[test]
    fn losses_within_a_round_trip_are_one() {
        let mut events = after(1_000, 20);
        for number in 100_000..100_019 {
            events.lost(number, 100_020);
        }
        assert!(events.allows(60.0));
        assert!(LossEvents::default().allows(1e6));
    }
}
