//! The companion computer of seed and simulation: a camera that sends poses late, and a node that asks how
//! old inertial samples are when they arrive.
//!
//! It is what a latency test node does over ROS: publish odometry at a fixed rate, subscribe to inertial
//! samples, note when each was measured and when it came. The gateway may live in the same process.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use mavlink::dialects::common::ODOMETRY_DATA;
use noctule::formats::encode_cdr;
use noctule::{Format, Node, Publisher, Sample, Subscriber};
use noctule_flight::sensors::Odometry;
use noctule_flight::{Camera, CameraModel, Trajectory};
use noctule_gateway::mavlink::ros::{self, Time};
use noctule_gateway::names::{bus_topic, bus_type};
use noctule_local_clock::{Raw, now};
use noctule_sys::clock::three_clocks;
use noctule_timebase::{Instant, Span};
use serde::Serialize;

use crate::messages::pose_message;
use crate::protocol::{IMU_TOPIC, IMU_TYPE, ODOMETRY_TOPIC, ODOMETRY_TYPE};
use crate::simulator::{path, quantile};

/// Pictures whose pose is being worked out.
const PICTURES_MAX: usize = 1024;
/// Ages that are kept; an hour at 200 Hz.
const AGES_MAX: usize = 720_000;

/// Which topics the gateway has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topics {
    /// PX4's, over DDS-XRCE.
    Px4,
    /// MAVROS's, over MAVLink.
    Mavros,
}

/// Configuration of a companion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompanionConfig {
    /// Topics of samples and poses.
    pub topics: Topics,
    /// Poses a second.
    pub pose_hz: u32,
    /// Delay from a picture to its pose.
    pub pipeline: Span,
    /// Decides the camera's errors.
    pub seed: u64,
    /// Time at the beginning that does not count.
    pub warm_up: Span,
    /// How long it runs, warm-up included.
    pub duration: Span,
}

/// The result.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CompanionReport {
    /// Poses published.
    pub poses: u64,
    /// Inertial samples received.
    pub imu_received: u64,
    /// Inertial samples missing by their numbers on the bus.
    pub imu_missed: u64,
    /// Ages of inertial samples: median, or null.
    pub age_p50_ns: Option<i64>,
    /// 99 % are at most as old.
    pub age_p99_ns: Option<i64>,
    /// The oldest.
    pub age_max_ns: Option<i64>,
    /// Median of the proven bounds; null where nothing was proven.
    pub bound_p50_ns: Option<i64>,
    /// Samples whose age had no proven bound.
    pub without_bound: u64,
}

/// A companion on a node.
pub struct Companion {
    config: CompanionConfig,
    node: Arc<Node>,
    poses: Publisher,
    imu: Subscriber,
    camera: Camera,
    path: Trajectory,
    pictures: VecDeque<(Instant<Raw>, Odometry)>,
    ages_ns: Vec<i64>,
    bounds_ns: Vec<i64>,
    report: CompanionReport,
}

impl Companion {
    /// Opens its topics.
    ///
    /// # Errors
    ///
    /// A topic that cannot be had.
    pub fn new(config: CompanionConfig, node: &Arc<Node>) -> Result<Companion, noctule::NodeError> {
        let poses = match config.topics {
            Topics::Px4 => (bus_topic(ODOMETRY_TOPIC), bus_type(ODOMETRY_TYPE)),
            Topics::Mavros => ("/mavros/odometry/out".into(), "nav_msgs/msg/Odometry".into()),
        };
        let imu = match config.topics {
            Topics::Px4 => (bus_topic(IMU_TOPIC), bus_type(IMU_TYPE)),
            Topics::Mavros => ("/mavros/imu/data_raw".into(), "sensor_msgs/msg/Imu".into()),
        };
        let poses = node.publisher(&poses.0).type_name(&poses.1, 0).format(Format::Cdr).open()?;
        let imu = node.subscriber(&imu.0).type_name(&imu.1, 0).formats(&[Format::Cdr]).open()?;
        Ok(Companion {
            node: Arc::clone(node),
            poses,
            imu,
            camera: Camera::new(CameraModel::INDOORS, config.seed),
            path: path(),
            pictures: VecDeque::new(),
            ages_ns: Vec::new(),
            bounds_ns: Vec::new(),
            report: CompanionReport::default(),
            config,
        })
    }

    /// Runs until the time is over, or `stop` says so.
    ///
    /// # Errors
    ///
    /// A topic that fails.
    pub fn run(mut self, stop: &dyn Fn() -> bool) -> Result<CompanionReport, Box<dyn Error>> {
        let interval = Span::from_ns(1_000_000_000 / i64::from(self.config.pose_hz.max(1)));
        let start = now();
        let mut due = start + interval;
        while now() - start < self.config.duration && !stop() {
            while now() >= due {
                let pose = self.camera.pose(&self.path, due.translate(Span::ZERO), Instant::from_ns(0));
                if self.pictures.len() < PICTURES_MAX {
                    self.pictures.push_back((due, pose));
                }
                due += interval;
            }
            while let Some((taken, pose)) = self.pictures.front().copied()
                && now() - taken >= self.config.pipeline
            {
                self.pictures.pop_front();
                self.publish(taken, &pose)?;
            }
            let ready = self.pictures.front().map_or(due, |(taken, _)| *taken + self.config.pipeline);
            let wait = Duration::from_nanos((ready.min(due) - now()).ns().max(0) as u64);
            if let Some(sample) = self.imu.receive(Some(wait))? {
                let counts = now() - start >= self.config.warm_up;
                self.take(&sample, counts);
            }
        }
        Ok(self.finish())
    }

    /// Publishes a pose that was true at `taken`.
    fn publish(&mut self, taken: Instant<Raw>, pose: &Odometry) -> Result<(), Box<dyn Error>> {
        let sent = now();
        // ROS counts on the wall clock.
        let sent_ns = three_clocks().realtime_ns;
        let taken_ns = sent_ns - (sent - taken).ns();
        let mut bytes = Vec::new();
        match self.config.topics {
            Topics::Px4 => {
                let message = pose_message(pose, (taken_ns / 1_000) as u64, (sent_ns / 1_000) as u64);
                encode_cdr(&message, &mut bytes)?;
            }
            Topics::Mavros => encode_cdr(&ros_odometry(pose, Time::from_ns(taken_ns)), &mut bytes)?,
        }
        let source = self.node.now() - (sent - taken);
        self.poses.publish_at(&bytes, source)?;
        self.report.poses += 1;
        Ok(())
    }

    fn take(&mut self, sample: &Sample, counts: bool) {
        self.report.imu_received += 1;
        self.report.imu_missed += sample.info().missed;
        let (true, Some(age)) = (counts && self.ages_ns.len() < AGES_MAX, sample.age()) else { return };
        self.ages_ns.push(age.span.ns());
        match age.bound {
            Some(bound) => self.bounds_ns.push(bound.ns()),
            None => self.report.without_bound += 1,
        }
    }

    fn finish(mut self) -> CompanionReport {
        self.ages_ns.sort_unstable();
        self.bounds_ns.sort_unstable();
        CompanionReport {
            age_p50_ns: quantile(&self.ages_ns, 0.5),
            age_p99_ns: quantile(&self.ages_ns, 0.99),
            age_max_ns: self.ages_ns.last().copied(),
            bound_p50_ns: quantile(&self.bounds_ns, 0.5),
            ..self.report
        }
    }
}

/// The pose in ROS's frames.
fn ros_odometry(pose: &Odometry, stamp: Time) -> ros::Odometry {
    let q = pose.attitude.quaternion();
    let mut odometry = ros::odometry_from_mavlink(
        &ODOMETRY_DATA {
            x: pose.position_m.x as f32,
            y: pose.position_m.y as f32,
            z: pose.position_m.z as f32,
            q: [q.w, q.i, q.j, q.k].map(|value| value as f32),
            ..ODOMETRY_DATA::default()
        },
        stamp,
    );
    for axis in 0..3 {
        // On the diagonal of six by six.
        odometry.pose.covariance[axis * 7] = pose.position_std_m.powi(2);
        odometry.pose.covariance[(axis + 3) * 7] = pose.attitude_std_rad.powi(2);
    }
    odometry
}
