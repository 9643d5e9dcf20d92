//! Keys of samples and services: `<domain>/<topic>/<type>/<hash>`.
//!
//! The topic stands without the `/` at its beginning, inner ones stay; type and hash have none. So a key is read from its end.

use noctule_bridge::names::{bus_type, dds_type};

/// Text in place of the hash in ROS 2 Humble, which has none.
pub const NO_HASH: &str = "TypeHashNotSupported";
/// Hash in a topic's announcement while the hash of its type is unknown: well-formed, and of no type.
pub const UNKNOWN_HASH: &str = "RIHS01_0000000000000000000000000000000000000000000000000000000000000000";
/// Keys and tokens longer than this are not read, in bytes.
pub const KEY_BYTES_MAX: usize = 4096;

/// Why a name cannot be a part of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A topic that ROS 2 has no name for.
    #[error("ROS 2's topics begin with / and have a name between each two; name it so, e.g. /imu")]
    Topic,
    /// A topic without a type.
    #[error(
        "it has no type, which is a part of the key in Zenoh; publish it with the name of its type (e.g. std_msgs/msg/String)"
    )]
    NoType,
    /// A type that ROS 2 has no name for.
    #[error("its type {0} is none of ROS 2's; name it as package/msg/Name")]
    Type(String),
}

/// A topic or service of ROS 2 with its type, by the bus's names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypedName {
    /// Name with a `/` at its beginning.
    pub name: String,
    /// `package/msg/Name`, of a service `package/srv/Name`.
    pub type_name: String,
}

impl TypedName {
    /// Checks that both can stand in a key and come back from it as they are.
    ///
    /// # Errors
    /// ROS 2 has no such names.
    pub fn new(name: &str, type_name: &str) -> Result<TypedName, NameError> {
        let rest = name.strip_prefix('/').ok_or(NameError::Topic)?;
        if !rest.split('/').all(is_chunk) || name.len() > KEY_BYTES_MAX / 8 {
            return Err(NameError::Topic);
        }
        if type_name.is_empty() {
            return Err(NameError::NoType);
        }
        let mangled = dds_type(type_name);
        let has_parts = type_name.split('/').all(is_chunk);
        if mangled == type_name || !has_parts || !is_chunk(&mangled) || bus_type(&mangled) != type_name {
            return Err(NameError::Type(type_name.to_owned()));
        }
        Ok(TypedName { name: name.to_owned(), type_name: type_name.to_owned() })
    }

    /// From a key without its domain or from a token's parts; `None` if these are not ROS 2's.
    pub fn from_zenoh(topic: &str, mangled_type: &str) -> Option<TypedName> {
        let type_name = bus_type(mangled_type);
        TypedName::new(&format!("/{topic}"), &type_name).ok().filter(|_| type_name != mangled_type)
    }

    /// The topic as it stands in a key.
    pub fn topic_in_key(&self) -> &str {
        self.name.trim_start_matches('/')
    }

    /// The type as it stands in keys and tokens.
    pub fn type_in_key(&self) -> String {
        dds_type(&self.type_name)
    }

    /// The key of its samples or requests. `hash`: [`is_hash`], or `*` for any.
    pub fn key(&self, domain: u32, hash: &str) -> String {
        format!("{domain}/{}/{}/{hash}", self.topic_in_key(), self.type_in_key())
    }
}

/// Reads a key: its domain, name and type, and hash. The bytes may be anything.
pub fn parse_key(key: &str) -> Option<(u32, TypedName, &str)> {
    if key.len() > KEY_BYTES_MAX {
        return None;
    }
    let (domain, rest) = key.split_once('/')?;
    let (rest, hash) = rest.rsplit_once('/')?;
    let (topic, mangled_type) = rest.rsplit_once('/')?;
    let domain = decimal(domain)?;
    let name = TypedName::from_zenoh(topic, mangled_type)?;
    is_hash(hash).then_some((domain, name, hash))
}

/// Whether this can be the hash in a key: `RIHS01_` and 64 digits, or Humble's word for none.
pub fn is_hash(text: &str) -> bool {
    let digits = text.strip_prefix("RIHS01_");
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text == NO_HASH || digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(is_digit))
}

/// Whether this names a definition: a hash that is neither Humble's word nor the one of unknown types.
pub fn is_known_hash(text: &str) -> bool {
    is_hash(text) && text != NO_HASH && text != UNKNOWN_HASH
}

/// Whether this can be one part of a key: not empty, none of Zenoh's signs, and none of the sign that replaces `/` in tokens.
pub(crate) fn is_chunk(text: &str) -> bool {
    let is_reserved = |c: char| matches!(c, '*' | '$' | '?' | '#' | '%' | '/') || c.is_control();
    !text.is_empty() && !text.starts_with('@') && !text.contains(is_reserved)
}

/// A number as Zenoh's keys have it: digits alone.
pub(crate) fn decimal<N: std::str::FromStr>(text: &str) -> Option<N> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STRING: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

    #[test]
    fn a_key_of_ros_2_is_written_and_read() {
        let name = TypedName::new("/chatter", "std_msgs/msg/String").unwrap();
        let key = format!("0/chatter/std_msgs::msg::dds_::String_/{STRING}");
        assert_eq!(name.key(0, STRING), key);
        assert_eq!(parse_key(&key), Some((0, name, STRING)));
        let goal = "example_interfaces/action/Fibonacci_SendGoal";
        let goal = TypedName::new("/fibonacci/_action/send_goal", goal).unwrap();
        assert_eq!(
            goal.key(7, NO_HASH),
            "7/fibonacci/_action/send_goal/example_interfaces::action::dds_::Fibonacci_SendGoal_/TypeHashNotSupported"
        );
    }

    #[test]
    fn names_that_cannot_come_back_are_refused() {
        for (name, type_name, why) in [
            ("imu", "a/msg/B", NameError::Topic),
            ("/", "a/msg/B", NameError::Topic),
            ("/a//b", "a/msg/B", NameError::Topic),
            ("/a/", "a/msg/B", NameError::Topic),
            ("/a*", "a/msg/B", NameError::Topic),
            ("/@a", "a/msg/B", NameError::Topic),
            ("/a%b", "a/msg/B", NameError::Topic),
            ("/a", "", NameError::NoType),
            ("/a", "B", NameError::Type("B".into())),
            ("/a", "a//B", NameError::Type("a//B".into())),
            ("/a", "a/msg/B/c", NameError::Type("a/msg/B/c".into())),
        ] {
            assert_eq!(TypedName::new(name, type_name), Err(why), "{name} {type_name}");
        }
        for key in [
            "",
            "/",
            "0/a",
            "0/a/b",
            "00/a/a::msg::dds_::B_/TypeHashNotSupported",
            "0/a/B/TypeHashNotSupported",
        ] {
            assert_eq!(parse_key(key), None, "{key}");
        }
        assert!(!is_hash("RIHS01_DF") && !is_known_hash(UNKNOWN_HASH) && is_known_hash(STRING));
    }

    proptest! {
        #[test]
        fn any_key_is_read_or_refused(key in ".{0,80}", parts in "[0-9]{1,3}(/[a-z:_@%*A-Z]{0,9}){0,6}/TypeHashNotSupported") {
            for key in [key, parts] {
                if let Some((domain, name, hash)) = parse_key(&key) {
                    prop_assert_eq!(name.key(domain, hash), key);
                }
            }
        }

        #[test]
        fn what_is_accepted_comes_back(topic in "(/[^*$?#/%@]{1,8}){1,4}", package in "[a-z_]{1,8}", name in "[A-Z][A-Za-z0-9_]{0,8}") {
            if let Ok(name) = TypedName::new(&topic, &format!("{package}/msg/{name}")) {
                let key = name.key(4_294_967_295, STRING);
                prop_assert_eq!(parse_key(&key), Some((4_294_967_295, name, STRING)));
            }
        }
    }
}
