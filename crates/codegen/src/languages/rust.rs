//! Rust.

use serde_json::{Value, json};

use crate::model::{Element, Field, Literal, Primitive, Shape, TypeName};

const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
/// Keywords that cannot be raw identifiers.
const NEVER_RAW: &[&str] = &["Self", "crate", "self", "super"];

/// A name as an identifier.
pub(crate) fn ident(name: &str) -> String {
    if NEVER_RAW.contains(&name) {
        format!("{name}_")
    } else if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// The path of a type from the module of another.
fn path(name: &TypeName) -> String {
    name.parts().fold("super::super".to_owned(), |path, part| format!("{path}::{}", ident(part)))
}

// A message may be called String or Vec, and std_msgs has one: names of the standard library are written out.
fn element(of: &Element) -> String {
    match of {
        Element::Primitive(primitive) => primitive.word().to_owned(),
        Element::String { bound: None } | Element::WString { .. } => "::std::string::String".to_owned(),
        Element::String { bound: Some(bound) } => format!("::noctule::formats::bounded::Text<{bound}>"),
        Element::Named(name) => path(name),
    }
}

/// A field of the struct in shared memory, inside the module `plain` of a kind.
fn in_memory(field: &Field) -> String {
    let one = match &field.kind.element {
        Element::Primitive(Primitive::Bool) => "u8".to_owned(),
        Element::Named(name) => {
            let mut parts: Vec<String> = name.parts().map(ident).collect();
            let last = parts.len().saturating_sub(1);
            parts.insert(last, "plain".to_owned());
            format!("super::super::super::{}", parts.join("::"))
        }
        other => element(other),
    };
    match field.kind.shape {
        Shape::Array(count) => format!("[{one}; {count}]"),
        _ => one,
    }
}

pub(crate) fn field(field: &Field) -> Value {
    let one = element(&field.kind.element);
    let kind = match field.kind.shape {
        Shape::One => one,
        Shape::Array(count) => format!("[{one}; {count}]"),
        Shape::Sequence(None) => format!("::std::vec::Vec<{one}>"),
        Shape::Sequence(Some(bound)) => format!("::noctule::formats::bounded::Sequence<{one}, {bound}>"),
    };
    let name = ident(&field.name);
    let mut attributes = Vec::new();
    let is_renamed = NEVER_RAW.contains(&field.name.as_str());
    if is_renamed {
        attributes.push(format!("#[serde(rename = \"{}\")]", field.name));
    }
    if matches!(field.kind.shape, Shape::Array(count) if count > 32) {
        attributes.push("#[serde(with = \"::noctule::formats::array\")]".to_owned());
    }
    json!({
        "name": name,
        "declared": if is_renamed { format!("{name} as \"{}\"", field.name) } else { name.clone() },
        "type": kind,
        "plain": in_memory(field),
        "default": default(field),
        "attributes": attributes,
    })
}

fn default(field: &Field) -> String {
    let element = &field.kind.element;
    match (&field.default, field.kind.shape) {
        (Some(Literal::List(list)), shape) => {
            let parts: Vec<String> = list.iter().map(|part| literal(element, part)).collect();
            let parts = parts.join(", ");
            match shape {
                Shape::Sequence(Some(_)) => format!("vec![{parts}].try_into().unwrap_or_default()"),
                Shape::Sequence(None) => format!("vec![{parts}]"),
                _ => format!("[{parts}]"),
            }
        }
        (Some(value), _) => literal(element, value),
        (None, Shape::Array(count)) => match element {
            Element::Primitive(Primitive::Bool) => format!("[false; {count}]"),
            Element::Primitive(Primitive::F32 | Primitive::F64) => format!("[0.0; {count}]"),
            Element::Primitive(_) => format!("[0; {count}]"),
            _ => "::std::array::from_fn(|_| ::std::default::Default::default())".to_owned(),
        },
        (None, _) => "::std::default::Default::default()".to_owned(),
    }
}

/// A value of a default.
fn literal(element: &Element, value: &Literal) -> String {
    match (element, value) {
        (Element::String { bound: Some(_) }, Literal::Text(text)) => {
            format!("{text:?}.try_into().unwrap_or_default()")
        }
        (_, Literal::Text(text)) => format!("{text:?}.to_owned()"),
        _ => constant(element, value),
    }
}

/// A value of a constant.
pub(crate) fn constant(element: &Element, value: &Literal) -> String {
    match value {
        Literal::Bool(value) => value.to_string(),
        Literal::Integer(value) => value.to_string(),
        Literal::Float(value) => {
            let of = if matches!(element, Element::Primitive(Primitive::F32)) { "f32" } else { "f64" };
            // The digits of an f32 are those of an f32: others would be more than it can hold.
            if of == "f32" && value.is_finite() {
                return format!("{:?}", *value as f32);
            }
            let names = [format!("{of}::NAN"), format!("{of}::INFINITY"), format!("{of}::NEG_INFINITY")];
            super::float(*value, [&names[0], &names[1], &names[2]])
        }
        Literal::Text(text) => format!("{text:?}"),
        Literal::List(_) => String::new(),
    }
}

/// The type of a constant.
pub(crate) fn constant_type(element: &Element) -> String {
    match element {
        Element::Primitive(primitive) => primitive.word().to_owned(),
        _ => "&'static str".to_owned(),
    }
}
