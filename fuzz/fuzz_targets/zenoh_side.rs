//! Input of the bridge from Zenoh: keys, tokens, attachments, and the clocks of other gateways.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::fuzz_target;
use noctule_bridge::rules::Rules;
use noctule_ros_zenoh::attachment::{RosAttachment, SiteAttachment};
use noctule_ros_zenoh::graph::Graph;
use noctule_ros_zenoh::key::parse_key;
use noctule_ros_zenoh::plan::{ROUTES_MAX, Sides, plan};
use noctule_ros_zenoh::services::{SERVICES_MAX, plan_services};
use noctule_ros_zenoh::site::{SiteClock, clock_reply, sample_zid};
use noctule_ros_zenoh::token::Token;
use noctule_timebase::Instant;

fuzz_target!(|data: &[u8]| {
    if let Some(read) = RosAttachment::decode(data) {
        assert_eq!(RosAttachment::decode(&read.encode()), Some(read));
    }
    if let Some(read) = SiteAttachment::decode(data) {
        assert_eq!(SiteAttachment::decode(&read.encode()), Some(read));
        let mut clock = SiteClock::new([0; 16], Instant::from_ns(0));
        let reply = clock.poll_request(Instant::from_ns(0)).and_then(|request| {
            let far = Instant::from_ns(read.sequence);
            clock_reply(&request, far, far)
        });
        // Whatever the stamps say: judged, and never a panic.
        let _ = clock.handle_reply(&reply.unwrap_or_default(), Instant::from_ns(1_000));
        let _ = clock.source(&read, Instant::from_ns(2_000));
    }
    let _ = clock_reply(data, Instant::from_ns(0), Instant::from_ns(0));
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut graph = Graph::new(0, "aa");
    for line in text.lines() {
        if let Some((domain, name, hash)) = parse_key(line) {
            assert_eq!(name.key(domain, hash), line);
        }
        let _ = sample_zid(line);
        for key in [line.to_owned(), format!("@ros2_lv/0/ab/0/1/{line}")] {
            if let Some(token) = Token::parse(&key) {
                assert_eq!(Token::parse(&token.key()), Some(token));
            }
            graph.handle(&key, true);
        }
    }
    let zenoh = graph.endpoints(&BTreeSet::new());
    let (gateways, hashes) = (graph.gateways().clone(), BTreeMap::new());
    let sides = Sides { zenoh: &zenoh, gateways: &gateways, bus: &[], hashes: &hashes };
    assert!(plan(&sides, &Rules::default()).routes.len() <= ROUTES_MAX);
    assert!(plan_services(&sides, &Rules::default(), |_| false).routes.len() <= SERVICES_MAX);
});
