//! The Python package: built, installed into an environment of its own, tested, its types checked.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{ahead, programs, shell};

const VENV: &str = ".venv";
const PACKAGES: &str = "cbor2==6.2.1 cryptography==48.0.0 flatbuffers==25.12.19 maturin==1.16.0 msgpack==1.2.4 mypy==2.4.1 \
     numpy==2.4.6 orjson==3.13.0 protobuf==7.36.2 pymongo==4.20.0 pytest==9.2.0 PyYAML==6.0.3 rosbags==0.11.9";

/// Makes the environment if it lacks one of the packages; works offline once they are there.
pub fn setup() -> Result<(), String> {
    let python = format!("{VENV}/bin/python");
    let pip = format!("{python} -m pip --disable-pip-version-check");
    let listed = shell::output(&format!("{pip} list --format=freeze")).unwrap_or_default();
    if PACKAGES.split(' ').all(|package| listed.lines().any(|line| line == package)) {
        return Ok(());
    }
    println!("installing from PyPI into {VENV}: {PACKAGES}");
    shell::run(&format!("python3 -m venv {VENV}"))?;
    shell::run(&format!("{pip} install --quiet {PACKAGES}"))
}

/// Runs the package's tests against what was installed.
pub fn test() -> Result<(), String> {
    install()?;
    // Not in the folder beside the package: what is installed is to be tested.
    let tests = shell::root().join("python/tests");
    let in_tests = |line: &str| shell::run_in(&tests, line);
    let python = format!("../../{VENV}/bin/python");
    in_tests(&format!("{python} -m pytest -q"))?;
    in_tests(&format!("{python} -m mypy --strict --package noctule"))?;
    in_tests(&format!(
        "{python} -m mypy.stubtest --allowlist ../stubtest.txt --ignore-unused-allowlist noctule"
    ))
}

/// An implementation that was written from `docs/spec` alone, with the specifications' examples and with the command.
pub fn second_implementation() -> Result<(), String> {
    programs::build()?;
    setup()?;
    shell::run(&shell::in_network_namespace(&format!("{VENV}/bin/python -m pytest -q vectors/conformance")))
}

/// The line that builds the wheel.
pub const BUILD: &str = "rm -rf target/wheel && cd python && \
     ../.venv/bin/maturin build --release --locked --quiet --interpreter ../.venv/bin/python --out ../target/wheel";

/// Builds the wheel and installs it, once in a run.
pub fn install() -> Result<(), String> {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if IS_INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    setup()?;
    ahead::build(BUILD)?;
    shell::run(&format!(
        "{VENV}/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-index --force-reinstall target/wheel/*.whl"
    ))?;
    IS_INSTALLED.store(true, Ordering::Relaxed);
    Ok(())
}
