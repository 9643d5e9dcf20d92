//! Trace events of discovery: the fate of its datagrams, and its decisions with the rules behind them.
//!
//! Off unless [`Discovery::trace`](crate::Discovery::trace) was started. Names and fields: `docs/guide/trace.md`.

use noctule_qlog::{Put, Value, events, reasons};

use crate::event::{Event as Known, Reason};
use crate::neighbour::About;
use crate::types::Locator;
use crate::wire::NodeId;

reasons! {
    /// Why a hello is sent.
    Greeting {
        Start = "start", "is one of the first after the start or a change of the network";
        Regular = "regular", "is the regular one";
        Early = "early", "answers a newcomer or a question, or announces a change";
    }
}

reasons! {
    /// Why a node is not admitted.
    Refusal {
        AddressShare = "address_share", "comes from an address that has as many nodes as one may have";
        TableFull = "table_full", "finds every place taken by nodes that match something or are of this host";
    }
}

reasons! {
    /// Why a node is probed.
    Question {
        PagesMissing = "pages_missing", "announces endpoints that have not arrived";
        Presence = "presence", "was silent for most of its lifetime";
    }
}

reasons! {
    /// Why a node is gone.
    Departure {
        Left = "left", "said goodbye";
        Silent = "silent", "was not heard for its lifetime";
        Restarted = "restarted", "was replaced by another node at its address";
        Died = "died", "belongs to a process that is known to be dead";
        Displaced = "displaced", "gave its place in a full table to another node, because nothing of it matched";
    }
}

events! {
    /// One thing that happened.
    Event of "discovery" with [Greeting, Refusal, Question, Departure] {
        HelloSent = "hello_sent", "a hello is sent: it {trigger}" {
            /// Why.
            trigger: Greeting
        };
        HelloReceived = "hello_received", "a hello of node {node} arrives from {locator}" {
            /// Whose.
            node: NodeId,
            /// Where it comes from, with the port of its data socket.
            locator: Locator
        };
        AddressChallenged = "address_challenged", "node {node} is to prove that it receives at {locator}" {
            /// Which.
            node: NodeId,
            /// The address that it announces.
            locator: Locator
        };
        AddressProved = "address_proved", "node {node} has proved that it receives at {locator}" {
            /// Which.
            node: NodeId,
            /// Its address.
            locator: Locator
        };
        ResponseRefused = "response_refused", "a path response of node {node} from {locator} is refused: it fits no challenge, or came too late" {
            /// In whose name.
            node: NodeId,
            /// Where it came from.
            locator: Locator
        };
        Misplaced = "datagram_misplaced", "a datagram of node {node} from {locator} is ignored: the node is at another address" {
            /// In whose name.
            node: NodeId,
            /// Where it came from.
            locator: Locator
        };
        Refused = "node_refused", "node {node} at {locator} is not admitted: it {trigger}" {
            /// Which.
            node: NodeId,
            /// Where it is.
            locator: Locator,
            /// Why.
            trigger: Refusal
        };
        Joined = "node_joined", "node {node} ({name}) is known from now on, at {locator}" {
            /// Which.
            node: NodeId,
            /// Its name for people.
            name: String,
            /// Where its data socket is.
            locator: Locator,
            /// It is on this host.
            same_host: bool
        };
        Moved = "node_moved", "node {node} is reached at {locator} from now on" {
            /// Which.
            node: NodeId,
            /// Where its data socket is now.
            locator: Locator
        };
        AlsoAt = "node_also_at", "node {node} is also at {locator}" {
            /// Which.
            node: NodeId,
            /// The other address.
            locator: Locator
        };
        Gone = "node_gone", "node {node} is gone, {silent_ms} ms after its last hello: it {trigger}" {
            /// Which.
            node: NodeId,
            /// Since its last hello from its locator, ms.
            silent_ms: u64,
            /// Why.
            trigger: Departure
        };
        Asked = "node_asked", "node {node} is asked, question {question}: it {trigger}" {
            /// Which.
            node: NodeId,
            /// From 1 on, again for each reason.
            question: u32,
            /// Why.
            trigger: Question
        };
        PageSent = "page_sent", "page {page} of this node's endpoints is sent" {
            /// Its number.
            page: u16
        };
        PageReceived = "page_received", "page {page} of node {node} arrives: {new} endpoints are new, {gone} are gone" {
            /// Its node.
            node: NodeId,
            /// Its number.
            page: u16,
            /// Endpoints that it brings.
            new: u32,
            /// Endpoints that it takes away.
            gone: u32
        };
        PageRefused = "page_refused", "page {page} of node {node} is not kept: as many pages are held as may be, in total or of its address" {
            /// Its node.
            node: NodeId,
            /// Its number.
            page: u16
        };
        Matched = "endpoint_matched", "endpoint {local} here and endpoint {remote} of node {node} match on {topic}" {
            /// Ours.
            local: u32,
            /// The partner's node.
            node: NodeId,
            /// The partner.
            remote: u32,
            /// Their topic.
            topic: String
        };
        Unmatched = "endpoint_unmatched", "endpoint {local} here and endpoint {remote} of node {node} match no longer" {
            /// Ours.
            local: u32,
            /// The partner's node.
            node: NodeId,
            /// The partner.
            remote: u32
        };
        Mismatched = "endpoint_mismatched", "endpoint {local} here and endpoint {remote} of node {node} do not match on {topic}: {why}" {
            /// Ours.
            local: u32,
            /// The other node.
            node: NodeId,
            /// The other's endpoint.
            remote: u32,
            /// Their topic.
            topic: String,
            /// In words.
            why: String
        };
        MatchRefused = "match_refused", "endpoint {local} here and endpoint {remote} of node {node} fit, but endpoint {local} has as many partners as it may have" {
            /// Ours.
            local: u32,
            /// The other node.
            node: NodeId,
            /// The other's endpoint.
            remote: u32
        };
        Relayed = "reader_relayed", "of reader {remote} of node {node}, which matches endpoint {local} here: another process of its host receives for it: {relayed}" {
            /// Ours.
            local: u32,
            /// The reader's node.
            node: NodeId,
            /// The reader.
            remote: u32,
            /// Whether another process receives for it now.
            relayed: bool
        };
    }
}

impl Value for NodeId {
    fn put(&self, key: &'static str, put: &mut Put<'_>) {
        self.to_string().put(key, put);
    }
}

impl From<About> for Question {
    fn from(about: About) -> Question {
        match about {
            About::Pages => Question::PagesMissing,
            About::Presence => Question::Presence,
        }
    }
}

impl From<Reason> for Departure {
    fn from(reason: Reason) -> Departure {
        match reason {
            Reason::Left => Departure::Left,
            Reason::Silent => Departure::Silent,
            Reason::Restarted => Departure::Restarted,
            Reason::Died => Departure::Died,
            Reason::Displaced => Departure::Displaced,
        }
    }
}

impl Event {
    /// Event for a notification of the caller; `None` if it carries no more than that, or if it is, like a departure, noted elsewhere with more detail.
    pub(crate) fn of(known: &Known) -> Option<Event> {
        Some(match known.clone() {
            Known::Joined { node, locator, same_host, name } => {
                Event::Joined { node, name, locator, same_host }
            }
            Known::Moved { node, locator } => Event::Moved { node, locator },
            Known::AlsoAt { node, locator } => Event::AlsoAt { node, locator },
            Known::Matched { local, node, remote } => {
                Event::Matched { local: local.0, node, remote: remote.id.0, topic: remote.topic.clone() }
            }
            Known::Unmatched { local, node, remote } => {
                Event::Unmatched { local: local.0, node, remote: remote.0 }
            }
            Known::Changed { local, node, remote } => {
                Event::Relayed { local: local.0, node, remote: remote.id.0, relayed: remote.relayed }
            }
            Known::Mismatched { local, node, remote, why } => Event::Mismatched {
                local: local.0,
                node,
                remote: remote.id.0,
                topic: remote.topic.clone(),
                why: why.to_string(),
            },
            Known::Gone { .. } | Known::Beside { .. } => return None,
        })
    }
}
