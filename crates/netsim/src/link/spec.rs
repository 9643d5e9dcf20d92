//! Specification of a link. The text form is `docs/spec/link-text.md`, read in the module beside.

use std::sync::Arc;

use noctule_timebase::Span;

use super::jitter::Distribution;
use super::recording::Recording;

/// Queue of a link with a rate, unless given: long enough for a burst, short enough to be no buffer bloat.
pub const QUEUE_DEFAULT: QueueLimit = QueueLimit::Time(Span::from_ms(100));
/// Most steps of a direction's script.
pub const SCRIPT_STEPS_MAX: usize = 1_000;

/// Both directions of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSpec {
    /// From the first end to the second.
    pub a_to_b: Direction,
    /// From the second end to the first.
    pub b_to_a: Direction,
}

/// One direction over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// From the start on.
    pub initial: Impairments,
    /// Changes of it, in the order of time.
    pub script: Vec<ScriptStep>,
}

/// A change of a direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// Since the start.
    pub at: Span,
    /// From then on, whole.
    pub impairments: Impairments,
}

/// Everything a direction does to packets. The default does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impairments {
    /// Mean propagation delay, 0 to [`DELAY_MAX`](super::DELAY_MAX); with `replay` on top of the recorded one.
    pub delay: Span,
    /// Spread of the delay, see [`Distribution`].
    pub jitter: Span,
    /// Shape of the spread.
    pub distribution: Distribution,
    /// Recorded delays and losses, beside the modelled ones.
    pub replay: Option<Replay>,
    /// Share of packets lost in the long run.
    pub loss: Share,
    /// Whether losses come alone or in bursts.
    pub burst: Burst,
    /// Loss within a burst; [`Share::ONE`] by default.
    pub burst_loss: Share,
    /// Loss between bursts; zero by default.
    pub gap_loss: Share,
    /// Bits per second; `None` sends at once.
    pub rate_bps: Option<u64>,
    /// Room before the transmitter, in bytes or in time at the rate. Without a rate, only stalls fill it.
    pub queue: QueueLimit,
    /// Room in packets; `None` leaves it at the emulator's own limit.
    pub queue_packets: Option<u32>,
    /// An IP packet that its sender lets be marked is, if it leaves the queue later than this after it came (ECN, RFC 3168).
    pub mark: Option<Span>,
    /// Limit of the rate: packets in excess are dropped at once instead of waiting; before the queue.
    pub police: Option<Policer>,
    /// Bytes each packet costs beyond its own: preamble, checks, gaps.
    pub overhead_bytes: u16,
    /// Time each packet costs before its first byte.
    pub preamble: Span,
    /// Times at which nothing is sent.
    pub stall: Option<Stall>,
    /// Whether packets may overtake each other.
    pub reorder: Reorder,
    /// Share of packets that arrive twice.
    pub duplicate: Share,
    /// Share of packets of which one bit, each as likely, is flipped.
    pub corrupt: Share,
    /// Longer packets are dropped without a word.
    pub mtu_bytes: Option<u16>,
    /// Everything that comes is dropped.
    pub down: bool,
}

/// A probability or share in billionths, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

/// Losses alone or together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Burst {
    /// Each packet by itself.
    #[default]
    Independent,
    /// Bursts with a geometric number of packets.
    Packets {
        /// Mean, in thousandths of a packet, at least one packet.
        mean_thousandths: u32,
    },
    /// Bursts with an exponential length in time.
    Time {
        /// Mean length.
        mean: Span,
    },
}

/// Room before a transmitter. The packet being sent counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Bytes, overhead included.
    Bytes(u64),
    /// As many bytes as the rate sends in this time.
    Time(Span),
}

/// A token bucket that drops what finds it empty (RFC 2475's dropper): the rate limit of many providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// Bits per second that it fills with, overhead included.
    pub rate_bps: u64,
    /// Bytes that it holds when full, and at the start.
    pub burst_bytes: u64,
}

/// Intervals in which the transmitter sends nothing; what came meanwhile follows at the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Mean time from the end of one to the beginning of the next; exponential.
    pub interval: Span,
    /// Mean length; exponential.
    pub duration: Span,
}

/// Whether packets may overtake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reorder {
    /// Jitter never changes the order; a packet waits for the one before it.
    #[default]
    Never,
    /// Every packet arrives when its own delay is over.
    ByJitter,
    /// Some packets arrive later, and those behind them do not wait.
    Held {
        /// How many.
        share: Share,
        /// How much later.
        by: Span,
    },
}

/// A recording and how it is gone through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The recording; at its end it begins anew.
    pub recording: Arc<Recording>,
    /// Its name in the specification.
    pub name: String,
    /// By time or by packets.
    pub advance: Advance,
}

/// How a recording advances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advance {
    /// Time since the start.
    #[default]
    Time,
    /// Each packet takes the next entry.
    Packet,
}

/// Why a recording cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// This specification is read without recordings.
    #[error("recordings cannot be played here; leave it out")]
    NotHere,
    /// Its file holds no recording; the sentence of its reader.
    #[error("{0}")]
    Unreadable(String),
}

impl ReplayError {
    /// From the error of a reader of files, which belongs to another crate.
    pub fn unreadable(cause: impl std::fmt::Display) -> Self {
        Self::Unreadable(cause.to_string())
    }
}

/// Why a specification cannot be used. The sentence names the place and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A word that is no setting.
    #[error("\"{0}\" is no setting of a link; there are {known}", known = super::text::KNOWN)]
    Setting(String),
    /// A value its setting cannot have.
    #[error("{key}={value}: {way_out}")]
    Value {
        /// Setting.
        key: &'static str,
        /// Its text.
        value: String,
        /// Values that are allowed.
        way_out: &'static str,
    },
    /// A setting twice in one section.
    #[error("{0} stands twice in one section of a link; leave one out")]
    Twice(&'static str),
    /// The beginning of a section cannot be read.
    #[error("\"{0}\" does not begin a section of a link; write a>b:, b>a:, @10s: or @10s a>b:")]
    Section(String),
    /// Scripts run forwards.
    #[error(
        "the section at {0} comes after a later one; write the sections of a script in the order of time"
    )]
    Order(String),
    /// More than [`SCRIPT_STEPS_MAX`].
    #[error("a script may have {SCRIPT_STEPS_MAX} steps in each direction; leave some out")]
    TooManySteps,
    /// Settings that contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// A recording could not be had.
    #[error("replay={name}: {why}")]
    Replay {
        /// Its name in the specification.
        name: String,
        /// Why, with the way out.
        why: ReplayError,
    },
    /// The TOML form has another shape.
    #[error("{0}")]
    Toml(String),
}

impl Default for Impairments {
    fn default() -> Impairments {
        Impairments {
            delay: Span::ZERO,
            jitter: Span::ZERO,
            distribution: Distribution::default(),
            replay: None,
            loss: Share::ZERO,
            burst: Burst::default(),
            burst_loss: Share::ONE,
            gap_loss: Share::ZERO,
            rate_bps: None,
            queue: QUEUE_DEFAULT,
            queue_packets: None,
            mark: None,
            police: None,
            overhead_bytes: 0,
            preamble: Span::ZERO,
            stall: None,
            reorder: Reorder::default(),
            duplicate: Share::ZERO,
            corrupt: Share::ZERO,
            mtu_bytes: None,
            down: false,
        }
    }
}

impl Share {
    /// Never.
    pub const ZERO: Share = Share(0);
    /// Always.
    pub const ONE: Share = Share(1_000_000_000);

    /// From billionths; more than a billion is one.
    pub const fn from_billionths(billionths: u32) -> Share {
        if billionths > Share::ONE.0 { Share::ONE } else { Share(billionths) }
    }

    /// In billionths.
    pub const fn billionths(self) -> u32 {
        self.0
    }

    /// From 0 to 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) * 1e-9
    }

    /// Whether it is never.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Impairments {
    /// Room in bytes before the transmitter; `None` if only time limits it and there is no rate.
    pub fn queue_limit_bytes(&self) -> Option<u64> {
        match (self.queue, self.rate_bps) {
            (QueueLimit::Bytes(bytes), _) => Some(bytes),
            (QueueLimit::Time(time), Some(rate_bps)) => {
                let bytes = u128::from(rate_bps) * time.ns().max(0).unsigned_abs() as u128 / 8_000_000_000;
                Some(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            (QueueLimit::Time(_), None) => None,
        }
    }

    /// Refuses what no channel can do.
    pub(super) fn consistent(&self) -> Result<(), SpecError> {
        let contradiction = |sentence| Err(SpecError::Contradiction(sentence));
        let positive = matches!(self.distribution, Distribution::LogNormal | Distribution::Pareto);
        if positive && self.jitter > Span::ZERO && self.delay == Span::ZERO {
            return contradiction(
                "jitter of distribution lognormal or pareto needs a delay above zero, its mean; write delay=…",
            );
        }
        if self.burst == Burst::Independent {
            if self.burst_loss != Share::ONE || self.gap_loss != Share::ZERO {
                return contradiction("burst_loss and gap_loss need bursts; write burst=3 or burst=30ms");
            }
            return Ok(());
        }
        if self.loss.is_zero() {
            return Ok(());
        }
        if self.gap_loss > self.loss || self.loss >= self.burst_loss {
            return contradiction(
                "with bursts, loss must not be less than gap_loss and must be less than burst_loss (100% unless \
                 given); write a lower loss",
            );
        }
        if let Burst::Packets { mean_thousandths } = self.burst {
            let (loss, gap) = (self.loss.as_f64(), self.gap_loss.as_f64());
            let bad_share = (loss - gap) / (self.burst_loss.as_f64() - gap);
            if 1000.0 / f64::from(mean_thousandths) * bad_share > 1.0 - bad_share {
                return contradiction(
                    "bursts as short as that cannot add up to that loss: there is at least one packet between \
                     two bursts; write longer bursts or less loss",
                );
            }
        }
        Ok(())
    }
}
