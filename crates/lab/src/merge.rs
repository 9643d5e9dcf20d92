//! Trials of one experiment, merged into one row.
//!
//! Cells with equal [`Cell::key`] are trials of one another. Percentiles of the row come from the
//! pooled raw samples, never from averaged percentiles (a p99 of p99s is no p99). The spread beside
//! them is the range of the trials' medians: how much the row moves when the same thing is measured
//! again. A row is summarised only if *every* trial was valid; leaving out the bad trials would
//! flatter whatever failed under load.

use std::collections::HashMap;

use crate::cell_statistics::end_to_end;
use crate::notation::duration;
use crate::run::{Cell, CellKey, Floor, Run};
use crate::samples::CellSamples;
use crate::statistics::{LatencySummary, SAMPLES_BEYOND, median};

/// A clock error above this share of the median latency is pointed out.
pub const CLOCK_SHARE: f64 = 0.2;

/// Time within which a share of the messages sent had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Latency, ns.
    Within(i64),
    /// The share never arrived.
    Never,
    /// Not known, with fewer than ten messages beyond it.
    TooFew,
}

/// Percentiles of the messages sent, a lost one being later than all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfSent {
    /// Time within which 99 % had arrived.
    pub p99: Arrival,
    /// Time within which 99.9 % had arrived.
    pub p99_9: Arrival,
}

impl OfSent {
    /// `latencies` of the messages that arrived, sorted.
    fn of(latencies: &[i64], sent: u64) -> Self {
        let lost = sent.saturating_sub(latencies.len() as u64);
        let at = |per_mille: u64| {
            let index = (u128::from(sent) * u128::from(per_mille) / 1000) as u64;
            let beyond = sent.saturating_sub(index + 1);
            match latencies.get(index as usize) {
                Some(&latency_ns) if beyond >= SAMPLES_BEYOND as u64 => Arrival::Within(latency_ns),
                None if lost >= SAMPLES_BEYOND as u64 => Arrival::Never,
                _ => Arrival::TooFew,
            }
        };
        Self { p99: at(990), p99_9: at(999) }
    }
}

/// One experiment of a run, all its trials together.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedCell {
    /// Key that the trials share.
    pub key: CellKey,
    /// Positions of the trials in `Run::cells`, in the order measured; never empty.
    pub trials: Vec<usize>,
    /// Number of latencies pooled.
    pub samples: u64,
    /// Summary of the pooled latencies; `None` unless every trial was valid.
    pub latency_ns: Option<LatencySummary>,
    /// Within what time 99 % and 99.9 % of the messages *sent* were there, however many were lost; `None` unless every
    /// trial was valid.
    pub of_sent: Option<OfSent>,
    /// Smallest and largest median of the trials; `None` unless every trial has one.
    pub p50_spread_ns: Option<(i64, i64)>,
    /// Sum over trials of [`Cell::sent`].
    pub sent: u64,
    /// Sum over trials of [`Cell::scheduled`]; where that is not known, of what was sent.
    pub scheduled: u64,
    /// Sum over trials of [`Cell::received`].
    pub received: u64,
    /// Sum over trials of [`Cell::lost`].
    pub lost: u64,
    /// Sum over trials of [`Cell::late`].
    pub late: u64,
    /// Sum over trials of [`Cell::duplicated`].
    pub duplicated: u64,
    /// Largest over trials of [`Cell::clock_bound_ns`].
    pub clock_bound_ns: u64,
    /// Largest over trials of [`Cell::clock_sigma_ns`].
    pub clock_sigma_ns: u64,
    /// The floor the trials were compared with.
    pub floor: Option<Floor>,
    /// Pooled p50 divided by the floor's p50.
    pub ratio_to_floor: Option<f64>,
    /// True if the trials are a built-in floor.
    pub is_floor: bool,
    /// True if every trial was valid.
    pub valid: bool,
    /// True if what was not valid was so only because the rate was not held ([`Cell::is_only_slow`]): then the share of
    /// messages on time is known.
    pub is_only_slow: bool,
    /// Trials that were not valid.
    pub invalid_trials: u32,
    /// Their reasons, each once.
    pub why_invalid: Vec<String>,
    /// True if the scenario expects that this cell may not keep up.
    pub may_saturate: bool,
}

impl MergedCell {
    /// Loss as a share of the messages sent, 0 … 1; `None` if none were sent.
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }

    /// Warning about a latency between two clocks: its clock error is more than
    /// [`CLOCK_SHARE`] of it.
    pub fn clock_warning(&self) -> Option<String> {
        let p50_ns = self.latency_ns?.p50? as f64;
        let parts = [("proven clock bound", self.clock_bound_ns), ("clock's sigma", self.clock_sigma_ns)];
        let large: Vec<String> = parts
            .into_iter()
            .filter(|&(_, ns)| ns as f64 > p50_ns * CLOCK_SHARE)
            .map(|(what, ns)| format!("the {what}, {},", duration(ns as f64)))
            .collect();
        let verb = if large.len() == 1 { "is" } else { "are" };
        (!large.is_empty()).then(|| {
            format!("{} {verb} more than a fifth of the p50, {}", large.join(" and "), duration(p50_ns))
        })
    }

    /// Messages that were there by their deadline as a share of those that were due, 0 … 1: lost ones were not, nor those
    /// that the sender never came to. `None` if none were due.
    pub fn on_time(&self) -> Option<f64> {
        let (due, missing) = (self.scheduled.max(self.sent), self.scheduled.saturating_sub(self.sent));
        let missed = self.lost.saturating_add(self.late).saturating_add(missing);
        (due > 0).then(|| 1.0 - missed as f64 / due as f64)
    }

    /// Half the spread of the trials' medians relative to the pooled median; `None` with one trial.
    pub fn relative_half_spread(&self) -> Option<f64> {
        let (low, high) = self.p50_spread_ns?;
        let p50 = self.latency_ns?.p50?;
        (self.trials.len() > 1 && p50 > 0).then(|| high.saturating_sub(low) as f64 / 2.0 / p50 as f64)
    }
}

/// Groups the cells of a run by key, in first-seen order. `samples[i]` belongs to `run.cells[i]`;
/// missing entries count as empty.
pub fn merge(run: &Run, samples: &[CellSamples]) -> Vec<MergedCell> {
    group(run)
        .into_iter()
        .map(|(key, trials)| {
            let pooled = pool(run, samples, &trials);
            merge_trials(run, (key, trials), pooled)
        })
        .collect()
}

/// As [`merge`], for a run whose samples are not at hand: a figure of a row is the median over its trials, `None` if a trial
/// has none. It is a typical trial's figure, not one of all samples.
pub fn medians_of_trials(run: &Run) -> Vec<MergedCell> {
    group(run)
        .into_iter()
        .map(|(key, trials)| {
            let cells: Vec<&Cell> = trials.iter().map(|&trial| &run.cells[trial]).collect();
            let ratios: Option<Vec<f64>> = cells.iter().map(|cell| cell.ratio_to_floor).collect();
            let summaries: Option<Vec<LatencySummary>> = cells.iter().map(|cell| cell.latency_ns).collect();
            let mut merged = merge_trials(run, (key, trials), vec![]);
            merged.latency_ns = summaries.and_then(|summaries| LatencySummary::medians(&summaries));
            merged.ratio_to_floor = ratios.and_then(median);
            merged
        })
        .collect()
}

/// Latencies of all trials of one experiment together, unsorted, in nanoseconds.
pub fn pool(run: &Run, samples: &[CellSamples], trials: &[usize]) -> Vec<i64> {
    let mut pooled = Vec::new();
    for &trial in trials {
        if let (Some(cell), Some(samples)) = (run.cells.get(trial), samples.get(trial)) {
            pooled.append(&mut end_to_end(cell.mode, cell.measured_nodes(), samples));
        }
    }
    pooled
}

/// Positions in `run.cells` of the trials of each experiment, in first-seen order.
pub fn group(run: &Run) -> Vec<(CellKey, Vec<usize>)> {
    let mut groups: Vec<(CellKey, Vec<usize>)> = Vec::new();
    let mut position: HashMap<CellKey, usize> = HashMap::new();
    for (index, cell) in run.cells.iter().enumerate() {
        let key = cell.key();
        let group = *position.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(index);
    }
    groups
}

fn merge_trials(run: &Run, (key, trials): (CellKey, Vec<usize>), pooled: Vec<i64>) -> MergedCell {
    let cells: Vec<&Cell> = trials.iter().map(|&trial| &run.cells[trial]).collect();
    let sum =
        |count: fn(&Cell) -> u64| cells.iter().fold(0u64, |total, cell| total.saturating_add(count(cell)));
    let invalid_trials = cells.iter().filter(|cell| !cell.valid).count() as u32;
    let mut why_invalid: Vec<String> = Vec::new();
    for reason in cells.iter().flat_map(|cell| &cell.why_invalid).map(ToString::to_string) {
        if !why_invalid.contains(&reason) {
            why_invalid.push(reason);
        }
    }
    let samples = pooled.len() as u64;
    let sent = sum(|cell| cell.sent);
    let of_sent = (invalid_trials == 0 && samples > 0).then(|| {
        let mut sorted = pooled.clone();
        sorted.sort_unstable();
        OfSent::of(&sorted, sent)
    });
    let latency_ns = match (invalid_trials, cells.as_slice()) {
        (1.., _) => None,
        // A run.json without its samples still has the summary of a single trial.
        (0, [only]) if samples == 0 => only.latency_ns,
        (0, _) => LatencySummary::of(pooled),
    };
    let medians: Option<Vec<i64>> = cells.iter().map(|cell| cell.latency_ns?.p50).collect();
    let p50_spread_ns = medians
        .filter(|_| invalid_trials == 0)
        .and_then(|medians| Some((*medians.iter().min()?, *medians.iter().max()?)));
    let floor = cells.iter().find_map(|cell| cell.floor.clone());
    let ratio_to_floor = floor
        .as_ref()
        .filter(|floor| floor.p50_ns > 0)
        .and_then(|floor| Some(latency_ns?.p50? as f64 / floor.p50_ns as f64));
    MergedCell {
        samples,
        latency_ns,
        of_sent,
        p50_spread_ns,
        sent,
        scheduled: sum(|cell| cell.scheduled.unwrap_or(cell.sent)),
        received: sum(|cell| cell.received),
        lost: sum(|cell| cell.lost),
        late: sum(|cell| cell.late),
        duplicated: sum(|cell| cell.duplicated),
        clock_bound_ns: cells.iter().map(|cell| cell.clock_bound_ns).max().unwrap_or(0),
        clock_sigma_ns: cells.iter().map(|cell| cell.clock_sigma_ns).max().unwrap_or(0),
        floor,
        ratio_to_floor,
        is_floor: cells.iter().all(|cell| cell.is_floor),
        valid: invalid_trials == 0,
        is_only_slow: invalid_trials > 0 && cells.iter().all(|cell| cell.valid || cell.is_only_slow()),
        invalid_trials,
        why_invalid,
        may_saturate: cells.iter().all(|cell| cell.expect.as_deref() == Some("may_saturate")),
        key,
        trials,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{round_trip as cell, run};

    #[test]
    fn interleaved_trials_are_pooled_in_first_seen_order() {
        let low: Vec<i64> = (100..200).collect();
        let high: Vec<i64> = (300..400).collect();
        let (run, samples) =
            run(vec![cell("b", 0, &low), cell("a", 0, &low), cell("b", 1, &high), cell("a", 1, &low)]);
        let merged = merge(&run, &samples);
        assert_eq!(merged.len(), 2);
        assert_eq!((merged[0].key.peer.as_str(), &merged[0].trials), ("b", &vec![0, 2]));
        let pooled = merged[0].latency_ns.unwrap();
        assert_eq!((pooled.min, pooled.p50, pooled.max), (100, Some(300), 399), "of all samples");
        assert_eq!(merged[0].p50_spread_ns, Some((150, 350)));
        assert_eq!(merged[0].ratio_to_floor, Some(3.0));
        assert_eq!((merged[0].sent, merged[0].received, merged[0].lost), (202, 200, 2));
        assert_eq!(merged[1].p50_spread_ns, Some((150, 150)));
        assert_eq!(merged[1].relative_half_spread(), Some(0.0));
    }

    #[test]
    fn one_invalid_trial_withholds_the_summary_and_names_each_reason_once() {
        let latencies: Vec<i64> = (100..200).collect();
        let mut bad = cell("a", 1, &latencies);
        bad.0.valid = false;
        bad.0.latency_ns = None;
        bad.0.why_invalid = vec!["the rate was not held".into()];
        let worse = bad.clone();
        let (run, samples) = run(vec![cell("a", 0, &latencies), bad, worse]);
        let merged = merge(&run, &samples);
        assert_eq!(merged.len(), 1);
        assert!(!merged[0].valid);
        assert_eq!(merged[0].invalid_trials, 2);
        assert_eq!(merged[0].why_invalid, ["the rate was not held"]);
        assert_eq!(merged[0].latency_ns, None);
        assert_eq!(merged[0].p50_spread_ns, None);
        assert_eq!(merged[0].ratio_to_floor, None);
    }

    #[test]
    fn percentiles_of_what_was_sent_count_a_lost_message_as_later_than_all_others() {
        let latencies: Vec<i64> = (0..9_950).collect();
        // Of 10,000 sent 50 were lost: 99 % were there, 99.9 % never.
        let of = OfSent::of(&latencies, 10_000);
        assert_eq!(of, OfSent { p99: Arrival::Within(9_900), p99_9: Arrival::Never });
        assert_eq!(OfSent::of(&latencies[..100], 100).p99, Arrival::TooFew);
        let (run, samples) = run(vec![cell("a", 0, &latencies)]);
        let mut row = merge(&run, &samples).remove(0);
        assert_eq!(row.of_sent, Some(OfSent { p99: Arrival::Within(9_851), p99_9: Arrival::TooFew }));
        (row.sent, row.lost, row.late) = (10_000, 50, 150);
        assert_eq!(row.on_time(), Some(0.98));
        // Messages that the sender never came to were not on time either.
        row.scheduled = 20_000;
        assert_eq!(row.on_time(), Some(0.49));
    }

    #[test]
    fn a_clock_error_above_a_fifth_of_the_median_is_pointed_out() {
        let latencies: Vec<i64> = (50_000..50_100).collect();
        let warning = |bound_ns, sigma_ns| {
            let mut cell = cell("a", 0, &latencies);
            (cell.0.clock_bound_ns, cell.0.clock_sigma_ns) = (bound_ns, sigma_ns);
            let (run, samples) = run(vec![cell]);
            merge(&run, &samples)[0].clock_warning()
        };
        assert_eq!(warning(0, 0), None);
        assert_eq!(warning(10_000, 2_000), None);
        let bound = "the proven clock bound, 18 µs, is more than a fifth of the p50, 50 µs";
        assert_eq!(warning(18_000, 2_000).as_deref(), Some(bound));
        let both = "the proven clock bound, 18 µs, and the clock's sigma, 11 µs, are more than a fifth of the p50, 50 µs";
        assert_eq!(warning(18_000, 11_000).as_deref(), Some(both));
    }

    #[test]
    fn a_run_without_samples_keeps_the_summary_of_a_single_trial() {
        let latencies: Vec<i64> = (100..200).collect();
        let (run, _) = run(vec![cell("a", 0, &latencies)]);
        let merged = merge(&run, &[]);
        assert_eq!(merged[0].latency_ns.unwrap().p50, Some(150));
        assert_eq!(merged[0].samples, 0);
        assert_eq!(merged[0].relative_half_spread(), None, "one trial has no spread");
    }
}
