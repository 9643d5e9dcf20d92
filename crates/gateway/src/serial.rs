//! A serial device: frames, at the pace of the line.
//!
//! Bytes written to a tty wait in the kernel, and nothing newer can overtake them there. So this side
//! keeps the books of the wire: a message is handed over when the one before is nearly out, and until then
//! samples wait in the agent, where newer ones replace older.
//!
//! A device that is unplugged is given [`UNPLUGGED_MAX`] to come back. Until then its clients stay on the bus and
//! what is for them waits, so that a loose cable costs no reliable sample.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use noctule_framing::{AGENT_ADDRESS, Decoder, encode, encoded_bytes_max};
use noctule_sys::clock::{raw_ns, timespec};
use noctule_timebase::Span;
use noctule_xrce::ClientAddress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::inlet::Inlet as _;
use crate::line::{Line, Port, Sent, now};

/// Speed unless another is named: PX4's companion port.
pub const BAUD_DEFAULT: u32 = 921_600;
/// Longest message on a serial line.
const MESSAGE_BYTES_MAX: u16 = 4096;
/// A message is handed over when no more than this is left of the one before.
const AHEAD: Span = Span::from_us(500);
/// A device that is not there is looked for this often.
const LOOK_AGAIN: Span = Span::from_ms(100);
/// A device that is gone for longer takes its clients with it.
const UNPLUGGED_MAX: Span = Span::from_s(3);
/// Bytes read at once.
const READ_BYTES: usize = 4096;
/// Bytes of a frame that carries time stamps, at least: `docs/spec/xrce.md`.
const STAMP_FRAME_BYTES: u32 = 39;
/// Bytes of a frame that acknowledges.
const ACKNOWLEDGEMENT_FRAME_BYTES: u32 = 20;
/// An acknowledgement waits this long for an answer to go first, if it takes at least [`HOLD_WORTH`] on the line.
const HOLD: Span = Span::from_us(500);
/// The least time on the line of an acknowledgement that waits: up to 200,000 baud. On faster lines there is little to win for one more
/// wake-up.
const HOLD_WORTH: Span = Span::from_ms(1);
/// How fast a UART may be that is still understood, in percent of its nominal speed: the least that is known of its
/// wire time.
const FASTEST_PERCENT: i64 = 103;
/// Names, up to the number, of devices that are UARTs or have one behind them. All others carry bytes as fast as
/// they please, whatever speed they are set to: pseudo-terminals, boards' own USB (`ttyACM`), radio links.
const UARTS: &[&str] = &[
    "ttyS", "ttyUSB", "ttyAMA", "ttyTHS", "ttymxc", "ttyLP", "ttyPS", "ttyUL", "ttySC", "ttySAC", "ttySTM",
    "ttyMSM", "ttyHS", "ttyO", "ttyAML", "ttyXRUSB", "ttyMXUSB", "ttyAP", "ttyFIQ",
];

/// Path and speed of a serial device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) path: PathBuf,
    pub(crate) baud: u32,
}

/// The sending side, shared between the line and its thread.
#[derive(Clone, Debug)]
pub(crate) struct SerialPort(Arc<Mutex<Outgoing>>);

#[derive(Debug)]
struct Outgoing {
    file: Option<Arc<File>>,
    /// Duration of a byte on the wire; zero where it is not known, on devices that have their own pace.
    byte: Span,
    frame: Vec<u8>,
    /// Bytes that the device has not accepted yet.
    unsent: Vec<u8>,
    /// When the wire will be idle, by the books.
    idle_ns: i64,
    blocked: BTreeSet<ClientAddress>,
}

impl SerialPort {
    pub(crate) fn new() -> SerialPort {
        SerialPort(Arc::new(Mutex::new(Outgoing {
            file: None,
            byte: Span::ZERO,
            frame: Vec::new(),
            unsent: Vec::new(),
            idle_ns: 0,
            blocked: BTreeSet::new(),
        })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Outgoing) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Port for SerialPort {
    fn send(&mut self, to: ClientAddress, message: &[u8]) -> Sent {
        let ClientAddress::Serial(address) = to else { return Sent::Done };
        self.with(|outgoing| {
            outgoing.put(address, message);
            if outgoing.is_free() {
                return Sent::Done;
            }
            outgoing.blocked.insert(to);
            Sent::Blocked
        })
    }
}

impl Outgoing {
    fn put(&mut self, address: u8, message: &[u8]) {
        self.frame.resize(encoded_bytes_max(message.len()), 0);
        // Agents send nothing longer than their clients take, which is at most 64 KiB.
        let Ok(length) = encode(AGENT_ADDRESS, address, message, &mut self.frame) else { return };
        self.unsent.extend_from_slice(&self.frame[..length]);
        let wire_ns = self.byte.ns() * length as i64;
        self.idle_ns = self.idle_ns.max(raw_ns()) + wire_ns;
        self.flush();
    }

    fn flush(&mut self) {
        let Some(file) = &self.file else { return self.unsent.clear() };
        while !self.unsent.is_empty() {
            match rustix::io::write(&**file, &self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(rustix::io::Errno::INTR) => {}
                // Full: later. Gone: the reader will find out.
                Err(_) => return,
            }
        }
    }

    /// Whether another message can be handed over.
    fn is_free(&self) -> bool {
        self.file.is_some() && self.unsent.is_empty() && raw_ns() >= self.idle_ns - AHEAD.ns()
    }
}

/// The driver of a serial device, which looks for it when it is not there.
#[derive(Debug)]
pub(crate) struct SerialDriver {
    device: Device,
    port: SerialPort,
    decoder: Decoder,
    /// Clients whose frames have come on the line.
    heard: BTreeSet<ClientAddress>,
}

impl SerialDriver {
    pub(crate) fn new(device: Device, port: SerialPort) -> SerialDriver {
        SerialDriver { device, port, decoder: Decoder::new(MESSAGE_BYTES_MAX), heard: BTreeSet::new() }
    }

    /// Reads until the line is stopped.
    pub(crate) fn run(mut self, line: &Arc<Line>) {
        let mut buffer = vec![0; READ_BYTES];
        let mut is_missing = false;
        let mut gone_at_ns = 0;
        while !line.is_stopped() {
            match open(&self.device, line) {
                Ok(file) => {
                    line.notice(format!("open at {} baud", self.device.baud));
                    is_missing = false;
                    self.plug(file, line);
                    self.read_until_gone(line, &mut buffer);
                    self.unplug(line);
                    gone_at_ns = raw_ns();
                }
                Err(fault) if !is_missing => {
                    is_missing = true;
                    line.notice(fault.to_string());
                }
                Err(_) => {}
            }
            if raw_ns() - gone_at_ns >= UNPLUGGED_MAX.ns() {
                for address in std::mem::take(&mut self.heard) {
                    line.handle_lost(address);
                }
            }
            wait(line, &mut [], Some(LOOK_AGAIN));
        }
    }

    fn plug(&mut self, file: File, line: &Arc<Line>) {
        let is_uart = is_uart(&self.device.path);
        let wire = |bytes| if is_uart { wire_time(self.device.baud, bytes) } else { Span::ZERO };
        line.set_wire(Span::from_ns(wire(STAMP_FRAME_BYTES).ns() * 100 / FASTEST_PERCENT));
        self.decoder.reset();
        self.port.with(|outgoing| {
            outgoing.file = Some(Arc::new(file));
            outgoing.byte = wire(1);
            outgoing.idle_ns = 0;
            outgoing.blocked.clear();
        });
        for address in &self.heard {
            line.handle_unblocked(*address);
        }
    }

    fn unplug(&mut self, line: &Arc<Line>) {
        self.port.with(|outgoing| {
            outgoing.file = None;
            outgoing.unsent.clear();
        });
        for address in &self.heard {
            line.handle_blocked(*address);
        }
    }

    fn read_until_gone(&mut self, line: &Arc<Line>, buffer: &mut [u8]) {
        let Some(file) = self.port.with(|outgoing| outgoing.file.clone()) else { return };
        while !line.is_stopped() {
            let (unblock_after, is_stuck) = self.unblock(line);
            let flags = if is_stuck { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            let came = wait(line, &mut [PollFd::new(&*file, flags)], unblock_after);
            if came.contains(PollFlags::OUT) {
                self.port.with(Outgoing::flush);
            }
            if came.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
                && !self.read(&file, buffer, line)
            {
                return line.notice("unplugged".to_owned());
            }
        }
    }

    /// Lets clients have the line that waited for it; when to look again, and whether the device must first
    /// take what is left.
    fn unblock(&self, line: &Arc<Line>) -> (Option<Span>, bool) {
        let freed = self.port.with(|outgoing| match outgoing.is_free() {
            true => std::mem::take(&mut outgoing.blocked),
            false => BTreeSet::new(),
        });
        for address in freed {
            line.handle_unblocked(address);
        }
        self.port.with(|outgoing| {
            let is_stuck = !outgoing.unsent.is_empty();
            let waits = !outgoing.blocked.is_empty() && !is_stuck;
            let left = Span::from_ns((outgoing.idle_ns - AHEAD.ns() - raw_ns()).max(0));
            (waits.then_some(left), is_stuck)
        })
    }

    /// Takes what is there; false if the device has gone.
    fn read(&mut self, file: &File, buffer: &mut [u8], line: &Arc<Line>) -> bool {
        let count = match rustix::io::read(file, &mut *buffer) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return true,
            Err(_) => return false,
        };
        let arrived = now();
        let mut bytes = &buffer[..count];
        while let Some(frame) = self.decoder.next_frame(&mut bytes) {
            if frame.destination != AGENT_ADDRESS {
                continue;
            }
            let from = ClientAddress::Serial(frame.source);
            self.heard.insert(from);
            line.handle_message(frame.payload, from, arrived);
        }
        true
    }
}

/// Waits for a device, a kick, the line's own time-out or `at_most`; what came of the device.
fn wait(line: &Arc<Line>, device: &mut [PollFd<'_>], at_most: Option<Span>) -> PollFlags {
    let at_most = at_most.map(|span| timespec(span.ns()));
    let timeout = [line.tick(), at_most]
        .into_iter()
        .flatten()
        .min_by_key(|time: &Timespec| (time.tv_sec, time.tv_nsec));
    let kicked = line.kicked();
    let mut descriptors = vec![PollFd::from_borrowed_fd(kicked, PollFlags::IN)];
    descriptors.extend(device.iter().cloned());
    // A signal, or a time-out: look anew.
    let _ = poll(&mut descriptors, timeout.as_ref());
    line.take_kick();
    descriptors.get(1).map_or(PollFlags::empty(), PollFd::revents)
}

/// Time that some bytes take on the wire of a UART.
fn wire_time(baud: u32, bytes: u32) -> Span {
    // No line is opened at 0 baud.
    Span::from_serial_bytes(bytes, baud).unwrap_or(Span::ZERO)
}

/// The longest that an acknowledgement waits for an answer on a line of this speed.
pub(crate) fn hold(baud: u32) -> Span {
    let is_worth_it = wire_time(baud, ACKNOWLEDGEMENT_FRAME_BYTES) >= HOLD_WORTH;
    if is_worth_it { HOLD } else { Span::ZERO }
}

/// Whether there is a wire of the speed that the device is set to.
fn is_uart(path: &Path) -> bool {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
    path.parent() == Some(Path::new("/dev")) && UARTS.contains(&kind)
}

/// Why a device is not open.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error("may not be opened; let your user: sudo usermod -aG dialout $USER, then log in again")]
    Permission,
    #[error("waiting for it to be there ({0})")]
    Missing(std::io::Error),
    #[error("{path} cannot be used ({cause}); name a serial device or a pseudo-terminal")]
    Unusable { path: PathBuf, cause: std::io::Error },
}

/// Opens a device and sets it up: raw, eight bits, no parity, no flow control, low latency.
///
/// # Errors
/// Why not and what to do, for people.
fn open(device: &Device, line: &Line) -> Result<File, OpenError> {
    let file = noctule_sys::serial::open(&device.path, device.baud).map_err(|cause| match cause.kind() {
        ErrorKind::PermissionDenied => OpenError::Permission,
        ErrorKind::NotFound => OpenError::Missing(cause),
        _ => OpenError::Unusable { path: device.path.clone(), cause },
    })?;
    if let Some(warning) = latency_timer(&device.path) {
        line.notice_once(warning);
    }
    Ok(file)
}

/// Warning about an FTDI adapter that holds bytes back.
fn latency_timer(path: &Path) -> Option<String> {
    let name = path.canonicalize().ok()?;
    let name = name.file_name()?.to_str()?.to_owned();
    let file = format!("/sys/class/tty/{name}/device/latency_timer");
    let ms: u32 = std::fs::read_to_string(&file).ok()?.trim().parse().ok()?;
    (ms > 1).then(|| {
        format!("the adapter keeps bytes back for up to {ms} ms; end that by: echo 1 | sudo tee {file}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_wait_on_slow_lines_only() {
        assert_eq!([57_600, 115_200, 230_400, 921_600].map(hold), [HOLD, HOLD, Span::ZERO, Span::ZERO]);
    }

    #[test]
    fn only_a_uart_is_said_to_have_a_wire() {
        for (path, wanted) in [
            ("/dev/ttyUSB0", true),
            ("/dev/ttyAMA10", true),
            ("/dev/ttyTHS1", true),
            ("/dev/ttyACM0", false),
            ("/dev/pts/3", false),
            ("/dev/rfcomm0", false),
            ("/tmp/ttyS0", false),
        ] {
            assert_eq!(is_uart(Path::new(path)), wanted, "{path}");
        }
    }
}
