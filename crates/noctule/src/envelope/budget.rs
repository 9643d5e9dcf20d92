//! How much of this node's time others may take with handshakes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

const PERIOD: Span = Span::from_s(1);

/// So many handshakes a second, and a quarter of them for one address.
#[derive(Debug)]
pub(super) struct Budget {
    per_period: u32,
    began: Option<Instant<Raw>>,
    taken: u32,
    /// No more than `per_period` of them.
    by_address: BTreeMap<IpAddr, u32>,
}

impl Budget {
    pub(super) fn new(per_s: u32) -> Budget {
        Budget { per_period: per_s, began: None, taken: 0, by_address: BTreeMap::new() }
    }

    /// Whether one more is paid for.
    pub(super) fn take(&mut self, address: IpAddr, now: Instant<Raw>) -> bool {
        if self.began.is_none_or(|began| now - began >= PERIOD) {
            (self.began, self.taken) = (Some(now), 0);
            self.by_address.clear();
        }
        if self.taken >= self.per_period {
            return false;
        }
        let of_address = self.by_address.entry(address).or_default();
        if *of_address >= self.per_period / 4 {
            return false;
        }
        *of_address += 1;
        self.taken += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_a_quarter_and_all_together_the_whole_each_second() {
        let mut budget = Budget::new(8);
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        let mut taken = |host: u8, ms: i64| {
            (0..10).filter(|_| budget.take(IpAddr::from([10, 0, 0, host]), at(ms))).count()
        };
        assert_eq!([taken(1, 0), taken(1, 500), taken(2, 999), taken(3, 999)], [2, 0, 2, 2]);
        assert_eq!([taken(4, 999), taken(5, 999), taken(1, 1_000)], [2, 0, 2]);
    }
}
