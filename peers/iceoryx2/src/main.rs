//! iceoryx2 under test: slices of bytes in shared memory, lent for writing and for reading.
//!
//! A topic is one publish-subscribe service. Its queues overwrite the oldest message when they are
//! full (iceoryx2's default), with the depth of the window. Spinning polls the subscriber; blocking
//! and hybrid waits use iceoryx2's event service, and then every send is followed by a
//! notification, as the manual recommends.
//!
//! All files lie under one root of their own, so that no other iceoryx2 program of the host is
//! touched. What a killed node leaves is removed by iceoryx2 when the next node starts.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::time::Duration;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::event::PortFactory as EventService;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory as BytesService;
use iceoryx2_bb_elementary::package_version::PackageVersion;
use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};
use noctule_sys::clock;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

const ROOT: &str = "/tmp/noctule-iceoryx2";
const PREFIX: &str = "noctule_";
const PAYLOAD_BYTES_MAX: u64 = 64 << 20;
const MATCH_TIMEOUT_NS: i64 = 10_000_000_000;
const MATCH_POLL_NS: i64 = 1_000_000;
/// iceoryx2 waits with a socket's receive time-out, which the kernel rounds up to its tick, by several
/// milliseconds. Below this, as before a scheduled send, we poll the same socket to the nanosecond.
const COARSE_TIMEOUT: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    set_log_level(LogLevel::Error);
    noctule_peer::serve(&Iceoryx2)
}

type Bytes = BytesService<ipc::Service, [u8], ()>;
type Event = EventService<ipc::Service>;

struct Iceoryx2;

/// Wakes the subscribers of a topic.
struct Bell {
    notifier: Notifier<ipc::Service>,
    event: Event,
}

/// Is woken by the publisher of a topic.
struct Ear {
    listener: Listener<ipc::Service>,
    event: Event,
}

/// The topic a node publishes, and the services that know the listeners.
struct Outlet {
    publisher: Publisher<ipc::Service, [u8], ()>,
    service: Bytes,
    wake: Option<Bell>,
    readers: usize,
}

/// The topic a node subscribes to.
struct Inlet {
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    service: Bytes,
    wake: Option<Ear>,
}

// Fields are dropped in this order: ports and services before the node they belong to.
struct Endpoints {
    outlet: Option<Outlet>,
    inlet: Option<Inlet>,
    _node: Node<ipc::Service>,
    _sweep: Sweep,
    window: usize,
}

/// Removes what iceoryx2 keeps after its last node has gone: empty directories and one small object.
struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        // Only empty directories can be removed: while others run, this does nothing.
        for directory in ["nodes", "services", ""] {
            if std::fs::remove_dir(std::path::Path::new(ROOT).join(directory)).is_err() {
                return;
            }
        }
        for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PREFIX) && name.ends_with(".global_mgmt") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl Peer for Iceoryx2 {
    fn describe(&self) -> Description {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Description {
            name: "iceoryx2".into(),
            version: PackageVersion::get().to_string(),
            links: words(&["shm"]),
            waits: vec![Wait::Spin, Wait::Block, Wait::Hybrid],
            modes: words(&["round_trip", "one_way", "chain", "fan_out"]),
            formats: words(&["raw"]),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let node = create_node()?;
        let outlet = open.publish.as_ref().map(|topic| Outlet::new(&node, open, topic)).transpose()?;
        let inlet = open.subscribe.as_ref().map(|topic| Inlet::new(&node, open, topic)).transpose()?;
        Ok(Box::new(Endpoints { outlet, inlet, _node: node, _sweep: Sweep, window: open.window as usize }))
    }
}

fn create_node() -> Result<Node<ipc::Service>, PeerError> {
    let failed = |cause: String| PeerError::of("no iceoryx2 node", cause);
    let mut config = Config::default();
    let root = Path::new(ROOT.as_bytes()).map_err(|e| failed(format!("{e:?}")))?;
    config.global.set_root_path(&root);
    config.global.prefix = FileName::new(PREFIX.as_bytes()).map_err(|e| failed(format!("{e:?}")))?;
    NodeBuilder::new()
        .config(&config)
        // The lab decides when a peer ends.
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create()
        .map_err(|e| failed(e.to_string()))
}

fn service_name(open: &Open, topic: &str) -> Result<ServiceName, PeerError> {
    let name = format!("{}/{topic}", open.session);
    ServiceName::new(&name).map_err(|e| PeerError::of("the topic cannot be a service name", format!("{e:?}")))
}

fn bytes_service(node: &Node<ipc::Service>, open: &Open, topic: &str) -> Result<Bytes, PeerError> {
    node.service_builder(&service_name(open, topic)?)
        .publish_subscribe::<[u8]>()
        .subscriber_max_buffer_size(open.window as usize)
        .max_publishers(1)
        .max_subscribers(open.nodes as usize)
        .max_nodes(open.nodes as usize + 1)
        .history_size(0)
        .open_or_create()
        .map_err(|e| PeerError::of("no publish-subscribe service", e))
}

/// The event service that wakes sleepers; no node sleeps when all spin.
fn event_service(node: &Node<ipc::Service>, open: &Open, topic: &str) -> Result<Option<Event>, PeerError> {
    if open.wait == Wait::Spin {
        return Ok(None);
    }
    node.service_builder(&service_name(open, topic)?)
        .event()
        .max_listeners(open.nodes as usize)
        .max_notifiers(open.nodes as usize)
        .max_nodes(open.nodes as usize + 1)
        .open_or_create()
        .map(Some)
        .map_err(|e| PeerError::of("no event service", e))
}

impl Outlet {
    fn new(node: &Node<ipc::Service>, open: &Open, topic: &str) -> Result<Self, PeerError> {
        let service = bytes_service(node, open, topic)?;
        let publisher = service
            .publisher_builder()
            .initial_max_slice_len(open.payload_bytes)
            .create()
            .map_err(|e| PeerError::of("no publisher", e))?;
        let wake = match event_service(node, open, topic)? {
            None => None,
            Some(event) => {
                let notifier = event.notifier_builder().create();
                Some(Bell { notifier: notifier.map_err(|e| PeerError::of("no notifier", e))?, event })
            }
        };
        Ok(Self { publisher, service, wake, readers: open.readers as usize })
    }

    fn is_matched(&self) -> bool {
        self.service.dynamic_config().number_of_subscribers() >= self.readers
            && self
                .wake
                .as_ref()
                .is_none_or(|wake| wake.event.dynamic_config().number_of_listeners() >= self.readers)
    }
}

impl Inlet {
    fn new(node: &Node<ipc::Service>, open: &Open, topic: &str) -> Result<Self, PeerError> {
        let service = bytes_service(node, open, topic)?;
        let subscriber =
            service.subscriber_builder().create().map_err(|e| PeerError::of("no subscriber", e))?;
        let wake = match event_service(node, open, topic)? {
            None => None,
            Some(event) => {
                let listener = event.listener_builder().create();
                Some(Ear { listener: listener.map_err(|e| PeerError::of("no listener", e))?, event })
            }
        };
        Ok(Self { subscriber, service, wake })
    }

    fn is_matched(&self) -> bool {
        self.service.dynamic_config().number_of_publishers() >= 1
            && self.wake.as_ref().is_none_or(|wake| wake.event.dynamic_config().number_of_notifiers() >= 1)
    }
}

impl Transport for Endpoints {
    fn connect(&mut self, _readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        let end_ns = clock::now_ns() + MATCH_TIMEOUT_NS;
        let matched = |endpoints: &Self| {
            endpoints.outlet.as_ref().is_none_or(Outlet::is_matched)
                && endpoints.inlet.as_ref().is_none_or(Inlet::is_matched)
        };
        while !matched(self) {
            if clock::now_ns() > end_ns {
                return Err(PeerError("a writer or reader did not appear within 10 s".into()));
            }
            clock::sleep_until(clock::now_ns() + MATCH_POLL_NS);
        }
        // Maps the partners' memory now rather than with the first message.
        if let Some(outlet) = &self.outlet {
            outlet
                .publisher
                .update_connections()
                .map_err(|e| PeerError::of("no connection to a subscriber", e))?;
        }
        if let Some(inlet) = &self.inlet {
            inlet
                .subscriber
                .update_connections()
                .map_err(|e| PeerError::of("no connection to the publisher", e))?;
        }
        Ok(BTreeMap::from([
            ("queue_messages".into(), self.window.to_string()),
            ("overflow".into(), "oldest is overwritten".into()),
        ]))
    }

    #[inline]
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let Some(outlet) = &self.outlet else {
            return Ok(());
        };
        let sample = outlet
            .publisher
            .loan_slice_uninit(message.payload_bytes())
            .map_err(|e| PeerError::of("no memory could be lent", e))?;
        // SAFETY: the sample is a part of a mapped shared-memory object: the kernel zeroed it and only
        // bytes were ever written to it, and every value of a byte is valid. Initialising it once
        // more would write the whole payload, which lending is there to avoid.
        let mut sample = unsafe { sample.assume_init() };
        message.write_into(sample.payload_mut());
        sample.send().map_err(|e| PeerError::of("cannot send", e))?;
        if let Some(Bell { notifier, .. }) = &outlet.wake {
            notifier.notify().map_err(|e| PeerError::of("cannot notify", e))?;
        }
        Ok(())
    }

    #[inline]
    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(inlet) = &self.inlet else {
            return Ok(0);
        };
        let mut delivered = 0;
        while let Some(sample) = inlet.subscriber.receive().map_err(|e| PeerError::of("cannot receive", e))? {
            deliver(sample.payload());
            delivered += 1;
        }
        Ok(delivered)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        loop {
            let woken = match self.inlet.as_ref().and_then(|inlet| inlet.wake.as_ref()) {
                Some(ear) => ear.wait(timeout)?,
                None => false,
            };
            let delivered = self.try_receive(deliver)?;
            // A notification may be left of a message that was taken earlier.
            if delivered > 0 || !woken {
                return Ok(delivered);
            }
        }
    }
}

impl Ear {
    /// Sleeps until the publisher notifies; false if it did not.
    fn wait(&self, timeout: Duration) -> Result<bool, PeerError> {
        let mut woken = false;
        let failed = |cause: &dyn std::fmt::Display| PeerError::of("cannot wait", cause);
        if timeout >= COARSE_TIMEOUT {
            self.listener.timed_wait(|_| woken = true, timeout).map_err(|e| failed(&e))?;
            return Ok(woken);
        }
        // SAFETY: the listener owns the descriptor, and outlives this borrow of it.
        let socket = unsafe { BorrowedFd::borrow_raw(self.listener.file_descriptor().native_handle()) };
        let timeout = clock::timespec(timeout.as_nanos() as i64);
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(failed(&error)),
        }
        self.listener.try_wait(|_| woken = true).map_err(|e| failed(&e))?;
        Ok(woken)
    }
}
