use proptest::prelude::*;

use super::*;

fn endpoint() -> Endpoint {
    Endpoint {
        id: EndpointId(3),
        kind: EndpointKind::Reader,
        topic: "imu".into(),
        type_name: "I".into(),
        type_hash: 0x1122_3344_5566_7788,
        formats: 5,
        payload_bytes_max: 256,
        qos: Qos {
            reliability: Reliability::Reliable,
            durability: Durability::TransientLocal,
            depth: 9,
            keep_all: false,
            deadline: Some(Span::from_ns(1)),
            loss_ppm: 1,
            lifespan: None,
            multicast: false,
        },
        relayed: true,
    }
}

fn bytes_of(body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    Datagram { from: NodeId([0xaa; 16]), domain: 2, body }.encode(&mut bytes);
    bytes
}

#[test]
fn a_page_has_the_bytes_of_the_specification() {
    let bytes = bytes_of(Body::Page(Page { number: 1, revision: 7, endpoints: vec![endpoint()] }));
    let mut wanted = b"NCTD\x01\x02\0\0".to_vec();
    wanted.extend([0xaa; 16]);
    wanted.extend([2, 0, 0, 0]); // domain
    wanted.extend([1, 0, 1, 0, 7, 0, 0, 0]); // page, endpoints, revision
    wanted.extend([3, 0, 0, 0, 1, 2, 1, 1, 5, 0, 0, 0, 0, 1, 0, 0]); // id … payload
    wanted.extend([0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]); // hash
    wanted.extend([1, 0, 0, 0, 0, 0, 0, 0]); // deadline
    wanted.extend([255, 255, 255, 255, 255, 255, 255, 127]); // no lifespan
    wanted.extend([1, 0, 0, 0]); // tolerable loss
    wanted.extend([9, 0, 3, 1, b'i', b'm', b'u', b'I']); // depth, lengths, names
    assert_eq!(bytes, wanted);
    assert_eq!(bytes.len(), PAGE_PREFIX_BYTES + endpoint_bytes(&endpoint()));
}

#[test]
fn one_byte_says_that_a_writer_multicasts_that_a_reader_is_relayed_and_that_either_keeps_all() {
    let page = |kind| {
        let qos = Qos { multicast: true, ..endpoint().qos };
        let endpoint = Endpoint { kind, qos, relayed: false, ..endpoint() };
        bytes_of(Body::Page(Page { number: 1, revision: 7, endpoints: vec![endpoint] }))
    };
    let flag = PAGE_PREFIX_BYTES + 7;
    for (kind, multicast, relayed) in
        [(EndpointKind::Writer, true, false), (EndpointKind::Reader, false, true)]
    {
        let mut bytes = page(kind);
        assert_eq!(bytes[flag], u8::from(multicast));
        bytes[flag] = 1;
        let Ok(Datagram { body: Body::Page(read), .. }) = Datagram::decode(&bytes) else { panic!("a page") };
        assert_eq!((read.endpoints[0].qos.multicast, read.endpoints[0].relayed), (multicast, relayed));
        assert!(!read.endpoints[0].qos.keep_all);
        bytes[flag] = 3;
        let Ok(Datagram { body: Body::Page(read), .. }) = Datagram::decode(&bytes) else { panic!("a page") };
        assert!(read.endpoints[0].qos.keep_all);
        assert_eq!((read.endpoints[0].qos.multicast, read.endpoints[0].relayed), (multicast, relayed));
        assert_eq!(bytes_of(Body::Page(read)), bytes);
        bytes[flag] = 4;
        assert_eq!(Datagram::decode(&bytes), Err(Malformed::Value));
    }
}

#[test]
fn a_hello_has_the_bytes_of_the_specification() {
    let hello = Hello {
        revision: 5,
        pages: 2,
        lifetime: Span::from_ms(3_500),
        port: 7411,
        new_here: true,
        host: 1,
        digest: 2,
        name: "fcu".into(),
    };
    let bytes = bytes_of(Body::Hello(hello));
    let mut wanted = b"NCTD\x01\x01\0\0".to_vec();
    wanted.extend([0xaa; 16]);
    wanted.extend([2, 0, 0, 0, 5, 0, 0, 0, 2, 0, 35, 0, 0xf3, 0x1c, 1, 3]);
    wanted.extend([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'f', b'c', b'u']);
    assert_eq!(bytes, wanted);
}

#[test]
fn every_kind_comes_back_as_it_went() {
    let hello = Hello {
        revision: 5,
        pages: 2,
        lifetime: Span::from_s(3),
        port: 7411,
        new_here: false,
        host: 1,
        digest: 2,
        name: "ä".into(),
    };
    let mut except = PageSet::EMPTY;
    except.insert(9);
    for body in [
        Body::Hello(hello),
        Body::Page(Page { number: 0, revision: 1, endpoints: vec![endpoint(), endpoint()] }),
        Body::Query { to: NodeId([1; 16]), since: 4, except },
        Body::Bye,
    ] {
        let bytes = bytes_of(body.clone());
        assert_eq!(Datagram::decode(&bytes).map(|datagram| datagram.body), Ok(body));
        let longer = [bytes.clone(), vec![0]].concat();
        assert_eq!(Datagram::decode(&longer), Err(Malformed::Length));
        for end in 0..bytes.len() {
            assert_eq!(Datagram::decode(&bytes[..end]), Err(Malformed::Length));
        }
    }
}

#[test]
fn impossible_values_are_refused() {
    let page = bytes_of(Body::Page(Page { number: 0, revision: 1, endpoints: vec![endpoint()] }));
    for (at, value) in
        [(5, 9), (6, 1), (29, 2), (32, 0), (40, 2), (41, 3), (42, 2), (43, 4), (76, 0), (80, 0), (84, 7)]
    {
        let mut bytes = page.clone();
        bytes[at] = value;
        assert_eq!(Datagram::decode(&bytes), Err(Malformed::Value), "byte {at}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_what_is_read_is_written_alike(
        kind in 0u8..6,
        rest in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = b"NCTD\x01".to_vec();
        bytes.extend([kind, 0, 0]);
        bytes.extend(rest);
        if let Ok(datagram) = Datagram::decode(&bytes) {
            let mut again = Vec::new();
            datagram.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}

#[test]
fn sender_and_domain_are_read_without_the_rest() {
    let mut bytes = Vec::new();
    Datagram { from: NodeId([7; 16]), domain: 0x0102_0304, body: Body::Bye }.encode(&mut bytes);
    assert_eq!((sender(&bytes), domain(&bytes)), (Some(NodeId([7; 16])), Some(0x0102_0304)));
    assert_eq!((sender(&bytes[..24]), domain(&bytes[..27])), (Some(NodeId([7; 16])), None));
    bytes[0] = b'X';
    assert_eq!((sender(&bytes), domain(&bytes)), (None, None));
}

#[test]
fn a_challenge_and_its_response_have_the_bytes_of_the_specification() {
    let mut bytes = Vec::new();
    let body = Body::PathChallenge { to: NodeId([b't'; 16]), number: 0x0807_0605_0403_0201 };
    Datagram { from: NodeId([b'f'; 16]), domain: 5, body: body.clone() }.encode(&mut bytes);
    assert_eq!(
        bytes,
        b"NCTD\x01\x05\0\0ffffffffffffffff\x05\0\0\0tttttttttttttttt\x01\x02\x03\x04\x05\x06\x07\x08"
    );
    assert_eq!(Datagram::decode(&bytes).unwrap().body, body);
}
