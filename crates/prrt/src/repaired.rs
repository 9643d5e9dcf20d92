//! Symbols of blocks that may have to be repaired.

use std::collections::BTreeMap;

use noctule_timebase::Instant;

use crate::erasure::Decoder;
use crate::held::Room;
use crate::stream::Local;
use crate::wire::{FIRST_PARITY, Fragment, Parity, Place, Service};

/// Blocks of one stream remembered at once.
const BLOCKS_LIMIT: usize = 256;

/// Blocks of one stream, until their time is over.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    blocks: BTreeMap<u32, Symbols>,
}

#[derive(Debug)]
struct Symbols {
    expires_at: Instant<Local>,
    /// Data symbols of the block, once known.
    count: Option<u8>,
    data: Vec<(u8, Vec<u8>)>,
    parity: Vec<(u8, Vec<u8>)>,
    bytes: usize,
    /// Nothing more is needed of it.
    is_done: bool,
}

impl Repairs {
    /// Keeps a datagram of a block of several. Gives the symbols that are thereby repaired.
    pub(crate) fn add_data(
        &mut self,
        fragment: &Fragment<'_>,
        expires_at: Instant<Local>,
        room: &mut Room,
    ) -> Vec<Vec<u8>> {
        match fragment.service {
            Service::Bound(place) if place.symbols != 1 => {
                let mut symbol = Vec::new();
                fragment.encode_symbol(&mut symbol);
                self.add(place, symbol, expires_at, room)
            }
            _ => Vec::new(),
        }
    }

    /// The same for parity.
    pub(crate) fn add_parity(
        &mut self,
        parity: &Parity<'_>,
        expires_at: Instant<Local>,
        room: &mut Room,
    ) -> Vec<Vec<u8>> {
        self.add(parity.place, parity.symbol.to_vec(), expires_at, room)
    }

    /// Forgets blocks whose time is over.
    pub(crate) fn expire(&mut self, now: Instant<Local>, room: &mut Room) {
        // Blocks end in the order of their numbers, but for a forger's.
        while let Some(entry) = self.blocks.first_entry().filter(|entry| entry.get().expires_at <= now) {
            room.give_back(entry.remove().bytes);
        }
    }

    pub(crate) fn clear(&mut self, room: &mut Room) {
        self.blocks.values().for_each(|block| room.give_back(block.bytes));
        self.blocks.clear();
    }

    fn add(
        &mut self,
        place: Place,
        symbol: Vec<u8>,
        expires_at: Instant<Local>,
        room: &mut Room,
    ) -> Vec<Vec<u8>> {
        if !self.blocks.contains_key(&place.block)
            && self.blocks.len() >= BLOCKS_LIMIT
            && let Some((_, oldest)) = self.blocks.pop_first()
        {
            room.give_back(oldest.bytes);
        }
        let block = self.blocks.entry(place.block).or_insert(Symbols {
            expires_at,
            count: None,
            data: Vec::new(),
            parity: Vec::new(),
            bytes: 0,
            is_done: false,
        });
        let list = if place.symbol < FIRST_PARITY { &mut block.data } else { &mut block.parity };
        let is_known = list.iter().any(|(number, _)| *number == place.symbol);
        if block.is_done || is_known || !room.take(symbol.len()) {
            return Vec::new();
        }
        block.bytes += symbol.len();
        list.push((place.symbol, symbol));
        if place.symbols != 0 {
            block.count = Some(place.symbols);
        }
        let repaired = block.repair();
        if block.is_done {
            room.give_back(std::mem::take(&mut block.bytes));
            (block.data, block.parity) = (Vec::new(), Vec::new());
        }
        repaired
    }
}

impl Symbols {
    /// The symbols that are missing, if there is enough to repair them all.
    fn repair(&mut self) -> Vec<Vec<u8>> {
        let Some(count) = self.count else { return Vec::new() };
        if self.data.len() + self.parity.len() < usize::from(count) {
            return Vec::new();
        }
        self.is_done = true;
        if self.data.len() >= usize::from(count) {
            return Vec::new();
        }
        let Ok(mut decoder) = Decoder::new(count) else { return Vec::new() };
        // What does not fit in is a forger's; the rest may still be enough.
        for (number, symbol) in &self.data {
            let _ = decoder.add_data(*number, symbol);
        }
        for (number, symbol) in &self.parity {
            let _ = decoder.add_parity(number - FIRST_PARITY, symbol);
        }
        let missing: Vec<u8> = (0..count).filter(|number| decoder.symbol(*number).is_none()).collect();
        let recovered =
            missing.into_iter().filter_map(|number| decoder.recover(number).ok().map(<[u8]>::to_vec));
        recovered.collect()
    }
}
