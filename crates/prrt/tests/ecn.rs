//! Queues that mark datagrams (ECN, RFC 3168) in place of dropping them, and paths and receivers that do not tell the truth of marks.
#![allow(clippy::unwrap_used)] // hosts of a test

use noctule_netsim::network::{Address, Destination, Endpoint, Transmit};
use noctule_netsim::{LinkSpec, Network};
use noctule_prrt::{
    Arrival, Bound, Class, Ecn, Link, LinkConfig, LinkCounters, Local, Order, Origin, Outgoing, StreamId,
};
use noctule_timebase::{Instant, Span};

const WRITER: StreamId = StreamId(1);
/// IPv4 and UDP; the second byte is the octet of RFC 2474.
const HEADERS_BYTES: usize = 28;
const IPV4: u8 = 0x45;

/// Bytes of a sample, the interval at which it is published or none if as much as is taken, and its class.
type Offer = (usize, Option<Span>, Class);
/// What becomes of the two bits on the way, besides marks of the queue.
type Way = fn(Ecn) -> Ecn;

/// One end.
struct Host {
    link: Link,
    offer: Option<Offer>,
    way: Way,
    published: u64,
    next: Instant<Local>,
    until: Instant<Local>,
    delivered_bytes: u64,
    latencies: Vec<Span>,
    transits: Vec<Span>,
}

impl Host {
    fn new(class: Class, offer: Option<Offer>, until: Instant<Local>, way: Way) -> Host {
        let now = Instant::from_ns(0);
        let mut link = Link::new(LinkConfig::default(), now);
        link.expect(WRITER, 1 << 24, class);
        let (latencies, transits) = (Vec::new(), Vec::new());
        Host { link, offer, way, published: 0, next: now, until, delivered_bytes: 0, latencies, transits }
    }

    fn publish(&mut self, now: Instant<Local>) {
        let Some((bytes, interval, class)) = self.offer.filter(|_| now < self.until) else { return };
        loop {
            let is_due = match interval {
                None => self.link.held_bytes().0 < 2_000_000,
                Some(_) => self.next <= now,
            };
            if !is_due {
                return;
            }
            self.published += 1;
            self.next += interval.unwrap_or(Span::ZERO);
            let sample = Outgoing {
                writer: WRITER,
                sequence: self.published,
                origin: Origin::exactly(now.ns()),
                age: Span::ZERO,
                class,
                depth: u32::MAX,
                payload: &vec![3; bytes],
            };
            self.link.send(&sample, now).unwrap();
        }
    }
}

impl Endpoint for Host {
    type Clock = Local;

    fn handle_datagram(&mut self, now: Instant<Local>, _: Address, bytes: &[u8]) {
        let left = i64::from_be_bytes(bytes[20..HEADERS_BYTES].try_into().unwrap());
        self.transits.push(now - Instant::from_ns(left));
        let ecn = (self.way)(Ecn::from_bits(bytes[1]));
        let arrival = Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()), ecn };
        let (latencies, delivered) = (&mut self.latencies, &mut self.delivered_bytes);
        let taken = self.link.handle_datagram(&bytes[HEADERS_BYTES..], arrival, &mut |sample| {
            latencies.push(now - Instant::from_ns(sample.origin.source_time_ns));
            *delivered += sample.payload.len() as u64;
        });
        assert_eq!(taken, Ok(()));
    }

    fn handle_timeout(&mut self, now: Instant<Local>) {
        self.link.handle_timeout(now, &mut |_| {});
    }

    fn poll_transmit(&mut self, now: Instant<Local>) -> Option<Transmit> {
        self.publish(now);
        let mut bytes = vec![0; HEADERS_BYTES - 8];
        bytes.extend_from_slice(&now.ns().to_be_bytes());
        let to = Destination::One(Address(u32::from(self.offer.is_some())));
        if !self.link.poll_transmit(now, &mut bytes) {
            return None;
        }
        (bytes[0], bytes[1]) = (IPV4, self.link.ecn().bits());
        Some(Transmit { to, bytes })
    }

    fn poll_timeout(&self) -> Option<Instant<Local>> {
        let is_paced = matches!(self.offer, Some((_, Some(_), _)));
        let sample = Some(self.next).filter(|at| is_paced && *at < self.until);
        self.link.poll_timeout().into_iter().chain(sample).min()
    }
}

#[derive(Debug)]
struct Outcome {
    mbps: f64,
    /// Dropped by the queue.
    dropped: u64,
    transit_p99: Span,
    on_time: f64,
    /// What the sender's datagrams carry at the end.
    ecn: Ecn,
    counters: LinkCounters,
}

/// Publishes for ten seconds; `deadline` only counts what is in time.
fn run(line: &str, offer: Offer, way: Way, deadline: Span) -> Outcome {
    let (spec, until) = (line.parse::<LinkSpec>().unwrap(), Instant::from_ns(10_000_000_000));
    let sender = Host::new(offer.2, Some(offer), until, |ecn| ecn);
    let receiver = Host::new(offer.2, None, until, way);
    let mut network = Network::new(vec![sender, receiver], &spec, 1);
    network.run_for(Span::from_s(11)).unwrap();
    let dropped = network.link(0).transmitter().queue_full;
    let (ecn, counters) = (network.endpoint(0).link.ecn(), network.endpoint(0).link.counters());
    let published = network.endpoint(0).published;
    let receiver = network.endpoint(1);
    receiver.transits.sort_unstable();
    let transit_p99 = receiver.transits[receiver.transits.len() * 99 / 100];
    let on_time = receiver.latencies.iter().filter(|latency| **latency <= deadline).count();
    let (mbps, on_time) = (receiver.delivered_bytes as f64 * 0.8e-6, on_time as f64 / published as f64);
    Outcome { mbps, dropped, transit_p99, on_time, ecn, counters }
}

const ELASTIC: Offer = (10_000, None, Class::Reliable);

#[test]
fn a_queue_that_marks_is_shorter_and_loses_nothing() {
    for (rate_mbit, queue_ms, mark_us) in [(100, 10, 5_000), (20, 10, 5_000), (20, 100, 5_000)] {
        let line = format!("rate={rate_mbit}mbit delay=10ms queue={queue_ms}ms");
        let dropping = run(&line, ELASTIC, |ecn| ecn, Span::ZERO);
        let marking = run(&format!("{line} mark={mark_us}us"), ELASTIC, |ecn| ecn, Span::ZERO);
        println!("{queue_ms} ms\n  {dropping:?}\n  {marking:?}");
        assert!(
            marking.counters.marked_packets > 0 && dropping.counters.marked_packets == 0,
            "{queue_ms} ms"
        );
        assert_eq!(marking.ecn, Ecn::Capable0, "{queue_ms} ms");
        // The start is faster than any sign can come back.
        assert!(marking.dropped <= dropping.dropped / 4, "{queue_ms} ms: {}", marking.dropped);
        assert!(marking.transit_p99 <= dropping.transit_p99, "{queue_ms} ms: {:?}", marking.transit_p99);
        assert!(marking.mbps > 0.9 * dropping.mbps, "{queue_ms} ms: {}", marking.mbps);
    }
}

#[test]
fn a_deadline_bound_stream_of_more_than_the_line_carries_is_limited_by_marks() {
    let class =
        Class::DeadlineBound(Bound { deadline: Span::from_ms(80), loss_target: 1e-4, order: Order::Asap });
    let offer = (1_200, Some(Span::from_us(1_000)), class);
    let line = "rate=8mbit delay=10ms queue=1s";
    let dropping = run(line, offer, |ecn| ecn, Span::from_ms(80));
    let marking = run(&format!("{line} mark=5ms"), offer, |ecn| ecn, Span::from_ms(80));
    println!("{dropping:?}\n{marking:?}");
    assert!(marking.counters.marked_packets > 0);
    assert!(marking.on_time >= dropping.on_time, "{} and {}", marking.on_time, dropping.on_time);
}

#[test]
fn a_path_that_clears_or_sets_or_changes_the_bits_ends_their_use_and_nothing_else() {
    let line = "rate=20mbit delay=10ms queue=20ms mark=2ms";
    let plain = run("rate=20mbit delay=10ms queue=20ms", ELASTIC, |ecn| ecn, Span::ZERO);
    let ways: [(&str, Way); 3] =
        [("cleared", |_| Ecn::NotCapable), ("all marked", |_| Ecn::Marked), ("changed", |_| Ecn::Capable1)];
    for (name, way) in ways {
        let outcome = run(line, ELASTIC, way, Span::ZERO);
        println!("{name}: {outcome:?}");
        assert_eq!(outcome.ecn, Ecn::NotCapable, "{name}");
        assert!(outcome.mbps > 0.95 * plain.mbps, "{name}: {} of {}", outcome.mbps, plain.mbps);
    }
}

#[test]
fn a_receiver_that_conceals_marks_gains_no_longer_queue_than_without_them() {
    let plain = run("rate=20mbit delay=10ms queue=100ms", ELASTIC, |ecn| ecn, Span::ZERO);
    let conceals = |ecn| if ecn == Ecn::Marked { Ecn::Capable0 } else { ecn };
    let lying = run("rate=20mbit delay=10ms queue=100ms mark=2ms", ELASTIC, conceals, Span::ZERO);
    assert_eq!(lying.counters.marked_packets, 0);
    assert!(lying.transit_p99 <= plain.transit_p99 + Span::from_ms(1), "{:?}", lying.transit_p99);
}
