//! Quality of service as tokens tell it: `<reliability>:<durability>:<history>,<depth>:<deadline>:<lifespan>:<liveliness>,<lease>`.
//!
//! Times are `<s>,<ns>`, numbers are those of `rmw/types.h`, and what is the default is left out.

use noctule::{Durability, Qos, Reliability};
use noctule_timebase::Span;

use crate::key::decimal;

/// Depth that is left out of the text, and that replaces a depth of 0.
const DEPTH_DEFAULT: u32 = 42;
/// Longest history that is kept for one topic; rmw's keep_all has it, too.
pub const DEPTH_MAX: u32 = 1000;
/// Seconds and nanoseconds of a time without limit.
const INFINITE: [u64; 2] = [9_223_372_036, 854_775_807];
const NS_PER_S: u64 = 1_000_000_000;

/// QoS that an endpoint of ROS 2 offers or requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RosQos {
    /// RELIABILITY: reliable instead of best effort.
    pub is_reliable: bool,
    /// Late readers get what is kept.
    pub is_transient_local: bool,
    /// Nothing is replaced by newer samples.
    pub is_keep_all: bool,
    /// HISTORY keep last: samples, at least 1.
    pub depth: u32,
    /// DEADLINE; `None` without limit.
    pub deadline: Option<Span>,
    /// LIFESPAN; `None` without limit.
    pub lifespan: Option<Span>,
    /// LIVELINESS manual by topic, and not automatic.
    pub is_manual: bool,
    /// LIVELINESS's lease; `None` without limit.
    pub lease: Option<Span>,
}

impl Default for RosQos {
    fn default() -> RosQos {
        RosQos {
            is_reliable: true,
            is_transient_local: false,
            is_keep_all: false,
            depth: DEPTH_DEFAULT,
            deadline: None,
            lifespan: None,
            is_manual: false,
            lease: None,
        }
    }
}

impl RosQos {
    /// QoS of services in ROS 2: reliable, the last 10.
    pub fn of_services() -> RosQos {
        RosQos { depth: 10, ..RosQos::default() }
    }

    /// QoS of an endpoint of the bus.
    pub fn of_bus(qos: &Qos) -> RosQos {
        RosQos {
            is_reliable: qos.reliability == Reliability::Reliable,
            is_transient_local: qos.durability == Durability::TransientLocal,
            depth: qos.depth.clamp(1, DEPTH_MAX),
            deadline: qos.deadline,
            lifespan: qos.lifespan,
            ..RosQos::default()
        }
    }

    /// The same QoS on the bus.
    pub fn on_bus(&self) -> Qos {
        let depth = if self.is_keep_all { DEPTH_MAX } else { self.depth.clamp(1, DEPTH_MAX) };
        Qos {
            reliability: if self.is_reliable { Reliability::Reliable } else { Reliability::BestEffort },
            durability: if self.is_transient_local {
                Durability::TransientLocal
            } else {
                Durability::Volatile
            },
            depth,
            deadline: self.deadline,
            lifespan: self.lifespan,
            ..Qos::default()
        }
    }

    /// Text of the QoS in a token.
    pub fn text(&self) -> String {
        let only = |is: bool, text: &str| if is { text.to_owned() } else { String::new() };
        let reliability = only(!self.is_reliable, "2");
        let durability = only(self.is_transient_local, "1");
        let history = only(self.is_keep_all, "2");
        let depth = only(self.depth != DEPTH_DEFAULT, &self.depth.to_string());
        let (deadline, lifespan) = (time(self.deadline), time(self.lifespan));
        let (liveliness, lease) = (only(self.is_manual, "3"), time(self.lease));
        format!("{reliability}:{durability}:{history},{depth}:{deadline}:{lifespan}:{liveliness},{lease}")
    }

    /// QoS from a token's text; `None` if it is none. Words for "as the system has it" are the default.
    pub fn parse(text: &str) -> Option<RosQos> {
        let mut parts = text.split(':');
        let mut part = || parts.next();
        let (reliability, durability, history) = (part()?, part()?, part()?);
        let (deadline, lifespan, liveliness) = (part()?, part()?, part()?);
        if part().is_some() {
            return None;
        }
        let (history, depth) = history.split_once(',')?;
        let (liveliness, lease) = liveliness.split_once(',')?;
        let depth = number(depth)?.unwrap_or(u64::from(DEPTH_DEFAULT));
        let depth = if depth == 0 { DEPTH_DEFAULT } else { u32::try_from(depth).unwrap_or(u32::MAX) };
        Some(RosQos {
            is_reliable: number(reliability)? != Some(2),
            is_transient_local: number(durability)? == Some(1),
            is_keep_all: number(history)? == Some(2),
            depth,
            deadline: parse_time(deadline)?,
            lifespan: parse_time(lifespan)?,
            is_manual: number(liveliness)? == Some(3),
            lease: parse_time(lease)?,
        })
    }
}

/// A number, or the default.
fn number(text: &str) -> Option<Option<u64>> {
    if text.is_empty() { Some(None) } else { decimal(text).map(Some) }
}

fn time(span: Option<Span>) -> String {
    let Some(span) = span else { return ",".to_owned() };
    let ns = span.ns().max(0) as u64;
    let parts = [ns / NS_PER_S, ns % NS_PER_S];
    let [s, ns] =
        [0, 1].map(|at| if parts[at] == INFINITE[at] { String::new() } else { parts[at].to_string() });
    format!("{s},{ns}")
}

fn parse_time(text: &str) -> Option<Option<Span>> {
    let (s, ns) = text.split_once(',')?;
    let (s, ns) = (number(s)?.unwrap_or(INFINITE[0]), number(ns)?.unwrap_or(INFINITE[1]));
    let ns = s.checked_mul(NS_PER_S).and_then(|whole| whole.checked_add(ns));
    let ns = ns.and_then(|ns| i64::try_from(ns).ok()).filter(|ns| *ns != i64::MAX);
    // Neither a time of nothing nor one of 292 years is a limit.
    Some(ns.filter(|ns| *ns != 0).map(Span::from_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_ros_2_writes_is_read_and_written_again() {
        let seven = RosQos { depth: 7, ..RosQos::default() };
        let rosout = RosQos {
            is_transient_local: true,
            depth: 1000,
            lifespan: Some(Span::from_s(10)),
            ..RosQos::default()
        };
        let sensor = RosQos { is_reliable: false, depth: 5, ..RosQos::default() };
        for (text, qos) in [("::,7:,:,:,,", seven), (":1:,1000:,:10,0:,,", rosout), ("2::,5:,:,:,,", sensor)]
        {
            assert_eq!(RosQos::parse(text), Some(qos), "{text}");
            assert_eq!(qos.text(), text);
        }
        assert_eq!(RosQos::default().text(), "::,:,:,:,,");
    }

    #[test]
    fn what_is_left_to_the_system_is_the_default_and_a_depth_of_0_too() {
        assert_eq!(RosQos::parse("0:0:0,0:0,0:0,0:0,0,0"), Some(RosQos::default()));
        assert_eq!(RosQos::parse("1:2:1,42:,:,:1,,"), Some(RosQos::default()));
        for text in ["", "::", "::,:,:,:,,:", "x::,:,:,:,,", "::,-1:,:,:,,", "::,:,:,:,", "::7:,:,:,,"] {
            assert_eq!(RosQos::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_bus_keeps_what_it_may() {
        let all = RosQos { is_keep_all: true, depth: 1, ..RosQos::default() };
        assert_eq!(all.on_bus().depth, DEPTH_MAX);
        assert_eq!(RosQos { depth: u32::MAX, ..all }.on_bus().depth, DEPTH_MAX);
        let qos = Qos {
            depth: 9,
            reliability: Reliability::Reliable,
            deadline: Some(Span::from_ms(5)),
            ..Qos::default()
        };
        assert_eq!(RosQos::of_bus(&qos).on_bus(), qos);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}", near in "[0-3]?:[0-3]?:[0-3]?,[0-9]{0,12}:[0-9]{0,20},[0-9]{0,20}:,:[0-4]?,,") {
            for text in [text, near] {
                if let Some(qos) = RosQos::parse(&text) {
                    prop_assert_eq!(RosQos::parse(&qos.text()), Some(qos));
                }
            }
        }
    }
}
