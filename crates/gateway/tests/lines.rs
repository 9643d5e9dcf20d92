//! A gateway and a client that is nothing but the bytes of `vectors/xrce/publish.txt`, over each kind of
//! line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use noctule::{Node, Subscriber};
use noctule_framing::{AGENT_ADDRESS, CLIENT_ADDRESS, Decoder, encode, encoded_bytes_max};
use noctule_gateway::Gateway;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

const CONVERSATION: &str = include_str!("../../../vectors/xrce/publish.txt");
/// Nothing takes so long unless it never comes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A way to an agent.
trait Wire {
    fn send(&mut self, message: &[u8]);
    fn receive(&mut self) -> Vec<u8>;
}

struct Udp(UdpSocket);

impl Udp {
    fn to(port: u16) -> Udp {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Udp(socket)
    }
}

impl Wire for Udp {
    fn send(&mut self, message: &[u8]) {
        self.0.send(message).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut buffer = [0; 1024];
        let length = self.0.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    }
}

/// A client that repeats what is not answered, as all do whose datagrams can be lost.
struct Persistent {
    udp: Udp,
    last: Vec<u8>,
}

impl Persistent {
    /// As often as real clients ask for a session.
    const TRIES: usize = 10;

    fn to(port: u16) -> Persistent {
        let udp = Udp::to(port);
        udp.0.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        Persistent { udp, last: Vec::new() }
    }
}

impl Wire for Persistent {
    fn send(&mut self, message: &[u8]) {
        self.last = message.to_vec();
        self.udp.send(message);
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut buffer = [0; 1024];
        for _ in 0..Self::TRIES {
            if let Ok(length) = self.udp.0.recv(&mut buffer) {
                return buffer[..length].to_vec();
            }
            self.udp.send(&self.last);
        }
        panic!("no answer to {} attempts", Self::TRIES);
    }
}

struct Tcp(TcpStream);

impl Wire for Tcp {
    fn send(&mut self, message: &[u8]) {
        let framed = [&(message.len() as u16).to_le_bytes()[..], message].concat();
        // In two parts, for a stream has no boundaries.
        self.0.write_all(&framed[..3]).unwrap();
        self.0.write_all(&framed[3..]).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut length = [0; 2];
        self.0.read_exact(&mut length).unwrap();
        let mut message = vec![0; u16::from_le_bytes(length).into()];
        self.0.read_exact(&mut message).unwrap();
        message
    }
}

/// The board's end of a pseudo-terminal; its link goes before it does.
struct Pty {
    link: PathBuf,
    board: OwnedFd,
    /// Without a process at the other end there is nothing to read from this one.
    _other: OwnedFd,
    decoder: Decoder,
    received: Vec<u8>,
}

impl Pty {
    /// Makes a pair, and `link` lead to the gateway's end.
    fn plugged_at(link: &Path) -> Pty {
        let board = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&board).unwrap();
        unlockpt(&board).unwrap();
        let name = ptsname(&board, Vec::new()).unwrap().into_string().unwrap();
        // Raw from the first byte on: what is echoed before the gateway sets it up would come back.
        let other = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut settings = rustix::termios::tcgetattr(&other).unwrap();
        settings.make_raw();
        rustix::termios::tcsetattr(&other, rustix::termios::OptionalActions::Now, &settings).unwrap();
        let _ = std::fs::remove_file(link);
        std::os::unix::fs::symlink(name, link).unwrap();
        let link = link.to_owned();
        Pty { link, board, _other: other, decoder: Decoder::new(1024), received: Vec::new() }
    }
}

impl Drop for Pty {
    /// The kernel gives the terminal's number to the next one of the host: to a link that still led there, the board of another test
    /// would be plugged in.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.link);
    }
}

impl Wire for Pty {
    fn send(&mut self, message: &[u8]) {
        let mut line = vec![0; encoded_bytes_max(message.len())];
        let length = encode(CLIENT_ADDRESS, AGENT_ADDRESS, message, &mut line).unwrap();
        // Noise first.
        rustix::io::write(&self.board, b"\x55\x7e\x01").unwrap();
        rustix::io::write(&self.board, &line[..length]).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        loop {
            let received = std::mem::take(&mut self.received);
            let mut rest = &received[..];
            let found = self.decoder.next_frame(&mut rest).map(|frame| {
                assert_eq!((frame.source, frame.destination), (AGENT_ADDRESS, CLIENT_ADDRESS));
                frame.payload.to_vec()
            });
            self.received = rest.to_vec();
            if let Some(message) = found {
                return message;
            }
            let timeout = Timespec { tv_sec: TIMEOUT.as_secs() as i64, tv_nsec: 0 };
            let count = poll(&mut [PollFd::new(&self.board, PollFlags::IN)], Some(&timeout)).unwrap();
            assert!(count > 0, "the gateway is silent");
            let mut buffer = [0; 512];
            let count = rustix::io::read(&self.board, &mut buffer).unwrap();
            self.received.extend_from_slice(&buffer[..count]);
        }
    }
}

fn bytes(words: &str) -> Vec<u8> {
    let words = words.split_whitespace().filter(|word| *word != "|");
    words.map(|word| u8::from_str_radix(word, 16).unwrap()).collect()
}

/// Plays the lines of the conversation that `is_wanted` lets through by number, from 0.
fn play(wire: &mut dyn Wire, is_wanted: impl Fn(usize) -> bool) {
    let messages = CONVERSATION.lines().filter(|line| line.starts_with(['<', '>'])).enumerate();
    for (number, line) in messages.filter(|(number, _)| is_wanted(*number)) {
        match line.split_at(1) {
            (">", words) => wire.send(&bytes(words)),
            (_, words) => assert_eq!(receive_answer(wire), bytes(words), "message {number}: {line}"),
        }
    }
}

/// The next message that is not a HEARTBEAT: a client that is slow, or was away, is asked by one which answers it has.
fn receive_answer(wire: &mut dyn Wire) -> Vec<u8> {
    let mut messages = std::iter::from_fn(|| Some(wire.receive()));
    messages.find(|message| message[4] != HEARTBEAT).unwrap()
}

/// A submessage of that name.
const HEARTBEAT: u8 = 11;

/// Messages of the conversation until the writer is there.
const CREATED: usize = 15;

/// Makes the writer, and waits until its samples would be read.
fn begin(wire: &mut dyn Wire, subscriber: &mut Subscriber) {
    play(wire, |number| number < CREATED);
    wait_until(subscriber, |publishers| publishers > 0);
}

fn wait_until(subscriber: &mut Subscriber, is_it: impl Fn(usize) -> bool) {
    let end = std::time::Instant::now() + TIMEOUT;
    while !is_it(subscriber.publishers()) {
        subscriber.wait(Some(Duration::from_millis(20)));
        assert!(std::time::Instant::now() < end, "{} publishers", subscriber.publishers());
    }
}

fn received(subscriber: &mut Subscriber) -> Vec<u8> {
    subscriber.receive(Some(TIMEOUT)).unwrap().expect("a sample").to_vec()
}

/// A node in a domain of its own, so that tests do not hear each other.
fn node(domain: u32) -> Arc<Node> {
    Arc::new(Node::builder("test").domain(domain).open().unwrap())
}

fn speaks_over(wire: &mut dyn Wire, node: &Node) {
    let mut subscriber = node.subscriber("/t").type_name("T", 0).open().unwrap();
    begin(wire, &mut subscriber);
    play(wire, |number| number >= CREATED);
    let expected = [[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [1, 2, 3, 4]];
    for body in expected {
        assert_eq!(received(&mut subscriber), [&[0, 1, 0, 0][..], &body].concat());
    }
}

#[test]
fn a_client_is_on_the_bus_over_udp() {
    let node = node(4101);
    let gateway = Gateway::builder().udp(0).attach(&node).unwrap();
    speaks_over(&mut Udp::to(gateway.ports()[0].1), &node);
}

#[test]
fn a_client_is_on_the_bus_over_tcp() {
    let node = node(4102);
    let gateway = Gateway::builder().tcp(0).attach(&node).unwrap();
    let stream = TcpStream::connect(("127.0.0.1", gateway.ports()[0].1)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    speaks_over(&mut Tcp(stream), &node);
}

#[test]
fn a_client_is_on_the_bus_over_a_serial_line_with_noise() {
    let node = node(4103);
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("board");
    let mut wire = Pty::plugged_at(&link);
    let _gateway = Gateway::builder().serial(&link, 921_600).attach(&node).unwrap();
    speaks_over(&mut wire, &node);
}

#[test]
fn a_board_that_is_unplugged_goes_on_where_it_was_when_it_is_plugged_in_again() {
    let node = node(4104);
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("board");
    let mut wire = Pty::plugged_at(&link);
    let gateway = Gateway::builder().serial(&link, 115_200).attach(&node).unwrap();
    let mut subscriber = node.subscriber("/t").open().unwrap();
    begin(&mut wire, &mut subscriber);
    for (round, is_soon_back) in [(0u8, true), (1, false), (2, true)] {
        drop(wire);
        if !is_soon_back {
            // Its writer leaves the bus, for the board may never be seen again.
            wait_until(&mut subscriber, |publishers| publishers == 0);
        }
        wire = Pty::plugged_at(&link);
        // The board knows nothing of this: it goes on with its session, here by a ping.
        wire.send(&bytes("81 00 00 00 02 01 08 00 00 0A FF FD 02 00 00 00"));
        assert_eq!(receive_answer(&mut wire)[12..14], [0, 1], "it has a session");
        if is_soon_back {
            assert_eq!(subscriber.publishers(), 1, "a loose cable costs no sample");
        } else {
            wait_until(&mut subscriber, |publishers| publishers == 1);
        }
        wire.send(&[&[0x81, 1, round, 0][..], &bytes("07 01 08 00 00 10 00 15 05 06 07"), &[round]].concat());
        assert_eq!(received(&mut subscriber), [0, 1, 0, 0, 5, 6, 7, round]);
    }
    let status = gateway.status();
    assert_eq!((status[0].clients.len(), status[0].clients[0].samples_in), (1, 3));
}

#[test]
fn garbage_and_a_flood_do_not_keep_another_client_from_the_bus() {
    let node = node(4105);
    let gateway = Gateway::builder().udp(0).attach(&node).unwrap();
    let port = gateway.ports()[0].1;
    let noisy = Udp::to(port);
    for number in 0..20_000u32 {
        let garbage = number.wrapping_mul(2_654_435_761).to_le_bytes();
        // Datagrams that the socket does not accept are lost, as they would be anywhere.
        let _ = noisy.0.send(&[&garbage[..], &[number as u8; 20][..(number % 20) as usize]].concat());
    }
    speaks_over(&mut Persistent::to(port), &node);
}

#[test]
fn clients_of_ipv6_are_on_the_bus() {
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this host has no IPv6");
        return;
    }
    let node = node(4107);
    let gateway = Gateway::builder().udp(0).tcp(0).attach(&node).unwrap();
    let port = |kind: &str| gateway.ports().iter().find(|(of, _)| *of == kind).unwrap().1;
    let socket = UdpSocket::bind("[::1]:0").unwrap();
    socket.connect(("::1", port("udp"))).unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    speaks_over(&mut Udp(socket), &node);
    let stream = TcpStream::connect(("::1", port("tcp"))).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    speaks_over(&mut Tcp(stream), &node);
}

#[test]
fn a_tcp_client_knows_at_once_that_the_gateway_went_and_is_served_by_the_next() {
    let node = node(4108);
    let mut port = 0;
    let mut before: Option<TcpStream> = None;
    for _ in 0..3 {
        // The same port each time, while connections of the gateway before are not forgotten yet.
        let gateway = Gateway::builder().tcp(port).attach(&node).unwrap();
        port = gateway.ports()[0].1;
        if let Some(mut old) = before.take() {
            let error = old.read(&mut [0; 8]).expect_err("a reset");
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        before = Some(stream.try_clone().unwrap());
        speaks_over(&mut Tcp(stream), &node);
    }
}

#[test]
fn a_client_that_asks_one_host_for_agents_is_answered() {
    let node = node(4109);
    let _gateway = Gateway::builder().udp(0).attach(&node).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket.send_to(&bytes("80 00 00 00 02 01 08 00 00 0B FF FD 02 00 00 00"), "127.0.0.1:7400").unwrap();
    let mut answer = [0; 128];
    let length = socket.recv(&mut answer).expect("an answer");
    // INFO for that request, and at its end one address: this host's.
    assert_eq!((answer[4], &answer[8..10]), (6, &[0, 0x0B][..]));
    assert!(answer[length - 8..length].windows(5).any(|part| part == [1, 127, 0, 0, 1]), "{answer:02x?}");
}

#[test]
fn a_sample_that_no_message_of_the_client_holds_is_named_with_topic_and_size() {
    let (boards, node) = (node(4110), node(4110));
    let gateway = Gateway::builder().udp(0).attach(&boards).unwrap();
    let mut wire = Udp::to(gateway.ports()[0].1);
    let conversation = include_str!("../../../vectors/xrce/subscribe.txt");
    let messages = conversation.lines().filter_map(|line| line.strip_prefix("> "));
    messages.take(8).for_each(|message| wire.send(&bytes(message)));
    let end = std::time::Instant::now() + TIMEOUT;
    let reader = loop {
        if let Some(known) = node.endpoints().into_iter().next() {
            break known.endpoint;
        }
        assert!(std::time::Instant::now() < end, "no reader");
        std::thread::park_timeout(Duration::from_millis(10));
    };
    let publisher = node.publisher(&reader.topic).type_name(&reader.type_name, 0);
    let publisher = publisher.format(noctule::Format::Cdr).reliability(noctule::Reliability::Reliable);
    let mut publisher = publisher.open().unwrap();
    let end = std::time::Instant::now() + TIMEOUT;
    let mut sample = vec![0; 12_000];
    sample[1] = 1;
    let notice = loop {
        publisher.publish(&sample).unwrap();
        match gateway.poll_notice() {
            Some(notice) if notice.contains("does not reach it") => break notice,
            _ => std::thread::park_timeout(Duration::from_millis(10)),
        }
        assert!(std::time::Instant::now() < end, "no notice");
    };
    assert!(notice.contains(&format!("a sample of topic {} with 12004 bytes", reader.topic)), "{notice}");
    // Once.
    (0..20).for_each(|_| publisher.publish(&sample).unwrap());
    assert!(std::iter::from_fn(|| gateway.poll_notice()).all(|notice| !notice.contains("does not reach")));
}
