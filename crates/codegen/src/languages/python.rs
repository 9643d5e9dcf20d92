//! Python.

use serde_json::{Value, json};

use super::{escaped, float};
use crate::model::{Element, Field, Literal, Primitive, Shape, TypeName};

const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "match",
    "case", "type", "str", "bool", "list", "int", "float", "bytes", "noctule", "np", "field",
];

/// A name as an identifier.
pub(crate) fn ident(name: &str) -> String {
    escaped(name, KEYWORDS)
}

/// The name of a type in the module of definitions.
pub(crate) fn type_name(name: &TypeName) -> String {
    name.parts().collect::<Vec<_>>().join("__")
}

fn numpy(of: Primitive) -> Option<&'static str> {
    Some(match of {
        Primitive::Bool => return None,
        Primitive::Byte | Primitive::Char | Primitive::U8 => "np.uint8",
        Primitive::I8 => "np.int8",
        Primitive::I16 => "np.int16",
        Primitive::U16 => "np.uint16",
        Primitive::I32 => "np.int32",
        Primitive::U32 => "np.uint32",
        Primitive::I64 => "np.int64",
        Primitive::U64 => "np.uint64",
        Primitive::F32 => "np.float32",
        Primitive::F64 => "np.float64",
    })
}

fn element(of: &Element) -> String {
    match of {
        Element::Primitive(Primitive::Bool) => "bool".to_owned(),
        Element::Primitive(primitive) => format!("noctule.{}", primitive.word()),
        Element::String { bound: Some(bound) } => format!("Annotated[str, noctule.bound({bound})]"),
        Element::String { bound: None } | Element::WString { .. } => "str".to_owned(),
        Element::Named(name) => type_name(name),
    }
}

pub(crate) fn field(field: &Field) -> Value {
    let one = element(&field.kind.element);
    let many = match &field.kind.element {
        Element::Primitive(primitive) => numpy(*primitive).map(|of| format!("NDArray[{of}]")),
        _ => None,
    };
    let many = many.unwrap_or_else(|| format!("list[{one}]"));
    let mut kind = match field.kind.shape {
        Shape::One => one,
        Shape::Array(count) => format!("Annotated[{many}, {count}]"),
        Shape::Sequence(None) => many,
        Shape::Sequence(Some(bound)) => format!("Annotated[{many}, noctule.bound({bound})]"),
    };
    let name = ident(&field.name);
    if name != field.name {
        kind = format!("Annotated[{kind}, noctule.name(\"{}\")]", field.name);
    }
    json!({ "name": name, "type": kind, "default": default(field) })
}

fn default(field: &Field) -> String {
    let element = &field.kind.element;
    let numpy = match element {
        Element::Primitive(primitive) => numpy(*primitive),
        _ => None,
    };
    let values = match &field.default {
        Some(Literal::List(list)) => list.iter().map(|value| constant(element, value)).collect::<Vec<_>>(),
        Some(value) => return constant(element, value),
        None => Vec::new(),
    };
    match (field.kind.shape, numpy) {
        (Shape::One, _) => match element {
            Element::Primitive(Primitive::Bool) => "False".to_owned(),
            Element::Primitive(Primitive::F32 | Primitive::F64) => "0.0".to_owned(),
            Element::Primitive(_) => "0".to_owned(),
            Element::String { .. } | Element::WString { .. } => "\"\"".to_owned(),
            Element::Named(name) => format!("field(default_factory={})", type_name(name)),
        },
        (_, Some(of)) if !values.is_empty() => {
            format!("field(default_factory=lambda: np.array([{}], {of}))", values.join(", "))
        }
        (Shape::Array(count), Some(of)) => format!("field(default_factory=lambda: np.zeros({count}, {of}))"),
        (Shape::Sequence(_), Some(of)) => format!("field(default_factory=lambda: np.zeros(0, {of}))"),
        (_, None) if !values.is_empty() => format!("field(default_factory=lambda: [{}])", values.join(", ")),
        (Shape::Array(count), None) => {
            let zero = match element {
                Element::Named(name) => format!("{}()", type_name(name)),
                Element::Primitive(_) => "False".to_owned(),
                _ => "\"\"".to_owned(),
            };
            format!("field(default_factory=lambda: [{zero} for _ in range({count})])")
        }
        (Shape::Sequence(_), None) => "field(default_factory=list)".to_owned(),
    }
}

/// A value of a constant or a default.
pub(crate) fn constant(element: &Element, value: &Literal) -> String {
    match value {
        Literal::Bool(value) => (if *value { "True" } else { "False" }).to_owned(),
        Literal::Integer(value) => value.to_string(),
        Literal::Float(value)
            if matches!(element, Element::Primitive(Primitive::F32)) && value.is_finite() =>
        {
            format!("{:?}", *value as f32)
        }
        Literal::Float(value) => float(*value, ["float(\"nan\")", "float(\"inf\")", "float(\"-inf\")"]),
        Literal::Text(text) => text_literal(text),
        Literal::List(_) => String::new(),
    }
}

/// A text between quotes, with escapes that Python reads as the same characters.
fn text_literal(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            ' '..='~' => out.push(character),
            other => out.push_str(&format!("\\U{:08x}", u32::from(other))),
        }
    }
    out.push('"');
    out
}
