//! How old is a sample that came from another network, and how far is that known?
//!
//! DDS and ROS 2's Zenoh carry a source time stamp with each sample: the time of day at its writer. Nothing there says how well
//! the writer's clock agrees with ours, so the bound is unknown, except where the writer runs on this host: then it is the
//! same clock, and what remains is how well the time of day and the node's clock are read together, and how much
//! the former was slewed since.

use noctule::SourceTime;
use noctule_sys::clock::three_clocks;
use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

/// A stamp this far ahead of now, or this far behind on a topic without history, is none: a clock that was never set.
const PLAUSIBLE: Span = Span::from_s(10);
/// A history may be this old.
const PLAUSIBLE_HISTORY: Span = Span::from_s(366 * 86_400);
/// The kernel slews the time of day by no more than this, in ppm (adjtimex(2)).
const SLEW_PPM: i64 = 500;
/// A stamp cut to the fractions that RTPS counts, or to microseconds by its writer.
const RESOLUTION: Span = Span::from_us(1);

/// The node that stamped what a route received last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamping {
    /// No valid stamp: samples are as old as their arrival, or older.
    #[default]
    Arrival,
    /// The writer's clock, bound unknown.
    Writer,
    /// This host's clock, by which the writer stamps, too.
    ThisHost(Span),
    /// The clock of the gateway that sent it, which is known from an exchange with it.
    OtherGateway(Span),
}

impl Stamping {
    /// For people.
    pub fn describe(self) -> String {
        match self {
            Stamping::Arrival => "ages from arrival".to_owned(),
            Stamping::Writer => "stamped by the writer's clock, bound unknown".to_owned(),
            Stamping::ThisHost(bound) => {
                format!("stamped by this host's clock, proven within {}", micros(bound))
            }
            Stamping::OtherGateway(bound) => {
                format!("stamped at the publisher's site, proven within {}", micros(bound))
            }
        }
    }
}

/// In whole microseconds, for people.
fn micros(bound: Span) -> String {
    format!("{:.0} us", (bound.ns() as f64 / 1e3).ceil())
}

/// Readings of both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The time of day in nanoseconds.
    pub wall_ns: i64,
    /// The node's clock.
    pub node: Instant<Local>,
    /// Error of the two being read at one moment.
    pub error: Span,
}

impl Now {
    /// Reads both clocks.
    pub fn read(node: &noctule::Node) -> Now {
        let before = node.now();
        let clocks = three_clocks();
        let after = node.now();
        Now { wall_ns: clocks.realtime_ns, node: after, error: after - before }
    }

    /// When a sample was written, by its source time stamp in the other network.
    pub fn source(
        &self,
        stamp_ns: Option<i64>,
        has_history: bool,
        is_this_host: bool,
    ) -> (SourceTime, Stamping) {
        let oldest = if has_history { PLAUSIBLE_HISTORY } else { PLAUSIBLE };
        let age = stamp_ns.and_then(|stamp| self.wall_ns.checked_sub(stamp)).map(Span::from_ns);
        let Some(age) = age.filter(|age| *age <= oldest && *age >= Span::ZERO - PLAUSIBLE) else {
            return (SourceTime { time: self.node, bound: None, sigma: None }, Stamping::Arrival);
        };
        let slewed = age.abs().scale(SLEW_PPM, 1_000_000).unwrap_or(Span::ZERO);
        let bound = is_this_host.then_some(self.error + slewed + RESOLUTION);
        let stamping = bound.map_or(Stamping::Writer, Stamping::ThisHost);
        (SourceTime { time: self.node - age, bound, sigma: None }, stamping)
    }

    /// The time of day at `source` of the node's clock, for the other network's source time stamp.
    pub fn stamp_ns(&self, source: Instant<Local>) -> i64 {
        self.wall_ns.saturating_sub((self.node - source).ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Now {
        Now {
            wall_ns: 1_700_000_000_000_000_000,
            node: Instant::from_ns(500_000_000_000),
            error: Span::from_us(2),
        }
    }

    fn age(stamp_ns: Option<i64>, has_history: bool) -> Span {
        now().node - now().source(stamp_ns, has_history, false).0.time
    }

    #[test]
    fn a_stamp_is_translated_and_its_bound_is_unknown() {
        let (source, stamping) = now().source(Some(now().wall_ns - 3_000_000), false, false);
        assert_eq!((source.time, source.bound), (now().node - Span::from_ms(3), None));
        assert_eq!(stamping, Stamping::Writer);
        assert_eq!(now().stamp_ns(source.time), now().wall_ns - 3_000_000);
    }

    #[test]
    fn on_this_host_what_reading_and_slewing_cost_is_the_bound() {
        let (source, stamping) = now().source(Some(now().wall_ns - 10_000_000), false, true);
        // 2 us of reading, 500 ppm of 10 ms, 1 us of resolution.
        assert_eq!(source.bound, Some(Span::from_us(8)));
        assert_eq!(stamping.describe(), "stamped by this host's clock, proven within 8 us");
    }

    #[test]
    fn a_stamp_of_a_clock_that_was_never_set_is_invalid() {
        assert_eq!(age(Some(1_000), false), Span::ZERO);
        assert_eq!(age(Some(now().wall_ns + 11_000_000_000), true), Span::ZERO);
        assert_eq!(age(None, false), Span::ZERO);
        assert_eq!(age(Some(i64::MIN), true), Span::ZERO);
    }

    #[test]
    fn a_history_may_be_old() {
        let hour_ns = 3_600_000_000_000;
        assert_eq!(age(Some(now().wall_ns - hour_ns), false), Span::ZERO);
        assert_eq!(age(Some(now().wall_ns - hour_ns), true), Span::from_s(3600));
    }
}
