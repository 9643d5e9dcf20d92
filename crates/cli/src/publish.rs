//! `noctule pub`

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use noctule::{Format, Node, PAYLOAD_BYTES_DEFAULT, Publisher, Reliability};
use serde_json::json;

use crate::Outcome;
use crate::argument::ArgumentError;
use crate::stop::{Stop, TICK};
use crate::swarm::{SwarmArguments, seconds};
use crate::types::{TopicType, TypeError, Types, TypesArguments};
use crate::units;

/// Interval between two looks for readers.
const LOOK: Duration = Duration::from_millis(10);
/// Time-outs for finding the topic, to know its type, and then for the type.
const TOPIC_WITHIN: Duration = Duration::from_secs(1);
const TYPE_AFTER_TOPIC: Duration = Duration::from_millis(200);
/// The longest sample that can be opened for.
const PAYLOAD_BYTES_MAX: u32 = 1 << 30;
/// Reliable samples are waited for this long at the end.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct PubArguments {
    /// The topic
    topic: String,
    /// The sample, for a topic with a type its value as YAML or JSON, e.g. '{x: 1.5, frame: map}'; - takes every line of standard input as one
    #[arg(conflicts_with_all = ["file", "hex"])]
    text: Option<String>,
    /// The sample is this file
    #[arg(long, value_name = "FILE", conflicts_with = "hex")]
    file: Option<PathBuf>,
    /// The sample in hexadecimal digits, e.g. "01 ff"
    #[arg(long, value_name = "DIGITS")]
    hex: Option<String>,
    /// Samples per second; without it one sample is published, once a reader is there
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,
    /// Stop after this many samples; 1 per second without --rate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The name of the type
    #[arg(long = "type", value_name = "NAME", default_value = "bytes")]
    type_name: String,
    /// The sample is bytes in this format, e.g. cdr for boards and ROS 2, whatever the topic's type
    #[arg(long, value_name = "FORMAT")]
    format: Option<noctule::Format>,
    /// Repeat samples until they arrive on other hosts
    #[arg(long)]
    reliable: bool,
    /// Readers that come late get the history first
    #[arg(long)]
    transient_local: bool,
    /// How many samples a reader may lag behind
    #[arg(long, value_name = "N", default_value_t = 8)]
    keep_last: u32,
    /// The longest sample; without any content, samples are this many zeros
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(PAYLOAD_BYTES_MAX)))]
    payload_bytes: Option<u32>,
    /// Publish nothing before this many readers are there; 1 if there is one sample only, else 0
    #[arg(long, value_name = "N")]
    wait_for: Option<usize>,
    /// Give up waiting for readers after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "10")]
    seconds: Duration,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    types: TypesArguments,
    #[command(flatten)]
    swarm: SwarmArguments,
}

pub(crate) fn run(arguments: &PubArguments) -> Result<Outcome, Box<dyn Error>> {
    let content = Content::of(arguments)?;
    let mut types = arguments.types.load()?;
    let stop = Stop::after(None)?;
    let node = arguments.swarm.join("pub")?;
    let value_type = value_type(arguments, &mut types, &node, &stop)?;
    let content = content.of_type(value_type)?;
    let mut publisher = open(arguments, &content, &node)?;
    if !wait_for_readers(arguments, &content, &publisher, &stop) {
        if !stop.is_interrupted() {
            let what = format!(
                "{} of the {} readers of {} came",
                publisher.readers(),
                wanted(arguments, &content),
                arguments.topic
            );
            anstream::eprintln!("noctule: {}", arguments.swarm.nothing_seen(&what, arguments.seconds, &node));
        }
        return Ok(Outcome::NotValid);
    }
    publish_all(arguments, content, &mut publisher, &stop)?;
    let acknowledged = publisher.wait_for_acknowledgments(ACKNOWLEDGED_WITHIN);
    if arguments.json {
        let (published, readers) = (publisher.published(), publisher.readers());
        anstream::println!(
            "{}",
            json!({ "topic": arguments.topic, "published": published, "readers": readers, "acknowledged": acknowledged })
        );
    }
    if !acknowledged {
        anstream::eprintln!(
            "noctule: not every reader has acknowledged all samples of {} after {} s; check the network between them",
            arguments.topic,
            ACKNOWLEDGED_WITHIN.as_secs()
        );
        return Ok(Outcome::NotValid);
    }
    Ok(Outcome::Done)
}

/// Why nothing can be published.
#[derive(Debug, thiserror::Error)]
enum PublishError {
    #[error(
        "there is nothing to publish; give a text, - for lines of standard input, --file, --hex, or --payload-bytes alone for zeros"
    )]
    Nothing,
    #[error("{path} cannot be read: {cause}; name another file")]
    Read { path: PathBuf, cause: std::io::Error },
    #[error("{0} cannot be read: it has more than 1 GiB; name another file")]
    Large(PathBuf),
    #[error("a line is longer than {most_bytes} bytes; raise --payload-bytes")]
    Line { most_bytes: usize },
    #[error("standard input cannot be read: {0}")]
    Input(std::io::Error),
    #[error("\"{0}\" is not hexadecimal; write two digits for every byte, e.g. \"01 ff\"")]
    Hexadecimal(String),
    #[error("{0}; or give bytes with --format and --hex")]
    NoType(TypeError),
    #[error(transparent)]
    Type(#[from] TypeError),
}

/// Samples to publish, and their type if they have one.
struct Content {
    samples: Samples,
    value_type: Option<Arc<TopicType>>,
}

enum Samples {
    Same(Vec<u8>),
    Lines,
}

/// The type that values are to be written as: that of the topic, if it has one and a text is to be published without a named
/// format.
fn value_type(
    arguments: &PubArguments,
    types: &mut Types,
    node: &Node,
    stop: &Stop,
) -> Result<Option<Arc<TopicType>>, PublishError> {
    if arguments.text.is_none() || arguments.format.is_some() {
        return Ok(None);
    }
    if !arguments.types.paths.is_empty()
        && let Some(found) = types.of_name(&arguments.topic, &arguments.type_name)?
    {
        return Ok(Some(found));
    }
    let started = Instant::now();
    while !stop.is_due() {
        let has_topic = node.endpoints().iter().any(|known| known.endpoint.topic == arguments.topic);
        let timeout = if has_topic { TYPE_AFTER_TOPIC } else { TOPIC_WITHIN };
        match types.of_topic(node, &arguments.topic) {
            Ok(None) if started.elapsed() < timeout => stop.wait_until(Instant::now() + LOOK),
            Ok(found) => return Ok(found),
            Err(cause) => return Err(PublishError::NoType(cause)),
        }
    }
    Ok(None)
}

impl Content {
    fn of(arguments: &PubArguments) -> Result<Content, PublishError> {
        let PubArguments { text, file, hex, payload_bytes, .. } = arguments;
        let plain = |samples| Content { samples, value_type: None };
        if text.as_deref() == Some("-") {
            return Ok(plain(Samples::Lines));
        }
        if let Some(text) = text {
            return Ok(plain(Samples::Same(text.clone().into_bytes())));
        }
        if let Some(digits) = hex {
            return unhex(digits).map(Samples::Same).map(plain);
        }
        if let Some(path) = file {
            let mut bytes = Vec::new();
            let read = std::fs::File::open(path)
                .and_then(|file| file.take(u64::from(PAYLOAD_BYTES_MAX) + 1).read_to_end(&mut bytes));
            return match read {
                Ok(length) if length > PAYLOAD_BYTES_MAX as usize => Err(PublishError::Large(path.clone())),
                Ok(_) => Ok(plain(Samples::Same(bytes))),
                Err(cause) => Err(PublishError::Read { path: path.clone(), cause }),
            };
        }
        match payload_bytes {
            Some(bytes) => Ok(plain(Samples::Same(vec![0; *bytes as usize]))),
            None => Err(PublishError::Nothing),
        }
    }

    /// The same as values of a type.
    fn of_type(self, value_type: Option<Arc<TopicType>>) -> Result<Content, PublishError> {
        let samples = match (self.samples, &value_type) {
            (Samples::Same(text), Some(value_type)) => Samples::Same(value_type.encoded(&text)?),
            (samples, _) => samples,
        };
        Ok(Content { samples, value_type })
    }

    fn length_bytes(&self) -> usize {
        match &self.samples {
            Samples::Same(bytes) => bytes.len(),
            Samples::Lines => 0,
        }
    }
}

fn open(arguments: &PubArguments, content: &Content, node: &Node) -> Result<Publisher, Box<dyn Error>> {
    let needed = (content.length_bytes() as u32).max(1);
    let most = arguments.payload_bytes.unwrap_or_else(|| needed.max(PAYLOAD_BYTES_DEFAULT));
    let mut builder = node
        .publisher(&arguments.topic)
        .type_name(&arguments.type_name, 0)
        .keep_last(arguments.keep_last)
        .payload_bytes_max(most);
    if let Some(format) = arguments.format {
        builder = builder.format(format);
    }
    if let Some(TopicType { description, .. }) = content.value_type.as_deref() {
        let hash = node.describe(description.text())?;
        builder = builder.type_name(description.name(), hash).format(Format::Cdr);
    }
    if arguments.reliable {
        builder = builder.reliability(Reliability::Reliable);
    }
    if arguments.transient_local {
        builder = builder.transient_local();
    }
    Ok(builder.open()?)
}

/// Samples to publish; `None`: until stopped.
fn count(arguments: &PubArguments, content: &Content) -> Option<u64> {
    let once = matches!(content.samples, Samples::Same(_)) && arguments.rate.is_none();
    arguments.count.or(once.then_some(1))
}

fn wanted(arguments: &PubArguments, content: &Content) -> usize {
    arguments.wait_for.unwrap_or(usize::from(count(arguments, content) == Some(1)))
}

/// False if they did not come in time.
fn wait_for_readers(arguments: &PubArguments, content: &Content, publisher: &Publisher, stop: &Stop) -> bool {
    let wanted = wanted(arguments, content);
    while publisher.readers() < wanted {
        if stop.is_due() || stop.elapsed() >= arguments.seconds {
            return false;
        }
        stop.wait_until(Instant::now() + LOOK);
    }
    true
}

fn publish_all(
    arguments: &PubArguments,
    content: Content,
    publisher: &mut Publisher,
    stop: &Stop,
) -> Result<(), Box<dyn Error>> {
    let count = count(arguments, &content).unwrap_or(u64::MAX);
    let most_bytes = arguments.payload_bytes.unwrap_or(PAYLOAD_BYTES_DEFAULT) as usize;
    let (bytes, lines) = match content.samples {
        Samples::Same(bytes) => (bytes, None),
        Samples::Lines => (Vec::new(), Some(lines(most_bytes))),
    };
    let period =
        arguments.rate.or(lines.is_none().then_some(1.0)).map(|rate| Duration::from_secs_f64(1.0 / rate));
    let mut due = Instant::now();
    while publisher.published() < count && !stop.is_due() {
        match &lines {
            None => publisher.publish(&bytes)?,
            Some(lines) => match next_line(lines, stop)? {
                Some(line) => match &content.value_type {
                    Some(value_type) => publisher.publish(&value_type.encoded(&line)?)?,
                    None => publisher.publish(&line)?,
                },
                None => break,
            },
        }
        if let Some(period) = period
            && publisher.published() < count
        {
            due += period;
            stop.wait_until(due);
        }
    }
    Ok(())
}

type Line = Result<Vec<u8>, PublishError>;

/// Reads in a thread of its own, so that Ctrl-C need not wait for a line.
fn lines(most_bytes: usize) -> Receiver<Line> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        let mut input = BufReader::new(std::io::stdin().lock());
        loop {
            let mut line = Vec::new();
            // Room for the end of the line.
            let read = input.by_ref().take(most_bytes as u64 + 1).read_until(b'\n', &mut line);
            let line = match read {
                Ok(0) => break,
                Ok(_) if line.last() == Some(&b'\n') => Ok(line[..line.len() - 1].to_vec()),
                Ok(_) if line.len() > most_bytes => Err(PublishError::Line { most_bytes }),
                Ok(_) => Ok(line),
                Err(cause) => Err(PublishError::Input(cause)),
            };
            let is_last = line.is_err();
            if sender.send(line).is_err() || is_last {
                break;
            }
        }
    });
    receiver
}

/// `None`: there are no more, or it is time to stop.
fn next_line(lines: &Receiver<Line>, stop: &Stop) -> Result<Option<Vec<u8>>, PublishError> {
    while !stop.is_due() {
        match lines.recv_timeout(TICK) {
            Ok(line) => return line.map(Some),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(None)
}

fn rate(text: &str) -> Result<f64, ArgumentError> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=1e6).contains(&rate) => Ok(rate),
        _ => Err(ArgumentError::PublishRate),
    }
}

fn unhex(digits: &str) -> Result<Vec<u8>, PublishError> {
    let nibbles: Option<Vec<u32>> =
        digits.chars().filter(|digit| !digit.is_whitespace()).map(|digit| digit.to_digit(16)).collect();
    match nibbles {
        Some(nibbles) if nibbles.len() % 2 == 0 => {
            Ok(nibbles.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
        }
        _ => Err(PublishError::Hexadecimal(units::printable(digits))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_are_bytes_with_or_without_spaces() {
        assert_eq!(unhex("01 fF").unwrap(), vec![1, 255]);
        assert!(unhex("").unwrap().is_empty());
        assert!(unhex("0").is_err() && unhex("0x01").is_err());
    }
}
