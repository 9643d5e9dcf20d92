//! The congestion window of CUBIC (RFC 9438), in packets.

use noctule_timebase::{Instant, Span};

use crate::stream::Local;

/// Section 5: packets per second cubed.
const C: f64 = 0.4;
/// Section 4.6.
const BETA: f64 = 0.7;
/// Section 4.3: growth a round trip that shares with Reno as fairly as halving and one packet do.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The state of CUBIC's window.
#[derive(Debug)]
pub(crate) struct Cubic {
    /// Where the last decrease began.
    before: f64,
    /// When growth began anew, and from where.
    since: Instant<Local>,
    inflection: Span,
    /// Window of Reno since the last decrease, in packets (RFC 9438, section 4.3: `W_est`).
    as_reno: f64,
}

impl Cubic {
    /// Growth begins at `packets`.
    pub(crate) fn new(packets: f64, now: Instant<Local>) -> Cubic {
        Cubic { before: packets, since: now, inflection: Span::ZERO, as_reno: packets }
    }

    /// Packets after a loss or a mark, which leaves this part of them.
    pub(crate) fn decrease(&mut self, packets: f64, left: f64, now: Instant<Local>) -> f64 {
        // Section 4.7: a flow that shrinks makes room at once for a new one.
        self.before = if packets < self.before { packets * (1.0 + left) / 2.0 } else { packets };
        let after = packets * left;
        self.inflection = Span::from_ns((((self.before - after).max(0.0) / C).cbrt() * 1e9) as i64);
        (self.since, self.as_reno) = (now, after);
        after
    }

    /// Packets once `arrived` more have, in round trips of so long.
    pub(crate) fn grow(&mut self, packets: f64, arrived: f64, round_trip: Span, now: Instant<Local>) -> f64 {
        let alpha = if self.as_reno < self.before { ALPHA } else { 1.0 };
        self.as_reno += alpha * arrived / packets;
        let from_inflection = (now - self.since + round_trip - self.inflection).as_s_f64();
        let target = (self.before + C * from_inflection.powi(3)).clamp(packets, packets * 1.5);
        (packets + (target - packets) * arrived / packets).max(self.as_reno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_back_where_the_loss_was_after_the_inflection_and_then_goes_on() {
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        let mut cubic = Cubic::new(1_000.0, at(0));
        let mut packets = cubic.decrease(1_000.0, BETA, at(0));
        assert!((packets - 700.0).abs() < 1e-9);
        // K = ∛(300 / 0.4) = 9.09 s
        let mut by_second = Vec::new();
        for round in 0..130 {
            packets = cubic.grow(packets, packets, Span::from_ms(100), at(round * 100));
            by_second.push(packets);
        }
        assert!((by_second[90] - 1_000.0).abs() < 5.0, "{}", by_second[90]);
        assert!((by_second[125] - 1_000.0 - 0.4 * 3.5f64.powi(3)).abs() < 6.0, "{}", by_second[125]);
    }

    #[test]
    fn on_a_short_path_it_grows_as_reno_would() {
        let at = |ms: i64| Instant::from_ns(ms * 1_000_000);
        let mut cubic = Cubic::new(20.0, at(0));
        let mut packets = cubic.decrease(20.0, BETA, at(0));
        for round in 0..10 {
            packets = cubic.grow(packets, packets, Span::from_ms(20), at(round * 20));
        }
        assert!((packets - 14.0 - 10.0 * ALPHA).abs() < 1.0, "{packets}");
    }
}
