//! Aeron under test: exclusive publications over `aeron:ipc` and over UDP unicast, one per reader.
//!
//! Aeron never sleeps until a message comes: it polls, so `spin` is all it offers. Its media driver moves the messages of
//! a network and looks after those in shared memory; it lives in the nodes themselves and ends with them:
//!
//! - `shm` (`aeron:ipc`): the driver is a thread of node 0 that sleeps 1 ms between looks; it is not on the way of
//!   a message.
//! - `udp`: every node has its own driver and runs it inline (Aeron's *invoker* mode), with every message it sends and
//!   every look for one, because a spinning node and a spinning driver on one core would take turns by the slice. While
//!   the node does neither, a thread runs a cycle each millisecond: partners are answered, and what is left is sent.
//!
//! Reliability is Aeron's own: NAKs, in order, flow control by the receiver's window; a full window is waited for. There
//! is no deadline and no way to do without (but `reliable=false` for gaps, which no option here sets). Messages that fit
//! a packet are claimed in the log and written there; larger ones are offered, and reassembled by a fragment assembler.
//!
//! Option: `term_bytes=N`, length of a term buffer, a power of two; a message is at most an eighth of it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::Display;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};
use noctule_sys::clock;
use rusteron_media_driver::bindings::aeron_threading_mode_enum as ThreadingMode;
use rusteron_media_driver::{
    Aeron, AeronContext, AeronDriver, AeronDriverContext, AeronExclusivePublication,
    AeronFragmentClosureAssembler, AeronHeader, AeronSubscription, Handlers,
};

const PAYLOAD_BYTES_MAX: u64 = 8 << 20;
const TERM_BYTES: usize = 16 << 20;
const SOCKET_BUFFER_BYTES: usize = 2 << 20;
const STREAM: i32 = 1001;
const FRAGMENTS_AT_ONCE: usize = 32;
const MATCH_TIMEOUT_NS: i64 = 10_000_000_000;
/// Nodes wait for the lab without running anything: no client is declared dead meanwhile.
const LIVENESS: Duration = Duration::from_secs(120);
/// Between two looks of the client's conductor, which only keeps its entry alive.
const POLLS_PER_LOOK: u32 = 4096;

/// A driver that its node does not run is run this often.
const KEEPER_PERIOD_NS: i64 = 1_000_000;

fn main() -> ExitCode {
    noctule_peer::serve(&AeronPeer)
}

fn failed(what: &str) -> impl Fn(&dyn Display) -> PeerError {
    move |cause| PeerError::of(what, cause)
}

struct AeronPeer;

impl Peer for AeronPeer {
    fn describe(&self) -> Description {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Description {
            name: "aeron".into(),
            version: Aeron::version_text().into(),
            links: words(&["shm", "udp"]),
            waits: vec![Wait::Spin],
            modes: words(&["round_trip", "one_way", "chain", "fan_out"]),
            formats: words(&["raw"]),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let term_bytes = match open.options.get("term_bytes") {
            None => TERM_BYTES.max((open.payload_bytes * 8 + 1024).next_power_of_two()),
            Some(text) => {
                text.parse().map_err(|_| PeerError(format!("option.term_bytes={text} is no number")))?
            }
        };
        let udp = open.link == "udp";
        let folder = match udp {
            true => format!("/dev/shm/noctule-aeron-{}-{}", open.session, open.node),
            false => format!("/dev/shm/noctule-aeron-{}", open.session),
        };
        let driver = match (udp, open.node) {
            (true, _) => Driver::inline(driver_with(&folder, term_bytes, None)?),
            (false, 0) => Driver::thread(&folder, term_bytes)?,
            (false, _) => Driver::Elsewhere,
        };
        let address = match (&open.subscribe, udp) {
            (Some(_), true) => Some(free_port(&open.bind_address)?),
            _ => None,
        };
        let assembler = AeronFragmentClosureAssembler::new();
        let assembler = assembler.map_err(|e| failed("no fragment assembler")(&e))?;
        let (open, live) = (open.clone(), None);
        Ok(Box::new(Ends { live, assembler, driver, folder, address, term_bytes, open, polls: 0 }))
    }
}

/// A port that was free a moment ago; Aeron binds it in `connect`.
fn free_port(host: &str) -> Result<String, PeerError> {
    let failed = failed("no UDP port");
    let socket = UdpSocket::bind((host, 0)).map_err(|e| failed(&e))?;
    Ok(socket.local_addr().map_err(|e| failed(&e))?.to_string())
}

/// A driver whose duty cycle its owner runs: alone, or with `idle` as the strategy between two cycles of a thread.
fn driver_with(
    folder: &str,
    term_bytes: usize,
    idle: Option<&std::ffi::CStr>,
) -> Result<AeronDriver, PeerError> {
    let failed = failed("the media driver does not start");
    let text = |text: &str| CString::new(text).map_err(|e| failed(&e));
    let make = || {
        let context = AeronDriverContext::new()?;
        let mode = match idle {
            None => ThreadingMode::AERON_THREADING_MODE_INVOKER,
            Some(_) => ThreadingMode::AERON_THREADING_MODE_SHARED,
        };
        context.set_threading_mode(mode)?;
        if let Some(idle) = idle {
            context.set_shared_idle_strategy(idle)?;
            context.set_shared_idle_strategy_init_args(c"1ms")?;
        }
        context.set_dir_delete_on_start(true)?;
        context.set_dir_delete_on_shutdown(true)?;
        context.set_client_liveness_timeout_ns(LIVENESS.as_nanos() as u64)?;
        context.set_publication_unblock_timeout_ns(2 * LIVENESS.as_nanos() as u64)?;
        context.set_driver_timeout_ms(LIVENESS.as_millis() as u64)?;
        context.set_term_buffer_length(term_bytes)?;
        context.set_ipc_term_buffer_length(term_bytes)?;
        context.set_term_buffer_sparse_file(false)?;
        context.set_socket_so_rcvbuf(SOCKET_BUFFER_BYTES)?;
        context.set_socket_so_sndbuf(SOCKET_BUFFER_BYTES)?;
        Ok(context)
    };
    let context: Result<AeronDriverContext, rusteron_media_driver::AeronCError> = make();
    let context = context.map_err(|e| failed(&e))?;
    context.set_dir(&text(folder)?).map_err(|e| failed(&e))?;
    let driver = AeronDriver::new(&context).map_err(|e| failed(&e))?;
    driver.start(true).map_err(|e| failed(&e))?;
    Ok(driver)
}

/// Which process runs the media driver.
enum Driver {
    /// This node's thread, between messages; and the keeper while that does not.
    Inline { _keeper: Keeper, driver: Arc<Mutex<AeronDriver>>, cycles: Arc<AtomicU64> },
    /// A thread of this node.
    Thread { _keeper: Keeper },
    /// Another node.
    Elsewhere,
}

/// A thread that ends when this is dropped.
struct Keeper {
    runs: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start(work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let runs = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&runs);
        Self { runs, thread: Some(std::thread::spawn(move || work(&flag))) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.runs.store(false, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Driver {
    fn inline(driver: AeronDriver) -> Self {
        let driver = Arc::new(Mutex::new(driver));
        let cycles = Arc::new(AtomicU64::new(0));
        let (kept, seen) = (Arc::clone(&driver), Arc::clone(&cycles));
        let _keeper = Keeper::start(move |runs| {
            let mut last = 0;
            while runs.load(Ordering::Relaxed) {
                clock::sleep_until(clock::now_ns() + KEEPER_PERIOD_NS);
                let now = seen.load(Ordering::Relaxed);
                if now == last
                    && let Ok(driver) = kept.try_lock()
                {
                    // A fault is the node's to report: it meets the same one in its own next cycle.
                    let _ = driver.main_do_work();
                }
                last = now;
            }
        });
        Self::Inline { _keeper, driver, cycles }
    }

    fn thread(folder: &str, term_bytes: usize) -> Result<Self, PeerError> {
        let folder = folder.to_owned();
        let (started, waits) = std::sync::mpsc::channel();
        let _keeper = Keeper::start(move |runs| {
            let driver = driver_with(&folder, term_bytes, Some(c"sleeping"));
            let _ = started.send(driver.as_ref().map(|_| ()).map_err(PeerError::clone));
            let Ok(driver) = driver else { return };
            while runs.load(Ordering::Relaxed) {
                // Without a driver the clients say that it has gone.
                let Ok(done) = driver.main_do_work() else { return };
                driver.main_idle_strategy(done);
            }
        });
        waits.recv().map_err(|e| failed("the media driver does not start")(&e))??;
        Ok(Self::Thread { _keeper })
    }

    /// One duty cycle, where it is this thread's to run.
    #[inline]
    fn work(&self) -> Result<(), PeerError> {
        if let Self::Inline { driver, cycles, .. } = self {
            cycles.store(cycles.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            let driver = driver.lock().map_err(|e| failed("the media driver")(&e))?;
            driver.main_do_work().map_err(|e| failed("the media driver")(&e))?;
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Inline { .. } => "inline",
            Self::Thread { .. } => "thread",
            Self::Elsewhere => "of node 0",
        }
    }
}

// Dropped in this order: what is registered with the client, the client, the driver.
struct Ends {
    live: Option<Live>,
    assembler: AeronFragmentClosureAssembler,
    driver: Driver,
    folder: String,
    address: Option<String>,
    term_bytes: usize,
    open: Open,
    polls: u32,
}

/// Publications and subscription, once connected.
struct Live {
    publications: Vec<AeronExclusivePublication>,
    subscription: Option<AeronSubscription>,
    /// Messages up to this many bytes are claimed.
    claimed_bytes: usize,
    client: Aeron,
}

/// Receiver of the messages of one poll, and their count.
struct Delivery<'a, 'b> {
    deliver: &'a mut Deliver<'b>,
    messages: usize,
}

fn take(delivery: &mut Delivery<'_, '_>, message: &[u8], _: AeronHeader) {
    (delivery.deliver)(message);
    delivery.messages += 1;
}

impl Transport for Ends {
    fn address(&self) -> Option<String> {
        self.address.clone()
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        let end_ns = clock::now_ns() + MATCH_TIMEOUT_NS;
        let failed = failed("cannot connect");
        let client = self.client(end_ns)?;
        let stream = |topic: &str| STREAM + topic.trim_start_matches('t').parse::<i32>().unwrap_or(0);
        let channel = |address: Option<&String>| {
            let channel =
                address.map_or("aeron:ipc".into(), |address| format!("aeron:udp?endpoint={address}"));
            CString::new(channel).map_err(|e| failed(&e))
        };
        let mut live = Live { publications: vec![], subscription: None, claimed_bytes: 0, client };
        if let Some(topic) = &self.open.subscribe {
            let channel = channel(self.address.as_ref())?;
            let added =
                live.client.async_add_subscription(&channel, stream(topic), Handlers::NONE, Handlers::NONE);
            let added = added.map_err(|e| failed(&e))?;
            live.subscription =
                Some(self.until(&live.client, end_ns, || added.poll().map_err(|e| failed(&e)))?);
        }
        if let Some(topic) = &self.open.publish {
            let addresses: Vec<Option<&String>> =
                if readers.is_empty() { vec![None] } else { readers.iter().map(Some).collect() };
            for address in addresses {
                let added = live.client.async_add_exclusive_publication(&channel(address)?, stream(topic));
                let added = added.map_err(|e| failed(&e))?;
                let publication =
                    self.until(&live.client, end_ns, || added.poll().map_err(|e| failed(&e)))?;
                let constants = publication.get_constants().map_err(|e| failed(&e))?;
                live.claimed_bytes = constants.max_payload_length();
                live.publications.push(publication);
            }
        }
        let images = usize::from(self.open.subscribe.is_some());
        self.until(&live.client, end_ns, || {
            let heard = live.publications.iter().all(AeronExclusivePublication::is_connected);
            let hears = live
                .subscription
                .as_ref()
                .is_none_or(|s| s.image_count().is_ok_and(|n| n as usize >= images));
            Ok((heard && hears).then_some(()))
        })?;
        // Readers of aeron:ipc share one publication, which is connected with the first; the others say for
        // themselves, before they are ready, that they have its image.
        let settings = [
            ("term_bytes", self.term_bytes.to_string()),
            ("claimed_bytes", live.claimed_bytes.to_string()),
            ("driver", self.driver.name().into()),
        ];
        self.live = Some(live);
        Ok(settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    #[inline]
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let Self { live: Some(live), driver, .. } = self else { return Ok(()) };
        let length = message.payload_bytes();
        for publication in &live.publications {
            loop {
                let sent = if length <= live.claimed_bytes {
                    publication.try_claim_owned(length).and_then(|mut claim| {
                        message.write_into(claim.data());
                        claim.commit().map_err(rusteron_media_driver::AeronOfferError::Error)
                    })
                } else {
                    publication.offer(message.bytes())
                };
                match sent {
                    Ok(_) => break,
                    Err(error) if error.is_retryable() && publication.is_connected() => {
                        driver.work()?;
                        if !matches!(driver, Driver::Inline { .. }) {
                            std::thread::yield_now();
                        }
                    }
                    Err(error) => return Err(failed("cannot offer")(&error)),
                }
            }
        }
        driver.work()
    }

    #[inline]
    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Self { live: Some(live), driver, assembler, polls, .. } = self else { return Ok(0) };
        driver.work()?;
        *polls = polls.wrapping_add(1);
        if *polls % POLLS_PER_LOOK == 0 {
            live.client.main_do_work().map_err(|e| failed("the client's conductor")(&e))?;
        }
        let Some(subscription) = &live.subscription else { return Ok(0) };
        let mut delivery = Delivery { deliver, messages: 0 };
        let polled = assembler.poll(subscription, &mut delivery, take, FRAGMENTS_AT_ONCE);
        polled.map_err(|e| failed("cannot poll")(&e))?;
        Ok(delivery.messages)
    }

    fn receive(&mut self, _: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        // Only `spin` is offered; the harness never blocks.
        self.try_receive(deliver)
    }
}

impl Ends {
    /// A client of the driver, as soon as that is there.
    fn client(&self, end_ns: i64) -> Result<Aeron, PeerError> {
        let failed = failed("no Aeron client");
        let folder = CString::new(self.folder.as_str()).map_err(|e| failed(&e))?;
        let make = || {
            let context = AeronContext::new()?;
            context.set_dir(&folder)?;
            context.set_driver_timeout_ms(LIVENESS.as_millis() as u64)?;
            context.set_use_conductor_agent_invoker(true)?;
            context.set_pre_touch_mapped_memory(true)?;
            let client = Aeron::new(&context)?;
            client.start()?;
            Ok(client)
        };
        // The driver of another node may still be starting.
        loop {
            self.driver.work()?;
            let made: Result<Aeron, rusteron_media_driver::AeronCError> = make();
            match made {
                Ok(client) => return Ok(client),
                Err(error) if clock::now_ns() > end_ns => return Err(failed(&error)),
                Err(_) => clock::sleep_until(clock::now_ns() + 1_000_000),
            }
        }
    }

    /// Runs what must run until `found` finds something.
    fn until<T>(
        &self,
        client: &Aeron,
        end_ns: i64,
        mut found: impl FnMut() -> Result<Option<T>, PeerError>,
    ) -> Result<T, PeerError> {
        loop {
            self.driver.work()?;
            client.main_do_work().map_err(|e| failed("the client's conductor")(&e))?;
            if let Some(found) = found()? {
                return Ok(found);
            }
            if clock::now_ns() > end_ns {
                return Err(PeerError("a writer or reader did not appear within 10 s".into()));
            }
            if !matches!(self.driver, Driver::Inline { .. }) {
                clock::sleep_until(clock::now_ns() + 100_000);
            }
        }
    }
}
