//! Which definition a topic's bytes are decoded by.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use noctule_codegen::cdr::{self, Tree, WideStrings};
use noctule_codegen::described::{Described, add_message, full_name, of_ros2msg};
use noctule_codegen::hash::Hashes;
use noctule_codegen::library::Library;
use noctule_codegen::model::TypeName;

use crate::builtin::DEFINITIONS;
use crate::plain;

/// Elements of a list of numbers that are decoded; the rest is passed over.
pub const LIST_MAX: usize = 2_048;
/// Types that are remembered.
const TYPES_LIMIT: usize = 4_096;
/// Longest definition of a recording that is read, bytes.
const DEFINITION_BYTES_MAX: usize = 1 << 20;

/// Why a topic's bytes are not decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDecoded {
    /// Nowhere defined.
    #[error("no definition of {0} is known; name the folder of its package with --types")]
    Unknown(String),
    /// The publisher's type is laid out in another way.
    #[error(
        "the definition of {0} that is known here is another than the publisher's; name the publisher's package with --types"
    )]
    Other(String),
    /// A format that has no decoder here.
    #[error("its format is {0}; the view decodes CDR, the plain layout and JSON")]
    Format(String),
    /// The topic names no type.
    #[error("the topic names no type, so its bytes are shown as they are")]
    NoType,
    /// The bytes are no value of the type.
    #[error("{0}")]
    Value(String),
}

/// Finds definitions; shared by all threads that decode.
#[derive(Debug, Default)]
pub struct Types {
    folders: Vec<PathBuf>,
    /// Definitions that came with a recording: by name, their text in `ros2msg`.
    texts: BTreeMap<String, String>,
    known: Mutex<BTreeMap<Announced, Found>>,
}

/// Name and hash of a type.
type Announced = (String, u64);
/// A decoder, or why there is none.
type Found = Result<Arc<Decoder>, NotDecoded>;

/// Turns bytes of one type into values.
#[derive(Debug)]
pub struct Decoder {
    library: Library,
    name: TypeName,
}

impl Types {
    /// Looks in these folders of packages first.
    pub fn new(folders: Vec<PathBuf>) -> Types {
        Types { folders, ..Types::default() }
    }

    /// A definition of a recording.
    pub fn add_text(&mut self, type_name: &str, text: &[u8]) {
        if text.len() <= DEFINITION_BYTES_MAX
            && self.texts.len() < TYPES_LIMIT
            && let Ok(text) = std::str::from_utf8(text)
        {
            self.texts.insert(type_name.to_owned(), text.to_owned());
        }
    }

    /// A definition that a node has sent, whose hash was computed again from it.
    pub fn add_described(&self, type_name: &str, hash: u64, described: Described) {
        let Described { library, name } = described;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (type_name.to_owned(), hash);
        // A type that was not found before is found now.
        if known.len() < TYPES_LIMIT || known.contains_key(&key) {
            known.insert(key, Ok(Arc::new(Decoder { library, name })));
        }
    }

    /// Whether a decoder of a type is here already.
    pub fn has(&self, type_name: &str, hash: u64) -> bool {
        self.decoder(type_name, hash).is_ok()
    }

    /// The decoder of a type; `hash` is what the publisher announces, 0 for none.
    ///
    /// # Errors
    /// Why there is none.
    pub fn decoder(&self, type_name: &str, hash: u64) -> Result<Arc<Decoder>, NotDecoded> {
        if type_name.is_empty() {
            return Err(NotDecoded::NoType);
        }
        let key = (type_name.to_owned(), hash);
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let found = self.find(type_name, hash);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < TYPES_LIMIT {
            known.insert(key, found.clone());
        }
        found
    }

    fn find(&self, type_name: &str, hash: u64) -> Result<Arc<Decoder>, NotDecoded> {
        let full = full_name(type_name);
        let name = TypeName::new(full.as_str());
        let fits =
            |decoder: &Decoder| hash == 0 || Hashes::new(&decoder.library).noctule(&decoder.name) == hash;
        let of_text = self.texts.get(type_name).and_then(|text| of_text(&full, text));
        let of_folders = || {
            let mut library = Library::new(self.folders.iter().cloned());
            library.resolve([&name]).ok().map(|()| library)
        };
        let candidates = [of_text, of_folders(), built_in(&name)];
        let mut is_known = false;
        for library in candidates.into_iter().flatten() {
            let decoder = Decoder { library, name: name.clone() };
            if decoder.library.structure(&name).is_none() {
                continue;
            }
            if fits(&decoder) {
                return Ok(Arc::new(decoder));
            }
            is_known = true;
        }
        match is_known {
            true => Err(NotDecoded::Other(type_name.to_owned())),
            false => Err(NotDecoded::Unknown(type_name.to_owned())),
        }
    }
}

fn built_in(name: &TypeName) -> Option<Library> {
    let mut library = Library::new([]);
    DEFINITIONS.iter().for_each(|(full, text)| add_message(&mut library, full, text));
    library.resolve([name]).ok()?;
    Some(library)
}

/// A definition as MCAP and `gendeps --cat` join them: the type's own, then those that it refers to, each behind a line of `=` and
/// one that begins with `MSG:`.
fn of_text(full: &str, text: &str) -> Option<Library> {
    let mut library = of_ros2msg(full, text);
    // A type that a file refers to and leaves out may be a common message.
    let name = TypeName::new(full);
    if library.resolve([&name]).is_err() {
        DEFINITIONS.iter().for_each(|(built_in, text)| add_message(&mut library, built_in, text));
        library.resolve([&name]).ok()?;
    }
    Some(library)
}

impl Decoder {
    /// A value as a tree; lists are cut at [`LIST_MAX`].
    ///
    /// # Errors
    /// The bytes are no value of the type, or their format has no decoder.
    pub fn decode(&self, format: &str, bytes: &[u8]) -> Result<Tree, NotDecoded> {
        match format {
            "cdr" => cdr::decode_some((&self.library, &self.name), bytes, WideStrings::Utf16, LIST_MAX)
                .map_err(|error| NotDecoded::Value(error.to_string())),
            "plain" => plain::decode(&self.library, &self.name, bytes, LIST_MAX)
                .map_err(|error| NotDecoded::Value(error.to_string())),
            other => Err(NotDecoded::Format(other.to_owned())),
        }
    }

    /// The other way: a JSON value as CDR.
    ///
    /// # Errors
    /// It is no value of the type.
    pub fn encode(&self, value: &serde_json::Value) -> Result<Vec<u8>, NotDecoded> {
        let encoded = cdr::encode(&self.library, &self.name, value, WideStrings::Utf16);
        encoded.map_err(|error| NotDecoded::Value(error.to_string()))
    }
}

/// A value of JSON as a tree; numbers stay numbers, null is nothing.
pub fn json_tree(bytes: &[u8]) -> Result<Tree, NotDecoded> {
    let value: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|error| NotDecoded::Value(format!("it is no JSON: {error}")))?;
    Ok(tree_of(&value))
}

// The depth of a JSON value is limited by its parser, to 128.
fn tree_of(value: &serde_json::Value) -> Tree {
    use serde_json::Value;
    match value {
        Value::Null => Tree::Text("null".to_owned()),
        Value::Bool(value) => Tree::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Tree::Integer(i128::from(number)),
            None => Tree::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Tree::Text(text.clone()),
        Value::Array(list) => Tree::List(list.iter().take(LIST_MAX).map(tree_of).collect()),
        Value::Object(fields) => {
            Tree::Fields(fields.iter().map(|(name, value)| (name.clone(), tree_of(value))).collect())
        }
    }
}

/// The number at a path such as `pose.position.x` or `position[2]`; a truth value is 0 or 1.
pub fn number_at(tree: &Tree, path: &str) -> Option<f64> {
    let mut here = tree;
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        here = match (here, step.strip_suffix(']')) {
            (Tree::List(list), Some(index)) => list.get(index.parse::<usize>().ok()?)?,
            (Tree::Fields(fields), None) => &fields.iter().find(|(name, _)| name == step)?.1,
            _ => return None,
        };
    }
    match here {
        Tree::Bool(value) => Some(f64::from(u8::from(*value))),
        Tree::Integer(value) => Some(*value as f64),
        Tree::Float(value) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
