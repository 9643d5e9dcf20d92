//! Congestion control of a group: the rate when the path to the slowest receiver that it serves is full.
//!
//! # Problem
//!
//! A full path loses, what is lost is asked for, and parity for it is lost, too: a path of half the rate brings the
//! traffic to twice the data. But losses alone do not tell a full path from a radio that loses much.
//!
//! # Approach
//!
//! The receiver with the greatest share of losses sets the rate, as in TFMCC (RFC 4654), by what it reports:
//!
//! - *Test*: if it loses much and parity is a good part of what leaves, less parity leaves for a second. On a radio less
//!   arrives then; on a full path as much as before.
//! - *Limit*: no more datagrams leave than arrived. Parity is at most [`PARITY_SHARE_FULL`] of data; samples that do not fit are
//!   not sent at all, evenly spread. The limit falls with losses beyond those that are left, grows without, ever faster while nothing at all is
//!   lost, and goes when it no longer binds.

use noctule_timebase::{Instant, Span};

use super::trace::Path;
use super::wire::ahead;
use super::{MemberId, PARITY_SHARE_MAX};
use crate::stream::Local;

/// Parity datagrams per datagram of data on a path that is full.
pub(super) const PARITY_SHARE_FULL: f64 = 0.25;
/// Window of one judgement, in time and datagrams: in fewer, bursts of a radio's losses are too few to compare.
const WINDOW: Span = Span::from_s(1);
const WINDOW_PACKETS: i32 = 256;
/// Under a limit it lasts no longer than this.
const WINDOW_UNDER_LIMIT: Span = Span::from_s(5);
/// This share of losses is a reason to test.
const LOSS: f64 = 0.3;
/// A test sends this part of what was sent before, and only if the data alone is less.
const TEST: f64 = 0.7;
/// It says something if less than this part was sent; the path is full if the arrivals fell by less than a third of that.
const CLEARLY_LESS: f64 = 0.85;
/// Before the next test after one that found a radio; then twice as long each time.
const RETRY_FIRST: Span = Span::from_s(5);
const RETRY_MOST: Span = Span::from_s(80);
/// The limit's room below what arrived, its growth by a window, that many times over for each window before it of which nothing was lost, and the
/// losses beyond the least under it that let it fall.
const ROOM: f64 = 0.95;
const GROWTH: f64 = 1.05;
const GROWTHS_MAX: i32 = 8;
const LOSS_BEYOND: f64 = 0.1;
/// A share of losses that is more than this part of what it was before less was sent is not the path's being full.
const STILL: f64 = 0.75;
/// It is gone when it is so many times what is offered.
const NO_LIMIT: f64 = 1.2;
/// Datagrams that may be saved up.
const SAVED_MAX: f64 = 8.0;

/// The rate limit of one group.
#[derive(Debug)]
pub(super) struct GroupRate {
    state: State,
    /// The slowest, and what it had reported when the window began.
    slowest: Option<MemberId>,
    window: Option<Begin>,
    retry_at: Instant<Local>,
    retry_after: Span,
}

#[derive(Clone, Copy, Debug)]
struct Begin {
    newest: u32,
    received: u32,
    at: Instant<Local>,
}

/// Rates of a window, in datagrams a second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    sent: f64,
    arrived: f64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Free,
    Testing {
        before: Window,
        parity_share: f64,
    },
    /// `least` is the smallest share of losses under the limit, `fell_at` that at which it fell last, if it just did; `whole` counts the windows of
    /// which nothing was lost since one was not.
    Full {
        per_s: f64,
        least: f64,
        whole: i32,
        fell_at: Option<f64>,
        saved: f64,
        counted_at: Instant<Local>,
    },
}

impl GroupRate {
    pub(super) fn new(now: Instant<Local>) -> GroupRate {
        GroupRate { state: State::Free, slowest: None, window: None, retry_at: now, retry_after: RETRY_FIRST }
    }

    /// Whose reports count.
    pub(super) fn slowest(&self) -> Option<MemberId> {
        self.slowest
    }

    /// It is not served any more: what is known of its path says nothing of the others'.
    pub(super) fn forget(&mut self) {
        self.slowest = None;
        self.begin(State::Free);
    }

    /// Parity per datagram of data at most; `None` if the path is not known to be full.
    pub(super) fn parity_share(&self) -> Option<f64> {
        match self.state {
            State::Free => None,
            State::Testing { parity_share, .. } => Some(parity_share),
            State::Full { .. } => Some(PARITY_SHARE_FULL),
        }
    }

    /// State of the path, and limit in datagrams a second; 0: no limit.
    pub(super) fn limit(&self) -> (Path, u64) {
        match self.state {
            State::Free => (Path::Free, 0),
            State::Testing { .. } => (Path::Testing, 0),
            State::Full { per_s, .. } => (Path::Full, per_s as u64),
        }
    }

    /// Whether a sample may leave now.
    pub(super) fn allows(&mut self, now: Instant<Local>) -> bool {
        let State::Full { per_s, saved, counted_at, .. } = &mut self.state else { return true };
        let more = (now - *counted_at).as_s_f64().max(0.0) * *per_s;
        (*saved, *counted_at) = ((*saved + more).min(SAVED_MAX), now);
        *saved >= 1.0
    }

    /// A datagram leaves, parity or data.
    pub(super) fn sent(&mut self) {
        if let State::Full { saved, .. } = &mut self.state {
            *saved -= 1.0;
        }
    }

    /// The slowest of those served reports, while so many datagrams of data a second are offered.
    pub(super) fn handle_report(
        &mut self,
        member: MemberId,
        (newest, received): (u32, u32),
        offered_per_s: f64,
        now: Instant<Local>,
    ) {
        if self.slowest.replace(member) != Some(member) {
            self.window = None;
        }
        let begin = *self.window.get_or_insert(Begin { newest, received, at: now });
        let (packets, time) = (ahead(newest, begin.newest), now - begin.at);
        // Under a limit a window may never have as many; and where nothing is lost there is nothing to compare.
        let is_limited = matches!(self.state, State::Full { .. }) && packets > 0;
        let is_whole = ahead(received, begin.received) >= packets;
        let is_enough = packets >= WINDOW_PACKETS || is_limited && (is_whole || time >= WINDOW_UNDER_LIMIT);
        // It counts anew.
        if packets < 0 {
            self.window = None;
        } else if is_enough && time >= WINDOW {
            self.window = Some(Begin { newest, received, at: now });
            let arrived = ahead(received, begin.received).clamp(0, packets);
            let [sent, arrived] = [packets, arrived].map(|count| f64::from(count) / time.as_s_f64());
            self.judge(Window { sent, arrived }, offered_per_s, now);
        }
    }

    fn judge(&mut self, window: Window, offered_per_s: f64, now: Instant<Local>) {
        let Window { sent, arrived } = window;
        let loss = 1.0 - arrived / sent;
        match self.state {
            State::Free => {
                let is_most_data = offered_per_s >= sent * TEST;
                if loss > LOSS && !is_most_data && now >= self.retry_at {
                    // What was sent may belong to more samples than are offered now.
                    let parity_share = (sent * TEST / offered_per_s.max(1.0) - 1.0).min(PARITY_SHARE_MAX);
                    self.begin(State::Testing { before: window, parity_share });
                }
            }
            State::Testing { before, .. } => {
                let (less, fewer) = (sent / before.sent, arrived / before.arrived.max(1.0));
                if less < CLEARLY_LESS && fewer >= 1.0 - (1.0 - less) / 3.0 {
                    self.retry_after = RETRY_FIRST;
                    let (per_s, least, fell_at) = (arrived * ROOM, 1.0, None);
                    let (whole, saved, counted_at) = (0, 0.0, now);
                    self.begin(State::Full { per_s, least, whole, fell_at, saved, counted_at });
                } else {
                    self.begin(State::Free);
                    self.retry_at = now + self.retry_after;
                    self.retry_after = (self.retry_after * 2).min(RETRY_MOST);
                }
            }
            State::Full { per_s, least, whole, fell_at, saved, counted_at } => {
                // Less was sent, and as much is lost: that is chance.
                let is_chance = fell_at.is_some_and(|before| loss > before * STILL);
                let least = if is_chance { loss } else { least.min(loss) };
                let falls = loss > least + LOSS_BEYOND;
                let whole = if loss > 0.0 { 0 } else { (whole + 1).min(GROWTHS_MAX) };
                let (factor, fell_at) = if falls {
                    ((1.0 - loss) / (1.0 - least) * ROOM, Some(loss))
                } else {
                    (GROWTH.powi(whole.max(1)), None)
                };
                let per_s = per_s * factor;
                self.state = State::Full { per_s, least, whole, fell_at, saved, counted_at };
                if per_s > offered_per_s * NO_LIMIT {
                    self.begin(State::Free);
                }
            }
        }
    }

    /// Enters a state with a new window: datagrams of before are no evidence of it.
    fn begin(&mut self, state: State) {
        (self.state, self.window) = (state, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA_PER_S: f64 = 200.0;

    /// So many seconds in which parity is as much as data where it may be, and `passes` says what arrives of what is sent in a second.
    /// Gives the datagrams of data and of parity in the last one.
    fn after(seconds: i64, passes: impl Fn(f64) -> f64) -> (f64, f64) {
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        let (mut rate, mut newest, mut received) = (GroupRate::new(at(0)), 0.0, 0.0);
        let (mut data, mut parity) = (0.0, 0.0);
        for second in 0..seconds {
            (data, parity) = (0.0, 0.0);
            for step in 0..200 {
                let now = at(second * 1_000 + step * 5);
                let allowed = rate.parity_share().unwrap_or(1.0);
                if rate.allows(now) {
                    rate.sent();
                    data += 1.0;
                }
                if parity < data * allowed && rate.allows(now) {
                    rate.sent();
                    parity += 1.0;
                }
            }
            newest += data + parity;
            received += passes(data + parity);
            rate.handle_report(
                MemberId(1),
                (newest as u32, received as u32),
                DATA_PER_S,
                at(second * 1_000 + 1_000),
            );
        }
        (data, parity)
    }

    #[test]
    fn on_a_path_of_half_the_rate_no_more_leaves_than_it_carries_and_a_quarter_of_that_is_parity() {
        for seconds in 20..40 {
            let (data, parity) = after(seconds, |sent| sent.min(100.0));
            assert!((70.0..125.0).contains(&(data + parity)), "{seconds} s: {data}, {parity}");
            assert!(parity <= data * PARITY_SHARE_FULL + 1.0, "{seconds} s: {data}, {parity}");
        }
    }

    /// Once 200 a second were offered, and ten are now: a test that reckoned by what was sent would allow many times the data.
    #[test]
    fn a_test_allows_no_more_parity_than_there_may_be_without_it() {
        let at = |s: i64| Instant::from_ns(s * 1_000_000_000);
        let mut rate = GroupRate::new(at(0));
        rate.handle_report(MemberId(1), (0, 0), DATA_PER_S, at(0));
        rate.handle_report(MemberId(1), (400, 200), 10.0, at(1));
        assert_eq!(rate.parity_share(), Some(PARITY_SHARE_MAX));
    }

    #[test]
    fn a_radio_that_loses_half_keeps_its_parity() {
        for seconds in [8, 30, 100] {
            let (data, parity) = after(seconds, |sent| sent * 0.5);
            assert_eq!((data, parity), (200.0, 200.0), "{seconds} s");
        }
    }

    #[test]
    fn a_full_path_that_begins_to_lose_by_chance_keeps_its_rate() {
        let second = std::cell::Cell::new(0);
        let passes = |sent: f64| {
            second.set(second.get() + 1);
            sent.min(100.0) * if second.get() < 20 { 1.0 } else { 0.6 }
        };
        let (data, parity) = after(60, passes);
        assert!(data + parity > 50.0, "{data}, {parity}");
    }

    /// A path that lets at most so many datagrams a second through, and all from the twentieth second on.
    fn recovering(most_per_s: f64) -> impl Fn(f64) -> f64 {
        let second = std::cell::Cell::new(0);
        move |sent| {
            second.set(second.get() + 1);
            if second.get() < 20 { sent.min(most_per_s) } else { sent }
        }
    }

    #[test]
    fn a_path_that_recovers_has_no_limit_in_the_end() {
        assert_eq!(after(60, recovering(100.0)).0, 200.0);
    }

    #[test]
    fn a_path_that_carried_next_to_nothing_and_recovers_has_no_limit_half_a_minute_later() {
        assert!(after(19, recovering(4.0)).0 < 20.0, "it is limited");
        assert_eq!(after(50, recovering(4.0)).0, 200.0);
    }
}
