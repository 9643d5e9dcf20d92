//! `peer.toml`: what the lab knows of a foreign peer before it is built.
//!
//! A peer is a folder with a manifest. Whether it can be used is seen from the folder alone, so that
//! a peer that is not built is named with the command that builds it, and one with a wrong manifest
//! with the reason, but neither stops the others. What the fields mean to the author of a peer is
//! in `docs/guide/add-a-peer.md`.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

/// Name of the manifest in a peer's folder.
pub const FILE_NAME: &str = "peer.toml";

/// A manifest larger than this is not read.
const BYTES_MAX: u64 = 64 << 10;

/// The words of the protocol (`docs/spec/peer-protocol.md`, section 1.1).
const LINKS: &[&str] = &["shm", "udp", "tcp", "unix", "pty", "serial", "memory"];
const WAITS: &[&str] = &["spin", "block", "hybrid"];
const MODES: &[&str] = &["round_trip", "one_way", "chain", "fan_out"];

/// The contents of a `peer.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name of the peer: that of its folder.
    pub name: String,
    /// One line about the middleware.
    pub summary: String,
    /// Address of its web page.
    pub homepage: String,
    /// Its licence, as an SPDX expression.
    pub licence: String,
    /// The executable, relative to the folder.
    pub program: PathBuf,
    /// Links, waits and modes it will offer once it is built.
    pub links: Vec<String>,
    /// See `links`.
    pub waits: Vec<String>,
    /// See `links`.
    pub modes: Vec<String>,
    /// Debian packages that building and running need.
    #[serde(default)]
    pub apt: Vec<String>,
    /// Commands that build it, run in the folder, in order. None: nothing has to be built.
    #[serde(default)]
    pub build: Vec<String>,
    /// Network and programs that it needs.
    #[serde(default)]
    pub needs: Needs,
}

/// Requirements of a peer on the host it runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// The network, if any network will not do.
    pub network: Option<Network>,
}

/// A kind of network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// One of its own, where multicast works and reaches no other node. The lab always gives one.
    Private,
}

/// A folder of `peers/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The folder's name, which is the peer's.
    pub name: String,
    /// The manifest, unless it is broken.
    pub manifest: Option<Manifest>,
    /// Whether the peer can be started.
    pub state: State,
}

/// Whether a peer can be started. Its `Display` says what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It can.
    Built {
        /// The executable.
        program: PathBuf,
    },
    /// The executable is not there yet.
    NotBuilt {
        /// The command that builds it.
        command: String,
    },
    /// The manifest or the executable is wrong.
    Broken {
        /// A sentence.
        why: String,
    },
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Built { .. } => out.write_str("built"),
            Self::NotBuilt { command } => write!(out, "is not built; run `{command}`"),
            Self::Broken { why } => write!(out, "is broken: {why}"),
        }
    }
}

/// The folder of peers cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the folder of peers {}: {cause}; set NOCTULE_PEERS to another one", folder.display())]
pub struct FolderError {
    folder: PathBuf,
    cause: io::Error,
}

/// Where the peers are: `wanted` (the value of `NOCTULE_PEERS`) if given, else `peers/` in `start` or
/// the nearest of its parents that has one with a manifest in it.
pub fn find_folder(wanted: Option<&OsStr>, start: &Path) -> Option<PathBuf> {
    if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) {
        return Some(wanted.into());
    }
    let candidates = start.ancestors().map(|parent| parent.join("peers"));
    candidates.into_iter().find(|folder| !manifests(folder).unwrap_or_default().is_empty())
}

/// All peers of a folder, by name.
///
/// # Errors
/// The folder cannot be read. A single bad manifest is no error but a [`State::Broken`].
pub fn list(folder: &Path) -> Result<Vec<Found>, FolderError> {
    let manifests = manifests(folder).map_err(|cause| FolderError { folder: folder.to_owned(), cause })?;
    Ok(manifests.iter().map(|path| examine(path)).collect())
}

fn manifests(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path().join(FILE_NAME);
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn examine(path: &Path) -> Found {
    let folder = path.parent().unwrap_or(path);
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match read(path, &name) {
        Ok(manifest) => {
            let state = state(folder, &manifest);
            Found { name, manifest: Some(manifest), state }
        }
        Err(error) => {
            let between = if matches!(error, ManifestError::TooLarge) { "" } else { ":" };
            let why = format!("{}{between} {error}", path.display());
            Found { name, manifest: None, state: State::Broken { why } }
        }
    }
}

/// Why a manifest is refused; its path stands before it.
#[derive(Debug, thiserror::Error)]
enum ManifestError {
    #[error("{0}")]
    Unreadable(io::Error),
    #[error("is larger than {BYTES_MAX} bytes")]
    TooLarge,
    #[error("{}", .0.to_string().trim_end())]
    Malformed(#[from] toml::de::Error),
    #[error("name = \"{found}\" is not the folder's name, {folder}")]
    Name { found: String, folder: String },
    #[error("program = {0:?} is not a path inside the folder")]
    Program(PathBuf),
    #[error("{key}: \"{word}\" is unknown; known are {known}")]
    Word { key: &'static str, word: String, known: String },
}

fn read(path: &Path, name: &str) -> Result<Manifest, ManifestError> {
    if path.metadata().map_err(ManifestError::Unreadable)?.len() > BYTES_MAX {
        return Err(ManifestError::TooLarge);
    }
    let text = std::fs::read_to_string(path).map_err(ManifestError::Unreadable)?;
    parse(&text, name)
}

/// Parses a manifest of the folder `name`; the reason for a refusal points to the line.
fn parse(text: &str, name: &str) -> Result<Manifest, ManifestError> {
    let manifest: Manifest = toml::from_str(text)?;
    if manifest.name != name {
        return Err(ManifestError::Name { found: manifest.name, folder: name.to_owned() });
    }
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if manifest.program.as_os_str().is_empty() || !manifest.program.components().all(inside) {
        return Err(ManifestError::Program(manifest.program));
    }
    for (key, words, known) in [
        ("links", &manifest.links, LINKS),
        ("waits", &manifest.waits, WAITS),
        ("modes", &manifest.modes, MODES),
    ] {
        if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
            return Err(ManifestError::Word { key, word: word.clone(), known: known.join(", ") });
        }
    }
    Ok(manifest)
}

fn state(folder: &Path, manifest: &Manifest) -> State {
    let program = folder.join(&manifest.program);
    match program.metadata() {
        Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => State::Built { program },
        Ok(_) => State::Broken { why: format!("{} is not an executable file", program.display()) },
        Err(_) if manifest.build.is_empty() => {
            State::Broken { why: format!("{} is not there, and nothing builds it", program.display()) }
        }
        Err(_) => State::NotBuilt { command: format!("cargo xtask peers {}", manifest.name) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const GOOD: &str = r#"
        name = "mine"
        summary = "s"
        homepage = "h"
        licence = "MIT"
        program = "build/peer"
        links = ["udp"]
        waits = ["spin"]
        modes = ["one_way"]
        build = ["make"]
    "#;

    fn folder_with(text: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("peers/mine/build")).unwrap();
        fs::write(root.path().join("peers/mine").join(FILE_NAME), text).unwrap();
        root
    }

    fn state_of(root: &tempfile::TempDir) -> State {
        let mut found = list(&root.path().join("peers")).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0).state
    }

    #[test]
    fn peer_that_is_not_built_is_named_with_the_command_that_builds_it() {
        let root = folder_with(GOOD);
        let state = state_of(&root);
        assert_eq!(state, State::NotBuilt { command: "cargo xtask peers mine".into() });
        assert_eq!(state.to_string(), "is not built; run `cargo xtask peers mine`");
    }

    #[test]
    fn executable_makes_a_peer_built_and_any_other_file_breaks_it() {
        let root = folder_with(GOOD);
        let program = root.path().join("peers/mine/build/peer");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        assert!(matches!(state_of(&root), State::Broken { why } if why.contains("not an executable")));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(state_of(&root), State::Built { program });
    }

    #[test]
    fn peer_that_nothing_builds_and_is_not_there_is_broken() {
        let root = folder_with(&GOOD.replace("[\"make\"]", "[]"));
        assert!(matches!(state_of(&root), State::Broken { why } if why.contains("nothing builds it")));
    }

    #[test]
    fn wrong_manifest_is_refused_with_a_reason_that_names_the_fault() {
        for (from, to, reason) in [
            ("name = \"mine\"", "name = \"other\"", "not the folder's name"),
            ("\"udp\"", "\"pigeon\"", "known are shm, udp"),
            ("build/peer", "../peer", "not a path inside"),
            ("build/peer", "/bin/sh", "not a path inside"),
            ("build/peer", "", "not a path inside"),
            ("summary", "summery", "unknown field `summery`"),
            ("[\"spin\"]", "\"spin\"", "line 8"),
        ] {
            let refused = parse(&GOOD.replace(from, to), "mine").unwrap_err().to_string();
            assert!(refused.contains(reason), "{to}: {refused}");
        }
    }

    #[test]
    fn oversized_manifest_is_not_read() {
        let root = folder_with(&" ".repeat(BYTES_MAX as usize + 1));
        assert!(matches!(state_of(&root), State::Broken { why } if why.contains("larger than")));
    }

    #[test]
    fn folder_is_found_from_below_unless_another_is_wanted() {
        let root = folder_with(GOOD);
        let peers = root.path().join("peers");
        assert_eq!(find_folder(None, &peers.join("mine/build")), Some(peers.clone()));
        assert_eq!(find_folder(Some(OsStr::new("")), root.path()), Some(peers));
        assert_eq!(find_folder(Some(OsStr::new("/elsewhere")), root.path()), Some("/elsewhere".into()));
        assert!(
            list(Path::new("/elsewhere/there/is/none")).unwrap_err().to_string().contains("NOCTULE_PEERS")
        );
    }

    #[test]
    fn every_peer_of_this_repository_has_a_good_manifest() {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
        let found = list(&peers).unwrap();
        assert!(found.len() >= 5, "{found:?}");
        for peer in found {
            assert!(peer.manifest.is_some(), "{} {}", peer.name, peer.state);
        }
    }
}
