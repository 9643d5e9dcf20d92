//! Datagrams that were forged or recorded: what they elicit, and what they change.

use noctule_netsim::Random;
use noctule_prrt::datagram::{Datagram, Feedback, Fragment, Head, Load, Opening, Place, Service};
use noctule_prrt::{Arrival, Bound, Class, Link, LinkConfig, Local, Order, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

const WRITER: StreamId = StreamId(1);
const SESSION: u32 = 7;
const CLASS: Class =
    Class::DeadlineBound(Bound { deadline: Span::from_ms(100), loss_target: 1e-3, order: Order::Asap });

fn at(us: i64) -> Instant<Local> {
    Instant::from_ns(1_000_000_000 + us * 1_000)
}

fn link() -> Link {
    let mut link = Link::new(LinkConfig { session: SESSION, ..LinkConfig::default() }, at(0));
    link.expect(WRITER, 4096, CLASS);
    link
}

fn take(link: &mut Link, datagram: &[u8], now: Instant<Local>) -> u64 {
    let (arrival, mut delivered) =
        (Arrival { now, came: now, own_ns: now.ns(), peer_ns: Some(now.ns()), ecn: Default::default() }, 0);
    // What is malformed is counted.
    let _ = link.handle_datagram(datagram, arrival, &mut |_| delivered += 1);
    delivered
}

/// Everything that goes out by `until`. Gives its bytes.
fn drain(link: &mut Link, from: Instant<Local>, until: Instant<Local>) -> Vec<Vec<u8>> {
    let (mut sent, mut now) = (Vec::new(), from);
    loop {
        link.handle_timeout(now, &mut |_| {});
        let mut out = Vec::new();
        while link.poll_transmit(now, &mut out) {
            sent.push(std::mem::take(&mut out));
        }
        assert!(sent.len() < 100_000, "a link that always has something more");
        match link.poll_timeout() {
            Some(next) if next <= until => now = now.max(next),
            _ => return sent,
        }
    }
}

fn bytes(sent: &[Vec<u8>]) -> usize {
    sent.iter().map(Vec::len).sum()
}

/// The attacker has read what the other side, whose link is 9, sends.
fn encode(session: u32, next_packet: u64, (feedback, load): (Option<Feedback>, Option<Load<'_>>)) -> Vec<u8> {
    let opening = Opening { session, own_id: 9, other_id: 1, clock_ns: at(0).ns(), next_packet };
    let mut out = Vec::new();
    Datagram { head: Head::Long(opening), feedback, load }.encode(0, &mut out);
    out
}

/// A long header, after which short ones are understood.
fn opening() -> Vec<u8> {
    encode(SESSION, 0, (None, None))
}

/// The shortest datagram that is acknowledged: a sample without payload.
fn empty_sample(packet: u64, sequence: u64, source: Instant<Local>) -> Vec<u8> {
    let place = Place { packet, block: packet as u32, symbol: 0, symbols: 1, attempt: 0, ack_soon: true };
    let fragment = Fragment {
        writer: WRITER,
        total_bytes: 0,
        sequence,
        origin: Origin::exactly(source.ns()),
        index: 0,
        count: 1,
        service: Service::Bound(place),
        payload: &[],
    };
    let mut out = Vec::new();
    let load = Some(Load::Fragment(fragment));
    Datagram { head: Head::Short(LinkConfig::default().id), feedback: None, load }
        .encode(source.ns(), &mut out);
    out
}

fn feedback(session: u32, newest: u64, earlier: u64) -> Vec<u8> {
    let feedback = Feedback { newest, earlier, refused: 0, arrived_ns: 0, delay_ns: 0, marks: None };
    encode(session, 0, (Some(feedback), None))
}

fn publish(link: &mut Link, sequence: u64, now: Instant<Local>) {
    let (origin, age, payload) = (Origin::exactly(now.ns()), Span::ZERO, &[5; 1_000][..]);
    let _ =
        link.send(&Outgoing { writer: WRITER, sequence, origin, age, class: CLASS, depth: 1, payload }, now);
}

#[test]
fn a_rhythm_that_breaks_off_elicits_no_more_than_three_times_what_came() {
    // Two samples make a rhythm; each silence after them would be reported.
    for pause_us in [600, 1_000, 3_000] {
        let (mut link, mut came, mut went) = (link(), opening().len(), 0);
        take(&mut link, &opening(), at(0));
        for number in 0..2 {
            let now = at(number as i64 * pause_us);
            let datagram = empty_sample(number, number, now);
            came += datagram.len();
            take(&mut link, &datagram, now);
            let silence = if number == 0 { Span::from_us(pause_us - 1) } else { Span::from_s(1) };
            went += bytes(&drain(&mut link, now, now + silence));
            assert!(went <= 3 * came, "{pause_us} us: {came} bytes elicited {went}");
        }
        assert!(went > came, "{pause_us} us: {came} bytes elicited {went}");
        assert!(link.counters().feedback_withheld > 0, "{:?}", link.counters());
    }
}

#[test]
fn arbitrary_datagrams_elicit_no_more_than_three_times_their_size() {
    for seed in 0..50 {
        let (mut link, mut random) = (link(), Random::new(seed));
        let (mut came, mut went) = (opening().len(), 0);
        take(&mut link, &opening(), at(0));
        for step in 0..500 {
            let (number, now) = (random.bits() % 100, at(step * 10_000));
            let mut datagram = empty_sample(number, random.bits() % 50, now);
            if random.chance(0.5) {
                let place = random.bits() as usize % datagram.len();
                datagram[place] ^= random.bits() as u8;
            }
            came += datagram.len();
            take(&mut link, &datagram, now);
            went += bytes(&drain(&mut link, now, now + Span::from_us(9_999)));
            assert!(went <= 3 * came, "seed {seed}: {came} bytes elicited {went}");
        }
    }
}

#[test]
fn feedback_of_another_session_or_on_what_was_never_sent_changes_nothing() {
    let (mut link, mut undisturbed) = (link(), self::link());
    take(&mut link, &opening(), at(0));
    take(&mut undisturbed, &opening(), at(0));
    for sequence in 0..20 {
        let now = at(sequence as i64 * 5_000);
        let until = now + Span::from_us(4_999);
        for each in [&mut link, &mut undisturbed] {
            publish(each, sequence, now);
        }
        let mut sent = drain(&mut link, now, now);
        for forged in [
            feedback(SESSION + 1, 0, 0),
            feedback(SESSION, 1_000, u64::MAX >> 1),
            feedback(SESSION, 1 << 22, 0),
        ] {
            take(&mut link, &forged, now);
        }
        sent.extend(drain(&mut link, now, until));
        assert_eq!(sent, drain(&mut undisturbed, now, until), "sample {sequence}");
    }
    let counters = link.counters();
    assert_eq!((counters.other_session, counters.impossible_feedback, counters.lost_packets), (20, 40, 0));
    assert_eq!(link.round_trip(), None);
}

#[test]
fn forged_losses_cost_no_more_than_the_budget_of_extras() {
    let mut link = link();
    for sequence in 0..1_000 {
        let now = at(sequence as i64 * 5_000);
        publish(&mut link, sequence, now);
        let until = now + Span::from_us(4_999);
        let mut step = now;
        while step < until {
            let sent = drain(&mut link, step, step).len();
            // Of all numbers sent only the newest is acknowledged.
            let counters = link.counters();
            let newest = counters.bound_data + counters.bound_repeats + counters.bound_parity - 1;
            take(&mut link, &feedback(SESSION, newest, 0), step);
            assert!(sent < 200, "sample {sequence}");
            step += Span::from_us(250);
        }
    }
    let counters = link.counters();
    let extras = counters.bound_repeats + counters.bound_parity;
    assert!(extras <= 4 * counters.bound_data + 128, "{counters:?}");
}

#[test]
fn what_was_recorded_is_delivered_once_and_elicits_no_more_than_three_times_its_size() {
    let (mut sender, mut receiver) = (link(), link());
    let mut recorded = Vec::new();
    for sequence in 0..50 {
        let now = at(sequence as i64 * 5_000);
        publish(&mut sender, sequence, now);
        recorded.extend(drain(&mut sender, now, now + Span::from_us(4_999)));
    }
    let (mut delivered, mut came, mut went) = (0, 0, 0);
    for round in 0..4 {
        for (place, datagram) in recorded.iter().enumerate() {
            // The first round comes as it was sent; by the clocks' reckoning the others are late in the end.
            let now = at(round * 20_000 + place as i64 * 100);
            delivered += take(&mut receiver, datagram, now);
            came += datagram.len();
            went += bytes(&drain(&mut receiver, now, now + Span::from_us(99)));
            assert!(went <= 3 * came, "round {round}: {came} bytes elicited {went}");
        }
    }
    assert_eq!(delivered, 50);
    assert!(receiver.counters().duplicates > 50, "{:?}", receiver.counters());
}
