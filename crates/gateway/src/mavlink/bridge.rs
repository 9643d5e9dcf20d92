//! An autopilot on the bus, as MAVROS would put it there.
//!
//! | topic | type | MAVLink |
//! |---|---|---|
//! | `/mavros/imu/data_raw` | `sensor_msgs/msg/Imu` | from HIGHRES_IMU, or RAW_IMU where that is all there is |
//! | `/mavros/local_position/odom` | `nav_msgs/msg/Odometry` | from ODOMETRY |
//! | `/mavros/vision_pose/pose` | `geometry_msgs/msg/PoseStamped` | to VISION_POSITION_ESTIMATE |
//! | `/mavros/odometry/out` | `nav_msgs/msg/Odometry` | to ODOMETRY |
//! | `/mavlink/in/NAME` | JSON | from messages of the user's own dialect |
//!
//! One thread reads the line, another writes what it receives from the topics; both sleep until there is something to do. Times of the
//! autopilot are translated by the bounded estimate, and ages carry its bound; a stamp in a ROS header is
//! the same moment on the wall clock.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use mavlink::dialects::common::MavMessage;
use mavlink::dialects::dynamic::{DynamicDialect, DynamicMessage};
use noctule::formats::{decode_cdr, encode_cdr};
use noctule::{
    Format, Node, NodeError, Publisher, Ready, Sample, SourceTime, Subscriber, Wait, WaitSet, Waker,
};
use noctule_sys::clock::{three_clocks, timespec};
use noctule_time_sync::{Estimate, Local, Remote};
use noctule_timebase::{Instant, Span};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use serde::Serialize;

use super::endpoint::{Endpoint, EndpointCounters, Event, Identity};
use super::frames::FrameCounters;
use super::ros::{self, Time};

/// A serial device that is not there is looked for this often.
const LOOK_AGAIN: Span = Span::from_ms(100);
/// Bytes read at once.
const READ_BYTES: usize = 4096;
/// Messages of the user's own dialect that may become topics.
const CUSTOM_TOPICS_MAX: usize = 256;
/// A header's stamp farther from now than this is invalid.
const STAMP_MAX: Span = Span::from_s(10);

/// Line to an autopilot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MavlinkLine {
    /// At a serial device of this speed.
    Serial(PathBuf, u32),
    /// It sends to this port of ours (14540 is PX4's for companions).
    Listen(u16),
    /// It listens at this address.
    Connect(SocketAddr),
}

/// Why an autopilot cannot be put on the bus.
#[derive(Debug, thiserror::Error)]
pub enum MavlinkError {
    /// No socket.
    #[error("MAVLink over UDP: {0}; another program may have the port")]
    Socket(io::Error),
    /// A topic that cannot be had.
    #[error(transparent)]
    Topic(#[from] NodeError),
    /// No thread.
    #[error("the system gives no more threads: {0}")]
    System(io::Error),
}

/// The status of an autopilot.
#[derive(Clone, Copy, Debug, Default)]
pub struct MavlinkStatus {
    /// Its system and component, while its frames arrive.
    pub peer: Option<(u8, u8)>,
    /// The estimate of its clock.
    pub clock: Option<Estimate>,
    /// The same by MAVROS's filter.
    pub mavros_clock: Option<Estimate>,
    /// Counters of messages and frames.
    pub counters: (EndpointCounters, FrameCounters),
}

/// So many bytes, and their sender where the line knows it.
type Came = (usize, Option<SocketAddr>);

/// Port of the MAVLink link: serial device or UDP socket.
#[derive(Debug)]
enum Port {
    Serial(File),
    Udp(UdpSocket),
}

#[derive(Debug)]
struct Inside {
    endpoint: Endpoint,
    port: Option<Arc<Port>>,
    /// Destination of datagrams.
    to: Option<SocketAddr>,
    out: Vec<u8>,
}

#[derive(Debug)]
struct Shared {
    inside: Mutex<Inside>,
    stop: AtomicBool,
    /// Readable from when the bridge stops on: wakes the thread that reads.
    stopped: OwnedFd,
    node: Arc<Node>,
}

/// A topic that goes to the autopilot.
struct Outward {
    subscriber: Subscriber,
    message: fn(&Sample, &Node) -> Option<MavMessage>,
}

impl AsMut<Subscriber> for Outward {
    fn as_mut(&mut self) -> &mut Subscriber {
        &mut self.subscriber
    }
}

/// An autopilot on the bus; dropping it takes it off, and waits for its threads.
#[derive(Debug)]
pub struct Bridge {
    shared: Arc<Shared>,
    /// Wakes the thread that writes.
    waker: Waker,
    threads: Vec<JoinHandle<()>>,
}

impl Bridge {
    /// Puts the autopilot at `line` on the bus; one that is not there yet is waited for.
    ///
    /// # Errors
    ///
    /// A UDP port, a topic, a descriptor or a thread that cannot be had.
    pub fn open(
        line: MavlinkLine,
        node: &Arc<Node>,
        dialect: Option<DynamicDialect>,
    ) -> Result<Bridge, MavlinkError> {
        let (port, to) = match &line {
            MavlinkLine::Serial(..) => (None, None),
            MavlinkLine::Listen(number) => (Some(udp(*number)?), None),
            MavlinkLine::Connect(to) => (Some(udp(0)?), Some(*to)),
        };
        let endpoint = Endpoint::new(Identity::COMPANION, dialect, node.now());
        let inside = Inside { endpoint, port, to, out: Vec::new() };
        let shared = Arc::new(Shared {
            inside: Mutex::new(inside),
            stop: AtomicBool::new(false),
            stopped: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|error| MavlinkError::System(error.into()))?,
            node: Arc::clone(node),
        });
        let set = WaitSet::new(Wait::Block);
        let mut bridge = Bridge { shared: Arc::clone(&shared), waker: set.waker(), threads: Vec::new() };
        let outlets = Outlets::open(node)?;
        let pose = subscriber(node, "/mavros/vision_pose/pose", "geometry_msgs/msg/PoseStamped")?;
        let odometry = subscriber(node, "/mavros/odometry/out", "nav_msgs/msg/Odometry")?;
        let topics = [
            Outward { subscriber: pose, message: vision },
            Outward { subscriber: odometry, message: odometry_out },
        ];
        let writes = Arc::clone(&shared);
        bridge.spawn("mavlink", move || read(&shared, &line, outlets))?;
        bridge.spawn("mavlink-out", move || write(&writes, set, topics))?;
        Ok(bridge)
    }

    /// The status of the autopilot.
    pub fn status(&self) -> MavlinkStatus {
        let now = self.shared.node.now();
        let inside = self.shared.lock();
        MavlinkStatus {
            peer: inside.endpoint.peer(),
            clock: inside.endpoint.clock(now),
            mavros_clock: inside.endpoint.mavros_clock(now),
            counters: inside.endpoint.counters(),
        }
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), MavlinkError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(thread.map_err(MavlinkError::System)?);
        Ok(())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.waker.wake();
        // It fails when 2^64 such writes wait, which wakes as well.
        let _ = rustix::io::write(&self.shared.stopped, &1u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for bytes, the end of the bridge or so long.
    fn wait(&self, port: Option<&Port>, at_most: Span) {
        let mut descriptors = vec![PollFd::new(&self.stopped, PollFlags::IN)];
        descriptors.extend(port.map(|port| PollFd::from_borrowed_fd(port.fd(), PollFlags::IN)));
        // An interrupted wait is a short one.
        let _ = poll(&mut descriptors, Some(&timespec(at_most.ns().max(0))));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

impl Inside {
    /// Sends what there is to send, a frame a time: each carries the moment at which it goes out.
    fn flush(&mut self, node: &Node) {
        let Some(port) = self.port.clone() else { return };
        loop {
            self.out.clear();
            if !self.endpoint.poll_transmit(node.now(), &mut self.out) {
                return;
            }
            match (&*port, self.to) {
                // Bytes that do not fit at once are lost, as on any serial line that is too slow.
                (Port::Serial(file), _) => drop(rustix::io::write(file, &self.out)),
                (Port::Udp(socket), Some(to)) => drop(socket.send_to(&self.out, to)),
                // No frame of a system has arrived yet.
                (Port::Udp(_), None) => {}
            }
        }
    }
}

impl Port {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Serial(file) => file.as_fd(),
            Port::Udp(socket) => socket.as_fd(),
        }
    }

    /// Bytes that are there, and their sender; `None` if there are none.
    fn read(&self, buffer: &mut [u8]) -> io::Result<Option<Came>> {
        let read = match self {
            Port::Serial(file) => match rustix::io::read(file, buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => Ok((length, None)),
            },
            Port::Udp(socket) => socket.recv_from(buffer).map(|(length, from)| (length, Some(from))),
        };
        match read {
            Ok(read) => Ok(Some(read)),
            Err(why) => nothing_yet(why),
        }
    }
}

/// An error that only says that nothing is there, as that.
fn nothing_yet<T>(why: io::Error) -> io::Result<Option<T>> {
    match why.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused => Ok(None),
        _ => Err(why),
    }
}

fn vision(sample: &Sample, node: &Node) -> Option<MavMessage> {
    let pose: ros::PoseStamped = decode_cdr(&sample.to_vec()).ok()?;
    let time_usec = time_usec(&pose.header.stamp, sample, node);
    Some(MavMessage::VISION_POSITION_ESTIMATE(ros::vision_from_pose(&pose.pose, time_usec)))
}

fn odometry_out(sample: &Sample, node: &Node) -> Option<MavMessage> {
    let odometry: ros::Odometry = decode_cdr(&sample.to_vec()).ok()?;
    let time_usec = time_usec(&odometry.header.stamp, sample, node);
    Some(MavMessage::ODOMETRY(ros::odometry_to_mavlink(&odometry, time_usec)))
}

/// Turns the topics' samples into messages and sends them until the bridge stops.
fn write(shared: &Shared, mut set: WaitSet, mut topics: [Outward; 2]) {
    while !shared.is_stopped() {
        let Ready::Sample(which) = set.wait(&mut topics, None) else { continue };
        let Outward { subscriber, message } = &mut topics[which];
        // Samples that do not decode are counted only by the sender's own type check.
        let Ok(Some(sample)) = subscriber.take() else { continue };
        let message = message(&sample, &shared.node);
        drop(sample);
        if let Some(message) = message {
            let mut inside = shared.lock();
            inside.endpoint.send(message);
            inside.flush(&shared.node);
        }
    }
}

/// Reads the line until the bridge stops; a serial device that goes is waited for.
fn read(shared: &Shared, line: &MavlinkLine, mut outlets: Outlets) {
    let mut buffer = vec![0; READ_BYTES];
    while !shared.is_stopped() {
        let Some(port) = port(shared, line) else {
            shared.lock().endpoint.handle_timeout(shared.node.now());
            shared.wait(None, LOOK_AGAIN);
            continue;
        };
        let wait = {
            let mut inside = shared.lock();
            inside.endpoint.handle_timeout(shared.node.now());
            inside.flush(&shared.node);
            inside.endpoint.poll_timeout() - shared.node.now()
        };
        shared.wait(Some(&port), wait);
        loop {
            match port.read(&mut buffer) {
                Ok(None) => break,
                Ok(Some((length, from))) => take_in(shared, &buffer[..length], from, &mut outlets),
                // Unplugged.
                Err(_) => {
                    if matches!(line, MavlinkLine::Serial(..)) {
                        shared.lock().port = None;
                    }
                    break;
                }
            }
        }
    }
}

/// The open port; a serial device is opened anew when it is there again.
fn port(shared: &Shared, line: &MavlinkLine) -> Option<Arc<Port>> {
    let mut inside = shared.lock();
    if inside.port.is_none()
        && let MavlinkLine::Serial(path, baud) = line
    {
        inside.port = noctule_sys::serial::open(path, *baud).ok().map(|file| Arc::new(Port::Serial(file)));
    }
    inside.port.clone()
}

fn take_in(shared: &Shared, bytes: &[u8], from: Option<SocketAddr>, outlets: &mut Outlets) {
    let arrived = shared.node.now();
    let mut inside = shared.lock();
    if let (Some(from), None) = (from, inside.to) {
        inside.to = Some(from);
    }
    inside.endpoint.handle_bytes(bytes, arrived);
    // Replies first: the clock exchange waits for them.
    inside.flush(&shared.node);
    let known = inside.endpoint.clock(arrived);
    while let Some(event) = inside.endpoint.poll_event() {
        match event {
            Event::Message(message, arrived) => outlets.publish(*message, known, arrived),
            Event::Custom(message, arrived) => outlets.publish_custom(&message, &shared.node, arrived),
            Event::Found { .. } | Event::Lost => {}
        }
    }
}

/// Publishers of an autopilot's data.
#[derive(Debug)]
struct Outlets {
    imu: Publisher,
    odometry: Publisher,
    custom: BTreeMap<String, Publisher>,
    has_highres: bool,
    bytes: Vec<u8>,
}

impl Outlets {
    fn open(node: &Node) -> Result<Outlets, NodeError> {
        Ok(Outlets {
            imu: publisher(node, "/mavros/imu/data_raw", "sensor_msgs/msg/Imu")?,
            odometry: publisher(node, "/mavros/local_position/odom", "nav_msgs/msg/Odometry")?,
            custom: BTreeMap::new(),
            has_highres: false,
            bytes: Vec::new(),
        })
    }

    fn publish(&mut self, message: MavMessage, known: Option<Estimate>, arrived: Instant<Local>) {
        match message {
            MavMessage::HIGHRES_IMU(imu) => {
                self.has_highres = true;
                let source = source(imu.time_usec, known, arrived);
                let imu = ros::imu_from_highres(&imu, wall_clock(source.time, arrived));
                put(&mut self.imu, &imu, &mut self.bytes, source);
            }
            MavMessage::RAW_IMU(imu) if !self.has_highres => {
                let source = source(imu.time_usec, known, arrived);
                let imu = ros::imu_from_raw(&imu, wall_clock(source.time, arrived));
                put(&mut self.imu, &imu, &mut self.bytes, source);
            }
            MavMessage::ODOMETRY(odometry) => {
                let source = source(odometry.time_usec, known, arrived);
                let odometry = ros::odometry_from_mavlink(&odometry, wall_clock(source.time, arrived));
                put(&mut self.odometry, &odometry, &mut self.bytes, source);
            }
            _ => {}
        }
    }

    fn publish_custom(&mut self, message: &DynamicMessage, node: &Node, arrived: Instant<Local>) {
        let name = message.definition().name();
        if !self.custom.contains_key(name) {
            if self.custom.len() == CUSTOM_TOPICS_MAX {
                return;
            }
            let builder = node.publisher(&format!("/mavlink/in/{name}")).format(Format::Json);
            let Ok(publisher) = builder.type_name(name, 0).open() else { return };
            self.custom.insert(name.to_owned(), publisher);
        }
        if let Some(publisher) = self.custom.get_mut(name)
            && let Ok(text) = serde_json::to_vec(message)
        {
            let source = SourceTime { time: arrived, bound: None, sigma: None };
            // Longer than the topic allows cannot be: a payload has 255 bytes.
            let _ = publisher.publish_uncertain(&text, source);
        }
    }
}

/// Publishes a ROS message that was true at `source`.
fn put<T: Serialize>(publisher: &mut Publisher, message: &T, bytes: &mut Vec<u8>, source: SourceTime) {
    bytes.clear();
    // Messages of ours encode, and are shorter than any topic allows.
    if encode_cdr(message, bytes).is_ok() {
        let _ = publisher.publish_uncertain(bytes, source);
    }
}

/// A time of the autopilot in our clock, as far as its clock is known; else the time of arrival.
fn source(time_usec: u64, known: Option<Estimate>, arrived: Instant<Local>) -> SourceTime {
    let stamp = i64::try_from(time_usec).ok().and_then(|us| us.checked_mul(1_000));
    match (stamp, known) {
        (Some(stamp_ns), Some(known)) => SourceTime {
            time: Instant::<Remote>::from_ns(stamp_ns).translate(-known.offset),
            // The stamp has microseconds.
            bound: known.bound.map(|bound| bound + Span::from_us(1)),
            sigma: known.sigma,
        },
        _ => SourceTime { time: arrived, bound: None, sigma: None },
    }
}

/// Wall clock at `at`, where `now` is the present time.
fn wall_clock(at: Instant<Local>, now: Instant<Local>) -> Time {
    Time::from_ns(three_clocks().realtime_ns.saturating_add((at - now).ns()))
}

/// When a sample was true, in µs of our clock: by its header if that is plausible, else by its publisher.
fn time_usec(stamp: &Time, sample: &Sample, node: &Node) -> u64 {
    let now = node.now();
    let ago = Span::from_ns(three_clocks().realtime_ns.saturating_sub(stamp.ns()));
    let time = match ago.abs() <= STAMP_MAX {
        true => now - ago,
        false => sample.info().source_time.unwrap_or(now),
    };
    (time.ns() / 1_000).max(0) as u64
}

fn udp(port: u16) -> Result<Arc<Port>, MavlinkError> {
    let open = || {
        let socket = UdpSocket::bind(("0.0.0.0", port))?;
        socket.set_nonblocking(true)?;
        Ok(Arc::new(Port::Udp(socket)))
    };
    open().map_err(MavlinkError::Socket)
}

fn publisher(node: &Node, topic: &str, type_name: &str) -> Result<Publisher, NodeError> {
    node.publisher(topic).type_name(type_name, 0).format(Format::Cdr).open()
}

fn subscriber(node: &Node, topic: &str, type_name: &str) -> Result<Subscriber, NodeError> {
    node.subscriber(topic).type_name(type_name, 0).formats(&[Format::Cdr]).open()
}
