//! Floor of everything serial: messages of fixed size over a pseudo-terminal in raw mode.
//!
//! The reader owns the pair and reads its master side; the writer opens the other side by name.
//! There is no line speed: what a real UART adds is its wire time.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use super::socket::{own_timeout, readable, start_pulse};
use super::stream::Assembler;

pub(super) struct Pty;

struct Line {
    master: Option<OwnedFd>,
    name: Option<String>,
    outbound: Vec<File>,
    assembler: Assembler,
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
        let assembler = Assembler::new(open.payload_bytes);
        Ok(Box::new(Line { master, name, outbound: Vec::new(), assembler }))
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

/// Bytes pass unchanged and at once: no echo, no line editing, no signals.
fn make_raw(terminal: impl AsFd) -> Result<(), Errno> {
    let mut attributes = tcgetattr(&terminal)?;
    attributes.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &attributes)
}

impl Line {
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
}

impl Transport for Line {
    fn address(&self) -> Option<String> {
        self.name.clone()
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        for reader in readers {
            let failed = |e: &dyn std::fmt::Display| PeerError::of(&format!("cannot open {reader}"), e);
            let slave = OpenOptions::new().read(true).write(true).open(reader).map_err(|e| failed(&e))?;
            make_raw(&slave).map_err(|e| failed(&e))?;
            self.outbound.push(slave);
        }
        start_pulse()?;
        Ok(BTreeMap::from([("line".into(), "raw, unpaced".into())]))
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let bytes = message.bytes();
        for line in &mut self.outbound {
            line.write_all(bytes).map_err(|e| PeerError::of("cannot write the pty", e))?;
        }
        Ok(())
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(master) = &self.master else { return Ok(0) };
        if readable(master, Duration::ZERO)? { self.read(deliver) } else { Ok(0) }
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
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
