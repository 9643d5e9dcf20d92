//! Input of the bridge from DDS: endpoints with any names and quality of service, any payload, and the list of another bridge.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule::{Durability, Endpoint, EndpointKind, Format, KnownEndpoint, NodeId, Qos, Reliability};
use noctule_dds::discovery_info::{GidWidth, decode, encode};
use noctule_dds::payload::{pad, without_padding};
use noctule_dds::plan::{DdsEndpoint, Direction, Plan, ROUTES_MAX, dds_names, plan};
use noctule_dds::rules::Rules;
use noctule_dds::services::message;
use noctule_dds::services::plan::plan_services;
use noctule_discovery::EndpointId;
use noctule_bridge::behind::{KnownBehind, NODES_MAX, NodesBehind};
use noctule_bridge::names::{bus_topic, bus_type};
use noctule_timebase::Span;

/// Takes the input apart; zeros when it is at its end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn span(&mut self) -> Option<Span> {
        let bytes = [(); 8].map(|()| self.byte());
        (bytes[0] & 1 == 0).then(|| Span::from_ns(i64::from_le_bytes(bytes)))
    }

    /// A name that begins as some do.
    fn name(&mut self) -> String {
        const BEGIN: [&str; 8] =
            ["rr/", "rt/", "/", "rq/", "a::msg::dds_::", "a/msg/", "ros_discovery_info", "::dds_::"];
        let begin = BEGIN[usize::from(self.byte() & 7)];
        let length = usize::from(self.byte() & 7).min(self.0.len());
        let (name, rest) = self.0.split_at(length);
        self.0 = rest;
        let end = ["", "_", "Request", "Reply"][usize::from(self.byte() & 3)];
        format!("{begin}{}{end}", String::from_utf8_lossy(name))
    }

    fn qos(&mut self) -> Qos {
        let bits = self.byte();
        Qos {
            reliability: [Reliability::BestEffort, Reliability::Reliable, Reliability::DeadlineBound]
                [usize::from(bits & 3).min(2)],
            durability: if bits & 4 == 0 { Durability::Volatile } else { Durability::TransientLocal },
            depth: u32::from(bits) << (bits & 31),
            deadline: self.span(),
            lifespan: self.span(),
            ..Qos::default()
        }
    }

    fn kind(&mut self) -> EndpointKind {
        if self.byte() & 1 == 0 { EndpointKind::Writer } else { EndpointKind::Reader }
    }

    fn dds(&mut self) -> DdsEndpoint {
        let (kind, guid) = (self.kind(), [self.byte(); 16]);
        let rihs01 = noctule_dds::user_data::type_hash(self.name().as_bytes());
        DdsEndpoint { guid, kind, topic: self.name(), type_name: self.name(), rihs01, qos: self.qos() }
    }

    fn bus(&mut self) -> Endpoint {
        Endpoint {
            id: EndpointId(0),
            kind: self.kind(),
            topic: self.name(),
            type_name: self.name(),
            type_hash: u64::from(self.byte() & 3),
            formats: u32::from(self.byte()) | Format::Cdr.bit(),
            payload_bytes_max: 64,
            relayed: false,
            qos: self.qos(),
        }
    }
}

fn check(plan: &Plan, rules: &Rules) {
    assert!(plan.routes.len() <= ROUTES_MAX);
    for route in &plan.routes {
        assert!(rules.allow(&route.topic), "{route:?}");
        // A participant that sees it in DDS takes it for the same.
        let (topic, type_name) = dds_names(route);
        assert_eq!((bus_topic(&topic), bus_type(&type_name)), (route.topic.clone(), route.type_name.clone()));
        assert!(route.direction == Direction::FromDds || route.qos.depth <= 1000, "{route:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let mut dds: Vec<DdsEndpoint> = (0..input.byte() & 15).map(|_| input.dds()).collect();
    let mut bus: Vec<Endpoint> = (0..input.byte() & 7).map(|_| input.bus()).collect();
    let rules = Rules { only: Vec::new(), except: vec![format!("{}*", input.name())] };
    let hashes = [(1, format!("RIHS01_{}", "1".repeat(64)))].into();
    let planned = plan(&dds, &bus, &rules, &hashes);
    check(&planned, &rules);
    let known = |bus: &[Endpoint]| -> Vec<KnownEndpoint> {
        let known = |endpoint: &Endpoint| {
            let (node, node_name) = (NodeId([endpoint.type_hash as u8; 16]), endpoint.type_name.clone());
            KnownEndpoint { node, node_name, same_host: true, endpoint: endpoint.clone() }
        };
        bus.iter().map(known).collect()
    };
    let is_bridge = |name: &str| name.len() & 1 == 1;
    let services = plan_services(&dds, &known(&bus), &rules, &hashes, is_bridge);
    assert!(services.routes.iter().all(|route| rules.allow(&route.service)));
    // Discovery finds them in any order.
    dds.reverse();
    bus.reverse();
    assert_eq!(planned.routes, plan(&dds, &bus, &rules, &hashes).routes);
    assert_eq!(services, plan_services(&dds, &known(&bus), &rules, &hashes, is_bridge));

    let mut request = Vec::new();
    if let Some(identity) = message::from_dds(input.0, &mut request) {
        let bytes = message::to_dds(identity, &request).expect("what was read is written");
        let mut second = Vec::new();
        assert_eq!(message::from_dds(&bytes, &mut second), Some(identity));
        assert_eq!(second, request);
    }

    if let Some((participant, nodes)) = decode(bytes) {
        let again = encode(&participant, &nodes, GidWidth::Bytes16);
        // A list without nodes may be read in either width.
        assert_eq!(decode(&again), Some((participant, nodes)));
    }

    if let Ok(list) = noctule::formats::decode::<NodesBehind>(Format::Cdr, bytes) {
        let (bridge, mut known) = (NodeId([1; 16]), KnownBehind::default());
        let all = list.nodes.len() as u64;
        known.insert(bridge, list);
        let kept = known.of(bridge);
        assert!(kept.len() <= NODES_MAX && kept.len() as u64 + known.refused() == all);
        assert!(kept.iter().all(|node| node.namespace.starts_with('/') && !node.name.contains('/')));
    }

    let (mut payload, mut again) = (Vec::new(), Vec::new());
    if without_padding(input.0, &mut payload) {
        assert!(payload.len() <= input.0.len());
        again.clone_from(&payload);
        assert!(pad(&mut again) && again.len().is_multiple_of(4));
        let padded = again.clone();
        assert!(without_padding(&padded, &mut again));
        assert_eq!(again, payload);
    }
});
