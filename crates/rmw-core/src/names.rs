//! Names of nodes and types, as ROS 2 has them and as the bus has them.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Longest name of a node on the bus, in bytes (`docs/spec/discovery.md`).
pub const NODE_NAME_BYTES_MAX: usize = 64;

/// `/ns/name` of a namespace (`/` or `/ns`) and a name.
pub fn full_name(namespace: &str, name: &str) -> String {
    if namespace.ends_with('/') { format!("{namespace}{name}") } else { format!("{namespace}/{name}") }
}

/// Namespace and name of a node of the bus. One that does not begin with `/` is no ROS node and gets a name that ROS allows.
pub fn split(bus: &str) -> (String, String) {
    match bus.rsplit_once('/').filter(|_| bus.starts_with('/')) {
        Some(("", name)) => ("/".to_owned(), name.to_owned()),
        Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
        None => noctule_bridge::names::ros_node(bus),
    }
}

/// The name on the bus of a ROS node: its full name, or, if that is too long, its beginning and a hash of it.
pub fn on_bus(full_name: &str) -> String {
    if full_name.len() <= NODE_NAME_BYTES_MAX {
        return full_name.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    full_name.hash(&mut hasher);
    // Names of ROS are ASCII; what is not was refused before.
    let begin: String = full_name.chars().filter(char::is_ascii).take(NODE_NAME_BYTES_MAX - 9).collect();
    format!("{begin}_{:08x}", hasher.finish() as u32)
}

/// The bus's name of a type whose C++ namespace is `pkg::msg`, or `pkg__msg` in C.
pub fn type_name(namespace: &str, name: &str) -> String {
    let folder = namespace.replace("::", "/").replace("__", "/");
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_are_split_and_joined() {
        for (namespace, name, full) in [("/", "talker", "/talker"), ("/a/b", "talker", "/a/b/talker")] {
            assert_eq!(full_name(namespace, name), full);
            assert_eq!(split(full), (namespace.to_owned(), name.to_owned()));
        }
        assert_eq!(split("front camera"), ("/".to_owned(), "front_camera".to_owned()));
    }

    #[test]
    fn long_names_stay_different() {
        let long = |last: char| format!("/{}{last}", "n".repeat(80));
        assert!(on_bus(&long('a')).len() <= NODE_NAME_BYTES_MAX);
        assert_ne!(on_bus(&long('a')), on_bus(&long('b')));
        assert_eq!(on_bus("/short"), "/short");
    }

    #[test]
    fn types_of_c_and_of_cpp_have_one_name() {
        assert_eq!(type_name("std_msgs::msg", "String"), "std_msgs/msg/String");
        assert_eq!(type_name("std_msgs__msg", "String"), "std_msgs/msg/String");
    }
}
