//! The bridge to Zenoh: a workspace of its own, for it brings some 300 crates, which no other step should wait for.

use crate::{python, shell};

const FOLDER: &str = "bridges/zenoh";
const PROGRAM: &str = "bridges/zenoh/target/release/noctule-zenoh";
/// Zenoh from another hand, and the hash by which ROS 2 numbers its publishers.
const PACKAGES: &str = "eclipse-zenoh==1.10.2 xxhash==4.1.0";

/// Builds a bridge by its name.
pub fn build(name: &str) -> Result<(), String> {
    match name {
        "zenoh" => shell::run_in(&shell::root().join(FOLDER), "cargo build --release --locked"),
        "dds" => shell::run("cargo build --release -p noctule-dds --features cyclone"),
        _ => Err(format!("no bridge is called \"{name}\"; there are dds, zenoh")),
    }
}

/// Tests it beside programs that speak as ROS 2's do. Skipped unless it was built, which takes minutes.
pub fn test() -> Result<(), String> {
    let folder = shell::root().join(FOLDER);
    // A dependency that a crate of ours has gained or lost breaks `--locked` here, and no other step would notice.
    shell::run_in(&folder, "cargo update --workspace --locked --quiet").map_err(|fault| {
        format!("{fault}\n{FOLDER}/Cargo.lock is not up to date; run cargo update --workspace there")
    })?;
    if !shell::root().join(PROGRAM).is_file() {
        println!("zenoh: skipped: {PROGRAM} is not built; cargo xtask bridge zenoh builds it");
        return Ok(());
    }
    shell::run_in(&folder, "cargo clippy --release --locked --all-targets --quiet -- -D warnings")?;
    shell::run_in(&folder, "cargo test --release --locked --quiet")?;
    python::install()?;
    let python = "../../.venv/bin/python";
    shell::run_in(
        &folder,
        &format!("{python} -m pip --disable-pip-version-check install --quiet {PACKAGES}"),
    )?;
    shell::run_in(&folder, &format!("{python} -m pytest -q tests"))
}
