//! The limit on redundancy: retransmissions and repair symbols that a stream may send beyond its data.
//!
//! Two shares bound them, whatever the repair rule would like: one of the data that was sent, for the worst channel
//! that is worth a try; and one of the datagrams that *arrived*, so that extras die out where little or nothing does
//! (a circuit breaker, RFC 8083), be it for congestion or because no node is there.

/// Extras for every datagram of data.
const EXTRAS_PER_DATAGRAM: f64 = 4.0;
/// Extras for every datagram that arrived, extras included: 4 per datagram of data at 20 % loss need 1.
const EXTRAS_PER_ARRIVAL: f64 = 1.25;
/// Extras that may be saved up, and those to begin with: what the path bears is not known yet.
const EXTRAS_SAVED_LIMIT: f64 = 256.0;
const EXTRAS_SAVED_FIRST: f64 = 32.0;
/// While so many are left they are spent freely.
const EXTRAS_PLENTY: f64 = 64.0;

/// The share of repairs that a stream may send, and what of it is left.
#[derive(Debug)]
pub(crate) struct RepairBudget {
    by_data: f64,
    by_arrivals: f64,
}

impl RepairBudget {
    pub(crate) fn new() -> RepairBudget {
        RepairBudget { by_data: EXTRAS_SAVED_FIRST, by_arrivals: EXTRAS_SAVED_FIRST }
    }

    /// A datagram of data has been sent.
    pub(crate) fn sent(&mut self) {
        self.by_data = (self.by_data + EXTRAS_PER_DATAGRAM).min(EXTRAS_SAVED_LIMIT);
    }

    /// A datagram, data or not, has arrived.
    pub(crate) fn arrived(&mut self) {
        self.by_arrivals = (self.by_arrivals + EXTRAS_PER_ARRIVAL).min(EXTRAS_SAVED_LIMIT);
    }

    /// Whether one more extra may be sent.
    pub(crate) fn allows(&self) -> bool {
        self.by_data >= 1.0 && self.by_arrivals >= 1.0
    }

    /// By how much more than usual an extra must be worth, so that a few samples do not spend what many need.
    pub(crate) fn scarcity(&self) -> f64 {
        (EXTRAS_PLENTY / self.by_data.min(self.by_arrivals).max(1.0)).max(1.0).powi(2)
    }

    /// It has been.
    pub(crate) fn spend(&mut self) {
        self.by_data -= 1.0;
        self.by_arrivals -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extras for so many datagrams, of all of which every `each`th arrives.
    fn extras(datagrams: u32, each: u32) -> u32 {
        let (mut budget, mut extras, mut sent) = (RepairBudget::new(), 0, 0);
        for _ in 0..datagrams {
            budget.sent();
            let mut more = 1;
            while more > 0 {
                more -= 1;
                sent += 1;
                if sent % each == 0 {
                    budget.arrived();
                }
                if budget.allows() && extras < 100 * datagrams {
                    budget.spend();
                    (extras, more) = (extras + 1, 1);
                }
            }
        }
        extras
    }

    #[test]
    fn nobody_there_costs_what_was_saved_and_no_more() {
        assert_eq!(extras(10_000, u32::MAX), EXTRAS_SAVED_FIRST as u32);
    }

    #[test]
    fn extras_become_dearer_as_they_become_few() {
        let mut budget = RepairBudget { by_data: EXTRAS_SAVED_LIMIT, by_arrivals: EXTRAS_SAVED_LIMIT };
        assert_eq!(budget.scarcity(), 1.0);
        (0..EXTRAS_SAVED_LIMIT as u32 - 32).for_each(|_| budget.spend());
        assert_eq!(budget.scarcity(), 4.0);
        (0..32).for_each(|_| budget.spend());
        assert_eq!(budget.scarcity(), EXTRAS_PLENTY * EXTRAS_PLENTY);
    }

    #[test]
    fn extras_are_a_share_of_the_data_and_of_what_arrives() {
        let near = |extras: u32, share: f64| (f64::from(extras) / 10_000.0 - share).abs() < 0.03;
        assert!(near(extras(10_000, 1), EXTRAS_PER_DATAGRAM));
        // e = 1.25 (1 + e) / 4
        assert!(near(extras(10_000, 4), 0.3125 / 0.6875));
    }
}
