//! Whether what is asked of a stream can be had, and in blocks of how many samples.

use noctule_timebase::{Instant, Span};

use crate::flight::Flight;
use crate::plan::{Demand, Feasible, Infeasible, LossModel, Path, Plan, fast};
use crate::stream::{Bound, Local};

/// Between two looks.
const LOOK_AGAIN: Span = Span::from_s(1);
/// The path must have been seen for so long before anything is said of it.
const LOOK_FIRST: Span = Span::from_ms(500);
/// Extras per datagram beyond which a wish counts as infeasible.
const REDUNDANCY_MAX: f64 = 4.0;

/// What became of the wish of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wish {
    /// It cannot be fulfilled as the path is, with what could be.
    Infeasible(Infeasible),
    /// It can be again.
    Feasible,
}

/// Looks at a stream now and then.
#[derive(Debug)]
pub(crate) struct Feasibility {
    look_at: Instant<Local>,
    is_infeasible: bool,
    block: u8,
    /// Samples since the last look, and those of them for which the path had no room before their deadline.
    offered: u32,
    starved: u32,
}

impl Feasibility {
    pub(crate) fn new(now: Instant<Local>) -> Feasibility {
        Feasibility { look_at: now + LOOK_FIRST, is_infeasible: false, block: 1, offered: 0, starved: 0 }
    }

    /// Samples of a block, if they are of one datagram each.
    pub(crate) fn block(&self) -> u8 {
        self.block
    }

    /// Whether the wish could not be fulfilled when last looked at.
    pub(crate) fn is_infeasible(&self) -> bool {
        self.is_infeasible
    }

    /// A sample is to be sent.
    pub(crate) fn count_offered(&mut self) {
        self.offered = self.offered.saturating_add(1);
    }

    /// So many samples were never sent.
    pub(crate) fn count_starved(&mut self, samples: u32) {
        self.starved = self.starved.saturating_add(samples);
    }

    /// Looks, if it is time to; a change is told once.
    pub(crate) fn poll(
        &mut self,
        bound: &Bound,
        interval: Span,
        flight: &Flight,
        now: Instant<Local>,
    ) -> Option<Wish> {
        let trip = flight.round_trip().filter(|_| now >= self.look_at)?;
        self.look_at = now + LOOK_AGAIN;
        let (p, mean_burst) = (flight.loss().share(), flight.loss().mean_burst());
        let loss = LossModel::Bursts { p, mean_burst };
        let demand = Demand {
            deadline: bound.deadline,
            loss_target: bound.loss_target,
            interval,
            datagrams_per_message: 1,
            redundancy_max: REDUNDANCY_MAX,
            steady: interval < bound.deadline,
        };
        let path = Path {
            one_way: trip.smoothed / 2 + trip.variation,
            round_trip: trip.smoothed,
            round_trip_jitter: trip.variation * 4,
            loss,
            feedback_loss: loss,
            transmit: Span::from_us(10),
            reaction: Span::from_us(300),
        };
        let starved = f64::from(self.starved) / f64::from(self.offered.max(1));
        (self.offered, self.starved) = (0, 0);
        let planned = if starved > bound.loss_target {
            let feasible = Feasible { deadline: None, loss_target: Some(starved.min(1.0)) };
            Err(Infeasible::BeyondCapacity { feasible })
        } else {
            fast(&demand, &path)
        };
        let was_infeasible = std::mem::replace(&mut self.is_infeasible, planned.is_err());
        // With time for news a sample is repaired by itself: it never waits for the end of a block.
        let has_news = path.one_way * 2 + path.news_delay() <= bound.deadline;
        self.block = match &planned {
            Ok(Plan { block, .. }) if !has_news => *block,
            _ => 1,
        };
        match (planned, was_infeasible) {
            (Err(why), false) => Some(Wish::Infeasible(why)),
            (Ok(_), true) => Some(Wish::Feasible),
            _ => None,
        }
    }
}
