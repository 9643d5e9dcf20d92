//! Statuses of DDS, which ROS 2 calls events: a total and its change since the last look.

use crate::signal::Waitable;

/// Which event, by its place in [`Statuses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Partners came or went.
    Matched,
    /// No sample within DEADLINE.
    Deadline,
    /// A partner's QoS does not fit.
    IncompatibleQos,
    /// A partner's type is another one.
    IncompatibleType,
    /// Publishers that are alive came or went; of a publisher: never.
    Liveliness,
    /// Samples were lost before they were read.
    Lost,
}

/// All kinds, in the order of their numbers.
pub const KINDS: [Kind; 6] = [
    Kind::Matched,
    Kind::Deadline,
    Kind::IncompatibleQos,
    Kind::IncompatibleType,
    Kind::Liveliness,
    Kind::Lost,
];

/// A count, and what of it nobody has looked at yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Count since the endpoint was opened.
    pub total: u64,
    /// Change of `total` since the last look.
    pub total_change: u64,
    /// Present count.
    pub current: u64,
    /// Change of `current` since the last look.
    pub current_change: i64,
    /// For [`Kind::IncompatibleQos`]: which policy did not fit last, as [`policy`] numbers it.
    pub policy: u32,
}

/// Numbers of QoS policies.
pub mod policy {
    /// None.
    pub const NONE: u32 = 0;
    /// DURABILITY.
    pub const DURABILITY: u32 = 1;
    /// DEADLINE.
    pub const DEADLINE: u32 = 2;
    /// RELIABILITY.
    pub const RELIABILITY: u32 = 3;
}

impl Status {
    /// There are so many now. True if that is a change.
    pub fn now(&mut self, current: u64) -> bool {
        let more = current.saturating_sub(self.current);
        self.total += more;
        self.total_change += more;
        self.current_change += current as i64 - self.current as i64;
        let changed = current != self.current;
        self.current = current;
        changed
    }

    /// There were so many ever. True if that is a change.
    pub fn ever(&mut self, total: u64) -> bool {
        let more = total.saturating_sub(self.total);
        self.total += more;
        self.total_change += more;
        more > 0
    }

    /// Returns the status and sets its changes to zero.
    pub fn take(&mut self) -> Status {
        let now = *self;
        (self.total_change, self.current_change) = (0, 0);
        now
    }
}

/// The events of one endpoint.
#[derive(Debug, Default)]
pub struct Statuses {
    kinds: [Event; KINDS.len()],
}

#[derive(Debug, Default)]
struct Event {
    status: std::sync::Mutex<Status>,
    waitable: Waitable,
}

impl Statuses {
    /// Waitable that is raised when this event's status changes.
    pub fn waitable(&self, kind: Kind) -> &Waitable {
        &self.kinds[kind as usize].waitable
    }

    /// The status; nothing of it is new any more.
    pub fn take(&self, kind: Kind) -> Status {
        let event = &self.kinds[kind as usize];
        event.waitable.clear();
        crate::signal::lock(&event.status).take()
    }

    /// Changes a status; waiting threads are woken if `change` says that it has changed.
    pub(crate) fn update(&self, kind: Kind, change: impl FnOnce(&mut Status) -> bool) {
        let event = &self.kinds[kind as usize];
        let changed = change(&mut crate::signal::lock(&event.status));
        if changed {
            event.waitable.set();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_that_come_and_go_are_counted_as_dds_counts_them() {
        let statuses = Statuses::default();
        let now = |current| statuses.update(Kind::Matched, |status| status.now(current));
        now(0);
        assert!(!statuses.waitable(Kind::Matched).is_ready());
        now(1);
        now(2);
        let status = Status { total: 2, total_change: 2, current: 2, current_change: 2, policy: 0 };
        assert_eq!(statuses.take(Kind::Matched), status);
        assert!(!statuses.waitable(Kind::Matched).is_ready());
        now(1);
        now(0);
        let status = Status { total: 2, total_change: 0, current: 0, current_change: -2, policy: 0 };
        assert_eq!(statuses.take(Kind::Matched), status);
    }

    #[test]
    fn totals_only_rise() {
        let mut status = Status::default();
        assert!(status.ever(3) && !status.ever(3) && !status.ever(1));
        assert_eq!((status.take().total_change, status.take().total_change), (3, 0));
    }
}
