//! A reading of one clock.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::Span;

/// A reading of clock `C`: integer nanoseconds since that clock's own origin.
///
/// `C` is any type, by habit an empty enum; it is never constructed. The origin belongs to the clock
/// (boot, the Unix epoch, power-up of a board) and zero means nothing special: "no instant" is `None`.
/// Operators saturate at [`Instant::MIN`] and [`Instant::MAX`].
pub struct Instant<C> {
    ns: i64,
    // `fn() -> C` keeps an instant `Send + Sync + Copy` whatever the marker is.
    clock: PhantomData<fn() -> C>,
}

impl<C> Instant<C> {
    /// The latest instant a clock can show.
    pub const MAX: Instant<C> = Instant::from_ns(i64::MAX);
    /// The earliest instant a clock can show.
    pub const MIN: Instant<C> = Instant::from_ns(i64::MIN);

    /// The reading `ns` nanoseconds after the clock's origin.
    pub const fn from_ns(ns: i64) -> Instant<C> {
        Instant { ns, clock: PhantomData }
    }

    /// Nanoseconds since the clock's origin.
    pub const fn ns(self) -> i64 {
        self.ns
    }

    /// The same moment as clock `D` shows it, where `offset` is D's reading minus C's.
    ///
    /// This is the only way from one clock to another. The caller answers for the offset.
    pub const fn translate<D>(self, offset: Span) -> Instant<D> {
        Instant::from_ns(self.ns.saturating_add(offset.ns()))
    }

    /// Later by `span`, or `None` where it does not fit.
    pub const fn checked_add(self, span: Span) -> Option<Instant<C>> {
        match self.ns.checked_add(span.ns()) {
            Some(ns) => Some(Instant::from_ns(ns)),
            None => None,
        }
    }

    /// Time since `earlier` on the same clock, or `None` where it does not fit.
    pub const fn checked_since(self, earlier: Instant<C>) -> Option<Span> {
        match self.ns.checked_sub(earlier.ns) {
            Some(ns) => Some(Span::from_ns(ns)),
            None => None,
        }
    }
}

impl<C> Add<Span> for Instant<C> {
    type Output = Instant<C>;
    fn add(self, span: Span) -> Instant<C> {
        Instant::from_ns(self.ns.saturating_add(span.ns()))
    }
}

impl<C> Sub<Span> for Instant<C> {
    type Output = Instant<C>;
    fn sub(self, span: Span) -> Instant<C> {
        Instant::from_ns(self.ns.saturating_sub(span.ns()))
    }
}

impl<C> Sub for Instant<C> {
    type Output = Span;
    fn sub(self, earlier: Instant<C>) -> Span {
        Span::from_ns(self.ns.saturating_sub(earlier.ns))
    }
}

impl<C> AddAssign<Span> for Instant<C> {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl<C> SubAssign<Span> for Instant<C> {
    fn sub_assign(&mut self, span: Span) {
        *self = *self - span;
    }
}

// Derives would demand the same traits of the marker, which is never constructed.
impl<C> Clone for Instant<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Instant<C> {}

impl<C> PartialEq for Instant<C> {
    fn eq(&self, other: &Self) -> bool {
        self.ns == other.ns
    }
}

impl<C> Eq for Instant<C> {}

impl<C> PartialOrd for Instant<C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<C> Ord for Instant<C> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ns.cmp(&other.ns)
    }
}

impl<C> Hash for Instant<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ns.hash(state);
    }
}

impl<C> fmt::Debug for Instant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{} ns", self.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Board {}
    enum Host {}

    fn board(ns: i64) -> Instant<Board> {
        Instant::from_ns(ns)
    }

    #[test]
    fn two_readings_of_one_clock_give_a_span() {
        assert_eq!(board(1_500) - board(1_000), Span::from_ns(500));
        assert_eq!(board(1_000) - board(1_500), Span::from_ns(-500));
    }

    #[test]
    fn arithmetic_saturates_at_the_ends_of_the_range() {
        assert_eq!(Instant::<Board>::MAX + Span::from_ns(1), Instant::MAX);
        assert_eq!(Instant::<Board>::MIN - Span::from_ns(1), Instant::MIN);
        assert_eq!(Instant::<Board>::MAX - Instant::MIN, Span::MAX);
        assert_eq!(Instant::<Board>::MIN - Instant::MAX, Span::MIN);
        assert_eq!(Instant::<Board>::MAX.translate::<Host>(Span::MAX), Instant::MAX);
    }

    #[test]
    fn checked_arithmetic_says_when_it_does_not_fit() {
        assert_eq!(Instant::<Board>::MAX.checked_add(Span::from_ns(1)), None);
        assert_eq!(Instant::<Board>::MAX.checked_since(Instant::MIN), None);
        assert_eq!(board(7).checked_since(board(5)), Some(Span::from_ns(2)));
    }

    #[test]
    fn an_instant_is_one_machine_word_and_shareable_between_threads() {
        fn shareable<T: Send + Sync + Copy>() {}
        struct NotSend(#[allow(dead_code)] *const u8);
        shareable::<Instant<NotSend>>();
        assert_eq!(size_of::<Instant<Board>>(), 8);
    }
}
