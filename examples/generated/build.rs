//! Generates the endpoints of `topics.toml` whenever it, or a definition, has changed.

fn main() -> std::process::ExitCode {
    noctule_codegen::build::Build::new("topics.toml").run()
}
