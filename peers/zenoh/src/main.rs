//! Zenoh under test: peer to peer, without a router, without scouting.
//!
//! A node that subscribes listens on an address of its own, which the lab hands to the publisher of
//! its topic; no other node is contacted. Before `ready` both sides have seen each other's liveliness
//! token, which Zenoh declares after, and over the same link as, the publisher or subscriber.
//!
//! Links: `tcp` and `udp` are Zenoh's transports of those names, `shm` its shared-memory buffers with
//! TCP to tell of them. Over UDP a message is sent as a burst of datagrams of up to 64 KiB, and Zenoh
//! cannot enlarge the receive buffer of its socket: beyond `net.core.rmem_default` bursts are lost.
//! Options: `reliability=reliable|best_effort` (Zenoh's own word for a publisher. It chooses a link where there are
//! several; what is lost is repaired by TCP alone, never over `udp`), `congestion=block|drop` (what a full transmission queue
//! does to a message), `express=1` (never wait to batch messages), `tcp_congestion=cubic|bbr|…` (of all TCP of the node's network
//! namespace, for Zenoh does not choose; without it the machine's own, which `ready` names). Zenoh knows no deadline.

use std::collections::BTreeMap;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, ExitCode};
use std::time::Duration;

use noctule_peer::{Deliver, Description, Open, Outgoing, Peer, PeerError, Role, Transport, Wait};
use noctule_sys::clock;
use zenoh::Wait as _;
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Reliability};
use zenoh::sample::Sample;
use zenoh::shm::{BlockOn, GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder};
use zenoh::{Config, Session};

const PAYLOAD_BYTES_MAX: u64 = 64 << 20;
const MATCH_TIMEOUT_NS: i64 = 10_000_000_000;
const MATCH_POLL_NS: i64 = 5_000_000;
/// The shared-memory pool holds the window, this many messages more, and this many bytes of bookkeeping.
const POOL_SPARE_MESSAGES: usize = 8;
const POOL_SPARE_BYTES: usize = 1 << 20;

/// Which congestion control TCP connections of this network namespace begin with.
const TCP_CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

fn tcp_congestion() -> String {
    std::fs::read_to_string(TCP_CONGESTION).map_or_else(|_| "unknown".into(), |name| name.trim().to_owned())
}

/// Sets it. A control that this host does not allow to everybody can be set in a namespace only with its routes (ip-route(8), `congctl`).
fn set_tcp_congestion(name: &str) -> io::Result<()> {
    match std::fs::write(TCP_CONGESTION, name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        other => return other,
    }
    let ip = |arguments: &[&str]| {
        let output = Command::new("ip").args(arguments).output()?;
        let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(output.stdout) } else { Err(io::Error::other(error)) }
    };
    let routes = ip(&["-oneline", "route", "show"])?;
    for route in String::from_utf8_lossy(&routes).lines() {
        let words: Vec<&str> = route.split_whitespace().collect();
        ip(&[&["route", "change"], &words[..], &["congctl", name]].concat())?;
    }
    Ok(())
}

fn main() -> ExitCode {
    noctule_peer::serve(&Zenoh)
}

struct Zenoh;

impl Peer for Zenoh {
    fn describe(&self) -> Description {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Description {
            name: "zenoh".into(),
            version: zenoh::GIT_VERSION.trim_start_matches('v').trim_end_matches("-release").into(),
            links: words(&["tcp", "udp", "shm"]),
            waits: vec![Wait::Spin, Wait::Block, Wait::Hybrid],
            modes: words(&["round_trip", "one_way", "chain", "fan_out"]),
            formats: words(&["raw"]),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        if open.wait == Wait::Spin && open.core.is_some() && open.priority > 0 {
            return Err(PeerError(
                "spinning with SCHED_FIFO starves zenoh's threads on the same core: use block".into(),
            ));
        }
        if let Some(name) = open.options.get("tcp_congestion") {
            let what = format!("option.tcp_congestion={name} cannot be set in this network namespace");
            set_tcp_congestion(name).map_err(|e| PeerError::of(&what, e))?;
        }
        let door = match open.link.as_str() {
            "tcp" | "shm" => Door::tcp(&open.bind_address),
            "udp" => Door::udp(&open.bind_address),
            other => {
                return Err(PeerError(format!("link={other} is not offered: use tcp, udp or shm")));
            }
        };
        let door = door.map_err(|e| PeerError::of(&format!("no port on {}", open.bind_address), e))?;
        Ok(Box::new(Endpoints {
            open: open.clone(),
            address: door.address.clone(),
            door: Some(door),
            live: None,
        }))
    }
}

/// A port held for the session that will listen on it: a session can only be configured with what to connect to
/// when it is opened, and that is not known before `connect`.
struct Door {
    address: String,
    _holder: Holder,
}

enum Holder {
    Tcp { _listener: TcpListener },
    Udp { _socket: UdpSocket },
}

impl Door {
    fn tcp(host: &str) -> io::Result<Self> {
        let listener = TcpListener::bind((host, 0))?;
        let address = format!("tcp/{}", listener.local_addr()?);
        Ok(Self { address, _holder: Holder::Tcp { _listener: listener } })
    }

    fn udp(host: &str) -> io::Result<Self> {
        let socket = UdpSocket::bind((host, 0))?;
        let address = format!("udp/{}", socket.local_addr()?);
        Ok(Self { address, _holder: Holder::Udp { _socket: socket } })
    }
}

struct Endpoints {
    open: Open,
    address: String,
    door: Option<Door>,
    live: Option<Live>,
}

/// Session and endpoints, once open. Dropped in this order.
struct Live {
    tokens: Vec<LivelinessToken>,
    subscriber: Option<Subscriber<FifoChannelHandler<Sample>>>,
    publisher: Option<Publisher<'static>>,
    pool: Option<ShmProvider<PosixShmProviderBackend>>,
    session: Session,
    _sweep: Sweep,
}

/// Removes the names of the shared-memory objects this process still maps. Some belong to statics of
/// Zenoh, which otherwise leaves them until the next Zenoh program starts. At close nobody of
/// the session will look for them any more.
struct Sweep;

impl Drop for Sweep {
    fn drop(&mut self) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let objects = maps.lines().filter_map(|line| line.find("/dev/shm/").map(|at| &line[at..]));
        for object in objects.filter(|object| object.ends_with(".zenoh")) {
            let _ = std::fs::remove_file(object);
        }
    }
}

fn session_config(open: &Open, listen: &str, readers: &[String]) -> Result<Config, PeerError> {
    // The echo's only partner, the initiator, has already connected to it.
    let connect: &[String] = if open.role == Role::Echo { &[] } else { readers };
    let json = format!(
        r#"{{
            mode: "peer",
            listen: {{ endpoints: ["{listen}"] }},
            connect: {{
                endpoints: [{}], timeout_ms: 10000, exit_on_failure: true,
                retry: {{ period_init_ms: 20, period_max_ms: 100 }},
            }},
            scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }},
            transport: {{ shared_memory: {{
                enabled: {}, mode: "init", transport_optimization: {{ enabled: false }},
            }} }},
        }}"#,
        connect.iter().map(|reader| format!("\"{reader}\"")).collect::<Vec<_>>().join(", "),
        open.link == "shm",
    );
    Config::from_json5(&json).map_err(|e| PeerError::of("the configuration was refused", e))
}

impl Live {
    fn start(open: &Open, config: Config) -> Result<Self, PeerError> {
        if open.link == "shm" {
            // Leftovers of a killed process of any Zenoh program.
            zenoh::shm::cleanup_orphaned_shm_segments();
        }
        let session = zenoh::open(config).wait().map_err(|e| PeerError::of("no session", e))?;
        let mut live =
            Self { tokens: vec![], subscriber: None, publisher: None, pool: None, session, _sweep: Sweep };
        if let Some(topic) = &open.subscribe {
            let queue = FifoChannel::new(open.window as usize);
            let subscriber = live.session.declare_subscriber(key(open, topic)).with(queue).wait();
            live.subscriber = Some(subscriber.map_err(|e| PeerError::of("no subscriber", e))?);
            live.declare_token(format!("{}/reader/{}", key(open, topic), open.node))?;
        }
        if let Some(topic) = &open.publish {
            let publisher = live
                .session
                .declare_publisher(key(open, topic))
                .congestion_control(congestion_control(open)?)
                .reliability(reliability(open)?)
                .express(open.options.get("express").is_some_and(|value| value == "1"))
                .wait();
            live.publisher = Some(publisher.map_err(|e| PeerError::of("no publisher", e))?);
            live.declare_token(format!("{}/writer", key(open, topic)))?;
        }
        if open.link == "shm" && open.publish.is_some() {
            let bytes = (open.window as usize + POOL_SPARE_MESSAGES) * open.payload_bytes + POOL_SPARE_BYTES;
            let pool = ShmProviderBuilder::default_backend(bytes).wait();
            live.pool = Some(pool.map_err(|e| PeerError::of("no shared memory", e))?);
        }
        Ok(live)
    }

    fn declare_token(&mut self, key: String) -> Result<(), PeerError> {
        let token = self.session.liveliness().declare_token(key).wait();
        self.tokens.push(token.map_err(|e| PeerError::of("no liveliness token", e))?);
        Ok(())
    }

    /// How many tokens match a key expression.
    fn counttokens(&self, key: &str) -> Result<usize, PeerError> {
        let replies = self.session.liveliness().get(key).timeout(Duration::from_millis(500)).wait();
        let replies = replies.map_err(|e| PeerError::of("liveliness cannot be asked for", e))?;
        Ok(replies.iter().filter(|reply| reply.result().is_ok()).count())
    }

    fn is_matched(&self, open: &Open) -> Result<bool, PeerError> {
        if let Some(topic) = &open.publish
            && self.counttokens(&format!("{}/reader/*", key(open, topic)))? < open.readers as usize
        {
            return Ok(false);
        }
        match &open.subscribe {
            Some(topic) => Ok(self.counttokens(&format!("{}/writer", key(open, topic)))? >= 1),
            None => Ok(true),
        }
    }
}

fn key(open: &Open, topic: &str) -> String {
    format!("{}/{topic}", open.session)
}

fn congestion_control(open: &Open) -> Result<CongestionControl, PeerError> {
    match open.options.get("congestion").map_or("block", String::as_str) {
        "block" => Ok(CongestionControl::Block),
        "drop" => Ok(CongestionControl::Drop),
        other => Err(PeerError(format!("option.congestion={other} is neither block nor drop"))),
    }
}

fn reliability(open: &Open) -> Result<Reliability, PeerError> {
    match open.options.get("reliability").map_or("reliable", String::as_str) {
        "reliable" => Ok(Reliability::Reliable),
        "best_effort" => Ok(Reliability::BestEffort),
        other => Err(PeerError(format!("option.reliability={other} is neither reliable nor best_effort"))),
    }
}

impl Transport for Endpoints {
    fn address(&self) -> Option<String> {
        self.open.subscribe.as_ref().map(|_| self.address.clone())
    }

    fn connect(&mut self, readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        let config = session_config(&self.open, &self.address, readers)?;
        drop(self.door.take());
        let live = Live::start(&self.open, config)?;
        let end_ns = clock::now_ns() + MATCH_TIMEOUT_NS;
        while !live.is_matched(&self.open)? {
            if clock::now_ns() > end_ns {
                return Err(PeerError("a writer or reader did not appear within 10 s".into()));
            }
            clock::sleep_until(clock::now_ns() + MATCH_POLL_NS);
        }
        self.live = Some(live);
        let option =
            |name: &str, otherwise: &str| self.open.options.get(name).cloned().unwrap_or(otherwise.into());
        Ok(BTreeMap::from([
            ("transport".into(), if self.open.link == "udp" { "udp" } else { "tcp" }.into()),
            ("shared_memory".into(), (self.open.link == "shm").to_string()),
            ("reliability".into(), option("reliability", "reliable")),
            ("congestion".into(), option("congestion", "block")),
            ("express".into(), option("express", "0")),
            ("tcp_congestion".into(), option("tcp_congestion", &tcp_congestion())),
            ("queue_messages".into(), self.open.window.to_string()),
        ]))
    }

    #[inline]
    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let Some(Live { publisher: Some(publisher), pool, .. }) = &self.live else {
            return Ok(());
        };
        let sent = match pool {
            None => publisher.put(message.bytes()).wait(),
            Some(pool) => {
                let memory =
                    pool.alloc(message.payload_bytes()).with_policy::<BlockOn<GarbageCollect>>().wait();
                let mut memory = memory.map_err(|e| PeerError::of("no shared memory could be lent", e))?;
                message.write_into(&mut memory);
                publisher.put(memory).wait()
            }
        };
        sent.map_err(|e| PeerError::of("cannot put", e))
    }

    #[inline]
    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(Live { subscriber: Some(subscriber), .. }) = &self.live else {
            return Ok(0);
        };
        let mut delivered = 0;
        while let Some(sample) = subscriber.try_recv().map_err(|e| PeerError::of("cannot receive", e))? {
            deliver(&sample.payload().to_bytes());
            delivered += 1;
        }
        Ok(delivered)
    }

    fn receive(&mut self, timeout: Duration, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(Live { subscriber: Some(subscriber), .. }) = &self.live else {
            return Ok(0);
        };
        let Some(sample) =
            subscriber.recv_timeout(timeout).map_err(|e| PeerError::of("cannot receive", e))?
        else {
            return Ok(0);
        };
        deliver(&sample.payload().to_bytes());
        Ok(1)
    }
}
