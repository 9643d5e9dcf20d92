//! E1 over a live network: arrivals that were measured, the arm in virtual time.
//!
//! Whatever carried the messages (shared memory, UDP, a serial line, another middleware): the arm's controller receives each pose
//! when its message arrived, and the hand's truth is known at every instant.

use noctule_arm::controller::CommandMode;
use noctule_arm::hand::Hand;
use noctule_netsim::link::Direction;
use noctule_timebase::Span;

use super::commands::{Carrier, CommandCost, CommandExperiment, SETTLED, run_over};

/// A message that arrived, ns of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of sending, ns.
    pub sent_ns: i64,
    /// Time of reception, ns.
    pub received_ns: i64,
}

/// Why a measurement says nothing about an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrivalError {
    /// The hand would not have come up to its amplitude.
    #[error("what arrived was sent within {:.1} s, and the figure needs {:.1} s; let the cell run longer", .covered.as_s_f64(), .needed.as_s_f64())]
    TooShort {
        /// Time from the first message sent to the last.
        covered: Span,
        /// The beginning and one period of the figure.
        needed: Span,
    },
}

/// Where the first message lies between two plans of the arm, which the two machines' clocks decide: in the middle, as it is on average.
const PHASE: Span = Span::from_us(500);

/// Arrivals in the order of their arrival, times after the first message was sent.
struct Measured {
    arrivals: Vec<(Span, Span)>,
    next: usize,
    sent: u64,
}

impl Carrier for Measured {
    fn handle_period(&mut self, _: Span, _: &Hand) {}

    fn poll(&mut self, since: Span) -> Option<Span> {
        let (received, sent) = *self.arrivals.get(self.next)?;
        (received <= since).then(|| {
            self.next += 1;
            sent
        })
    }

    fn sent(&self) -> u64 {
        self.sent
    }
}

/// The error of an arm that receives the figure's poses by these arrivals; `sent` counts lost ones, too.
///
/// # Errors
/// They cover less than the figure needs.
pub fn run(arrivals: &[Arrival], sent: u64, mode: CommandMode) -> Result<CommandCost, ArrivalError> {
    let first_ns = arrivals.iter().map(|arrival| arrival.sent_ns).min().unwrap_or(0);
    let span = |at_ns: i64| Span::from_ns(at_ns.saturating_sub(first_ns)) + PHASE;
    let covered = arrivals.iter().map(|arrival| span(arrival.sent_ns)).max().unwrap_or(Span::ZERO);
    let needed = SETTLED + FIGURE_PERIOD;
    // A record that ends within the last 10 % of a second counts as whole: senders start late.
    if covered + Span::from_ms(100) < needed {
        return Err(ArrivalError::TooShort { covered, needed });
    }
    let mut by_arrival: Vec<(Span, Span)> =
        arrivals.iter().map(|arrival| (span(arrival.received_ns), span(arrival.sent_ns))).collect();
    by_arrival.sort_unstable();
    let whole_periods = (covered - SETTLED + Span::from_ms(100)).ns() / FIGURE_PERIOD.ns();
    let experiment = CommandExperiment {
        duration: Span::from_ns(FIGURE_PERIOD.ns() * whole_periods - Span::from_ms(100).ns()),
        ..CommandExperiment::new(mode, Direction::default())
    };
    Ok(run_over(&experiment, &mut Measured { arrivals: by_arrival, next: 0, sent }))
}

/// Period of the figure of 0.5 and 0.75 Hz.
pub const FIGURE_PERIOD: Span = Span::from_s(4);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use noctule_netsim::link::LinkSpec;

    use super::*;
    use crate::experiment::commands;

    /// 12 s of messages at 1 kHz that take `delay_ms`; each `lost`-th is lost.
    fn arrivals(delay_ms: i64, lost: i64) -> Vec<Arrival> {
        let at = |index: i64| Arrival {
            sent_ns: 7_000_000_000 + index * 1_000_000,
            received_ns: 7_000_000_000 + (index + delay_ms) * 1_000_000,
        };
        (0..12_000).filter(|index| lost == 0 || index % lost != 0).map(at).collect()
    }

    #[test]
    fn a_constant_delay_costs_what_the_modelled_link_costs() {
        for mode in [CommandMode::Hold, CommandMode::Age] {
            let measured = run(&arrivals(20, 0), 12_000, mode).unwrap();
            let link: LinkSpec = "delay=20ms".parse().unwrap();
            let modelled = commands::run(&CommandExperiment {
                duration: Span::from_s(8),
                ..CommandExperiment::new(mode, link.a_to_b)
            });
            println!("{mode:?}: {:.3} and {:.3} mm", measured.rms_mm, modelled.rms_mm);
            assert!(measured.followed);
            // Half a millisecond more: what arrives between two plans waits for the next.
            assert!((measured.mean_age_ms - modelled.mean_age_ms - 0.5).abs() < 0.01);
            assert!((measured.rms_mm - modelled.rms_mm).abs() < 0.06 * modelled.rms_mm);
        }
    }

    #[test]
    fn losses_are_counted_and_too_short_a_measurement_is_refused() {
        let cost = run(&arrivals(5, 10), 12_000, CommandMode::Age).unwrap();
        // Nine of ten, until 0.1 s before the end.
        assert_eq!((cost.sent, cost.received / 10), (12_000, 1_070));
        assert!(cost.followed);
        let short = &arrivals(5, 0)[..6_000];
        let refused = run(short, 6_000, CommandMode::Hold).unwrap_err();
        assert!(refused.to_string().contains("let the cell run longer"), "{refused}");
        assert!(run(&[], 0, CommandMode::Hold).is_err());
    }
}
