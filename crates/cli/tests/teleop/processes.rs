//! Processes of the tele-operation, started by tests and killed with them.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

/// Lets no other test of this program run beside: loops with real-time priority would take the browser's processor.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of `noctule teleop …`; killed when dropped.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// With real-time priority where the machine allows it: the test is of the loop, not of what else runs.
    pub(crate) fn start(name: &str, domain: u32, more: &[&str]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        command.args(["teleop", name, "--until-input-ends", "--domain", &domain.to_string()]).args(more);
        if name != "page" {
            command.args(priority());
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Process { child, output }
    }

    /// A line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it ended without a word");
        line.trim().to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Options for a real-time priority, if this user may have one.
pub(crate) fn priority() -> &'static [&'static str] {
    let tried = Command::new("chrt").args(["--fifo", "30", "true"]).stderr(Stdio::null()).status();
    if tried.is_ok_and(|status| status.success()) { &["--priority", "30"] } else { &[] }
}

pub(crate) fn kill(process: u32) {
    signal(process, "KILL");
}

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap();
    assert!(sent.success());
}
