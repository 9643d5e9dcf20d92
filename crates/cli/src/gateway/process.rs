//! A bridge to another network is a program of its own, which is started and looked after.

use std::io;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// A bridge that has ended is started again after this.
const PAUSE: Duration = Duration::from_secs(1);

/// Why a bridge is not started again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BridgeEnded {
    #[error("{0} cannot work; its own message above is the reason")]
    Refused(&'static str),
    #[error("the system does not start or watch the bridge's process: {0}")]
    System(#[from] io::Error),
}

/// The bridge's process. It prints to the same output; its input's end ends it, however this process ends.
pub(crate) struct BridgeProcess {
    program: &'static str,
    command: Command,
    running: Option<(Child, Option<ChildStdin>)>,
    start_at: Instant,
}

impl BridgeProcess {
    /// Starts a program that ends with its input.
    pub(crate) fn start(program: &'static str, mut command: Command) -> io::Result<BridgeProcess> {
        command.arg("--with-input").stdin(Stdio::piped());
        let mut process = BridgeProcess { program, command, running: None, start_at: Instant::now() };
        process.spawn()?;
        Ok(process)
    }

    fn spawn(&mut self) -> io::Result<()> {
        let mut child = self.command.spawn()?;
        let input = child.stdin.take();
        self.running = Some((child, input));
        Ok(())
    }

    /// Looks after it: one that has ended is started again, unless it refused its settings. A notice for the user, if there is one.
    ///
    /// # Errors
    /// It cannot be started, or it refused its settings and has printed why.
    pub(crate) fn look_after(&mut self) -> Result<Option<String>, BridgeEnded> {
        let program = self.program;
        if let Some((child, _)) = &mut self.running {
            let Some(status) = child.try_wait()? else { return Ok(None) };
            if status.code() == Some(2) {
                return Err(BridgeEnded::Refused(program));
            }
            self.running = None;
            self.start_at = Instant::now() + PAUSE;
            return Ok(Some(format!("{program} has ended ({status}) and is started again")));
        }
        if Instant::now() >= self.start_at {
            self.spawn()?;
        }
        Ok(None)
    }
}

impl Drop for BridgeProcess {
    /// Ends it in order, so that both sides learn at once that its topics go.
    fn drop(&mut self) {
        if let Some((mut child, input)) = self.running.take() {
            drop(input);
            // Its exit code has no use any more.
            let _ = child.wait();
        }
    }
}
