//! Traces: round trips in the order in which their replies arrived, with or without the truth.

use std::io::Read;

use noctule_netsim::RoundTrip;
use noctule_time_sync::Exchange;

/// More rows than this are refused: ten days at 10 Hz, 800 MB in memory.
pub const LONGEST_TRACE_ROWS: usize = 10_000_000;

/// One exchange of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRow {
    /// The four stamps.
    pub exchange: Exchange,
    /// Remote minus local at `t4` in nanoseconds, if the trace knows it.
    pub offset_true_ns: Option<i64>,
    /// The remote clock is known to have been stepped while this exchange was under way.
    pub step_in_flight: bool,
}

impl From<RoundTrip> for TraceRow {
    fn from(trip: RoundTrip) -> TraceRow {
        TraceRow {
            exchange: Exchange::from_ns(trip.t1_ns, trip.t2_ns, trip.t3_ns, trip.t4_ns),
            offset_true_ns: Some(trip.offset_true_ns),
            step_in_flight: trip.step_in_flight,
        }
    }
}

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file has no header, or the header lacks a column.
    #[error(
        "the trace has no column {column}: its first line must name \
         t1_ns,t2_ns,t3_ns,t4_ns and may name offset_true_ns"
    )]
    MissingColumn {
        /// The column.
        column: &'static str,
    },
    /// A field is not a whole number.
    #[error("line {line}: {column} is {text:?}, but must be a whole number of nanoseconds")]
    NotANumber {
        /// Counted from 1, the header included.
        line: u64,
        /// The column.
        column: &'static str,
        /// The field's text, shortened.
        text: String,
    },
    /// A row is longer or shorter than the header, or is not UTF-8.
    #[error("the trace is not a table: {0}; write one row per exchange with as many fields as the header")]
    Malformed(csv::Error),
    /// More than [`LONGEST_TRACE_ROWS`].
    #[error("the trace has more than {LONGEST_TRACE_ROWS} rows; divide it into shorter files")]
    TooLong,
    /// A header and nothing else.
    #[error("the trace has a header but no exchanges; record at least one")]
    Empty,
}

/// Reads a trace with the columns `t1_ns,t2_ns,t3_ns,t4_ns` and perhaps `offset_true_ns` and
/// `step_in_flight` (0 or 1), in any order, others ignored, and puts the rows into the order in which
/// the replies arrived.
///
/// # Errors
/// Says what is wrong with the file and on which line.
pub fn read_csv(input: impl Read) -> Result<Vec<TraceRow>, TraceError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(input);
    let header = reader.headers().map_err(TraceError::Malformed)?.clone();
    let find = |column: &'static str| header.iter().position(|name| name == column);
    let need = |column| Ok((column, find(column).ok_or(TraceError::MissingColumn { column })?));
    let stamps = [need("t1_ns")?, need("t2_ns")?, need("t3_ns")?, need("t4_ns")?];
    let truth = find("offset_true_ns").map(|position| ("offset_true_ns", position));
    let step = find("step_in_flight").map(|position| ("step_in_flight", position));

    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(TraceError::Malformed)?;
        if rows.len() >= LONGEST_TRACE_ROWS {
            return Err(TraceError::TooLong);
        }
        let field = |(column, position)| integer(&record, column, position);
        let [t1, t2, t3, t4] = stamps;
        rows.push(TraceRow {
            exchange: Exchange::from_ns(field(t1)?, field(t2)?, field(t3)?, field(t4)?),
            offset_true_ns: truth.map(field).transpose()?,
            step_in_flight: step.map(field).transpose()?.is_some_and(|flag| flag != 0),
        });
    }
    if rows.is_empty() {
        return Err(TraceError::Empty);
    }
    rows.sort_by_key(|row| row.exchange.t4);
    Ok(rows)
}

fn integer(record: &csv::StringRecord, column: &'static str, position: usize) -> Result<i64, TraceError> {
    let text = record.get(position).unwrap_or_default();
    text.parse().map_err(|_| TraceError::NotANumber {
        line: record.position().map_or(0, csv::Position::line),
        column,
        text: text.chars().take(40).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_come_in_any_order_and_others_are_ignored() {
        let text = "note,t4_ns,t1_ns,t2_ns,t3_ns\nx,500,0, 1100,1200\n";
        let rows = read_csv(text.as_bytes()).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].exchange, Exchange::from_ns(0, 1100, 1200, 500));
        assert_eq!(rows[0].offset_true_ns, None);
    }

    #[test]
    fn a_step_under_way_is_read_where_the_trace_says_so() {
        let text = "t1_ns,t2_ns,t3_ns,t4_ns,step_in_flight\n0,0,0,500,0\n0,0,0,900,1\n";
        let rows = read_csv(text.as_bytes()).unwrap();
        assert_eq!(rows.iter().map(|row| row.step_in_flight).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn rows_come_in_the_order_of_their_replies() {
        let text = "t1_ns,t2_ns,t3_ns,t4_ns,offset_true_ns\n0,0,0,900,1\n100,0,0,500,2\n";
        let truths: Vec<_> =
            read_csv(text.as_bytes()).unwrap().iter().map(|row| row.offset_true_ns).collect();
        assert_eq!(truths, [Some(2), Some(1)]);
    }

    #[test]
    fn each_fault_is_named_with_its_line_and_the_way_out() {
        let message = |text: &str| read_csv(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            message(""),
            "the trace has no column t1_ns: its first line must name \
             t1_ns,t2_ns,t3_ns,t4_ns and may name offset_true_ns"
        );
        assert_eq!(
            message("t1_ns,t2_ns,t3_ns,t4_ns\n"),
            "the trace has a header but no exchanges; record at least one"
        );
        assert_eq!(
            message("t1_ns,t2_ns,t3_ns,t4_ns\n1,2,3,4\n1,2,3.5,4\n"),
            "line 3: t3_ns is \"3.5\", but must be a whole number of nanoseconds"
        );
        assert!(message("t1_ns,t2_ns,t3_ns,t4_ns\n1,2,3\n").contains("as many fields as the header"));
        assert!(message("t1_ns,t2_ns,t3_ns,t4_ns\n9223372036854775808,2,3,4\n").starts_with("line 2: t1_ns"));
    }
}
