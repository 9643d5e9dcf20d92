//! Which counters have been seen: a sliding window over a bitmap, as in RFC 6479.

/// Counters that a late datagram may lag behind the newest.
const SPAN: u64 = 1024;
const WORDS: usize = (SPAN / 64) as usize + 1;

/// Remembers the last counters of one sender.
#[derive(Debug)]
pub(super) struct ReplayWindow {
    /// Nothing up to this is accepted, seen or not.
    floor: u64,
    newest: u64,
    /// Bit `c % 64` of word `c / 64 % WORDS`; one word more than the span, so that the words of the
    /// span are never the one being cleared.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Accepts what comes after `counter`.
    pub(super) fn starting_at(counter: u64) -> ReplayWindow {
        ReplayWindow { floor: counter, newest: counter, seen: [0; WORDS] }
    }

    /// The highest counter accepted.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// True if the counter is new; it is remembered.
    pub(super) fn accept(&mut self, counter: u64) -> bool {
        if counter <= self.floor || counter.saturating_add(SPAN) <= self.newest {
            return false;
        }
        if counter > self.newest {
            let fresh = (counter / 64 - self.newest / 64).min(WORDS as u64);
            (1..=fresh).for_each(|step| self.seen[word(self.newest + 64 * step)] = 0);
            // A leap beyond the whole window clears it from its own end.
            if fresh == WORDS as u64 {
                self.seen = [0; WORDS];
            }
            self.newest = counter;
        }
        let bit = 1 << (counter % 64);
        let slot = &mut self.seen[word(counter)];
        let new = *slot & bit == 0;
        *slot |= bit;
        new
    }
}

fn word(counter: u64) -> usize {
    (counter / 64 % WORDS as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_window() {
        let mut window = ReplayWindow::starting_at(10);
        assert!(!window.accept(10), "what came before the start");
        assert!(window.accept(2000) && !window.accept(2000));
        assert!(window.accept(2000 - SPAN + 1) && !window.accept(2000 - SPAN));
        assert!(window.accept(u64::MAX) && !window.accept(u64::MAX));
    }

    proptest! {
        #[test]
        fn never_accepts_twice_and_always_accepts_what_is_new_and_not_old(
            steps in proptest::collection::vec((0u64..3000, 0u64..1100), 1..200),
        ) {
            let mut window = ReplayWindow::starting_at(5000);
            let (mut newest, mut seen) = (5000, BTreeSet::new());
            for (forward, back) in steps {
                let counter = (newest + forward).saturating_sub(back);
                let expected = counter > 5000 && counter + SPAN > newest && seen.insert(counter);
                prop_assert_eq!(window.accept(counter), expected, "{}", counter);
                newest = newest.max(counter);
            }
        }
    }
}
