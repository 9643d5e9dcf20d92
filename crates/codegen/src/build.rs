//! For build scripts: endpoints in Rust as part of a crate's own build.
//!
//! ```no_run
//! // build.rs
//! fn main() -> std::process::ExitCode {
//!     noctule_codegen::build::Build::new("topics.toml").run()
//! }
//! ```
//!
//! The crate then has all generated modules below the name of the project, and needs `noctule` and `serde`:
//!
//! ```ignore
//! include!(concat!(env!("OUT_DIR"), "/noctule.rs"));
//! ```

// Cargo reads the output of a build script.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::diagnostic::{Fault, Faults};
use crate::generate::{Generated, generate, installed};
use crate::tree;

/// Generates the endpoints of one `topics.toml` into cargo's `OUT_DIR`.
#[derive(Debug, Clone)]
pub struct Build {
    topics: PathBuf,
    templates: Option<PathBuf>,
}

impl Build {
    /// Of this file, below the folder of the crate.
    pub fn new(topics: impl Into<PathBuf>) -> Self {
        Self { topics: topics.into(), templates: None }
    }

    /// A folder of templates that are added, or take the place of those of the same name.
    #[must_use]
    pub fn templates(mut self, folder: impl Into<PathBuf>) -> Self {
        self.templates = Some(folder.into());
        self
    }

    /// Generates, prints what cargo must watch, and every fault as rustc would; the exit code is that of the build script.
    pub fn run(&self) -> ExitCode {
        match self.generate() {
            Ok(lines) => {
                lines.iter().for_each(|line| println!("{line}"));
                ExitCode::SUCCESS
            }
            Err(faults) => {
                eprintln!("{faults}");
                ExitCode::FAILURE
            }
        }
    }

    fn generate(&self) -> Result<Vec<String>, Faults> {
        let folder = std::env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| {
            Fault::new("OUT_DIR is not set").help("call this in a build script, which cargo runs")
        })?;
        let generated = generate(&self.topics, &installed(), self.templates.as_deref())?;
        let (mut files, lines) = (rust_files(&generated), instructions(&generated));
        files.insert("noctule.rs".to_owned(), include(&generated, &folder));
        tree::write(&folder, &files)?;
        Ok(lines)
    }
}

/// Rust files that a crate compiles.
fn rust_files(generated: &Generated) -> BTreeMap<String, String> {
    let of_rust = generated.files.iter().filter(|(path, _)| path.starts_with("rust/"));
    of_rust.map(|(path, text)| (path.clone(), text.clone())).collect()
}

/// The module that a crate includes. A path in an included file must be whole.
fn include(generated: &Generated, folder: &Path) -> String {
    let project = generated.model["project"]["name"].as_str().unwrap_or_default();
    format!("#[path = {:?}]\npub mod {project};\n", folder.join("rust/mod.rs"))
}

/// Lines for cargo: every file that was read, and the folders of definitions, which may get new ones.
fn instructions(generated: &Generated) -> Vec<String> {
    let folders = generated.inputs.iter().filter_map(|path| path.parent()).map(Path::to_path_buf);
    let definitions = folders.filter(|path| {
        ["msg", "srv", "action"].iter().any(|kind| path.file_name().is_some_and(|name| name == *kind))
    });
    let watched: BTreeSet<PathBuf> = generated.inputs.iter().cloned().chain(definitions).collect();
    let mut lines: Vec<String> =
        watched.iter().map(|path| format!("cargo::rerun-if-changed={}", path.display())).collect();
    lines.push("cargo::rerun-if-env-changed=AMENT_PREFIX_PATH".to_owned());
    let warning = |fault: &Fault| format!("cargo::warning={}", fault.what.replace('\n', " "));
    lines.extend(generated.warnings.iter().map(warning));
    lines
}
