//! The parameters of one node. Sans-IO: declarations and requests in; values, reasons and what has changed out.

use std::collections::BTreeMap;

use super::refusal::Refusal;
use super::value::{ParameterDescriptor, ParameterType, ParameterValue};

/// Parameters of one node.
pub const PARAMETERS_MAX: usize = 4096;
/// Longest name of a parameter, in bytes.
pub const PARAMETER_NAME_BYTES_MAX: usize = 255;
/// Longest value of a parameter, in bytes of its content.
pub const PARAMETER_BYTES_MAX: usize = 64 << 10;

/// Why a parameter was not declared or not set. The sentences that ROS 2 has for it are the same in meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No name, one that is too long, or one with a character that names do not have.
    #[error(
        "{name:?} is no name of a parameter; it has 1 to 255 bytes, all of them printable and none of them a space or a '/'"
    )]
    Name {
        /// The name that was given.
        name: String,
    },
    /// It was declared before.
    #[error("parameter {name} is declared already; declare it once")]
    Declared {
        /// Which.
        name: String,
    },
    /// It was not declared.
    #[error("parameter {name} cannot be set because it was not declared")]
    NotDeclared {
        /// Which.
        name: String,
    },
    /// It keeps its value.
    #[error("parameter {name} cannot be set because it is read-only")]
    ReadOnly {
        /// Which.
        name: String,
    },
    /// A value of another kind.
    #[error("parameter {name} is of type {{{declared}}}, setting it to {{{given}}} is not allowed")]
    Type {
        /// Which.
        name: String,
        /// Its kind.
        declared: ParameterType,
        /// Of the value.
        given: ParameterType,
    },
    /// A value outside of its range, or a declaration whose range is of another kind than its value.
    #[error("parameter {name} can be {range}")]
    Range {
        /// Which.
        name: String,
        /// In words.
        range: String,
    },
    /// A value that is too long.
    #[error(
        "parameter {name} has {bytes} bytes, and a value has at most 65536; make it shorter, or use a topic"
    )]
    TooLong {
        /// Which.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// As many as there may be.
    #[error("parameter {name} is one more than the 4096 that a node has; declare fewer")]
    Full {
        /// Which.
        name: String,
    },
    /// The program's own callback refused it.
    #[error("{why}")]
    Refused {
        /// In its words.
        why: Refusal,
    },
}

/// The changes of the parameters by one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterChanges {
    /// Declared.
    pub new: Vec<(String, ParameterValue)>,
    /// Set.
    pub changed: Vec<(String, ParameterValue)>,
    /// Deleted.
    pub deleted: Vec<String>,
}

impl ParameterChanges {
    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty() && self.deleted.is_empty()
    }
}

/// The names that a request by prefixes and depth found, as `ListParameters` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterNames {
    /// Of parameters, in the order of the alphabet.
    pub names: Vec<String>,
    /// The prefixes, up to their last dots, each once.
    pub prefixes: Vec<String>,
}

#[derive(Clone, Debug)]
struct Declared {
    /// Of the value that it was declared with.
    kind: ParameterType,
    value: ParameterValue,
    descriptor: ParameterDescriptor,
}

/// The parameters of one node, with their declarations.
#[derive(Debug, Default)]
pub(crate) struct Store {
    declared: BTreeMap<String, Declared>,
}

impl Store {
    /// A new parameter.
    pub(crate) fn handle_declaration(
        &mut self,
        name: &str,
        value: ParameterValue,
        descriptor: ParameterDescriptor,
    ) -> Result<ParameterChanges, ParameterError> {
        let owned = || name.to_owned();
        let is_printable =
            name.chars().all(|letter| !letter.is_control() && !letter.is_whitespace() && letter != '/');
        if name.is_empty() || name.len() > PARAMETER_NAME_BYTES_MAX || !is_printable {
            return Err(ParameterError::Name { name: owned() });
        }
        if self.declared.contains_key(name) {
            return Err(ParameterError::Declared { name: owned() });
        }
        if self.declared.len() >= PARAMETERS_MAX {
            return Err(ParameterError::Full { name: owned() });
        }
        let one = Declared { kind: value.kind(), value: ParameterValue::NotSet, descriptor };
        one.allows(name, &value)?;
        self.declared.insert(owned(), Declared { value: value.clone(), ..one });
        Ok(ParameterChanges { new: vec![(owned(), value)], ..Default::default() })
    }

    /// Whether all of these may be set, but for the program's own word.
    pub(crate) fn check(&self, values: &[(String, ParameterValue)]) -> Result<(), ParameterError> {
        for (name, value) in values {
            let known = self.declared.get(name);
            let known = known.ok_or_else(|| ParameterError::NotDeclared { name: name.clone() })?;
            if known.descriptor.read_only {
                return Err(ParameterError::ReadOnly { name: name.clone() });
            }
            known.allows(name, value)?;
        }
        Ok(())
    }

    /// Sets what was [checked](Store::check) to be allowed. A parameter whose type is dynamic is deleted by no value.
    pub(crate) fn handle_values(&mut self, values: Vec<(String, ParameterValue)>) -> ParameterChanges {
        let mut changes = ParameterChanges::default();
        for (name, value) in values {
            if value == ParameterValue::NotSet {
                if self.declared.remove(&name).is_some() {
                    changes.deleted.push(name);
                }
            } else if let Some(known) = self.declared.get_mut(&name) {
                known.value = value.clone();
                changes.changed.push((name, value));
            }
        }
        changes
    }

    /// Its value; none if it is not declared.
    pub(crate) fn value(&self, name: &str) -> Option<&ParameterValue> {
        self.declared.get(name).map(|known| &known.value)
    }

    /// Its description, and the kind of its value.
    pub(crate) fn descriptor(&self, name: &str) -> Option<(&ParameterDescriptor, ParameterType)> {
        self.declared.get(name).map(|known| (&known.descriptor, known.value.kind()))
    }

    /// Names below the prefixes, all if there is none, with at most `depth` parts behind the prefix; 0: however many.
    pub(crate) fn names(&self, prefixes: &[String], depth: u64) -> ParameterNames {
        let is_near = |name: &str| depth == 0 || (name.matches('.').count() as u64) < depth;
        let is_below = |prefix: &String, name: &str| match name.strip_prefix(prefix.as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('.').is_some_and(is_near),
            None => false,
        };
        let is_wanted = |name: &str| match prefixes.is_empty() {
            true => is_near(name),
            false => prefixes.iter().any(|prefix| is_below(prefix, name)),
        };
        let mut found = ParameterNames::default();
        for name in self.declared.keys().filter(|name| is_wanted(name)) {
            found.names.push(name.clone());
            if let Some((prefix, _)) = name.rsplit_once('.')
                && !found.prefixes.iter().any(|known| known == prefix)
            {
                found.prefixes.push(prefix.to_owned());
            }
        }
        found
    }
}

impl Declared {
    fn allows(&self, name: &str, value: &ParameterValue) -> Result<(), ParameterError> {
        let owned = || name.to_owned();
        let given = value.kind();
        if given != self.kind && !self.descriptor.dynamic_typing {
            return Err(ParameterError::Type { name: owned(), declared: self.kind, given });
        }
        if value.content_bytes() > PARAMETER_BYTES_MAX {
            return Err(ParameterError::TooLong { name: owned(), bytes: value.content_bytes() });
        }
        match self.descriptor.range {
            Some(range) if range.kind() != self.kind || !range.has(value) => {
                let range = format!("{range}, of type {{{}}}", range.kind());
                Err(ParameterError::Range { name: owned(), range })
            }
            _ => Ok(()),
        }
    }
}
