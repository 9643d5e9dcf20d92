//! `noctule echo`

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write;
use std::time::Duration;

use noctule::{Node, NodeId, Reliability, Sample, SampleInfo};
use noctule_codegen::cdr::{Tree, yaml};
use serde_json::{Value, json};

use crate::Outcome;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds, short};
use crate::types::{Types, TypesArguments};
use crate::units;

/// Nodes whose names are remembered; after that the names are asked for again.
const NAMES_LIMIT: usize = 1024;
/// Elements of a list that are shown without `--elements`, and bytes of a sample above which the lists of `--json` are cut, too: each
/// element takes some forty bytes of memory here.
const ELEMENTS_SHOWN: usize = 32;
const WHOLE_BYTES_MAX: usize = 16 << 20;

#[derive(clap::Args)]
#[allow(clippy::struct_excessive_bools)] // one per flag
pub(crate) struct EchoArguments {
    /// The topic
    topic: String,
    /// Stop after this many samples; fewer within --seconds is exit code 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Request reliable samples; a publisher that does not offer them is reported
    #[arg(long)]
    reliable: bool,
    /// Request the history first
    #[arg(long)]
    transient_local: bool,
    /// Write the bytes of the samples and nothing else
    #[arg(long, conflicts_with_all = ["hex", "text", "json"])]
    raw: bool,
    /// Show samples in hexadecimal even if they are text or have a type
    #[arg(long, conflicts_with = "text")]
    hex: bool,
    /// Show samples as text even if they are not, or have a type
    #[arg(long)]
    text: bool,
    /// Show at most this many bytes of a sample; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 256)]
    bytes: usize,
    /// Show at most this many elements of a list; 0 shows all [default: 32, all with --json]
    #[arg(long, value_name = "N")]
    elements: Option<usize>,
    /// Print one JSON object per sample
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    types: TypesArguments,
    #[command(flatten)]
    swarm: SwarmArguments,
}

pub(crate) fn run(arguments: &EchoArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = Stop::after(arguments.seconds)?;
    let mut fields = Fields { types: arguments.types.load()?, warned: BTreeSet::new() };
    let node = arguments.swarm.join("echo")?;
    let mut builder = node.subscriber(&arguments.topic);
    if arguments.reliable {
        builder = builder.reliability(Reliability::Reliable);
    }
    if arguments.transient_local {
        builder = builder.transient_local();
    }
    let mut subscriber = builder.open()?;
    let mut names = Names::default();
    let mut output = std::io::stdout().lock();
    let wanted = arguments.count.unwrap_or(u64::MAX);
    let mut shown = 0;
    while shown < wanted && !stop.is_due() {
        let sample = match subscriber.receive(Some(stop.tick())) {
            Ok(Some(sample)) => sample,
            Ok(None) => continue,
            Err(broken) => {
                // Its sample is passed over; others go on.
                anstream::eprintln!("noctule: {broken}");
                continue;
            }
        };
        shown += 1;
        let value = fields.of(&node, &sample, arguments);
        let name = names.of(sample.info().publisher, &node);
        let written = match value {
            Some(value) => write_value(&mut output, (&sample, &value), arguments, name),
            None => write(&mut output, &sample, arguments, name),
        };
        match written {
            Ok(()) => {}
            // The program that read the output has ended.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Outcome::Done),
            Err(error) => return Err(error.into()),
        }
    }
    if shown > 0 && (arguments.count.is_none() || shown == wanted || stop.is_interrupted()) {
        return Ok(Outcome::Done);
    }
    let topic = units::printable(&arguments.topic);
    match shown {
        0 => {
            let what = format!("no sample of {topic} came");
            anstream::eprintln!("noctule: {}", arguments.swarm.nothing_seen(&what, stop.elapsed(), &node));
        }
        _ => anstream::eprintln!(
            "noctule: {shown} of {wanted} samples of {topic} came; give it more --seconds"
        ),
    }
    Ok(Outcome::NotValid)
}

/// The fields of typed samples.
struct Fields {
    types: Types,
    /// Publishers whose samples are shown as bytes, each named once.
    warned: BTreeSet<NodeId>,
}

impl Fields {
    /// The value of a sample, if its type is known and it is to be shown; why it is not is printed once for each publisher.
    fn of(&mut self, node: &Node, sample: &Sample, arguments: &EchoArguments) -> Option<Tree> {
        if arguments.raw || arguments.hex || arguments.text {
            return None;
        }
        let info = sample.info();
        let topic_type = match self.types.of(node, info.publisher, &arguments.topic) {
            Ok(topic_type) => topic_type,
            Err(why) => {
                // Plain bytes need no type.
                let is_plain = info.format.is_none() && arguments.types.paths.is_empty();
                return self.warn((node, info), &why.to_string(), is_plain);
            }
        };
        let elements_max = match arguments.elements {
            Some(0) => usize::MAX,
            Some(elements) => elements,
            None if arguments.json && sample.len() <= WHOLE_BYTES_MAX => usize::MAX,
            None => ELEMENTS_SHOWN,
        };
        match topic_type.value(info.format, &sample.to_vec(), elements_max) {
            Ok(value) => Some(value),
            Err(why) => self.warn((node, info), &why.to_string(), false),
        }
    }

    fn warn(&mut self, (node, info): (&Node, &SampleInfo), why: &str, is_plain: bool) -> Option<Tree> {
        if self.warned.len() >= NAMES_LIMIT {
            self.warned.clear();
        }
        let has_type = node
            .endpoints()
            .iter()
            .any(|known| known.node == info.publisher && known.endpoint.type_hash != 0);
        if self.warned.insert(info.publisher) && (has_type || !is_plain) {
            anstream::eprintln!(
                "noctule: samples of {} are shown as bytes: {}",
                short(info.publisher),
                units::printable(why)
            );
        }
        None
    }
}

/// YAML with the heading as a comment, or the JSON object with `value`.
fn write_value(
    output: &mut impl Write,
    (sample, value): (&Sample, &Tree),
    arguments: &EchoArguments,
    name: &str,
) -> std::io::Result<()> {
    if arguments.json {
        let mut object = described(sample.info(), &arguments.topic, name);
        object["value"] = serde_json::to_value(value).unwrap_or(Value::Null);
        return writeln!(output, "{object}");
    }
    write!(output, "{}\n{}---\n", heading(sample.info(), name), yaml(value))
}

fn write(
    output: &mut impl Write,
    sample: &Sample,
    arguments: &EchoArguments,
    name: &str,
) -> std::io::Result<()> {
    if arguments.raw {
        output.write_all(&sample.to_vec())?;
        return output.flush();
    }
    let most = if arguments.bytes == 0 { usize::MAX } else { arguments.bytes };
    let mut bytes = vec![0; sample.len().min(most)];
    sample.read_at(0, &mut bytes);
    let left_out = sample.len() - bytes.len();
    let text = text(&bytes, left_out > 0, arguments);
    if arguments.json {
        let mut object = described(sample.info(), &arguments.topic, name);
        let (key, content) = match text {
            Some(text) => ("text", text),
            None => ("hex", bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        };
        object[key] = content.into();
        object["left_out_bytes"] = left_out.into();
        return writeln!(output, "{object}");
    }
    let left_out = if left_out > 0 { format!(" … {left_out} bytes more") } else { String::new() };
    let heading = heading(sample.info(), name);
    match text {
        Some(text) => writeln!(output, "{heading}  {}{left_out}", units::printable(&text)),
        None => {
            write!(output, "{heading}\n{}", hexdump(&bytes))?;
            if left_out.is_empty() { Ok(()) } else { writeln!(output, "   {left_out}") }
        }
    }
}

fn heading(info: &SampleInfo, name: &str) -> String {
    let missed = if info.missed > 0 { format!(", {} missed before", info.missed) } else { String::new() };
    let age = units::age(info.age());
    let name = units::printable(name);
    format!(
        "#{} age {age}, {} B from {name} ({}) by {}{missed}",
        info.sequence,
        info.length_bytes,
        short(info.publisher),
        info.route
    )
}

fn described(info: &SampleInfo, topic: &str, name: &str) -> Value {
    let age = info.age();
    json!({
        "topic": topic,
        "sequence": info.sequence,
        "missed": info.missed,
        "age_ns": age.map(|age| age.span.ns()),
        "bound_ns": age.and_then(|age| age.bound).map(|bound| bound.ns()),
        "sigma_ns": age.and_then(|age| age.sigma).map(|sigma| sigma.ns()),
        "length_bytes": info.length_bytes,
        "node": info.publisher.to_string(),
        "node_name": name,
        "path": info.route.to_string(),
    })
}

/// The bytes as text, if they are to be shown as such.
fn text(bytes: &[u8], is_cut: bool, arguments: &EchoArguments) -> Option<String> {
    if arguments.hex {
        return None;
    }
    if arguments.text {
        return Some(String::from_utf8_lossy(bytes).into_owned());
    }
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // Cut in the middle of a character, which is at most four bytes long.
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    // Numbers in binary are often valid text by accident.
    let is_text = valid.chars().all(|letter| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t'));
    is_text.then(|| valid.to_owned())
}

/// Offset, sixteen bytes, and those of them that are letters.
fn hexdump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (row, line) in bytes.chunks(16).enumerate() {
        let digits: String = line.iter().map(|byte| format!("{byte:02x} ")).collect();
        let letters =
            line.iter().map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' });
        text += &format!("    {:06x}  {digits:<48} {}\n", row * 16, letters.collect::<String>());
    }
    text
}

/// Names of nodes, which stay known when the node has gone.
#[derive(Default)]
struct Names(BTreeMap<NodeId, String>);

impl Names {
    fn of(&mut self, id: NodeId, node: &Node) -> &str {
        if !self.0.contains_key(&id) {
            if self.0.len() >= NAMES_LIMIT {
                self.0.clear();
            }
            self.0.extend(node.nodes().into_iter().map(|known| (known.id, known.name)));
        }
        self.0.entry(id).or_insert_with(|| "?".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_shows_offset_bytes_and_letters() {
        let dump = hexdump(b"0123456789abcdef\x00z");
        let lines: Vec<&str> = dump.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("0123456789abcdef") && lines[1].contains("000010  00 7a"));
        assert!(lines[1].ends_with(".z"));
    }
}
