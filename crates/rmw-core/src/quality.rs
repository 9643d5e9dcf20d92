//! Quality of service, in the words of ROS 2, for the library's builders.

use std::time::Duration;

use noctule::{Durability, PublisherBuilder, Qos, Reliability, SubscriberBuilder};
use noctule_timebase::Span;

use crate::queue::History;

/// Depth where ROS names none (`RMW_QOS_POLICY_DEPTH_SYSTEM_DEFAULT`).
pub const DEPTH_DEFAULT: u32 = 10;
/// Samples that a reader may lag behind a publisher with KEEP_ALL, and a greater depth is cut to.
pub const DEPTH_MAX: u32 = 10_000;
/// Least history of a volatile publisher: its readers' hubs drain it, each in its own time, and nobody sees more than was published after it came.
const VOLATILE_DEPTH_MIN: u32 = 16;

/// QoS that a publisher offers or a subscription requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quality {
    /// RELIABILITY: reliable instead of best effort.
    pub reliable: bool,
    /// DURABILITY: transient local instead of volatile.
    pub transient_local: bool,
    /// HISTORY: keep all instead of keep last.
    pub keep_all: bool,
    /// HISTORY's depth with keep last; 0: [`DEPTH_DEFAULT`], or of a reader elsewhere: not known.
    pub depth: u32,
    /// DEADLINE; `None`: none.
    pub deadline: Option<Duration>,
    /// LIFESPAN; `None`: none.
    pub lifespan: Option<Duration>,
}

impl Quality {
    /// ROS 2's own default, `rmw_qos_profile_default`: reliable, volatile, keep last 10.
    pub const DEFAULT: Quality = Quality {
        reliable: true,
        transient_local: false,
        keep_all: false,
        depth: DEPTH_DEFAULT,
        deadline: None,
        lifespan: None,
    };

    /// Depth that is kept.
    pub fn depth(&self) -> u32 {
        match self.depth {
            _ if self.keep_all => DEPTH_MAX,
            0 => DEPTH_DEFAULT,
            depth => depth.min(DEPTH_MAX),
        }
    }

    /// HISTORY of a subscription's queue.
    pub fn history(&self) -> History {
        if self.keep_all { History::KeepAll } else { History::KeepLast(self.depth() as usize) }
    }

    /// QoS that a reader of the bus requests. By default it uses its publisher's HISTORY and announces no depth; so do the subscriptions of
    /// other contexts, whose depth is that of a queue of their process.
    pub fn of_reader(qos: &Qos) -> Quality {
        let default = Qos::default();
        let is_said = (qos.depth, qos.keep_all) != (default.depth, default.keep_all);
        Quality { depth: if is_said { qos.depth } else { 0 }, ..Quality::of(qos) }
    }

    /// QoS that an endpoint of the bus offers or requests.
    pub fn of(qos: &Qos) -> Quality {
        let duration = |span: Span| Duration::from_nanos(span.ns().max(0) as u64);
        Quality {
            reliable: qos.reliability == Reliability::Reliable,
            transient_local: qos.durability == Durability::TransientLocal,
            keep_all: qos.keep_all,
            depth: qos.depth,
            deadline: qos.deadline.map(duration),
            lifespan: qos.lifespan.map(duration),
        }
    }

    pub(crate) fn publisher(&self, builder: PublisherBuilder) -> PublisherBuilder {
        let depth = match self.transient_local {
            // Late joiners get no more than was requested.
            true => self.depth(),
            false => self.depth().max(VOLATILE_DEPTH_MIN),
        };
        let mut builder = if self.keep_all { builder.keep_all(depth) } else { builder.keep_last(depth) };
        if self.reliable {
            builder = builder.reliability(Reliability::Reliable);
        }
        if self.transient_local {
            builder = builder.transient_local();
        }
        if let Some(deadline) = self.deadline {
            builder = builder.deadline(deadline);
        }
        match self.lifespan {
            Some(lifespan) => builder.lifespan(lifespan),
            None => builder,
        }
    }

    pub(crate) fn subscriber(&self, mut builder: SubscriberBuilder) -> SubscriberBuilder {
        if self.reliable {
            builder = builder.reliability(Reliability::Reliable);
        }
        if self.transient_local {
            builder = builder.transient_local();
        }
        if let Some(deadline) = self.deadline {
            builder = builder.deadline(deadline);
        }
        match self.lifespan {
            Some(lifespan) => builder.lifespan(lifespan),
            None => builder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Quality = Quality::DEFAULT;

    #[test]
    fn the_history_of_an_endpoint_is_what_it_announces() {
        let all = Qos { depth: 30, keep_all: true, ..Qos::default() };
        for quality in [Quality::of(&all), Quality::of_reader(&all)] {
            assert!(quality.keep_all && quality.depth == 30);
        }
        let last = Qos { keep_all: false, ..all };
        assert!(!Quality::of(&last).keep_all);
        assert_eq!(Quality::of_reader(&last).depth, 30);
        // A reader that says nothing has no depth to show; a writer always has one.
        assert_eq!((Quality::of_reader(&Qos::default()).depth, Quality::of(&Qos::default()).depth), (0, 8));
    }

    #[test]
    fn depths_are_those_of_ros_within_the_limit() {
        assert_eq!(DEFAULT.depth(), 10);
        assert_eq!(Quality { depth: 0, ..DEFAULT }.depth(), DEPTH_DEFAULT);
        assert_eq!(Quality { depth: u32::MAX, ..DEFAULT }.depth(), DEPTH_MAX);
        assert_eq!(Quality { keep_all: true, ..DEFAULT }.history(), History::KeepAll);
        assert_eq!(DEFAULT.history(), History::KeepLast(10));
    }
}
