//! Notices: events that matter to a user although no call failed.

mod printer;

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use noctule_discovery::{EndpointKind, Incompatible, NodeId, Reason};
use noctule_prrt::Infeasible;
use noctule_timebase::Span;

use crate::clock;
use crate::envelope::Refused;
use crate::topic_formats::names;
use printer::NoticePrinter;

/// The callback for notices, see [`NodeBuilder::on_notice`](crate::NodeBuilder::on_notice).
#[derive(Clone)]
pub struct NoticeHook(Arc<Call>);

type Call = dyn Fn(&Notice) + Send + Sync;

impl NoticeHook {
    pub(crate) fn new(hook: impl Fn(&Notice) + Send + Sync + 'static) -> NoticeHook {
        NoticeHook(Arc::new(hook))
    }

    /// Prints them, so that none is silent.
    pub(crate) fn standard_error() -> NoticeHook {
        let printer = Mutex::new(NoticePrinter::default());
        NoticeHook::new(move |notice| {
            let mut printer = printer.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(line) = printer.line(notice, clock::now()) {
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
        })
    }

    pub(crate) fn call(&self, notice: &Notice) {
        (self.0)(notice);
    }
}

impl fmt::Debug for NoticeHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoticeHook")
    }
}

/// An event. Printed to standard error unless the node was given another way.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A writer and a reader of one topic do not fit together.
    Mismatch {
        /// The topic.
        topic: String,
        /// The other node's name.
        node: String,
        /// Why.
        why: Incompatible,
    },
    /// A writer has no definition of its type, so that only the name was compared with that of a reader here.
    Undescribed {
        /// The topic.
        topic: String,
        /// The writer's node, by name.
        node: String,
        /// The name of the type.
        type_name: String,
    },
    /// A writer uses a format that this program is built without, so a typed subscriber cannot read it.
    LeftOut {
        /// The topic.
        topic: String,
        /// The writer's node, by name.
        node: String,
        /// A bit per format.
        formats: u32,
    },
    /// A node has gone without announcing it.
    Gone {
        /// Which.
        node: NodeId,
        /// How that was noticed.
        reason: Reason,
    },
    /// This node sends on a network and has no swarm key. Reported once in the life of a node.
    NoKey {
        /// Name of the network's interface.
        interface: String,
    },
    /// The key file has changed: its first key seals from now on, all of its keys open.
    KeyChanged {
        /// Of the first key.
        fingerprint: String,
        /// How many keys the file has.
        keys: usize,
    },
    /// The key file has changed and cannot be used; the node goes on with the keys that it has.
    KeyUnusable {
        /// Why, and the way out.
        why: String,
    },
    /// Other nodes, or what they announce, were refused because a table is full. Reported once a minute at most.
    Full {
        /// Nodes, pages and matches refused since the last notice.
        refused: u64,
    },
    /// Another process has this node's secret and has sealed more: the machine is a copy, and the node has ended.
    Copied,
    /// Keys that do not fit.
    Seal {
        /// How.
        why: Refused,
    },
    /// A deadline-bound topic cannot have what it requests on the path to a node, as that is now.
    Infeasible {
        /// The topic.
        topic: String,
        /// The reader's node.
        node: NodeId,
        /// Why, and what could be had.
        why: Infeasible,
    },
    /// It can again.
    Feasible {
        /// The topic.
        topic: String,
        /// The reader's node.
        node: NodeId,
    },
    /// A reliable topic offers more than the path to a node carries or its reader there takes: older samples gave way to newer ones before they were
    /// sent. At once, then every five seconds at most.
    GivenUp {
        /// The topic.
        topic: String,
        /// The reader's node.
        node: NodeId,
        /// Samples given up since the last such notice.
        samples: u64,
    },
    /// A reader of a topic keeps all and does not read: its publisher waits. Once each time.
    HeldUp {
        /// The topic.
        topic: String,
        /// The reader's node.
        node: NodeId,
        /// Its process, if it is on this host; 0 in another namespace of processes.
        process: Option<i32>,
        /// Time since it last received a sample, or for which there has been no room.
        waited: Span,
    },
    /// Nodes of other hosts have so much still to acknowledge that samples were given up. Once a minute at most.
    Unacknowledged {
        /// Samples given up for this, counted for each node that did not get one, since the last notice.
        samples: u64,
        /// [`unacknowledged_bytes_max`](crate::NodeBuilder::unacknowledged_bytes_max).
        limit_bytes: usize,
    },
    /// A node loses so much of what goes to a group that it would cost the other readers too much; it is served by
    /// itself.
    MulticastDemoted {
        /// The topic.
        topic: String,
        /// The reader's node.
        node: NodeId,
        /// Share of the group's datagrams that it loses.
        loss: f64,
    },
    /// It is served with the others again.
    MulticastRestored {
        /// The topic.
        topic: String,
        /// The reader's node.
        node: NodeId,
    },
    /// No sample for longer than DEADLINE. Reported at the first miss after a sample, once a second at most.
    DeadlineMissed {
        /// The topic.
        topic: String,
        /// Writer: the publisher's promise was broken; reader: the subscriber's demand was not met.
        kind: EndpointKind,
        /// The deadline.
        period: Span,
        /// Periods missed so far.
        total: u64,
    },
    /// The samples of a publisher cannot be received on this side.
    Unreadable {
        /// The topic.
        topic: String,
        /// Why, and the way out.
        why: String,
    },
    /// Shared memory refused a subscriber a publisher of this host; the samples come by UDP instead. Once for each node and topic.
    ByUdp {
        /// [`Refused`](Notice::Refused) or [`Unreadable`](Notice::Unreadable).
        refusal: Box<Notice>,
    },
    /// A reply came to a call that had ended without it.
    LateReply {
        /// The service.
        service: String,
        /// The server's node.
        node: NodeId,
        /// How long after the call began.
        since: Span,
    },
    /// A publisher of this host did not let a subscriber read, and its samples cannot come by UDP either.
    Refused {
        /// The topic.
        topic: String,
        /// The publisher's words.
        why: String,
    },
}

impl Notice {
    /// That two endpoints do not fit, where the one here would understand the formats `left_out`, were they part of
    /// this build.
    pub(crate) fn mismatch(topic: &str, node: String, why: Incompatible, left_out: u32) -> Notice {
        let topic = topic.to_owned();
        match why {
            Incompatible::Format { writer, reader } if writer & !reader & left_out != 0 => {
                Notice::LeftOut { topic, node, formats: writer & !reader & left_out }
            }
            why => Notice::Mismatch { topic, node, why },
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(&mut Plain(f))
    }
}

/// Passes on text without what makes a terminal do something: names and reasons come from other nodes.
struct Plain<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Plain<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.split(is_unprintable).enumerate().try_for_each(|(at, part)| {
            if at > 0 {
                self.0.write_str("\u{fffd}")?;
            }
            self.0.write_str(part)
        })
    }
}

/// Control characters, and those that turn the direction of writing or end a line (Unicode 16, section 23.2 and 23.3).
fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Notice {
    /// A word for its kind, for logs and for other languages: `mismatch`, `gone` and so on. Words stay as they are.
    pub fn kind(&self) -> &'static str {
        match self {
            Notice::Mismatch { .. } => "mismatch",
            Notice::Undescribed { .. } => "undescribed",
            Notice::LeftOut { .. } => "left_out",
            Notice::Gone { .. } => "gone",
            Notice::NoKey { .. } => "no_key",
            Notice::KeyChanged { .. } => "key_changed",
            Notice::KeyUnusable { .. } => "key_unusable",
            Notice::Full { .. } => "full",
            Notice::Copied => "copied",
            Notice::Seal { .. } => "seal",
            Notice::Infeasible { .. } => "infeasible",
            Notice::Feasible { .. } => "feasible",
            Notice::GivenUp { .. } => "given_up",
            Notice::HeldUp { .. } => "held_up",
            Notice::Unacknowledged { .. } => "unacknowledged",
            Notice::MulticastDemoted { .. } => "apart",
            Notice::MulticastRestored { .. } => "back",
            Notice::DeadlineMissed { .. } => "deadline_missed",
            Notice::Unreadable { .. } => "unreadable",
            Notice::ByUdp { .. } => "by_udp",
            Notice::LateReply { .. } => "late_reply",
            Notice::Refused { .. } => "refused",
        }
    }

    fn describe(&self, f: &mut impl fmt::Write) -> fmt::Result {
        match self {
            Notice::Mismatch { topic, node, why: Incompatible::Format { writer, reader } } => write!(
                f,
                "topic {topic}, with node {node}: the writer uses {}, the reader understands {}; choose a format both have",
                names(*writer),
                names(*reader)
            ),
            Notice::Mismatch { topic, node, why } => write!(f, "topic {topic}, with node {node}: {why}"),
            Notice::Undescribed { topic, node, type_name } => write!(
                f,
                "topic {topic}, with node {node}: the writer does not know the definition of {type_name}, so that only the name was compared; a sample of another definition is not recognised"
            ),
            Notice::LeftOut { topic, node, formats } => {
                let names = names(*formats);
                write!(
                    f,
                    "topic {topic}, with node {node}: the writer uses {names}, which this program is built without; \
                     turn on the feature \"{names}\" of the crate noctule"
                )
            }
            Notice::Gone { node, reason: Reason::Restarted } => write!(f, "node {node} was restarted"),
            Notice::Gone { node, .. } => write!(f, "node {node} is silent; it counts as gone"),
            Notice::NoKey { interface } => write!(
                f,
                "this node has no swarm key, so anybody on {interface} can read and forge its samples; make a key with \
                 `noctule key new FILE` and give it to every node, e.g. as NOCTULE_KEY_FILE=FILE"
            ),
            Notice::KeyChanged { fingerprint, keys } => {
                write!(f, "the key file has changed: key {fingerprint} seals from now on, {keys} keys open")
            }
            Notice::KeyUnusable { why } => write!(f, "{why}; the node goes on with the keys it has"),
            Notice::Full { refused } => write!(
                f,
                "{refused} nodes or topics of other nodes were refused because a table is full; a program on this network announces \
                 too many, or the swarm needs several domains"
            ),
            Notice::Copied => f.write_str(
                "this machine is a copy: another process has the secret of this node and has sealed more, so this node ends; open it anew",
            ),
            Notice::Seal { why } => write!(f, "{why}"),
            Notice::DeadlineMissed { topic, kind, period, total } => {
                let (what, whose) = match kind {
                    EndpointKind::Writer => ("published", "offers"),
                    EndpointKind::Reader => ("received", "requests"),
                };
                let ms = period.ns() as f64 / 1e6;
                write!(
                    f,
                    "topic {topic}: nothing was {what} for {ms} ms, the deadline it {whose} here ({total} missed so far)"
                )
            }
            Notice::Unreadable { topic, why } => write!(f, "topic {topic}: cannot be read here: {why}"),
            Notice::ByUdp { refusal } => {
                refusal.describe(f)?;
                f.write_str("; samples come by UDP instead")
            }
            Notice::Refused { topic, why } => write!(f, "topic {topic}: the publisher refuses: {why}"),
            Notice::LateReply { service, node, since } => write!(
                f,
                "service {service}: a reply of node {node} came {:.0} ms after its request, when the call had ended; raise the deadline",
                since.ns() as f64 / 1e6
            ),
            notice => notice.describe_path(f),
        }
    }

    /// Notices about what goes to other hosts.
    fn describe_path(&self, f: &mut impl fmt::Write) -> fmt::Result {
        match self {
            Notice::Infeasible { topic, node, why } => write!(f, "topic {topic}, to node {node}: {why}"),
            Notice::GivenUp { topic, node, samples } => write!(
                f,
                "topic {topic}, to node {node}: {samples} reliable samples were given up because the path carries, or a reader that keeps all takes, less than is published; publish less, or raise keep_last if it is for a moment only"
            ),
            Notice::HeldUp { topic, node, process, waited } => {
                let process =
                    process.map_or_else(String::new, |process| format!(" (process {process} of this host)"));
                write!(
                    f,
                    "topic {topic}: node {node}{process} keeps all and has read nothing for {:.0} s, so samples wait for it; have it read, \
                     close it, or let it keep the last",
                    waited.ns() as f64 / 1e9
                )
            }
            Notice::Unacknowledged { samples, limit_bytes } => write!(
                f,
                "{samples} samples were given up because readers on other hosts do not acknowledge what was sent, and at most \
                 {limit_bytes} bytes are kept for them; find out which node reads too slowly, or raise unacknowledged_bytes_max"
            ),
            Notice::Feasible { topic, node } => {
                write!(f, "topic {topic}, to node {node}: deadline and loss can be kept again")
            }
            Notice::MulticastDemoted { topic, node, loss } => write!(
                f,
                "topic {topic}: node {node} loses {:.0} % of what goes to all readers, so it is served by itself; bring it nearer, or \
                 leave multicast out",
                loss * 100.0
            ),
            Notice::MulticastRestored { topic, node } => {
                write!(f, "topic {topic}: node {node} is served with the other readers again")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_nodes_say_cannot_steer_a_terminal() {
        let why = "\u{1b}[2J\u{1b}]0;PWNED\u{7}\nnoctule: all is well \u{202e}txt".to_owned();
        let refused = Notice::Refused { topic: "t".into(), why }.to_string();
        assert!(refused.contains("PWNED") && !refused.contains(is_unprintable), "{refused:?}");
        assert_eq!(refused.lines().count(), 1);
        let plain = Notice::Unreadable { topic: "räder/μ".into(), why: "größer".into() }.to_string();
        assert!(plain.contains("räder/μ") && plain.contains("größer"));
    }
}
