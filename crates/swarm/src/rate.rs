//! How many states a second a drone may send, so that all drones and everything else on the channel stay within a budget.
//!
//! # Problem
//!
//! A group has no acknowledgements to control a rate by. A hundred drones that each ask for what a lone drone could have fill the
//! channel: frames collide, ages grow, and unicast traffic beside them starves.
//!
//! # Approach
//!
//! LIMERIC (Bansal, Kenney and Rohrs, "LIMERIC: a linear adaptive message rate algorithm for DSRC congestion control", IEEE
//! Transactions on Vehicular Technology, 2013), with the constants of ETSI TS 102 687 V1.2.1, clause 5.4. Every station measures
//! the share of time in which it senses the channel busy, whatever the cause, and moves its own share δ of the air by
//!
//! `δ ← (1 − α)·δ + β·(target − busy)`, the second term limited,
//!
//! every 200 ms. All that sense the same channel move by the same amount, and α lets differences between them decay: rates fall and
//! rise together without a message about it. With K stations the sum settles at K·β / (α + K·β) of what is left of the target,
//! and the loop is stable up to K = (2 − α) / β, 1,653.

use noctule_timebase::Span;

/// Interval between two steps of the control.
pub const PERIOD: Span = Span::from_ms(200);
const ALPHA: f64 = 0.016;
const BETA: f64 = 0.0012;
/// Most that a step adds and takes, as a share of the air.
const RISE_MAX: f64 = 0.0005;
const FALL_MAX: f64 = 0.00025;

/// Limits of a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimits {
    /// Never more, Hz.
    pub wanted_hz: f64,
    /// Never less, however full the channel is, Hz.
    pub least_hz: f64,
    /// The busy share of the channel that is aimed at, 0 to 1.
    pub target: f64,
}

/// The control of one drone.
#[derive(Clone, Debug)]
pub struct RateControl {
    limits: RateLimits,
    airtime_s: f64,
    /// Share of the air that the drone takes.
    share: f64,
    /// Busy share of the last two periods.
    busy: f64,
    busy_before: Span,
}

impl RateControl {
    /// Control for states whose frames, repetitions included, take `airtime` each; begins at the least rate.
    pub fn new(limits: RateLimits, airtime: Span) -> RateControl {
        let airtime_s = airtime.as_s_f64().max(1e-9);
        let share = limits.least_hz * airtime_s;
        RateControl { limits, airtime_s, share, busy: 0.0, busy_before: Span::ZERO }
    }

    /// About one [`PERIOD`], `elapsed`, is over, and the channel has been busy for `busy` in all since the start.
    pub fn handle_period(&mut self, elapsed: Span, busy: Span) {
        let now = ((busy - self.busy_before).as_s_f64() / elapsed.as_s_f64().max(1e-9)).clamp(0.0, 1.0);
        self.busy_before = busy;
        self.busy = 0.5 * (self.busy + now);
        let step = (BETA * (self.limits.target - self.busy)).clamp(-FALL_MAX, RISE_MAX);
        let least = self.limits.least_hz * self.airtime_s;
        let most = (self.limits.wanted_hz * self.airtime_s).max(least);
        self.share = ((1.0 - ALPHA) * self.share + step).clamp(least, most);
    }

    /// States a second, Hz.
    pub fn rate_hz(&self) -> f64 {
        self.share / self.airtime_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RateLimits = RateLimits { wanted_hz: 50.0, least_hz: 1.0, target: 0.3 };
    const AIRTIME: Span = Span::from_us(100);

    /// `count` controls on one channel without collisions, beside `other` of the time; their rates after `seconds`.
    fn settle(controls: &mut [RateControl], other: f64, seconds: f64) -> Vec<f64> {
        let mut busy = controls[0].busy_before;
        for _ in 0..(seconds / PERIOD.as_s_f64()) as usize {
            let groups: f64 = controls.iter().map(|c| c.rate_hz() * AIRTIME.as_s_f64()).sum();
            let share = (groups + other).min(1.0);
            busy += Span::from_ns((share * PERIOD.ns() as f64) as i64);
            controls.iter_mut().for_each(|control| control.handle_period(PERIOD, busy));
        }
        controls.iter().map(RateControl::rate_hz).collect()
    }

    #[test]
    fn the_sum_settles_below_the_target_and_falls_for_others() {
        let mut controls = vec![RateControl::new(LIMITS, AIRTIME); 100];
        let alone = settle(&mut controls, 0.0, 60.0);
        let sum = |rates: &[f64]| rates.iter().sum::<f64>() * AIRTIME.as_s_f64();
        // K·β / (α + K·β) of 0.3.
        assert!((sum(&alone) - 0.3 * 0.12 / 0.136).abs() < 0.003, "{}", sum(&alone));
        let beside = settle(&mut controls, 0.15, 60.0);
        assert!((sum(&beside) - 0.15 * 0.12 / 0.136).abs() < 0.003, "{}", sum(&beside));
        // More than the target: everybody at the least rate, and back afterwards.
        assert!(settle(&mut controls, 0.9, 60.0).iter().all(|rate| (rate - 1.0).abs() < 1e-9));
        assert!((sum(&settle(&mut controls, 0.0, 120.0)) - sum(&alone)).abs() < 0.003);
    }

    #[test]
    fn a_newcomer_gets_the_same_rate() {
        let mut controls = vec![RateControl::new(LIMITS, AIRTIME); 100];
        settle(&mut controls, 0.0, 60.0);
        controls[7] =
            RateControl { busy_before: controls[0].busy_before, ..RateControl::new(LIMITS, AIRTIME) };
        let rates = settle(&mut controls, 0.0, 60.0);
        let (least, most) =
            rates.iter().fold((f64::MAX, 0.0_f64), |range, rate| (range.0.min(*rate), range.1.max(*rate)));
        assert!(most / least < 1.03, "{least} to {most}");
    }

    #[test]
    fn few_drones_have_what_they_want() {
        let mut controls = vec![RateControl::new(LIMITS, AIRTIME); 8];
        assert!(settle(&mut controls, 0.0, 30.0).iter().all(|rate| (rate - 50.0).abs() < 1e-9));
    }
}
