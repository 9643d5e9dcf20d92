//! When was a sample of a client measured, and how far is that known?
//!
//! Four kinds of client, and what can be proven of each:
//!
//! - Ours sends the time of each sample by its own clock, and returns the fourth stamp of each clock
//!   exchange, so that this side estimates its clock: a proven bound.
//! - PX4 stamps in the agent's time of day, by its own estimate, and publishes that estimate with the round
//!   trip and the last observation it rests on. The observation is within half the round trip of the truth,
//!   and the estimate as far from the observation as the two differ: a proven bound, as long as the status is
//!   fresh.
//! - Others whose messages begin with a `std_msgs/Header` stamp in the time of day by whatever they know:
//!   accepted, bound unknown.
//! - All others: a sample is as old as its arrival, bound unknown, for it was there before.

use noctule::SourceTime;
use noctule_sys::clock::three_clocks;
use noctule_time_sync::{Bounded, BoundedConfig, Estimator, Exchange, Local as Asking};
use noctule_timebase::{Instant, Span};
use noctule_xrce::{ClientClock, Exchange as Stamps, Local, Sample};

/// A stamp in the time of day that is further from now than this is none: a clock that was never set.
const PLAUSIBLE: Span = Span::from_s(10);
/// Lifetime of PX4's estimate after its status: it is at most this old, plus its drift.
const STATUS_LIFETIME: Span = Span::from_s(3);
/// How fast two crystals drift apart at most, in ppm.
const DRIFT_PPM: i64 = 200;
/// PX4 counts microseconds, and cuts twice on the way.
const PX4_RESOLUTION: Span = Span::from_us(2);
/// Two clocks are read again as long as the readings are further apart, ...
const MOMENT_NARROW: Span = Span::from_us(1);
/// ... so often at most.
const MOMENTS_MAX: usize = 4;
/// PX4's `SOURCE_PROTOCOL_DDS`.
const PX4_BY_DDS: u8 = 2;

/// How the samples of a client are stamped, for the status line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamping {
    /// Dated by their arrival: nothing else is known.
    #[default]
    Arrival,
    /// Dated by the client, bound unknown.
    Client,
    /// Dated by the client, with a proven bound.
    Proven(Span),
}

/// The estimate of one client's clock.
#[derive(Clone, Debug)]
pub(crate) struct ClientTime {
    estimator: Bounded,
    exchanges: u64,
    px4: Option<Px4Status>,
    pub(crate) stamping: Stamping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Px4Status {
    at: Instant<Local>,
    error: Span,
}

/// How a type says when its messages were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamped {
    /// It does not, as far as is known here.
    Not,
    /// Seconds and nanoseconds at the start: `std_msgs/Header`.
    Header,
    /// Microseconds at the start.
    Px4,
    /// As `Px4`, and it tells how well the clock is known.
    Px4Timesync,
}

impl Stamped {
    /// By its DDS name.
    pub(crate) fn of_type(name: &str) -> Stamped {
        if let Some(name) = name.strip_prefix("px4_msgs::msg::dds_::") {
            return if name == "TimesyncStatus_" { Stamped::Px4Timesync } else { Stamped::Px4 };
        }
        if HEADED.binary_search(&name).is_ok() { Stamped::Header } else { Stamped::Not }
    }
}

/// Types of ROS 2's own interfaces that begin with a `std_msgs/Header`, in order.
const HEADED: &[&str] = &[
    "geometry_msgs::msg::dds_::AccelStamped_",
    "geometry_msgs::msg::dds_::PointStamped_",
    "geometry_msgs::msg::dds_::PoseStamped_",
    "geometry_msgs::msg::dds_::PoseWithCovarianceStamped_",
    "geometry_msgs::msg::dds_::QuaternionStamped_",
    "geometry_msgs::msg::dds_::TransformStamped_",
    "geometry_msgs::msg::dds_::TwistStamped_",
    "geometry_msgs::msg::dds_::TwistWithCovarianceStamped_",
    "geometry_msgs::msg::dds_::Vector3Stamped_",
    "geometry_msgs::msg::dds_::WrenchStamped_",
    "nav_msgs::msg::dds_::Odometry_",
    "nav_msgs::msg::dds_::Path_",
    "sensor_msgs::msg::dds_::BatteryState_",
    "sensor_msgs::msg::dds_::CameraInfo_",
    "sensor_msgs::msg::dds_::CompressedImage_",
    "sensor_msgs::msg::dds_::FluidPressure_",
    "sensor_msgs::msg::dds_::Illuminance_",
    "sensor_msgs::msg::dds_::Image_",
    "sensor_msgs::msg::dds_::Imu_",
    "sensor_msgs::msg::dds_::JointState_",
    "sensor_msgs::msg::dds_::Joy_",
    "sensor_msgs::msg::dds_::LaserScan_",
    "sensor_msgs::msg::dds_::MagneticField_",
    "sensor_msgs::msg::dds_::MultiDOFJointState_",
    "sensor_msgs::msg::dds_::NavSatFix_",
    "sensor_msgs::msg::dds_::PointCloud2_",
    "sensor_msgs::msg::dds_::PointCloud_",
    "sensor_msgs::msg::dds_::Range_",
    "sensor_msgs::msg::dds_::RelativeHumidity_",
    "sensor_msgs::msg::dds_::Temperature_",
    "sensor_msgs::msg::dds_::TimeReference_",
];

/// When a sample was measured, in the gateway's clock, and how far that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) at: Instant<Local>,
    pub(crate) bound: Option<Span>,
    pub(crate) sigma: Option<Span>,
}

impl ClientTime {
    /// `wire`: what an answer with stamps spends on the wire at least, each way.
    pub(crate) fn new(wire: Span) -> ClientTime {
        let config = BoundedConfig { wire_forward: wire, wire_back: wire, ..BoundedConfig::default() };
        ClientTime { estimator: Bounded::new(config), exchanges: 0, px4: None, stamping: Stamping::default() }
    }

    /// Takes a whole exchange of stamps.
    pub(crate) fn handle_exchange(&mut self, stamps: &Stamps) {
        let Stamps { t1, t2, t3, t4 } = stamps;
        let exchange = Exchange::from_ns(t1.ns(), t2.ns(), t3.ns(), t4.ns());
        // Why one does not count is in the estimator's counters.
        if self.estimator.handle_exchange(&exchange).is_ok() {
            self.exchanges += 1;
        }
    }

    /// When a sample was measured that arrived at `arrived`.
    pub(crate) fn source(
        &mut self,
        stamped: Stamped,
        sample: &Sample,
        measured: Option<Instant<ClientClock>>,
        arrived: Instant<Local>,
    ) -> Source {
        let source = measured.and_then(|at| self.own(at, arrived));
        let source = source.or_else(|| self.in_time_of_day(stamped, sample, arrived));
        let source = source.unwrap_or(Source { at: arrived, bound: None, sigma: None });
        self.stamping = match source {
            Source { bound: Some(bound), .. } => Stamping::Proven(bound),
            Source { at, .. } if at != arrived => Stamping::Client,
            _ => Stamping::Arrival,
        };
        source
    }

    /// By the client's own clock, which is known from exchanges.
    fn own(&self, measured: Instant<ClientClock>, arrived: Instant<Local>) -> Option<Source> {
        let now = Instant::<Asking>::from_ns(arrived.ns());
        let estimate = self.estimator.estimate(now)?;
        let at = measured.translate::<Local>(Span::ZERO - estimate.offset);
        Some(Source { at, bound: estimate.bound, sigma: estimate.sigma })
    }

    /// By a time of day in the message.
    fn in_time_of_day(
        &mut self,
        stamped: Stamped,
        sample: &Sample,
        arrived: Instant<Local>,
    ) -> Option<Source> {
        let wall_ns = match stamped {
            Stamped::Not => return None,
            Stamped::Header => {
                let (seconds, nanoseconds) = (number::<4>(sample, 0)?, number::<4>(sample, 4)?);
                i64::try_from(seconds).ok()? * 1_000_000_000 + i64::try_from(nanoseconds).ok()?
            }
            Stamped::Px4 | Stamped::Px4Timesync => {
                i64::try_from(number::<8>(sample, 0)?).ok()?.checked_mul(1000)?
            }
        };
        let clocks = three_clocks();
        let age = Span::from_ns(clocks.realtime_ns.checked_sub(wall_ns)?);
        let at = Instant::<Local>::from_ns(clocks.raw_before_ns).checked_add(Span::ZERO - age)?;
        if age.abs() > PLAUSIBLE {
            return None;
        }
        if stamped == Stamped::Px4Timesync {
            self.px4 = px4_status(sample, arrived).or(self.px4);
        }
        let px4 = self.px4.filter(|_| stamped != Stamped::Header);
        let bound = px4.and_then(|status| {
            let elapsed = arrived - status.at;
            let drift = elapsed.scale(DRIFT_PPM, 1_000_000)?;
            (elapsed <= STATUS_LIFETIME).then(|| status.error + drift + PX4_RESOLUTION)
        });
        Some(Source { at, bound, sigma: None })
    }
}

/// PX4's `TimesyncStatus`: u64 timestamp, u8 source protocol, u64 remote timestamp, i64 observed and
/// estimated offset, u32 round trip; all in microseconds.
fn px4_status(sample: &Sample, arrived: Instant<Local>) -> Option<Px4Status> {
    if *sample.body.get(8)? != PX4_BY_DDS {
        return None;
    }
    let (observed, estimated) = (number::<8>(sample, 24)? as i64, number::<8>(sample, 32)? as i64);
    let round_trip = i64::try_from(number::<4>(sample, 40)?).ok()?;
    let error = observed.checked_sub(estimated)?.checked_abs()?.checked_add(round_trip / 2 + 1)?;
    // More than a second is no estimate.
    (error < 1_000_000).then(|| Px4Status { at: arrived, error: Span::from_us(error) })
}

/// An unsigned number of `N` bytes at `at` of a sample.
fn number<const N: usize>(sample: &Sample, at: usize) -> Option<u64> {
    let bytes: [u8; N] = *sample.body.get(at..)?.first_chunk()?;
    let mut wide = [0; 8];
    if sample.is_little_endian {
        wide[..N].copy_from_slice(&bytes);
        return Some(u64::from_le_bytes(wide));
    }
    wide[8 - N..].copy_from_slice(&bytes);
    Some(u64::from_be_bytes(wide))
}

impl Source {
    /// In the clock of a node, by one moment of both clocks; what is not known of that moment is part of the bound.
    pub(crate) fn for_node(&self, moment: &Moment) -> SourceTime {
        let bound = self.bound.map(|bound| bound + moment.error);
        SourceTime { time: moment.node + (self.at - moment.here), bound, sigma: self.sigma }
    }
}

/// The readings of a node's clock and this gateway's at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) node: Instant<Asking>,
    pub(crate) here: Instant<Local>,
    /// How far from each other the two may have been read.
    pub(crate) error: Span,
}

impl Moment {
    /// Reads the node's clock between two readings of this one, again if the thread was preempted in between.
    pub(crate) fn read(node: impl Fn() -> Instant<Asking>, here: impl Fn() -> Instant<Local>) -> Moment {
        let mut narrowest: Option<Moment> = None;
        for _ in 0..MOMENTS_MAX {
            let (before, node, after) = (here(), node(), here());
            let error = after - before;
            if narrowest.is_none_or(|known| error < known.error) {
                narrowest = Some(Moment { node, here: before, error });
            }
            if error <= MOMENT_NARROW {
                break;
            }
        }
        // At least one was read.
        narrowest.unwrap_or_else(|| Moment { node: node(), here: here(), error: Span::from_s(1) })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn sample(body: Vec<u8>) -> Sample {
        Sample { body: body.into(), is_little_endian: true }
    }

    fn now() -> Instant<Local> {
        Instant::from_ns(noctule_sys::clock::raw_ns())
    }

    #[test]
    fn the_table_of_types_is_in_order() {
        assert!(HEADED.is_sorted());
        assert_eq!(Stamped::of_type("sensor_msgs::msg::dds_::Imu_"), Stamped::Header);
        assert_eq!(Stamped::of_type("std_msgs::msg::dds_::String_"), Stamped::Not);
    }

    #[test]
    fn a_thread_that_is_preempted_between_two_clocks_reads_them_again_or_widens_the_bound() {
        let reading = |steps_ns: &[i64]| {
            let (steps, at, time_ns) = (steps_ns.to_vec(), Cell::new(0), Cell::new(0));
            let tick = || {
                time_ns.set(time_ns.get() + steps.get(at.get()).copied().unwrap_or(20));
                at.set(at.get() + 1);
                time_ns.get()
            };
            // The node's clock is 1 s ahead.
            Moment::read(|| Instant::from_ns(tick() + 1_000_000_000), || Instant::from_ns(tick()))
        };
        let source = Source { at: Instant::from_ns(0), bound: Some(Span::ZERO), sigma: None };
        for (steps_ns, widest_ns) in [
            (&[20, 20, 20][..], 40),
            (&[20, 119_000, 20], 40),
            (&[20, 20, 119_000], 40),
            (&[20, 5_000, 20, 20, 9_000, 20, 20, 7_000, 20, 20, 20, 6_000], 5_020),
        ] {
            let SourceTime { time, bound, .. } = source.for_node(&reading(steps_ns));
            let (error, bound) = ((time - Instant::from_ns(1_000_000_000)).abs(), bound.unwrap());
            assert!(error <= bound && bound <= Span::from_ns(widest_ns), "{steps_ns:?}: {error} of {bound}");
        }
    }

    #[test]
    fn a_sample_without_a_stamp_is_as_old_as_its_arrival() {
        let mut client = ClientTime::new(Span::ZERO);
        let arrived = now();
        let source = client.source(Stamped::Not, &sample(vec![1; 20]), None, arrived);
        assert_eq!(source, Source { at: arrived, bound: None, sigma: None });
        assert_eq!(client.stamping, Stamping::Arrival);
    }

    #[test]
    fn the_stamp_of_a_header_is_valid_and_that_of_a_clock_that_was_never_set_is_not() {
        let mut client = ClientTime::new(Span::ZERO);
        let wall_ns = three_clocks().realtime_ns - 5_000_000;
        let mut body = ((wall_ns / 1_000_000_000) as u32).to_le_bytes().to_vec();
        body.extend(((wall_ns % 1_000_000_000) as u32).to_le_bytes());
        let arrived = now();
        let source = client.source(Stamped::Header, &sample(body), None, arrived);
        let age = arrived - source.at;
        assert!(age > Span::from_ms(4) && age < Span::from_s(5), "{age:?}");
        assert_eq!((source.bound, client.stamping), (None, Stamping::Client));
        let source = client.source(Stamped::Header, &sample(vec![1, 0, 0, 0, 0, 0, 0, 0]), None, arrived);
        assert_eq!((source.at, client.stamping), (arrived, Stamping::Arrival));
    }

    #[test]
    fn px4_proves_its_bound_by_its_timesync_status_and_loses_it_without() {
        let mut client = ClientTime::new(Span::ZERO);
        let stamp_us = (three_clocks().realtime_ns / 1000) as u64;
        let mut status = stamp_us.to_le_bytes().to_vec();
        status.extend([PX4_BY_DDS, 0, 0, 0, 0, 0, 0, 0]);
        status.extend([stamp_us, 1_000, 1_300].into_iter().flat_map(u64::to_le_bytes));
        status.extend(4_000u32.to_le_bytes());
        let arrived = now();
        let source = client.source(Stamped::Px4Timesync, &sample(status), None, arrived);
        // |1000 − 1300| + 4000 / 2 + 1, and 2 for the resolution.
        assert_eq!(source.bound, Some(Span::from_us(2_303)));
        let later = arrived + Span::from_s(4);
        let source = client.source(Stamped::Px4, &sample(stamp_us.to_le_bytes().to_vec()), None, later);
        assert_eq!(source.bound, None);
    }

    #[test]
    fn a_client_of_ours_is_placed_within_its_bound() {
        let mut client = ClientTime::new(Span::ZERO);
        // Its clock is 7 s ahead; each way takes 1 ms.
        for exchange in 0..20 {
            let t1 = Instant::from_ns(1_000_000_000 + exchange * 100_000_000);
            let there = t1 + Span::from_s(7) + Span::from_ms(1);
            let stamps = Stamps {
                t1,
                t2: Instant::from_ns(there.ns()),
                t3: Instant::from_ns(there.ns() + 50_000),
                t4: t1 + Span::from_ms(2) + Span::from_us(50),
            };
            client.handle_exchange(&stamps);
        }
        let arrived = Instant::from_ns(3_000_000_000);
        let measured = Instant::from_ns(9_990_000_000);
        let source = client.source(Stamped::Not, &sample(vec![]), Some(measured), arrived);
        let error = (source.at - Instant::from_ns(2_990_000_000)).abs();
        assert!(error <= source.bound.unwrap() && error < Span::from_us(100), "{source:?}");
        assert!(source.bound.unwrap() <= Span::from_us(1_200), "{source:?}");
    }
}
