//! What becomes of a block under a schedule of extras: exact probabilities, by a Markov chain.
//!
//! # Problem
//!
//! Both directions lose packets in bursts, what the sender knows is a round trip old, and an extra that
//! follows closely upon a lost packet is lost with it. Formulas for independent losses miss all three.
//!
//! # Approach
//!
//! Each direction is a Gilbert chain that advances by one with each packet; every arriving packet is answered
//! by a feedback that covers all before it, and where messages are steady so is every one that is overdue.
//! The state that matters to one block is small: whether the last packet and the last feedback were lost, how
//! many symbols the receiver lacks (the *deficit*), and whether the sender has heard so. [`walk`] moves the
//! probabilities of these states along the packets in order of time. A round is decided at the newest packet
//! of which the sender can have heard, and takes place later; so no memory of packets on their way is needed.
//! Redundancy is summed where rounds are decided; what is left at the end is lost. Extras of *other* blocks
//! are not packets of the chain: that errs on the safe side, for they would only let a burst pass sooner.
//!
//! The last round is not part of the schedule: [`Tail`] has what its size does, for all sizes at once.
//!
//! The derivation is in `docs/design/prrt.md`, section "Plan".

use noctule_timebase::Span;

use crate::gilbert::Gilbert;
use crate::plan::{Demand, Path};

/// Extras of the last round at most.
pub(crate) const TAIL_EXTRAS_MAX: usize = 24;
/// Packets of other blocks followed one by one between two events of this block at most.
const GAP_PACKETS_MAX: i64 = 256;
/// What is left of the channels' memory after as many packets as are followed.
const FORGOTTEN: f64 = 1e-10;

/// Which blocks a round of extras is for, among those not acknowledged when it is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// All of them: those reported missing and those never heard of. Before any feedback can have come, this
    /// is every block: the round is proactive.
    Unacknowledged,
    /// Those never heard of since their last data symbol was sent.
    Unheard,
    /// Those that a feedback reported missing, and of which no extra is on its way (sent later than what the
    /// newest possible feedback can cover).
    Missing,
}

/// Extras of a block, sent together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Round {
    /// After the block's first datagram began to be sent.
    pub(crate) at: Span,
    pub(crate) extras: u8,
    pub(crate) trigger: Trigger,
}

/// What a schedule costs, and what it leaves to the last round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// Expected extras per datagram of data so far.
    pub(crate) redundancy: f64,
    /// Share of the messages that are lost and that the last round is not for: an extra is on its way.
    pub(crate) lost_otherwise: f64,
    /// Blocks reported missing, and blocks never heard of.
    pub(crate) missing: Group,
    /// See `missing`.
    pub(crate) unheard: Group,
}

/// Blocks that the last round treats alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// What one extra for each of them adds to the redundancy.
    pub(crate) redundancy_per_extra: f64,
    /// Share of messages that are theirs and stay lost, by number of extras.
    pub(crate) lost: [f64; TAIL_EXTRAS_MAX + 1],
}

/// Follows a block of `block` messages with extras in `rounds`, in order of time, and a last round at `last`.
pub(crate) fn walk(demand: &Demand, path: &Path, block: u8, rounds: &[Round], last: Span) -> Tail {
    let timeline = Timeline::new(demand, path, block, rounds, last);
    let nothing = Group { redundancy_per_extra: 0.0, lost: [0.0; TAIL_EXTRAS_MAX + 1] };
    let tail = Tail { redundancy: 0.0, lost_otherwise: 0.0, missing: nothing, unheard: nothing };
    let mut walk = Walk { timeline: &timeline, rounds, tail };
    walk.follow(State::new(demand, path, timeline.data), 0, 0);
    walk.tail
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Data { closes: bool },
    Others { packets: i64 },
    Send { round: usize },
    Decide { round: usize },
    DecideLast,
}

/// The packets and decisions of one block in order of time; the last round is sent after all of them.
struct Timeline {
    events: Vec<Event>,
    /// Data symbols of the block.
    data: usize,
    /// Whether a message is lost as a whole (one of many datagrams) or each datagram is one.
    whole: bool,
}

impl Timeline {
    fn new(demand: &Demand, path: &Path, block: u8, rounds: &[Round], last: Span) -> Timeline {
        let data = i64::from(block) * demand.datagrams();
        let news = path.news_delay();
        let mut marks: Vec<(Span, Event)> = Vec::with_capacity(2 * rounds.len() + 1);
        for (index, round) in rounds.iter().enumerate() {
            marks.push((round.at - news, Event::Decide { round: index }));
            marks.push((round.at + path.transmit * i64::from(round.extras), Event::Send { round: index }));
        }
        marks.push((last - news, Event::DecideLast));
        // At one moment what is sent comes before what is decided.
        marks.sort();
        let mut events: Vec<Event> = Vec::with_capacity(marks.len() * 2 + data as usize + 1);
        let gap_max = packets_until_forgotten(path);
        let mut packet = 0;
        for (at, event) in marks {
            let sent = packets_sent(demand, path, at);
            // Extras follow their block; a decision may come before the block's end.
            let sent = if matches!(event, Event::Send { .. }) { sent.max(data) } else { sent };
            push_packets(&mut events, &mut packet, sent, [data, gap_max]);
            events.push(event);
        }
        push_packets(&mut events, &mut packet, packets_sent(demand, path, last).max(data), [data, gap_max]);
        Timeline { events, data: data as usize, whole: demand.datagrams() > 1 }
    }
}

/// Datagrams of data that have left by `at`, where the first begins to be sent at zero.
fn packets_sent(demand: &Demand, path: &Path, at: Span) -> i64 {
    let (interval_ns, transmit_ns) = (demand.interval.ns().max(1), path.transmit.ns());
    let since_first_ns = at.ns() - transmit_ns;
    if since_first_ns < 0 {
        return 0;
    }
    let more = (since_first_ns % interval_ns).checked_div(transmit_ns).unwrap_or(i64::MAX - 1);
    (since_first_ns / interval_ns) * demand.datagrams() + (more + 1).min(demand.datagrams())
}

/// Until both channels have forgotten, and a sender that was to hear has heard.
fn packets_until_forgotten(path: &Path) -> i64 {
    let [forward, feedback] = [&path.loss, &path.feedback_loss].map(Gilbert::new);
    let lingers = |chain: &Gilbert| (1.0 - chain.ends).max((1.0 - chain.begins - chain.ends).abs());
    // A silence lasts while packets or feedback are lost; both seldom begin anew at the same time.
    let silence = lingers(&forward).max(lingers(&feedback)).max(forward.loss + feedback.loss);
    let packets = FORGOTTEN.ln() / silence.clamp(1e-3, 0.999).ln();
    (packets.ceil() as i64).clamp(1, GAP_PACKETS_MAX)
}

fn push_packets(events: &mut Vec<Event>, packet: &mut i64, until: i64, [data, gap_max]: [i64; 2]) {
    while *packet < until.min(data) {
        *packet += 1;
        events.push(Event::Data { closes: *packet == data });
    }
    if *packet < until {
        events.push(Event::Others { packets: (until - *packet).min(gap_max) });
        *packet = until;
    }
}

/// One pass over the timeline; splits where a round is for some states and not for others.
struct Walk<'a> {
    timeline: &'a Timeline,
    rounds: &'a [Round],
    tail: Tail,
}

impl Walk<'_> {
    /// `decided` has a bit for each round that was decided to be sent and is not sent yet.
    fn follow(&mut self, mut state: State, from: usize, mut decided: u32) {
        for (index, event) in self.timeline.events.iter().enumerate().skip(from) {
            match *event {
                Event::Data { closes } => state.data(closes),
                Event::Others { packets } => (0..packets).for_each(|_| state.other()),
                Event::Send { round } => {
                    if decided >> round & 1 == 1 {
                        (0..self.rounds[round].extras).for_each(|_| state.extra());
                    }
                    decided &= !(1 << round);
                }
                Event::Decide { round } => {
                    match self.rounds[round].trigger {
                        Trigger::Unacknowledged => {}
                        Trigger::Missing if decided != 0 => continue,
                        Trigger::Missing => {
                            let unheard = state.split_unheard();
                            self.follow(unheard, index + 1, decided);
                        }
                        Trigger::Unheard => {
                            let mut missing = state.clone();
                            state = missing.split_unheard();
                            self.follow(missing, index + 1, decided);
                        }
                    }
                    let extras = f64::from(self.rounds[round].extras) / self.timeline.data as f64;
                    self.tail.redundancy += extras * state.probability();
                    decided |= 1 << round;
                }
                Event::DecideLast => {
                    let unheard = state.split_unheard();
                    self.finish(unheard, index + 1, decided, false);
                    return self.finish(state, index + 1, decided, true);
                }
            }
        }
    }

    /// What follows the last decision: rounds under way, other packets, and one extra after the other.
    fn finish(&mut self, mut state: State, from: usize, decided: u32, missing: bool) {
        let probability = state.probability();
        if probability == 0.0 {
            return;
        }
        for event in &self.timeline.events[from..] {
            match *event {
                Event::Data { closes } => state.data(closes),
                Event::Others { packets } => (0..packets).for_each(|_| state.other()),
                Event::Send { round } if decided >> round & 1 == 1 => {
                    (0..self.rounds[round].extras).for_each(|_| state.extra());
                }
                Event::Send { .. } | Event::Decide { .. } | Event::DecideLast => {}
            }
        }
        let share = if self.timeline.whole { 1.0 } else { 1.0 / self.timeline.data as f64 };
        let whole = self.timeline.whole;
        if missing && decided != 0 {
            self.tail.lost_otherwise += share * state.lost(whole);
            return;
        }
        let group = if missing { &mut self.tail.missing } else { &mut self.tail.unheard };
        group.redundancy_per_extra += probability / self.timeline.data as f64;
        for lost in &mut group.lost {
            *lost += share * state.lost(whole);
            state.extra();
        }
    }
}

/// A probability, and with it the expected number of lost data symbols.
#[derive(Clone, Copy, Debug, Default)]
struct Mass {
    probability: f64,
    lost_data: f64,
}

impl Mass {
    fn times(self, factor: f64) -> Mass {
        Mass { probability: self.probability * factor, lost_data: self.lost_data * factor }
    }

    fn plus(self, other: Mass) -> Mass {
        Mass {
            probability: self.probability + other.probability,
            lost_data: self.lost_data + other.lost_data,
        }
    }
}

/// By whether the last packet (first index) and the last feedback (second) were lost.
type Channels = [[Mass; 2]; 2];

/// Of one deficit: by whether the sender has heard of the block since its last data symbol.
#[derive(Clone, Copy, Debug, Default)]
struct Knowledge {
    unheard: Channels,
    missing: Channels,
}

/// All that is not acknowledged yet; what is acknowledged is dropped.
#[derive(Clone, Debug)]
struct State {
    forward: Gilbert,
    feedback: Gilbert,
    steady: bool,
    /// By deficit.
    of: Vec<Knowledge>,
    closed: bool,
}

impl State {
    fn new(demand: &Demand, path: &Path, data: usize) -> State {
        let (forward, feedback) = (Gilbert::new(&path.loss), Gilbert::new(&path.feedback_loss));
        let mut of = vec![Knowledge::default(); data + 1];
        for (lost, share) in [(0, 1.0 - forward.loss), (1, forward.loss)] {
            for (feedback_lost, feedback_share) in [(0, 1.0 - feedback.loss), (1, feedback.loss)] {
                of[0].unheard[lost][feedback_lost].probability = share * feedback_share;
            }
        }
        State { forward, feedback, steady: demand.steady, of, closed: false }
    }

    fn probability(&self) -> f64 {
        self.of.iter().map(|known| total(&known.unheard).plus(total(&known.missing)).probability).sum()
    }

    /// Expected data symbols that stay lost; of a message that is lost as a whole, the probability.
    fn lost(&self, whole: bool) -> f64 {
        let lost = self.of[1..]
            .iter()
            .map(|known| total(&known.unheard).plus(total(&known.missing)))
            .fold(Mass::default(), Mass::plus);
        if whole { lost.probability } else { lost.lost_data }
    }

    /// Leaves what was reported missing and returns the rest.
    fn split_unheard(&mut self) -> State {
        let mut unheard = self.clone();
        for (mine, theirs) in self.of.iter_mut().zip(&mut unheard.of) {
            mine.unheard = Channels::default();
            theirs.missing = Channels::default();
        }
        unheard
    }

    /// A data symbol: whatever was heard of the block is old.
    fn data(&mut self, closes: bool) {
        self.closed = closes;
        // A loss raises the deficit: the highest first.
        for deficit in (0..self.of.len()).rev() {
            let (arrived, lost) = self.forward.step(&self.of[deficit].merged());
            self.of[deficit] = Knowledge::default();
            self.answer(deficit, &arrived, 0, false);
            if deficit + 1 < self.of.len() {
                let one_more = lost.map(|mass| Mass { lost_data: mass.lost_data + mass.probability, ..mass });
                self.overdue(deficit + 1, &one_more, false);
            }
        }
    }

    /// An extra, of which the receiver does not know when it is lost.
    fn extra(&mut self) {
        for deficit in 0..self.of.len() {
            let Knowledge { unheard, missing } = core::mem::take(&mut self.of[deficit]);
            for (channels, reported) in [(unheard, false), (missing, true)] {
                let (arrived, lost) = self.forward.step(&channels);
                self.of[deficit].of_mut(reported)[1] = lost;
                self.answer(deficit.saturating_sub(1), &arrived, 0, reported);
            }
        }
    }

    /// A packet of another block.
    fn other(&mut self) {
        for deficit in 0..self.of.len() {
            let Knowledge { unheard, missing } = core::mem::take(&mut self.of[deficit]);
            for (channels, reported) in [(unheard, false), (missing, true)] {
                let (arrived, lost) = self.forward.step(&channels);
                self.overdue(deficit, &lost, reported);
                self.answer(deficit, &arrived, 0, reported);
            }
        }
    }

    /// A packet was lost whose time the receiver knows where messages are steady: it answers nevertheless.
    fn overdue(&mut self, deficit: usize, lost: &[Mass; 2], reported: bool) {
        if self.steady {
            self.answer(deficit, lost, 1, reported);
        } else {
            let slots = &mut self.of[deficit].of_mut(reported)[1];
            *slots = [0, 1].map(|index| slots[index].plus(lost[index]));
        }
    }

    /// The receiver sends a feedback; `forward_lost` is the forward chain's new state.
    fn answer(&mut self, deficit: usize, before: &[Mass; 2], forward_lost: usize, reported: bool) {
        let (heard, unheard) = self.feedback.split(before);
        let known = &mut self.of[deficit];
        let slot = &mut known.of_mut(reported)[forward_lost][1];
        *slot = slot.plus(unheard);
        // Acknowledged: nothing more will be sent for the block, and it is followed no further.
        if !(self.closed && deficit == 0) {
            let slot = &mut known.of_mut(self.closed)[forward_lost][0];
            *slot = slot.plus(heard);
        }
    }
}

impl Knowledge {
    fn of_mut(&mut self, reported: bool) -> &mut Channels {
        if reported { &mut self.missing } else { &mut self.unheard }
    }

    fn merged(&self) -> Channels {
        core::array::from_fn(|lost| {
            core::array::from_fn(|feedback_lost| {
                self.unheard[lost][feedback_lost].plus(self.missing[lost][feedback_lost])
            })
        })
    }
}

fn total(channels: &Channels) -> Mass {
    channels.iter().flatten().fold(Mass::default(), |sum, mass| sum.plus(*mass))
}

impl Gilbert {
    /// The next packet: what arrives, and what is lost, by the state of the other direction.
    fn step(&self, from: &Channels) -> ([Mass; 2], [Mass; 2]) {
        let [good, bad] = from;
        let arrived =
            [0, 1].map(|other| good[other].times(1.0 - self.begins).plus(bad[other].times(self.ends)));
        let lost = [0, 1].map(|other| good[other].times(self.begins).plus(bad[other].times(1.0 - self.ends)));
        (arrived, lost)
    }

    /// The next feedback, by the state of this direction: heard and unheard.
    fn split(&self, from: &[Mass; 2]) -> (Mass, Mass) {
        let [good, bad] = from;
        (
            good.times(1.0 - self.begins).plus(bad.times(self.ends)),
            good.times(self.begins).plus(bad.times(1.0 - self.ends)),
        )
    }
}
