//! The life of a peer process: answer the lab's lines until it closes.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use noctule_sys::scheduling;

use crate::control::{Command, Control};
use crate::delegate::relay;
use crate::line::{Line, LineError};
use crate::node::{Node, Plan, SILENCE_NS};
use crate::table::SLOTS_MAX;
use crate::transport::{Delegate, Description, Open, Peer, PeerError, Transport};

const PROTOCOL: u32 = 1;

/// Serves one lab on standard input and output until it closes them. Returns the exit code.
pub fn serve(peer: &dyn Peer) -> ExitCode {
    // The kernel may stretch every sleep by 50 µs, half of the time a sender wakes before its turn.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut control = Control::new();
    match converse(peer, &mut control) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the lab is gone there is no receiver left.
            let _ = control.reply(&Line::error(&error));
            ExitCode::FAILURE
        }
    }
}

struct Opened {
    open: Open,
    transport: Box<dyn Transport>,
}

fn converse(peer: &dyn Peer, control: &mut Control) -> io::Result<()> {
    let mut opened: Option<Opened> = None;
    loop {
        let line = match control.wait()? {
            Command::End => return Ok(()),
            Command::Malformed(error) => {
                control.reply(&Line::error(&error))?;
                continue;
            }
            Command::Line(line) => line,
        };
        let reply = match line.verb() {
            "close" => return Ok(()),
            // Sent while the node was finishing by itself; it has no reply of its own.
            "stop" => continue,
            "hello" => hello(peer, &line),
            "open" => match wanted(peer, &line) {
                Ok((open, None)) => self::open(peer, open).map(|(new, reply)| {
                    opened = Some(new);
                    reply
                }),
                Ok((_, Some(delegate))) => match relay(delegate, &line, control)? {
                    Ok(()) => return Ok(()),
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            },
            "connect" => needs(opened.as_mut()).and_then(|opened| connect(opened, &line)),
            "run" => match needs(opened.as_mut()) {
                Ok(opened) => run(opened, &line, control)?,
                Err(error) => Err(error),
            },
            other => Err(PeerError(format!("unknown command \"{other}\"; see docs/spec/peer-protocol.md"))),
        };
        control.reply(&reply.unwrap_or_else(|error| Line::error(&error)))?;
    }
}

impl From<LineError> for PeerError {
    fn from(error: LineError) -> Self {
        Self(error.to_string())
    }
}

fn needs(opened: Option<&mut Opened>) -> Result<&mut Opened, PeerError> {
    opened.ok_or_else(|| PeerError("nothing is open; send open first".into()))
}

fn hello(peer: &dyn Peer, line: &Line) -> Result<Line, PeerError> {
    let protocol: u32 = line.require("protocol", "a number")?;
    if protocol != PROTOCOL {
        return Err(PeerError(format!("this peer speaks protocol {PROTOCOL}, not {protocol}")));
    }
    let description = peer.describe();
    let support = peer.support();
    let waits: Vec<String> = description.waits.iter().map(ToString::to_string).collect();
    let hello = Line::new("hello")
        .with("name", description.name)
        .with("version", description.version)
        .with("links", description.links.join(","))
        .with("waits", waits.join(","))
        .with("modes", description.modes.join(","))
        .with("formats", description.formats.join(","))
        .with("max_payload_bytes", description.payload_bytes_max)
        // This harness takes all stamps itself, so every peer that links it can.
        .with("artificial_clock", 1)
        .with_some("nodes", support.is_alone.then_some(1));
    let values = |line: Line, (name, values): (&String, &Vec<String>)| {
        line.with(&format!("option.{name}"), values.join(","))
    };
    Ok(support.options.iter().fold(hello, values))
}

/// The node that the lab wants, and the program that is it in the peer's place, if one is.
fn wanted(peer: &dyn Peer, line: &Line) -> Result<(Open, Option<Delegate>), PeerError> {
    let open = Open::parse(line)?;
    refuse_what_is_not_offered(&peer.describe(), &open)?;
    let delegate = peer.delegate(&open)?;
    Ok((open, delegate))
}

fn open(peer: &dyn Peer, open: Open) -> Result<(Opened, Line), PeerError> {
    // Before anything is allocated, so that memory is local to the core and locked from the start.
    if let Some(core) = open.core {
        scheduling::pin_to_core(core).map_err(|e| PeerError::of(&format!("cannot pin to core {core}"), e))?;
    }
    if open.priority > 0 {
        scheduling::set_fifo_priority(open.priority)
            .map_err(|e| PeerError::of("cannot set SCHED_FIFO (run as root or raise the rtprio limit)", e))?;
    }
    if open.lock_memory {
        scheduling::lock_memory()
            .map_err(|e| PeerError::of("cannot lock memory (run as root or raise the memlock limit)", e))?;
    }
    let transport = peer.open(&open)?;
    let reply = Line::new("opened").with_some("address", transport.address());
    Ok((Opened { open, transport }, reply))
}

/// The lab only asks for what `hello` offers; a person at a terminal may not.
fn refuse_what_is_not_offered(offer: &Description, open: &Open) -> Result<(), PeerError> {
    let offered = |what: &str, word: &str, words: &[String]| {
        if words.iter().any(|one| one == word) {
            return Ok(());
        }
        Err(PeerError(format!("{what}={word} is not offered; use one of {}", words.join(", "))))
    };
    let waits: Vec<String> = offer.waits.iter().map(ToString::to_string).collect();
    offered("link", &open.link, &offer.links)?;
    offered("wait", &open.wait.to_string(), &waits)?;
    offered("format", &open.format, &offer.formats)?;
    if open.payload_bytes as u64 > offer.payload_bytes_max {
        let (asked, most) = (open.payload_bytes, offer.payload_bytes_max);
        return Err(PeerError(format!("payload_bytes={asked} is more than this peer carries ({most})")));
    }
    Ok(())
}

fn connect(opened: &mut Opened, line: &Line) -> Result<Line, PeerError> {
    let settings = opened.transport.connect(&line.list("readers"))?;
    let ready = Line::new("ready");
    Ok(settings.iter().fold(ready, |line, (key, value)| line.with(&format!("setting.{key}"), value)))
}

fn run(opened: &mut Opened, line: &Line, control: &mut Control) -> io::Result<Result<Line, PeerError>> {
    let plan = match plan(line) {
        Ok(plan) => plan,
        Err(error) => return Ok(Err(error)),
    };
    let record: PathBuf = line.word("record").unwrap_or_default().into();
    let exchanges: Option<PathBuf> = line.word("exchanges").map(Into::into);
    let mut node = Node::new(&opened.open, plan);
    control.reply(&Line::new("running"))?;
    let outcome = node.run(opened.transport.as_mut(), control);
    Ok(outcome.and_then(|counts| {
        node.table().write(&record).map_err(|e| PeerError::of("cannot write the record file", e))?;
        let made = opened.transport.exchanges();
        if let Some(path) = exchanges.filter(|_| !made.is_empty()) {
            write_exchanges(&path, &made).map_err(|e| PeerError::of("cannot write the exchanges", e))?;
        }
        Ok(counts)
    }))
}

/// The columns that `noctule sync replay` reads.
fn write_exchanges(path: &Path, exchanges: &[[i64; 4]]) -> io::Result<()> {
    let mut text = String::from("t1_ns,t2_ns,t3_ns,t4_ns\n");
    for [t1, t2, t3, t4] in exchanges {
        text += &format!("{t1},{t2},{t3},{t4}\n");
    }
    std::fs::write(path, text)
}

fn plan(line: &Line) -> Result<Plan, PeerError> {
    let messages: usize = line.require("messages", "a number")?;
    if messages > SLOTS_MAX {
        return Err(PeerError(format!("messages={messages} is more than a table may hold ({SLOTS_MAX})")));
    }
    let rate_hz: Option<f64> = line.read("rate_hz", "a rate above 0")?;
    if rate_hz.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return Err(PeerError("rate_hz is not a rate above 0".into()));
    }
    let seconds: f64 = line.require("seconds", "a number of seconds")?;
    Ok(Plan {
        messages: messages as u64,
        limit_ns: (seconds.clamp(0.0, 1e9) * 1e9) as i64,
        rate_hz,
        warm_up_messages: line.read("warmup_messages", "a number")?.unwrap_or(0),
        warm_up_ns: line.read::<i64>("warmup_ms", "a number")?.unwrap_or(0).clamp(0, 1 << 32) * 1_000_000,
        reply_timeout_ns: line.read::<i64>("reply_timeout_ms", "a number")?.unwrap_or(1000).clamp(1, 1 << 32)
            * 1_000_000,
        quiet_ns: line
            .read::<i64>("quiet_ms", "a number")?
            .map_or(SILENCE_NS, |ms| ms.clamp(1, 1 << 20) * 1_000_000),
        touch: line.read("touch", "header or full")?.unwrap_or(crate::Touch::Header),
    })
}
