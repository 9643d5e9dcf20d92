//! Protocol of the controller: DDS-XRCE by the C client that boards run, or MAVLink.

use mavlink::dialects::common::{HIGHRES_IMU_DATA, HighresImuUpdatedFlags, MavMessage, ODOMETRY_DATA};
use noctule_board::{Client, ClientConfig, Endpoint, Refusal};
use noctule_flight::fusion::Companion;
use noctule_flight::sensors::Odometry;
use noctule_flight::{Board, ImuSample, Vector};
use noctule_formats::{decode_cdr, encode_cdr};
use noctule_gateway::mavlink::endpoint as mavlink_endpoint;
use noctule_local_clock::Raw;
use noctule_sys::clock::three_clocks;
use noctule_time_sync::Exchange;
use noctule_timebase::{Instant, Span};

use crate::messages::{SensorCombined, VehicleOdometry, attitude};

/// Where inertial samples go, as DDS calls it.
pub const IMU_TOPIC: &str = "rt/fmu/out/sensor_combined";
/// Their type.
pub const IMU_TYPE: &str = "px4_msgs::msg::dds_::SensorCombined_";
/// Where poses come from, as DDS calls it.
pub const ODOMETRY_TOPIC: &str = "rt/fmu/in/vehicle_visual_odometry";
/// Their type.
pub const ODOMETRY_TYPE: &str = "px4_msgs::msg::dds_::VehicleOdometry_";

/// Endpoints of the client, by number.
const IMU: usize = 0;
const ODOMETRY: usize = 1;
/// Bytes of the encapsulation header that XRCE leaves out.
const HEADER_BYTES: usize = 4;

/// The clock on which a companion stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompanionClock {
    /// The wall clock: what agents of DDS-XRCE answer with, and what ROS stamps with.
    Wall,
    /// The raw clock: what our MAVLink endpoint answers with.
    Raw,
}

impl CompanionClock {
    /// When it showed `stamp`, by what the two clocks of this machine show now.
    pub(crate) fn moment_of(self, stamp: Instant<Companion>) -> Instant<Raw> {
        match self {
            CompanionClock::Raw => stamp.translate(Span::ZERO),
            CompanionClock::Wall => {
                let clocks = three_clocks();
                let raw_ns = clocks.raw_before_ns.midpoint(clocks.raw_after_ns);
                Instant::from_ns(raw_ns.saturating_sub(clocks.realtime_ns.saturating_sub(stamp.ns())))
            }
        }
    }
}

/// A pose that came in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// The pose; its time is left open.
    pub pose: Odometry,
    /// When it was true, by the companion's clock.
    pub stamp: Instant<Companion>,
    /// Time of arrival.
    pub arrived: Instant<Board>,
}

/// Counts of messages sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Traffic {
    /// Inertial samples handed to the line.
    pub imu_sent: u64,
    /// Inertial samples that the protocol would not take: no connection, or no room.
    pub imu_refused: u64,
    /// Poses that came in.
    pub poses: u64,
    /// Samples that did not decode.
    pub malformed: u64,
    /// Messages of the other side known to be lost.
    pub lost: u64,
    /// Exchanges of clocks.
    pub exchanges: u64,
}

/// One protocol, sans-IO. Drain order after any call: poses and exchanges, then
/// [`Protocol::poll_transmit`] until `false`.
pub trait Protocol {
    /// Its name: `xrce`, `mavlink`.
    fn name(&self) -> &'static str;
    /// The clock on which poses are stamped.
    fn companion_clock(&self) -> CompanionClock;
    /// Bytes or a datagram that came off the line.
    fn handle_bytes(&mut self, bytes: &[u8], now: Instant<Board>);
    /// Sends an inertial sample.
    fn publish(&mut self, sample: &ImuSample);
    /// Appends the next frame or datagram to `out`.
    fn poll_transmit(&mut self, now: Instant<Board>, out: &mut Vec<u8>) -> bool;
    /// When to poll next if nothing arrives before.
    fn next_timeout(&self, now: Instant<Board>) -> Instant<Board>;
    /// The next pose.
    fn poll_pose(&mut self) -> Option<Pose>;
    /// The next exchange of clocks: local is the controller's, remote the companion's.
    fn poll_exchange(&mut self) -> Option<Exchange>;
    /// Counts of messages sent and received.
    fn traffic(&self) -> Traffic;
}

/// DDS-XRCE.
#[derive(Debug)]
pub struct Xrce {
    client: Client,
    is_datagram: bool,
    traffic: Traffic,
}

impl Xrce {
    /// A client named `key` on a serial line or over datagrams; clocks are exchanged ten times a second.
    ///
    /// # Errors
    ///
    /// A key of zero.
    pub fn new(key: u32, is_datagram: bool) -> Result<Xrce, Refusal> {
        let endpoint = |topic: &str, type_name: &str, subscribes| Endpoint {
            topic: topic.to_owned(),
            type_name: type_name.to_owned(),
            subscribes,
            reliable: false,
            stamped: !subscribes,
        };
        let client = Client::new(&ClientConfig {
            key,
            line: if is_datagram { noctule_board::Line::Datagram } else { noctule_board::Line::Serial },
            domain: 0,
            endpoints: vec![
                endpoint(IMU_TOPIC, IMU_TYPE, false),
                endpoint(ODOMETRY_TOPIC, ODOMETRY_TYPE, true),
            ],
            message_bytes: 512,
            sync_interval_ns: Span::from_ms(100).ns(),
        })?;
        Ok(Xrce { client, is_datagram, traffic: Traffic::default() })
    }
}

impl Protocol for Xrce {
    fn name(&self) -> &'static str {
        "xrce"
    }

    fn companion_clock(&self) -> CompanionClock {
        CompanionClock::Wall
    }

    fn handle_bytes(&mut self, bytes: &[u8], now: Instant<Board>) {
        if self.is_datagram {
            self.client.handle_datagram(bytes, now.ns());
        } else {
            self.client.handle_bytes(bytes, now.ns());
        }
    }

    fn publish(&mut self, sample: &ImuSample) {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + 48);
        // Encoding plain numbers cannot fail.
        let _ = encode_cdr(&SensorCombined::new(sample), &mut bytes);
        match self.client.publish(IMU, &bytes[HEADER_BYTES..], sample.time.ns()) {
            Ok(()) => self.traffic.imu_sent += 1,
            Err(_) => self.traffic.imu_refused += 1,
        }
    }

    fn poll_transmit(&mut self, now: Instant<Board>, out: &mut Vec<u8>) -> bool {
        let Some(frame) = self.client.poll_transmit(now.ns()) else { return false };
        out.extend_from_slice(frame);
        true
    }

    fn next_timeout(&self, now: Instant<Board>) -> Instant<Board> {
        Instant::from_ns(self.client.next_timeout_ns(now.ns()))
    }

    fn poll_pose(&mut self) -> Option<Pose> {
        loop {
            let sample = self.client.poll_sample()?;
            let little_endian = [0, 1, 0, 0];
            let bytes = [&little_endian, &sample.bytes[..]].concat();
            let read = (sample.endpoint == ODOMETRY)
                .then(|| decode_cdr::<VehicleOdometry>(&bytes))
                .and_then(Result::ok);
            let Some(message) = read else {
                self.traffic.malformed += 1;
                continue;
            };
            self.traffic.poses += 1;
            return Some(Pose {
                pose: message.pose(),
                stamp: from_us(message.timestamp_sample),
                arrived: Instant::from_ns(sample.arrived_ns),
            });
        }
    }

    fn poll_exchange(&mut self) -> Option<Exchange> {
        self.client.poll_exchange()
    }

    fn traffic(&self) -> Traffic {
        let counts = self.client.counts();
        Traffic {
            lost: u64::from(counts.lost_messages),
            exchanges: u64::from(counts.exchanges),
            ..self.traffic
        }
    }
}

/// MAVLink.
#[derive(Debug)]
pub struct Mavlink {
    endpoint: mavlink_endpoint::Endpoint,
    traffic: Traffic,
}

impl Mavlink {
    /// The autopilot of vehicle 1.
    pub fn new(now: Instant<Board>) -> Mavlink {
        let identity = mavlink_endpoint::Identity::AUTOPILOT;
        let now = now.translate(Span::ZERO);
        Mavlink {
            endpoint: mavlink_endpoint::Endpoint::new(identity, None, now),
            traffic: Traffic::default(),
        }
    }
}

impl Protocol for Mavlink {
    fn name(&self) -> &'static str {
        "mavlink"
    }

    fn companion_clock(&self) -> CompanionClock {
        CompanionClock::Raw
    }

    fn handle_bytes(&mut self, bytes: &[u8], now: Instant<Board>) {
        let now = now.translate(Span::ZERO);
        self.endpoint.handle_bytes(bytes, now);
        self.endpoint.handle_timeout(now);
    }

    fn publish(&mut self, sample: &ImuSample) {
        if self.endpoint.peer().is_none() {
            self.traffic.imu_refused += 1;
            return;
        }
        let (gyro, accel) = (sample.angular_rate_rad_s, sample.specific_force_m_s2);
        self.endpoint.send(MavMessage::HIGHRES_IMU(HIGHRES_IMU_DATA {
            time_usec: (sample.time.ns() / 1_000) as u64,
            xacc: accel.x as f32,
            yacc: accel.y as f32,
            zacc: accel.z as f32,
            xgyro: gyro.x as f32,
            ygyro: gyro.y as f32,
            zgyro: gyro.z as f32,
            fields_updated: HighresImuUpdatedFlags::from_bits_truncate(0b11_1111),
            ..HIGHRES_IMU_DATA::default()
        }));
        self.traffic.imu_sent += 1;
    }

    fn poll_transmit(&mut self, now: Instant<Board>, out: &mut Vec<u8>) -> bool {
        self.endpoint.poll_transmit(now.translate(Span::ZERO), out)
    }

    fn next_timeout(&self, _: Instant<Board>) -> Instant<Board> {
        self.endpoint.poll_timeout().translate(Span::ZERO)
    }

    fn poll_pose(&mut self) -> Option<Pose> {
        loop {
            let mavlink_endpoint::Event::Message(message, arrived) = self.endpoint.poll_event()? else {
                continue;
            };
            if let MavMessage::ODOMETRY(odometry) = *message {
                self.traffic.poses += 1;
                return Some(Pose {
                    pose: pose_of(&odometry),
                    stamp: from_us(odometry.time_usec),
                    arrived: arrived.translate(Span::ZERO),
                });
            }
        }
    }

    fn poll_exchange(&mut self) -> Option<Exchange> {
        self.endpoint.poll_exchange()
    }

    fn traffic(&self) -> Traffic {
        let counters = self.endpoint.counters().0;
        Traffic {
            lost: counters.missed,
            malformed: counters.malformed,
            exchanges: counters.exchanges,
            ..self.traffic
        }
    }
}

/// The pose of an ODOMETRY whose world frame is the controller's own.
fn pose_of(odometry: &ODOMETRY_DATA) -> Odometry {
    let [x, y, z] = [odometry.x, odometry.y, odometry.z].map(f64::from);
    // The diagonal of an upper triangle of six rows: its 1st and 16th places.
    let variance = |at: usize, unknown: f64| {
        let value = f64::from(odometry.pose_covariance[at]);
        if value > 0.0 { value.sqrt() } else { unknown }
    };
    Odometry {
        time: Instant::from_ns(0),
        position_m: Vector::new(x, y, z),
        attitude: attitude(odometry.q),
        position_std_m: variance(0, 0.05),
        attitude_std_rad: variance(15, 0.02),
    }
}

/// A time in µs; one beyond the range of nanoseconds becomes the last of it.
fn from_us<C>(us: u64) -> Instant<C> {
    Instant::from_ns(i64::try_from(us).ok().and_then(|us| us.checked_mul(1_000)).unwrap_or(i64::MAX))
}
