//! CSV: one row, the primitives of a message in the order of its definition; a count stands before what varies in length.
//!
//! By `csv` (MIT or Unlicense) as far as fields, quotes and rows are concerned. Its own serde support has no nested
//! structs with sequences, which every robot's message has, so the order of values is CDR's.
//! Source of rows and quotes: RFC 4180; an enum is its variant's number, an optional value follows 1 or is left out after 0.

use std::borrow::Cow;
use std::io::Write;

use csv::{ByteRecord, ReaderBuilder, WriterBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Fault;
use crate::positional::{self, Number, Sink, Source};

pub(crate) fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Fault> {
    let rows = WriterBuilder::new().has_headers(false).from_writer(out);
    let mut writer = Writer { rows };
    positional::write(value, &mut writer)?;
    writer.rows.write_record(None::<&[u8]>).map_err(Fault::of)?;
    writer.rows.flush().map_err(Fault::of)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let mut rows = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut row = ByteRecord::new();
    rows.read_byte_record(&mut row).map_err(Fault::of)?;
    let mut reader = Reader { row: &row, next: 0 };
    let value = positional::read(&mut reader)?;
    let more = reader.next < row.len() || rows.read_byte_record(&mut ByteRecord::new()).map_err(Fault::of)?;
    if more { Err(Fault::left_over()) } else { Ok(value) }
}

struct Writer<W: Write> {
    rows: csv::Writer<W>,
}

impl<W: Write> Writer<W> {
    fn field(&mut self, text: impl AsRef<[u8]>) -> Result<(), Fault> {
        self.rows.write_field(text).map_err(Fault::of)
    }
}

impl<W: Write> Sink for Writer<W> {
    fn number<N: Number>(&mut self, value: N) -> Result<(), Fault> {
        value.with_text(|text| self.field(text))
    }

    fn boolean(&mut self, value: bool) -> Result<(), Fault> {
        self.field(if value { "true" } else { "false" })
    }

    fn string(&mut self, value: &str) -> Result<(), Fault> {
        self.field(value)
    }

    fn bytes(&mut self, value: &[u8]) -> Result<(), Fault> {
        self.count(value.len())?;
        value.iter().try_for_each(|&byte| self.number(byte))
    }

    fn count(&mut self, count: usize) -> Result<(), Fault> {
        self.number(count as u64)
    }

    fn presence(&mut self, present: bool) -> Result<(), Fault> {
        self.field(if present { "1" } else { "0" })
    }
}

struct Reader<'de> {
    row: &'de ByteRecord,
    next: usize,
}

impl<'de> Reader<'de> {
    fn field(&mut self) -> Result<&'de [u8], Fault> {
        let field = self.row.get(self.next).ok_or_else(|| Fault("the row has too few fields".into()))?;
        self.next += 1;
        Ok(field)
    }

    fn text(&mut self) -> Result<&'de str, Fault> {
        std::str::from_utf8(self.field()?).map_err(|_| self.fault("is not UTF-8"))
    }

    /// A sentence about the field read last.
    fn fault(&self, what: &str) -> Fault {
        Fault(format!("field {} {what}", self.next))
    }
}

impl<'de> Source<'de> for Reader<'de> {
    fn number<N: Number>(&mut self) -> Result<N, Fault> {
        self.text()?.parse().map_err(|_| self.fault("is not a number of its type"))
    }

    fn boolean(&mut self) -> Result<bool, Fault> {
        self.text()?.parse().map_err(|_| self.fault("is neither true nor false"))
    }

    fn string(&mut self) -> Result<Cow<'de, str>, Fault> {
        self.text().map(Cow::Borrowed)
    }

    fn bytes(&mut self) -> Result<Cow<'de, [u8]>, Fault> {
        let count = self.count()?;
        (0..count).map(|_| self.number()).collect::<Result<Vec<u8>, Fault>>().map(Cow::Owned)
    }

    fn count(&mut self) -> Result<usize, Fault> {
        let count: u64 = self.number()?;
        let left = self.row.len() - self.next;
        let fits = usize::try_from(count).ok().filter(|&count| count <= left);
        fits.ok_or_else(|| self.fault(&format!("announces {count} values, but {left} fields follow")))
    }

    fn presence(&mut self) -> Result<bool, Fault> {
        match self.field()? {
            b"0" => Ok(false),
            b"1" => Ok(true),
            _ => Err(self.fault("is neither 0 nor 1")),
        }
    }
}
