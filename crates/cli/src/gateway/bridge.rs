//! Where the bridge to DDS is: beside this program.
//!
//! Its engine is a C library that takes about a minute to build and wants tools that nothing else here wants. So the
//! default build is without it, and a checkout builds it when it is wanted first, and again when this program has been
//! built since. An installed one is as it is.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

pub(crate) const PROGRAM: &str = "noctule-dds";
/// Texts in the output of a build that failed, in the order in which they are looked for, and their cause in words.
const REASONS: [(&str, &str); 6] = [
    ("is `cmake` not installed?", "cmake is not there"),
    ("Unable to find libclang", "libclang is not there"),
    ("No CMAKE_C_COMPILER could be found", "there is no C compiler"),
    ("linker `cc` not found", "there is no C compiler"),
    ("failed to download", "its sources are not here yet, and the network does not give them"),
    ("failed to get `", "its sources are not here yet, and the network does not give them"),
];

/// The bridge's program, built if this one was built from a checkout that is still there.
///
/// # Errors
/// There is none and it cannot be built: why, and the way out, in a sentence.
pub(crate) fn program() -> Result<PathBuf, BridgeError> {
    let own = std::env::current_exe().map_err(BridgeError::Own)?;
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Place { own, checkout, cargo: cargo.into() }.program()
}

/// Why there is no bridge to start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BridgeError {
    #[error("cannot find this program's file: {0}")]
    Own(io::Error),
    #[error(
        "{why}; it wants a network once, and `apt-get install cmake gcc libclang-dev`; then start this again in a checkout, or \
         `cargo install --path crates/dds --features cyclone` and put {PROGRAM} beside {own}"
    )]
    NotBuilt { why: NotBuilt, own: PathBuf },
}

/// Why the bridge's program was not built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotBuilt {
    #[error("{PROGRAM} is not there")]
    NotThere,
    #[error("{PROGRAM} is not there, and cargo cannot be started ({0})")]
    NoCargo(io::Error),
    #[error("{PROGRAM} could not be built: {0}")]
    Lacks(&'static str),
    #[error("{PROGRAM} could not be built, see above")]
    SeeAbove,
    #[error("cargo built no {PROGRAM} ({0})")]
    Nothing(io::Error),
}

/// Paths of this program, its checkout and cargo.
struct Place {
    /// This program.
    own: PathBuf,
    /// The sources it was built from, if they are there.
    checkout: PathBuf,
    cargo: PathBuf,
}

impl Place {
    fn program(&self) -> Result<PathBuf, BridgeError> {
        let beside = self.own.with_file_name(PROGRAM);
        let target = self.own.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let is_built_here =
            self.checkout.join("Cargo.lock").is_file() && target.join("CACHEDIR.TAG").is_file();
        match modified(&beside) {
            Ok(_) if !is_built_here => return Ok(beside),
            Ok(built) if modified(&self.own).is_ok_and(|own| own <= built) => return Ok(beside),
            // It may be of older sources: cargo knows.
            Ok(_) => {}
            Err(_) if !is_built_here => return Err(self.fault(NotBuilt::NotThere)),
            Err(_) => anstream::eprintln!(
                "noctule: building {PROGRAM} (Cyclone DDS) for the first time: one to two minutes"
            ),
        }
        self.build(target)?;
        // Cargo leaves alone what is as it should be; and then the next start need not ask again.
        let touched = File::options().append(true).open(&beside);
        match touched.and_then(|file| file.set_modified(SystemTime::now())) {
            Ok(()) => Ok(beside),
            Err(error) => Err(self.fault(NotBuilt::Nothing(error))),
        }
    }

    fn build(&self, target: &Path) -> Result<(), BridgeError> {
        let mut cargo = Command::new(&self.cargo);
        cargo.current_dir(&self.checkout).args(["build", "--quiet", "-p", PROGRAM, "--features", "cyclone"]);
        cargo.arg("--target-dir").arg(target);
        let profile = self.own.parent().and_then(Path::file_name).unwrap_or_default();
        if profile != "debug" {
            cargo.arg("--profile").arg(profile);
        }
        let ran = cargo.stdin(Stdio::null()).stdout(Stdio::null()).output();
        let ran = ran.map_err(|error| self.fault(NotBuilt::NoCargo(error)))?;
        if ran.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        match REASONS.into_iter().find(|(words, _)| said.contains(words)) {
            Some((_, why)) => Err(self.fault(NotBuilt::Lacks(why))),
            None => {
                anstream::eprint!("{said}");
                Err(self.fault(NotBuilt::SeeAbove))
            }
        }
    }

    fn fault(&self, why: NotBuilt) -> BridgeError {
        BridgeError::NotBuilt { why, own: self.own.clone() }
    }
}

fn modified(path: &Path) -> io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use tempfile::TempDir;

    /// A checkout with this program in its target folder, and a cargo that is a script.
    fn place(script: &str) -> (TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("target/release")).unwrap();
        for file in ["Cargo.lock", "target/CACHEDIR.TAG", "target/release/noctule"] {
            fs::write(at(file), "").unwrap();
        }
        // It is called in the checkout, and notes that it was.
        fs::write(at("cargo"), format!("#!/bin/sh\necho \"$@\" >> called\n{script}\n")).unwrap();
        fs::set_permissions(at("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        let place = Place { own: at("target/release/noctule"), checkout: at(""), cargo: at("cargo") };
        (folder, place)
    }

    fn calls(folder: &TempDir) -> usize {
        fs::read_to_string(folder.path().join("called")).unwrap_or_default().lines().count()
    }

    #[test]
    fn it_is_built_when_wanted_first_and_not_when_started_again() {
        let (folder, place) = place("touch target/release/noctule-dds");
        for _ in 0..3 {
            assert_eq!(place.program().unwrap(), folder.path().join("target/release/noctule-dds"));
        }
        let called = fs::read_to_string(folder.path().join("called")).unwrap();
        let target = folder.path().join("target");
        let wanted = format!(
            "build --quiet -p noctule-dds --features cyclone --target-dir {} --profile release\n",
            target.display()
        );
        assert_eq!(called, wanted);
    }

    #[test]
    fn when_this_program_was_built_since_cargo_is_asked_again_and_once() {
        // As cargo does with what is as it should be, it touches nothing.
        let (folder, place) = place("exit 0");
        let bridge = folder.path().join("target/release/noctule-dds");
        fs::write(&bridge, "").unwrap();
        let before = modified(&place.own).unwrap() - Duration::from_secs(60);
        File::options().append(true).open(&bridge).unwrap().set_modified(before).unwrap();
        for _ in 0..2 {
            assert_eq!(place.program().unwrap(), bridge);
        }
        assert_eq!(calls(&folder), 1);
    }

    #[test]
    fn why_it_cannot_be_built_is_one_sentence_with_the_way_out() {
        for (script, why) in [
            (
                "echo 'failed to execute: No such file (os error 2)\nis `cmake` not installed?' >&2; exit 101",
                "cmake is not there",
            ),
            (
                "echo \"Unable to find libclang: couldn't find any valid\" >&2; exit 101",
                "libclang is not there",
            ),
            (
                "echo 'error: failed to download from `https://static.crates.io`' >&2; exit 101",
                "the network does not give them",
            ),
            ("echo 'something else' >&2; exit 1", "could not be built, see above"),
            ("exit 0", "cargo built no noctule-dds"),
        ] {
            let said = place(script).1.program().unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("apt-get install cmake"), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
        let (_folder, mut place) = place("");
        place.cargo = "/there/is/no/cargo".into();
        assert!(place.program().unwrap_err().to_string().contains("cargo cannot be started"));
    }

    #[test]
    fn away_from_a_checkout_what_lies_beside_is_taken_as_it_is() {
        let (folder, place) = place("");
        fs::remove_file(folder.path().join("Cargo.lock")).unwrap();
        assert!(place.program().unwrap_err().to_string().starts_with("noctule-dds is not there; "));
        let bridge = folder.path().join("target/release/noctule-dds");
        fs::write(&bridge, "").unwrap();
        assert_eq!((place.program().unwrap(), calls(&folder)), (bridge, 0));
    }
}
