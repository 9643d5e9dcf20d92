//! The end of a block: its outcome teaches the price of redundancy, the verdict and the circuit breaker.

use noctule_timebase::{Instant, Span};

use super::{DeadlineStream, ROUNDS_FOR_THE_FATE, cost, spread::long_block};
use crate::congestion::rate_limit::RateLimit;
use crate::repair::share_of_target;
use crate::stream::Local;
use crate::trace::{self, Event, GivenUp, Record};

impl DeadlineStream {
    /// Forgets blocks whose fate is known or no longer matters. Gives their cost.
    pub(super) fn retire(
        &mut self,
        (round, queue): (Span, Span),
        pace: &mut RateLimit,
        (now, counters): (Instant<Local>, &mut Record),
    ) -> usize {
        let mut freed = 0;
        while let Some(block) = self.blocks.front() {
            if !block.is_done() && now < block.deadline_at + round * ROUNDS_FOR_THE_FATE {
                break;
            }
            freed += cost(block);
            if block.is_abandoned() && !block.has_begun() {
                let is_new = self.expired_last.replace(block.sequence) != Some(block.sequence)
                    && self.failed_last != Some(block.sequence);
                let samples = if is_new { block.samples } else { 0 };
                counters.expired += u64::from(samples);
                self.counters.expired += u64::from(samples);
                if is_new {
                    let part = trace::sample(self.writer, block.sequence);
                    counters.note(|| Event::GivenUp { part, why: GivenUp::Expired });
                }
                self.feasibility.count_starved(samples);
                self.blocks.pop_front();
                self.first += 1;
                continue;
            }
            let failed = block.failed();
            let is_new = failed > 0 && self.failed_last.replace(block.sequence) != Some(block.sequence);
            let samples = if is_new { u64::from(failed) } else { 0 };
            counters.bound_failed += samples;
            if is_new {
                let part = trace::sample(self.writer, block.sequence);
                counters.note(|| Event::GivenUp { part, why: GivenUp::Unacknowledged });
            }
            self.counters.failed += samples;
            if block.spacing > Span::ZERO {
                let (block, context) = (long_block(block), self.spread_context());
                self.spread.handle_end(block, queue, context);
            }
            if !block.is_abandoned() && !block.is_excused() {
                let allowed = self.bound.loss_target * f64::from(block.samples) / self.blocks_per_sample;
                let aim = allowed * share_of_target(block.samples);
                let outage = self.outage * f64::from(block.samples);
                let risk = self.price.settle(block.risk, failed.into(), aim, outage);
                self.feasibility.settle(risk, allowed);
                if u32::from(block.symbols()) == block.samples {
                    let [samples, lost] = [block.samples, block.firsts_lost()];
                    pace.settle((samples, failed, lost), block.begin, now);
                }
            }
            self.blocks.pop_front();
            self.first += 1;
        }
        freed
    }
}
