//! The peers that can be put under test: those inside the command and the programs of `peers/`. Each says itself what it
//! supports; the lab links none of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use noctule_peer::{Description, Line, Need, Peer, Support};
use serde::Serialize;

use crate::dimensions::Link;
use crate::node_process::{NodeFault, NodeProcess, Program};

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// A peer the lab can start.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Command line of one node.
    pub program: Program,
    /// Its capabilities, as its own process describes them.
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
    pub links: Vec<Link>,
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
    /// Options of which it offers only these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Vec<String>>,
    /// Peers and programs that values of options need.
    #[serde(skip)]
    pub needs: Vec<Need>,
    /// Whether one node is all there is, because it sends to itself.
    #[serde(skip)]
    pub is_alone: bool,
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
    /// No peers yet; `noctule` is the command itself.
    pub fn new(noctule: &Path) -> Self {
        Self { noctule: noctule.to_owned(), ..Self::default() }
    }

    /// Adds a peer that the command itself is when called as `noctule lab node NAME`.
    pub fn add_built_in(&mut self, peer: &dyn Peer, is_floor: bool) {
        let description = peer.describe();
        let name = description.name.clone();
        let program = Program {
            path: self.noctule.clone(),
            arguments: vec!["lab".into(), "node".into(), name.clone()],
        };
        let description = Offer::built_in(description, peer.support());
        self.entries.insert(name, Entry { program, description, is_floor });
    }

    /// Adds a program by asking it what it is; if it cannot answer it counts as missing.
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

    /// Sentence that names the missing part of a need.
    pub fn missing_for(&self, need: &Need) -> Option<String> {
        let is_there = self.entries.contains_key(&need.peer) && !self.missing.contains_key(&need.program);
        let names = [&need.peer, &need.program].into_iter();
        let mut known = names.filter_map(|name| Some(format!("{name} {}", self.missing.get(name)?)));
        let unknown =
            || format!("no peer is called {}; set NOCTULE_PEERS to a folder that has it", need.peer);
        (!is_there).then(|| known.next().unwrap_or_else(unknown))
    }

    /// Notes a peer that cannot be started.
    pub fn add_missing(&mut self, name: &str, why: String) {
        self.missing.insert(name.into(), why);
    }
}

/// Starts a peer only to read its description.
fn greet(name: &str, program: &Program) -> Result<Offer, NodeFault> {
    let mut process = NodeProcess::start(program, name.to_owned(), None)?;
    process.tell(&Line::new("hello").with("protocol", 1))?;
    let hello = process.expect("hello", "saying hello", HELLO_TIMEOUT, &AtomicBool::new(false))?;
    process.close()?;
    Ok(Offer::of(&hello))
}

impl Offer {
    fn of(hello: &Line) -> Self {
        let values = |(name, words): (String, String)| (name, words.split(',').map(str::to_owned).collect());
        Self {
            version: hello.word("version").unwrap_or("unknown").to_owned(),
            links: links(&hello.list("links")),
            waits: hello.list("waits"),
            modes: hello.list("modes"),
            formats: hello.list("formats"),
            payload_bytes_max: hello.word("max_payload_bytes").and_then(|n| n.parse().ok()).unwrap_or(0),
            artificial_clock: hello.word("artificial_clock") == Some("1"),
            options: hello.with_prefix("option.").into_iter().map(values).collect(),
            needs: Vec::new(),
            is_alone: hello.word("nodes") == Some("1"),
        }
    }

    fn built_in(description: Description, support: Support) -> Self {
        Self {
            version: description.version,
            links: links(&description.links),
            waits: description.waits.iter().map(ToString::to_string).collect(),
            modes: description.modes,
            formats: description.formats,
            payload_bytes_max: description.payload_bytes_max,
            // Built in, so behind our own harness, which takes the stamps.
            artificial_clock: true,
            options: support.options,
            needs: support.needs,
            is_alone: support.is_alone,
        }
    }
}

fn links(words: &[String]) -> Vec<Link> {
    words.iter().map(|word| Link::from(word.as_str())).collect()
}
