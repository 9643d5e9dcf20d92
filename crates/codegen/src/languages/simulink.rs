//! Simulink: what a message is as signals of a fixed size.
//!
//! A signal is an array of one of nine built-in types, and of a fixed length. So a message is a list of *leaves*, one for each
//! primitive field of the message and of all that lies in it; a block has one port for each. What may be of any length has a
//! capacity, by ROS Toolbox's customs, and two leaves beside it, `CurrentLength` and `ReceivedLength`. Integers of 64 bits, which
//! ports do not have, are two `uint32`, the high one first. Leaves of an array of messages hold the elements of all of them.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{C_KEYWORDS, c, escaped};
use crate::diagnostic::{Fault, Faults};
use crate::library::Library;
use crate::model::{Element, Field, Primitive, Shape, TypeName};
use crate::topics::check::Limits;
use crate::topics::{Language, System};

/// Elements of a sequence of primitives, and bytes of a text, that have neither a bound nor a limit.
const PRIMITIVES: u32 = 128;
/// Elements of a sequence of messages or texts that has neither a bound nor a limit.
const MESSAGES: u32 = 16;
/// A bound up to this is a capacity; a greater one says nothing about usual lengths.
const BOUND_MAX: u32 = 1024;
/// Most ports of a block.
const PORTS_MAX: u64 = 1_000;
/// Most bytes that all ports of a block may hold.
const BYTES_MAX: u64 = 16 << 20;

/// Longest name of a function in MATLAB (`namelengthmax`), in bytes.
const NAME_BYTES_MAX: usize = 63;

/// The name of the block of a program that writes or reads a topic.
pub(crate) fn block_name(program: &str, direction: &str, topic: &str) -> String {
    format!("{program}_{direction}_{topic}")
}

/// Names that are no fields of a struct in MATLAB.
const KEYWORDS: &[&str] = &[
    "case",
    "catch",
    "classdef",
    "else",
    "elseif",
    "end",
    "function",
    "global",
    "if",
    "otherwise",
    "parfor",
    "persistent",
    "spmd",
    "switch",
    "try",
    "while",
];

/// A class of MATLAB: its name, its `DatatypeID`, and its type in C.
struct Class {
    name: &'static str,
    id: u8,
    c: &'static str,
    bytes: u64,
    /// Elements that one value takes.
    per_value: u32,
}

fn class(of: Primitive) -> Class {
    let (name, id, c, bytes) = match of {
        Primitive::F64 => ("double", 0, "double", 8),
        Primitive::F32 => ("single", 1, "float", 4),
        Primitive::I8 => ("int8", 2, "int8_t", 1),
        Primitive::Byte | Primitive::Char | Primitive::U8 => ("uint8", 3, "uint8_t", 1),
        Primitive::I16 => ("int16", 4, "int16_t", 2),
        Primitive::U16 => ("uint16", 5, "uint16_t", 2),
        Primitive::I32 => ("int32", 6, "int32_t", 4),
        Primitive::U32 | Primitive::I64 | Primitive::U64 => ("uint32", 7, "uint32_t", 4),
        Primitive::Bool => ("boolean", 8, "uint8_t", 1),
    };
    let is_wide = matches!(of, Primitive::I64 | Primitive::U64);
    Class { name, id, c, bytes, per_value: if is_wide { 2 } else { 1 } }
}

/// One port: the way to it, its class, and how many elements it has.
#[derive(Clone)]
struct Leaf {
    path: String,
    class: &'static str,
    id: u8,
    bytes: u64,
    elements: u64,
}

/// The leaves of types, worked out once each.
pub(crate) struct Ports<'l> {
    library: &'l Library,
    limits: &'l Limits,
    known: HashMap<TypeName, Option<Vec<Leaf>>>,
}

impl<'l> Ports<'l> {
    pub(crate) fn new(library: &'l Library, limits: &'l Limits) -> Self {
        Self { library, limits, known: HashMap::new() }
    }

    /// True if a block can have the ports of a type.
    fn fit(&mut self, name: &TypeName) -> bool {
        self.leaves(name).is_some()
    }

    /// The leaves of a type; `None` if there are more than a block may have.
    fn leaves(&mut self, name: &TypeName) -> Option<Vec<Leaf>> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let found = self.work_out(name);
        self.known.insert(name.clone(), found.clone());
        found
    }

    fn work_out(&mut self, name: &TypeName) -> Option<Vec<Leaf>> {
        let library = self.library;
        let Some(defined) = library.structure(name) else { return Some(Vec::new()) };
        let mut leaves = Vec::new();
        for field in &defined.fields {
            let limit = self.limits.get(&(name.clone(), field.name.clone())).copied();
            leaves.extend(self.of_field(field, limit)?);
            let sizes = leaves.iter().map(|leaf: &Leaf| leaf.elements.saturating_mul(leaf.bytes));
            let bytes = sizes.fold(0, u64::saturating_add);
            if leaves.len() as u64 > PORTS_MAX || bytes > BYTES_MAX {
                return None;
            }
        }
        Some(leaves)
    }

    fn of_field(&mut self, field: &Field, limit: Option<u32>) -> Option<Vec<Leaf>> {
        let name = ident(&field.name);
        let shaped = Capacity::of(field, limit);
        let count = u64::from(shaped.elements);
        let is_many = field.kind.shape != Shape::One;
        let mut leaves = match &field.kind.element {
            Element::Primitive(of) => {
                let class = class(*of);
                let elements = count * u64::from(class.per_value);
                vec![Leaf {
                    path: name.clone(),
                    class: class.name,
                    id: class.id,
                    bytes: class.bytes,
                    elements,
                }]
            }
            Element::String { .. } | Element::WString { .. } => {
                let path = if is_many { format!("{name}.Data") } else { name.clone() };
                let elements = count * u64::from(shaped.text);
                let data = Leaf { path: path.clone(), class: "uint8", id: 3, bytes: 1, elements };
                [vec![data], lengths(&path, count)].concat()
            }
            Element::Named(inner) => {
                let inner = self.leaves(inner)?;
                let below = |leaf: Leaf| Leaf {
                    path: format!("{name}.{}", leaf.path),
                    elements: leaf.elements.saturating_mul(count),
                    ..leaf
                };
                inner.into_iter().map(below).collect()
            }
        };
        if matches!(field.kind.shape, Shape::Sequence(_)) {
            leaves.extend(lengths(&name, 1));
        }
        Some(leaves)
    }

    /// Description of a type for templates; null if it has more ports than a block may have.
    pub(crate) fn described(&mut self, name: &TypeName) -> Value {
        let Some(leaves) = self.leaves(name) else { return Value::Null };
        let bytes: u64 = leaves.iter().map(|leaf| leaf.elements * leaf.bytes).sum();
        let ports: Vec<Value> = leaves
            .iter()
            .map(|leaf| {
                json!({
                    "path": leaf.path,
                    "name": leaf.path.replace('.', "_"),
                    "class": leaf.class,
                    "id": leaf.id,
                    "bytes": leaf.bytes,
                    "elements": leaf.elements,
                })
            })
            .collect();
        json!({
            "bus": c::type_name(name),
            "ports": ports,
            "is_bus": !self.holds_messages(name),
            // Each value takes its size and less than that in padding; the lengths make up for NUL and header.
            "sample_bytes_max": bytes * 2 + 4,
        })
    }

    /// True if there is an array of messages or texts in it, whose leaves a Bus Creator cannot put together.
    fn holds_messages(&self, name: &TypeName) -> bool {
        let fields = self.library.structure(name).map_or(&[][..], |defined| defined.fields.as_slice());
        fields.iter().any(|field| match (&field.kind.element, field.kind.shape) {
            (Element::Primitive(_), _) | (Element::String { .. } | Element::WString { .. }, Shape::One) => {
                false
            }
            (Element::Named(inner), Shape::One) => self.holds_messages(inner),
            _ => true,
        })
    }

    /// Description of a field for templates.
    pub(crate) fn field(&mut self, owner: &TypeName, field: &Field) -> Value {
        let limit = self.limits.get(&(owner.clone(), field.name.clone())).copied();
        let capacity = Capacity::of(field, limit);
        let ports = self.of_field(field, limit).map_or(0, |leaves| leaves.len());
        let own = match &field.kind.element {
            Element::Primitive(of) => class(*of),
            _ => Class { name: "uint8", id: 3, c: "uint8_t", bytes: 1, per_value: 1 },
        };
        json!({
            "name": ident(&field.name),
            "bus": match &field.kind.element {
                Element::Named(inner) => Some(c::type_name(inner)),
                _ => None,
            },
            "class": own.name,
            "c": own.c,
            "is_wide": own.per_value == 2,
            "capacity": capacity.elements,
            "text_capacity": capacity.text,
            "ports": ports,
        })
    }
}

/// Refuses topics of a model that cannot be blocks.
pub(crate) fn check(system: &System, library: &Library, limits: &Limits, faults: &mut Faults) {
    let mut ports = Ports::new(library, limits);
    for topic in &system.topics {
        let ends = [("writes", &topic.from), ("reads", &topic.to)];
        let all =
            ends.iter().flat_map(|(direction, ends)| ends.iter().map(move |index| (*direction, *index)));
        for (direction, index) in all {
            let program = &system.programs[index];
            if program.language != Language::Simulink {
                continue;
            }
            if !ports.fit(&topic.type_name) {
                let what = format!(
                    "{} has more than {PORTS_MAX} ports or {} MiB as signals of a fixed size, and {} is a block of Simulink",
                    topic.type_name,
                    BYTES_MAX >> 20,
                    program.name
                );
                let help = "write limits for its sequences and texts, or use a smaller type";
                faults.push(Fault::at(topic.type_place.clone(), what).help(help));
            }
            let name = block_name(&program.name, direction, &topic.ident());
            if name.len() > NAME_BYTES_MAX {
                let what = format!(
                    "the block {name} would have a name of {} letters, and MATLAB's have {NAME_BYTES_MAX} at most",
                    name.len()
                );
                faults.push(
                    Fault::at(topic.place.clone(), what).help("shorten the topic's or the program's name"),
                );
            }
        }
    }
}

/// The two lengths beside what may be shorter than its capacity.
fn lengths(path: &str, elements: u64) -> Vec<Leaf> {
    ["CurrentLength", "ReceivedLength"]
        .map(|word| Leaf {
            path: format!("{path}_SL_Info.{word}"),
            class: "uint32",
            id: 7,
            bytes: 4,
            elements,
        })
        .to_vec()
}

/// How much of a field there is room for.
struct Capacity {
    elements: u32,
    /// Bytes of each text.
    text: u32,
}

impl Capacity {
    fn of(field: &Field, limit: Option<u32>) -> Self {
        let usual = |bound: Option<u32>, limit: Option<u32>, without: u32| {
            let bounded = bound.filter(|bound| *bound <= BOUND_MAX);
            limit.or(bounded).unwrap_or(bound.map_or(without, |bound| bound.min(without))).max(1)
        };
        let is_sequence = matches!(field.kind.shape, Shape::Sequence(_));
        let of_messages = !matches!(field.kind.element, Element::Primitive(_));
        let elements = match field.kind.shape {
            Shape::One => 1,
            Shape::Array(count) => count,
            Shape::Sequence(bound) => usual(bound, limit, if of_messages { MESSAGES } else { PRIMITIVES }),
        };
        // A limit is for the sequence if there is one, else for the string.
        let text_limit = if is_sequence { None } else { limit };
        let text = match field.kind.element {
            Element::String { bound } | Element::WString { bound } => usual(bound, text_limit, PRIMITIVES),
            _ => 0,
        };
        Self { elements, text }
    }
}

/// A name that is a field of a struct in MATLAB and in C.
fn ident(name: &str) -> String {
    let name = escaped(name, KEYWORDS);
    let name = escaped(&name, C_KEYWORDS);
    if name.starts_with('_') { format!("x{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Struct;

    fn library() -> Library {
        let mut library = Library::new([]);
        let mut insert = |name: &str, fields: Vec<Field>| {
            let defined = Struct::new(TypeName::new(name), fields);
            library.insert(
                crate::model::Named::Struct(defined.into()),
                &mut crate::diagnostic::Faults::default(),
            );
        };
        let named = |name: &str| Element::Named(TypeName::new(name));
        insert(
            "a/msg/Inner",
            vec![
                Field::new("end", Element::Primitive(Primitive::I64), Shape::One),
                Field::new("label", Element::String { bound: None }, Shape::One),
            ],
        );
        insert(
            "a/msg/Outer",
            vec![
                Field::new("one", named("a/msg/Inner"), Shape::One),
                Field::new("values", Element::Primitive(Primitive::F32), Shape::Sequence(None)),
                Field::new("many", named("a/msg/Inner"), Shape::Sequence(Some(3))),
                Field::new("words", Element::String { bound: Some(5_000) }, Shape::Array(2)),
            ],
        );
        insert("a/msg/Far", vec![Field::new("far", named("a/msg/Outer"), Shape::Array(100_000))]);
        library
    }

    #[test]
    fn a_message_is_one_port_for_each_primitive_of_it() {
        let (library, limits) =
            (library(), Limits::from([((TypeName::new("a/msg/Outer"), "values".into()), 7)]));
        let described = Ports::new(&library, &limits).described(&TypeName::new("a/msg/Outer"));
        let ports: Vec<String> = described["ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|port| {
                format!(
                    "{} {} {}",
                    port["path"].as_str().unwrap(),
                    port["class"].as_str().unwrap(),
                    port["elements"]
                )
            })
            .collect();
        let expected = "one.end_ uint32 2, one.label uint8 128, one.label_SL_Info.CurrentLength uint32 1, \
             one.label_SL_Info.ReceivedLength uint32 1, values single 7, values_SL_Info.CurrentLength uint32 1, \
             values_SL_Info.ReceivedLength uint32 1, many.end_ uint32 6, many.label uint8 384, \
             many.label_SL_Info.CurrentLength uint32 3, many.label_SL_Info.ReceivedLength uint32 3, \
             many_SL_Info.CurrentLength uint32 1, many_SL_Info.ReceivedLength uint32 1, words.Data uint8 256, \
             words.Data_SL_Info.CurrentLength uint32 2, words.Data_SL_Info.ReceivedLength uint32 2";
        assert_eq!(ports.join(", "), expected.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(described["is_bus"], false);
        assert_eq!(Ports::new(&library, &limits).described(&TypeName::new("a/msg/Inner"))["is_bus"], true);
    }

    #[test]
    fn a_type_that_is_greater_than_a_block_may_be_has_no_ports() {
        let (library, limits) = (library(), Limits::new());
        assert!(Ports::new(&library, &limits).described(&TypeName::new("a/msg/Far")).is_null());
    }
}
