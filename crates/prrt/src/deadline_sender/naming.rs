//! Names of datagrams with a deadline in traces: their purpose, and the part of a sample that they carry.

use super::{DeadlineSender, Next};
use crate::block::Block;
use crate::sent_packets::Carried;
use crate::trace::{Part, Sending};
use crate::wire::{FIRST_PARITY, Fragment, Place};

impl Next {
    /// Reason for sending it.
    pub(crate) fn purpose(&self) -> Sending {
        match self.place {
            Place { symbol: FIRST_PARITY.., .. } => Sending::Parity,
            Place { attempt: 0, .. } => Sending::First,
            _ => Sending::Retransmission,
        }
    }
}

impl DeadlineSender {
    /// Sample and symbol of a datagram, as far as its block is still kept; for traces.
    pub(crate) fn part(&self, carried: Carried) -> Part {
        let Carried { writer, position, index: part, .. } = carried;
        let block = self
            .streams
            .get(&writer)
            .and_then(|stream| stream.blocks.get(usize::try_from(position.checked_sub(stream.first)?).ok()?));
        let of_data = |block: &Block| {
            let place = Place { packet: 0, block: 0, symbol: 0, symbols: 1, attempt: 0, ack_soon: false };
            let symbol = block.symbol(u8::try_from(part).ok()?)?;
            Some(Fragment::decode_symbol(writer, place, symbol).ok()?.sequence)
        };
        let sequence = block.map(|block| of_data(block).unwrap_or(block.sequence));
        Part { writer, sequence, part }
    }
}
