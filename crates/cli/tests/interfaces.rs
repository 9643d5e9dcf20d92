//! The library's files for ROS 2's own types equal the generator's output for their definitions today. Mend them with:
//!
//! ```text
//! noctule gen crates/noctule/interfaces/topics.toml --out DIR && cp DIR/rust/*.rs crates/noctule/src/generated
//! ```
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_librarys_interfaces_are_generated_of_their_definitions() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../noctule");
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    let ran = command
        .arg("gen")
        .arg(library.join("interfaces/topics.toml"))
        .arg("--out")
        .arg(out.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let names = |folder: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (made, kept) = (out.path().join("rust"), library.join("src/generated"));
    assert_eq!(names(&made), names(&kept));
    for name in names(&made) {
        let [made, kept] = [&made, &kept].map(|folder| fs::read_to_string(folder.join(&name)).unwrap());
        assert!(made == kept, "{} is not what the generator makes; see this test's header", name.display());
    }
}
