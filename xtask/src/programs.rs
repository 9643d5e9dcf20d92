//! The programs and examples that steps run.

use crate::shell;

/// All of them as `cargo test --workspace` builds them. With `--package` Cargo enables the features of one package's dependencies instead
/// of everybody's, and compiles most of the workspace again. Without xtask, which is running. Clippy checks the examples that no step runs.
const BUILD: &str = "cargo build --quiet --workspace --exclude xtask --bins --example as_mcap --example publish --example soak_boards \
     --example soak_kills --example subscribe --example synthetic_clock_report --example synthetic_report --example typed";

/// The command as users build it.
pub const BUILD_RELEASE: &str = "cargo build --release";

/// The command without optimisation.
pub const NOCTULE: &str = "target/debug/noctule";

/// Builds them; little is left to do after the step "tests".
pub fn build() -> Result<(), String> {
    shell::run(BUILD)
}

/// Builds them and runs an example with these arguments.
pub fn run_example(name: &str, arguments: &str) -> Result<(), String> {
    build()?;
    shell::run(&format!("target/debug/examples/{name} {arguments}"))
}
