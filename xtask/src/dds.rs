//! The bridge to DDS against foreign programs. Its engine is C, so it stays out of the workspace's other
//! steps: what they need is a Rust compiler.

use crate::{peers, programs, setup, shell};

/// Cyclone as the bridge's engine wants the first two; the others are for the programs that it meets.
const PACKAGES: [&str; 6] =
    ["cmake", "libclang-dev", "cyclonedds-dev", "cyclonedds-tools", "libfastrtps-dev", "libfastcdr-dev"];

/// Lints and tests the bridge with its engine; then has the command build it, as it does where it is wanted first, and starts it
/// twice.
pub fn test() -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES.into_iter().filter(|package| !peers::is_installed(package)).collect();
    setup::install(&missing)?;
    let bridge = "-p noctule-dds --features cyclone";
    shell::run(&format!("cargo clippy {bridge} --all-targets --quiet -- -D warnings"))?;
    shell::run(&format!("cargo test {bridge}"))?;
    programs::build()?;
    let gateway = format!("{} gateway --dds 231 --dds-interface 127.0.0.1 --seconds 2", programs::NOCTULE);
    shell::run(&gateway)?;
    shell::run(&gateway)
}
