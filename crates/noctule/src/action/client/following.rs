//! How a client follows its goals: responses, results, feedback and states, and servers that come and go.

use std::time::Duration;

use noctule_discovery::NodeId;
use noctule_formats::{FormatError, decode_cdr};

use super::{CDR, Canceled, EVENTS_MAX, Followed, GoalEvent, Phase, RawActionClient, RawResult};
use crate::action::error::GoalError;
use crate::action::goals::{CancelCode, count};
use crate::action::types::{GOAL_BYTES, STATUS_AT};
use crate::action::{GoalId, GoalStamp, GoalStatus, of_goal_info};
use crate::generated::action_msgs::{msg, srv};
use crate::generated::builtin_interfaces::msg::Time;
use crate::request::{CallError, CallId, EndedCall, RawClient, RawReply};
use crate::sample::SampleInfo;

impl RawActionClient {
    /// Sleeps until there may be something to do, at most so long.
    pub(super) fn wait(&mut self, most: Option<Duration>) {
        let clients = [&self.goals, &self.cancels, &self.results];
        let due = clients.into_iter().filter_map(RawClient::next_due).min();
        let timeout = [most, due].into_iter().flatten().min();
        let mut all = [
            self.goals.subscriber(),
            self.cancels.subscriber(),
            self.results.subscriber(),
            &mut self.feedback,
            &mut self.status,
        ];
        self.set.wait_for_news(&mut all, timeout);
    }

    /// Does what is to be done now.
    pub(super) fn step(&mut self) -> Result<(), GoalError> {
        self.take_feedback()?;
        while let Some(EndedCall { call, result }) = self.goals.next(Some(Duration::ZERO))? {
            self.handle_sent(call, result)?;
        }
        while let Some(sample) = self.status.take()? {
            let read = decode_cdr::<msg::GoalStatusArray>(&sample.to_vec());
            drop(sample);
            match read {
                Ok(statuses) => self.handle_statuses(&statuses),
                Err(_) => count(&mut self.counters.malformed),
            }
        }
        while let Some(EndedCall { call, result }) = self.cancels.next(Some(Duration::ZERO))? {
            let goal = self.canceling.remove(&call).unwrap_or_default();
            let answer = result.map_err(GoalError::from).and_then(|reply| self.canceled(&reply));
            self.event(goal, GoalEvent::Cancel(answer));
        }
        while let Some(EndedCall { call, result }) = self.results.next(Some(Duration::ZERO))? {
            // What was published before the result is an earlier event, as far as it has come.
            self.take_feedback()?;
            self.handle_result(call, result);
        }
        self.handle_servers()
    }

    fn take_feedback(&mut self) -> Result<(), GoalError> {
        while let Some(sample) = self.feedback.take()? {
            let (bytes, info) = (sample.to_vec(), *sample.info());
            drop(sample);
            self.handle_feedback(bytes, info);
        }
        Ok(())
    }

    /// The server has accepted or rejected a goal, or not answered.
    fn handle_sent(&mut self, call: CallId, result: Result<RawReply, CallError>) -> Result<(), GoalError> {
        let is_it = |followed: &Followed| matches!(followed.phase, Phase::Sent(sent) if sent == call);
        let found = self.followed.iter().find(|(_, followed)| is_it(followed));
        let Some((goal, result_deadline)) = found.map(|(goal, followed)| (*goal, followed.result_deadline))
        else {
            return Ok(());
        };
        let reply = match result {
            Ok(reply) => reply,
            Err(why) => {
                self.failed(goal, why.into());
                return Ok(());
            }
        };
        let (accepted, stamp) = match decode_cdr::<(bool, Time)>(reply.bytes()) {
            Ok(answer) => answer,
            Err(cause) => {
                let why = self.format(cause);
                self.failed(goal, why);
                return Ok(());
            }
        };
        let server = reply.server();
        if !accepted {
            count(&mut self.counters.rejected);
            let action = self.action.clone();
            self.failed(goal, GoalError::Rejected { action, server, goal });
            return Ok(());
        }
        count(&mut self.counters.accepted);
        self.event(goal, GoalEvent::Accepted { server, stamp: GoalStamp::of_message(&stamp) });
        // It came before the answer.
        let status = self.followed.get(&goal).map(|followed| followed.status);
        if let Some(status) = status.filter(|status| *status != GoalStatus::Unknown) {
            self.event(goal, GoalEvent::Status(status));
        }
        let request = [CDR.as_slice(), &goal.0].concat();
        match self.results.start_at(&request, Some(result_deadline), Some(server)) {
            Ok(call) => {
                if let Some(followed) = self.followed.get_mut(&goal) {
                    followed.phase = Phase::Accepted(call, server);
                }
            }
            Err(why) => self.failed(goal, why.into()),
        }
        Ok(())
    }

    fn handle_result(&mut self, call: CallId, result: Result<RawReply, CallError>) {
        let server = |followed: &Followed| match followed.phase {
            Phase::Accepted(asked, server) if asked == call => Some(server),
            _ => None,
        };
        let mut followed = self.followed.iter();
        let Some((goal, server)) = followed.find_map(|(goal, one)| Some((*goal, server(one)?))) else {
            return;
        };
        let action = || self.action.clone();
        let reply = match result {
            Ok(reply) => reply,
            Err(why) => return self.failed(goal, why.into()),
        };
        let status = reply.bytes().get(STATUS_AT).and_then(|byte| GoalStatus::of_number(*byte as i8));
        match status {
            Some(status) if status.is_end() => {
                count(&mut self.counters.results);
                self.end(goal, GoalEvent::Result(RawResult { status, reply }));
            }
            Some(GoalStatus::Unknown) => {
                let why = GoalError::Unknown { action: action(), server, goal };
                self.failed(goal, why);
            }
            _ => {
                count(&mut self.counters.malformed);
                let bytes = reply.bytes().len();
                let why = GoalError::Message { action: action(), what: "response with a result", bytes };
                self.failed(goal, why);
            }
        }
    }

    fn handle_feedback(&mut self, bytes: Vec<u8>, info: SampleInfo) {
        let Some(id) = bytes.get(STATUS_AT..GOAL_BYTES).and_then(|id| id.try_into().ok()) else {
            return count(&mut self.counters.malformed);
        };
        let goal = GoalId(id);
        match self.followed.get(&goal).map(|followed| followed.phase) {
            // Its result overtook it.
            None | Some(Phase::Ended) => count(&mut self.counters.other_goals),
            Some(_) => self.event(goal, GoalEvent::Feedback { bytes, info }),
        }
    }

    fn handle_statuses(&mut self, statuses: &msg::GoalStatusArray) {
        self.known.clear();
        for entry in &statuses.status_list {
            let (goal, stamp) = of_goal_info(&entry.goal_info);
            let Some(status) = GoalStatus::of_number(entry.status) else {
                count(&mut self.counters.malformed);
                continue;
            };
            self.known.push((goal, stamp, status));
            let Some(followed) = self.followed.get_mut(&goal) else { continue };
            // Ends are reported with the result.
            if !matches!(status, GoalStatus::Executing | GoalStatus::Canceling) || status <= followed.status {
                continue;
            }
            followed.status = status;
            if matches!(followed.phase, Phase::Accepted(..)) {
                self.event(goal, GoalEvent::Status(status));
            }
        }
    }

    /// A goal whose server is gone before its result was requested.
    fn handle_servers(&mut self) -> Result<(), GoalError> {
        let is_gone = |followed: &Followed| match followed.phase {
            Phase::Accepted(call, server) if !self.goals.has_server(server) => Some((call, server)),
            _ => None,
        };
        let gone: Vec<(GoalId, CallId, NodeId)> = self
            .followed
            .iter()
            .filter_map(|(goal, followed)| is_gone(followed).map(|(call, server)| (*goal, call, server)))
            .collect();
        for (goal, call, server) in gone {
            self.results.cancel(call)?;
            let service = self.results.service().to_owned();
            self.failed(goal, CallError::ServerGone { service, server }.into());
        }
        Ok(())
    }

    fn canceled(&self, reply: &RawReply) -> Result<Canceled, GoalError> {
        let response: srv::CancelGoal_Response =
            decode_cdr(reply.bytes()).map_err(|cause| self.format(cause))?;
        let Some(code) = CancelCode::of_number(response.return_code) else {
            let (action, bytes) = (self.action.clone(), reply.bytes().len());
            return Err(GoalError::Message { action, what: "answer to a cancellation", bytes });
        };
        Ok(Canceled { code, goals: response.goals_canceling.iter().map(of_goal_info).collect() })
    }

    fn failed(&mut self, goal: GoalId, why: GoalError) {
        count(&mut self.counters.failed);
        self.end(goal, GoalEvent::Failed(why));
    }

    /// The last event of a goal.
    fn end(&mut self, goal: GoalId, event: GoalEvent) {
        if let Some(followed) = self.followed.get_mut(&goal) {
            followed.phase = Phase::Ended;
            self.event(goal, event);
        }
    }

    fn event(&mut self, goal: GoalId, event: GoalEvent) {
        if self.events.len() >= EVENTS_MAX {
            let is_feedback = |(_, event): &(GoalId, GoalEvent)| matches!(event, GoalEvent::Feedback { .. });
            // All other events are few: at most four for each goal that is followed, and one for each cancellation.
            if let Some(at) = self.events.iter().position(is_feedback) {
                self.events.remove(at);
                count(&mut self.counters.feedback_dropped);
            }
        }
        self.events.push_back((goal, event));
    }

    pub(super) fn format(&self, cause: FormatError) -> GoalError {
        GoalError::Format { action: self.action.clone(), cause }
    }
}
