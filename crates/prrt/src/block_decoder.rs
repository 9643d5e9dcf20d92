//! Blocks at the receiver, with the source and repair symbols that arrived, until FEC decodes them.

use std::collections::BTreeMap;

use noctule_timebase::Instant;

use crate::erasure::Decoder;
use crate::reassembly::Room;
use crate::stream::Local;
use crate::wire::{BLOCKS, FIRST_PARITY, Fragment, Parity, Place, Service};

/// Blocks of one stream remembered at once.
const BLOCKS_LIMIT: usize = 256;

/// Blocks of one stream, until their time is over.
#[derive(Debug, Default)]
pub(crate) struct BlockDecoders {
    /// By their numbers, which on the wire are counted modulo [`BLOCKS`].
    blocks: BTreeMap<u64, Symbols>,
    newest: Option<u64>,
}

/// The symbols of one block that are here, until there are enough.
#[derive(Debug)]
pub(crate) struct Symbols {
    pub(crate) expires_at: Instant<Local>,
    /// Data symbols of the block, once known.
    pub(crate) count: Option<u8>,
    data: Vec<(u8, Vec<u8>)>,
    parity: Vec<(u8, Vec<u8>)>,
    bytes: usize,
    /// Nothing more is needed of it.
    pub(crate) is_done: bool,
}

impl BlockDecoders {
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
        let number = self.number(place.block);
        if !self.blocks.contains_key(&number)
            && self.blocks.len() >= BLOCKS_LIMIT
            && let Some((_, oldest)) = self.blocks.pop_first()
        {
            room.give_back(oldest.bytes);
        }
        let block = self.blocks.entry(number).or_insert_with(|| Symbols::new(expires_at));
        if place.symbols != 0 {
            block.count = Some(place.symbols);
        }
        block.add(place.symbol, symbol, room)
    }

    /// The number nearest to the newest that is `block` modulo [`BLOCKS`].
    fn number(&mut self, block: u32) -> u64 {
        let span = u64::from(BLOCKS);
        let Some(newest) = self.newest else {
            // So that there is room for smaller ones.
            return *self.newest.insert(span + u64::from(block));
        };
        let ahead = (u64::from(block) + span - newest % span) % span;
        let number = if ahead < span / 2 { newest + ahead } else { (newest + ahead).saturating_sub(span) };
        self.newest = Some(newest.max(number));
        number
    }
}

impl Symbols {
    pub(crate) fn new(expires_at: Instant<Local>) -> Symbols {
        Symbols { expires_at, count: None, data: Vec::new(), parity: Vec::new(), bytes: 0, is_done: false }
    }

    /// Keeps a symbol, numbered as on the wire, while it may be needed. Gives those that are thereby repaired.
    pub(crate) fn add(&mut self, number: u8, symbol: Vec<u8>, room: &mut Room) -> Vec<Vec<u8>> {
        let list = if number < FIRST_PARITY { &mut self.data } else { &mut self.parity };
        let is_known = list.iter().any(|(known, _)| *known == number);
        if self.is_done || is_known || !room.take(symbol.len()) {
            return Vec::new();
        }
        self.bytes += symbol.len();
        list.push((number, symbol));
        let repaired = self.repair();
        if self.is_done {
            self.leave(room);
        }
        repaired
    }

    /// Forgets what is held.
    pub(crate) fn leave(&mut self, room: &mut Room) {
        room.give_back(std::mem::take(&mut self.bytes));
        (self.data, self.parity) = (Vec::new(), Vec::new());
    }

    /// Different symbols that are here.
    pub(crate) fn held(&self) -> usize {
        self.data.len() + self.parity.len()
    }

    /// The last data symbol below `count` that is not here.
    pub(crate) fn last_missing(&self, count: u8) -> Option<u8> {
        (0..count).rev().find(|number| self.data.iter().all(|(known, _)| known != number))
    }

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
