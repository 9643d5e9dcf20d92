//! Which packets are lost: each by itself, or in bursts.
//!
//! Bursts follow Gilbert and Elliott: a channel is good or bad, and loses with one probability in
//! either state. It is given by what can be measured, the overall loss and the mean length of the bad
//! state, instead of by transition probabilities. With k and h the losses in the good and the bad
//! state, the share of the bad state is π = (loss − k) / (h − k).
//!
//! Advanced per packet, a bad state lasts a geometric number of packets with mean L: r = 1/L,
//! p = r·π/(1 − π). Advanced in time, it lasts an exponential time with mean T, and the state
//! after a pause of any length follows exactly: P(bad) = π + (s − π)·e^(−t/(T·(1 − π))), s being 1 if it
//! was bad and else 0. Which of the two is right depends on the cause: interference and fading go by
//! time, and a faster stream loses more packets in a row; counting in packets keeps a test comparable
//! between rates.

use noctule_timebase::{Instant, Span};

use super::spec::{Burst, Impairments};
use crate::Truth;
use crate::random::Random;

#[derive(Debug)]
pub(super) struct LossProcess {
    random: Random,
    law: Law,
    bad: bool,
    /// When the state was last drawn.
    drawn: Instant<Truth>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Law {
    good_loss: f64,
    bad_loss: f64,
    /// Share of packets or of time in the bad state.
    bad_share: f64,
    burst: Burst,
}

impl Law {
    fn of(impairments: &Impairments) -> Law {
        let loss = impairments.loss.as_f64();
        let (good_loss, bad_loss) = (impairments.gap_loss.as_f64(), impairments.burst_loss.as_f64());
        if impairments.burst == Burst::Independent || impairments.loss.is_zero() || bad_loss <= good_loss {
            return Law { good_loss: loss, bad_loss: loss, bad_share: 0.0, burst: Burst::Independent };
        }
        let bad_share = ((loss - good_loss) / (bad_loss - good_loss)).clamp(0.0, 1.0);
        Law { good_loss, bad_loss, bad_share, burst: impairments.burst }
    }

    /// Probability that the channel is bad at the next packet, `pause` after the last draw.
    fn bad_next(&self, bad: bool, pause: Span) -> f64 {
        let share = self.bad_share;
        match self.burst {
            Burst::Independent => 0.0,
            Burst::Packets { mean_thousandths } => {
                let end = (1000.0 / f64::from(mean_thousandths.max(1))).min(1.0);
                match bad {
                    true => 1.0 - end,
                    false => (end * share / (1.0 - share).max(1e-12)).min(1.0),
                }
            }
            Burst::Time { mean } => {
                let settling_ns = mean.ns().max(1) as f64 * (1.0 - share).max(1e-12);
                let memory = libm::exp(-(pause.ns().max(0) as f64) / settling_ns);
                share + (f64::from(u8::from(bad)) - share) * memory
            }
        }
    }
}

impl LossProcess {
    pub(super) fn new(impairments: &Impairments, start: Instant<Truth>, mut random: Random) -> LossProcess {
        let law = Law::of(impairments);
        // In the long run's mix of states from the first packet on.
        let bad = random.chance(law.bad_share);
        LossProcess { random, law, bad, drawn: start }
    }

    pub(super) fn change(&mut self, impairments: &Impairments) {
        let law = Law::of(impairments);
        if law != self.law {
            self.law = law;
            self.bad = self.random.chance(law.bad_share);
        }
    }

    /// Whether the packet sent at `sent` is lost.
    pub(super) fn loses(&mut self, sent: Instant<Truth>) -> bool {
        self.bad = self.random.chance(self.law.bad_next(self.bad, sent - self.drawn));
        self.drawn = sent;
        self.random.chance(if self.bad { self.law.bad_loss } else { self.law.good_loss })
    }
}
