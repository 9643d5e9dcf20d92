//! The vocabulary: one exchange, what is estimated from it, and why one is rejected.

use core::fmt;

use noctule_timebase::{Instant, Span};

/// Marker of the clock of the side that asks and estimates.
pub enum Local {}

/// Marker of the clock of the side that answers.
pub enum Remote {}

/// One request and its reply.
///
/// In real time the four stamped events happen in this order, which is all a proof needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request leaves.
    pub t1: Instant<Local>,
    /// The request arrives.
    pub t2: Instant<Remote>,
    /// The reply leaves.
    pub t3: Instant<Remote>,
    /// The reply arrives.
    pub t4: Instant<Local>,
}

/// Stamps must lie within plus or minus this many nanoseconds (146 years), so that the difference
/// of any two fits.
pub(crate) const STAMP_LIMIT_NS: i64 = 1 << 62;

impl Exchange {
    /// An exchange from four stamps in nanoseconds of the clock that took each.
    pub const fn from_ns(t1_ns: i64, t2_ns: i64, t3_ns: i64, t4_ns: i64) -> Exchange {
        Exchange {
            t1: Instant::from_ns(t1_ns),
            t2: Instant::from_ns(t2_ns),
            t3: Instant::from_ns(t3_ns),
            t4: Instant::from_ns(t4_ns),
        }
    }

    /// The largest offset that causality allows: the request cannot arrive before it left.
    pub fn offset_at_most(&self) -> Span {
        Span::from_ns(self.t2.ns().saturating_sub(self.t1.ns()))
    }

    /// The smallest offset that causality allows: the reply cannot arrive before it left.
    pub fn offset_at_least(&self) -> Span {
        Span::from_ns(self.t3.ns().saturating_sub(self.t4.ns()))
    }

    /// Time spent on the way, both directions together: the remote side's own time is taken out.
    pub fn round_trip(&self) -> Span {
        (self.t4 - self.t1) - (self.t3 - self.t2)
    }

    /// The offset if both directions took equally long, rounded towards minus infinity.
    pub fn midpoint(&self) -> Span {
        let least_ns = self.offset_at_least().ns();
        // Half of a non-negative difference cannot overflow where the sum could.
        Span::from_ns(least_ns.saturating_add(self.offset_at_most().ns().saturating_sub(least_ns) >> 1))
    }

    /// Checks what needs no memory: the range of the stamps and their order on each clock.
    pub(crate) fn check(&self) -> Result<(), Rejection> {
        let stamps = [self.t1.ns(), self.t2.ns(), self.t3.ns(), self.t4.ns()];
        if stamps.iter().any(|ns| !(-STAMP_LIMIT_NS < *ns && *ns < STAMP_LIMIT_NS)) {
            return Err(Rejection::OutOfRange);
        }
        if self.t4 < self.t1 || self.t3 < self.t2 {
            return Err(Rejection::ClockWentBack);
        }
        Ok(())
    }
}

/// A relative drift: how much faster the remote clock runs than the local one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift {
    /// Parts per 2^46: with offsets counted in 2^-16 ns and time in 2^30 ns this is the filter's own
    /// unit, and one part is 1.4e-8 ppm.
    per_2_46: i64,
}

impl Drift {
    /// From parts per 2^46.
    pub(crate) const fn from_2_46(per_2_46: i64) -> Drift {
        Drift { per_2_46 }
    }

    /// In ppm.
    pub fn ppm(self) -> f64 {
        self.per_2_46 as f64 * (1e6 / (1u64 << 46) as f64)
    }

    /// In parts per 2^46, exactly.
    pub const fn per_2_46(self) -> i64 {
        self.per_2_46
    }
}

/// The estimate of a clock at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Remote minus local.
    pub offset: Span,
    /// Relative drift; zero where the estimator has none.
    pub drift: Drift,
    /// Proven: the true offset is within plus or minus this of `offset`. `None` where nothing is
    /// proven, which includes the time between a contradiction and the next agreement.
    pub bound: Option<Span>,
    /// The estimate's own standard error if the least delays of both directions are equal. Not a
    /// bound. `None` where the estimator has no idea of its error.
    pub sigma: Option<Span>,
    /// How far the estimator has come.
    pub state: State,
}

/// How far an estimator has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Usable, but drift is not settled yet.
    Acquiring,
    /// Settled.
    Locked,
    /// The last exchange contradicts the estimate: one of the clocks has probably been stepped.
    Stepped,
    /// The last exchange is so old that the estimate is only an extrapolation.
    Stale,
}

impl State {
    /// As in the vectors and in the C twin: 0 acquiring, 1 locked, 2 stepped, 3 stale.
    pub const fn code(self) -> i8 {
        match self {
            State::Acquiring => 0,
            State::Locked => 1,
            State::Stepped => 2,
            State::Stale => 3,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Acquiring => "acquiring",
            State::Locked => "locked",
            State::Stepped => "stepped",
            State::Stale => "stale",
        })
    }
}

/// Why an exchange was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A stamp is 146 years or more from its clock's origin.
    OutOfRange,
    /// The later stamp of one clock is the earlier reading.
    ClockWentBack,
    /// The round trip, less the known wire time, is negative: causality forbids it.
    NegativeRoundTrip,
    /// The reply arrived before one that was already used.
    OutOfOrder,
    /// The round trip is too long for this estimator (a gate of the autopilot filter).
    RoundTripTooLong,
    /// The exchange disagrees with the estimate; whether it or the estimate is wrong is not yet
    /// known.
    Contradiction,
}

impl Rejection {
    /// As in the vectors and in the C twin, where 0 is "used": −1 to −6 in the order of the variants.
    pub const fn code(self) -> i8 {
        match self {
            Rejection::OutOfRange => -1,
            Rejection::ClockWentBack => -2,
            Rejection::NegativeRoundTrip => -3,
            Rejection::OutOfOrder => -4,
            Rejection::RoundTripTooLong => -5,
            Rejection::Contradiction => -6,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejection::OutOfRange => "a stamp is 146 years or more from the origin of its clock",
            Rejection::ClockWentBack => "a clock went back within the exchange",
            Rejection::NegativeRoundTrip => "the round trip is shorter than the known wire time, or negative",
            Rejection::OutOfOrder => "the reply arrived before one already used",
            Rejection::RoundTripTooLong => "the round trip is too long for this filter",
            Rejection::Contradiction => "the exchange contradicts the estimate",
        })
    }
}

impl core::error::Error for Rejection {}

/// How many exchanges were used, and how many were not, by reason. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Used.
    pub accepted: u32,
    /// [`Rejection::OutOfRange`].
    pub out_of_range: u32,
    /// [`Rejection::ClockWentBack`].
    pub clock_went_back: u32,
    /// [`Rejection::NegativeRoundTrip`].
    pub negative_round_trip: u32,
    /// [`Rejection::OutOfOrder`].
    pub out_of_order: u32,
    /// [`Rejection::RoundTripTooLong`].
    pub round_trip_too_long: u32,
    /// [`Rejection::Contradiction`].
    pub contradiction: u32,
    /// Times the estimator gave up its estimate and started again from what it then saw.
    pub relocks: u32,
}

impl Counters {
    /// All that were not used.
    pub fn rejected(&self) -> u32 {
        [
            self.out_of_range,
            self.clock_went_back,
            self.negative_round_trip,
            self.out_of_order,
            self.round_trip_too_long,
            self.contradiction,
        ]
        .into_iter()
        .fold(0, u32::saturating_add)
    }

    /// Counts one verdict and hands it on.
    pub(crate) fn count(&mut self, verdict: Result<(), Rejection>) -> Result<(), Rejection> {
        let counter = match verdict {
            Ok(()) => &mut self.accepted,
            Err(Rejection::OutOfRange) => &mut self.out_of_range,
            Err(Rejection::ClockWentBack) => &mut self.clock_went_back,
            Err(Rejection::NegativeRoundTrip) => &mut self.negative_round_trip,
            Err(Rejection::OutOfOrder) => &mut self.out_of_order,
            Err(Rejection::RoundTripTooLong) => &mut self.round_trip_too_long,
            Err(Rejection::Contradiction) => &mut self.contradiction,
        };
        *counter = counter.saturating_add(1);
        verdict
    }
}

/// Turns exchanges into knowledge of the remote clock.
///
/// Feed every completed exchange to [`handle_exchange`](Estimator::handle_exchange) in the order in
/// which the replies arrived; ask [`estimate`](Estimator::estimate) as often as you like.
pub trait Estimator {
    /// Takes in one exchange.
    ///
    /// # Errors
    /// Says why the exchange was not used. The estimator stays usable.
    fn handle_exchange(&mut self, exchange: &Exchange) -> Result<(), Rejection>;

    /// The estimate at local time `now`, or `None` before the first usable exchange.
    fn estimate(&self, now: Instant<Local>) -> Option<Estimate>;

    /// Counters of the exchanges so far.
    fn counters(&self) -> Counters;
}
