//! Floor of everything serial: messages of fixed size over a pseudo-terminal in raw mode.
//!
//! The reader owns the pair and reads its master side; the writer opens the other side by name.
//! There is no line speed: what a real UART adds is its wire time. The kernel holds little of it: two ends that
//! both wait for room to write would wait for ever, so an end that waits for room goes on reading.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::socket::{own_timeout, readable, start_pulse};
use super::stream::Assembler;

pub(super) struct Pty;

/// Bytes of messages that are held because they came while one was being written; more stay in the kernel.
const EARLY_BYTES_MAX: usize = 16 << 20;

struct Line {
    master: Option<OwnedFd>,
    name: Option<String>,
    outbound: Vec<OwnedFd>,
    assembler: Assembler,
    /// Messages that came while one was being written.
    early: VecDeque<Vec<u8>>,
    early_max: usize,
}

impl Peer for Pty {
    fn describe(&self) -> Description {
        super::description("pty", "pty", &[Wait::Spin, Wait::Block, Wait::Hybrid], 64 << 10)
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let (master, name) = match open.subscribe {
            Some(_) => {
                let (master, name) = create().map_err(|e| PeerError::of("cannot create a pty", e))?;
                (Some(master), Some(name))
            }
            None => (None, None),
        };
        Ok(Box::new(Line::new(master, name, open.payload_bytes)))
    }
}

fn create() -> Result<(OwnedFd, String), Errno> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    make_raw(&master)?;
    let name = ptsname(&master, Vec::new())?.to_string_lossy().into_owned();
    Ok((master, name))
}

fn open_to_write(name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty())?;
    make_raw(&slave)?;
    Ok(slave)
}

/// Bytes pass unchanged and at once: no echo, no line editing, no signals.
fn make_raw(terminal: impl AsFd) -> Result<(), Errno> {
    let mut attributes = tcgetattr(&terminal)?;
    attributes.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &attributes)
}

impl Line {
    fn new(master: Option<OwnedFd>, name: Option<String>, payload_bytes: usize) -> Line {
        let (outbound, early) = (Vec::new(), VecDeque::new());
        let early_max = (EARLY_BYTES_MAX / payload_bytes.max(1)).max(1);
        Line { master, name, outbound, assembler: Assembler::new(payload_bytes), early, early_max }
    }

    fn read(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(master) = &self.master else {
            return Ok(0);
        };
        match rustix::io::read(master, self.assembler.space()) {
            Ok(count) => Ok(self.assembler.advance(count, deliver)),
            Err(Errno::INTR | Errno::AGAIN) => Ok(0),
            Err(error) => Err(PeerError::of("cannot read the pty", error)),
        }
    }

    fn write(&mut self, line: usize, mut bytes: &[u8]) -> Result<(), PeerError> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.outbound[line], bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for_room(line)?,
                Err(error) => return Err(PeerError::of("cannot write the pty", error)),
            }
        }
        Ok(())
    }

    fn wait_for_room(&mut self, line: usize) -> Result<(), PeerError> {
        let mut waited = vec![PollFd::new(&self.outbound[line], PollFlags::OUT)];
        let reads = self.early.len() < self.early_max;
        waited.extend(self.master.iter().filter(|_| reads).map(|master| PollFd::new(master, PollFlags::IN)));
        match poll(&mut waited, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(PeerError::of("cannot wait for the pty", error)),
        }
        if waited.get(1).is_some_and(|master| master.revents().contains(PollFlags::IN)) {
            let mut early = std::mem::take(&mut self.early);
            let read = self.read(&mut |message| early.push_back(message.to_vec()));
            self.early = early;
            read?;
        }
        Ok(())
    }

    fn deliver_early(&mut self, deliver: &mut Deliver<'_>) -> usize {
        self.early.pop_front().map_or(0, |message| {
            deliver(&message);
            1
        })
    }
}

impl Transport for Line {
    fn address(&self) -> Option<String> {
        self.name.clone()
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        for reader in readers {
            let failed = |e: &dyn std::fmt::Display| PeerError::of(&format!("cannot open {reader}"), e);
            self.outbound.push(open_to_write(reader).map_err(|e| failed(&e))?);
        }
        start_pulse()?;
        Ok(BTreeMap::from([("line".into(), "raw, unpaced".into())]))
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let bytes = message.bytes();
        (0..self.outbound.len()).try_for_each(|line| self.write(line, bytes))
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        if !self.early.is_empty() {
            return Ok(self.deliver_early(deliver));
        }
        let Some(master) = &self.master else { return Ok(0) };
        if readable(master, Duration::ZERO)? { self.read(deliver) } else { Ok(0) }
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        if !self.early.is_empty() {
            return Ok(self.deliver_early(deliver));
        }
        loop {
            let Some(master) = &self.master else { return Ok(0) };
            if own_timeout(timeout).is_some() && !readable(master, timeout)? {
                return Ok(0);
            }
            match rustix::io::read(master, self.assembler.space()) {
                Ok(count) if self.assembler.advance(count, deliver) > 0 => return Ok(1),
                // Part of a message: the rest is on its way.
                Ok(_) => {}
                Err(Errno::INTR | Errno::AGAIN) => return Ok(0),
                Err(error) => return Err(PeerError::of("cannot read the pty", error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    const BYTES: usize = 4096;
    /// Far more than the kernel holds of a pty.
    const MESSAGES: u8 = 200;

    fn say_all_then_listen(mut line: Line) -> Vec<u8> {
        for number in 0..MESSAGES {
            line.write(0, &[number; BYTES]).unwrap();
        }
        let mut heard = Vec::new();
        while heard.len() < MESSAGES.into() {
            line.receive(Duration::from_millis(10), &mut |message| {
                assert!(message.len() == BYTES && message.iter().all(|byte| *byte == message[0]));
                heard.push(message[0]);
            })
            .unwrap();
        }
        heard
    }

    #[test]
    fn two_that_write_more_than_the_kernel_holds_before_they_read_do_not_wait_for_each_other() {
        let mut ends = [(); 2].map(|()| {
            let (master, name) = create().unwrap();
            Line::new(Some(master), Some(name), BYTES)
        });
        let names = ends.each_ref().map(|end| end.address().unwrap());
        for (end, reader) in ends.iter_mut().zip(names.iter().rev()) {
            end.outbound.push(open_to_write(reader).unwrap());
        }
        let (sender, heard) = channel();
        for end in ends {
            let sender = sender.clone();
            thread::spawn(move || sender.send(say_all_then_listen(end)));
        }
        for _ in 0..2 {
            let numbers = heard.recv_timeout(Duration::from_secs(60)).expect("they wait for each other");
            assert_eq!(numbers, (0..MESSAGES).collect::<Vec<u8>>());
        }
    }
}
