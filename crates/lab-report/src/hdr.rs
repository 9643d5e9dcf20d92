//! Latencies as an HdrHistogram V2 interval log, for the tools that plot and merge those.
//!
//! One interval per cell and trial, tagged with the experiment, from 1 ns at three significant
//! digits. A tag may hold neither comma nor space, so `cores 0,1` becomes `cores_0+1`.
//! Cells that are not valid have no interval: a histogram in a log is taken for a result.
//!
//! Reference: HdrHistogram `HistogramLogWriter`, log format 1.3.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::ReportError;
use noctule_lab::cell_statistics::end_to_end;
use noctule_lab::run::Run;
use noctule_lab::samples::CellSamples;

const SIGNIFICANT_DIGITS: u8 = 3;
/// The log shows interval maxima in units of this many recorded ones: milliseconds.
const NS_PER_SHOWN_UNIT: f64 = 1e6;

/// Writes one histogram per valid cell that has samples.
pub fn write(path: &Path, run: &Run, samples: &[CellSamples]) -> Result<(), ReportError> {
    let failed = |source: std::io::Error| ReportError::write(path, source);
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("noctule lab: latency in nanoseconds, one histogram per cell and trial")
        .with_max_value_divisor(NS_PER_SHOWN_UNIT)
        .begin_log_with(&mut file, &mut serializer)
        .map_err(failed)?;
    let origin_ns = samples.iter().flatten().map(|sample| sample.scheduled_ns).min().unwrap_or(0);
    for (cell, samples) in run.cells.iter().zip(samples) {
        let tag_text = format!("{}_trial_{}", cell.key(), cell.trial)
            .replace(", ", "_")
            .replace(',', "+")
            .replace(|c: char| c.is_whitespace(), "_");
        let begin_ns = samples.iter().map(|sample| sample.scheduled_ns).min();
        let end_ns = samples.iter().map(|sample| sample.received_ns).max();
        let (true, Some(begin_ns), Some(end_ns)) = (cell.valid, begin_ns, end_ns) else {
            log.write_comment(&format!("without result: {tag_text}")).map_err(failed)?;
            continue;
        };
        let histogram = histogram(&end_to_end(&cell.mode, cell.measured_nodes(), samples));
        log.write_histogram(
            &histogram,
            span(origin_ns, begin_ns),
            span(begin_ns, end_ns),
            Tag::new(&tag_text),
        )
        .map_err(|error| failed(std::io::Error::other(format!("{error:?}"))))?;
    }
    std::io::Write::flush(&mut file).map_err(failed)
}

fn span(from_ns: i64, to_ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0))
}

/// Values below 1 ns count as 1 ns, which the format cannot tell from zero.
fn histogram(latencies: &[i64]) -> Histogram<u64> {
    let highest = latencies.iter().copied().max().unwrap_or(0).max(2) as u64;
    let bounds = Histogram::<u64>::new_with_bounds(1, highest, SIGNIFICANT_DIGITS);
    // A lowest of 1, a highest of at least 2 and 3 digits are within what the constructor accepts.
    #[allow(clippy::expect_used)]
    let mut histogram = bounds.expect("bounds are valid");
    for &latency in latencies {
        histogram.saturating_record(u64::try_from(latency).unwrap_or(0).max(1));
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use noctule_lab::fixture;
    use noctule_lab::statistics::order_statistic;

    #[test]
    fn the_log_reads_back_with_one_tagged_histogram_per_valid_cell() {
        let (mut run, samples) = fixture::chain_and_round_trips();
        run.cells[1].valid = false;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("latency.hlog");
        write(&path, &run, &samples).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut tags = Vec::new();
        for entry in IntervalLogIterator::new(&bytes) {
            let LogEntry::Interval(interval) = entry.unwrap() else {
                continue;
            };
            tags.push(interval.tag().unwrap().as_str().to_owned());
            let encoded = interval.encoded_histogram();
            let compressed = decode_base64(encoded);
            let found: Histogram<u64> = Deserializer::new().deserialize(&mut compressed.as_slice()).unwrap();
            if tags.len() == 1 {
                let mut latencies = end_to_end("round_trip", 2, &samples[0]);
                latencies.sort_unstable();
                assert_eq!(found.len(), latencies.len() as u64);
                let p99 = order_statistic(&latencies, 0.99).unwrap() as f64;
                let ratio = found.value_at_quantile(0.99) as f64 / p99;
                assert!((ratio - 1.0).abs() < 2e-3, "{ratio}");
            }
        }
        assert_eq!(tags.len(), run.cells.len() - 1);
        assert_eq!(tags[0], "udp_64_B_round_trip_spin_cores_0+1_trial_0");
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("#without result: "), "the invalid cell is named");
    }

    #[test]
    fn extreme_latencies_are_recorded_without_panic() {
        assert_eq!(histogram(&[]).len(), 0);
        assert_eq!(histogram(&[i64::MIN, -1, 0, 1, i64::MAX]).len(), 5);
    }

    /// Base64 of RFC 4648 with padding; panics on anything else.
    fn decode_base64(text: &str) -> Vec<u8> {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut bits = 0u32;
        let mut held = 0;
        let mut bytes = Vec::new();
        for letter in text.trim_end_matches('=').bytes() {
            let value = ALPHABET.iter().position(|&x| x == letter).unwrap();
            bits = bits << 6 | value as u32;
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
            }
        }
        bytes
    }
}
