//! Notices on standard error: a node that can cause one cannot fill a disk with them.

use std::fmt::Display;

use noctule_timebase::{Instant, Span};

use crate::clock::Raw;

/// Lines in one period.
const LINES_PER_PERIOD: u32 = 20;
/// The period.
const PERIOD: Span = Span::from_s(10);

/// Decides which notices are printed.
#[derive(Debug, Default)]
pub(super) struct NoticePrinter {
    period: Option<Instant<Raw>>,
    printed: u32,
    left_out: u64,
}

impl NoticePrinter {
    /// The line for a notice; `None` if there were too many.
    pub(super) fn line(&mut self, notice: &impl Display, now: Instant<Raw>) -> Option<String> {
        let mut line = String::new();
        if self.period.is_none_or(|period| now - period >= PERIOD) {
            if self.left_out > 0 {
                line = format!("noctule: {} notices were left out\n", self.left_out);
            }
            *self = NoticePrinter { period: Some(now), ..NoticePrinter::default() };
        }
        if self.printed >= LINES_PER_PERIOD {
            self.left_out += 1;
            return None;
        }
        self.printed += 1;
        line.push_str(&format!("noctule: {notice}\n"));
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let mut printer = NoticePrinter::default();
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        let lines: Vec<String> = (0..5_000).filter_map(|ms| printer.line(&"x", at(ms))).collect();
        assert_eq!(lines, vec!["noctule: x\n"; LINES_PER_PERIOD as usize]);
        let next = printer.line(&"y", at(10_000));
        assert_eq!(next.as_deref(), Some("noctule: 4980 notices were left out\nnoctule: y\n"));
    }
}
