//! `noctule play`

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use noctule::{EndpointKind, Node};
use noctule_codegen::described::{description, full_name, of_ros2msg};
use noctule_codegen::hash::Hashes;
use noctule_codegen::model::TypeName;
use noctule_record::check::{Contents, RecordedTopic, contents_at};
use noctule_record::player::{Ages, PlayError, Played, Player, Selection};
use noctule_record::schedule::Schedule;
use serde_json::json;

use crate::Outcome;
use crate::argument::ArgumentError;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds};
use crate::units;

/// Interval between two looks for readers.
const LOOK: Duration = Duration::from_millis(10);
/// The last part of a wait is spent looking at the clock: a sleep ends tens of microseconds late.
const SPIN: Duration = Duration::from_micros(100);
/// Reliable samples are waited for this long at the end.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct PlayArguments {
    /// The recording
    file: PathBuf,
    /// Only these topics of the recording
    topics: Vec<String>,
    /// Times the recorded speed, e.g. 0.5 or 10
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = rate)]
    rate: f64,
    /// Begin so many seconds after the start of the recording
    #[arg(long, value_name = "S", value_parser = offset, default_value = "0")]
    from: Duration,
    /// End so many seconds after the start of the recording
    #[arg(long, value_name = "S", value_parser = seconds)]
    to: Option<Duration>,
    /// Play again and again until Ctrl-C
    #[arg(long = "loop", conflicts_with = "step")]
    again: bool,
    /// Publish one sample for each line on standard input
    #[arg(long)]
    step: bool,
    /// Publish a topic under another name: /from:=/to; repeatable
    #[arg(long, value_name = "FROM:=TO", value_parser = remap)]
    remap: Vec<(String, String)>,
    /// Source times: preserved = samples are as old as they were when they were recorded; renewed = they are true now
    #[arg(long, value_enum, default_value_t = AgesWord::Preserved)]
    ages: AgesWord,
    /// Wait up to this many seconds for a reader of every topic, then begin in any case
    #[arg(long, value_name = "S", value_parser = offset, default_value = "1")]
    wait_for_readers: Duration,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    swarm: SwarmArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AgesWord {
    Preserved,
    Renewed,
}

pub(crate) fn run(arguments: &PlayArguments) -> Result<Outcome, Box<dyn Error>> {
    let named = |error: &dyn Error| format!("{}: {error}", arguments.file.display());
    let (mut contents, result) = contents_at(&arguments.file);
    let Some(start_ns) = contents.first_log_ns else {
        let why = result.err().map_or("it holds no message".into(), |damage| damage.to_string());
        return Err(format!("{}: {why}", arguments.file.display()).into());
    };
    if let Err(damage) = &result {
        anstream::eprintln!("noctule: {}; what comes before is played", named(damage));
    }
    contents.channels.values_mut().for_each(describe);
    let schedule = schedule(arguments, start_ns, &contents)?;
    let stop = Stop::after(None)?;
    let node = arguments.swarm.join("play")?;
    let ages = if arguments.ages == AgesWord::Preserved { Ages::Preserved } else { Ages::Renewed };
    let remap: BTreeMap<String, String> = arguments.remap.iter().cloned().collect();
    let selection = Selection { topics: arguments.topics.clone(), remap, ages };
    let mut player = Player::open(&node, &contents, &selection).map_err(|error| named(&error))?;
    let end = Instant::now() + arguments.wait_for_readers;
    while !stop.is_due() && Instant::now() < end && player.matched().0 < player.matched().1 {
        stop.wait_until(Instant::now() + LOOK);
    }
    let mut others = Others { node: &node, is_reported: false };
    let mut pace = Pace { stop: &stop, begun: Instant::now(), step: arguments.step, latest: Duration::ZERO };
    loop {
        others.report(&player);
        pace.begun = Instant::now();
        match player.play(&arguments.file, &schedule, &mut |due_ns| pace.wait(due_ns)) {
            Ok(()) => {}
            // It was reported above.
            Err(PlayError::File(_)) if result.is_err() => {}
            Err(error) => return Err(named(&error).into()),
        }
        if !arguments.again || stop.is_due() {
            break;
        }
    }
    others.report(&player);
    let is_acknowledged = player.wait_for_acknowledgments(ACKNOWLEDGED_WITHIN);
    report(arguments, player.played(), pace.latest, is_acknowledged);
    Ok(if result.is_ok() && is_acknowledged { Outcome::Done } else { Outcome::NotValid })
}

/// Other recorders' files have definitions in `ros2msg`: readers get their fields, and refuse what is another type than theirs.
fn describe(topic: &mut RecordedTopic) {
    // A publisher without a hash is recorded with 0.
    let is_described =
        topic.metadata.get("noctule_type_hash").is_some_and(|hash| hash.bytes().any(|digit| digit != b'0'));
    let Some(text) = topic.ros2msg.as_deref().filter(|_| topic.encoding == "cdr" && !is_described) else {
        return;
    };
    let (name, mut library) =
        (TypeName::new(full_name(&topic.type_name)), of_ros2msg(&topic.type_name, text));
    if library.resolve([&name]).is_err() {
        return;
    }
    let hash = Hashes::new(&library).noctule(&name);
    topic.metadata.insert("noctule_type_hash".into(), format!("{hash:016x}"));
    if let Ok(description) = description(&library, &name) {
        topic.metadata.insert("noctule_type_description".into(), description.text().to_owned());
    }
}

/// Why the part of a recording that is wanted cannot be played.
#[derive(Debug, thiserror::Error)]
enum RangeError {
    #[error("--from {from_s} lies behind the end; the recording is {length_s:.3} s long")]
    FromBehindEnd { from_s: f64, length_s: f64 },
    #[error("--to must lie after --from; both count from the start of the recording")]
    ToBeforeFrom,
}

fn schedule(arguments: &PlayArguments, start_ns: u64, contents: &Contents) -> Result<Schedule, RangeError> {
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let length_ns = contents.last_log_ns.unwrap_or(start_ns) - start_ns;
    let (from_ns, to_ns) = (ns(arguments.from), arguments.to.map(ns));
    if from_ns > length_ns {
        let (from_s, length_s) = (arguments.from.as_secs_f64(), length_ns as f64 / 1e9);
        return Err(RangeError::FromBehindEnd { from_s, length_s });
    }
    if to_ns.is_some_and(|to_ns| to_ns <= from_ns) {
        return Err(RangeError::ToBeforeFrom);
    }
    Ok(Schedule { rate: arguments.rate, start_ns, from_ns, to_ns })
}

/// Publishers of other nodes on the topics that are played: a reader gets both, mixed.
struct Others<'n> {
    node: &'n Node,
    is_reported: bool,
}

impl Others<'_> {
    /// Once, as soon as one is known.
    fn report(&mut self, player: &Player<'_>) {
        if self.is_reported {
            return;
        }
        let played = player.topics();
        let known = self.node.endpoints();
        let others = known.iter().filter(|other| {
            let endpoint = &other.endpoint;
            endpoint.kind == EndpointKind::Writer && played.contains(endpoint.topic.as_str())
        });
        let topics: BTreeSet<&str> = others.clone().map(|other| other.endpoint.topic.as_str()).collect();
        let (Some(topic), Some(other)) = (topics.first(), others.clone().next()) else { return };
        let more =
            if topics.len() > 1 { format!(" (and {} more topics)", topics.len() - 1) } else { "".into() };
        let (topic, name) = (units::printable(topic), units::printable(&other.node_name));
        anstream::eprintln!(
            "noctule: {topic}{more} is published by {name}, too, so that readers get both mixed; play under other names \
             (--remap {topic}:=/recorded{topic}) or in another domain (--domain)"
        );
        self.is_reported = true;
    }
}

/// Timing of a play: at the samples' times, or step by step.
struct Pace<'s> {
    stop: &'s Stop,
    begun: Instant,
    step: bool,
    /// The most that a sample was behind its time.
    latest: Duration,
}

impl Pace<'_> {
    fn wait(&mut self, due_ns: u64) -> bool {
        if self.step {
            let mut line = String::new();
            // The end of the input, or an unreadable one, ends the play.
            return std::io::stdin().lock().read_line(&mut line).is_ok_and(|bytes| bytes > 0)
                && !self.stop.is_due();
        }
        let due = self.begun + Duration::from_nanos(due_ns);
        if let Some(sleep) = due.checked_sub(SPIN).filter(|sleep| *sleep > Instant::now()) {
            self.stop.wait_until(sleep);
        }
        while Instant::now() < due && !self.stop.is_due() {
            std::hint::spin_loop();
        }
        self.latest = self.latest.max(Instant::now().saturating_duration_since(due));
        !self.stop.is_due()
    }
}

fn report(arguments: &PlayArguments, played: &Played, latest: Duration, is_acknowledged: bool) {
    if arguments.json {
        let latest_ns = (!arguments.step).then(|| u64::try_from(latest.as_nanos()).unwrap_or(u64::MAX));
        anstream::println!(
            "{}",
            json!({ "file": arguments.file, "published": played, "latest_ns": latest_ns, "acknowledged": is_acknowledged })
        );
    } else {
        for (topic, count) in played {
            anstream::println!("{count} samples of {}", units::printable(topic));
        }
    }
    if !is_acknowledged {
        anstream::eprintln!(
            "noctule: not every reader has acknowledged all samples; check the network between them"
        );
    }
}

fn rate(text: &str) -> Result<f64, ArgumentError> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (1e-6..=1e6).contains(rate));
    rate.ok_or_else(|| ArgumentError::PlayRate(text.to_owned()))
}

fn offset(text: &str) -> Result<Duration, ArgumentError> {
    if text.parse::<f64>() == Ok(0.0) { Ok(Duration::ZERO) } else { seconds(text) }
}

fn remap(text: &str) -> Result<(String, String), ArgumentError> {
    match text.split_once(":=") {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err(ArgumentError::NewName(text.to_owned())),
    }
}
