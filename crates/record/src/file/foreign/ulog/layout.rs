//! Definitions of a log: how a message lies in the log, and the same in CDR and in `ros2msg`.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use crate::file::FileError;

/// Definitions of a log; PX4 has about 250.
const FORMATS_LIMIT: usize = 4096;
/// Definitions in definitions.
const DEPTH_LIMIT: usize = 8;
/// Values of a message: it has at most 65,535 bytes.
const VALUES_LIMIT: usize = 65_536;
/// Stands before the bytes of little-endian CDR.
const CDR: [u8; 4] = [0, 1, 0, 0];

/// One field as it is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    kind: String,
    /// Elements of an array.
    length: Option<usize>,
    name: String,
}

impl Field {
    fn is_padding(&self) -> bool {
        self.name.starts_with("_padding")
    }

    fn count(&self) -> usize {
        self.length.unwrap_or(1)
    }
}

/// The definitions that were read.
#[derive(Debug, Default)]
pub(super) struct Formats(HashMap<String, Vec<Field>>);

/// A run of values of the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    width_bytes: usize,
    count: usize,
    is_padding: bool,
}

/// How the messages of a definition lie in the log.
#[derive(Debug)]
pub(super) struct Layout {
    runs: Vec<Run>,
    /// `ulog/msg/VehicleAttitude`.
    pub(super) type_name: String,
    /// Definition in `ros2msg`.
    pub(super) definition: String,
    /// Where the time stamp stands.
    pub(super) timestamp_at: Option<usize>,
    /// Where the time of sampling stands.
    pub(super) sample_timestamp_at: Option<usize>,
}

/// Width of a basic type, and its name in `ros2msg`.
fn basic(kind: &str) -> Option<(usize, &'static str)> {
    Some(match kind {
        "int8_t" => (1, "int8"),
        "uint8_t" => (1, "uint8"),
        "int16_t" => (2, "int16"),
        "uint16_t" => (2, "uint16"),
        "int32_t" => (4, "int32"),
        "uint32_t" => (4, "uint32"),
        "int64_t" => (8, "int64"),
        "uint64_t" => (8, "uint64"),
        "float" => (4, "float32"),
        "double" => (8, "float64"),
        "bool" => (1, "bool"),
        "char" => (1, "char"),
        _ => return None,
    })
}

impl Formats {
    /// Takes a definition, `name:type field;type[n] field;`.
    pub(super) fn add(&mut self, body: &[u8]) -> Result<(), FileError> {
        let damaged = |what: &'static str| FileError::Damaged(what.into());
        let text = std::str::from_utf8(body).map_err(|_| damaged("a definition is not UTF-8"))?;
        let (name, fields) = text.split_once(':').ok_or_else(|| damaged("a definition has no name"))?;
        if self.0.len() >= FORMATS_LIMIT {
            return Err(FileError::TooLarge(format!("it has more than {FORMATS_LIMIT} definitions")));
        }
        let fields = fields.split(';').map(str::trim).filter(|field| !field.is_empty()).map(field);
        let fields = fields
            .collect::<Option<Vec<Field>>>()
            .ok_or_else(|| damaged("a definition has no fields that can be read"))?;
        self.0.insert(name.to_owned(), fields);
        Ok(())
    }

    /// The layout of a definition, and of those in it.
    pub(super) fn layout(&self, name: &str) -> Result<Layout, FileError> {
        let mut layout = Layout {
            runs: Vec::new(),
            type_name: format!("ulog/msg/{}", camel(name)),
            definition: String::new(),
            timestamp_at: None,
            sample_timestamp_at: None,
        };
        let mut budget = VALUES_LIMIT;
        self.run(name, DEPTH_LIMIT, &mut budget, &mut layout.runs)?;
        let mut at = 0;
        for field in self.fields(name)? {
            let is_time = field.kind == "uint64_t" && field.length.is_none();
            match field.name.as_str() {
                "timestamp" if is_time => layout.timestamp_at = Some(at),
                "timestamp_sample" if is_time => layout.sample_timestamp_at = Some(at),
                _ => {}
            }
            let mut runs = Vec::new();
            self.field(field, DEPTH_LIMIT, &mut VALUES_LIMIT.clone(), &mut runs)?;
            at += runs.iter().map(|run| run.width_bytes * run.count).sum::<usize>();
        }
        let (mut seen, mut waiting) = (BTreeSet::from([name]), vec![name]);
        while let Some(next) = waiting.pop() {
            if next != name {
                let line = "=".repeat(80);
                let _ = writeln!(layout.definition, "{line}\nMSG: ulog/{}", camel(next));
            }
            for field in self.fields(next)?.iter().filter(|field| !field.is_padding()) {
                let nested = camel(&field.kind);
                let kind = basic(&field.kind).map_or(nested.as_str(), |(_, kind)| kind);
                let array = field.length.map_or(String::new(), |length| format!("[{length}]"));
                let _ = writeln!(layout.definition, "{kind}{array} {}", field.name);
                if basic(&field.kind).is_none() && seen.insert(&field.kind) {
                    waiting.push(&field.kind);
                }
            }
        }
        Ok(layout)
    }

    fn fields(&self, name: &str) -> Result<&[Field], FileError> {
        let unknown = || FileError::Damaged(format!("{} has no definition", name.escape_debug()).into());
        self.0.get(name).map(Vec::as_slice).ok_or_else(unknown)
    }

    fn run(
        &self,
        name: &str,
        depth: usize,
        budget: &mut usize,
        runs: &mut Vec<Run>,
    ) -> Result<(), FileError> {
        self.fields(name)?.iter().try_for_each(|each| self.field(each, depth, budget, runs))
    }

    fn field(
        &self,
        field: &Field,
        depth: usize,
        budget: &mut usize,
        runs: &mut Vec<Run>,
    ) -> Result<(), FileError> {
        let too_long =
            || FileError::Damaged("a definition is longer than a message can be, or contains itself".into());
        if let Some((width_bytes, _)) = basic(&field.kind) {
            *budget = budget.checked_sub(field.count()).ok_or_else(too_long)?;
            runs.push(Run { width_bytes, count: field.count(), is_padding: field.is_padding() });
            return Ok(());
        }
        let depth = depth.checked_sub(1).ok_or_else(too_long)?;
        for _ in 0..field.count() {
            // One that is empty costs something, too.
            *budget = budget.checked_sub(1).ok_or_else(too_long)?;
            self.run(&field.kind, depth, budget, runs)?;
        }
        Ok(())
    }
}

impl Layout {
    /// A message in CDR; `None` if it is too short. Padding at the end may be missing.
    pub(super) fn cdr(&self, packed: &[u8]) -> Option<Vec<u8>> {
        let mut rest = packed;
        let mut out = Vec::with_capacity(CDR.len() + packed.len() + 16);
        out.extend(CDR);
        for run in &self.runs {
            let length_bytes = run.width_bytes * run.count;
            if run.is_padding {
                rest = &rest[length_bytes.min(rest.len())..];
                continue;
            }
            let (values, behind) = rest.split_at_checked(length_bytes)?;
            rest = behind;
            if !values.is_empty() {
                // Alignment counts from behind the first four bytes.
                let padded = (out.len() - CDR.len()).next_multiple_of(run.width_bytes) + CDR.len();
                out.resize(padded, 0);
            }
            out.extend(values);
        }
        Some(out)
    }
}

/// `type name` or `type[n] name`.
fn field(text: &str) -> Option<Field> {
    let (kind, name) = text.split_once(' ')?;
    let (kind, length) = match kind.split_once('[') {
        Some((kind, length)) => (kind, Some(length.strip_suffix(']')?.parse::<u16>().ok()?.into())),
        None => (kind, None),
    };
    let is_word = |text: &str| {
        !text.is_empty()
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '/')
    };
    (is_word(kind) && is_word(name)).then(|| Field { kind: kind.to_owned(), length, name: name.to_owned() })
}

/// `vehicle_attitude` → `VehicleAttitude`, as PX4 names the messages of ROS 2.
fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .flat_map(|word| word.chars().take(1).map(|c| c.to_ascii_uppercase()).chain(word.chars().skip(1)))
        .collect()
}
