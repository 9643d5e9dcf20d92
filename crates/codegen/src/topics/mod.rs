//! `topics.toml`: the programs of a system, and what flows between them.
//!
//! A program's direction follows from `from` and `to` of the topics; nothing is written twice. What a file may say is in
//! `docs/spec/topics.md`.

mod actions;
pub mod check;
mod names;
mod parse;
mod services;
mod table;

use std::collections::BTreeMap;

use crate::diagnostic::{Fault, Faults, Place, Source};
use crate::model::TypeName;
use crate::nearest;

/// Most topics of a system, groups expanded.
pub const TOPICS_MAX: usize = 10_000;
/// Most programs of a system.
pub const PROGRAMS_MAX: usize = 1_000;
/// Longest name of a topic, in bytes.
pub const TOPIC_NAME_BYTES_MAX: usize = 255;

/// Language of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Rust.
    Rust,
    /// C99 on a host.
    C,
    /// C++17.
    Cpp,
    /// Python.
    Python,
    /// C99 on a microcontroller, without a heap.
    Mcu,
    /// Blocks of a Simulink model.
    Simulink,
    /// Types for another DDS and its tools; no program is written in it.
    Idl,
    /// A program that is there, and not generated: a ROS 2 node, a foreign device.
    External,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Rust, Self::C, Self::Cpp, Self::Python, Self::Mcu, Self::Simulink, Self::Idl, Self::External];

    /// Its word in `topics.toml`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Python => "python",
            Self::Mcu => "mcu",
            Self::Simulink => "simulink",
            Self::Idl => "idl",
            Self::External => "external",
        }
    }
}

/// How hard the transport tries; each includes those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reliability {
    /// Sent once.
    BestEffort,
    /// Repaired as long as it can still arrive by its deadline.
    DeadlineBound,
    /// Repaired until it arrives.
    Reliable,
}

impl Reliability {
    /// Its word in `topics.toml`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::BestEffort => "best_effort",
            Self::DeadlineBound => "deadline_bound",
            Self::Reliable => "reliable",
        }
    }
}

/// Quality of service, in the words of DDS and ROS 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qos {
    /// RELIABILITY.
    pub reliability: Reliability,
    /// HISTORY: samples that a reader may lag behind, 1 to 65,535.
    pub keep_last: u16,
    /// DURABILITY: late joiners get the history first.
    pub transient_local: bool,
    /// DEADLINE in nanoseconds: a sample at least this often, and for `deadline_bound` how old it may arrive.
    pub deadline_ns: Option<i64>,
    /// LIFESPAN in nanoseconds: older samples are not delivered.
    pub lifespan_ns: Option<i64>,
    /// With `deadline_bound`: samples in a million that may miss the deadline.
    pub tolerable_loss_ppm: Option<u32>,
}

impl Default for Qos {
    fn default() -> Self {
        Self {
            reliability: Reliability::BestEffort,
            keep_last: 8,
            transient_local: false,
            deadline_ns: None,
            lifespan_ns: None,
            tolerable_loss_ppm: None,
        }
    }
}

/// One program of the system.
#[derive(Debug, Clone)]
pub struct Program {
    /// Lower-case letters, digits and underscores.
    pub name: String,
    /// The language of its code.
    pub language: Language,
    /// Its serial line, in baud.
    pub baud: Option<u32>,
    /// Bytes per second that its line may carry, if that is limited.
    pub budget_bytes_per_s: Option<u64>,
    /// Place in the file.
    pub place: Place,
}

/// One topic.
#[derive(Debug, Clone)]
pub struct Topic {
    /// Its name on the bus.
    pub name: String,
    /// Type of its samples.
    pub type_name: TypeName,
    /// Indices of the programs that write it.
    pub from: Vec<usize>,
    /// Indices of the programs that read it.
    pub to: Vec<usize>,
    /// Samples a second, if the file says.
    pub rate_hz: Option<f64>,
    /// QoS that writers offer.
    pub offered: Qos,
    /// QoS that readers request.
    pub requested: Qos,
    /// Path of a field → the greatest length that it has in C.
    pub limits: BTreeMap<String, (u32, Place)>,
    /// True if its samples are the struct as it lies in memory ([`crate::layout`]).
    pub is_plain: bool,
    /// Its purpose, from the file.
    pub doc: String,
    /// Its name in the file.
    pub place: Place,
    /// Its type in the file.
    pub type_place: Place,
}

impl Topic {
    /// The name as an identifier: `/arm/elbow/state` is `arm_elbow_state`.
    pub fn ident(&self) -> String {
        ident(&self.name)
    }
}

/// One service: requests that some programs answer, and others send.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its name on the bus.
    pub name: String,
    /// `package/srv/Name`, without the suffix of request or response.
    pub type_name: TypeName,
    /// Indices of the programs that answer.
    pub servers: Vec<usize>,
    /// Indices of the programs that ask.
    pub clients: Vec<usize>,
    /// How long a call waits, in nanoseconds, if the file says.
    pub deadline_ns: Option<i64>,
    /// True if a request may be executed more than once.
    pub is_idempotent: bool,
    /// Its purpose, from the file.
    pub doc: String,
    /// Its name in the file.
    pub place: Place,
    /// Its type in the file.
    pub type_place: Place,
}

impl Service {
    /// The types of its request and of its response.
    pub fn messages(&self) -> [TypeName; 2] {
        ["_Request", "_Response"].map(|suffix| self.type_name.with_suffix(suffix))
    }

    /// The name as an identifier, as [`Topic::ident`].
    pub fn ident(&self) -> String {
        ident(&self.name)
    }
}

/// One action: goals that some programs execute, and others send.
#[derive(Debug, Clone)]
pub struct Action {
    /// Its name on the bus.
    pub name: String,
    /// `package/action/Name`.
    pub type_name: TypeName,
    /// Indices of the programs that execute goals.
    pub servers: Vec<usize>,
    /// Indices of the programs that send goals.
    pub clients: Vec<usize>,
    /// How long a goal waits to be accepted, in nanoseconds, if the file says.
    pub deadline_ns: Option<i64>,
    /// How long an accepted goal may take, in nanoseconds, if the file says.
    pub result_deadline_ns: Option<i64>,
    /// How long a result is kept from the end of its goal, in nanoseconds, if the file says.
    pub keep_results_ns: Option<i64>,
    /// Its purpose, from the file.
    pub doc: String,
    /// Its name in the file.
    pub place: Place,
    /// Its type in the file.
    pub type_place: Place,
}

impl Action {
    /// Suffixes of its messages' types.
    pub const MESSAGES: [&str; 8] = [
        "Goal",
        "Result",
        "Feedback",
        "SendGoal_Request",
        "SendGoal_Response",
        "GetResult_Request",
        "GetResult_Response",
        "FeedbackMessage",
    ];

    /// The types of its messages, in the order of [`MESSAGES`](Self::MESSAGES).
    pub fn messages(&self) -> [TypeName; 8] {
        Self::MESSAGES.map(|name| self.type_name.with_suffix(&format!("_{name}")))
    }

    /// The name as an identifier, as [`Topic::ident`].
    pub fn ident(&self) -> String {
        ident(&self.name)
    }
}

fn ident(name: &str) -> String {
    let letters = name.trim_start_matches('/').chars();
    let ident: String = letters
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' })
        .collect();
    if ident.starts_with(|first: char| first.is_ascii_digit()) { format!("t{ident}") } else { ident }
}

/// All of a `topics.toml`.
#[derive(Debug, Clone)]
pub struct System {
    /// The name of the project.
    pub name: String,
    /// Folders to look in for packages, relative to the file; `$NAME` is a variable of the environment.
    pub search: Vec<String>,
    /// Files of IDL, relative to the file.
    pub idl: Vec<(String, Place)>,
    /// Types that are generated although no topic carries them: names, `pkg/*` for a whole package.
    pub types: Vec<(String, Place)>,
    /// Types that have a layout in shared memory although no plain topic carries them: names, `pkg/*` for a whole package.
    pub plain: Vec<(String, Place)>,
    /// Languages that are generated although no program is written in them.
    pub languages: Vec<Language>,
    /// Programs in the order of their names.
    pub programs: Vec<Program>,
    /// Topics in the order of their names.
    pub topics: Vec<Topic>,
    /// Services in the order of their names.
    pub services: Vec<Service>,
    /// Actions in the order of their names.
    pub actions: Vec<Action>,
}

impl System {
    /// Reads a `topics.toml`.
    ///
    /// # Errors
    /// Everything that is wrong with the text, each with its place.
    pub fn parse(source: &Source) -> Result<Self, Faults> {
        parse::parse(source)
    }

    /// All languages to generate, sorted.
    pub fn all_languages(&self) -> Vec<Language> {
        let mut all: Vec<Language> = self
            .programs
            .iter()
            .map(|program| program.language)
            .chain(self.languages.iter().copied())
            .collect();
        all.retain(|language| *language != Language::External);
        all.sort();
        all.dedup();
        all
    }
}

/// The fault of a word that is none of those there are.
fn unknown_word(place: Place, what: &str, word: &str, known: &[&str]) -> Fault {
    Fault::at(place, format!("\"{word}\" is no {what}")).help(nearest::help(word, &known.join(", ")))
}

#[cfg(test)]
mod tests;
