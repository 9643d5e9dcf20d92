//! ROS 2 programs on the bus: a package for colcon, built only where ROS 2 is.

use std::env;
use std::path::Path;

use crate::{python, shell};

const FOLDER: &str = "bridges/rmw_noctule";
const FFI: &str = "bridges/rmw_noctule/ffi";
/// Where CMake builds it and installs it.
const BUILD: &str = "target/rmw_noctule";

/// Builds the package and runs ROS 2's own suite on it. Skipped where no ROS 2 is set up.
pub fn test() -> Result<(), String> {
    let ffi = shell::root().join(FFI);
    // A dependency that a crate of ours has gained or lost breaks `--locked` here, and no other step would notice.
    shell::run_in(&ffi, "cargo update --workspace --locked --quiet").map_err(|fault| {
        format!("{fault}\n{FFI}/Cargo.lock is not up to date; run cargo update --workspace there")
    })?;
    shell::run_in(&ffi, "cargo fmt --check")?;
    if !is_there() {
        println!(
            "rmw: skipped: no ROS 2 is set up (ROS_DISTRO and AMENT_PREFIX_PATH, or /opt/ros); source its setup.sh"
        );
        return Ok(());
    }
    if env::var_os("AMENT_PREFIX_PATH").is_none() {
        return Err("ROS 2 is in /opt/ros and not set up; source its setup.sh, then run this again".into());
    }
    shell::run(&format!("cmake -S {FOLDER} -B {BUILD} -DCMAKE_INSTALL_PREFIX={BUILD}/install -Wno-dev"))?;
    shell::run(&format!("cmake --build {BUILD} -j2"))?;
    shell::run(&format!("cmake --install {BUILD}"))?;
    shell::run_in(
        &ffi,
        &format!("cargo clippy --release --locked --target-dir ../../../{BUILD}/core --quiet -- -D warnings"),
    )?;
    python::install()?;
    shell::run("cargo build --quiet --release")?;
    shell::run_in(&shell::root().join(FOLDER), "../../.venv/bin/python -m pytest -q tests")
}

fn is_there() -> bool {
    let is_set_up = env::var_os("AMENT_PREFIX_PATH").is_some();
    let is_installed =
        Path::new("/opt/ros").read_dir().is_ok_and(|mut distributions| distributions.next().is_some());
    is_set_up || is_installed
}
