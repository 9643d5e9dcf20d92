//! Where in a recorded message its sender's stamp stands.
//!
//! ROS puts it into a `std_msgs/Header`; only where that is the first field it stands at a place that is known
//! without the rest of the definition. References: OMG DDSI-RTPS 2.5 section 10 (CDR), and the definitions of
//! `std_msgs/Header` in ROS 1 (`seq`, `stamp`, `frame_id`) and ROS 2 (`stamp`, `frame_id`).

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Types of ROS 2's `common_interfaces` that begin with a header, for bags without definitions: those of Humble in SQLite.
const WITH_HEADER: [(&str, &[&str]); 7] = [
    ("diagnostic_msgs", &["DiagnosticArray"]),
    (
        "geometry_msgs",
        &[
            "AccelStamped",
            "AccelWithCovarianceStamped",
            "InertiaStamped",
            "PointStamped",
            "PolygonStamped",
            "PoseArray",
            "PoseStamped",
            "PoseWithCovarianceStamped",
            "QuaternionStamped",
            "TransformStamped",
            "TwistStamped",
            "TwistWithCovarianceStamped",
            "Vector3Stamped",
            "WrenchStamped",
        ],
    ),
    ("nav_msgs", &["GridCells", "OccupancyGrid", "Odometry", "Path"]),
    (
        "sensor_msgs",
        &[
            "BatteryState",
            "CameraInfo",
            "CompressedImage",
            "FluidPressure",
            "Illuminance",
            "Image",
            "Imu",
            "JointState",
            "Joy",
            "LaserScan",
            "MagneticField",
            "MultiDOFJointState",
            "MultiEchoLaserScan",
            "NavSatFix",
            "PointCloud",
            "PointCloud2",
            "Range",
            "RelativeHumidity",
            "Temperature",
            "TimeReference",
        ],
    ),
    ("stereo_msgs", &["DisparityImage"]),
    ("trajectory_msgs", &["JointTrajectory", "MultiDOFJointTrajectory"]),
    ("visualization_msgs", &["ImageMarker", "InteractiveMarker", "InteractiveMarkerFeedback", "Marker"]),
];

/// Why the messages of a channel have no stamp that is read here: the second half of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStamp {
    /// The first field of the definition is none.
    #[error("does not begin with a header")]
    NoHeader,
    /// Nothing to look into.
    #[error("has no definition in the file")]
    NoDefinition,
    /// Definitions in another language.
    #[error("is defined in {0}, which is not read here")]
    Language(String),
    /// Messages in another encoding.
    #[error("is encoded as {0}, which is not read here")]
    Encoding(String),
}

/// How to find the stamp in the messages of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// ROS 2: seconds and nanoseconds behind the four bytes that announce CDR.
    Cdr,
    /// ROS 1: seconds and nanoseconds behind the sequence number.
    Ros1,
    /// `header.stamp`, `stamp` or `timestamp` with `sec` and `nanosec` or `nsec`.
    Json,
    /// The lab's own samples: when the message should have been sent.
    Scheduled,
    /// Our own recordings: the publish time, translated into the recorder's clock when it was recorded. Not in the payload.
    SourceTime,
}

impl Stamp {
    /// Of messages in `encoding` with a definition: its name, its language, its text.
    ///
    /// # Errors
    /// There is none.
    pub fn of(encoding: &str, (name, language, text): (&str, &str, &str)) -> Result<Stamp, NoStamp> {
        match (encoding, language) {
            ("json", _) => Ok(Stamp::Json),
            ("cdr", "ros2msg") if name == "noctule/msg/Sample" => Ok(Stamp::Scheduled),
            ("cdr", "ros2msg") if begins_with_a_stamp(text) => Ok(Stamp::Cdr),
            ("ros1", "ros1msg") if begins_with_header(text) => Ok(Stamp::Ros1),
            ("cdr", "ros2msg") | ("ros1", "ros1msg") => Err(NoStamp::NoHeader),
            ("cdr", "") if is_known_with_header(name) => Ok(Stamp::Cdr),
            ("cdr" | "ros1", "") => Err(NoStamp::NoDefinition),
            ("cdr" | "ros1", other) => Err(NoStamp::Language(other.escape_debug().to_string())),
            (other, _) => Err(NoStamp::Encoding(other.escape_debug().to_string())),
        }
    }

    /// Nanoseconds of the sender's clock; `None` if the message has no stamp there.
    pub fn read_ns(self, payload: &[u8]) -> Option<i64> {
        match self {
            Stamp::Cdr => {
                let is_little = match payload.get(..2)? {
                    // CDR and XCDR2, neither with a member header nor with a length first.
                    [0, 0 | 6] => false,
                    [0, 1 | 7] => true,
                    _ => return None,
                };
                let word = if is_little { u32::from_le_bytes } else { u32::from_be_bytes };
                ns(i64::from(word(word_at(payload, 4)?) as i32), word(word_at(payload, 8)?))
            }
            Stamp::Ros1 => {
                let word = |at| word_at(payload, at).map(u32::from_le_bytes);
                ns(i64::from(word(4)?), word(8)?)
            }
            Stamp::Json => serde_json::from_slice::<Body>(payload).ok()?.stamp_ns(),
            Stamp::Scheduled => {
                let bytes = payload.get(20..28)?.first_chunk::<8>()?;
                (payload.get(..2)? == [0, 1]).then_some(i64::from_le_bytes(*bytes))
            }
            Stamp::SourceTime => None,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Stamp::Cdr => "header",
            Stamp::Ros1 => "header (ROS 1)",
            Stamp::Json => "JSON",
            Stamp::Scheduled => "scheduled",
            Stamp::SourceTime => "source time",
        }
    }
}

fn is_known_with_header(name: &str) -> bool {
    let Some((package, name)) = name.split_once("/msg/") else { return false };
    WITH_HEADER.iter().any(|(known, names)| *known == package && names.contains(&name))
}

/// Type and name of the first field of a ROS definition.
fn first_field(text: &str) -> Option<(&str, &str)> {
    // Definitions of nested types follow behind a line of these.
    let own = text.split("\n====").next()?;
    own.lines().find_map(|line| {
        let line = line.split('#').next()?.trim();
        let (kind, rest) = line.split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        let name = rest.split(|c: char| c.is_whitespace() || c == '=').next()?;
        let is_constant = rest[name.len()..].trim_start().starts_with('=');
        (!is_constant).then_some((kind, name))
    })
}

fn begins_with_header(text: &str) -> bool {
    first_field(text)
        .is_some_and(|(kind, _)| matches!(kind, "std_msgs/Header" | "std_msgs/msg/Header" | "Header"))
}

fn begins_with_a_stamp(text: &str) -> bool {
    let is_time = |kind| matches!(kind, "builtin_interfaces/Time" | "builtin_interfaces/msg/Time");
    begins_with_header(text)
        || first_field(text)
            .is_some_and(|(kind, name)| is_time(kind) && matches!(name, "stamp" | "timestamp"))
}

fn word_at(payload: &[u8], at: usize) -> Option<[u8; 4]> {
    payload.get(at..)?.first_chunk().copied()
}

fn ns(seconds: i64, nanoseconds: u32) -> Option<i64> {
    // More is no time, so this is not what it was taken for.
    (nanoseconds < 1_000_000_000).then_some(())?;
    seconds.checked_mul(1_000_000_000)?.checked_add(i64::from(nanoseconds))
}

#[derive(Deserialize)]
struct Body {
    header: Option<Maybe<Header>>,
    stamp: Option<Maybe<Time>>,
    timestamp: Option<Maybe<Time>>,
}

#[derive(Deserialize)]
struct Header {
    stamp: Time,
}

#[derive(Deserialize)]
struct Time {
    #[serde(alias = "secs")]
    sec: i64,
    #[serde(alias = "nanosec", alias = "nsecs")]
    nsec: u32,
}

/// A field of that name may hold anything.
#[derive(Deserialize)]
#[serde(untagged)]
enum Maybe<T> {
    Is(T),
    IsNot(IgnoredAny),
}

impl<T> Maybe<T> {
    fn it(self) -> Option<T> {
        match self {
            Maybe::Is(it) => Some(it),
            Maybe::IsNot(IgnoredAny) => None,
        }
    }
}

impl Body {
    fn stamp_ns(self) -> Option<i64> {
        let header = self.header.and_then(Maybe::it).map(|header| header.stamp);
        let time = header.or(self.stamp.and_then(Maybe::it)).or(self.timestamp.and_then(Maybe::it))?;
        ns(time.sec, time.nsec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_counts_not_comments_constants_or_nested_types() {
        let imu = "# An IMU\n\nuint8 KIND=3\nstring NAME = x # c\nstd_msgs/Header header # when\nfloat64 x\n";
        assert_eq!(first_field(imu), Some(("std_msgs/Header", "header")));
        let nested = "string label\n================\nMSG: std_msgs/Header\nstd_msgs/Header header\n";
        assert_eq!(first_field(nested), Some(("string", "label")));
        let only_nested = "uint8 A=1\n====\nMSG: x/Y\nHeader header\n";
        assert_eq!(first_field(only_nested), None);
        assert_eq!(first_field(""), None);
    }

    #[test]
    fn what_has_no_stamp_gets_a_reason() {
        let of = |encoding, schema| Stamp::of(encoding, schema);
        assert_eq!(
            of("cdr", ("std_msgs/msg/String", "ros2msg", "string data")).unwrap_err().to_string(),
            "does not begin with a header"
        );
        assert!(of("protobuf", ("x", "protobuf", "")).unwrap_err().to_string().contains("protobuf"));
        assert!(of("cdr", ("x", "ros2idl", "")).unwrap_err().to_string().contains("ros2idl"));
        assert!(of("cdr", ("", "", "")).unwrap_err().to_string().contains("no definition"));
        assert_eq!(of("cdr", ("sensor_msgs/msg/Imu", "", "")), Ok(Stamp::Cdr));
        assert!(of("cdr", ("sensor_msgs/msg/RegionOfInterest", "", "")).is_err());
        assert_eq!(of("cdr", ("a/msg/B", "ros2msg", "builtin_interfaces/Time stamp")), Ok(Stamp::Cdr));
        assert!(of("cdr", ("rosgraph_msgs/msg/Clock", "ros2msg", "builtin_interfaces/Time clock")).is_err());
    }

    #[test]
    fn stamps_are_read_in_both_byte_orders_and_nothing_else_is() {
        let little = [0, 1, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0];
        let big = [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 5];
        assert_eq!(Stamp::Cdr.read_ns(&little), Some(2_000_000_005));
        assert_eq!(Stamp::Cdr.read_ns(&big), Some(2_000_000_005));
        assert_eq!(Stamp::Cdr.read_ns(&little[..11]), None);
        assert_eq!(Stamp::Cdr.read_ns(&[0, 3, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0]), None);
        assert_eq!(Stamp::Cdr.read_ns(&[0, 1, 0, 0, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(Stamp::Ros1.read_ns(&[9, 9, 9, 9, 2, 0, 0, 0, 5, 0, 0, 0]), Some(2_000_000_005));
        let json = |text: &str| Stamp::Json.read_ns(text.as_bytes());
        assert_eq!(json(r#"{"x": [1], "header": {"stamp": {"sec": 2, "nanosec": 5}}}"#), Some(2_000_000_005));
        assert_eq!(json(r#"{"header": 3, "timestamp": {"sec": 2, "nsec": 5}}"#), Some(2_000_000_005));
        assert_eq!(json(r#"{"timestamp": 3}"#), None);
        assert_eq!(json(r#"{"stamp": {"sec": 9223372036854775807, "nsec": 5}}"#), None);
        assert_eq!(json(&"[".repeat(100_000)), None);
    }
}
