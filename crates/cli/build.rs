//! Tells the program which commit and which sources it is built from: evidence names both.

#[path = "build/sources.rs"]
mod sources;

use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for path in ["Cargo.toml", "Cargo.lock", "crates", "c", ".git/HEAD", ".git/logs/HEAD"] {
        let path = root.join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    // A package that was taken out of its checkout has neither.
    if let (Some(commit), Some(number)) = (sources::commit(&root), sources::of_checkout(&root)) {
        println!("cargo::rustc-env=NOCTULE_COMMIT={commit}");
        println!("cargo::rustc-env=NOCTULE_SOURCES={number}");
    }
}
