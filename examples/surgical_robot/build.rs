//! Generates the endpoints of `topics.toml`, and with them the program that uses them.

fn main() -> std::process::ExitCode {
    noctule_codegen::build::Build::new("topics.toml").templates("templates").run()
}
