//! Names of topics and types on the bus and in DDS.
//!
//! ROS 2 hides its topics in DDS behind a prefix and its types behind a namespace
//! (design.ros2.org, "Topic and Service name mapping to DDS"). On the bus they have the names that ROS 2
//! shows: `rt/imu` is `/imu`, `sensor_msgs::msg::dds_::Imu_` is `sensor_msgs/msg/Imu`. What is not of
//! ROS 2 keeps its name, and each way undoes the other.

use noctule::request::ServiceTopics;

/// The bus's name of a DDS topic.
pub fn bus_topic(dds: &str) -> String {
    match dds.strip_prefix("rt/") {
        Some(rest) => format!("/{rest}"),
        None => dds.to_owned(),
    }
}

/// The DDS name of a topic of the bus.
pub fn dds_topic(bus: &str) -> String {
    match bus.strip_prefix('/') {
        Some(rest) => format!("rt/{rest}"),
        None => bus.to_owned(),
    }
}

/// The bus's name of a DDS type.
pub fn bus_type(dds: &str) -> String {
    let ros = dds.split_once("::dds_::").and_then(|(package, name)| {
        let name = name.strip_suffix('_').filter(|name| !name.contains(':'))?;
        let (package, kind) = package.split_once("::").filter(|(_, kind)| !kind.contains(':'))?;
        Some(format!("{package}/{kind}/{name}"))
    });
    ros.unwrap_or_else(|| dds.to_owned())
}

/// The DDS name of a type of the bus.
pub fn dds_type(bus: &str) -> String {
    let mut parts = bus.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(package), Some(kind), Some(name), None) => format!("{package}::{kind}::dds_::{name}_"),
        _ => bus.to_owned(),
    }
}

/// A node of the bus under a name that ROS 2 allows, as namespace (`/` or `/a/b`) and name: what is before the last `/` is the
/// namespace, letters, digits and `_` stay, all else is `_`, and no part begins with a digit.
pub fn ros_node(bus: &str) -> (String, String) {
    let part = |part: &str| {
        let mut allowed: String =
            part.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if allowed.starts_with(|c: char| c.is_ascii_digit()) || allowed.is_empty() {
            allowed.insert(0, '_');
        }
        allowed
    };
    let mut parts: Vec<String> = bus.split('/').filter(|part| !part.is_empty()).map(part).collect();
    let name = parts.pop().unwrap_or_else(|| "_".to_owned());
    (format!("/{}", parts.join("/")), name)
}

/// The bus's name of a service whose topics have these DDS names: `/add` for `rq/addRequest` and `rr/addReply`, which ROS 2 gives them; `add` for
/// `add_Request` and `add_Reply`, which a client gets that names none. `None`: these two are no service.
pub fn bus_service(request: &str, reply: &str) -> Option<String> {
    if let Some(service) = ServiceTopics::service_of(request) {
        let is_it = ServiceTopics::of(&service).is_ok_and(|topics| topics.reply == reply);
        return is_it.then_some(service);
    }
    let service = request.strip_suffix("_Request").filter(|service| !service.is_empty())?;
    (reply.strip_suffix("_Reply") == Some(service)).then(|| service.to_owned())
}

/// The service of a topic, and whether that has its replies; `None` if it is no service's.
pub fn service_end(topic: &str) -> Option<(String, bool)> {
    if let Some(service) = ServiceTopics::service_of(topic) {
        return Some((service, false));
    }
    let name = topic.strip_prefix("rr/")?.strip_suffix("Reply")?;
    (!name.is_empty()).then(|| (format!("/{name}"), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ros_are_shown_as_ros_shows_them_and_come_back() {
        for (dds, bus) in
            [("rt/fmu/out/x", "/fmu/out/x"), ("rq/add_twoRequest", "rq/add_twoRequest"), ("Square", "Square")]
        {
            assert_eq!((bus_topic(dds).as_str(), dds_topic(bus).as_str()), (bus, dds));
        }
        for (dds, bus) in [
            ("sensor_msgs::msg::dds_::Imu_", "sensor_msgs/msg/Imu"),
            ("example::srv::dds_::Add_Request_", "example/srv/Add_Request"),
            ("HelloWorld", "HelloWorld"),
            ("a::b::C", "a::b::C"),
        ] {
            assert_eq!((bus_type(dds).as_str(), dds_type(bus).as_str()), (bus, dds));
        }
    }

    #[test]
    fn names_of_services_are_those_of_ros_or_the_clients_own() {
        assert_eq!(bus_service("rq/addRequest", "rr/addReply"), Some("/add".to_owned()));
        assert_eq!(bus_service("rq/ns/addRequest", "rr/ns/addReply"), Some("/ns/add".to_owned()));
        assert_eq!(bus_service("add_Request", "add_Reply"), Some("add".to_owned()));
        assert_eq!(service_end("rq/ns/addRequest"), Some(("/ns/add".to_owned(), false)));
        assert_eq!(service_end("rr/ns/addReply"), Some(("/ns/add".to_owned(), true)));
        for topic in ["/chatter", "rr/Reply", "rq/Request", "rr/add", "addReply"] {
            assert_eq!(service_end(topic), None, "{topic}");
        }
        for (request, reply) in
            [("rq/addRequest", "rr/subReply"), ("rq/Request", "rr/Reply"), ("a", "b"), ("_Request", "_Reply")]
        {
            assert_eq!(bus_service(request, reply), None);
        }
    }
}
