//! The peers that can be put under test: the built-in floors and the programs of `peers/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use noctule_peer::{Description, Line};
use serde::Serialize;

use crate::board_peers::{DDS_BRIDGE, DDS_PEER};
use crate::node_process::{NodeFault, NodeProcess, Program};
use crate::{built_in, floors};

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A peer the lab can start.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// How to start one node.
    pub program: Program,
    /// What it offers, from its own mouth.
    pub description: Offer,
    /// True for the built-in floors.
    pub is_floor: bool,
}

/// A peer's description as it came over the line: words, so that unknown ones do no harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The middleware's own version.
    pub version: String,
    /// Links, the default first.
    pub links: Vec<String>,
    /// Waits.
    pub waits: Vec<String>,
    /// Modes.
    pub modes: Vec<String>,
    /// Formats.
    pub formats: Vec<String>,
    /// Largest message.
    pub payload_bytes_max: u64,
    /// Whether it can stamp with an artificial clock.
    pub artificial_clock: bool,
}

/// All peers by name, and why the others are not there.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PeerRegistry {
    /// Peers that can be started.
    pub entries: BTreeMap<String, Entry>,
    /// The `noctule` command itself, which also compares clocks.
    #[serde(skip)]
    pub noctule: PathBuf,
    /// Peers that are known but cannot, with the sentence that says why and what to do.
    pub missing: BTreeMap<String, String>,
}

impl PeerRegistry {
    /// The floors and the other [built-in](built_in) peers.
    pub fn built_in(noctule: &Path) -> Self {
        let mut registry = Self { noctule: noctule.to_owned(), ..Self::default() };
        let floors = floors::all().into_iter().map(|floor| (floor, true));
        let others = built_in::all().into_iter().map(|peer| (peer, false));
        for (peer, is_floor) in floors.chain(others) {
            let description = peer.describe();
            let name = description.name.clone();
            let program = Program {
                path: noctule.to_owned(),
                arguments: vec!["lab".into(), "node".into(), name.clone()],
            };
            registry.entries.insert(name, Entry { program, description: description.into(), is_floor });
        }
        registry
    }

    /// Adds a program by asking it who it is; if it cannot answer it counts as missing.
    pub fn add(&mut self, name: &str, program: PathBuf) {
        let program = Program { path: program, arguments: vec![] };
        match greet(name, &program) {
            Ok(description) => {
                self.entries.insert(name.into(), Entry { program, description, is_floor: false });
            }
            Err(fault) => {
                self.missing.insert(name.into(), fault.to_string());
            }
        }
    }

    /// What is missing of the way through DDS (a board's option `gateway = "dds"`), in a sentence.
    pub fn missing_for_dds(&self) -> Option<String> {
        let is_there = self.entries.contains_key(DDS_PEER) && !self.missing.contains_key(DDS_BRIDGE);
        let names = [DDS_PEER, DDS_BRIDGE].into_iter();
        let mut known = names.filter_map(|name| Some(format!("{name} {}", self.missing.get(name)?)));
        let unknown = || format!("no peer is called {DDS_PEER}; set NOCTULE_PEERS to a folder that has it");
        (!is_there).then(|| known.next().unwrap_or_else(unknown))
    }

    /// Notes a peer that cannot be started.
    pub fn add_missing(&mut self, name: &str, why: String) {
        self.missing.insert(name.into(), why);
    }
}

/// Starts a peer only to hear what it offers.
fn greet(name: &str, program: &Program) -> Result<Offer, NodeFault> {
    let mut process = NodeProcess::start(program, name.to_owned(), None)?;
    process.tell(&Line::new("hello").with("protocol", 1))?;
    let hello = process.expect("hello", "saying hello", HELLO_TIMEOUT, &AtomicBool::new(false))?;
    process.close()?;
    Ok(Offer::of(&hello))
}

impl Offer {
    fn of(hello: &Line) -> Self {
        Self {
            version: hello.word("version").unwrap_or("unknown").to_owned(),
            links: hello.list("links"),
            waits: hello.list("waits"),
            modes: hello.list("modes"),
            formats: hello.list("formats"),
            payload_bytes_max: hello.word("max_payload_bytes").and_then(|n| n.parse().ok()).unwrap_or(0),
            artificial_clock: hello.word("artificial_clock") == Some("1"),
        }
    }
}

impl From<Description> for Offer {
    fn from(description: Description) -> Self {
        Self {
            version: description.version,
            links: description.links,
            waits: description.waits.iter().map(ToString::to_string).collect(),
            modes: description.modes,
            formats: description.formats,
            payload_bytes_max: description.payload_bytes_max,
            // Built in, so behind our own harness, which takes the stamps.
            artificial_clock: true,
        }
    }
}
