//! The receivers of a group as their reports show them: RTT, loss, and which of them hear it (RTCP's receiver reports, RFC 3550, are alike).

use std::collections::{BTreeMap, VecDeque};

use noctule_timebase::{Instant, Span};

use super::shortfall::{Losses, expected};
use super::wire::{Report, ahead};
use super::{DRAG_MAX, GUARD_LEAST, MEMBERS_LIMIT, MemberId, Membership, ROUND_TRIP_PRIOR};
use crate::stream::Local;

/// Reports that all receivers together should send in a second (RFC 3550, section 6.2: what comes back must not grow with the group).
const REPORTS_PER_S: usize = 8;
/// The longest time between the reports of one receiver.
const REPORT_EVERY_S_MAX: usize = 16;
/// A receiver that has not reported for so many halves of that time does not hear the group.
const SILENCE_HALVES: i64 = 7;
/// Datagrams that a share of losses remembers.
const MEMORY_PACKETS: f64 = 2_000.0;
/// Prior of the loss, and its weight in datagrams.
const LOSS_PRIOR: (f64, f64) = (0.01, 50.0);
/// Datagrams that the scatter of losses remembers: several dozen windows even where reports are rare, as many as a link's estimate (`loss`).
const SCATTER_MEMORY_PACKETS: f64 = 20_000.0;
/// Datagrams of a window of which losses are counted: many times a burst; and reports with requests, which follow losses, come more often than that.
const SCATTER_WINDOW_PACKETS: i32 = 100;
/// So many losses as independent ones scatter are assumed beside those counted.
const SCATTER_PRIOR: f64 = 8.0;
/// A share counts against a receiver only when it has been seen over so many datagrams.
const JUDGED_PACKETS: f64 = 300.0;
/// A receiver that was set apart stays so for this long at least.
const APART_LEAST: Span = Span::from_s(10);
/// Changes that were not fetched.
const EVENTS_LIMIT: usize = 64;
/// A round trip counts as no more than the smoothed one and so many variations and a guard above: reports are a second or more apart, and one
/// thread that was late must not make blocks short for all others for the next five. What has really become longer is soon adopted.
const OUTLIER_VARIATIONS: i64 = 4;
/// Of two that lose the one may lose so much less and is as slow.
const ALIKE: f64 = 0.8;
/// Packets of which the time of sending is remembered.
const TIMES_LIMIT: usize = 4_096;

/// The receivers of one group, by their reports.
#[derive(Debug, Default)]
pub(super) struct Members {
    members: BTreeMap<MemberId, Member>,
    events: VecDeque<Membership>,
    /// When each of the last packets was sent; the next one's number.
    times: VecDeque<Instant<Local>>,
    next_packet: u32,
}

#[derive(Debug)]
struct Member {
    state: State,
    /// The first datagram since its last report.
    unanswered_since: Option<Instant<Local>>,
    newest: u32,
    received: u32,
    lost: f64,
    packets: f64,
    scatter: Scatter,
    trip: Option<(Span, Span)>,
}

/// How much the numbers of losses in windows differ, which shows bursts: reports say how many were lost, not which.
#[derive(Clone, Copy, Debug, Default)]
struct Scatter {
    /// The window and the one before it: datagrams, and those lost.
    window: (i32, i32),
    before: Option<(f64, f64)>,
    /// Of all windows, fading: how their losses differ from those of the window before, and how they would if losses were independent, in losses;
    /// and their number.
    squares: f64,
    variance: f64,
    windows: f64,
}

impl Scatter {
    /// So many were lost of `packets`.
    fn add(&mut self, packets: i32, lost: i32) {
        self.window = (self.window.0 + packets, self.window.1 + lost);
        if self.window.0 < SCATTER_WINDOW_PACKETS {
            return;
        }
        let (packets, lost) = (f64::from(self.window.0), f64::from(self.window.1));
        self.window = (0, 0);
        // The difference of two windows needs no mean, and a share that changes slowly is no burst (von Neumann 1941).
        let Some((packets_before, lost_before)) = self.before.replace((packets, lost)) else { return };
        let all = packets + packets_before;
        let (share, differs) = ((lost + lost_before) / all, lost / packets - lost_before / packets_before);
        let kept = (-packets / SCATTER_MEMORY_PACKETS).exp();
        self.squares = self.squares * kept + differs.powi(2) * packets * packets_before / 2.0;
        self.variance = self.variance * kept + share * (1.0 - share) * all / 2.0;
        self.windows = self.windows * kept + 1.0;
    }

    /// Variance of losses by that of independent ones.
    fn dispersion(&self) -> f64 {
        (self.squares + SCATTER_PRIOR) / (self.variance + SCATTER_PRIOR)
    }

    /// What it is at least: two standard errors less, that of a variance of so many windows.
    fn dispersion_least(&self) -> f64 {
        self.dispersion() * (1.0 - 2.0 * (2.0 / self.windows.max(1.0)).sqrt())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Has not reported, or no longer does.
    Silent,
    Hears,
    /// Costs the others too much.
    Apart {
        until: Instant<Local>,
    },
}

impl Member {
    fn loss(&self) -> f64 {
        self.lost / self.packets
    }

    /// How it loses, among members whose losses scatter as much as `common` says: this one's more, if that is no chance.
    fn losses(&self, common: f64) -> Losses {
        let dispersion = common.max(self.scatter.dispersion_least()).max(1.0);
        Losses { share: self.loss(), memory: (dispersion - 1.0) / (dispersion + 1.0) }
    }

    fn round(&self) -> Span {
        self.trip.map_or(ROUND_TRIP_PRIOR, |(smoothed, variation)| smoothed + variation * 2)
    }
}

impl Members {
    /// One more; false if there are too many.
    pub(super) fn join(&mut self, id: MemberId) -> bool {
        if !self.members.contains_key(&id) && self.members.len() >= MEMBERS_LIMIT {
            return false;
        }
        self.members.entry(id).or_insert(Member {
            state: State::Silent,
            unanswered_since: None,
            newest: self.next_packet,
            received: 0,
            lost: LOSS_PRIOR.0 * LOSS_PRIOR.1,
            packets: LOSS_PRIOR.1,
            scatter: Scatter::default(),
            trip: None,
        });
        true
    }

    pub(super) fn leave(&mut self, id: MemberId) {
        self.members.remove(&id);
    }

    /// Whether it is served with the others.
    pub(super) fn hears(&self, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(|member| member.state == State::Hears)
    }

    /// Whether any member is served.
    pub(super) fn serves_any(&self) -> bool {
        self.served().next().is_some()
    }

    /// Whether no member's first report is missing.
    pub(super) fn all_hear(&self) -> bool {
        self.members.values().all(|member| member.state != State::Silent)
    }

    pub(super) fn poll_event(&mut self) -> Option<Membership> {
        self.events.pop_front()
    }

    /// A datagram is sent; gives its number.
    pub(super) fn sent(&mut self, now: Instant<Local>) -> u32 {
        if self.times.len() >= TIMES_LIMIT {
            self.times.pop_front();
        }
        self.times.push_back(now);
        let silence = Span::from_s(self.report_every_s().into()) * SILENCE_HALVES / 2;
        for member in self.members.values_mut() {
            let since = *member.unanswered_since.get_or_insert(now);
            if now - since > silence {
                member.state = State::Silent;
            }
        }
        let packet = self.next_packet;
        self.next_packet = packet.wrapping_add(1);
        packet
    }

    /// A report; false from a node that is no member, and of what was never sent.
    pub(super) fn handle_report(
        &mut self,
        id: MemberId,
        report: &Report,
        block: usize,
        now: Instant<Local>,
    ) -> bool {
        let sent_at = self.sent_at(report.newest);
        let (Some(member), Some(sent_at)) = (self.members.get_mut(&id), sent_at) else { return false };
        let first = member.state == State::Silent;
        let packets = ahead(report.newest, member.newest);
        // Of the first report only the numbers count: what went before it joined is no loss.
        if packets > 0 && !first {
            let received = ahead(report.received, member.received).clamp(0, packets);
            let kept = (1.0 - f64::from(packets) / MEMORY_PACKETS).max(0.0);
            member.lost = member.lost * kept + f64::from(packets - received);
            member.packets = member.packets * kept + f64::from(packets);
            member.scatter.add(packets, packets - received);
        }
        if packets > 0 || first {
            (member.newest, member.received) = (report.newest, report.received);
        }
        let trip = now - sent_at - Span::from_ns(report.delay_ns.into());
        if report.delay_ns != u32::MAX && trip >= Span::ZERO {
            let (smoothed, variation) = member.trip.unwrap_or((trip, trip / 4));
            let trip = trip.min(smoothed + variation * OUTLIER_VARIATIONS + GUARD_LEAST);
            member.trip = Some((
                smoothed + (trip - smoothed) / 8,
                variation + ((trip - smoothed).abs() - variation) / 4,
            ));
        }
        member.unanswered_since = None;
        if first {
            member.state = State::Hears;
        }
        self.judge(id, block, now);
        true
    }

    /// Seconds between the reports of a receiver: longer with more of them.
    pub(super) fn report_every_s(&self) -> u8 {
        self.members.len().div_ceil(REPORTS_PER_S).clamp(1, REPORT_EVERY_S_MAX) as u8
    }

    /// The longest round trip to a member that is served, with its variation; `None` before any is known.
    pub(super) fn round_trip(&self) -> Option<Span> {
        self.served().filter(|member| member.trip.is_some()).map(Member::round).max()
    }

    /// Shares that the served members lose.
    pub(super) fn losses(&self) -> Vec<f64> {
        self.served().map(Member::loss).collect()
    }

    /// How each of the served members loses.
    pub(super) fn losses_with_bursts(&self) -> impl Iterator<Item = Losses> {
        let common = self.dispersion();
        self.served().map(move |member| member.losses(common))
    }

    /// Variance of the losses of all served members by that of independent ones: of one alone it takes minutes to tell from chance.
    fn dispersion(&self) -> f64 {
        let all = self.served().fold(Scatter::default(), |sum, member| Scatter {
            squares: sum.squares + member.scatter.squares,
            variance: sum.variance + member.scatter.variance,
            ..sum
        });
        all.dispersion()
    }

    /// The member that loses most of those served: the one that was it before, while others lose little more.
    pub(super) fn slowest(&self, before: Option<MemberId>) -> Option<MemberId> {
        let served = self.members.iter().filter(|(_, member)| member.state == State::Hears);
        let (id, member) = served.max_by(|(_, a), (_, b)| a.loss().total_cmp(&b.loss()))?;
        let before = before.filter(|id| self.hears(*id) && self.loss(*id) >= ALIKE * member.loss());
        Some(before.unwrap_or(*id))
    }

    /// The share that one loses.
    pub(super) fn loss(&self, id: MemberId) -> f64 {
        self.members.get(&id).map_or(0.0, Member::loss)
    }

    fn served(&self) -> impl Iterator<Item = &Member> {
        self.members.values().filter(|member| member.state == State::Hears)
    }

    fn sent_at(&self, packet: u32) -> Option<Instant<Local>> {
        let back = usize::try_from(ahead(self.next_packet, packet)).ok()?;
        // Zero back is what has not been sent.
        (back > 0).then(|| self.times.len().checked_sub(back).and_then(|at| self.times.get(at)).copied())?
    }

    /// Sets apart members that cost the others too much, and takes back those that no longer would.
    fn judge(&mut self, id: MemberId, block: usize, now: Instant<Local>) {
        let Some(member) = self.members.get(&id) else { return };
        // Two that lose much hide behind each other; the cost falls on those that lose less.
        let others = self.members.iter().filter(|(other, served)| {
            **other != id && served.state == State::Hears && served.loss() < member.loss() / 2.0
        });
        let mut losses: Vec<f64> = others.map(|(_, member)| member.loss()).collect();
        let without = expected(&losses, block);
        let (state, loss, packets) = (member.state, member.loss(), member.packets);
        losses.push(loss);
        let drag = (expected(&losses, block) - without) / block.max(1) as f64;
        let event = match state {
            // Alone it costs only itself.
            State::Hears if losses.len() > 1 && packets >= JUDGED_PACKETS && drag > DRAG_MAX => {
                Membership::Apart { member: id, loss }
            }
            State::Apart { until } if now >= until && drag <= DRAG_MAX / 2.0 => {
                Membership::Back { member: id }
            }
            _ => return,
        };
        if let Some(member) = self.members.get_mut(&id) {
            member.state = match event {
                Membership::Apart { .. } => State::Apart { until: now + APART_LEAST },
                Membership::Back { .. } => State::Hears,
            };
        }
        if self.events.len() >= EVENTS_LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many reports a second apart, each after a round trip of so many milliseconds.
    fn report(members: &mut Members, reports: u32, round_trip_ms: i64) {
        for _ in 0..reports {
            let sent_at = Instant::from_ns(i64::from(members.next_packet) * 1_000_000_000);
            let newest = members.sent(sent_at);
            let report = Report { newest, received: newest + 1, delay_ns: 0, asks: Vec::new() };
            let now = sent_at + Span::from_ms(round_trip_ms);
            assert!(members.handle_report(MemberId(1), &report, 1, now));
        }
    }

    #[test]
    fn one_late_report_makes_no_round_trip_longer_and_a_longer_path_does_within_ten() {
        let mut members = Members::default();
        assert!(members.join(MemberId(1)));
        report(&mut members, 30, 10);
        report(&mut members, 1, 40);
        assert!(members.round_trip().unwrap() < Span::from_us(11_000), "{members:?}");
        report(&mut members, 10, 40);
        assert!(members.round_trip().unwrap() > Span::from_ms(39), "{members:?}");
    }

    /// Of 16 members whose channel is Gilbert's, each with 200 reports of 200 datagrams: the memory that is estimated of one.
    fn estimated_memory(share: f64, memory: f64, seed: u64) -> f64 {
        let mut random = noctule_netsim::random::Random::new(seed);
        let mut members = Members::default();
        for number in 0..16 {
            assert!(members.join(MemberId(number)));
            let member = members.members.get_mut(&MemberId(number)).unwrap();
            member.state = State::Hears;
            let mut is_lost = false;
            for _ in 0..200 {
                let loses = |was_lost| share + (f64::from(u8::from(was_lost)) - share) * memory;
                let fates = (0..200).map(|_| {
                    is_lost = random.chance(loses(is_lost));
                    i32::from(is_lost)
                });
                let lost = fates.sum();
                member.scatter.add(200, lost);
            }
        }
        members.losses_with_bursts().next().unwrap().memory
    }

    #[test]
    fn the_scatter_of_losses_shows_bursts_and_of_independent_ones_none() {
        for (seed, share) in [(1, 0.01), (2, 0.05), (3, 0.01), (4, 0.05)] {
            let independent = estimated_memory(share, 0.0, seed);
            assert!(independent < 0.05, "seed {seed}: {independent}");
            // Of bursts of 3 and of 10.
            for memory in [0.66, 0.9] {
                let estimated = estimated_memory(share, memory, seed);
                assert!((estimated - memory).abs() < 0.05, "seed {seed}: {estimated} for {memory}");
            }
        }
    }
}
