//! The estimators by name, for everything that lets a user choose one.

use core::fmt;
use core::str::FromStr;

use noctule_timebase::Instant;

use crate::bounded::{Bounded, BoundedConfig};
use crate::ema::{Ema, EmaPreset};
use crate::exchange::{Counters, Estimate, Estimator, Exchange, Local, Rejection};
use crate::last_sample::LastSample;
use crate::minimum_of_8::MinimumOf8;

/// Which estimator. Written and read as `ema`, `ema_mavros`, `last_sample`, `minimum_of_8`, `bounded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EstimatorKind {
    /// The autopilot's filter.
    Ema,
    /// The same filter with the ground side's constants.
    EmaMavros,
    /// The last midpoint.
    LastSample,
    /// The midpoint of the fastest of the last eight.
    MinimumOf8,
    /// The default.
    Bounded,
}

impl EstimatorKind {
    /// All of them, in the order of the tables.
    pub const ALL: [EstimatorKind; 5] = [
        EstimatorKind::Ema,
        EstimatorKind::EmaMavros,
        EstimatorKind::LastSample,
        EstimatorKind::MinimumOf8,
        EstimatorKind::Bounded,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            EstimatorKind::Ema => "ema",
            EstimatorKind::EmaMavros => "ema_mavros",
            EstimatorKind::LastSample => "last_sample",
            EstimatorKind::MinimumOf8 => "minimum_of_8",
            EstimatorKind::Bounded => "bounded",
        }
    }

    /// One that has seen nothing; `config` matters to [`EstimatorKind::Bounded`] alone.
    pub fn build(self, config: BoundedConfig) -> AnyEstimator {
        match self {
            EstimatorKind::Ema => AnyEstimator::Ema(Ema::new(EmaPreset::Px4)),
            EstimatorKind::EmaMavros => AnyEstimator::Ema(Ema::new(EmaPreset::Mavros)),
            EstimatorKind::LastSample => AnyEstimator::LastSample(LastSample::default()),
            EstimatorKind::MinimumOf8 => AnyEstimator::MinimumOf8(MinimumOf8::default()),
            EstimatorKind::Bounded => AnyEstimator::Bounded(Bounded::new(config)),
        }
    }
}

impl fmt::Display for EstimatorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No estimator has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEstimator;

impl fmt::Display for UnknownEstimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there are ")?;
        for (i, kind) in EstimatorKind::ALL.iter().enumerate() {
            let before = match i {
                0 => "",
                i if i + 1 == EstimatorKind::ALL.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{kind}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownEstimator {}

impl FromStr for EstimatorKind {
    type Err = UnknownEstimator;

    /// Reads a name; a hyphen counts as an underscore.
    fn from_str(text: &str) -> Result<EstimatorKind, UnknownEstimator> {
        let same = |kind: &EstimatorKind| {
            let given = text.bytes().map(|byte| if byte == b'-' { b'_' } else { byte });
            given.eq(kind.name().bytes())
        };
        EstimatorKind::ALL.into_iter().find(same).ok_or(UnknownEstimator)
    }
}

/// Any of the estimators, without a heap.
#[derive(Clone, Debug)]
// One is made and kept; the smallest may take the room of the largest.
#[allow(clippy::large_enum_variant)]
pub enum AnyEstimator {
    /// [`Ema`], either preset.
    Ema(Ema),
    /// [`LastSample`].
    LastSample(LastSample),
    /// [`MinimumOf8`].
    MinimumOf8(MinimumOf8),
    /// [`Bounded`].
    Bounded(Bounded),
}

impl AnyEstimator {
    fn inner(&self) -> &dyn Estimator {
        match self {
            AnyEstimator::Ema(ema) => ema,
            AnyEstimator::LastSample(last) => last,
            AnyEstimator::MinimumOf8(minimum) => minimum,
            AnyEstimator::Bounded(bounded) => bounded,
        }
    }
}

impl Estimator for AnyEstimator {
    fn handle_exchange(&mut self, exchange: &Exchange) -> Result<(), Rejection> {
        match self {
            AnyEstimator::Ema(ema) => ema.handle_exchange(exchange),
            AnyEstimator::LastSample(last) => last.handle_exchange(exchange),
            AnyEstimator::MinimumOf8(minimum) => minimum.handle_exchange(exchange),
            AnyEstimator::Bounded(bounded) => bounded.handle_exchange(exchange),
        }
    }

    fn estimate(&self, now: Instant<Local>) -> Option<Estimate> {
        self.inner().estimate(now)
    }

    fn counters(&self) -> Counters {
        self.inner().counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_name_is_read_back_and_builds_its_estimator() {
        let exchange = Exchange::from_ns(0, 5_100, 5_100, 200);
        for kind in EstimatorKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.name().replace('_', "-").parse(), Ok(kind));
            let mut estimator = kind.build(BoundedConfig::default());
            estimator.handle_exchange(&exchange).unwrap();
            assert_eq!(estimator.counters().accepted, 1);
            let estimate = estimator.estimate(exchange.t4).unwrap();
            assert_eq!(estimate.bound.is_some(), kind == EstimatorKind::Bounded);
        }
    }

    #[test]
    fn another_name_is_answered_with_those_there_are() {
        let error = "kalman".parse::<EstimatorKind>().unwrap_err();
        assert_eq!(error.to_string(), "there are ema, ema_mavros, last_sample, minimum_of_8 and bounded");
        assert!("".parse::<EstimatorKind>().is_err());
    }
}
