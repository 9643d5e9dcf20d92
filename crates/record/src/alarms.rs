//! Alarms: a topic is too old, its bound too wide, or its rate too low for some time. The same answer live and from a file.
//!
//! [`Alarms`] has no clock: samples and moments are handed in, alarms that fire are polled. A topic that falls silent grows older with
//! every moment, so that an alarm on its age also notices that it has stopped. Text: `docs/guide/record.md`.

mod file;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

use serde::Deserialize;

pub use file::{Judged, judge};

/// Longest text of alarms.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Alarms of a text.
pub const ALARMS_MAX: usize = 1_000;
/// Alarms that have fired and were not polled; of more the oldest are kept, and all are counted.
pub(crate) const FIRED_MAX: usize = 1_000;
/// Samples of which an alarm on a rate keeps the times.
const RATE_SAMPLES_MAX: f64 = 100_000.0;
/// A year; longer is a slip.
const LONGEST_S: f64 = 31_536_000.0;

/// Why a text has no alarms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlarmError {
    /// The text is no TOML, or has other keys.
    #[error("{0}")]
    Text(String),
    /// An entry says nothing, or what cannot be.
    #[error("alarm {number} ({topic}): {why}")]
    Entry {
        /// Its place, from 1.
        number: usize,
        /// Its topic.
        topic: String,
        /// The fact and the way out.
        why: &'static str,
    },
    /// None, or too many.
    #[error("it has {0} alarms; write 1 to {ALARMS_MAX} entries [[alarms]]")]
    Count(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    alarms: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    topic: String,
    age_above_ms: Option<f64>,
    bound_above_ms: Option<f64>,
    rate_below_hz: Option<f64>,
    for_seconds: f64,
}

/// Fault of a topic that an alarm watches for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// The newest sample's content is older than this, ns.
    AgeAbove(u64),
    /// A sample's source time is known no better than this, ns, or not proven at all.
    BoundAbove(u64),
    /// Fewer samples came than this rate asks for, Hz.
    RateBelow(f64),
}

/// An alarm: the condition holds for a time without a break.
#[derive(Clone, Debug, PartialEq)]
pub struct Alarm {
    /// Name of the topic.
    pub topic: String,
    /// The fault.
    pub condition: Condition,
    /// Time for which it must hold, ns.
    pub for_ns: u64,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (topic, seconds) = (self.topic.escape_debug(), self.for_ns as f64 / 1e9);
        match self.condition {
            Condition::AgeAbove(ns) => write!(f, "age of {topic} above {} ms for {seconds} s", ms(ns)),
            Condition::BoundAbove(ns) => write!(f, "bound of {topic} above {} ms for {seconds} s", ms(ns)),
            Condition::RateBelow(hz) => write!(f, "rate of {topic} below {hz} Hz for {seconds} s"),
        }
    }
}

/// One sample, as alarms see it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'s> {
    /// Its topic.
    pub topic: &'s str,
    /// Time of reception, ns.
    pub log_ns: u64,
    /// When its content was true, ns of the same clock; `None` if that is not known.
    pub source_ns: Option<u64>,
    /// Bound of the source time, ns; `None` if nothing is proven.
    pub bound_ns: Option<u64>,
}

/// Alarms and what they have seen.
#[derive(Clone, Debug, Default)]
pub struct Alarms {
    watches: Vec<Watch>,
    /// The latest moment.
    now_ns: u64,
    fired: VecDeque<usize>,
}

/// One alarm.
#[derive(Clone, Debug)]
struct Watch {
    alarm: Alarm,
    /// Latest source time, or for a rate the times of the last samples.
    newest_ns: Option<u64>,
    times_ns: VecDeque<u64>,
    /// Since when the condition holds; of a rate, since when it has been watched.
    since_ns: Option<u64>,
    /// It has fired, and the condition still holds.
    is_on: bool,
    times: u64,
    first_ns: Option<u64>,
    is_judged: bool,
}

impl Alarms {
    /// Reads a text: `[[alarms]]` with `topic`, one of `age_above_ms`, `bound_above_ms` and `rate_below_hz`, and `for_seconds`.
    ///
    /// # Errors
    /// The text is no TOML, or an entry of it cannot be an alarm.
    pub fn parse(text: &str) -> Result<Alarms, AlarmError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(AlarmError::Text(format!("it has more than {TEXT_BYTES_MAX} bytes")));
        }
        let text: Text =
            toml::from_str(text).map_err(|error| AlarmError::Text(error.to_string().trim().to_owned()))?;
        if text.alarms.is_empty() || text.alarms.len() > ALARMS_MAX {
            return Err(AlarmError::Count(text.alarms.len()));
        }
        let watch = |(at, entry): (usize, Entry)| {
            let alarm = alarm(&entry);
            let wrong = |why| AlarmError::Entry { number: at + 1, topic: entry.topic.clone(), why };
            alarm.map(Watch::new).map_err(wrong)
        };
        let watches: Result<_, _> = text.alarms.into_iter().enumerate().map(watch).collect();
        Ok(Alarms { watches: watches?, ..Alarms::default() })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    /// A sample came. Its log time is a moment, too.
    pub fn handle_sample(&mut self, seen: Seen<'_>) {
        self.handle_time(seen.log_ns);
        for (number, watch) in self.watches.iter_mut().enumerate() {
            if watch.alarm.topic == seen.topic && watch.handle_sample(seen) {
                push(&mut self.fired, number);
            }
        }
    }

    /// It is so late, ns of the log's clock; an earlier moment than one before is none.
    pub fn handle_time(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        for (number, watch) in self.watches.iter_mut().enumerate() {
            if watch.handle_time(self.now_ns) {
                push(&mut self.fired, number);
            }
        }
    }

    /// An alarm that has fired since: once for each time that its condition began to hold.
    pub fn poll_fired(&mut self) -> Option<&Alarm> {
        let number = self.fired.pop_front()?;
        Some(&self.watches[number].alarm)
    }
}

impl Watch {
    fn new(alarm: Alarm) -> Watch {
        Watch {
            alarm,
            newest_ns: None,
            times_ns: VecDeque::new(),
            since_ns: None,
            is_on: false,
            times: 0,
            first_ns: None,
            is_judged: false,
        }
    }

    /// Whether it fires.
    fn handle_sample(&mut self, seen: Seen<'_>) -> bool {
        let holds = match self.alarm.condition {
            Condition::AgeAbove(limit_ns) => {
                let Some(source_ns) = seen.source_ns else { return false };
                let newest_ns = *self.newest_ns.insert(self.newest_ns.unwrap_or(0).max(source_ns));
                seen.log_ns.saturating_sub(newest_ns) > limit_ns
            }
            Condition::BoundAbove(limit_ns) => seen.bound_ns.is_none_or(|bound_ns| bound_ns > limit_ns),
            Condition::RateBelow(hz) => {
                self.times_ns.push_back(seen.log_ns);
                while self.times_ns.len() > samples(hz, self.alarm.for_ns) {
                    self.times_ns.pop_front();
                }
                return self.handle_time(seen.log_ns);
            }
        };
        self.is_judged = true;
        if holds {
            self.since_ns.get_or_insert(seen.log_ns);
        } else {
            (self.since_ns, self.is_on) = (None, false);
        }
        self.fires(seen.log_ns)
    }

    /// Whether it fires.
    fn handle_time(&mut self, now_ns: u64) -> bool {
        match self.alarm.condition {
            Condition::AgeAbove(limit_ns) => {
                let Some(newest_ns) = self.newest_ns else { return false };
                let old_ns = newest_ns.saturating_add(limit_ns);
                if old_ns < now_ns {
                    self.since_ns.get_or_insert(old_ns);
                }
            }
            Condition::BoundAbove(_) => {}
            Condition::RateBelow(hz) => {
                let begun_ns = *self.since_ns.get_or_insert(now_ns);
                let window_ns = now_ns.saturating_sub(self.alarm.for_ns);
                if begun_ns > window_ns {
                    return false;
                }
                self.is_judged = true;
                let is_enough = self.times_ns.len() >= samples(hz, self.alarm.for_ns)
                    && self.times_ns.front().is_none_or(|first_ns| *first_ns >= window_ns);
                let fires = !is_enough && !self.is_on;
                self.is_on = !is_enough;
                return fires && self.count(now_ns);
            }
        }
        self.fires(now_ns)
    }

    fn fires(&mut self, now_ns: u64) -> bool {
        let Some(since_ns) = self.since_ns.filter(|_| !self.is_on) else { return false };
        self.is_on = now_ns.saturating_sub(since_ns) >= self.alarm.for_ns;
        self.is_on && self.count(now_ns)
    }

    fn count(&mut self, now_ns: u64) -> bool {
        self.times += 1;
        self.first_ns.get_or_insert(now_ns);
        true
    }
}

fn push(fired: &mut VecDeque<usize>, number: usize) {
    if fired.len() < FIRED_MAX {
        fired.push_back(number);
    }
}

/// Samples that a rate asks for in this time.
fn samples(hz: f64, for_ns: u64) -> usize {
    // A slip of half a period is none.
    (hz * for_ns as f64 / 1e9 - 0.5).ceil().max(1.0) as usize
}

fn alarm(entry: &Entry) -> Result<Alarm, &'static str> {
    let ns = |value: f64, unit_ns: f64| (value * unit_ns).round() as u64;
    let is_time = |value: f64, unit_s: f64| value.is_finite() && value >= 0.0 && value * unit_s <= LONGEST_S;
    let condition = match (entry.age_above_ms, entry.bound_above_ms, entry.rate_below_hz) {
        (Some(ms), None, None) if is_time(ms, 1e-3) => Condition::AgeAbove(ns(ms, 1e6)),
        (None, Some(ms), None) if is_time(ms, 1e-3) => Condition::BoundAbove(ns(ms, 1e6)),
        (None, None, Some(hz)) if hz > 0.0 && hz * entry.for_seconds <= RATE_SAMPLES_MAX => {
            Condition::RateBelow(hz)
        }
        (None, None, Some(_)) => {
            return Err("rate_below_hz is above 0, and times for_seconds at most 100000 samples");
        }
        (Some(_), None, None) | (None, Some(_), None) => {
            return Err("a time in milliseconds is from 0 to a year");
        }
        _ => return Err("write one of age_above_ms, bound_above_ms and rate_below_hz"),
    };
    if entry.topic.is_empty() {
        return Err("the topic has no name");
    }
    if !is_time(entry.for_seconds, 1.0) || entry.for_seconds == 0.0 && entry.rate_below_hz.is_some() {
        return Err("for_seconds is from 0 to a year, and not 0 for a rate");
    }
    Ok(Alarm { topic: entry.topic.clone(), condition, for_ns: ns(entry.for_seconds, 1e9) })
}
