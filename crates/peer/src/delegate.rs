//! A node that is another program: the lab's lines go to it, and its answers to the lab.
//!
//! So two peers can meet in one cell, each in its own program and with its own stamps. Nothing here runs between two lines.

use std::io::{self, Write};
use std::process::{ChildStdout, Command as Program, Stdio};
use std::thread::{self, JoinHandle};

use crate::control::{Command, Control};
use crate::line::Line;
use crate::transport::{Delegate, PeerError};

/// Lets `delegate` be the node that `open` describes until the lab closes it.
///
/// # Errors
/// In the inner result, it cannot be started; in the outer one, the lab is gone, or it did not end well.
pub(crate) fn relay(
    delegate: Delegate,
    open: &Line,
    control: &mut Control,
) -> io::Result<Result<(), PeerError>> {
    let mut program = Program::new(&delegate.program);
    let started = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let what = format!("cannot start {}", delegate.program.display());
            return Ok(Err(PeerError::of(&what, error)));
        }
    };
    let open = open.clone().without("option.");
    let open = delegate.words.iter().fold(open, |line, (key, value)| line.with(key, value));
    let answers = child.stdout.take().map(answers).transpose()?;
    if let Some(mut input) = child.stdin.take() {
        let mut write_line = |line: &Line| input.write_all(format!("{line}\n").as_bytes());
        // One that has ended says nothing more, and the lab names it when it waits in vain.
        let mut written = write_line(&open);
        while written.is_ok() {
            match control.wait()? {
                Command::Line(line) => written = write_line(&line),
                Command::Malformed(error) => control.reply(&Line::error(&error))?,
                Command::End => break,
            }
        }
    }
    // Its input has ended, and so does it.
    let status = child.wait()?;
    // It panics only by a bug, which has been printed then.
    let _ = answers.map(JoinHandle::join);
    drop(delegate.beside);
    match status.success() {
        true => Ok(Ok(())),
        false => Err(io::Error::other(format!("{} ended: {status}", delegate.program.display()))),
    }
}

/// Hands on what it says until it ends.
fn answers(mut output: ChildStdout) -> io::Result<JoinHandle<io::Result<u64>>> {
    // Lines end with a newline, at which the standard output is flushed.
    let copy = move || io::copy(&mut output, &mut io::stdout());
    thread::Builder::new().name("stand-in says".into()).spawn(copy)
}
