//! The step "arm64": what depends on the memory model and on the processor, built for ARM64 and run by qemu's user-mode emulation.
//!
//! An emulator on a stronger machine shows that the code builds, that nothing depends on the byte layout or the width of x86, and that the copies
//! by words work. It orders memory as its host does: what ARM64 may order otherwise is checked by loom's models of the ring.

use std::fs;

use crate::{setup, shell};

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// Debian packages that it needs, and a file of each that shows whether it is installed.
const PACKAGES: [(&str, &str); 3] = [
    ("qemu-user", "/usr/bin/qemu-aarch64"),
    ("gcc-aarch64-linux-gnu", "/usr/bin/aarch64-linux-gnu-gcc"),
    ("libc6-dev-arm64-cross", "/usr/aarch64-linux-gnu/include/stdio.h"),
];
const EMULATOR: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Builds for ARM64 and runs the tests; skipped by name where the tools cannot be had.
pub fn test() -> Result<(), String> {
    if let Err(why) = tools() {
        println!("skipped: {why}");
        return Ok(());
    }
    let environment = format!(
        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
         CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='{EMULATOR}' PROPTEST_CASES=32 RUST_BACKTRACE=0"
    );
    // Of the library what needs no minute of simulated networks, and no second node: relays, worlds of servers and full links are left out, and
    // qemu lacks the socket options by which nodes find each other.
    let tests = format!(
        "cargo test --quiet -p noctule-shm-ring -p noctule-timebase -p noctule-time-sync -p noctule-prrt -p noctule --lib --target {TARGET}"
    );
    shell::run(&format!("{environment} {tests} --no-run"))?;
    shell::run(&format!(
        "{environment} timeout 900 {tests} -- --skip relay::tests --skip whatever_the_network --skip kernel_queue --skip lock_census \
         --skip driver::copied"
    ))?;
    c_library(&environment)
}

/// The library as C sees it: a node with its thread, its sockets and a ring.
fn c_library(environment: &str) -> Result<(), String> {
    shell::run(&format!("{environment} cargo build --quiet -p noctule-ffi --target {TARGET}"))?;
    let program = format!("target/{TARGET}/debug/one_node");
    shell::run(&format!(
        "aarch64-linux-gnu-gcc -std=c99 -Wall -Wextra -Werror -Ic/include c/tests/one_node.c target/{TARGET}/debug/libnoctule.a \
         -lpthread -ldl -lm -o {program}"
    ))?;
    shell::run(&format!("timeout 120 {EMULATOR} {program} $((1000 + $$ % 4000))"))
}

fn tools() -> Result<(), String> {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, file)| fs::metadata(file).is_err()).map(|(name, _)| *name).collect();
    setup::install(&missing).map_err(|why| format!("{} cannot be installed: {why}", missing.join(", ")))?;
    let library = || shell::output(&format!("rustc --print target-libdir --target {TARGET}"));
    let is_there = || library().is_some_and(|folder| fs::metadata(folder).is_ok());
    if !is_there() {
        // Fails offline, which is reported below.
        let _ = shell::run(&format!("rustup target add {TARGET}"));
    }
    if is_there() {
        Ok(())
    } else {
        Err(format!("Rust's standard library for ARM64 is not installed: rustup target add {TARGET}"))
    }
}
