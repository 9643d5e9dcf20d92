//! Small reliable samples that leave together in one datagram: what waits, for how long, and that none is lost by it.

use noctule_netsim::{Random, seeds};
use noctule_prrt::{Class, LinkConfig, StreamId};
use noctule_timebase::{Instant, Local, Span};

#[allow(dead_code)] // Samples of any length are not for this.
mod channel;

use channel::{Channel, Pair};

const WRITER: u32 = 100;
const ALL: u32 = u32::MAX;
const LIMIT: u32 = 1 << 20;

fn pair(seed: u64, channel: Channel, config: LinkConfig) -> Pair {
    let mut pair = Pair::new(seed, channel, config);
    for link in &mut pair.links {
        link.expect(StreamId(WRITER), LIMIT, Class::Reliable);
    }
    pair
}

/// No sample waits for the window.
fn wide() -> LinkConfig {
    LinkConfig { window_bytes_initial: 4 << 20, ..LinkConfig::default() }
}

/// Publishes samples of so many bytes at this interval, and gives when each was published.
fn publish(
    pair: &mut Pair,
    samples: u64,
    (bytes, interval): (usize, Span),
    depth: u32,
) -> Vec<Instant<Local>> {
    let publish = |sequence| {
        let at = pair.now;
        pair.send_payload(0, (WRITER, sequence), (true, depth), &vec![7; bytes]);
        pair.run(interval);
        at
    };
    (1..=samples).map(publish).collect()
}

/// All samples came, in order; gives the longest time that one took.
fn longest(pair: &Pair, published: &[Instant<Local>]) -> Span {
    let delivered = pair.sequences(1, WRITER);
    assert!(delivered.iter().copied().eq(1..=published.len() as u64), "{} delivered", delivered.len());
    let taken = pair.delivered[1].iter().zip(published).map(|(sample, at)| sample.at - *at);
    taken.max().unwrap_or(Span::ZERO)
}

#[test]
fn what_is_published_without_a_pause_leaves_together_and_a_tenth_of_a_millisecond_later_at_most() {
    let mut pair = pair(1, Channel::PERFECT, wide());
    let published = publish(&mut pair, 4_800, (64, Span::from_us(1)), ALL);
    pair.run(Span::from_ms(1));
    let longest = longest(&pair, &published);
    assert!(longest <= Channel::PERFECT.delay + Span::from_us(100), "{longest}");
    // Sixteen of 48 are exact about their time.
    let datagrams = pair.links[0].counters().sent_datagrams;
    assert!(datagrams < 4_800 * 2 / 3 + 300, "{datagrams} datagrams");
    assert_eq!(pair.links[0].counters().repeated, 0);
}

#[test]
fn what_is_published_with_pauses_leaves_at_once() {
    for (samples, interval) in [(2_000, Span::from_us(25)), (15, Span::from_us(5))] {
        let mut pair = pair(1, Channel::PERFECT, wide());
        let published = publish(&mut pair, samples, (64, interval), ALL);
        pair.run(Span::from_ms(1));
        assert_eq!(longest(&pair, &published), Channel::PERFECT.delay, "{samples} each {interval}");
    }
}

#[test]
fn a_link_gathers_from_the_second_sample_on_until_something_is_due() {
    let mut pair = pair(1, Channel::PERFECT, wide());
    for link in &mut pair.links {
        link.expect(StreamId(WRITER + 1), LIMIT, Class::BestEffort);
    }
    let mut gathered = Vec::new();
    for sequence in 1..=200 {
        pair.send_payload(0, (WRITER, sequence), (true, ALL), &[7; 64]);
        gathered.push(pair.links[0].is_gathering(pair.now));
        pair.run(Span::from_us(1));
    }
    let begins = gathered.iter().position(|gathers| *gathers).expect("it gathers");
    assert!(begins > 20 && gathered[begins..].iter().any(|gathers| !gathers), "{gathered:?}");
    let is_gathering = |pair: &Pair| pair.links[0].is_gathering(pair.now);
    pair.send_payload(0, (WRITER, 201), (true, ALL), &[7; 64]);
    pair.send_payload(0, (WRITER, 202), (true, ALL), &[7; 64]);
    pair.send_payload(0, (WRITER, 203), (true, ALL), &[7; 64]);
    assert!(is_gathering(&pair));
    pair.links[0].flush();
    assert!(!is_gathering(&pair), "no more will come");
    pair.run(Span::ZERO);
    for sequence in 204..=206 {
        pair.send_payload(0, (WRITER, sequence), (true, ALL), &[7; 64]);
    }
    assert!(is_gathering(&pair));
    let before = pair.links[0].counters().sent_datagrams;
    pair.send_payload(0, (WRITER + 1, 1), (false, ALL), &[7; 64]);
    assert!(!is_gathering(&pair), "another sample does not wait");
    assert!(pair.links[0].counters().sent_datagrams >= before + 2);
}

#[test]
fn what_waits_is_never_given_up_for_what_follows_it() {
    for depth in 1..12 {
        let mut pair = pair(1, Channel::PERFECT, wide());
        let published = publish(&mut pair, 1_000, (64, Span::from_us(1)), depth);
        pair.run(Span::from_ms(1));
        longest(&pair, &published);
        assert_eq!(pair.links[0].counters().given_up, 0, "depth {depth}");
    }
}

#[test]
fn samples_that_were_lost_together_arrive_in_order_each_once() {
    let bad = Channel {
        loss: 0.2,
        duplication: 0.05,
        wrong_length: 0.05,
        delay: Span::from_ms(1),
        jitter: Span::from_ms(2),
        ..Channel::PERFECT
    };
    for seed in seeds(1, 40) {
        let mut pair = pair(seed, bad, LinkConfig::default());
        let mut random = Random::for_part(seed, 1);
        let mut published = 0;
        while published < 1_500 {
            for _ in 0..random.bits() % 200 {
                published += 1;
                let payload = vec![7; (random.bits() % 200) as usize];
                pair.send_payload(0, (WRITER, published), (true, ALL), &payload);
                pair.run(Span::from_ns((random.bits() % 3_000) as i64));
            }
            pair.run(Span::from_us((random.bits() % 3_000) as i64));
        }
        pair.run(Span::from_s(20));
        let delivered = pair.sequences(1, WRITER);
        assert!(
            delivered.iter().copied().eq(1..=published),
            "seed {seed}: {} of {published}",
            delivered.len()
        );
        let counters = pair.links[0].counters();
        let datagrams = counters.sent_datagrams - counters.repeated;
        assert!(counters.repeated > 10 && datagrams < published, "seed {seed}: {counters:?}");
        assert_eq!(pair.links[0].held_bytes().0, 0, "seed {seed}: something is still queued");
    }
}

#[test]
fn samples_that_were_refused_together_come_when_they_are_expected() {
    let mut pair = Pair::new(1, Channel::PERFECT, LinkConfig::default());
    let published = publish(&mut pair, 300, (20, Span::from_us(1)), ALL);
    pair.run(Span::from_ms(200));
    assert!(pair.sequences(1, WRITER).is_empty() && pair.links[1].counters().unexpected > 0);
    pair.links[1].expect(StreamId(WRITER), LIMIT, Class::Reliable);
    pair.run(Span::from_s(1));
    longest(&pair, &published);
    assert_eq!(pair.links[0].held_bytes().0, 0);
}

#[test]
fn where_the_path_becomes_narrower_what_left_together_comes_by_itself() {
    let config = LinkConfig {
        datagram_bytes_initial: 8_000,
        datagram_bytes_max: 8_000,
        datagram_bytes_base: 1_200,
        ..LinkConfig::default()
    };
    let mut pair = pair(1, Channel::PERFECT, config);
    let mut published = publish(&mut pair, 16, (900, Span::from_us(10)), ALL);
    pair.run(Span::from_ms(10));
    pair.channel.mtu_bytes = 1_300;
    for sequence in 17..=400 {
        published.push(pair.now);
        pair.send_payload(0, (WRITER, sequence), (true, ALL), &[7; 900]);
        pair.run(Span::from_us(1));
    }
    assert!(pair.too_long[0] > 0, "several did not leave together");
    pair.run(Span::from_s(20));
    longest(&pair, &published);
}
