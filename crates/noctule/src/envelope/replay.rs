//! Which counters have been seen: a sliding window over a bitmap, as in RFC 6479, for each generation of keys.

use super::chain::{first_counter, generation};

/// Counters that a late datagram may lag behind the newest.
const SPAN: u64 = 1024;
const WORDS: usize = (SPAN / 64) as usize + 1;

/// The windows of the newest generation of a sender and of the one before it: its counter leaps from one to the next, and what it sealed
/// before the leap may come after what it sealed then.
#[derive(Debug)]
pub(super) struct Windows {
    now: ReplayWindow,
    before: Option<ReplayWindow>,
}

impl Windows {
    /// Accepts what comes after `counter`.
    pub(super) fn starting_at(counter: u64) -> Windows {
        Windows { now: ReplayWindow::starting_at(counter), before: None }
    }

    /// The highest counter accepted.
    pub(super) fn newest(&self) -> u64 {
        self.now.newest()
    }

    /// True if the counter is new; it is remembered.
    pub(super) fn accept(&mut self, counter: u64) -> bool {
        let (wanted, newest) = (generation(counter), generation(self.now.newest));
        if wanted > newest {
            let first = ReplayWindow::starting_at(first_counter(wanted).saturating_sub(1));
            self.before = Some(std::mem::replace(&mut self.now, first));
        }
        if wanted >= newest {
            return self.now.accept(counter);
        }
        let mut before = self.before.as_mut().filter(|before| generation(before.newest) == wanted);
        before.as_mut().is_some_and(|before| before.accept(counter))
    }
}

/// Remembers the last counters of one sender.
#[derive(Debug)]
struct ReplayWindow {
    /// Nothing up to this is accepted, seen or not.
    floor: u64,
    newest: u64,
    /// Bit `c % 64` of word `c / 64 % WORDS`; one word more than the span, so that the words of the
    /// span are never the one being cleared.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Accepts what comes after `counter`.
    fn starting_at(counter: u64) -> ReplayWindow {
        ReplayWindow { floor: counter, newest: counter, seen: [0; WORDS] }
    }

    /// The highest counter accepted.
    fn newest(&self) -> u64 {
        self.newest
    }

    /// True if the counter is new; it is remembered.
    fn accept(&mut self, counter: u64) -> bool {
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

    #[test]
    fn a_leap_to_the_next_generation_leaves_a_window_behind() {
        let mut windows = Windows::starting_at(10);
        let (last, first) = (1_000, first_counter(1));
        assert!(windows.accept(last) && windows.accept(first + 5));
        assert!(windows.accept(last - 1) && !windows.accept(last - 1) && !windows.accept(last));
        assert!(windows.accept(first) && !windows.accept(first) && !windows.accept(10));
        assert!(windows.accept(last + 1), "in front of the leap");
        assert!(windows.accept(first_counter(3)) && !windows.accept(last - 2), "two generations ago");
        assert_eq!(windows.newest(), first_counter(3));
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
