//! The lab's lines: blocking while idle, a glance now and then while messages flow.

use std::io::{self, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::line::{LINE_BYTES_MAX, Line, LineError};

/// Standard input and output of a peer.
#[derive(Debug)]
pub(crate) struct Control {
    buffer: Vec<u8>,
    ended: bool,
}

/// Input from the lab: a line, a malformed one, or its end.
#[derive(Debug)]
pub(crate) enum Command {
    Line(Line),
    Malformed(LineError),
    /// The lab closed our input; it will ask for nothing more.
    End,
}

impl Control {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::with_capacity(LINE_BYTES_MAX), ended: false }
    }

    /// Waits for the next command.
    pub(crate) fn wait(&mut self) -> io::Result<Command> {
        loop {
            if let Some(command) = self.buffered() {
                return Ok(command);
            }
            self.fill()?;
        }
    }

    /// The next command if it is already there.
    pub(crate) fn glance(&mut self) -> io::Result<Option<Command>> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if self.buffered_line_end().is_none() && poll(&mut fds, Some(&at_once))? > 0 {
            self.fill()?;
        }
        Ok(self.buffered())
    }

    pub(crate) fn reply(&mut self, line: &Line) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(format!("{line}\n").as_bytes())?;
        stdout.flush()
    }

    fn buffered_line_end(&self) -> Option<usize> {
        self.buffer.iter().position(|&byte| byte == b'\n')
    }

    fn buffered(&mut self) -> Option<Command> {
        let Some(end) = self.buffered_line_end() else {
            return self.ended.then_some(Command::End);
        };
        let line: Vec<u8> = self.buffer.drain(..=end).collect();
        Some(match String::from_utf8_lossy(&line).parse() {
            Ok(line) => Command::Line(line),
            Err(error) => Command::Malformed(error),
        })
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.buffer.len() > LINE_BYTES_MAX {
            return Err(io::Error::other("a command line without end"));
        }
        let mut chunk = [0; 1024];
        // Unbuffered on purpose: `glance` polls the descriptor, so nothing may hide in a reader.
        let count = match rustix::io::read(io::stdin(), &mut chunk) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.ended = count == 0;
        self.buffer.extend_from_slice(&chunk[..count]);
        Ok(())
    }
}
