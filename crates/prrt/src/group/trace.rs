//! Trace events of a group: the fate of its datagrams, and the decisions of its sender and receivers with the rules behind them.
//!
//! Off unless [`GroupSender::trace`](super::GroupSender::trace) or [`GroupReceiver::trace`](super::GroupReceiver::trace) was started. Names
//! and fields: `docs/guide/trace.md`.

use noctule_qlog::{Put, Value, events, reasons};

use super::MemberId;

reasons! {
    /// Purpose of a datagram.
    Purpose {
        Data = "data", "carries a sample, or a fragment of one";
        ParityUnasked = "parity_unasked", "carries parity that a receiver will probably need";
        ParityAsked = "parity_asked", "carries parity that a receiver asked for";
    }
}

reasons! {
    /// Answer to a request.
    Answer {
        Granted = "granted", "is sent what it lacks";
        Late = "late", "would get it after the deadline, or the block is no longer here";
        Open = "open", "is to ask again, because the block is still being filled, or lacks nothing";
        Impossible = "impossible", "contradicts what was sent";
    }
}

reasons! {
    /// Why a sample is left to links.
    Left {
        Unheard = "unheard", "would reach nobody, because no member reports";
        DoesNotFit = "does_not_fit", "is too long, or too many blocks wait";
    }
}

reasons! {
    /// State of the path to the slowest receiver.
    Path {
        Free = "free", "is not full, and nothing limits what leaves";
        Testing = "testing", "loses much, and is tested with less parity";
        Full = "full", "is full, and no more leaves than arrives";
    }
}

events! {
    /// One thing that happened at the sender or at a receiver.
    Event of "group" with [Purpose, Answer, Left, Path] {
        Taken = "sample_taken", "sample {sequence} goes to the group as {pieces} datagrams of block {block}" {
            /// Of the sample.
            sequence: u64,
            /// Where it stands.
            block: u32,
            /// Datagrams that it takes.
            pieces: u16
        };
        LeftToLinks = "sample_left_to_links", "sample {sequence} is left to the links: it {trigger}" {
            /// Of the sample.
            sequence: u64,
            /// Why.
            trigger: Left
        };
        HeldBack = "sample_held_back", "sample {sequence} is not sent: the path to the slowest receiver is full" {
            /// Of the sample.
            sequence: u64
        };
        Sent = "datagram_sent", "packet {packet_number} is sent to the group ({bytes} B, symbol {symbol} of block {block}): it {trigger}" {
            /// Of the datagram.
            packet_number: u32,
            /// Its block.
            block: u32,
            /// Data from 0, parity from 128.
            symbol: u8,
            /// Of the datagram, without the envelope.
            bytes: u32,
            /// Its purpose.
            trigger: Purpose
        };
        Hailed = "members_hailed", "packet {packet_number} asks which members hear the group" {
            /// Of the datagram.
            packet_number: u32
        };
        Expired = "data_expired", "{datagrams} datagrams of block {block} are not sent: their deadline has passed" {
            /// Their block.
            block: u32,
            /// How many.
            datagrams: u32
        };
        AskReceived = "ask_received", "member {member} has {held} symbols of block {block} and asks for more: it {trigger}" {
            /// The member that asks.
            member: MemberId,
            /// The block of the request.
            block: u32,
            /// Symbols that it holds.
            held: u8,
            /// The answer.
            trigger: Answer
        };
        ParityWithheld = "parity_withheld", "parity of block {block} is not sent now: the share that parity may have is used up" {
            /// Whose.
            block: u32
        };
        RateChanged = "rate_changed", "at most {per_s} datagrams a second are sent (0: no limit): the path to the slowest receiver {trigger}" {
            /// Datagrams a second, at most; 0: no limit.
            per_s: u64,
            /// State of the path.
            trigger: Path
        };
        Apart = "member_apart", "member {member} loses {loss_ppm} of a million datagrams and is served by its link: it would cost the others too much" {
            /// Which.
            member: MemberId,
            /// Share of datagrams that it loses, in millionths.
            loss_ppm: u32
        };
        Back = "member_back", "member {member} is served by the group again" {
            /// Which.
            member: MemberId
        };
        DataReceived = "data_received", "packet {packet_number} arrives (sample {sequence}, block {block}); {missing} before it did not" {
            /// Of the datagram.
            packet_number: u32,
            /// Its block.
            block: u32,
            /// Of the sample.
            sequence: u64,
            /// Packets between the newest before and this, which are lost or late.
            missing: u32
        };
        ParityReceived = "parity_received", "packet {packet_number} arrives (parity symbol {symbol} of block {block}); {missing} before it did not" {
            /// Of the datagram.
            packet_number: u32,
            /// Its block.
            block: u32,
            /// From 128 on.
            symbol: u8,
            /// Packets between the newest before and this, which are lost or late.
            missing: u32
        };
        Repaired = "sample_repaired", "sample {sequence}, or a fragment of it, is computed from the parity of block {block}" {
            /// Of the sample.
            sequence: u64,
            /// Its block.
            block: u32
        };
        Asked = "parity_asked", "parity of block {block} is asked for: {held} of {symbols} symbols are here" {
            /// Of what.
            block: u32,
            /// Symbols that are here.
            held: u8,
            /// Symbols of data that it has.
            symbols: u8
        };
        AskWithheld = "ask_withheld", "nothing is asked of block {block}, although symbols lack: the sender is not heard" {
            /// Of what.
            block: u32
        };
        Lost = "block_lost", "block {block} lacks {lacking} symbols, and parity can no longer come in time" {
            /// Which.
            block: u32,
            /// Symbols too few.
            lacking: u32
        };
    }
}

/// As the number of a node stands elsewhere.
impl Value for MemberId {
    fn put(&self, key: &'static str, put: &mut Put<'_>) {
        format!("{:032x}", u128::from_be_bytes(self.0.to_le_bytes())).put(key, put);
    }
}
