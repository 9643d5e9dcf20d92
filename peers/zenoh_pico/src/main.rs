//! Zenoh-pico on a board against Zenoh on its companion computer, over a serial line.
//!
//! Two programs are this peer. The board is `board.c`, in C with Zenoh-pico as firmware has it; this program starts it for the node
//! that the option `board` names (0 by default) and hands it the lab's lines. The companion is this program: a Zenoh
//! router, as `zenohd` is one, that listens on its end of the line, and the application in the same process. Zenoh-pico cannot be on
//! both sides: it listens on TCP only.
//!
//! The companion waits for the board's liveliness token, which Zenoh-pico declares last and over the same line, and
//! then says `start`, so that everything either side has declared is known to the other.
//!
//! Both sides publish `express`: no message waits for others to share a batch.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use noctule_peer::{Delegate, Deliver, Description, Open, Outgoing, Peer, PeerError, Transport, Wait};
use noctule_sys::clock;
use zenoh::Wait as _;
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::sample::Sample;
use zenoh::{Config, Session};

/// Longest message of Zenoh-pico's serial link, less Zenoh's own words.
const PAYLOAD_BYTES_MAX: u64 = 1024;
const MATCH_TIMEOUT_NS: i64 = 10_000_000_000;
const MATCH_POLL_NS: i64 = 20_000_000;
/// The C program, beside this one's folder.
const BOARD: &str = "../../build/board";

fn main() -> ExitCode {
    noctule_peer::serve(&ZenohPico)
}

struct ZenohPico;

fn is_board(open: &Open) -> Result<bool, PeerError> {
    match open.options.get("board").map_or("0", String::as_str) {
        "0" => Ok(open.node == 0),
        "1" => Ok(open.node == 1),
        other => Err(PeerError(format!("board = \"{other}\": say 0 or 1, the node that is the board"))),
    }
}

impl Peer for ZenohPico {
    fn describe(&self) -> Description {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Description {
            name: "zenoh_pico".into(),
            version: zenoh::GIT_VERSION.trim_start_matches('v').trim_end_matches("-release").into(),
            links: words(&["serial"]),
            waits: vec![Wait::Block],
            modes: words(&["round_trip", "one_way"]),
            formats: words(&["raw"]),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        }
    }

    fn delegate(&self, open: &Open) -> Result<Option<Delegate>, PeerError> {
        if !is_board(open)? {
            return Ok(None);
        }
        let own = std::env::current_exe().map_err(|e| PeerError::of("this program is not to be found", e))?;
        let program: PathBuf = own.parent().map(|folder| folder.join(BOARD)).unwrap_or_default();
        if !program.is_file() {
            return Err(PeerError(format!(
                "{} is not there: run `cargo xtask peers zenoh_pico`",
                program.display()
            )));
        }
        let baud = open.options.get("baud").cloned().unwrap_or_default();
        Ok(Some(Delegate {
            program,
            words: BTreeMap::from([("option.baud".into(), baud)]),
            beside: Box::new(()),
        }))
    }

    fn open(&self, open: &Open) -> Result<Box<dyn Transport>, PeerError> {
        let (Some(device), Some(baud)) = (&open.device, open.options.get("baud")) else {
            return Err(PeerError("a serial line needs device=… and option.baud=…".into()));
        };
        let endpoint = format!("serial/{device}#baudrate={baud}");
        // Now: Zenoh-pico calls once and waits for the answer without end.
        let live = Live::start(open, &endpoint)?;
        Ok(Box::new(Companion { open: open.clone(), endpoint, live }))
    }
}

/// The companion's end.
struct Companion {
    open: Open,
    endpoint: String,
    live: Live,
}

/// Session and endpoints, once open. Dropped in this order.
struct Live {
    subscriber: Option<Subscriber<FifoChannelHandler<Sample>>>,
    publisher: Option<Publisher<'static>>,
    /// Never closed: with its last handle Zenoh waits for the reader of the serial link, which waits for the line. The
    /// process ends right after, and the line with it.
    session: ManuallyDrop<Session>,
}

impl Live {
    fn start(open: &Open, endpoint: &str) -> Result<Self, PeerError> {
        let json = format!(
            r#"{{
                mode: "router",
                listen: {{ endpoints: ["{endpoint}"] }},
                scouting: {{ multicast: {{ enabled: false }}, gossip: {{ enabled: false }} }},
            }}"#
        );
        let config =
            Config::from_json5(&json).map_err(|e| PeerError::of("the configuration was refused", e))?;
        let session = zenoh::open(config).wait().map_err(|e| PeerError::of("no session", e))?;
        let mut live = Self { subscriber: None, publisher: None, session: ManuallyDrop::new(session) };
        if let Some(topic) = &open.subscribe {
            let queue = FifoChannel::new(open.window as usize);
            let subscriber =
                live.session.declare_subscriber(format!("{}/{topic}", open.session)).with(queue).wait();
            live.subscriber = Some(subscriber.map_err(|e| PeerError::of("no subscriber", e))?);
        }
        if let Some(topic) = &open.publish {
            let publisher =
                live.session.declare_publisher(format!("{}/{topic}", open.session)).express(true).wait();
            live.publisher = Some(publisher.map_err(|e| PeerError::of("no publisher", e))?);
        }
        Ok(live)
    }

    fn sees_board(&self, open: &Open) -> Result<bool, PeerError> {
        let key = format!("{}/board", open.session);
        let replies = self.session.liveliness().get(key).timeout(Duration::from_millis(500)).wait();
        let replies = replies.map_err(|e| PeerError::of("liveliness cannot be asked for", e))?;
        Ok(replies.iter().any(|reply| reply.result().is_ok()))
    }
}

impl Transport for Companion {
    fn connect(&mut self, _readers: &[String]) -> Result<BTreeMap<String, String>, PeerError> {
        let live = &self.live;
        let end_ns = clock::now_ns() + MATCH_TIMEOUT_NS;
        while !live.sees_board(&self.open)? {
            if clock::now_ns() > end_ns {
                return Err(PeerError("the board did not appear on the line within 10 s".into()));
            }
            clock::sleep_until(clock::now_ns() + MATCH_POLL_NS);
        }
        let start = live.session.put(format!("{}/start", self.open.session), "").express(true).wait();
        start.map_err(|e| PeerError::of("cannot put", e))?;
        Ok(BTreeMap::from([
            ("endpoint".into(), self.endpoint.clone()),
            ("mode".into(), "router and application in one process".into()),
            ("express".into(), "1".into()),
        ]))
    }

    fn send(&mut self, message: &mut Outgoing) -> Result<(), PeerError> {
        let Some(publisher) = &self.live.publisher else {
            return Ok(());
        };
        publisher.put(message.bytes()).wait().map_err(|e| PeerError::of("cannot put", e))
    }

    fn try_receive(&mut self, deliver: &mut Deliver<'_>) -> Result<usize, PeerError> {
        let Some(subscriber) = &self.live.subscriber else {
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
        let Some(subscriber) = &self.live.subscriber else {
            return Ok(0);
        };
        let received = subscriber.recv_timeout(timeout).map_err(|e| PeerError::of("cannot receive", e))?;
        let Some(sample) = received else { return Ok(0) };
        deliver(&sample.payload().to_bytes());
        Ok(1)
    }
}
