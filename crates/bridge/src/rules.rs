//! Which topics are exchanged, by name.

use crate::behind;

/// Topics that are never exchanged: ROS 2's own list of the participants of DDS, which names endpoints that the other
/// side does not have, and requests and replies, which pass as services do.
/// Neither are the topics on which ROS 2 Lyrical passes buffers between its own processes: while a topic has a reader that
/// knows nothing of them, its samples come on the topic itself. Nor are the lists that bridges announce to each other.
const NEVER: [&str; 6] = ["ros_discovery_info", behind::TOPIC, "rq/*", "rr/*", "*/_buf_cpu", "*/_buf/*"];

/// Names that are exchanged, and names that are not. `*` matches any number of characters, `/` too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Only these; all if there are none.
    pub only: Vec<String>,
    /// Not these, even if they are among `only`.
    pub except: Vec<String>,
}

impl Rules {
    /// Whether a topic of this name (the bus's) is exchanged.
    pub fn allow(&self, topic: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, topic));
        let is_never = NEVER.iter().any(|pattern| fits(pattern, topic));
        !is_never && (self.only.is_empty() || any(&self.only)) && !any(&self.except)
    }
}

/// Whether `name` fits `pattern`: greedily from star to star, so never more work than their lengths' product.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "/imu", true),
            ("/imu", "/imu", true),
            ("/imu", "/imu2", false),
            ("/fmu/out/*", "/fmu/out/vehicle_odometry", true),
            ("/fmu/out/*", "/fmu/in/x", false),
            ("*/image*", "/camera/image_raw", true),
            ("/a*b*c", "/a-b-b-c", true),
            ("/a*b*c", "/a-c", false),
            ("/ab*ba", "/aba", false),
            ("**", "/é", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn exceptions_win_and_requests_never_pass() {
        let rules = Rules { only: vec!["/camera/*".into()], except: vec!["*/raw".into()] };
        assert!(rules.allow("/camera/info"));
        assert!(!rules.allow("/camera/raw"));
        assert!(!rules.allow("/imu"));
        assert!(Rules::default().allow("/imu") && Rules::default().allow("Square"));
        for never in [
            "rq/addRequest",
            "rr/addReply",
            "ros_discovery_info",
            "nodes_behind",
            "/image/_buf_cpu",
            "/image/_buf/0f",
        ] {
            assert!(!Rules::default().allow(never));
        }
    }
}
