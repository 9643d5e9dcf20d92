//! The examples of docs/spec/discovery.md are what this code writes and reads.
#![allow(clippy::unwrap_used)] // tests

use noctule_discovery::datagram::{Body, Datagram, Hello, Page, PageSet};
use noctule_discovery::{Endpoint, EndpointId, EndpointKind, NodeId, Qos, Reliability};
use noctule_timebase::Span;

const SPECIFICATION: &str = include_str!("../../../docs/spec/discovery.md");

/// The bytes of the page's example number `index`.
fn example(index: usize) -> Vec<u8> {
    let block = SPECIFICATION.split("```hex\n").nth(index + 1).unwrap().split("```").next().unwrap();
    block.split_whitespace().map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect()
}

#[test]
fn the_examples_of_the_specification_are_what_is_written_and_read() {
    let from = NodeId(std::array::from_fn(|index| index as u8));
    let to = NodeId(std::array::from_fn(|index| index as u8 + 16));
    let number = 0xfedc_ba98_7654_3210;
    let hello = Hello {
        revision: 1,
        pages: 1,
        lifetime: Span::from_s(5),
        port: 40_001,
        new_here: true,
        host: 0x0123_4567_89ab_cdef,
        digest: 0x7ab4_0e09_0f36_3a7d,
        name: "far".into(),
    };
    let qos = Qos {
        reliability: Reliability::DeadlineBound,
        deadline: Some(Span::from_ms(10)),
        loss_ppm: 1_000,
        ..Qos::default()
    };
    let endpoint = Endpoint {
        id: EndpointId(1),
        kind: EndpointKind::Writer,
        topic: "imu".into(),
        type_name: "sensor_msgs/msg/Imu".into(),
        type_hash: 0x1122_3344_5566_7788,
        formats: 1 << 1,
        payload_bytes_max: 512,
        qos,
        relayed: false,
    };
    let mut except = PageSet::EMPTY;
    except.insert(1);
    let bodies = [
        Body::Hello(hello.clone()),
        Body::Page(Page { number: 0, revision: 1, endpoints: vec![endpoint] }),
        Body::Query { to, since: 0, except },
        Body::PathChallenge { to, number },
        Body::PathResponse { number, hello },
    ];
    for (index, body) in bodies.into_iter().enumerate() {
        let datagram = Datagram { from, domain: 7, body };
        let mut written = Vec::new();
        datagram.encode(&mut written);
        assert_eq!(written, example(index), "example {index}");
        assert_eq!(Datagram::decode(&written).unwrap(), datagram);
    }
}
