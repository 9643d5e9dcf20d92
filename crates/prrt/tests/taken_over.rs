//! A stream with a deadline that one link after another carries, in simulated time: what came by none of them is known.
#![allow(clippy::unwrap_used)] // tests

use noctule_netsim::{Random, seeds};
use noctule_prrt::{Arrival, Bound, Class, Link, LinkConfig, Local, Order, Origin, Outgoing, StreamId};
use noctule_timebase::{Instant, Span};

const WRITER: StreamId = StreamId(1);
const INTERVAL: Span = Span::from_ms(5);

/// Counts of a reader: samples, those missed before one of them, and the newest place.
#[derive(Debug, Default)]
struct Count {
    first: Option<u64>,
    delivered: u64,
    missed: u64,
    place: u64,
}

/// Sends samples `from..to` by a link of its own that loses three of ten datagrams; a sample is two of them now and then.
fn carry(
    random: &mut Random,
    order: Order,
    (from, to): (u64, u64),
    begin: Instant<Local>,
    count: &mut Count,
) {
    let bound = Bound { deadline: Span::from_ms(40), loss_target: 0.01, order };
    let class = Class::DeadlineBound(bound);
    let [mut sender, mut receiver] = [begin; 2].map(|now| Link::new(LinkConfig::default(), now));
    receiver.expect(WRITER, 10_000, class);
    let (mut now, mut sequence) = (begin, from);
    let mut is_first = true;
    let mut take = |sample: noctule_prrt::Delivered<'_>| {
        let between = match count.first {
            Some(_) => sample.place - count.place - 1,
            None => sample.missed,
        };
        count.first.get_or_insert(sample.place - sample.missed);
        // The first of a link says nothing of those before it; its place does.
        assert!(is_first || between == sample.missed, "{between} lie before {sample:?}");
        (count.delivered, count.missed) = (count.delivered + 1, count.missed + between);
        (count.place, is_first) = (sample.place, false);
    };
    // A millisecond at a time; when all are sent the link is at once no more.
    while sequence < to {
        if (now - begin).ns() % INTERVAL.ns() == 0 {
            let payload = vec![7; if random.chance(0.2) { 2_000 } else { 100 }];
            let origin = Origin::exactly(now.ns());
            let (age, depth) = (Span::ZERO, 8);
            let sample = Outgoing { writer: WRITER, sequence, origin, age, class, depth, payload: &payload };
            sender.send(&sample, now).unwrap();
            sequence += 1;
        }
        let arrival = |now: Instant<Local>| Arrival {
            now,
            came: now,
            own_ns: now.ns(),
            peer_ns: Some(now.ns()),
            ecn: Default::default(),
        };
        let mut datagram = Vec::new();
        while sender.poll_transmit(now, &mut datagram) {
            if !random.chance(0.3) {
                receiver.handle_datagram(&datagram, arrival(now), &mut take).unwrap();
            }
            datagram.clear();
        }
        receiver.handle_timeout(now, &mut take);
        while receiver.poll_transmit(now, &mut datagram) {
            sender.handle_datagram(&datagram, arrival(now), &mut |_| {}).unwrap();
            datagram.clear();
        }
        now += Span::from_ms(1);
    }
}

#[test]
fn what_came_by_neither_of_two_links_lies_between_their_places() {
    for seed in seeds(0, 200) {
        let mut random = Random::new(seed);
        let order = if seed % 2 == 0 { Order::Asap } else { Order::InOrder };
        let mut count = Count::default();
        let begin = Instant::from_ns(1_000_000_000);
        carry(&mut random, order, (1, 200), begin, &mut count);
        // Nothing is carried for a while; then another link.
        carry(&mut random, order, (300, 500), begin + Span::from_s(2), &mut count);
        let first = count.first.unwrap();
        assert_eq!(count.delivered + count.missed, count.place + 1 - first, "seed {seed}: {count:?}");
        assert!(first <= 10 && (480..500).contains(&count.place), "seed {seed}: {count:?}");
        assert!(count.missed >= 100, "seed {seed}: {count:?}");
    }
}
