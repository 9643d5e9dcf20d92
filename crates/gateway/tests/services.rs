//! Requesters and repliers of boards are clients and servers of the bus: a client that is nothing but bytes, over UDP.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noctule::Node;
use noctule::request::{RawClient, RawServer, ServiceTypes, TypeRef};
use noctule_gateway::Gateway;

/// Nothing takes so long unless it never comes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// DATA to a client.
const DATA: u8 = 9;
/// `SampleIdentity`.
const IDENTITY_BYTES: usize = 24;
const LITTLE: [u8; 4] = [0, 1, 0, 0];

/// A client with one session, number 0x81, and the session's reliable stream.
struct Board {
    socket: UdpSocket,
    sequence: u8,
}

impl Board {
    /// Begins a session under a key of its own, with a participant.
    fn new(port: u16, key: u8) -> Board {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut hello = bytes("80 00 00 00 00 01 10 00 58 52 43 45 01 00 01 0F AA AA BB BB 81 00 FC 01");
        hello[16] = key;
        socket.send(&hello).unwrap();
        let mut board = Board { socket, sequence: 0 };
        board.says("01 07 10 00 00 0A 00 11 01 03 00 00 02 00 00 00 00 00 00 00", &[]);
        board
    }

    /// A submessage on the reliable stream.
    fn says(&mut self, submessage: &str, rest: &[u8]) {
        let mut message = vec![0x81, 0x80, self.sequence, 0];
        message.extend(bytes(submessage));
        message.extend_from_slice(rest);
        self.sequence += 1;
        self.socket.send(&message).unwrap();
    }

    /// Makes the requester (kind 7) or the replier (8) 0x001 of service "s" with types "A" and "B", and asks for all that comes to it.
    fn service(&mut self, kind: u8) {
        let mut service =
            bytes("1A 00 00 00 02 00 00 00 73 00 00 00 02 00 00 00 41 00 00 00 02 00 00 00 42 00 00 00");
        service.extend(bytes("00 00 00 11"));
        self.says(&format!("01 07 28 00 00 0B 00 1{kind} 0{kind} 03 00 00"), &service);
        self.says(&format!("08 01 10 00 00 20 00 1{kind} 01 00 00 01 FF FF 00 00 00 00 00 00"), &[]);
    }

    /// Payload of the next sample to the client, behind the number of its READ_DATA and its object.
    fn hears(&mut self) -> Vec<u8> {
        let end = Instant::now() + TIMEOUT;
        let mut buffer = [0; 1024];
        while Instant::now() < end {
            let length = self.socket.recv(&mut buffer).expect("a message of the agent");
            if buffer[4] == DATA {
                return buffer[12..length].to_vec();
            }
        }
        panic!("no sample to the client");
    }

    /// Asks, under the number 0x33.
    fn asks(&mut self, request: &[u8]) {
        let length = 4 + request.len() as u8;
        self.says(&format!("07 01 {length:02X} 00 00 33 00 17"), request);
    }

    /// Answers the request that came with this identity.
    fn replies(&mut self, identity: &[u8], reply: &[u8]) {
        let length = 4 + identity.len() as u8 + reply.len() as u8;
        self.says(&format!("07 01 {length:02X} 00 00 34 00 18"), &[identity, reply].concat());
    }

    /// Serves one request: the reply is the request reversed.
    fn serves(&mut self) {
        let request = self.hears();
        let (identity, request) = request.split_at(IDENTITY_BYTES);
        let reply: Vec<u8> = request.iter().rev().copied().collect();
        self.replies(identity, &reply);
    }
}

fn bytes(words: &str) -> Vec<u8> {
    words.split_whitespace().map(|word| u8::from_str_radix(word, 16).unwrap()).collect()
}

fn types() -> ServiceTypes {
    let of = |name: &str| TypeRef { name: name.to_owned(), hash: 0 };
    ServiceTypes { request: of("A"), response: of("B") }
}

/// A node in a domain of its own, so that tests do not hear each other.
fn node(domain: u32) -> Arc<Node> {
    Arc::new(Node::builder("test").domain(domain).open().unwrap())
}

fn client(node: &Node) -> RawClient {
    let mut client = node.raw_client("s", types()).deadline(TIMEOUT).open().unwrap();
    assert!(client.wait_for_server(TIMEOUT).unwrap(), "no server");
    client
}

/// Answers the next request with its bytes reversed.
fn serve(server: &mut RawServer) {
    let request = server.receive(Some(TIMEOUT)).unwrap().expect("a request");
    let mut reply = LITTLE.to_vec();
    reply.extend(request.bytes()[LITTLE.len()..].iter().rev());
    assert_eq!(request.bytes()[..LITTLE.len()], LITTLE);
    server.reply(request.id(), &reply).unwrap();
}

#[test]
fn a_client_of_the_bus_is_answered_by_a_board() {
    let (boards, node) = (node(4121), node(4121));
    let gateway = Gateway::builder().udp(0).attach(&boards).unwrap();
    let mut board = Board::new(gateway.ports()[0].1, 1);
    board.service(8);
    let mut client = client(&node);
    for value in [[1, 2, 3, 4], [5, 6, 7, 8]] {
        let call = client.start(&[LITTLE, value].concat(), None).unwrap();
        board.serves();
        let mut expected = value;
        expected.reverse();
        assert_eq!(client.wait_for(call).unwrap().bytes(), [LITTLE, expected].concat());
    }
    // A reply without a pending request is counted, and reported once.
    board.replies(&[0; IDENTITY_BYTES], &[1]);
    let end = Instant::now() + TIMEOUT;
    let mut notices = Vec::new();
    // It is counted before it is reported.
    while !notices.iter().any(|notice: &String| notice.contains("service s: ")) {
        assert!(Instant::now() < end, "{notices:?}");
        std::thread::park_timeout(Duration::from_millis(10));
        notices.extend(std::iter::from_fn(|| gateway.poll_notice()));
    }
    assert_eq!(gateway.status()[0].unanswered, 1);
}

#[test]
fn a_board_asks_a_server_of_the_bus() {
    let (boards, node) = (node(4122), node(4122));
    let gateway = Gateway::builder().udp(0).attach(&boards).unwrap();
    let mut board = Board::new(gateway.ports()[0].1, 1);
    let mut server = node.raw_server("s", types()).open().unwrap();
    board.service(7);
    board.asks(&[9, 8, 7, 6]);
    serve(&mut server);
    // The number of the request and the requester, then the reply.
    assert_eq!(board.hears(), [0, 0x33, 0, 0x17, 6, 7, 8, 9]);
}

#[test]
fn a_board_asks_a_board_and_a_server_that_goes_is_named() {
    let boards = node(4123);
    let gateway = Gateway::builder().udp(0).attach(&boards).unwrap();
    let port = gateway.ports()[0].1;
    let (mut asking, mut serving) = (Board::new(port, 1), Board::new(port, 2));
    serving.service(8);
    asking.service(7);
    asking.asks(&[9, 8, 7, 6]);
    serving.serves();
    assert_eq!(asking.hears(), [0, 0x33, 0, 0x17, 6, 7, 8, 9]);
    // The next request is with the replier when its board deletes it.
    asking.asks(&[1, 2, 3, 4]);
    serving.hears();
    serving.says("03 01 04 00 00 0C 00 18", &[]);
    let end = Instant::now() + TIMEOUT;
    let notice = loop {
        match gateway.poll_notice() {
            Some(notice) if notice.contains("has no reply") => break notice,
            Some(_) => {}
            None => std::thread::park_timeout(Duration::from_millis(10)),
        }
        assert!(Instant::now() < end, "no notice");
    };
    assert!(notice.contains("service s: a client's request has no reply: "), "{notice}");
    assert_eq!(gateway.status()[0].unanswered, 1);
}

#[test]
fn fifty_boards_that_ask_a_board_at_once_are_all_answered() {
    let boards = node(4124);
    let gateway = Gateway::builder().udp(0).attach(&boards).unwrap();
    let port = gateway.ports()[0].1;
    let mut serving = Board::new(port, 200);
    serving.service(8);
    let mut asking: Vec<Board> = (1..=50).map(|key| Board::new(port, key)).collect();
    asking.iter_mut().for_each(|board| board.service(7));
    for (number, board) in (0..).zip(&mut asking) {
        board.asks(&[number, 1, 2, 3]);
    }
    asking.iter().for_each(|_| serving.serves());
    for (number, board) in (0..).zip(&mut asking) {
        assert_eq!(board.hears(), [0, 0x33, 0, 0x17, 3, 2, 1, number]);
    }
    let status = &gateway.status()[0];
    assert_eq!((status.counters.replaced, status.unanswered, status.missed), (0, 0, 0), "{status:?}");
}
