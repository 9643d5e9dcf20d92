//! Names of topics and types on the bus and in DDS.
//!
//! ROS 2 hides its topics in DDS behind a prefix and its types behind a namespace
//! (design.ros2.org, "Topic and Service name mapping to DDS"). On the bus they have the names that ROS 2
//! shows: `rt/imu` is `/imu`, `sensor_msgs::msg::dds_::Imu_` is `sensor_msgs/msg/Imu`. What is not of
//! ROS 2 keeps its name, and each way undoes the other.

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
}
