//! A speaker with a port and a clock: what a board's main loop is.
//!
//! A thread that waits for messages drives the port itself, so that nothing is handed from thread to thread. Until
//! somebody does, and for good in a node that only sends, a thread answers what arrives, clock exchanges above all:
//! a reply that is read late proves little.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use noctule_peer::{Deliver, Open, Outgoing, PeerError, Role, Transport};
use noctule_sys::clock;
use noctule_time_sync::Exchange;

use super::port::Port;
use super::{READY_WITHIN_NS, SideClock, Sides, Speaker};

/// Bytes read at once.
const READ_BYTES: usize = 4096;
/// A wait is never longer: what another thread sends may have changed the time-out.
const WAIT_NS_MAX: i64 = 10_000_000;
/// Exchanges of clocks that are kept: more than an hour at 10 Hz.
const EXCHANGES_MAX: usize = 1 << 16;

/// How a side's port is come by: a datagram's only when the address of the other side is known.
pub(super) type OpenPort = Box<dyn FnOnce(&[String]) -> Result<Port, PeerError> + Send>;

/// One side at work.
pub(super) struct Driver {
    open_port: Option<OpenPort>,
    speaker: Option<Box<dyn Speaker>>,
    sides: Sides,
    clock: SideClock,
    only_sends: bool,
    shared: Option<Arc<Shared>>,
    thread: Option<JoinHandle<Result<(), PeerError>>>,
    /// Firmware that looks at its port in turns does not look before.
    next_look_ns: i64,
    buffer: Vec<u8>,
    /// Processor and wall time at the first message sent or received.
    began_ns: Option<(i64, i64)>,
}

struct Shared {
    port: Port,
    clock: SideClock,
    state: Mutex<State>,
    lost_bytes: AtomicU64,
    stop: AtomicBool,
}

struct State {
    speaker: Box<dyn Speaker>,
    out: Vec<u8>,
    exchanges: Vec<Exchange>,
}

impl Driver {
    pub(super) fn new(
        open: &Open,
        (sides, clock): (Sides, SideClock),
        speaker: Box<dyn Speaker>,
        open_port: OpenPort,
    ) -> Driver {
        Driver {
            open_port: Some(open_port),
            speaker: Some(speaker),
            sides,
            clock,
            only_sends: open.role == Role::Source,
            shared: None,
            thread: None,
            next_look_ns: 0,
            buffer: vec![0; READ_BYTES],
            began_ns: None,
        }
    }

    fn shared(&self) -> Result<&Arc<Shared>, PeerError> {
        self.shared.as_ref().ok_or_else(|| PeerError("not connected yet; send connect first".into()))
    }

    /// Ends the thread that answered until now; what it failed of, if it did.
    fn take_over(&mut self) -> Result<(), PeerError> {
        let Some(thread) = self.thread.take_if(|_| !self.only_sends) else { return Ok(()) };
        self.shared()?.stop.store(true, Ordering::Relaxed);
        thread.join().unwrap_or_else(|_| Err(PeerError("the thread of the line panicked".into())))
    }

    /// Reads what is there, unless it is not yet time to look, and delivers what it comes to.
    fn look(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        self.take_over()?;
        let now_ns = clock::now_ns();
        if let Some(spin_delay_ns) = self.sides.spin_delay_ns {
            if now_ns < self.next_look_ns {
                return Ok(0);
            }
            self.next_look_ns = now_ns + spin_delay_ns;
        }
        let Some(shared) = &self.shared else { return Ok(0) };
        let mut state = shared.turn(&mut self.buffer)?;
        let mut count = 0;
        while let Some(message) = state.speaker.poll_message() {
            deliver(&message);
            count += 1;
        }
        if count > 0 {
            self.began_ns.get_or_insert((clock::process_cpu_ns(), now_ns));
        }
        Ok(count)
    }

    /// How long the port may be waited for, at most `left_ns`.
    fn wait_ns(&self, left_ns: i64) -> Result<i64, PeerError> {
        Ok(left_ns.min(self.shared()?.idle_ns()))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in all that is there and sends all that is due.
    fn turn(&self, buffer: &mut [u8]) -> Result<MutexGuard<'_, State>, PeerError> {
        let mut state = self.lock();
        loop {
            let count = self.port.read(buffer)?;
            if count == 0 {
                break;
            }
            state.speaker.handle_bytes(&buffer[..count], self.clock.now_ns());
        }
        while let Some(exchange) = state.speaker.poll_exchange() {
            if state.exchanges.len() < EXCHANGES_MAX {
                state.exchanges.push(exchange);
            }
        }
        self.transmit(&mut state)?;
        Ok(state)
    }

    fn transmit(&self, state: &mut State) -> Result<(), PeerError> {
        let State { speaker, out, .. } = state;
        out.clear();
        // Each is written before the next is requested: a time inside is that of its own departure.
        while speaker.poll_transmit(self.clock.now_ns(), out) {
            let lost = self.port.write(out)?;
            self.lost_bytes.fetch_add(lost as u64, Ordering::Relaxed);
            out.clear();
        }
        Ok(())
    }

    /// Until the speaker wants to be asked again.
    fn idle_ns(&self) -> i64 {
        let now_ns = self.clock.now_ns();
        self.lock().speaker.timeout_ns(now_ns).saturating_sub(now_ns).clamp(0, WAIT_NS_MAX)
    }

    /// Answers until it is stopped.
    fn answer(&self) -> Result<(), PeerError> {
        let mut buffer = vec![0; READ_BYTES];
        while !self.stop.load(Ordering::Relaxed) {
            drop(self.turn(&mut buffer)?);
            self.port.wait(self.idle_ns());
        }
        Ok(())
    }
}

impl Transport for Driver {
    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        let (Some(open_port), Some(speaker)) = (self.open_port.take(), self.speaker.take()) else {
            return Err(PeerError("connected already; open again first".into()));
        };
        let state = State { speaker, out: Vec::new(), exchanges: Vec::new() };
        let shared = Arc::new(Shared {
            port: open_port(readers)?,
            clock: self.clock.clone(),
            state: Mutex::new(state),
            lost_bytes: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let until_ns = clock::now_ns() + READY_WITHIN_NS;
        while !shared.turn(&mut self.buffer)?.speaker.is_ready() {
            if clock::now_ns() > until_ns {
                return Err(PeerError("the other side of the line did not answer within 10 s".into()));
            }
            shared.port.wait(shared.idle_ns());
        }
        let answering = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("line".into()).spawn(move || answering.answer());
        self.thread = Some(thread.map_err(|e| PeerError::of("cannot start a thread", e))?);
        self.shared = Some(shared);
        Ok(self.sides.settings())
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let stamp_ns = message.header().scheduled_ns;
        self.began_ns.get_or_insert_with(|| (clock::process_cpu_ns(), clock::now_ns()));
        let shared = self.shared()?;
        let mut state = shared.lock();
        state.speaker.send(message.bytes(), stamp_ns)?;
        shared.transmit(&mut state)
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        self.look(deliver)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let until_ns = clock::now_ns().saturating_add(i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
        loop {
            let count = self.look(deliver)?;
            let left_ns = until_ns - clock::now_ns();
            if count > 0 || left_ns <= 0 {
                return Ok(count);
            }
            match self.sides.spin_delay_ns {
                Some(_) => clock::sleep_until(self.next_look_ns.min(until_ns)),
                None => self.shared()?.port.wait(self.wait_ns(left_ns)?),
            }
        }
    }

    fn exchanges(&self) -> Vec<[i64; 4]> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let stamps = |e: &Exchange| [e.t1.ns(), e.t2.ns(), e.t3.ns(), e.t4.ns()];
        shared.lock().exchanges.iter().map(stamps).collect()
    }

    fn facts(&self) -> BTreeMap<String, f64> {
        let mut facts = BTreeMap::new();
        if let Some((cpu_ns, wall_ns)) = self.began_ns {
            let (used_ns, passed_ns) = (clock::process_cpu_ns() - cpu_ns, clock::now_ns() - wall_ns);
            facts.insert("cpu_percent".into(), 100.0 * used_ns as f64 / passed_ns.max(1) as f64);
        }
        let lost = self.shared.as_ref().map_or(0, |shared| shared.lost_bytes.load(Ordering::Relaxed));
        if lost > 0 {
            facts.insert("unwritten_bytes".into(), lost as f64);
        }
        facts
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.stop.store(true, Ordering::Relaxed);
        }
        if let Some(thread) = self.thread.take() {
            // An error of the thread has failed the next send as well.
            let _ = thread.join();
        }
    }
}
