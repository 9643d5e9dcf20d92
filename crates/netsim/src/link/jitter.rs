//! How delays spread around their mean.
//!
//! Every distribution is given by the mean and one measure of spread, so a specification can change
//! the shape and keep the rest. What would be negative becomes zero, which shifts the mean of `normal`
//! and `uniform` if the spread is not small against the delay; the other two are positive by nature.

use noctule_timebase::Span;

use crate::random::Random;

/// Longest delay, jitter, stall or hold.
pub const DELAY_MAX: Span = Span::from_s(3600);

/// The shape of the delays' spread. `delay` is the mean; `jitter` is the standard deviation, but of
/// `Uniform` half the width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// From `delay − jitter` to `delay + jitter`.
    Uniform,
    /// Gaussian.
    #[default]
    Normal,
    /// Log-normal: a long tail, as of queues of many users.
    LogNormal,
    /// Pareto with a shape above 2: a least delay most packets come close to, and a heavy tail.
    Pareto,
}

impl Distribution {
    /// Names as in a specification.
    pub(super) const NAMES: [(&'static str, Distribution); 4] = [
        ("uniform", Distribution::Uniform),
        ("normal", Distribution::Normal),
        ("lognormal", Distribution::LogNormal),
        ("pareto", Distribution::Pareto),
    ];

    /// Draws one delay: 0 to [`DELAY_MAX`].
    pub fn draw(self, delay: Span, jitter: Span, random: &mut Random) -> Span {
        if jitter <= Span::ZERO {
            return delay.clamp(Span::ZERO, DELAY_MAX);
        }
        let (mean_ns, spread_ns) = (delay.ns() as f64, jitter.ns() as f64);
        let ns = match self {
            Distribution::Uniform => random.uniform(mean_ns - spread_ns, mean_ns + spread_ns),
            Distribution::Normal => mean_ns + random.normal(spread_ns),
            Distribution::LogNormal => {
                let relative = spread_ns / mean_ns.max(1.0);
                let variance = libm::log1p(relative * relative);
                libm::exp(libm::log(mean_ns.max(1.0)) - variance / 2.0 + random.normal(libm::sqrt(variance)))
            }
            Distribution::Pareto => {
                let relative = mean_ns / spread_ns;
                let shape = 1.0 + libm::sqrt(1.0 + relative * relative);
                mean_ns * (shape - 1.0) / shape * libm::pow(random.unit(), -1.0 / shape)
            }
        };
        Span::from_ns(libm::round(ns.clamp(0.0, DELAY_MAX.ns() as f64)) as i64)
    }
}
