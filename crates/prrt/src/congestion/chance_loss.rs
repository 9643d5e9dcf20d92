//! Random loss distinguished from congestion loss: does a full congestion window lose more than the path does anyway?
//!
//! A policer, and a queue too short to be seen, lose without a round trip that grows. So much loss is answered by a smaller
//! window: if they were what lost, less is lost then. A sender that offers `s` to what bears `(1 − p) s` loses
//! `1 − (1 − p) / d` with `d` of the window, and one that loses by chance as much as before. In the second case the decrease is taken
//! back, and what the path loses by chance is known.

/// More than this part of so many packets is not chance, unless a decrease has shown that it is.
const EXCESS: f64 = 0.1;
const PACKETS: u32 = 256;
/// Share of the difference by which the chance loss falls when less is lost than that.
const FALLS: f64 = 1.0 / 8.0;
/// No path that is of use loses more by chance; and near 1 a decrease shows nothing, for hardly less is lost after it.
const CHANCE_MAX: f64 = 0.5;
/// A decrease that leaves more than this shows nothing either.
const DECREASE_MAX: f64 = 0.9;

/// Estimator of chance loss, from packets that left while the congestion window was full.
#[derive(Debug, Default)]
pub(super) struct ChanceLoss {
    packets: u32,
    lost: u32,
    /// Chance loss, 0 to 1: the loss that no decrease of the window has reduced.
    share: f64,
    /// Share of the last [`PACKETS`] packets that was lost.
    latest: f64,
    /// The same before the decrease whose effect is awaited, and what that left of the window.
    trial: Option<(f64, f64)>,
}

/// Classification of a lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Chance,
    /// More than chance: less is to be sent.
    Excess,
    /// The decrease has changed nothing.
    InVain,
}

impl ChanceLoss {
    pub(super) fn arrived(&mut self, packets: u32) {
        self.packets = self.packets.saturating_add(packets);
        // Where hardly anything is lost after a decrease, no loss comes that could say so.
        if let Some((before, left)) = self.trial.filter(|_| self.packets >= PACKETS)
            && self.share_lost() <= middle(before, left)
        {
            self.forget_trial();
        }
    }

    /// The window is another one by now: nothing follows from what it loses.
    pub(super) fn forget_trial(&mut self) {
        if self.trial.take().is_some() {
            (self.packets, self.lost) = (0, 0);
        }
    }

    fn share_lost(&self) -> f64 {
        f64::from(self.lost) / f64::from(self.packets.max(1))
    }

    /// One more was lost.
    pub(super) fn lost(&mut self) -> Sign {
        (self.packets, self.lost) = (self.packets.saturating_add(1), self.lost.saturating_add(1));
        if self.packets < PACKETS {
            return Sign::Chance;
        }
        let share = self.share_lost();
        (self.packets, self.lost) = (0, 0);
        self.latest = share;
        if let Some((before, left)) = self.trial.take()
            && share > middle(before, left)
        {
            self.share = share;
            return Sign::InVain;
        }
        if share > self.share + EXCESS {
            return Sign::Excess;
        }
        self.share -= (self.share - share).max(0.0) * FALLS;
        Sign::Chance
    }

    /// After an excess the window is this part of what it was.
    pub(super) fn decreased(&mut self, left: f64) {
        self.trial = (left < DECREASE_MAX && self.latest < CHANCE_MAX).then_some((self.latest, left));
    }

    /// The part of the window that arrived when it was last judged.
    pub(super) fn bearable(&self) -> f64 {
        1.0 - self.latest
    }

    /// Whether more was lost than can be chance.
    pub(super) fn is_most(&self) -> bool {
        self.latest > CHANCE_MAX
    }

    /// Whether a decrease is to show its effect: the window must not grow.
    pub(super) fn is_tried(&self) -> bool {
        self.trial.is_some()
    }

    /// One that was counted as lost has arrived.
    pub(super) fn spurious(&mut self) {
        self.lost = self.lost.saturating_sub(1);
    }

    /// Whether of so many packets more were lost than chance explains.
    pub(super) fn is_exceeded_by(&self, lost: u32, arrived: u32) -> bool {
        f64::from(lost) > (self.share + EXCESS) * f64::from(lost + arrived)
    }
}

/// Of the loss before a decrease that left this part of the window, and of the loss after it if the window was the cause.
fn middle(before: f64, left: f64) -> f64 {
    let if_ours = (1.0 - (1.0 - before) / left).max(0.0);
    (before + if_ours) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: f64 = 0.7;

    /// Sign at the end of [`PACKETS`] packets of which this share is lost.
    fn judge(chance: &mut ChanceLoss, share: f64) -> Sign {
        let lost = (f64::from(PACKETS) * share) as u32;
        chance.arrived(PACKETS - lost);
        let sign = (0..lost).map(|_| chance.lost()).last().unwrap();
        if sign == Sign::Excess {
            chance.decreased(LEFT);
        }
        sign
    }

    #[test]
    fn what_a_smaller_window_does_not_make_less_is_chance() {
        let mut chance = ChanceLoss::default();
        assert_eq!(judge(&mut chance, 0.05), Sign::Chance);
        assert_eq!(judge(&mut chance, 0.2), Sign::Excess);
        assert_eq!(judge(&mut chance, 0.19), Sign::InVain);
        assert_eq!(judge(&mut chance, 0.25), Sign::Chance);
        assert_eq!(judge(&mut chance, 0.4), Sign::Excess);
    }

    #[test]
    fn what_a_smaller_window_makes_less_is_ours() {
        for share in [0.15, 0.3, 0.45] {
            let mut chance = ChanceLoss::default();
            let mut offered = 1.0 / (1.0 - share);
            while offered > 1.13 {
                assert_eq!(judge(&mut chance, 1.0 - 1.0 / offered), Sign::Excess, "{share}, {offered}");
                offered *= LEFT;
            }
        }
    }

    #[test]
    fn no_decrease_makes_most_losses_chance() {
        let mut chance = ChanceLoss::default();
        for _ in 0..5 {
            assert_eq!(judge(&mut chance, 0.8), Sign::Excess);
        }
    }

    #[test]
    fn a_decrease_after_which_nothing_is_lost_holds_the_window_no_longer_than_that_takes_to_see() {
        let mut chance = ChanceLoss::default();
        assert_eq!(judge(&mut chance, 0.2), Sign::Excess);
        chance.arrived(PACKETS - 1);
        assert!(chance.is_tried());
        chance.arrived(1);
        assert!(!chance.is_tried());
        assert_eq!(judge(&mut chance, 0.05), Sign::Chance);
    }
}
