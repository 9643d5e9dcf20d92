//! A robot of several nodes in this process: 240 topics, a camera, points, a map, poses; and what was published.

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use noctule::{Node, Publisher, Reliability, Subscriber, TypedPublisher};
use noctule_view::types::{Decoder, Types};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Topics of plain numbers, beside those that are named below.
pub(crate) const NUMBERS: usize = 229;
/// Topics in all.
pub(crate) const TOPICS_IN_ALL: usize = NUMBERS + TOPICS.len() + 1;
/// The node whose clock is 5 s ahead of all others.
pub(crate) const FAR: &str = "lidar_driver";
const PERIOD_NS: i64 = 20_000_000;
pub(crate) const PICTURE: (usize, usize) = (64, 48);

/// Source time, ns, and value of each sample of `/sensors/s000`.
type Published = Mutex<Vec<(i64, f64)>>;

/// Runs until it is dropped.
pub(crate) struct Robot {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pub(crate) published: Arc<Published>,
}

impl Robot {
    pub(crate) fn start(domain: u32) -> Robot {
        let stop = Arc::new(AtomicBool::new(false));
        let published = Arc::new(Mutex::new(Vec::new()));
        let mut body = Body::new(domain);
        let (stopped, kept) = (Arc::clone(&stop), Arc::clone(&published));
        let work = move || {
            let mut due = noctule_sys::clock::now_ns();
            let mut tick = 0_u64;
            while !stopped.load(Ordering::Relaxed) {
                body.publish(tick, &kept);
                tick += 1;
                due = (due + PERIOD_NS).max(noctule_sys::clock::now_ns());
                noctule_sys::clock::sleep_until(due);
            }
        };
        Robot { stop, thread: Some(std::thread::spawn(work)), published }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join).unwrap().unwrap();
    }
}

noctule::message! {
    /// Of a type that only its node knows.
    #[derive(Debug, Serialize, Deserialize)]
    pub(crate) struct Battery: "field_robot/msg/Battery" {
        pub(crate) voltage: f64,
        pub(crate) cells: Vec<f32>,
    }
}

struct Body {
    battery: TypedPublisher<Battery>,
    nodes: BTreeMap<&'static str, Node>,
    decoders: BTreeMap<&'static str, Arc<Decoder>>,
    publishers: BTreeMap<&'static str, Publisher>,
    numbers: Vec<Publisher>,
    _readers: Vec<Subscriber>,
}

/// Topic, node and type.
const TOPICS: [(&str, &str, &str); 10] = [
    ("/camera/image_raw", "camera_driver", "sensor_msgs/msg/Image"),
    ("/camera/compressed", "camera_driver", "sensor_msgs/msg/CompressedImage"),
    ("/camera/points", "camera_driver", "sensor_msgs/msg/PointCloud2"),
    ("/imu", "imu_driver", "sensor_msgs/msg/Imu"),
    ("/scan", "lidar_driver", "sensor_msgs/msg/LaserScan"),
    ("/map", "localization", "nav_msgs/msg/OccupancyGrid"),
    ("/odom", "localization", "nav_msgs/msg/Odometry"),
    ("/tf", "localization", "tf2_msgs/msg/TFMessage"),
    ("/plan", "planner", "nav_msgs/msg/Path"),
    ("/cmd_vel", "controller", "geometry_msgs/msg/Twist"),
];

/// Nodes and the topics that they read.
const READERS: [(&str, &str); 9] = [
    ("localization", "/imu"),
    ("localization", "/scan"),
    ("planner", "/odom"),
    ("planner", "/map"),
    ("controller", "/plan"),
    ("controller", "/odom"),
    ("base", "/cmd_vel"),
    ("planner", "/camera/points"),
    ("operator", "/camera/image_raw"),
];

impl Body {
    fn new(domain: u32) -> Body {
        let node = |name: &str| {
            let builder = Node::builder(name).domain(domain).keep_notices();
            // A clock of its own makes it a node of another host: its samples come by UDP.
            let clock = if name == FAR { "offset=5s" } else { "" };
            builder.clock(clock.parse().unwrap()).open().unwrap()
        };
        let mut nodes: BTreeMap<&'static str, Node> = BTreeMap::new();
        let types = Types::default();
        let (mut publishers, mut decoders) = (BTreeMap::new(), BTreeMap::new());
        for (topic, name, type_name) in TOPICS {
            let owner = nodes.entry(name).or_insert_with(|| node(name));
            let builder = owner.publisher(topic).type_name(type_name, 0).keep_last(8);
            let builder = if topic == "/imu" {
                builder.deadline(std::time::Duration::from_millis(200))
            } else {
                builder
            };
            publishers.insert(topic, builder.payload_bytes_max(1 << 20).open().unwrap());
            decoders.insert(topic, types.decoder(type_name, 0).unwrap());
        }
        let sensors = nodes.entry("sensors").or_insert_with(|| node("sensors"));
        let open = |index: usize| {
            let topic = format!("/sensors/s{index:03}");
            sensors.publisher(&topic).type_name("std_msgs/msg/Float64", 0).keep_last(64).open().unwrap()
        };
        let numbers = (0..NUMBERS).map(open).collect();
        let mut readers: Vec<Subscriber> = READERS
            .iter()
            .map(|(name, topic)| {
                nodes.entry(name).or_insert_with(|| node(name)).subscriber(topic).open().unwrap()
            })
            .collect();
        // Does not match what the driver offers.
        let base = &nodes["base"];
        readers.push(base.subscriber("/scan").reliability(Reliability::Reliable).open().unwrap());
        let battery = nodes["base"].publisher("/battery").typed().open().unwrap();
        Body { battery, nodes, decoders, publishers, numbers, _readers: readers }
    }

    fn send(&mut self, topic: &'static str, value: &Value) {
        let bytes = self.decoders[topic].encode(value).unwrap();
        self.publishers.get_mut(topic).unwrap().publish(&bytes).unwrap();
    }

    fn publish(&mut self, tick: u64, kept: &Published) {
        let t = tick as f64 * PERIOD_NS as f64 * 1e-9;
        let (x, y, heading) = (3.0 * (0.3 * t).cos(), 2.0 * (0.3 * t).sin(), 0.3 * t + FRAC_PI_2);
        let turn = json!({ "x": 0.0, "y": 0.0, "z": (heading / 2.0).sin(), "w": (heading / 2.0).cos() });
        let header = |frame: &str| json!({ "stamp": { "sec": 1, "nanosec": 0 }, "frame_id": frame });
        let place = json!({ "x": x, "y": y, "z": 0.0 });
        let zero = json!({ "x": 0.0, "y": 0.0, "z": 0.0 });
        let none = vec![0.0; 36];
        self.send("/imu", &json!({
            "header": header("imu"), "orientation": turn, "orientation_covariance": [0, 0, 0, 0, 0, 0, 0, 0, 0],
            "angular_velocity": { "x": 0.02 * (9.0 * t).sin(), "y": 0.01 * (7.0 * t).cos(), "z": 0.3 },
            "angular_velocity_covariance": [0, 0, 0, 0, 0, 0, 0, 0, 0],
            "linear_acceleration": { "x": (2.0 * t).sin(), "y": (3.0 * t).cos(), "z": 9.81 + 0.2 * (11.0 * t).sin() },
            "linear_acceleration_covariance": [0, 0, 0, 0, 0, 0, 0, 0, 0],
        }));
        let twist = json!({ "linear": { "x": 0.9, "y": 0.0, "z": 0.0 }, "angular": { "x": 0.0, "y": 0.0, "z": 0.3 } });
        self.send(
            "/odom",
            &json!({
                "header": header("odom"), "child_frame_id": "base_link",
                "pose": { "pose": { "position": place, "orientation": turn }, "covariance": none },
                "twist": { "twist": twist, "covariance": none },
            }),
        );
        // Each source time is ours, so that a test knows it.
        for (index, publisher) in
            self.numbers.iter_mut().enumerate().filter(|(index, _)| index % 5 == tick as usize % 5)
        {
            let value = (t * (1.0 + index as f64 * 0.01)).sin() * 10.0;
            let mut bytes = vec![0, 1, 0, 0];
            bytes.extend(value.to_le_bytes());
            let source = self.nodes["sensors"].now();
            publisher.publish_at(&bytes, source).unwrap();
            if index == 0 {
                kept.lock().unwrap().push((source.ns(), value));
            }
        }
        if tick.is_multiple_of(5) {
            self.send("/cmd_vel", &twist);
            let to = |parent: &str, child: &str, at: &Value, rotation: &Value| {
                json!({
                    "header": header(parent), "child_frame_id": child, "transform": { "translation": at, "rotation": rotation },
                })
            };
            let straight = json!({ "x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0 });
            let mast = json!({ "x": 0.2, "y": 0.0, "z": 0.6 });
            self.send("/tf", &json!({ "transforms": [
                to("map", "odom", &zero, &straight), to("odom", "base_link", &place, &turn), to("base_link", "lidar", &mast, &straight),
            ] }));
            let ranges: Vec<f64> =
                (0..360).map(|degree| 1.5 + (f64::from(degree) * 0.05 + t).sin().abs()).collect();
            self.send("/scan", &json!({
                "header": header("lidar"), "angle_min": -PI, "angle_max": PI, "angle_increment": 0.01745,
                "time_increment": 0.0, "scan_time": 0.1, "range_min": 0.1, "range_max": 30.0, "ranges": ranges, "intensities": [],
            }));
        }
        if tick.is_multiple_of(10) {
            self.picture(tick);
            self.points();
        }
        if tick.is_multiple_of(25) {
            self.battery.publish(&Battery { voltage: 24.5, cells: vec![4.0, 4.1] }).unwrap();
            self.map();
            let poses: Vec<Value> = (0..40).map(|step| {
                let phase = 0.3 * t + f64::from(step) * 0.05;
                let position = json!({ "x": 3.0 * phase.cos(), "y": 2.0 * phase.sin(), "z": 0.0 });
                json!({ "header": header("map"), "pose": { "position": position, "orientation": { "x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0 } } })
            }).collect();
            self.send("/plan", &json!({ "header": header("map"), "poses": poses }));
        }
    }

    /// Of `rgb8`; see [`pixel`].
    fn picture(&mut self, tick: u64) {
        let (width, height) = PICTURE;
        let mut bytes = header("camera");
        for number in [height as u32, width as u32] {
            align(&mut bytes, 4);
            bytes.extend(number.to_le_bytes());
        }
        text(&mut bytes, "rgb8");
        bytes.push(0);
        align(&mut bytes, 4);
        bytes.extend((width as u32 * 3).to_le_bytes());
        bytes.extend((width as u32 * height as u32 * 3).to_le_bytes());
        let shade = (tick / 10 % 200) as u8;
        let pixels = pixels(shade);
        bytes.extend(&pixels);
        self.publishers.get_mut("/camera/image_raw").unwrap().publish(&bytes).unwrap();
        let mut bytes = header("camera");
        text(&mut bytes, "png");
        let picture = png_of(&pixels);
        align(&mut bytes, 4);
        bytes.extend((picture.len() as u32).to_le_bytes());
        bytes.extend(picture);
        self.publishers.get_mut("/camera/compressed").unwrap().publish(&bytes).unwrap();
    }

    /// A hill of 40,000 points.
    fn points(&mut self) {
        let mut bytes = header("map");
        for number in [1_u32, 40_000, 3] {
            align(&mut bytes, 4);
            bytes.extend(number.to_le_bytes());
        }
        for (index, name) in ["x", "y", "z"].iter().enumerate() {
            text(&mut bytes, name);
            align(&mut bytes, 4);
            bytes.extend((index as u32 * 4).to_le_bytes());
            bytes.push(7);
            align(&mut bytes, 4);
            bytes.extend(1_u32.to_le_bytes());
        }
        bytes.push(0);
        align(&mut bytes, 4);
        for number in [12_u32, 480_000, 480_000] {
            bytes.extend(number.to_le_bytes());
        }
        for index in 0..40_000_u32 {
            let (x, y) = (f64::from(index % 200) * 0.05 - 5.0, f64::from(index / 200) * 0.05 - 5.0);
            let z = 1.2 * (-(x - 3.5).powi(2) - (y - 3.5).powi(2)).exp()
                + 0.8 * (-(x + 4.0).powi(2) - (y + 3.0).powi(2)).exp();
            for part in [x, y, z] {
                bytes.extend((part as f32).to_le_bytes());
            }
        }
        bytes.push(1);
        self.publishers.get_mut("/camera/points").unwrap().publish(&bytes).unwrap();
    }

    fn map(&mut self) {
        let mut cells = Vec::with_capacity(100 * 80);
        for index in 0..8_000_i64 {
            let (column, row) = (index % 100, index / 100);
            let is_wall =
                !(2..=97).contains(&column) || !(2..=77).contains(&row) || (column == 40 && row < 50);
            cells.push(if is_wall {
                100
            } else if column > 80 && row > 60 {
                -1
            } else {
                0
            });
        }
        let origin = json!({ "position": { "x": -5.0, "y": -4.0, "z": 0.0 }, "orientation": { "x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0 } });
        let now = json!({ "sec": 0, "nanosec": 0 });
        self.send("/map", &json!({
            "header": { "stamp": now, "frame_id": "map" },
            "info": { "map_load_time": now, "resolution": 0.1, "width": 100, "height": 80, "origin": origin }, "data": cells,
        }));
    }
}

/// Red says the column, green the row, blue which picture it is.
pub(crate) fn pixel(column: usize, row: usize, shade: u8) -> [u8; 3] {
    [(column * 4) as u8, (row * 5) as u8, shade]
}

/// The picture, row by row.
fn pixels(shade: u8) -> Vec<u8> {
    let (width, height) = PICTURE;
    (0..height).flat_map(|row| (0..width).flat_map(move |column| pixel(column, row, shade))).collect()
}

fn png_of(pixels: &[u8]) -> Vec<u8> {
    let (width, height) = PICTURE;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    bytes
}

/// CDR up to the end of a header.
fn header(frame: &str) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    text(&mut bytes, frame);
    bytes
}

fn align(bytes: &mut Vec<u8>, size: usize) {
    while !(bytes.len() - 4).is_multiple_of(size) {
        bytes.push(0);
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    align(bytes, 4);
    bytes.extend((text.len() as u32 + 1).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
}
