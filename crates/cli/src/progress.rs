//! Progress while a run measures: redrawn between measurements only, because a ticking display
//! would take processor time from what is measured.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use noctule_lab::engine::Observer;
use noctule_lab::notation;
use noctule_lab::plan::CellPlan;
use noctule_lab::run::Cell;

/// A bar on a terminal; on anything else one line per tenth of the run.
pub(crate) struct Progress {
    bar: ProgressBar,
    last: String,
    tenths: usize,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::no_length();
        let style = ProgressStyle::with_template("{elapsed:>4} {bar:24} {pos}/{len} {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { bar, last: String::new(), tenths: 0 }
    }

    pub(crate) fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.bar.elapsed()
    }
}

impl Observer for Progress {
    fn begin(&mut self, number: usize, total: usize, cell: &CellPlan) {
        if self.bar.is_hidden() {
            if number * 10 / total.max(1) >= self.tenths {
                self.tenths = number * 10 / total.max(1) + 1;
                anstream::eprintln!("measuring {}/{total}: {}", number + 1, cell.label());
            }
            return;
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(number as u64);
        self.bar.set_message(format!("{}   {}", cell.label(), self.last));
    }

    fn end(&mut self, result: &Cell) {
        let p50 = result.latency_ns.and_then(|latency| latency.p50);
        self.last = match (result.valid, p50) {
            (true, Some(p50_ns)) => format!("(last: {} {})", result.peer, notation::duration(p50_ns as f64)),
            (true, None) => String::new(),
            (false, _) => format!("(last: {} not valid)", result.peer),
        };
    }
}
