//! The dimensions of an experiment that are words: mode, link, wait, placement, and how hard a peer tries.
//!
//! Each is parsed once, where text enters (a scenario, a `run.json`), and is a type from there on. Its `Display` is the word
//! of `run.json` and of the peer protocol again, and its order is that of the words.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A word that a dimension does not know, as `KEY = "WORD" is none of …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{dimension} = \"{word}\" is none of {known}")]
pub struct UnknownWord {
    dimension: &'static str,
    word: String,
    known: &'static str,
}

/// Topology of the nodes that send and receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One node sends, the other answers.
    RoundTrip,
    /// One node sends, the other receives.
    OneWay,
    /// Each node sends on what it received from the node before it.
    Chain,
    /// One node sends, all others receive.
    FanOut,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::RoundTrip => "round_trip",
            Self::OneWay => "one_way",
            Self::Chain => "chain",
            Self::FanOut => "fan_out",
        }
    }
}

impl FromStr for Mode {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let unknown = || UnknownWord {
            dimension: "mode",
            word: word.to_owned(),
            known: "round_trip, one_way, chain, fan_out",
        };
        let all = [Self::RoundTrip, Self::OneWay, Self::Chain, Self::FanOut];
        all.into_iter().find(|mode| mode.word() == word).ok_or_else(unknown)
    }
}

impl Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// How a node waits for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// It polls without pause.
    Spin,
    /// It sleeps in the kernel.
    Block,
    /// It polls for a while, then sleeps.
    Hybrid,
    /// A recording does not say; the empty word.
    Unknown,
}

impl Wait {
    fn word(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Block => "block",
            Self::Hybrid => "hybrid",
            Self::Unknown => "",
        }
    }

    /// The wait that a scenario asks for.
    ///
    /// # Errors
    /// The word is none of `spin`, `block`, `hybrid`.
    pub fn wanted(word: &str) -> Result<Self, UnknownWord> {
        let all = [Self::Spin, Self::Block, Self::Hybrid];
        all.into_iter().find(|wait| wait.word() == word).ok_or_else(|| UnknownWord {
            dimension: "wait",
            word: word.to_owned(),
            known: "spin, block, hybrid",
        })
    }
}

impl FromStr for Wait {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        if word.is_empty() { Ok(Self::Unknown) } else { Self::wanted(word) }
    }
}

impl Display for Wait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// How hard a peer's transport tries: the option `reliability` of peers that have a choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Reliability {
    /// It sends once.
    #[default]
    BestEffort,
    /// It repairs as long as that can arrive by the cell's deadline.
    DeadlineBound,
    /// It repairs until the message arrives.
    Reliable,
}

impl Reliability {
    /// Every one, in rising order.
    pub const ALL: [Self; 3] = [Self::BestEffort, Self::DeadlineBound, Self::Reliable];
    /// The option's name.
    pub const OPTION: &str = "reliability";

    fn word(self) -> &'static str {
        match self {
            Self::BestEffort => "best_effort",
            Self::DeadlineBound => "deadline_bound",
            Self::Reliable => "reliable",
        }
    }
}

impl FromStr for Reliability {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Self::ALL.into_iter().find(|one| one.word() == word).ok_or_else(|| UnknownWord {
            dimension: Self::OPTION,
            word: word.to_owned(),
            known: "best_effort, deadline_bound, reliable",
        })
    }
}

impl Display for Reliability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// Medium that carries the messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Link {
    /// Shared memory of one host.
    SharedMemory,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// Unix sockets.
    Unix,
    /// A pseudo terminal.
    Pty,
    /// An emulated serial line.
    Serial,
    /// The memory of one process.
    Memory,
    /// Between hosts: `veth`, the specification of an emulated link, or the name of a recorded one.
    Between(String),
    /// A word of a peer's own.
    Other(String),
}

impl Link {
    /// Prefix of an emulated link between hosts.
    const BETWEEN: &str = "link:";

    /// Two hosts joined by a veth pair.
    pub fn veth() -> Self {
        Self::Between("veth".into())
    }

    /// Whether hosts of their own are joined by it.
    pub fn is_between_hosts(&self) -> bool {
        matches!(self, Self::Between(_))
    }

    fn word(&self) -> &str {
        match self {
            Self::SharedMemory => "shm",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Pty => "pty",
            Self::Serial => "serial",
            Self::Memory => "memory",
            Self::Between(name) | Self::Other(name) => name,
        }
    }
}

impl From<&str> for Link {
    fn from(word: &str) -> Self {
        match word {
            "shm" => Self::SharedMemory,
            "udp" => Self::Udp,
            "tcp" => Self::Tcp,
            "unix" => Self::Unix,
            "pty" => Self::Pty,
            "serial" => Self::Serial,
            "memory" => Self::Memory,
            _ => match word.strip_prefix(Self::BETWEEN) {
                Some(name) => Self::Between(name.to_owned()),
                None => Self::Other(word.to_owned()),
            },
        }
    }
}

impl FromStr for Link {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(word.into())
    }
}

impl Display for Link {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = if self.is_between_hosts() { Self::BETWEEN } else { "" };
        write!(out, "{before}{}", self.word())
    }
}

/// The cores that the nodes of a cell had.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Any core.
    Free,
    /// These, in turn.
    Cores(Vec<u32>),
    /// A recording does not say; the empty word.
    Unknown,
}

impl Placement {
    /// In turn these cores; with none, any.
    pub fn on(cores: &[u32]) -> Self {
        if cores.is_empty() { Self::Free } else { Self::Cores(cores.to_vec()) }
    }
}

impl FromStr for Placement {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let unknown = || UnknownWord {
            dimension: "placement",
            word: word.to_owned(),
            known: "free or a list of cores such as \"0,1\"",
        };
        match word {
            "" => Ok(Self::Unknown),
            "free" => Ok(Self::Free),
            listed => cores(listed).map(Self::Cores).ok_or_else(unknown),
        }
    }
}

impl Display for Placement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free => out.write_str("free"),
            Self::Unknown => Ok(()),
            Self::Cores(cores) => {
                let words: Vec<String> = cores.iter().map(ToString::to_string).collect();
                out.write_str(&words.join(","))
            }
        }
    }
}

/// The placement that a scenario asks for, before the cores of this process are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementWish {
    /// Neighbouring nodes on different cores.
    Split,
    /// All nodes on the last core.
    Same,
    /// Any core.
    Free,
    /// These, in turn.
    Cores(Vec<u32>),
}

impl PlacementWish {
    /// The cores to use in turn, of those that there are; empty = any.
    pub fn cores(&self, allowed: &[u32]) -> Vec<u32> {
        match self {
            Self::Split => allowed.to_vec(),
            Self::Same => allowed.last().copied().into_iter().collect(),
            Self::Free => Vec::new(),
            Self::Cores(listed) => listed.clone(),
        }
    }
}

impl FromStr for PlacementWish {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let unknown = || UnknownWord {
            dimension: "placement",
            word: word.to_owned(),
            known: "split, same, free or a list of cores such as \"0,1\"",
        };
        match word {
            "split" => Ok(Self::Split),
            "same" => Ok(Self::Same),
            "free" => Ok(Self::Free),
            listed => cores(listed).map(Self::Cores).ok_or_else(unknown),
        }
    }
}

/// Cores such as `0,1`; `None` if one is no number.
fn cores(listed: &str) -> Option<Vec<u32>> {
    listed.split(',').map(|core| core.trim().parse().ok()).collect()
}

/// In `run.json` a dimension is its word, and experiments sort by their words.
macro_rules! as_words {
    ($($dimension:ty),*) => {$(
        impl Serialize for $dimension {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $dimension {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
        impl Ord for $dimension {
            fn cmp(&self, other: &Self) -> Ordering {
                self.to_string().cmp(&other.to_string())
            }
        }
        impl PartialOrd for $dimension {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
    )*};
}

as_words!(Mode, Wait, Reliability, Link, Placement);

#[cfg(test)]
mod tests {
    use super::*;

    fn again<T: FromStr + Display>(word: &str) -> String
    where
        T::Err: fmt::Debug,
    {
        word.parse::<T>().unwrap().to_string()
    }

    #[test]
    fn every_word_comes_out_as_it_went_in() {
        for word in ["round_trip", "one_way", "chain", "fan_out"] {
            assert_eq!(again::<Mode>(word), word);
        }
        for word in ["spin", "block", "hybrid", ""] {
            assert_eq!(again::<Wait>(word), word);
        }
        for word in Reliability::ALL.map(|one| one.to_string()) {
            assert_eq!(again::<Reliability>(&word), word);
        }
        for word in ["shm", "udp", "tcp", "unix", "pty", "serial", "memory", "link:veth", "link:", "quic", ""]
        {
            assert_eq!(again::<Link>(word), word);
        }
        for word in ["free", "0,1", "3", ""] {
            assert_eq!(again::<Placement>(word), word);
        }
    }

    #[test]
    fn a_word_that_is_not_known_is_named_with_those_that_are() {
        let said = "broadcast".parse::<Mode>().unwrap_err().to_string();
        assert_eq!(said, "mode = \"broadcast\" is none of round_trip, one_way, chain, fan_out");
        assert_eq!(Wait::wanted("").unwrap_err().to_string(), "wait = \"\" is none of spin, block, hybrid");
        let said = "sure".parse::<Reliability>().unwrap_err().to_string();
        assert_eq!(said, "reliability = \"sure\" is none of best_effort, deadline_bound, reliable");
        let said = "left".parse::<PlacementWish>().unwrap_err().to_string();
        assert_eq!(
            said,
            "placement = \"left\" is none of split, same, free or a list of cores such as \"0,1\""
        );
        assert!("0,x".parse::<Placement>().is_err() && serde_json::from_str::<Mode>("\"x\"").is_err());
    }

    #[test]
    fn experiments_sort_as_their_words_do() {
        let mut modes = [Mode::RoundTrip, Mode::OneWay, Mode::FanOut, Mode::Chain];
        modes.sort_unstable();
        assert_eq!(modes, [Mode::Chain, Mode::FanOut, Mode::OneWay, Mode::RoundTrip]);
        assert!(Link::veth() > Link::from("link:loss=1%") && Link::Udp > Link::veth());
    }

    #[test]
    fn a_wish_becomes_cores_of_those_that_there_are() {
        let cores = |wish: &str| wish.parse::<PlacementWish>().unwrap().cores(&[2, 5]);
        assert_eq!([cores("split"), cores("same"), cores("free")], [vec![2, 5], vec![5], vec![]]);
        assert_eq!(cores("0, 7"), [0, 7]);
    }
}
