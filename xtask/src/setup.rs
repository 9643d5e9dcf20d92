//! Installs what the tests need and a fresh machine lacks, says so, and works offline once it is there.

use crate::{python, shell};

/// A Debian package and a file that shows whether it is installed.
const PACKAGES: [(&str, &str); 8] = [
    ("iproute2", "ip"),
    ("nftables", "nft"),
    ("chromium", "chromium"),
    ("cmake", "cmake"),
    ("g++", "g++"),
    ("make", "make"),
    ("octave-dev", "mkoctfile"),
    ("pkg-config", "pkg-config"),
];

/// Installs every missing package, of Debian and of PyPI.
pub fn run() -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, program)| shell::output(&format!("command -v {program}")).is_none())
        .map(|(package, _)| *package)
        .collect();
    install(&missing)?;
    python::setup()
}

/// Installs Debian packages; nothing is fetched if there are none.
pub fn install(packages: &[&str]) -> Result<(), String> {
    if packages.is_empty() {
        return Ok(());
    }
    let packages = packages.join(" ");
    println!("installing Debian packages: {packages}");
    let quiet = "DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 -y --no-install-recommends";
    let install = format!("{quiet} install {packages} >/tmp/noctule-apt.log 2>&1");
    // Package lists may be missing or old: fetch them only if the first try fails.
    shell::run(&install)
        .or_else(|_| {
            shell::run("apt-get -q update")?;
            shell::run(&install)
        })
        .map_err(|e| {
            format!("{e}; see /tmp/noctule-apt.log, or install by hand as root: apt-get install {packages}")
        })
}
