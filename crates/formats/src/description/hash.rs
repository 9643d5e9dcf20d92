//! Types → the hash of the first, refusing what does not fit together.

use std::collections::BTreeMap;

use super::{DescribedElement, DescribedField, DescribedShape, DescribedType, DescriptionError};
use super::{NESTING_MAX, PRIMITIVES};
use crate::definition::{array_hash, enum_hash, optional_hash, sequence_hash, string_hash, struct_hash};

/// State of a type while hashes are computed.
#[derive(Clone, Copy)]
enum State {
    New,
    /// Its members are being looked at: a type that refers to it now contains itself.
    Open,
    Done(u64),
}

struct Hashes<'a> {
    types: &'a [DescribedType],
    by_name: BTreeMap<&'a str, usize>,
    states: Vec<State>,
}

/// The hash of the first type, if every type is defined once, is referred to, and contains neither nothing nor itself.
pub(super) fn checked(types: &[DescribedType]) -> Result<u64, DescriptionError> {
    let mut by_name = BTreeMap::new();
    for (index, defined) in types.iter().enumerate() {
        let name = defined.name();
        let is_word =
            PRIMITIVES.iter().any(|(word, _)| *word == name) || name == "string" || name == "wstring";
        if is_word || name.contains(['[', '?', '<']) {
            return Err(DescriptionError::whole(format!("{name} cannot be the name of a type")));
        }
        if by_name.insert(name, index).is_some() {
            return Err(DescriptionError::whole(format!("{name} is defined twice")));
        }
    }
    let mut hashes = Hashes { types, by_name, states: vec![State::New; types.len()] };
    let hash = hashes.of(0, 1)?;
    let unused = hashes.states.iter().zip(types).find(|(state, _)| matches!(state, State::New));
    match unused {
        None => Ok(hash),
        Some((_, defined)) => Err(DescriptionError::whole(format!("nothing refers to {}", defined.name()))),
    }
}

impl Hashes<'_> {
    fn of(&mut self, index: usize, depth: usize) -> Result<u64, DescriptionError> {
        let types = self.types;
        let defined =
            types.get(index).ok_or_else(|| DescriptionError::whole("the type description is empty"))?;
        match self.states[index] {
            State::Done(hash) => return Ok(hash),
            State::Open => {
                return Err(DescriptionError::whole(format!("{} contains itself", defined.name())));
            }
            State::New => self.states[index] = State::Open,
        }
        if depth > NESTING_MAX {
            let what = format!("{} lies more than {NESTING_MAX} types deep", defined.name());
            return Err(DescriptionError::whole(what));
        }
        let nothing = |name: &str| Err(DescriptionError::whole(format!("{name} has no members")));
        let hash = match defined {
            DescribedType::Struct { name, fields } if fields.is_empty() => return nothing(name),
            DescribedType::Enum { name, variants } if variants.is_empty() => return nothing(name),
            DescribedType::Struct { name, fields } => {
                let mut parts = Vec::with_capacity(fields.len());
                for field in fields {
                    parts.push((field.name.as_str(), self.field(field, depth)?));
                }
                struct_hash(name, &parts)
            }
            DescribedType::Enum { name, variants } => {
                let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
                enum_hash(name, &variants)
            }
        };
        self.states[index] = State::Done(hash);
        Ok(hash)
    }

    fn field(&mut self, field: &DescribedField, depth: usize) -> Result<u64, DescriptionError> {
        let element = match &field.element {
            DescribedElement::Primitive(word) => {
                let hashed = PRIMITIVES.iter().find(|(primitive, _)| primitive == word);
                struct_hash(hashed.map_or(*word, |(_, hashed)| hashed), &[])
            }
            DescribedElement::String(bound) => string_hash("string", u64::from(*bound)),
            DescribedElement::WideString(bound) => string_hash("wstring", u64::from(*bound)),
            DescribedElement::Named(name) => {
                let undefined = || DescriptionError::whole(format!("{name} is not defined"));
                let index = *self.by_name.get(name.as_str()).ok_or_else(undefined)?;
                self.of(index, depth + 1)?
            }
        };
        Ok(field.shapes.iter().fold(element, |of, shape| match shape {
            DescribedShape::Array(count) => array_hash(of, u64::from(*count)),
            DescribedShape::Sequence(bound) => sequence_hash(of, u64::from(*bound)),
            DescribedShape::Optional => optional_hash(of),
        }))
    }
}
