//! Foxglove's own client library against our server of its protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::shell;

const FOLDER: &str = "target/readers/foxglove";
const PACKAGES: &str = "@foxglove/ws-protocol@0.8.0 ws@8";
const MESSAGES: u32 = 200;
const SWARM: [&str; 4] = ["--domain", "4322", "--interface", "127.0.0.1"];

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Installs the library, or says that it is skipped; publishes numbers until it has seen as many as it wants.
pub fn run() -> Result<(), String> {
    let has_node = shell::output("command -v node && command -v npm").is_some();
    let install = format!(
        "mkdir -p {FOLDER} && cp xtask/src/readers/foxglove.js {FOLDER}/ && cd {FOLDER} && \
         (test -d node_modules/ws || npm install --silent --no-audit --no-fund {PACKAGES})"
    );
    if !has_node || shell::output(&install).is_none() {
        println!("skipped: Foxglove's client library needs node, and npm once");
        return Ok(());
    }
    let start = |words: &[&str]| {
        let mut command = Command::new(shell::root().join("target/debug/noctule"));
        command.args(words).args(SWARM).stdin(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map(Ends).map_err(|error| error.to_string())
    };
    let mut server = start(&["record", "--serve=127.0.0.1:0"])?;
    let errors = server.0.stderr.take().ok_or("the server has no error output")?;
    // Kept until the end: a server whose error output is closed may end.
    let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
    let socket =
        |line: String| line.split_whitespace().find(|word| word.starts_with("ws://")).map(str::to_owned);
    let address = lines.find_map(socket);
    let address = address.ok_or("the server printed no address")?;
    let mut viewer = Command::new("node");
    viewer.arg("foxglove.js").arg(&address).arg(MESSAGES.to_string());
    let mut viewer = viewer
        .current_dir(shell::root().join(FOLDER))
        .spawn()
        .map(Ends)
        .map_err(|error| error.to_string())?;
    let mut talker =
        start(&["pub", "/foxglove_test", "-", "--keep-last", "512", "--wait-for", "1", "--seconds", "60"])?;
    let mut input = talker.0.stdin.take().ok_or("the publisher has no input")?;
    for number in 0..MESSAGES {
        writeln!(input, "{number}").map_err(|error| error.to_string())?;
    }
    let status = viewer.0.wait().map_err(|error| error.to_string())?;
    drop(input);
    if status.success() {
        Ok(())
    } else {
        Err("Foxglove's client library did not get what was published".into())
    }
}
