//! Serial devices, raw.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// Opens a serial device or pseudo-terminal: raw, not waiting, at `baud` both ways.
pub fn open(path: &Path, baud: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let mut settings = tcgetattr(&file)?;
    settings.make_raw();
    settings.set_speed(baud)?;
    tcsetattr(&file, OptionalActions::Flush, &settings)?;
    Ok(file)
}
