//! A serial line, live: two pseudo-terminals and a thread that carries bytes at the line's pace.
//!
//! # Approach
//!
//! Each end is a pty whose other side any program opens as it would a serial port. The thread reads
//! an end only as far as the model's FIFO has room, and writes each byte when the model says, spinning
//! through the last moments as the forwarder of links does. The baud rate a program sets on its end
//! is not looked at: the line has the one it was made with.
//!
//! The kernel keeps up to a few kilobytes for each pty before this thread sees them. A sender that
//! floods the line is therefore further ahead of the wire than with a UART's own FIFO; bytes arrive at
//! the wire's pace all the same.
//!
//! Unplugging closes ptys, as pulling a USB adapter does: programs read end of file or `EIO`. Either of both ends,
//! or of the first alone: a board whose other end is pulled goes on sending into nothing.
//! Plugging in makes new ones, so a program opens a path that always leads to the present one.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use hdrhistogram::Histogram;
use noctule_netsim::Truth;
use noctule_netsim::serial::{SerialLine, SerialSpec, SerialStatistics};
use noctule_sys::{clock, scheduling};
use noctule_timebase::{Instant, Span};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde::Serialize;

use crate::forwarder::SPIN_DEFAULT;
use crate::report::Lateness;

const CHUNK_BYTES: usize = 4_096;
const PRIORITY: u32 = 40;
const SLEEP_MAX: Span = Span::from_s(10);
const LATENESS_MAX_NS: u64 = 10_000_000_000;

/// A running line.
#[derive(Debug)]
pub struct SerialPump {
    commands: Sender<Command>,
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
    paths: [PathBuf; 2],
}

/// Counts of a live line.
#[derive(Clone, Debug, Serialize)]
pub struct SerialReport {
    /// From the first end to the second, and back.
    pub directions: [SerialStatistics; 2],
    /// Whether it is plugged in.
    pub plugged: bool,
    /// Whether the thread runs under `SCHED_FIFO`.
    pub real_time: bool,
    /// How much later than due bytes were handed over, per write.
    pub lateness_ns: Lateness,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub enum SerialError {
    /// No pty or thread.
    #[error("cannot make a pseudo-terminal ({0}); mount devpts, or end other programs that hold some")]
    Terminal(io::Error),
    /// No path.
    #[error("cannot make {path}: {error}; choose another folder or remove what is there", path = .path.display())]
    Path {
        /// The path asked for.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// It ended by itself.
    #[error("the thread of this line has ended; start the line again")]
    Ended,
}

/// Which ptys go when the plug is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplug {
    /// Both.
    BothEnds,
    /// The first; a process with the second open notices nothing.
    FirstEnd,
}

enum Command {
    Unplug(Unplug, Sender<SerialReport>),
    Plug(Sender<SerialReport>),
    Report(Sender<SerialReport>),
    Stop(Sender<SerialReport>),
}

impl SerialPump {
    /// Starts a line plugged in. `paths` become symbolic links to the two ends, and follow them when the
    /// line is unplugged and plugged in again. What stood there as a symbolic link is replaced.
    pub fn start(spec: SerialSpec, seed: u64, paths: [PathBuf; 2]) -> Result<SerialPump, SerialError> {
        let ends = [Some(end(&paths[0])?), Some(end(&paths[1])?)];
        let cannot = |error: rustix::io::Errno| SerialError::Terminal(error.into());
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(cannot)?;
        let woken = wake.try_clone().map_err(SerialError::Terminal)?;
        let (commands, orders) = channel();
        let line = |direction| SerialLine::new(spec, now(), seed.wrapping_mul(2).wrapping_add(direction));
        let mut pump = Pump {
            lines: [line(0), line(1)],
            ends,
            paths: paths.clone(),
            woken,
            orders,
            lateness: Histogram::new_with_max(LATENESS_MAX_NS, 3).ok(),
            real_time: false,
        };
        let run = move || {
            pump.real_time = scheduling::set_fifo_priority(PRIORITY).is_ok();
            // Without, timers are 50 µs late, which the report shows.
            let _ = scheduling::set_exact_timers();
            pump.run();
        };
        let thread = std::thread::Builder::new().name("serial".into()).spawn(run);
        Ok(SerialPump { commands, wake, thread: Some(thread.map_err(SerialError::Terminal)?), paths })
    }

    /// The two ends, as programs open them.
    pub fn paths(&self) -> &[PathBuf; 2] {
        &self.paths
    }

    /// Pulls the plug.
    ///
    /// # Errors
    /// The line ended by itself.
    pub fn unplug(&self, what: Unplug) -> Result<SerialReport, SerialError> {
        self.ask(|reply| Command::Unplug(what, reply))
    }

    /// Puts it back.
    ///
    /// # Errors
    /// The line ended by itself.
    pub fn plug(&self) -> Result<SerialReport, SerialError> {
        self.ask(Command::Plug)
    }

    /// Counters since the start.
    pub fn report(&self) -> Result<SerialReport, SerialError> {
        self.ask(Command::Report)
    }

    /// Ends the line and removes its paths.
    pub fn stop(mut self) -> Result<SerialReport, SerialError> {
        let report = self.ask(Command::Stop);
        self.join();
        report
    }

    fn ask(
        &self,
        command: impl FnOnce(Sender<SerialReport>) -> Command,
    ) -> Result<SerialReport, SerialError> {
        let (reply, report) = channel();
        self.commands.send(command(reply)).map_err(|_| SerialError::Ended)?;
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).map_err(|_| SerialError::Ended)?;
        report.recv().map_err(|_| SerialError::Ended)
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been printed; the report is missing, and that is reported.
            let _ = thread.join();
        }
    }
}

impl Drop for SerialPump {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.ask(Command::Stop);
            self.join();
        }
    }
}

fn now() -> Instant<Truth> {
    Instant::from_ns(clock::now_ns())
}

/// One end: the side we carry bytes for, and the other one held open, so that a program's closing it
/// does not look like a plug pulled.
#[derive(Debug)]
struct End {
    master: OwnedFd,
    _held: OwnedFd,
}

fn end(path: &Path) -> Result<End, SerialError> {
    let (end, name) = terminal().map_err(|error| SerialError::Terminal(error.into()))?;
    let cannot = |error| SerialError::Path { path: path.into(), error };
    // Renamed into place, so that there is never a moment without a path.
    let unfinished = path.with_extension("new");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(cannot)?;
    }
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_symlink() => return Err(cannot(io::ErrorKind::AlreadyExists.into())),
        _ => {}
    }
    let _ = fs::remove_file(&unfinished);
    symlink(name, &unfinished).and_then(|()| fs::rename(&unfinished, path)).map_err(cannot)?;
    Ok(end)
}

/// A pty in raw mode: bytes pass unchanged and at once.
fn terminal() -> rustix::io::Result<(End, String)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let mut attributes = tcgetattr(&master)?;
    attributes.make_raw();
    tcsetattr(&master, OptionalActions::Now, &attributes)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    let name = ptsname(&master, Vec::new())?.to_string_lossy().into_owned();
    let held = open(name.as_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((End { master, _held: held }, name))
}

struct Pump {
    /// From the first end to the second, and back.
    lines: [SerialLine; 2],
    ends: [Option<End>; 2],
    paths: [PathBuf; 2],
    woken: OwnedFd,
    orders: Receiver<Command>,
    lateness: Option<Histogram<u64>>,
    real_time: bool,
}

impl Pump {
    fn run(mut self) {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            self.take(&mut buffer);
            self.deliver(&mut buffer);
            if self.wait() && !self.obey() {
                self.unplug(Unplug::BothEnds);
                return;
            }
        }
    }

    fn take(&mut self, buffer: &mut [u8]) {
        for (line, end) in self.lines.iter_mut().zip(&self.ends) {
            let Some(end) = end else { continue };
            let room = line.room(now()).min(buffer.len());
            if room > 0
                && let Ok(count) = rustix::io::read(&end.master, &mut buffer[..room])
            {
                line.handle_bytes(now(), &buffer[..count]);
            }
        }
    }

    fn deliver(&mut self, buffer: &mut [u8]) {
        for (line, end) in self.lines.iter_mut().zip(self.ends.iter().rev()) {
            let (Some(end), Some(due)) = (end, line.poll_timeout()) else { continue };
            let count = line.poll_deliver(now(), buffer);
            if count == 0 {
                continue;
            }
            // What a full pty does not take is lost, as in a UART that is not read; the reader sees it missing.
            let written = rustix::io::write(&end.master, &buffer[..count]).unwrap_or(0);
            line.count_overrun(count - written);
            if let Some(lateness) = &mut self.lateness {
                lateness.saturating_record((now() - due).ns().max(0).unsigned_abs());
            }
        }
    }

    /// Waits for bytes, orders or the time; true if there is an order.
    fn wait(&mut self) -> bool {
        let at = now();
        let times = |line: &SerialLine| [line.poll_timeout(), line.poll_room()];
        let due = self.lines.iter().flat_map(times).flatten().min();
        let left = due.map_or(SLEEP_MAX, |due| due - at - SPIN_DEFAULT);
        let timeout = clock::timespec(left.clamp(Span::ZERO, SLEEP_MAX).ns());
        let mut descriptors = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for (line, end) in self.lines.iter_mut().zip(&self.ends) {
            // A full FIFO waits for the end of its next byte.
            if let Some(end) = end.as_ref().filter(|_| line.room(at) > 0) {
                descriptors.push(PollFd::from_borrowed_fd(end.master.as_fd(), PollFlags::IN));
            }
        }
        // Interrupted: nothing is ready.
        let any = poll(&mut descriptors, Some(&timeout)).unwrap_or(0) > 0;
        any && !descriptors[0].revents().is_empty()
    }

    /// Does what was asked; false if that was to stop.
    fn obey(&mut self) -> bool {
        // Empties the counter; how often it was raised does not matter.
        let _ = rustix::io::read(&self.woken, &mut [0; 8]);
        while let Ok(command) = self.orders.try_recv() {
            let (reply, goes_on) = match command {
                Command::Report(reply) => (reply, true),
                Command::Stop(reply) => (reply, false),
                Command::Unplug(what, reply) => {
                    self.unplug(what);
                    (reply, true)
                }
                Command::Plug(reply) => {
                    self.plug();
                    (reply, true)
                }
            };
            // The requester may be gone.
            let _ = reply.send(self.report());
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn plug(&mut self) {
        for (there, path) in self.ends.iter_mut().zip(&self.paths) {
            if there.is_none() {
                *there = end(path).ok();
            }
        }
        let plugged = self.is_plugged();
        self.lines.iter_mut().for_each(|line| line.set_plugged(now(), plugged));
    }

    fn unplug(&mut self, what: Unplug) {
        let count = match what {
            Unplug::BothEnds => 2,
            Unplug::FirstEnd => 1,
        };
        for (there, path) in self.ends.iter_mut().zip(&self.paths).take(count) {
            if there.take().is_some() {
                // Removed by another process is removed.
                let _ = fs::remove_file(path);
            }
        }
        self.lines.iter_mut().for_each(|line| line.set_plugged(now(), false));
    }

    fn is_plugged(&self) -> bool {
        self.ends.iter().all(Option::is_some)
    }

    fn report(&self) -> SerialReport {
        SerialReport {
            directions: [&self.lines[0], &self.lines[1]].map(|line| line.statistics()),
            plugged: self.is_plugged(),
            real_time: self.real_time,
            lateness_ns: self.lateness.as_ref().map(Lateness::of).unwrap_or_default(),
        }
    }
}
