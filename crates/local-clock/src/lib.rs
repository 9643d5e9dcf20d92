//! The clock of a process: the machine's own, or an artificial one over it with a known truth.
//!
//! # Problem
//!
//! The error of a clock's estimate can only be measured where the truth is known, and two real clocks
//! never show it. A robot's bench has one machine, and its clocks agree.
//!
//! # Approach
//!
//! Everything that is compared between clocks counts on [`Raw`], the raw clock of the machine. An artificial
//! clock is a function of it: an offset, a rate, steps. Two artificial clocks of one machine have a
//! true difference at every moment, [`LocalClock::offset_to`], that no message had to carry.
//!
//! ```
//! use noctule_local_clock::{LocalClock, Raw};
//! use noctule_time_sync::Remote;
//! use noctule_timebase::{Instant, Span};
//!
//! let clock: LocalClock = "offset=5s,ppm=50,step=20ms@30s,since=0".parse().unwrap();
//! let raw = Instant::<Raw>::from_ns(100_000_000_000);
//! assert_eq!(clock.at::<Remote>(raw).ns(), 105_025_000_000);
//! assert_eq!(LocalClock::default().offset_to(&clock, raw), Span::from_ms(5_025));
//! ```

#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use noctule_sys::clock::raw_ns;
use noctule_timebase::{Instant, Span};

/// Marker of `CLOCK_MONOTONIC_RAW` of this machine, the base of every local clock.
pub enum Raw {}

/// Most steps one artificial clock may have.
pub const STEPS_LIMIT: usize = 64;

/// An artificial rate may differ from the crystal's by this much: ten per cent. A clock that does
/// more is no clock, and one that does a million ppm less does not advance.
const RATE_LIMIT_PPB: i64 = 100_000_000;

/// Now on [`Raw`].
#[inline]
pub fn now() -> Instant<Raw> {
    Instant::from_ns(raw_ns())
}

/// A clock as a function of [`Raw`]. The default is `Raw` itself.
///
/// As text: `offset=5s,ppm=50,step=20ms@30s,since=NS`, every part optional and `step` repeatable.
/// Lengths of time carry `ns`, `us`, `ms` or `s`, and all but those after `@` may be negative. `since` is the
/// reading of `Raw` in nanoseconds from which rate and steps count; without it they count from
/// [`LocalClock::started`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalClock {
    offset: Span,
    /// Billionths by which the clock is faster than the raw clock.
    rate_ppb: i64,
    steps: Vec<Step>,
    since: Option<Instant<Raw>>,
}

/// A sudden change of an artificial clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long after `since`, by the raw clock.
    pub after: Span,
    /// By how much the clock then shows more.
    pub by: Span,
}

impl LocalClock {
    /// The same clock, counting rate and steps from `now` if its text did not say from when.
    #[must_use]
    pub fn started(mut self, now: Instant<Raw>) -> LocalClock {
        self.since = self.since.or(Some(now));
        self
    }

    /// Reading of this clock at `raw`; `C` is the type of whose clock it is.
    #[inline]
    pub fn at<C>(&self, raw: Instant<Raw>) -> Instant<C> {
        raw.translate(self.ahead_of_raw(raw))
    }

    /// Reading of this clock now.
    #[inline]
    pub fn now<C>(&self) -> Instant<C> {
        self.at(now())
    }

    /// Every moment at which this clock showed `shown`, to the nanosecond, in order: one, or more if a
    /// step made it show it again, or none if a step left it out.
    pub fn moments_of<C>(&self, shown: Instant<C>) -> Vec<Instant<Raw>> {
        let since = self.since();
        let mut steps = self.steps.clone();
        steps.sort_by_key(|step| step.after);
        let faster = 1_000_000_000_u64.saturating_add_signed(self.rate_ppb);
        let (mut stepped, mut from) = (Span::ZERO, Span::MIN);
        let mut moments = Vec::new();
        for next in steps.iter().map(Some).chain([None]) {
            // With what is stepped so far: elapsed · (1 + rate) = shown − since − offset − stepped.
            let gained = Span::from_ns(shown.ns()) - Span::from_ns(since.ns()) - self.offset - stepped;
            let elapsed = gained.scale(1_000_000_000, faster).unwrap_or(Span::ZERO);
            let until = next.map_or(Span::MAX, |step| step.after);
            if from <= elapsed && elapsed < until {
                moments.push(since + elapsed);
            }
            stepped += next.map_or(Span::ZERO, |step| step.by);
            from = until;
        }
        moments
    }

    /// The truth: what `other` shows minus what this clock shows, at one moment.
    pub fn offset_to(&self, other: &LocalClock, at: Instant<Raw>) -> Span {
        other.ahead_of_raw(at) - self.ahead_of_raw(at)
    }

    /// Whether the truth between this clock and `other` jumps between two moments, the later included.
    pub fn steps_between(&self, other: &LocalClock, from: Instant<Raw>, to: Instant<Raw>) -> bool {
        [self, other].into_iter().any(|clock| {
            let since = clock.since();
            clock.steps.iter().any(|step| from < since + step.after && since + step.after <= to)
        })
    }

    /// True if this is the machine's own clock.
    pub fn is_raw(&self) -> bool {
        self.offset == Span::ZERO && self.rate_ppb == 0 && self.steps.is_empty()
    }

    /// True if what it shows depends on a start that its text does not name.
    pub fn depends_on_start(&self) -> bool {
        self.since.is_none() && (self.rate_ppb != 0 || !self.steps.is_empty())
    }

    fn since(&self) -> Instant<Raw> {
        self.since.unwrap_or(Instant::from_ns(0))
    }

    fn ahead_of_raw(&self, raw: Instant<Raw>) -> Span {
        if self.is_raw() {
            return Span::ZERO;
        }
        let elapsed = raw - self.since();
        let gained = elapsed.scale(self.rate_ppb, 1_000_000_000).unwrap_or(Span::ZERO);
        let stepped: Span = self.steps.iter().filter(|step| step.after <= elapsed).map(|step| step.by).sum();
        self.offset + gained + stepped
    }
}

/// Errors in the text of a clock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// A part is none of the known ones.
    #[error("\"{0}\" is no part of a clock; write offset=5s, ppm=50, step=20ms@30s or since=NS")]
    Part(String),
    /// A length of time that cannot be read.
    #[error("\"{0}\" is no length of time; write a number and ns, us, ms or s, such as 20ms")]
    Length(String),
    /// A rate that cannot be read.
    #[error("ppm={0} is no rate; write a number from -100000 to 100000 with at most three decimals")]
    Rate(String),
    /// A step without its moment, or with one before the start.
    #[error("step={0} does not say when; write step=20ms@30s, 30 s after the start")]
    Step(String),
    /// `since` is no reading.
    #[error("since={0} is no reading of CLOCK_MONOTONIC_RAW; write whole nanoseconds")]
    Since(String),
    /// More than [`STEPS_LIMIT`] steps.
    #[error("a clock may have {STEPS_LIMIT} steps; leave some out")]
    TooManySteps,
    /// Something that may stand once stands twice.
    #[error("{0} stands twice in a clock; leave one out")]
    Twice(&'static str),
}

impl FromStr for LocalClock {
    type Err = ClockError;

    fn from_str(text: &str) -> Result<LocalClock, ClockError> {
        let mut clock = LocalClock::default();
        let (mut offset, mut rate_ppb) = (None, None);
        if text.trim().is_empty() {
            return Ok(clock);
        }
        for part in text.split(',').map(str::trim) {
            let (key, value) = part.split_once('=').ok_or_else(|| ClockError::Part(part.into()))?;
            match key {
                "offset" => once("offset", &mut offset, length(value)?)?,
                "ppm" => once("ppm", &mut rate_ppb, rate(value)?)?,
                "since" => {
                    let ns = value.parse().map_err(|_| ClockError::Since(value.into()))?;
                    once("since", &mut clock.since, Instant::from_ns(ns))?;
                }
                "step" => {
                    if clock.steps.len() == STEPS_LIMIT {
                        return Err(ClockError::TooManySteps);
                    }
                    let (by, after) = value.split_once('@').ok_or_else(|| ClockError::Step(value.into()))?;
                    let step = Step { by: length(by)?, after: length(after)? };
                    if step.after < Span::ZERO {
                        return Err(ClockError::Step(value.into()));
                    }
                    clock.steps.push(step);
                }
                _ => return Err(ClockError::Part(part.into())),
            }
        }
        clock.offset = offset.unwrap_or_default();
        clock.rate_ppb = rate_ppb.unwrap_or_default();
        Ok(clock)
    }
}

fn once<T>(name: &'static str, place: &mut Option<T>, value: T) -> Result<(), ClockError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(ClockError::Twice(name)),
    }
}

fn length(text: &str) -> Result<Span, ClockError> {
    let fault = || ClockError::Length(text.into());
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let digits = match &text[number.len()..] {
        "ns" => 0,
        "us" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return Err(fault()),
    };
    decimal(number, digits).map(Span::from_ns).ok_or_else(fault)
}

fn rate(text: &str) -> Result<i64, ClockError> {
    decimal(text, 3).filter(|ppb| ppb.abs() <= RATE_LIMIT_PPB).ok_or_else(|| ClockError::Rate(text.into()))
}

/// A decimal number times 10^`digits`, exactly; `None` if it does not fit or has more digits.
fn decimal(text: &str, digits: usize) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits || fraction.len() > digits || unsigned.ends_with('.') {
        return None;
    }
    let scaled: i64 = format!("{whole}{fraction:0<digits$}").parse().ok()?;
    Some(if negative { -scaled } else { scaled })
}

impl fmt::Display for LocalClock {
    /// The text from which the same clock is read again; empty for the machine's own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.offset != Span::ZERO {
            parts.push(format!("offset={}ns", self.offset.ns()));
        }
        if self.rate_ppb != 0 {
            let sign = if self.rate_ppb < 0 { "-" } else { "" };
            let ppb = self.rate_ppb.abs();
            parts.push(format!("ppm={sign}{}.{:03}", ppb / 1000, ppb % 1000));
        }
        let step = |step: &Step| format!("step={}ns@{}ns", step.by.ns(), step.after.ns());
        parts.extend(self.steps.iter().map(step));
        if let Some(since) = self.since {
            parts.push(format!("since={}", since.ns()));
        }
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use noctule_time_sync::Local;
    use proptest::prelude::*;

    use super::*;

    fn clock(text: &str) -> LocalClock {
        text.parse().unwrap()
    }

    fn shows(clock: &LocalClock, raw_ns: i64) -> i64 {
        clock.at::<Local>(Instant::from_ns(raw_ns)).ns()
    }

    #[test]
    fn offset_rate_and_steps_add_up_from_since() {
        let clock = clock("offset=-5s,ppm=50.5,step=20ms@30s,step=-1us@40s,since=1000");
        assert_eq!(shows(&clock, 1_000), 1_000 - 5_000_000_000);
        assert_eq!(shows(&clock, 1_000 + 29_999_999_999), 24_999_999_999 + 1_000 + 1_514_999);
        assert_eq!(shows(&clock, 1_000 + 30_000_000_000), 25_000_001_000 + 1_515_000 + 20_000_000);
        assert_eq!(shows(&clock, 1_000 + 40_000_000_000), 35_000_001_000 + 2_020_000 + 20_000_000 - 1_000);
    }

    #[test]
    fn the_empty_text_is_the_machines_own_clock() {
        assert_eq!(clock(""), LocalClock::default());
        assert_eq!(shows(&clock(" "), i64::MAX), i64::MAX);
        assert!(clock("").is_raw());
    }

    #[test]
    fn since_is_given_once_by_the_text_or_by_the_start() {
        let start = Instant::from_ns(7);
        assert_eq!(clock("ppm=1").started(start), clock("ppm=1,since=7"));
        assert_eq!(clock("ppm=1,since=9").started(start), clock("ppm=1,since=9"));
    }

    #[test]
    fn a_step_lies_between_two_moments_if_the_later_has_it_and_the_earlier_not() {
        let (a, b) = (clock("since=0"), clock("step=1ms@10ns,since=5"));
        let steps = |from, to| a.steps_between(&b, Instant::from_ns(from), Instant::from_ns(to));
        assert_eq!([steps(0, 14), steps(14, 15), steps(15, 99), steps(0, 99)], [false, true, false, true]);
        assert_eq!(a.offset_to(&b, Instant::from_ns(15)), Span::from_ms(1));
        assert_eq!(b.offset_to(&a, Instant::from_ns(15)), Span::from_ms(-1));
    }

    #[test]
    fn a_reading_leads_back_to_every_moment_it_was_shown() {
        let clock = clock("offset=-3s,ppm=-50,step=20ms@500ms,step=-5ms@900ms,since=1000");
        let back = |raw_ns: i64| -> Vec<i64> {
            let shown = clock.at::<Local>(Instant::from_ns(raw_ns));
            clock.moments_of(shown).into_iter().map(Instant::ns).collect()
        };
        for raw_ns in [-7_000_000_000, 1_000, 499_999_000, 500_002_000, 890_000_000, 930_000_000, 1 << 50] {
            let found = back(raw_ns);
            assert!(matches!(found[..], [ns] if (ns - raw_ns).abs() <= 1), "{raw_ns}: {found:?}");
        }
        // The step back of 5 ms shows the last 5 ms again.
        let found = back(898_000_000);
        assert!((found[0] - 898_000_000).abs() <= 1 && (found[1] - 903_000_250).abs() <= 10, "{found:?}");
        let left_out = Instant::<Local>::from_ns(1_000 - 3_000_000_000 + 510_000_000);
        assert_eq!(clock.moments_of(left_out), []);
    }

    #[test]
    fn each_fault_is_one_sentence_with_the_way_out() {
        for (text, words) in [
            ("5s", "\"5s\" is no part of a clock; write offset=5s"),
            ("speed=3", "\"speed=3\" is no part"),
            ("offset=5", "\"5\" is no length of time; write a number and ns, us, ms or s"),
            ("offset=.5s", "no length of time"),
            ("offset=5.s", "no length of time"),
            ("offset=0.1ns", "no length of time"),
            ("offset=9999999999s", "no length of time"),
            ("offset=1s,offset=1s", "offset stands twice"),
            ("ppm=fast", "ppm=fast is no rate"),
            ("ppm=100000.001", "is no rate"),
            ("step=20ms", "step=20ms does not say when"),
            ("step=20ms@-1s", "does not say when"),
            ("since=5s", "since=5s is no reading of CLOCK_MONOTONIC_RAW"),
            ("offset=1s,", "\"\" is no part"),
        ] {
            let said = text.parse::<LocalClock>().unwrap_err().to_string();
            assert!(said.contains(words), "{text}: {said}");
        }
        let many = vec!["step=1ns@1ns"; STEPS_LIMIT + 1].join(",");
        assert_eq!(many.parse::<LocalClock>(), Err(ClockError::TooManySteps));
        assert!(vec!["step=1ns@1ns"; STEPS_LIMIT].join(",").parse::<LocalClock>().is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_refused_in_one_line_or_read_to_a_clock_that_writes_itself(
            text in "(offset=|ppm=|step=|since=)?[-0-9.a-z@,=é\\n]{0,24}"
        ) {
            match text.parse::<LocalClock>() {
                Ok(clock) => prop_assert_eq!(clock.to_string().parse(), Ok(clock)),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }

        #[test]
        fn any_clock_survives_its_own_text(
            offset_ns: i64,
            rate_ppb in -RATE_LIMIT_PPB..=RATE_LIMIT_PPB,
            steps in prop::collection::vec((any::<i64>(), 0..i64::MAX), 0..4),
            since in prop::option::of(any::<i64>()),
            raw_ns: i64,
        ) {
            // The least i64 has no positive counterpart, and no text.
            let ns = |ns: i64| Span::from_ns(ns.max(-i64::MAX));
            let clock = LocalClock {
                offset: ns(offset_ns),
                rate_ppb,
                steps: steps.iter().map(|&(by, after)| Step { by: ns(by), after: ns(after) }).collect(),
                since: since.map(Instant::from_ns),
            };
            let again: LocalClock = clock.to_string().parse().unwrap();
            prop_assert_eq!(&again, &clock);
            prop_assert_eq!(shows(&again, raw_ns), shows(&clock, raw_ns));
        }
    }
}
