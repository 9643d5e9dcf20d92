//! The serial line of a cell: two pseudo-terminals with bytes carried between them at the line's pace.
//!
//! The options of the cell describe the line: `baud` is needed; `ftdi = "16ms"` puts a USB adapter with that
//! latency timer at both ends, `fifo = "16550"` lets both UARTs hand bytes over as that one does, by eight or after four
//! characters' silence, `noise = "1%"` hits that share of bytes, and `"none"` does none of it.

use std::collections::BTreeMap;
use std::path::Path;

use noctule_link_emulator::serial::{SerialError, SerialPump, SerialReport};
use noctule_netsim::link::{parse_share, parse_time};
use noctule_netsim::serial::{Adapter, BAUD_RANGE, FIFO_16550, Noise, SerialSpec, SerialStatistics};
use noctule_timebase::Span;

use crate::validity::Invalid;

/// USB frames of an adapter at full speed.
const USB_FRAME: Span = Span::from_ms(1);
/// Noise beyond this leaves no message whole.
const NOISE_MAX: f64 = 0.3;
/// An emulator later than this, one time in a hundred, measures itself. A wake-up on a busy machine costs tens of µs.
const LATE_NS_MAX: u64 = 300_000;

/// Why there is no serial line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SerialLineError {
    #[error("a serial line needs a speed; write options = {{ baud = 115200 }}")]
    NoSpeed,
    /// An option's value is not valid.
    #[error("{option} = \"{value}\" {fault}")]
    Option { option: &'static str, value: String, fault: String },
    #[error(transparent)]
    Emulator(#[from] SerialError),
}

/// The line that the options describe.
///
/// # Errors
/// There is no speed, or an option has a wrong value.
pub(crate) fn spec(options: &BTreeMap<String, String>) -> Result<SerialSpec, SerialLineError> {
    let Some(baud) = options.get("baud") else {
        return Err(SerialLineError::NoSpeed);
    };
    let wrong = |option: &'static str, value: &str, fault: String| {
        let value = value.to_owned();
        SerialLineError::Option { option, value, fault }
    };
    let (slowest, fastest) = (BAUD_RANGE.start(), BAUD_RANGE.end());
    let speed = baud.parse().ok().filter(|speed| BAUD_RANGE.contains(speed));
    let speed =
        speed.ok_or_else(|| wrong("baud", baud, format!("is not between {slowest} and {fastest}")))?;
    let given = |name: &str| options.get(name).filter(|text| *text != "none");
    let adapter = |text: &String| {
        let timer = parse_time(text).filter(|timer| *timer > Span::ZERO);
        let timer = timer.ok_or_else(|| wrong("ftdi", text, "is no time such as 16ms".into()))?;
        Ok::<_, SerialLineError>(Adapter { latency_timer: timer, frame: USB_FRAME })
    };
    let noise = |text: &String| {
        let share = parse_share(text).filter(|share| share.as_f64() <= NOISE_MAX);
        share.map(Noise::of).ok_or_else(|| wrong("noise", text, "is not between 0% and 30%".into()))
    };
    let receive_fifo = match given("fifo").map(String::as_str) {
        None => None,
        Some("16550") => Some(FIFO_16550),
        Some(other) => return Err(wrong("fifo", other, "is not known; say 16550 or none".into())),
    };
    Ok(SerialSpec {
        baud: speed,
        receive_fifo,
        adapter: given("ftdi").map(adapter).transpose()?,
        noise: given("noise").map_or(Ok(Noise::default()), noise)?,
        ..SerialSpec::default()
    })
}

/// Least time of an exchange of clocks on this line, each way. The shortest message of any is
/// XRCE's TIMESTAMP of 23 bytes (`docs/spec/xrce.md`); MAVLink's TIMESYNC has 25 or more.
pub(crate) fn exchange_wire(options: &BTreeMap<String, String>) -> Span {
    const BYTES: i64 = 23;
    const BITS_PER_BYTE: i64 = 10;
    spec(options).map_or(Span::ZERO, |spec| {
        Span::from_ns(BYTES * BITS_PER_BYTE * 1_000_000_000 / i64::from(spec.baud))
    })
}

/// A line at work for one trial.
pub(crate) struct SerialLine {
    pump: SerialPump,
}

/// Figures of the line during a trial, for `run.json`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LineFigures {
    /// By name; the unit ends it.
    pub(crate) facts: BTreeMap<String, f64>,
    /// Bytes of both directions.
    pub(crate) wire_bytes: u64,
    /// Why the line was not what was requested.
    pub(crate) faults: Vec<Invalid>,
}

impl SerialLine {
    /// Plugs a line in; `seed` is that of its noise.
    ///
    /// # Errors
    /// No pseudo-terminal is left.
    pub(crate) fn start(
        options: &BTreeMap<String, String>,
        seed: u64,
        (folder, session): (&Path, &str),
    ) -> Result<SerialLine, SerialLineError> {
        let paths = ["a", "b"].map(|end| folder.join(format!("{session}-{end}")));
        let pump = SerialPump::start(spec(options)?, seed, paths)?;
        Ok(SerialLine { pump })
    }

    /// The end of a node.
    pub(crate) fn device(&self, node: u32) -> String {
        self.pump.paths()[node as usize % 2].display().to_string()
    }

    /// Bytes sent so far, in both directions.
    ///
    /// # Errors
    /// The line ended by itself.
    pub(crate) fn sent_bytes(&self) -> Result<u64, SerialLineError> {
        Ok(sent_bytes(&self.pump.report()?))
    }

    /// Ends the line. `sent_before_bytes` were sent before what is measured.
    ///
    /// # Errors
    /// The line ended by itself.
    pub(crate) fn stop(self, sent_before_bytes: u64) -> Result<LineFigures, SerialLineError> {
        let report = self.pump.stop()?;
        Ok(LineFigures::of(&report, sent_before_bytes))
    }
}

fn sent_bytes(report: &SerialReport) -> u64 {
    report.directions.iter().map(|direction| direction.sent).sum()
}

impl LineFigures {
    fn of(report: &SerialReport, sent_before_bytes: u64) -> LineFigures {
        let mut figures = LineFigures {
            wire_bytes: sent_bytes(report).saturating_sub(sent_before_bytes),
            ..LineFigures::default()
        };
        let late_ns = report.lateness_ns.p99.unwrap_or(0);
        figures.facts.insert("line_late_p99_ns".into(), late_ns as f64);
        if late_ns > LATE_NS_MAX {
            figures.faults.push(Invalid::LineLate { late_ns, real_time: report.real_time });
        }
        let of_both = |count: fn(&SerialStatistics) -> u64| report.directions.iter().map(count).sum::<u64>();
        let hit = of_both(|direction| direction.flipped + direction.dropped + direction.inserted);
        for (name, count) in [("noise_bytes", hit), ("overrun_bytes", of_both(|direction| direction.overrun))]
        {
            if count > 0 {
                figures.facts.insert(name.into(), count as f64);
            }
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[(&str, &str)]) -> BTreeMap<String, String> {
        words.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_line_is_what_its_options_say() {
        let spec = spec(&options(&[("baud", "460800"), ("ftdi", "16ms"), ("noise", "1%"), ("topics", "5")]))
            .unwrap();
        assert_eq!(spec.baud, 460_800);
        assert_eq!(spec.adapter.unwrap().latency_timer, Span::from_ms(16));
        assert_ne!(spec.noise, Noise::default());
        assert_eq!(self::spec(&options(&[("baud", "9600")])).unwrap().adapter, None);
        assert_eq!(exchange_wire(&options(&[("baud", "115200")])), Span::from_ns(1_996_527));
    }

    #[test]
    fn what_is_wrong_with_the_options_is_said_in_a_sentence() {
        for (words, wanted) in [
            (vec![], "a serial line needs a speed; write options = { baud = 115200 }"),
            (vec![("baud", "fast")], "baud = \"fast\" is not between 50 and 12000000"),
            (vec![("baud", "9600"), ("ftdi", "16")], "ftdi = \"16\" is no time such as 16ms"),
            (vec![("baud", "9600"), ("fifo", "16")], "fifo = \"16\" is not known; say 16550 or none"),
            (vec![("baud", "9600"), ("noise", "50%")], "noise = \"50%\" is not between 0% and 30%"),
        ] {
            assert_eq!(spec(&options(&words)).unwrap_err().to_string(), wanted);
        }
    }
}
