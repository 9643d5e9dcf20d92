//! Specifications as text: one line for a command, TOML for a file, the same settings in both.
//!
//! The grammar and every setting stand in `docs/spec/link-text.md`. Reading is strict: nothing is
//! guessed, nothing unknown passed over. Whole numbers inside keep what is written and what is printed
//! equal: [`LinkSpec`] displays as text that reads as itself.

mod display;
mod toml_form;

use noctule_timebase::Span;

use super::recording::Recording;
use super::spec::{
    Advance, Burst, Direction, Impairments, LinkSpec, Policer, QueueLimit, Reorder, Replay, ReplayError,
    SCRIPT_STEPS_MAX, ScriptStep, Share, SpecError, Stall,
};
use super::{DELAY_MAX, Distribution, FLIGHT_BYTES_MAX, FLIGHT_PACKETS_MAX};

/// Every setting, for the sentence that refuses another.
pub(super) const KNOWN: &str = "delay, jitter, distribution, replay, replay_by, loss, burst, burst_loss, gap_loss, rate, \
     queue, queue_packets, mark, police, overhead, preamble, stall, reorder, duplicate, corrupt, mtu, down and up";

const KEYS: [&str; 23] = [
    "delay",
    "jitter",
    "distribution",
    "replay",
    "replay_by",
    "loss",
    "burst",
    "burst_loss",
    "gap_loss",
    "rate",
    "queue",
    "queue_packets",
    "mark",
    "police",
    "overhead",
    "preamble",
    "stall",
    "reorder",
    "duplicate",
    "corrupt",
    "mtu",
    "down",
    "up",
];

/// Digits of a number, so that every one is exact in 64 bits at the finest unit.
const DIGITS_MAX: usize = 15;
const RATE_MAX_BPS: u64 = 1_000_000_000_000;

/// Turns the name after `replay=` into a recording. Files are read outside of this crate.
pub type Recordings<'a> = &'a mut dyn FnMut(&str) -> Result<Recording, ReplayError>;

/// For specifications that must not replay anything.
pub fn no_recordings(_: &str) -> Result<Recording, ReplayError> {
    Err(ReplayError::NotHere)
}

impl std::str::FromStr for LinkSpec {
    type Err = SpecError;

    /// Reads the one-line form without recordings.
    fn from_str(text: &str) -> Result<LinkSpec, SpecError> {
        LinkSpec::parse(text, &mut no_recordings)
    }
}

impl LinkSpec {
    /// Reads the one-line form: `delay=10ms loss=5% burst=3; b>a: loss=0; @10s: down`.
    pub fn parse(text: &str, recordings: Recordings<'_>) -> Result<LinkSpec, SpecError> {
        let mut reader = Reader { spec: LinkSpec::default(), at: Span::ZERO, recordings };
        for section in text.split(';').map(str::trim).filter(|section| !section.is_empty()) {
            let (prefix, settings) = match section.starts_with('@') || section.get(1..2) == Some(">") {
                true => section.split_once(':').ok_or_else(|| SpecError::Section(section.into()))?,
                false => ("", section),
            };
            let place = Place::parse(prefix.trim())?;
            let words = settings.split_whitespace();
            let pairs = words.map(|word| word.split_once('=').unwrap_or((word, "")));
            reader.section(&place, pairs)?;
        }
        Ok(reader.spec)
    }
}

/// Where a section applies.
struct Place {
    at: Option<Span>,
    a_to_b: bool,
    b_to_a: bool,
}

impl Place {
    fn parse(prefix: &str) -> Result<Place, SpecError> {
        let refuse = || SpecError::Section(prefix.into());
        let mut place = Place { at: None, a_to_b: true, b_to_a: true };
        let mut words = prefix.split_whitespace().peekable();
        if let Some(at) = words.peek().and_then(|word| word.strip_prefix('@')) {
            place.at = Some(parse_time(at).ok_or_else(refuse)?);
            words.next();
        }
        match words.next() {
            None => {}
            Some("a>b") => place.b_to_a = false,
            Some("b>a") => place.a_to_b = false,
            Some(_) => return Err(refuse()),
        }
        if words.next().is_some() { Err(refuse()) } else { Ok(place) }
    }
}

struct Reader<'a> {
    spec: LinkSpec,
    at: Span,
    recordings: Recordings<'a>,
}

impl Reader<'_> {
    fn section<'t>(
        &mut self,
        place: &Place,
        pairs: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Result<(), SpecError> {
        let at = place.at.unwrap_or(Span::ZERO);
        if at < self.at {
            return Err(SpecError::Order(display::time(at)));
        }
        self.at = at;
        let mut changes: Vec<(&'static str, &'t str)> = Vec::with_capacity(KEYS.len());
        for (key, value) in pairs {
            let known = KEYS.into_iter().find(|known| *known == key);
            let key = known.ok_or_else(|| SpecError::Setting(key.chars().take(40).collect()))?;
            if changes.iter().any(|(before, _)| *before == key) {
                return Err(SpecError::Twice(key));
            }
            changes.push((key, value));
        }
        // Options of a recording apply to it wherever in the section they are.
        changes.sort_by_key(|(key, _)| *key == "replay_by");
        let Reader { spec, recordings, .. } = self;
        let both = [(place.a_to_b, &mut spec.a_to_b), (place.b_to_a, &mut spec.b_to_a)];
        for direction in both.into_iter().filter_map(|(applies, direction)| applies.then_some(direction)) {
            let impairments = direction.state_at(place.at)?;
            for (key, value) in &changes {
                impairments.change(key, value, recordings)?;
            }
            impairments.consistent()?;
        }
        Ok(())
    }
}

impl Direction {
    fn state_at(&mut self, at: Option<Span>) -> Result<&mut Impairments, SpecError> {
        let Some(at) = at else { return Ok(&mut self.initial) };
        let last = self.script.last();
        if last.is_none_or(|step| step.at != at) {
            if self.script.len() == SCRIPT_STEPS_MAX {
                return Err(SpecError::TooManySteps);
            }
            let impairments = last.map_or(&self.initial, |step| &step.impairments).clone();
            self.script.push(ScriptStep { at, impairments });
        }
        // There is one: it was just pushed, or has this time.
        Ok(self.script.last_mut().map_or(&mut self.initial, |step| &mut step.impairments))
    }
}

impl Impairments {
    fn change(
        &mut self,
        key: &'static str,
        value: &str,
        recordings: Recordings<'_>,
    ) -> Result<(), SpecError> {
        let read = Value { key, value };
        match key {
            "delay" => self.delay = read.time()?,
            "jitter" => self.jitter = read.time()?,
            "distribution" => {
                let name = Distribution::NAMES.into_iter().find(|(name, _)| *name == value);
                let way_out = "write uniform, normal, lognormal or pareto";
                self.distribution = name.ok_or_else(|| read.refuse(way_out))?.1;
            }
            "replay" => self.replay = read.unless_none(|| read.replay(recordings))?,
            "replay_by" => {
                let replay =
                    self.replay.as_mut().ok_or_else(|| read.refuse("there is no replay; leave it out"))?;
                replay.advance = read.one_of(
                    &[("time", Advance::Time), ("packet", Advance::Packet)],
                    "write time or packet",
                )?;
            }
            "loss" => self.loss = read.share()?,
            "burst" => self.burst = read.burst()?,
            "burst_loss" => self.burst_loss = read.share()?,
            "gap_loss" => self.gap_loss = read.share()?,
            "rate" => self.rate_bps = read.unless_none(|| read.rate())?,
            "queue" => self.queue = read.queue()?,
            "queue_packets" => {
                self.queue_packets = read.unless_none(|| {
                    read.whole(1..=FLIGHT_PACKETS_MAX as u64, "write 1 to 65536, or none")
                        .map(|number| number as u32)
                })?;
            }
            "mark" => self.mark = read.unless_none(|| read.time())?,
            "police" => self.police = read.unless_none(|| read.policer())?,
            "overhead" => {
                self.overhead_bytes = read.bytes(0..=65_535, "write bytes up to 65535B, such as 38B")? as u16
            }
            "preamble" => self.preamble = read.time()?,
            "stall" => self.stall = read.unless_none(|| read.stall())?,
            "reorder" => self.reorder = read.reorder()?,
            "duplicate" => self.duplicate = read.share()?,
            "corrupt" => self.corrupt = read.share()?,
            "mtu" => {
                self.mtu_bytes = read.unless_none(|| {
                    let way_out = "write 68B to 65535B, such as 1500B, or none";
                    read.bytes(68..=65_535, way_out).map(|bytes| bytes as u16)
                })?;
            }
            "down" | "up" if value.is_empty() => self.down = key == "down",
            _ => return Err(read.refuse("this word stands alone; leave = and the value out")),
        }
        Ok(())
    }
}

struct Value<'a> {
    key: &'static str,
    value: &'a str,
}

impl Value<'_> {
    fn refuse(&self, way_out: &'static str) -> SpecError {
        SpecError::Value { key: self.key, value: self.value.chars().take(40).collect(), way_out }
    }

    fn unless_none<T>(&self, read: impl FnOnce() -> Result<T, SpecError>) -> Result<Option<T>, SpecError> {
        if self.value == "none" { Ok(None) } else { read().map(Some) }
    }

    fn time(&self) -> Result<Span, SpecError> {
        parse_time(self.value).ok_or_else(|| {
            self.refuse(
                "write a number of at most 15 digits and ns, us, ms or s, up to one hour, such as 10ms",
            )
        })
    }

    fn share(&self) -> Result<Share, SpecError> {
        let way_out = "write a percentage from 0% to 100% with at most seven decimals, such as 5%";
        parse_share(self.value).ok_or_else(|| self.refuse(way_out))
    }

    fn one_of<T: Copy>(&self, choices: &[(&str, T)], way_out: &'static str) -> Result<T, SpecError> {
        let found = choices.iter().find(|(name, _)| *name == self.value);
        found.map(|(_, choice)| *choice).ok_or_else(|| self.refuse(way_out))
    }

    fn whole(&self, range: std::ops::RangeInclusive<u64>, way_out: &'static str) -> Result<u64, SpecError> {
        let number = scaled(self.value, 1).filter(|number| range.contains(number));
        number.ok_or_else(|| self.refuse(way_out))
    }

    fn bytes(&self, range: std::ops::RangeInclusive<u64>, way_out: &'static str) -> Result<u64, SpecError> {
        bytes(self.value).filter(|bytes| range.contains(bytes)).ok_or_else(|| self.refuse(way_out))
    }

    fn burst(&self) -> Result<Burst, SpecError> {
        if self.value == "none" {
            return Ok(Burst::Independent);
        }
        if let Some(mean) = parse_time(self.value).filter(|mean| *mean > Span::ZERO) {
            return Ok(Burst::Time { mean });
        }
        let mean_thousandths =
            scaled(self.value, 1_000).filter(|mean| (1_000..=1_000_000_000).contains(mean));
        let way_out = "write a mean number of packets from 1 to 1000000, such as 3, or a mean time, such as 30ms, or none";
        let mean_thousandths = mean_thousandths.ok_or_else(|| self.refuse(way_out))? as u32;
        Ok(Burst::Packets { mean_thousandths })
    }

    fn rate(&self) -> Result<u64, SpecError> {
        let way_out = "write whole bits per second with bit, kbit, mbit or gbit, such as 2.5mbit, or none";
        rate(self.value).ok_or_else(|| self.refuse(way_out))
    }

    fn policer(&self) -> Result<Policer, SpecError> {
        let policer = self.value.split_once('/').and_then(|(rate_text, burst)| {
            let fits = |bytes: &u64| (1..=FLIGHT_BYTES_MAX as u64).contains(bytes);
            Some(Policer { rate_bps: rate(rate_text)?, burst_bytes: bytes(burst).filter(fits)? })
        });
        let way_out =
            "write a rate and the bytes that may come at once, 1B to 64MiB, such as 2mbit/16kB, or none";
        policer.ok_or_else(|| self.refuse(way_out))
    }

    fn queue(&self) -> Result<QueueLimit, SpecError> {
        if let Some(time) = parse_time(self.value) {
            return Ok(QueueLimit::Time(time));
        }
        let way_out = "write a time at the rate, such as 100ms, or bytes, such as 64kB, up to 64MiB";
        Ok(QueueLimit::Bytes(self.bytes(0..=FLIGHT_BYTES_MAX as u64, way_out)?))
    }

    fn stall(&self) -> Result<Stall, SpecError> {
        let parts = self.value.split_once('/').and_then(|(duration, interval)| {
            Some(Stall { duration: parse_time(duration)?, interval: parse_time(interval)? })
        });
        let stall = parts.filter(|stall| stall.duration > Span::ZERO && stall.interval > Span::ZERO);
        let way_out = "write mean length and mean interval, such as 80ms/10s, or none";
        stall.ok_or_else(|| self.refuse(way_out))
    }

    fn reorder(&self) -> Result<Reorder, SpecError> {
        match self.value {
            "none" => return Ok(Reorder::Never),
            "jitter" => return Ok(Reorder::ByJitter),
            _ => {}
        }
        let held = self
            .value
            .split_once('/')
            .and_then(|(held, by)| Some(Reorder::Held { share: parse_share(held)?, by: parse_time(by)? }));
        let way_out = "write jitter, a share held back and by how much, such as 1%/5ms, or none";
        held.ok_or_else(|| self.refuse(way_out))
    }

    fn replay(&self, recordings: Recordings<'_>) -> Result<Replay, SpecError> {
        if self.value.contains(|character: char| character.is_whitespace() || character == ';') {
            return Err(self.refuse("a name may contain neither spaces nor semicolons; rename the file"));
        }
        let name = self.value.to_owned();
        match recordings(self.value) {
            Ok(recording) => Ok(Replay { recording: recording.into(), name, advance: Advance::Time }),
            Err(why) => Err(SpecError::Replay { name: name.chars().take(200).collect(), why }),
        }
    }
}

/// Reads a time as a specification writes it: `1.5ms`, not negative, at most [`DELAY_MAX`].
pub fn parse_time(text: &str) -> Option<Span> {
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let ns = if text == "0" { 0 } else { with_unit(text, &units)? };
    let span = Span::from_ns(i64::try_from(ns).ok()?);
    (span <= DELAY_MAX).then_some(span)
}

/// Reads a share as a specification writes it: `5%`.
pub fn parse_share(text: &str) -> Option<Share> {
    let billionths = if text == "0" { 0 } else { scaled(text.strip_suffix('%')?, 10_000_000)? };
    let share = u32::try_from(billionths).ok()?;
    (share <= Share::ONE.billionths()).then(|| Share::from_billionths(share))
}

fn rate(text: &str) -> Option<u64> {
    let units = [("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000), ("bit", 1)];
    with_unit(text, &units).filter(|rate| (1..=RATE_MAX_BPS).contains(rate))
}

fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("kB", 1_000), ("MB", 1_000_000), ("B", 1)];
    with_unit(text, &units)
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let number = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(number);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    scaled(number, *scale)
}

/// A decimal number times a scale, if that is whole: nothing is rounded.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() > DIGITS_MAX {
        return None;
    }
    let places = 10_u128.pow(fraction.len() as u32);
    let number = whole.parse::<u128>().ok()? * places + fraction.parse::<u128>().ok()?;
    let product = number * u128::from(scale);
    if product.is_multiple_of(places) { u64::try_from(product / places).ok() } else { None }
}
