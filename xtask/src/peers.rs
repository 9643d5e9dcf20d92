//! Installs what foreign peers need and builds them. `peers/NAME/peer.toml` says how.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use crate::{lanes, setup, shell};

/// Fields of a manifest that building needs; the lab reads and checks the whole of it.
#[derive(Deserialize)]
struct Manifest {
    program: PathBuf,
    #[serde(default)]
    apt: Vec<String>,
    #[serde(default)]
    build: Vec<String>,
}

/// Builds the named peers, or all if none is named. Tries every one, then names those that failed.
pub fn build(names: &[String]) -> Result<(), String> {
    let peers = shell::root().join("peers");
    let known = known(&peers)?;
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("no peer is called {unknown}; there are {}", known.join(", ")));
    }
    let chosen = if names.is_empty() { &known } else { names };
    install_for(&peers, chosen);
    let built = lanes::side_by_side(chosen, |name| {
        println!("── {name} ──");
        build_one(&peers.join(name)).map_err(|error| {
            println!("── {name}: FAILED: {error}");
            name.clone()
        })
    });
    let failed = built.as_ref().err().map_or(0, |names| names.lines().count());
    println!("peers: {} built, {failed} failed", chosen.len() - failed);
    built.map_err(|names| format!("not built: {}", names.replace('\n', ", ")))
}

/// Installs what the peers lack in one go, as each call of apt takes seconds. Where a package is not to be had, each peer's own are installed with it.
fn install_for(peers: &Path, names: &[String]) {
    let manifests = names.iter().filter_map(|name| manifest(&peers.join(name)).ok());
    let packages: BTreeSet<String> = manifests.flat_map(|manifest| manifest.apt).collect();
    if let Err(error) = install(&packages) {
        println!("not in one go: {error}");
    }
}

/// A peer's name, and the options that the conformance test needs of it.
type Quick = (&'static str, &'static str);

/// Peers that are built in seconds, from Debian's packages, one of PyPI's, the C library or nothing, and the options that the conformance test
/// needs of each. The Rust ones bring hundreds of crates, `ros1` hundreds of megabytes, `cyphal` a dozen packages of PyPI, and
/// `ros2` is built where ROS 2 is set up. One wait and one or two sizes are enough of peers that share a harness with another
/// that shows all of them.
const SMOKE: [Quick; 13] = [
    ("cyclonedds", ""),
    // Finds its partners once a second; the newest message wins unless the writer waits.
    ("ecal", "--link shm --mode round_trip --payload 64 --option ack_timeout_ms=100"),
    ("enet", ""),
    ("example", ""),
    ("fastdds", ""),
    // A message of it has at least 1,000 bytes.
    ("formats_python", "--payload 4096"),
    ("lcm", "--allow-loss"),
    ("mqtt", "--wait block --payload 64 --option qos=1"),
    ("nng", "--wait block --payload 64"),
    ("rtp", "--wait block --payload 64 --payload 4096"),
    // Live mode hands out at its latency: 120 ms by default, each way.
    ("srt", "--option latency_ms=20"),
    ("udp_c", ""),
    ("zeromq", "--wait block --payload 64"),
];

/// The library's C interface as a peer. It needs the library optimised, and so comes later than [`SMOKE`].
const NOCTULE_C: Quick = ("noctule_c", "--wait block --payload 64 --payload 65536");

/// Builds the quick peers and has the conformance test play every mode with each.
pub fn smoke() -> Result<(), String> {
    build(&SMOKE.map(|(name, _)| name.to_owned()))?;
    // Each waits most of its time, and has a network of its own.
    lanes::side_by_side(&SMOKE, play)
}

/// The same with the library's C interface.
pub fn of_the_library_in_c() -> Result<(), String> {
    build(&[NOCTULE_C.0.to_owned()])?;
    play(&NOCTULE_C)
}

fn play((name, words): &Quick) -> Result<(), String> {
    let folder = shell::root().join("peers").join(name);
    let program = folder.join(manifest(&folder)?.program);
    conform(&format!("{words} {}", program.display()))
}

/// Runs the conformance test with these words after its own.
pub fn conform(words: &str) -> Result<(), String> {
    shell::run(&format!("python3 peers/conformance.py --private --messages 100 --rate 1000 {words}"))
}

fn known(peers: &Path) -> Result<Vec<String>, String> {
    let entries = peers.read_dir().map_err(|e| format!("cannot read {}: {e}", peers.display()))?;
    let with_manifest = entries.flatten().filter(|entry| entry.path().join("peer.toml").is_file());
    let mut names: Vec<String> =
        with_manifest.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn manifest(folder: &Path) -> Result<Manifest, String> {
    let path = folder.join("peer.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Installs those of the packages that are missing. One apt at a time.
fn install<'a>(packages: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    static APT: Mutex<()> = Mutex::new(());
    let _turn = APT.lock().unwrap_or_else(PoisonError::into_inner);
    let missing: Vec<&str> =
        packages.into_iter().map(String::as_str).filter(|package| !is_installed(package)).collect();
    setup::install(&missing)
}

fn build_one(folder: &Path) -> Result<(), String> {
    let manifest = manifest(folder)?;
    install(&manifest.apt)?;
    for command in &manifest.build {
        shell::run_in(folder, command)?;
    }
    let program = folder.join(&manifest.program);
    if program.is_file() { Ok(()) } else { Err(format!("the build left no {}", program.display())) }
}

/// Whether this Debian package is there.
pub fn is_installed(package: &str) -> bool {
    let query = format!("dpkg-query -W -f '${{Status}}' '{package}'");
    shell::output(&query).is_some_and(|status| status == "install ok installed")
}
