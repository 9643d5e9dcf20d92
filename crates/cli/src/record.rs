//! `noctule record`

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use noctule_foxglove::Bridge;
use noctule_record::alarms::{self, Alarms, Judged};
use noctule_record::check::{Contents, contents_at};
use noctule_record::file::FileError;
use noctule_record::mend::{Mended, mend};
use noctule_record::recorder::{Recorder, Selection, TopicCount};
use noctule_record::writer::{Format, Limits, Recording};
use noctule_timebase::Span;
use noctule_web::{Server, ServerOptions};
use serde_json::{Value, json};

use crate::Outcome;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds};
use crate::types::TypesArguments;
use crate::units;

/// New topics are looked for this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A terminal shows the counts this often.
const SHOW_EVERY: Duration = Duration::from_secs(1);
const MEBIBYTE: u64 = 1 << 20;

#[derive(clap::Args)]
pub(crate) struct RecordArguments {
    /// Only these topics; a name that ends in * matches all that begin so
    #[arg(conflicts_with = "check")]
    topics: Vec<String>,
    /// The file; it must not exist. Later segments are FILE.1.mcap, FILE.2.mcap …
    #[arg(long, value_name = "FILE.mcap", required_unless_present_any = ["check", "serve", "mend"])]
    out: Option<PathBuf>,
    /// Let Foxglove look at the topics live, at this address: its WebSocket protocol, with a token [default: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8765", require_equals = true, conflicts_with = "check")]
    serve: Option<SocketAddr>,
    /// Record nothing: say what this file holds, topic by topic, and whether it is whole
    #[arg(long, value_name = "FILE.mcap", conflicts_with = "out")]
    check: Option<PathBuf>,
    /// Record nothing: give the file of a recorder that was killed the end that other readers look for
    #[arg(long, value_name = "FILE.mcap", conflicts_with_all = ["out", "check", "serve", "topics"])]
    mend: Option<PathBuf>,
    /// Alarms: with --check, whether the file would have set one off (exit code 1); else each is printed when it fires, and what --keep-seconds
    /// has on the disk is kept
    #[arg(long, value_name = "FILE.toml")]
    alarms: Option<PathBuf>,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Begin another file when this one has so many MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    split_mib: Option<u64>,
    /// Begin another file when this one spans so many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    split_seconds: Option<Duration>,
    /// Keep only the last so many seconds; a SIGUSR1 keeps what is there for good and goes on
    #[arg(long, value_name = "S", value_parser = seconds)]
    keep_seconds: Option<Duration>,
    /// Compression of chunks
    #[arg(long, value_enum, default_value_t = CompressionWord::None)]
    compression: CompressionWord,
    /// Room for samples that wait for the disk, MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    queue_mib: u64,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    types: TypesArguments,
    #[command(flatten)]
    swarm: SwarmArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompressionWord {
    None,
    Lz4,
}

pub(crate) fn run(arguments: &RecordArguments) -> Result<Outcome, Box<dyn Error>> {
    if let Some(file) = &arguments.mend {
        return give_end(file);
    }
    let alarms = arguments.alarms.as_deref().map(read_alarms).transpose()?.unwrap_or_default();
    match (&arguments.check, &arguments.out) {
        (Some(file), _) => check(file, arguments.json, alarms),
        (None, Some(out)) => record(arguments, out, alarms),
        (None, None) if !alarms.is_empty() => {
            Err("--alarms needs --out FILE.mcap to record, or --check FILE.mcap to judge".into())
        }
        (None, None) => serve_only(arguments),
    }
}

fn give_end(file: &Path) -> Result<Outcome, Box<dyn Error>> {
    let shown = file.display();
    match mend(file)? {
        None => anstream::println!("{shown} has its end; nothing was changed"),
        Some(Mended { chunks, messages, cut_bytes }) => anstream::println!(
            "{shown} has an end now: {messages} messages in {chunks} chunks; {} behind the last whole chunk were cut off",
            units::bytes(cut_bytes as f64)
        ),
    }
    Ok(Outcome::Done)
}

fn read_alarms(path: &Path) -> Result<Alarms, Box<dyn Error>> {
    let shown = path.display();
    let mut text = String::new();
    let opened =
        File::open(path).map_err(|error| format!("{shown} cannot be read: {error}; name another file"))?;
    let read = opened.take(alarms::TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    Ok(Alarms::parse(&text).map_err(|error| format!("{shown}: {error}"))?)
}

fn record(arguments: &RecordArguments, out: &Path, alarms: Alarms) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(arguments.seconds)?;
    let keep = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::clone(&keep))?;
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let limits = Limits {
        segment_bytes: arguments.split_mib.map(|mib| mib.saturating_mul(MEBIBYTE)),
        segment_ns: arguments.split_seconds.map(ns),
        keep_ns: arguments.keep_seconds.map(ns),
    };
    let format = Format { lz4: arguments.compression == CompressionWord::Lz4 };
    let recording = Recording::create(out, limits, format)?;
    let queue_bytes_max = usize::try_from(arguments.queue_mib * MEBIBYTE)?;
    let selection = Selection { topics: arguments.topics.clone(), queue_bytes_max };
    let _server = serve(arguments)?;
    let node = arguments.swarm.join_quietly("record")?;
    let mut recorder = Recorder::start(node, recording, selection, arguments.types.definitions()?, alarms)?;
    let mut shown = Instant::now();
    let is_terminal = std::io::stderr().is_terminal();
    let mut was_full = false;
    while !stop.is_due() && !recorder.has_failed() {
        let notices = std::iter::from_fn(|| recorder.poll_notice()).map(|notice| notice.to_string());
        let notices: Vec<String> = notices.collect();
        for sentence in notices.into_iter().chain(recorder.look()) {
            anstream::eprintln!("noctule: {sentence}");
        }
        while let Some(alarm) = recorder.poll_alarm() {
            anstream::eprintln!("noctule: alarm: {alarm}; what has been recorded so far is kept");
        }
        if keep.swap(false, Ordering::Relaxed) {
            recorder.keep_files();
            anstream::eprintln!("noctule: what has been recorded so far is kept");
        }
        let is_full = recorder.is_disk_full();
        if is_full != was_full {
            let text = if is_full {
                "is full; samples are counted, not kept, until there is room"
            } else {
                "has room again"
            };
            anstream::eprintln!("noctule: the disk of {} {text}", out.display());
        }
        was_full = is_full;
        if is_terminal && shown.elapsed() >= SHOW_EVERY {
            let (messages, bytes) = recorder.written();
            anstream::eprint!("\r{messages} messages, {}    ", units::bytes(bytes as f64));
            shown = Instant::now();
        }
        stop.wait_until(Instant::now() + LOOK_EVERY);
    }
    let elapsed = stop.elapsed();
    let (counts, ended) = recorder.finish();
    report(arguments, out, &counts);
    ended?;
    if counts.values().all(|count| count.recorded == 0) {
        anstream::eprintln!(
            "noctule: nothing was recorded in {:.1} s; `noctule topics` lists what is published in this domain",
            elapsed.as_secs_f64()
        );
        return Ok(Outcome::NotValid);
    }
    let is_whole = counts.values().all(|count| count.left_out + count.not_written == 0);
    if !is_whole {
        anstream::eprintln!(
            "noctule: samples were not kept because the disk was too slow or full; record fewer topics, or to another disk"
        );
    }
    Ok(if is_whole { Outcome::Done } else { Outcome::NotValid })
}

/// The server that `--serve` asks for, until it is dropped.
fn serve(arguments: &RecordArguments) -> Result<Option<Server>, Box<dyn Error>> {
    let Some(listen) = arguments.serve else { return Ok(None) };
    let node = arguments.swarm.join_quietly("foxglove")?;
    let bridge = Bridge::start(node, "noctule", arguments.types.definitions()?)?;
    let options = ServerOptions { listen, assets: Vec::new() };
    let server = Server::start_with(options, vec![Arc::new(bridge)])?;
    anstream::eprintln!("noctule: open this address in Foxglove: {}", server.socket_url());
    Ok(Some(server))
}

fn serve_only(arguments: &RecordArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(arguments.seconds)?;
    let Some(_server) = serve(arguments)? else {
        return Err("name a file with --out, or one to look at with --check".into());
    };
    while !stop.is_due() {
        stop.wait_until(Instant::now() + LOOK_EVERY);
    }
    Ok(Outcome::Done)
}

fn report(arguments: &RecordArguments, out: &Path, counts: &BTreeMap<String, TopicCount>) {
    if arguments.json {
        anstream::println!("{}", json!({ "file": out, "topics": counts }));
        return;
    }
    let headings = ["topic", "recorded", "bytes", "missed before", "left out", "not written"];
    let row = |(topic, count): (&String, &TopicCount)| {
        vec![
            units::printable(topic),
            count.recorded.to_string(),
            units::bytes(count.bytes as f64),
            count.missed.to_string(),
            count.left_out.to_string(),
            count.not_written.to_string(),
        ]
    };
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(counts.iter().map(row));
    anstream::print!("{}", units::columns(&rows, &[false, true, true, true, true, true]));
}

fn check(file: &Path, json: bool, alarms: Alarms) -> Result<Outcome, Box<dyn Error>> {
    let (contents, result) = contents_at(file);
    let judged = if alarms.is_empty() { Vec::new() } else { alarms::judge(file, alarms).0 };
    if let (Err(damage), true) = (&result, contents.channels.is_empty()) {
        return Err(format!("{}: {damage}", file.display()).into());
    }
    if json {
        let topics: Vec<Value> = contents.channels.values().map(|topic| json!(topic)).collect();
        let damage = result.as_ref().err().map(ToString::to_string);
        let (first_ns, last_ns) = (contents.first_log_ns, contents.last_log_ns);
        let all = json!({
            "file": file, "damage": damage, "first_log_ns": first_ns, "last_log_ns": last_ns,
            "out_of_order": contents.out_of_order, "topics": topics, "alarms": judged,
        });
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        print(&contents);
    }
    let sentences: Vec<String> = judged.iter().filter_map(sentence).collect();
    sentences.iter().for_each(|sentence| anstream::eprintln!("noctule: {}: {sentence}", file.display()));
    if let Err(damage) = &result {
        let way_out = match damage {
            FileError::Cut => "; record --mend gives it an end",
            _ => "",
        };
        anstream::eprintln!(
            "noctule: {}: {damage}; the figures are of what comes before{way_out}",
            file.display()
        );
    }
    Ok(if result.is_ok() && sentences.is_empty() { Outcome::Done } else { Outcome::NotValid })
}

/// Why an alarm fails a check.
fn sentence(judged: &Judged) -> Option<String> {
    let alarm = &judged.alarm;
    match (judged.unknown, judged.first_after_ns) {
        (Some(why), _) => Some(format!("{alarm}: not known; {why}")),
        (None, Some(ns)) => Some(format!(
            "{alarm}: {} times, the first {:.3} s after the start",
            judged.times,
            ns as f64 / 1e9
        )),
        (None, None) => None,
    }
}

fn print(contents: &Contents) {
    let headings = [
        "topic",
        "messages",
        "bytes",
        "type",
        "encoding",
        "age p50",
        "age p99",
        "bound max",
        "missed before",
    ];
    let time = |ns: Option<i64>| ns.map_or("–".into(), |ns| units::time(Span::from_ns(ns)));
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(contents.channels.values().map(|topic| {
        vec![
            units::printable(&topic.topic),
            topic.messages.to_string(),
            units::bytes(topic.bytes as f64),
            units::printable(&topic.type_name),
            units::printable(&topic.encoding),
            time(topic.age_p50_ns),
            time(topic.age_p99_ns),
            time(topic.bound_max_ns.and_then(|ns| i64::try_from(ns).ok())),
            topic.missed.to_string(),
        ]
    }));
    let right = [false, true, true, false, false, true, true, true, true];
    anstream::print!("{}", units::columns(&rows, &right));
}
