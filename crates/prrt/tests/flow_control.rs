//! A reader that takes its time holds up its writer, loses nothing, and holds up no other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use noctule_prrt::{Class, LinkConfig, StreamId};
use noctule_timebase::{Instant, Span};

#[allow(dead_code)] // not every test uses all of it
mod channel;

use channel::{Channel, Pair};

const ROWS: u32 = 100;
const BESIDE: u32 = 101;
const WINDOW: u32 = 16;
const STEP: Span = Span::from_ms(1);
const BAD: Channel = Channel {
    loss: 0.1,
    duplication: 0.05,
    delay: Span::from_ms(3),
    jitter: Span::from_ms(2),
    ..Channel::PERFECT
};

/// Side 0 publishes whenever there is room; side 1 keeps all of it until its reader reads.
struct Topic {
    pair: Pair,
    row: Vec<u8>,
    published: u64,
    read: u64,
    again_at: u32,
}

impl Topic {
    fn new(seed: u64, channel: Channel, row_bytes: usize) -> Topic {
        let mut pair = Pair::new(seed, channel, LinkConfig::default());
        pair.links[1].expect(StreamId(ROWS), 1 << 20, Class::Reliable);
        pair.links[1].expect(StreamId(BESIDE), 1 << 20, Class::Reliable);
        pair.links[1].grant(StreamId(ROWS), Some((WINDOW, WINDOW)));
        Topic { pair, row: vec![7; row_bytes], published: 0, read: 0, again_at: 0 }
    }

    fn unread(&self) -> u32 {
        (self.pair.sequences(1, ROWS).len() as u64 - self.read) as u32
    }

    fn grant(&mut self) {
        let room = WINDOW.checked_sub(self.unread()).expect("never more than there is room for");
        self.again_at = self.pair.links[1].grant(StreamId(ROWS), Some((room, WINDOW)));
    }

    /// A millisecond, in which so many are read.
    fn step(&mut self, reads: u32) {
        while self.pair.links[0].has_room(StreamId(ROWS), self.row.len(), WINDOW) {
            self.published += 1;
            self.pair.send_payload(0, (ROWS, self.published), (true, WINDOW), &self.row);
        }
        let before = self.unread();
        self.pair.run(STEP);
        if self.unread() != before {
            self.grant();
        }
        self.read += u64::from(reads.min(self.unread()));
        if reads > 0 && WINDOW - self.unread() >= self.again_at {
            self.grant();
        }
    }

    fn sequences_are_whole(&self, seed: u64) {
        let sequences = self.pair.sequences(1, ROWS);
        let wanted: Vec<u64> = (1..=sequences.len() as u64).collect();
        assert_eq!(sequences, wanted, "seed {seed}");
        assert_eq!(self.pair.links[0].counters().given_up, 0, "seed {seed}");
    }
}

#[test]
fn a_slow_reader_gets_every_sample_and_never_more_than_it_has_room_for() {
    for (seed, channel) in (0..12).flat_map(|seed| [(seed, Channel::PERFECT), (seed, BAD)]) {
        let mut topic = Topic::new(seed, channel, if seed % 2 == 0 { 64 } else { 6_000 });
        for ms in 0..3_000 {
            topic.step(u32::from(ms % 5 == 0));
        }
        topic.sequences_are_whole(seed);
        // 600 times; what it waited for is the reader and no question.
        assert!(topic.read >= 560, "seed {seed}: {} read", topic.read);
        // Besides those that are not acknowledged there are those that wait for one that was lost.
        let on_their_way = topic.published - topic.pair.sequences(1, ROWS).len() as u64;
        assert!(on_their_way <= 2 * u64::from(WINDOW), "seed {seed}: {on_their_way}");
    }
}

#[test]
fn while_it_reads_nothing_others_go_on_and_the_line_is_quiet() {
    for (seed, channel) in (0..6).flat_map(|seed| [(seed, Channel::PERFECT), (seed, BAD)]) {
        let mut topic = Topic::new(seed, channel, 6_000);
        (0..100).for_each(|_| topic.step(1));
        let begin = topic.pair.now;
        for number in 1..=200 {
            topic.pair.send_payload(0, (BESIDE, number), (true, 8), &[1; 200]);
            topic.step(0);
        }
        (0..200).for_each(|_| topic.step(0));
        let beside: Vec<Instant<_>> =
            topic.pair.delivered[1].iter().filter(|it| it.writer == BESIDE).map(|it| it.at).collect();
        assert_eq!(beside.len(), 200, "seed {seed}");
        let late = beside.iter().zip(0..).map(|(at, ms)| *at - begin - Span::from_ms(ms)).max().unwrap();
        assert!(late < Span::from_ms(150), "seed {seed}: {late:?}");

        let sent =
            |topic: &Topic| topic.pair.links.iter().map(|link| link.counters().sent_datagrams).sum::<u64>();
        let (before, published) = (sent(&topic), topic.published);
        assert_eq!(topic.pair.links[0].poll_held_up(Span::from_s(5), topic.pair.now), None);
        (0..10_000).for_each(|_| topic.step(0));
        let in_ten_seconds = sent(&topic) - before;
        // Questions five times a second, answers, and openings of both sides.
        assert!(in_ten_seconds < 250, "seed {seed}: {in_ten_seconds} datagrams while nothing is read");
        assert_eq!(topic.published, published, "seed {seed}: it was held up");
        let held_up = [(); 2].map(|()| topic.pair.links[0].poll_held_up(Span::from_s(5), topic.pair.now));
        assert_eq!(held_up, [Some(StreamId(ROWS)), None], "seed {seed}");
        assert!(topic.pair.held_bytes_max.0 < 40 * 6_300, "seed {seed}: {:?}", topic.pair.held_bytes_max);

        let read = topic.read;
        (0..500).for_each(|_| topic.step(1));
        // 16 samples a round trip are all that a bad line can have on its way.
        let least = if channel.loss > 0.0 { 150 } else { 490 };
        assert!(topic.read - read >= least, "seed {seed}: {} of 500 read after the rest", topic.read - read);
        topic.sequences_are_whole(seed);
    }
}

#[test]
fn a_reader_that_reads_at_once_gets_as_much_as_without_a_limit() {
    let arrived = |is_limited: bool| {
        let mut topic = Topic::new(1, Channel { delay: Span::from_us(100), ..Channel::PERFECT }, 1_000);
        if !is_limited {
            topic.pair.links[1].grant(StreamId(ROWS), None);
        }
        for _ in 0..2_000 {
            topic.published += 1;
            topic.pair.send_payload(0, (ROWS, topic.published), (true, WINDOW), &topic.row);
            topic.pair.run(STEP);
            topic.read = topic.pair.sequences(1, ROWS).len() as u64;
            if is_limited {
                topic.grant();
            }
        }
        let counters = topic.pair.links[1].counters();
        (topic.read, counters.beyond_limit, counters.sent_datagrams)
    };
    let ((with, beyond, sent), (without, _, sent_without)) = (arrived(true), arrived(false));
    assert_eq!((with, without, beyond), (2_000, 2_000, 0));
    assert!(sent - sent_without <= 2_000 / (u64::from(WINDOW) / 4) + 2, "{sent} beside {sent_without}");
}

#[test]
fn a_writer_of_which_samples_give_way_goes_on_with_the_newest() {
    let mut topic = Topic::new(1, BAD, 1_000);
    for _ in 0..400 {
        topic.published += 1;
        topic.pair.send_payload(0, (ROWS, topic.published), (true, 4), &topic.row);
        topic.pair.run(STEP);
        topic.grant();
    }
    let first = topic.pair.sequences(1, ROWS);
    assert_eq!(first.len() as u32, WINDOW, "as many as there is room for");
    topic.read = first.len() as u64;
    topic.grant();
    topic.pair.run(Span::from_s(1));
    let then = topic.pair.sequences(1, ROWS);
    assert_eq!(then[first.len()..], [397, 398, 399, 400]);
    let missed: u64 = topic.pair.delivered[1].iter().map(|sample| sample.missed).sum();
    assert_eq!((missed + then.len() as u64, topic.pair.links[0].counters().given_up), (400, missed));
}

#[test]
fn a_reader_that_goes_and_one_that_comes_leave_no_limit_behind() {
    let mut topic = Topic::new(3, BAD, 500);
    (0..200).for_each(|_| topic.step(0));
    assert_eq!(topic.unread(), WINDOW);
    // It goes, and another of its node stays that keeps the last.
    topic.pair.links[1].grant(StreamId(ROWS), None);
    topic.pair.run(Span::from_s(1));
    assert_eq!(topic.pair.sequences(1, ROWS).len() as u64, topic.published);
    // All go, and one comes back: the writer begins where it is.
    topic.pair.links[1].forget(StreamId(ROWS));
    topic.pair.links[0].stop(StreamId(ROWS));
    topic.pair.run(Span::from_ms(20));
    topic.pair.links[1].expect(StreamId(ROWS), 1 << 20, Class::Reliable);
    (topic.read, topic.again_at) = (topic.pair.sequences(1, ROWS).len() as u64, 0);
    topic.grant();
    let before = topic.read;
    (0..500).for_each(|_| topic.step(1));
    assert!(topic.read > before + 150, "{} of 500", topic.read - before);
}
