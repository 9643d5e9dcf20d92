//! The goals of one server: their states, their results and the clients that wait for them. Sans-IO: goals, cancellations, requests for
//! results, steps and the time in; answers and states out.
//!
//! # Approach
//!
//! - The states and steps are those of ROS 2's `rcl_action`: a goal is accepted, executes, may be canceled on request, and ends once.
//! - A number that is known is not accepted again, as long as it is known: while the goal is under way, and then as long as its result is kept.
//! - A request for a result waits until its goal ends; each request is answered once.
//! - A goal that has ended is kept for a time from its end, at most [`RESULTS_MAX`] of them and [`RESULTS_BYTES_MAX`]; the
//!   oldest goes first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use noctule_time_sync::Local;
use noctule_timebase::{Instant, Span};

use super::{GoalId, GoalStamp, GoalStatus, KnownGoal};
use crate::request::RequestId;

/// Goals of one server that may be under way, and goals that one client may follow.
pub const GOALS_MAX: usize = 256;
/// Goals that have ended and whose results a server keeps.
pub const RESULTS_MAX: usize = 256;
/// All results that a server keeps.
pub const RESULTS_BYTES_MAX: usize = 16 << 20;
/// Requests for results that may wait at one server.
pub const WAITING_MAX: usize = 1024;
/// How long a server keeps a result by default, as in ROS 2.
pub const GOAL_KEPT_DEFAULT: Duration = Duration::from_secs(10);

/// Counters of the goals that were sent to a server. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionCounters {
    /// Goals handed to the program.
    pub goals: u64,
    /// Goals that the program accepted.
    pub accepted: u64,
    /// Goals that the program rejected.
    pub rejected: u64,
    /// Goals refused because their number was known.
    pub duplicates: u64,
    /// Goals refused because [`GOALS_MAX`] were under way.
    pub full: u64,
    /// Goals whose cancellation was requested.
    pub canceling: u64,
    /// Goals that succeeded.
    pub succeeded: u64,
    /// Goals that were canceled.
    pub canceled: u64,
    /// Goals that the program gave up, or whose handle it dropped.
    pub aborted: u64,
    /// Results that were dropped before their time because of [`RESULTS_MAX`] or [`RESULTS_BYTES_MAX`].
    pub results_dropped: u64,
    /// Requests for results refused because [`WAITING_MAX`] waited.
    pub waiting_full: u64,
    /// Requests for results of goals that are not known.
    pub unknown: u64,
    /// Requests that are none of the action's.
    pub malformed: u64,
}

pub(super) fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

/// The decision on a goal that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// The program decides.
    New,
    /// Its number is known.
    Duplicate,
    /// [`GOALS_MAX`].
    Full,
}

/// The decision on a request for a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// It is answered when the goal ends.
    Waits,
    /// Answer it now.
    Answer(Outcome),
    /// No such goal.
    Unknown,
    /// [`WAITING_MAX`].
    Full,
}

/// How a goal ended. The response to requests for its result, in CDR; `None`: its program left none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: GoalStatus,
    pub(super) response: Option<Arc<[u8]>>,
}

/// Return codes of `action_msgs/srv/CancelGoal`, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i8)]
pub enum CancelCode {
    /// The goals named are being canceled.
    None = 0,
    /// The server goes on with all of them.
    Rejected = 1,
    /// It has no such goal.
    UnknownGoal = 2,
    /// The goal has ended.
    Ended = 3,
}

#[derive(Debug)]
struct Known {
    stamp: GoalStamp,
    status: GoalStatus,
    waiting: Vec<RequestId>,
    /// Once it has ended: until when it is kept, and what it ended with.
    end: Option<(Instant<Local>, Outcome)>,
}

#[derive(Debug)]
pub(super) struct Goals {
    /// How long results are kept.
    kept: Span,
    /// Handed to the program, which has not answered.
    offered: BTreeSet<GoalId>,
    known: BTreeMap<GoalId, Known>,
    /// Those that have ended, in the order of their ends.
    ended: VecDeque<GoalId>,
    result_bytes: usize,
    waiting: usize,
    answers: VecDeque<(RequestId, Outcome)>,
    has_changed: bool,
    pub(super) counters: ActionCounters,
}

impl Goals {
    pub(super) fn new(kept: Span) -> Goals {
        Goals {
            kept,
            offered: BTreeSet::new(),
            known: BTreeMap::new(),
            ended: VecDeque::new(),
            result_bytes: 0,
            waiting: 0,
            answers: VecDeque::new(),
            has_changed: false,
            counters: ActionCounters::default(),
        }
    }

    /// A goal that was sent.
    pub(super) fn handle_offer(&mut self, id: GoalId) -> Offered {
        if self.offered.contains(&id) || self.known.contains_key(&id) {
            count(&mut self.counters.duplicates);
            return Offered::Duplicate;
        }
        if self.offered.len() + self.known.len() - self.ended.len() >= GOALS_MAX {
            count(&mut self.counters.full);
            return Offered::Full;
        }
        count(&mut self.counters.goals);
        self.offered.insert(id);
        Offered::New
    }

    /// The program accepts a goal; `is_begun`: and executes it. False if it was not offered.
    pub(super) fn handle_acceptance(&mut self, id: GoalId, stamp: GoalStamp, is_begun: bool) -> bool {
        if !self.offered.remove(&id) {
            return false;
        }
        count(&mut self.counters.accepted);
        let status = if is_begun { GoalStatus::Executing } else { GoalStatus::Accepted };
        self.known.insert(id, Known { stamp, status, waiting: Vec::new(), end: None });
        self.has_changed = true;
        true
    }

    /// The program rejects a goal. False if it was not offered.
    pub(super) fn handle_rejection(&mut self, id: GoalId) -> bool {
        let was_offered = self.offered.remove(&id);
        if was_offered {
            count(&mut self.counters.rejected);
        }
        was_offered
    }

    /// A goal whose client does not learn that it was accepted: as if it had not been.
    pub(super) fn handle_withdrawal(&mut self, id: GoalId) {
        if let Some(known) = self.known.remove(&id) {
            self.waiting -= known.waiting.len();
            self.has_changed = true;
        }
    }

    /// Where a goal is.
    pub(super) fn status(&self, id: GoalId) -> GoalStatus {
        self.known.get(&id).map_or(GoalStatus::Unknown, |known| known.status)
    }

    /// A goal takes a step that is no end: to executing or canceling.
    ///
    /// # Errors
    /// Where it is, if that step does not exist from there.
    pub(super) fn handle_step(&mut self, id: GoalId, to: GoalStatus) -> Result<(), GoalStatus> {
        let from = self.status(id);
        match (from, to, self.known.get_mut(&id)) {
            (GoalStatus::Accepted, GoalStatus::Executing, Some(known))
            | (GoalStatus::Accepted | GoalStatus::Executing, GoalStatus::Canceling, Some(known)) => {
                known.status = to;
                self.has_changed = true;
                if to == GoalStatus::Canceling {
                    count(&mut self.counters.canceling);
                }
                Ok(())
            }
            _ => Err(from),
        }
    }

    /// A goal ends with what requests for its result get.
    ///
    /// # Errors
    /// Where it is, if it cannot end so from there.
    pub(super) fn handle_end(
        &mut self,
        now: Instant<Local>,
        id: GoalId,
        outcome: Outcome,
    ) -> Result<(), GoalStatus> {
        let from = self.status(id);
        let is_possible = match outcome.status {
            GoalStatus::Succeeded => matches!(from, GoalStatus::Executing | GoalStatus::Canceling),
            // A goal whose handle is dropped before it was begun.
            GoalStatus::Aborted => {
                matches!(from, GoalStatus::Accepted | GoalStatus::Executing | GoalStatus::Canceling)
            }
            GoalStatus::Canceled => from == GoalStatus::Canceling,
            _ => false,
        };
        let Some(known) = self.known.get_mut(&id).filter(|_| is_possible) else { return Err(from) };
        known.status = outcome.status;
        count(match outcome.status {
            GoalStatus::Succeeded => &mut self.counters.succeeded,
            GoalStatus::Canceled => &mut self.counters.canceled,
            _ => &mut self.counters.aborted,
        });
        let waiting = std::mem::take(&mut known.waiting);
        self.waiting -= waiting.len();
        self.answers.extend(waiting.into_iter().map(|request| (request, outcome.clone())));
        self.result_bytes += outcome.bytes();
        known.end = Some((now.checked_add(self.kept).unwrap_or(Instant::MAX), outcome));
        self.ended.push_back(id);
        self.has_changed = true;
        while self.ended.len() > RESULTS_MAX || self.result_bytes > RESULTS_BYTES_MAX {
            count(&mut self.counters.results_dropped);
            self.forget_oldest();
        }
        Ok(())
    }

    /// A request for the result of a goal.
    pub(super) fn handle_request(&mut self, id: GoalId, request: RequestId) -> Wanted {
        let Some(known) = self.known.get_mut(&id) else {
            count(&mut self.counters.unknown);
            return Wanted::Unknown;
        };
        if let Some((_, outcome)) = &known.end {
            return Wanted::Answer(outcome.clone());
        }
        if self.waiting >= WAITING_MAX {
            count(&mut self.counters.waiting_full);
            return Wanted::Full;
        }
        known.waiting.push(request);
        self.waiting += 1;
        Wanted::Waits
    }

    /// Drops the requests for results whose clients do not wait any more.
    pub(super) fn handle_gone(&mut self, mut is_gone: impl FnMut(RequestId) -> bool) {
        for known in self.known.values_mut() {
            let before = known.waiting.len();
            known.waiting.retain(|request| !is_gone(*request));
            self.waiting -= before - known.waiting.len();
        }
    }

    /// The goals that a request for cancellation names, and what it is answered with if none of them is refused: a goal by its number, all that were accepted at
    /// the time or before, both, or all.
    pub(super) fn cancelable(&self, id: GoalId, stamp: GoalStamp) -> (CancelCode, Vec<GoalId>) {
        let is_open = |known: &Known| matches!(known.status, GoalStatus::Accepted | GoalStatus::Executing);
        if !id.is_none() && stamp.is_none() {
            return match self.known.get(&id) {
                None => (CancelCode::UnknownGoal, Vec::new()),
                Some(known) if known.status.is_end() => (CancelCode::Ended, Vec::new()),
                // Once more: it is being canceled.
                Some(_) => (CancelCode::None, vec![id]),
            };
        }
        let all = id.is_none() && stamp.is_none();
        let named = |(known_id, known): &(&GoalId, &Known)| {
            is_open(known) && (all || known.stamp <= stamp || **known_id == id)
        };
        (CancelCode::None, self.known.iter().filter(named).map(|(id, _)| *id).collect())
    }

    /// When a goal was accepted; zero if it is not known.
    pub(super) fn stamp(&self, id: GoalId) -> GoalStamp {
        self.known.get(&id).map_or(GoalStamp::default(), |known| known.stamp)
    }

    /// Drops the results that are kept no longer.
    pub(super) fn handle_time(&mut self, now: Instant<Local>) {
        while self.next_time().is_some_and(|at| at <= now) {
            self.forget_oldest();
        }
    }

    /// When [`handle_time`](Goals::handle_time) has something to do.
    pub(super) fn next_time(&self) -> Option<Instant<Local>> {
        let (until, _) = self.known.get(self.ended.front()?)?.end.as_ref()?;
        Some(*until)
    }

    /// A request for a result whose goal has ended.
    pub(super) fn poll_answer(&mut self) -> Option<(RequestId, Outcome)> {
        self.answers.pop_front()
    }

    /// All goals and where they are, if that has changed since the last call.
    pub(super) fn poll_statuses(&mut self) -> Option<Vec<KnownGoal>> {
        std::mem::take(&mut self.has_changed).then(|| self.statuses())
    }

    /// All goals and where they are, in the order of their acceptance.
    pub(super) fn statuses(&self) -> Vec<KnownGoal> {
        let mut all: Vec<_> = self.known.iter().map(|(id, known)| (*id, known.stamp, known.status)).collect();
        all.sort_by_key(|(id, stamp, _)| (*stamp, *id));
        all
    }

    fn forget_oldest(&mut self) {
        let Some(id) = self.ended.pop_front() else { return };
        if let Some((_, outcome)) = self.known.remove(&id).and_then(|known| known.end) {
            self.result_bytes -= outcome.bytes();
        }
        self.has_changed = true;
    }
}

impl Outcome {
    fn bytes(&self) -> usize {
        self.response.as_ref().map_or(0, |response| response.len())
    }
}

impl CancelCode {
    /// The code with this number.
    pub fn of_number(number: i8) -> Option<CancelCode> {
        [CancelCode::None, CancelCode::Rejected, CancelCode::UnknownGoal, CancelCode::Ended]
            .into_iter()
            .find(|code| *code as i8 == number)
    }
}
