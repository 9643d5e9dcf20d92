//! The wire format of datagrams to a group, and of the receivers' reports with NACKs. Every byte: `docs/spec/prrt.md`.

use noctule_timebase::Span;

use crate::erasure::{DATA_SYMBOLS_MAX, PARITY_SYMBOLS_MAX};
use crate::stream::StreamId;
use crate::wire::{FIRST_PARITY, Malformed};

/// In front of a symbol.
pub(super) const HEADER_BYTES: usize = 32;
/// A report without requests.
const REPORT_BYTES: usize = 32;
const ASK_BYTES: usize = 6;
/// Blocks that one report asks for at most.
pub(super) const ASKS_MAX: usize = 32;

const MAGIC: [u8; 4] = *b"NCTG";
const VERSION: u8 = 2;
const DATA: u8 = 1;
const PARITY: u8 = 2;
const REPORT: u8 = 3;
/// Times travel in these units.
const TICK_NS: i64 = 16_000;

/// One datagram of a stream to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Number of the sender's life.
    pub session: u32,
    /// The stream.
    pub writer: StreamId,
    /// The content.
    pub body: Body<'a>,
}

/// The content of a datagram, by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// To the group.
    Symbol(Symbol<'a>),
    /// To the sender.
    Report(Report),
}

/// A symbol of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Counts the datagrams of the stream, modulo 2^32.
    pub packet: u32,
    /// Counts the blocks of the stream, modulo 2^32.
    pub block: u32,
    /// Which symbol of the block this is.
    pub kind: SymbolKind,
    /// Parity symbols that the sender has decided to send for the block so far.
    pub decided: u8,
    /// The longest round trip to a receiver; zero if none is known.
    pub round_trip: Span,
    /// Until the last data symbol of the block should follow.
    pub left: Span,
    /// Seconds between the reports of a receiver in the long run; 0 counts as 1.
    pub report_every_s: u8,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Which symbol of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// Data, counted from 0.
    Data {
        /// Its number.
        index: u8,
        /// Data symbols that the block is meant to have, above `index`; 0: it is in no block, and is not repaired.
        planned: u8,
    },
    /// Parity, counted from 0.
    Parity {
        /// Its number.
        index: u8,
        /// Data symbols that the block has.
        symbols: u8,
    },
}

/// The report of a receiver to the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The highest packet number that arrived.
    pub newest: u32,
    /// Datagrams that arrived, each counted once, modulo 2^32.
    pub received: u32,
    /// Since `newest` arrived; 2^32 − 1 ns = that long or longer.
    pub delay_ns: u32,
    /// Blocks that lack something.
    pub asks: Vec<Ask>,
}

/// A block that lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its number.
    pub block: u32,
    /// Different symbols of it that arrived, data and parity.
    pub held: u8,
    /// Parity symbols that were announced and have arrived or are lost.
    pub settled: u8,
}

impl<'a> Datagram<'a> {
    /// Appends the datagram's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kind = match &self.body {
            Body::Report(_) => REPORT,
            Body::Symbol(Symbol { kind: SymbolKind::Data { .. }, .. }) => DATA,
            Body::Symbol(_) => PARITY,
        };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, kind, 0, 0]);
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.writer.0.to_le_bytes());
        match &self.body {
            Body::Symbol(symbol) => symbol.encode(out),
            Body::Report(report) => report.encode(out),
        }
    }

    /// Reads one datagram.
    ///
    /// # Errors
    /// The first rule of the specification that the bytes break.
    pub fn decode(bytes: &'a [u8]) -> Result<Datagram<'a>, Malformed> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Malformed::Magic);
        }
        let (head, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed::Length)?;
        if head[4] != VERSION {
            return Err(Malformed::Version);
        }
        if head[6..8] != [0, 0] {
            return Err(Malformed::Value);
        }
        let body = match head[5] {
            DATA | PARITY => Body::Symbol(Symbol::decode(head, rest)?),
            REPORT => Body::Report(Report::decode(head, rest)?),
            _ => return Err(Malformed::Value),
        };
        Ok(Datagram { session: word(head, 8), writer: StreamId(word(head, 12)), body })
    }
}

impl<'a> Symbol<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let (number, count) = match self.kind {
            SymbolKind::Data { index, planned } => (index, planned),
            SymbolKind::Parity { index, symbols } => (FIRST_PARITY.saturating_add(index), symbols),
        };
        out.extend_from_slice(&self.packet.to_le_bytes());
        out.extend_from_slice(&self.block.to_le_bytes());
        out.extend_from_slice(&[number, count, self.decided, self.report_every_s]);
        out.extend_from_slice(&ticks(self.round_trip).to_le_bytes());
        out.extend_from_slice(&ticks(self.left).to_le_bytes());
        out.extend_from_slice(self.bytes);
    }

    fn decode(head: &[u8; HEADER_BYTES], bytes: &'a [u8]) -> Result<Symbol<'a>, Malformed> {
        let [number, count, decided, report_every_s] = [head[24], head[25], head[26], head[27]];
        let is_parity = head[5] == PARITY;
        let kind = match is_parity {
            false => SymbolKind::Data { index: number, planned: count },
            true => SymbolKind::Parity { index: number.wrapping_sub(FIRST_PARITY), symbols: count },
        };
        let fits = match kind {
            SymbolKind::Data { index, planned } => {
                usize::from(index) < DATA_SYMBOLS_MAX && (planned == 0 && decided == 0 || index < planned)
            }
            SymbolKind::Parity { index, symbols } => symbols > 0 && index < decided,
        };
        let limits = usize::from(count) <= DATA_SYMBOLS_MAX && usize::from(decided) <= PARITY_SYMBOLS_MAX;
        if !fits || !limits {
            return Err(Malformed::Value);
        }
        let span =
            |at: usize| Span::from_ns(i64::from(u16::from_le_bytes([head[at], head[at + 1]])) * TICK_NS);
        let (packet, block) = (word(head, 16), word(head, 20));
        let (round_trip, left) = (span(28), span(30));
        Ok(Symbol { packet, block, kind, decided, round_trip, left, report_every_s, bytes })
    }
}

impl Report {
    fn encode(&self, out: &mut Vec<u8>) {
        let asks = &self.asks[..self.asks.len().min(ASKS_MAX)];
        out.extend_from_slice(&self.newest.to_le_bytes());
        out.extend_from_slice(&self.received.to_le_bytes());
        out.extend_from_slice(&self.delay_ns.to_le_bytes());
        out.extend_from_slice(&[asks.len() as u8, 0, 0, 0]);
        for ask in asks {
            out.extend_from_slice(&ask.block.to_le_bytes());
            out.extend_from_slice(&[ask.held, ask.settled]);
        }
    }

    fn decode(head: &[u8; REPORT_BYTES], rest: &[u8]) -> Result<Report, Malformed> {
        let count = usize::from(head[28]);
        if head[29..] != [0, 0, 0] || count > ASKS_MAX {
            return Err(Malformed::Value);
        }
        if rest.len() != count * ASK_BYTES {
            return Err(Malformed::Length);
        }
        let (entries, _) = rest.as_chunks::<ASK_BYTES>();
        let asks = entries.iter().map(|&[a, b, c, d, held, settled]| Ask {
            block: u32::from_le_bytes([a, b, c, d]),
            held,
            settled,
        });
        let asks: Vec<Ask> = asks.collect();
        if asks.iter().any(|ask| usize::from(ask.settled) > PARITY_SYMBOLS_MAX) {
            return Err(Malformed::Value);
        }
        Ok(Report { newest: word(head, 16), received: word(head, 20), delay_ns: word(head, 24), asks })
    }
}

/// A time as it is encoded: whole ticks, within bounds.
fn ticks(span: Span) -> u16 {
    u16::try_from(span.ns().max(0) / TICK_NS).unwrap_or(u16::MAX)
}

/// The longest time that can travel.
pub(super) const SPAN_MAX: Span = Span::from_ns(u16::MAX as i64 * TICK_NS);

fn word(head: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

/// How far `a` is ahead of `b`, both modulo 2^32 (RFC 1982).
pub(super) fn ahead(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::specification::example;

    fn bytes_of(body: Body<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        Datagram { session: 0x0102_0304, writer: StreamId(5), body }.encode(&mut bytes);
        bytes
    }

    fn symbol(kind: SymbolKind, decided: u8) -> Symbol<'static> {
        let (round_trip, left) = (Span::from_us(160), Span::from_s(10));
        Symbol { packet: 6, block: 7, kind, decided, round_trip, left, report_every_s: 2, bytes: b"symbol" }
    }

    #[test]
    fn data_and_parity_have_the_bytes_of_the_specification() {
        let data = bytes_of(Body::Symbol(symbol(SymbolKind::Data { index: 2, planned: 13 }, 3)));
        assert_eq!(data, example("Data to a group"));
        let parity = bytes_of(Body::Symbol(symbol(SymbolKind::Parity { index: 1, symbols: 9 }, 2)));
        assert_eq!((parity[5], &parity[24..27]), (2, &[129, 9, 2][..]));
    }

    #[test]
    fn a_report_has_the_bytes_of_the_specification() {
        let asks = vec![Ask { block: 9, held: 12, settled: 2 }];
        let report = bytes_of(Body::Report(Report { newest: 6, received: 5, delay_ns: 256, asks }));
        assert_eq!(report, example("Report of a receiver"));
    }

    #[test]
    fn what_no_sender_writes_is_refused() {
        let data = |index, planned, decided| {
            let bytes = bytes_of(Body::Symbol(symbol(SymbolKind::Data { index, planned }, decided)));
            Datagram::decode(&bytes).map(|_| ())
        };
        assert_eq!(data(127, 128, 127), Ok(()));
        assert_eq!(data(63, 0, 0), Ok(()), "in no block");
        for (index, planned, decided) in [(3, 3, 0), (128, 129, 0), (0, 0, 1), (0, 1, 128)] {
            assert_eq!(data(index, planned, decided), Err(Malformed::Value), "{index} {planned} {decided}");
        }
        let parity = |index, symbols, decided| {
            let bytes = bytes_of(Body::Symbol(symbol(SymbolKind::Parity { index, symbols }, decided)));
            Datagram::decode(&bytes).map(|_| ())
        };
        assert_eq!(parity(126, 128, 127), Ok(()));
        for (index, symbols, decided) in [(0, 0, 1), (1, 4, 1), (0, 129, 1)] {
            assert_eq!(parity(index, symbols, decided), Err(Malformed::Value), "{index} {symbols} {decided}");
        }
        let report = Report { newest: 1, received: 1, delay_ns: 0, asks: Vec::new() };
        let mut bytes = bytes_of(Body::Report(report));
        bytes.push(0);
        assert_eq!(Datagram::decode(&bytes), Err(Malformed::Length));
    }

    #[test]
    fn times_travel_in_whole_ticks_within_bounds() {
        let spans = [Span::ZERO - Span::from_ns(1), Span::from_us(16), Span::from_us(31), Span::from_s(100)];
        assert_eq!(spans.map(ticks), [0, 1, 1, u16::MAX]);
        assert_eq!((ahead(1, u32::MAX), ahead(u32::MAX, 1)), (2, -2));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_and_what_is_read_is_written_alike(
            kind in 0u8..5,
            rest in proptest::collection::vec(any::<u8>(), 0..90),
            plain in any::<bool>(),
        ) {
            let mut bytes = b"NCTG\x02".to_vec();
            bytes.extend([kind, 0, 0]);
            bytes.extend(rest.iter().enumerate().map(|(at, byte)| match plain && at >= 16 {
                true => byte % 4,
                false => *byte,
            }));
            if let Ok(datagram) = Datagram::decode(&bytes) {
                let mut out = Vec::new();
                datagram.encode(&mut out);
                prop_assert_eq!(out, bytes);
            }
        }
    }
}
