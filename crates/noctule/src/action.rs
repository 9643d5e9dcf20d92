//! Actions: goals that take time, with feedback, a result and cancellation, with ROS 2's semantics.
//!
//! # Approach
//!
//! - The three services and two topics of an action are those of ROS 2, by name and type: `send_goal`, `cancel_goal`, `get_result`, `feedback` and `status` below
//!   `/name/_action/`. A bridge passes them as any service and any topic; its tools see them.
//! - `goals`: states of the goals of a server, its results and the clients that wait for them. Sans-IO.
//! - [`ActionServer`]: a thread of its own answers requests for results and cancellations while the program works; the program gets the goals.
//! - [`ActionClient`]: everything that becomes of its goals comes out of one function, [`next`](ActionClient::next), in the caller's thread.
//! - A result is requested from the server that accepted the goal, so its end is noticed, and named.
//!
//! Limits: [`GOALS_MAX`], [`RESULTS_MAX`], [`RESULTS_BYTES_MAX`], [`WAITING_MAX`], [`EVENTS_MAX`].

mod client;
mod definition;
mod error;
mod goals;
mod server;
mod typed;
mod types;

#[cfg(test)]
mod tests;

pub use client::{
    ActionClientBuilder, ActionClientCounters, Canceled, EVENTS_MAX, GoalEvent, NextGoalEvent,
    RESULT_DEADLINE_DEFAULT, RawActionClient, RawResult,
};
pub use definition::Action;
pub use error::{ActionError, GoalError};
pub use goals::{
    ActionCounters, CancelCode, GOAL_KEPT_DEFAULT, GOALS_MAX, RESULTS_BYTES_MAX, RESULTS_MAX, WAITING_MAX,
};
pub use server::{ActionServerBuilder, RawActionServer, RawActiveGoal, RawGoal};
pub use typed::{
    ActionClient, ActionServer, ActiveGoal, Goal, GoalResult, TypedActionClientBuilder,
    TypedActionServerBuilder, TypedGoalEvent,
};
pub use types::ActionTypes;

use std::fmt;
use std::io;

use noctule_sys::clock::three_clocks;
use noctule_sys::random;

use crate::generated::action_msgs::msg;
use crate::generated::builtin_interfaces::msg::Time;
use crate::generated::unique_identifier_msgs::msg::UUID;

/// The number of a goal, a UUID that its client chose. All zero: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GoalId(pub [u8; 16]);

/// Where a goal is. The numbers are those of `action_msgs/msg/GoalStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i8)]
pub enum GoalStatus {
    /// The server has no such goal.
    Unknown = 0,
    /// Accepted, and not begun.
    Accepted = 1,
    /// Under way.
    Executing = 2,
    /// Under way, and requested to end.
    Canceling = 3,
    /// It ended as it should.
    Succeeded = 4,
    /// It ended on request.
    Canceled = 5,
    /// It ended because the server gave it up.
    Aborted = 6,
}

const STATUSES: [(GoalStatus, &str); 7] = [
    (GoalStatus::Unknown, "unknown"),
    (GoalStatus::Accepted, "accepted"),
    (GoalStatus::Executing, "executing"),
    (GoalStatus::Canceling, "canceling"),
    (GoalStatus::Succeeded, "succeeded"),
    (GoalStatus::Canceled, "canceled"),
    (GoalStatus::Aborted, "aborted"),
];

/// The time of day at which a server accepted a goal. Zero: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GoalStamp {
    /// Seconds since 1970.
    pub sec: i32,
    /// Nanoseconds beside, below 1e9.
    pub nanosec: u32,
}

impl GoalId {
    /// A new one by chance (version 4 of RFC 9562).
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<GoalId> {
        let mut bytes = random::secret::<16>()?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(GoalId(bytes))
    }

    /// Whether it names no goal.
    pub fn is_none(self) -> bool {
        self == GoalId::default()
    }

    /// Reads 32 hexadecimal digits, with or without hyphens.
    pub fn parse(text: &str) -> Option<GoalId> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
        if digits.len() != 32 {
            return None;
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(GoalId(bytes))
    }
}

impl fmt::Display for GoalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl GoalStatus {
    /// The status with this number.
    pub fn of_number(number: i8) -> Option<GoalStatus> {
        STATUSES.get(usize::try_from(number).ok()?).map(|(status, _)| *status)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        STATUSES[self as usize].1
    }

    /// Whether the goal has ended.
    pub fn is_end(self) -> bool {
        matches!(self, GoalStatus::Succeeded | GoalStatus::Canceled | GoalStatus::Aborted)
    }
}

impl fmt::Display for GoalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl GoalStamp {
    /// The time of day now.
    pub fn now() -> GoalStamp {
        let now_ns = three_clocks().realtime_ns;
        let sec = i32::try_from(now_ns.div_euclid(1_000_000_000)).unwrap_or(i32::MAX);
        GoalStamp { sec, nanosec: now_ns.rem_euclid(1_000_000_000) as u32 }
    }

    /// Whether it names no time.
    pub fn is_none(self) -> bool {
        self == GoalStamp::default()
    }

    fn of_message(time: &Time) -> GoalStamp {
        GoalStamp { sec: time.sec, nanosec: time.nanosec }
    }

    fn to_message(self) -> Time {
        Time { sec: self.sec, nanosec: self.nanosec }
    }
}

/// A goal, when it was accepted, and where it is.
pub type KnownGoal = (GoalId, GoalStamp, GoalStatus);

fn goal_info(id: GoalId, stamp: GoalStamp) -> msg::GoalInfo {
    msg::GoalInfo { goal_id: UUID { uuid: id.0 }, stamp: stamp.to_message() }
}

fn of_goal_info(info: &msg::GoalInfo) -> (GoalId, GoalStamp) {
    (GoalId(info.goal_id.uuid), GoalStamp::of_message(&info.stamp))
}

/// The services and topics of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionNames {
    /// Sends a goal.
    pub send_goal: String,
    /// Cancels goals.
    pub cancel_goal: String,
    /// Waits for the result of a goal.
    pub get_result: String,
    /// The topic of feedback.
    pub feedback: String,
    /// The topic of states.
    pub status: String,
}

impl ActionNames {
    /// Those of `/action`; the leading `/` may be left out.
    pub fn of(action: &str) -> ActionNames {
        let name = action.trim_matches('/');
        let at = |last: &str| format!("/{name}/_action/{last}");
        ActionNames {
            send_goal: at("send_goal"),
            cancel_goal: at("cancel_goal"),
            get_result: at("get_result"),
            feedback: at("feedback"),
            status: at("status"),
        }
    }

    /// The action whose goals are sent by `service`, with a leading `/`; `None` if it sends none.
    pub fn action_of(service: &str) -> Option<String> {
        let name = service.trim_start_matches('/').strip_suffix("/_action/send_goal")?;
        (!name.is_empty()).then(|| format!("/{name}"))
    }
}
