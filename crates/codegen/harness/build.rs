//! Generates the types of `topics.toml`, or of the file that NOCTULE_HARNESS_TOPICS names, with the program that fills them.

use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=NOCTULE_HARNESS_TOPICS");
    let topics = std::env::var("NOCTULE_HARNESS_TOPICS").unwrap_or_else(|_| "topics.toml".to_owned());
    noctule_codegen::build::Build::new(topics).templates("templates").run()
}
