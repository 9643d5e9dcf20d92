//! Bytes of a sample on the wire beside its payload.

#![allow(clippy::unwrap_used)]

use noctule_prrt::{Arrival, Bound, Class, Link, LinkConfig, Local, Order, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

mod lossy;

use lossy::{Cell, Outcome, run};

/// A sequence number that a writer at 200 Hz reaches after four days, a clock that has run for as long.
const SEQUENCE: u64 = 1 << 26;
const CLOCK_NS: i64 = 1 << 59;
const WRITER: StreamId = StreamId(20);
const PAYLOAD: &[u8] = &[5; 32];

fn at(ms: i64) -> Instant<Local> {
    Instant::from_ns(CLOCK_NS + ms * 1_000_000)
}

/// The bytes in front of the payload of each sample of 40 s at 100 Hz.
fn header_bytes(class: Class) -> Vec<usize> {
    let mut links = [7, 8].map(|id| Link::new(LinkConfig { session: 3, id, ..LinkConfig::default() }, at(0)));
    links[1].expect(WRITER, 1_000, class);
    let mut headers = Vec::new();
    for step in 0..4_000 {
        let now = at(step * 10);
        let origin = Origin::exactly(now.ns() - 30_000);
        let (sequence, age) = (SEQUENCE + step as u64, Span::from_us(30));
        let sample = Outgoing { writer: WRITER, sequence, origin, age, class, depth: 8, payload: PAYLOAD };
        links[0].send(&sample, now).unwrap();
        for (from, after) in [(0, Span::ZERO), (1, Span::ZERO), (1, Span::from_ms(4)), (0, Span::from_ms(5))]
        {
            let (came, mut out) = (now + after, Vec::new());
            while links[from].poll_transmit(came, &mut out) {
                if from == 0 {
                    headers.push(out.len() - PAYLOAD.len());
                }
                let arrival = Arrival {
                    now: came,
                    came,
                    own_ns: came.ns(),
                    peer_ns: Some(came.ns()),
                    ecn: Default::default(),
                };
                links[1 - from].handle_datagram(&out, arrival, &mut |_| {}).unwrap();
                out.clear();
            }
        }
    }
    assert_eq!(links[1].counters().delivered, 4_000, "{:?}", links[1].counters());
    headers
}

#[test]
fn small_samples_have_headers_of_at_most_twenty_bytes() {
    let bound = Bound { deadline: Span::from_ms(60), loss_target: 1e-4, order: Order::Asap };
    for (class, most_bytes) in
        [(Class::BestEffort, 13), (Class::Reliable, 17), (Class::DeadlineBound(bound), 17)]
    {
        let headers = header_bytes(class);
        let short = headers.iter().filter(|bytes| **bytes <= most_bytes).count();
        println!(
            "{class:?}: {:?} B at first, {short} of {} have at most {most_bytes} B",
            headers[0],
            headers.len()
        );
        // In 40 s: an opening in 200 ms while nothing arrives, one a second otherwise.
        assert!(headers.len() - short <= 40_000 / 200 + 5, "{class:?}: {short} of {}", headers.len());
        assert!(headers.iter().all(|bytes| *bytes <= most_bytes + 27), "{class:?}");
    }
}

fn per_payload_byte(cell: &Cell, outcome: &Outcome) -> f64 {
    outcome.wire_bytes as f64 / (outcome.sent * cell.payload_bytes as u64) as f64
}

#[test]
fn over_a_clean_link_feedback_is_rare() {
    let cell = Cell { loss: 0.0, burst: 1.0, ..Cell::LOSSY };
    let outcome = run(cell, 10_000, 7);
    let (feedback, bytes) =
        (outcome.feedback as f64 / outcome.sent as f64, per_payload_byte(&cell, &outcome));
    println!("{feedback:.3} datagrams of feedback a sample, {bytes:.3} wire bytes a payload byte");
    assert_eq!(outcome.on_time, outcome.sent);
    assert!(feedback <= 0.3, "{feedback}");
    assert!(bytes <= 1.55, "{bytes}");
}

/// Both directions, IP and UDP counted: 2.64 with headers of 56 bytes.
#[test]
fn over_the_lossy_link_a_payload_byte_costs_at_most_one_point_eight() {
    let (mut missing, mut sent, mut wire_bytes, mut feedback) = (0, 0, 0, 0);
    for seed in 8..12 {
        let outcome = run(Cell::LOSSY, 40_000, seed);
        missing += outcome.sent - outcome.on_time;
        sent += outcome.sent;
        wire_bytes += outcome.wire_bytes;
        feedback += outcome.feedback;
    }
    let (residual, feedback) = (missing as f64 / sent as f64, feedback as f64 / sent as f64);
    let bytes = wire_bytes as f64 / (sent * Cell::LOSSY.payload_bytes as u64) as f64;
    println!(
        "{bytes:.3} wire bytes a payload byte, {feedback:.3} datagrams of feedback a sample, residual {residual:.1e}"
    );
    assert!(residual <= 1e-4, "{residual}");
    assert!(feedback <= 0.65, "{feedback}");
    assert!(bytes <= 1.8, "{bytes}");
}
