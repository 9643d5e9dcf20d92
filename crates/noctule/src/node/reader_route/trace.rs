//! Trace events of the routes of readers, each with the rule that decided. Names and fields: `docs/guide/trace.md`.
#![allow(unreachable_pub)] // the tables of other cores are public

use noctule_discovery::NodeId;
use noctule_qlog::{events, reasons};

reasons! {
    /// Why a reader has its route.
    Choice {
        New = "new", "is new, and need not receive where another receives for it";
        Alone = "alone", "has no reader beside it, on another node of this host, that could receive for it";
        Lowest = "lowest", "has the lowest number of the readers that could receive for each other";
        ElectionOver = "election_over", "has waited, and no reader with a lower number was announced as direct";
        ReceivesAlready = "receives_already", "need not receive what that node receives already";
        LowerNumber = "lower_number", "is direct like that node's reader, and that has the lower number";
        NotAnnounced = "not_announced", "may be served by a reader with a lower number, which has not been announced as direct yet";
    }
}

reasons! {
    /// Consequence of a refusal.
    Refusal {
        AskAgain = "ask_again", "is asked again, later each time";
        Avoided = "avoided", "is not asked for two seconds";
    }
}

events! {
    /// One decision, or what led to one.
    Event of "relay" with [Choice, Refusal] {
        Direct = "reader_direct", "reader {reader} receives from the network: it {trigger}" {
            /// Ours.
            reader: u32,
            /// Why.
            trigger: Choice
        };
        Relayed = "reader_relayed", "reader {reader} is relayed by node {relay}: it {trigger}" {
            /// Ours.
            reader: u32,
            /// The node whose rings it reads.
            relay: NodeId,
            /// Why.
            trigger: Choice
        };
        Electing = "reader_electing", "reader {reader} waits: it {trigger}" {
            /// Ours.
            reader: u32,
            /// Why.
            trigger: Choice
        };
        HandoverBegins = "handover_begins", "reader {reader} is to be relayed by node {relay} as soon as the rings there hold what comes next: it {trigger}" {
            /// Ours.
            reader: u32,
            /// The node whose rings it will read.
            relay: NodeId,
            /// Why.
            trigger: Choice
        };
        HandoverCancelled = "handover_cancelled", "reader {reader} stays direct, and is not relayed by node {relay} after all" {
            /// Ours.
            reader: u32,
            /// The node whose rings it would have read.
            relay: NodeId
        };
        HandoverEnds = "handover_ends", "reader {reader} is relayed by node {relay} from now on: {rings} rings hold what comes next" {
            /// Ours.
            reader: u32,
            /// The node whose rings it reads.
            relay: NodeId,
            /// How many.
            rings: u32
        };
        Granted = "ring_granted", "reader {reader} gets a ring of writer {writer} of node {node}" {
            /// Ours.
            reader: u32,
            /// The writer's node.
            node: NodeId,
            /// Number of the writer within its node.
            writer: u32
        };
        Ended = "ring_ended", "the ring of writer {writer} of node {node} is filled for reader {reader} no more" {
            /// Ours.
            reader: u32,
            /// The writer's node.
            node: NodeId,
            /// Number of the writer within its node.
            writer: u32
        };
        Refused = "ring_refused", "node {relay} does not give reader {reader} the ring of writer {writer}: it {trigger}" {
            /// Ours.
            reader: u32,
            /// The node that the question went to.
            relay: NodeId,
            /// Number of the writer within its node.
            writer: u32,
            /// The consequence.
            trigger: Refusal
        };
    }
}
