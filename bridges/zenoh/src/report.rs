//! Output of the bridge: lines for people, or JSON.

use std::io::{self, Write};

use noctule_bridge::printable;
use noctule_ros_zenoh::plan::Direction;
use serde_json::{Value, json};

use crate::Arguments;
use crate::bridge::BridgeStatus;
use crate::counters::RouteStatus;
use crate::services::ServiceStatus;

/// A line of the output; a reader that has gone is no fault.
pub(crate) fn print(line: &str) {
    let _ = writeln!(io::stdout(), "{}", printable(line)).and_then(|()| io::stdout().flush());
}

/// Prints a warning or error for the user.
pub(crate) fn notice(is_json: bool, notice: &str) {
    match is_json {
        true => print(&json!({ "notice": notice }).to_string()),
        false => eprintln!("noctule-zenoh: {}", printable(notice)),
    }
}

/// Prints the bridge's state and counters.
pub(crate) fn status(arguments: &Arguments, status: &BridgeStatus) {
    if arguments.json {
        return print(&status_json(arguments, status).to_string());
    }
    let standby = if status.is_standby { ", standing by" } else { "" };
    print(&format!("Zenoh, ROS domain {}: {} other sessions{standby}", arguments.domain, status.sessions));
    if !status.ros_nodes.is_empty() {
        print(&format!("  nodes of ROS 2: {}", status.ros_nodes.join(", ")));
    }
    let graph = status.graph;
    if (graph.unreadable, graph.full, status.malformed, status.not_announced as u64) != (0, 0, 0, 0) {
        print(&format!(
            "  left out: {} keys that are no tokens, {} tokens too many, {} malformed messages, {} endpoints of the bus too many",
            graph.unreadable, graph.full, status.malformed, status.not_announced
        ));
    }
    for clock in &status.clocks {
        let bound = clock.bound.map_or("not known".to_owned(), |bound| {
            format!("known within {:.1} ms", bound.ns() as f64 / 1e6)
        });
        print(&format!(
            "  clock of gateway {}: {bound} ({} of {} answered)",
            clock.zid, clock.answered, clock.asked
        ));
    }
    status.routes.iter().for_each(|route| print(&route_text(route)));
    status.services.iter().for_each(|service| print(&service_text(service)));
}

fn route_text(route: &RouteStatus) -> String {
    let RouteStatus { samples, unreadable, refused, too_large, missed, ignored, undated, .. } = route;
    let unread = if route.route.is_read { "" } else { ", not read there" };
    let (way, stamped) = match route.route.direction {
        Direction::FromZenoh => ("from Zenoh", format!(", {}", route.stamping.describe())),
        Direction::ToZenoh => ("to Zenoh", String::new()),
    };
    format!(
        "  {} {} {way}: {samples} samples, {unreadable} unreadable, {refused} refused, {too_large} too large, {missed} missed, {ignored} \
         twice, {undated} undated{stamped}{unread}",
        route.route.name.name, route.route.name.type_name
    )
}

fn service_text(of: &ServiceStatus) -> String {
    let ServiceStatus { requests, replies, failed, late, unreadable, full, .. } = of;
    let way = match of.route.direction {
        Direction::FromZenoh => "from Zenoh",
        Direction::ToZenoh => "to Zenoh",
    };
    format!(
        "  service {} {way}: {requests} requests, {replies} replies, {failed} without a reply, {late} late, {unreadable} unreadable, {full} \
         too many",
        of.route.name.name
    )
}

fn status_json(arguments: &Arguments, status: &BridgeStatus) -> Value {
    let clocks = status.clocks.iter().map(|clock| {
        json!({
            "gateway": clock.zid, "bound_ns": clock.bound.map(|bound| bound.ns()),
            "asked": clock.asked, "answered": clock.answered,
        })
    });
    json!({
        "domain": arguments.domain, "sessions": status.sessions, "standby": status.is_standby,
        "routes": status.routes.iter().map(route_json).collect::<Vec<Value>>(),
        "services": status.services.iter().map(service_json).collect::<Vec<Value>>(),
        "ros_nodes": status.ros_nodes, "clocks": clocks.collect::<Vec<Value>>(),
        "tokens_unreadable": status.graph.unreadable, "tokens_full": status.graph.full,
        "malformed": status.malformed, "not_announced": status.not_announced,
    })
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::FromZenoh => "from_zenoh",
        Direction::ToZenoh => "to_zenoh",
    }
}

fn route_json(route: &RouteStatus) -> Value {
    let qos = route.route.qos;
    json!({
        "topic": route.route.name.name, "type": route.route.name.type_name, "hashes": route.route.hashes,
        "way": way(route.route.direction), "is_read": route.route.is_read,
        "reliability": qos.reliability.to_string(), "durability": qos.durability.to_string(), "keep_last": qos.depth,
        "samples": route.samples, "bytes": route.bytes, "unreadable": route.unreadable, "refused": route.refused,
        "too_large": route.too_large, "missed": route.missed, "twice": route.ignored, "undated": route.undated, "stamped": route.stamping.describe(),
    })
}

fn service_json(of: &ServiceStatus) -> Value {
    json!({
        "service": of.route.name.name, "type": of.route.name.type_name, "way": way(of.route.direction),
        "requests": of.requests, "replies": of.replies, "failed": of.failed, "late": of.late,
        "unreadable": of.unreadable, "full": of.full,
    })
}
