//! C99, on hosts and on microcontrollers.
//!
//! Short bounded data lies inside its struct; data that may be of any length is a pointer and a count, into memory that
//! the caller owns. A limit of `topics.toml` is a bound for C alone: the type and its bytes stay what they are.

use serde_json::{Value, json};

use super::{C_KEYWORDS, escaped, float, quoted};
use crate::model::{Element, Field, Literal, Primitive, Shape, TypeName};

/// Longest text and most elements that lie inside a struct.
const INLINE_MAX: u32 = 1024;

/// Longest string literal that every compiler of C99 takes, in bytes (C99 5.2.4.1).
const LITERAL_BYTES_MAX: usize = 4095;

/// Initializer of an array of `char` with a text.
pub(crate) fn text_initializer(text: &str) -> String {
    if text.len() <= LITERAL_BYTES_MAX {
        return quoted(text);
    }
    let bytes: Vec<String> = text.bytes().chain([0]).map(|byte| (byte as i8).to_string()).collect();
    format!("{{{}}}", bytes.join(", "))
}

/// A type's name: `sensor_msgs_Imu`; of services and actions `std_srvs_srv_Trigger_Request`.
pub(crate) fn type_name(name: &TypeName) -> String {
    let parts: Vec<&str> = name.parts().collect();
    match parts.as_slice() {
        [package, "msg", short] => format!("{package}_{short}"),
        parts => parts.join("_"),
    }
}

/// Its word in names of functions and, for hosts, in structs.
fn primitive(of: Primitive) -> (&'static str, &'static str) {
    match of {
        Primitive::Bool => ("bool", "bool"),
        Primitive::Byte | Primitive::Char | Primitive::U8 => ("u8", "uint8_t"),
        Primitive::I8 => ("i8", "int8_t"),
        Primitive::I16 => ("i16", "int16_t"),
        Primitive::U16 => ("u16", "uint16_t"),
        Primitive::I32 => ("i32", "int32_t"),
        Primitive::U32 => ("u32", "uint32_t"),
        Primitive::I64 => ("i64", "int64_t"),
        Primitive::U64 => ("u64", "uint64_t"),
        Primitive::F32 => ("f32", "float"),
        Primitive::F64 => ("f64", "double"),
    }
}

/// A field, with the limit that topics set for it.
pub(crate) fn field(field: &Field, limit: Option<u32>) -> Value {
    let name = escaped(&field.name, C_KEYWORDS);
    // A limit is for the sequence if there is one, else for the string.
    let is_sequence = matches!(field.kind.shape, Shape::Sequence(_));
    let text_limit = if is_sequence { None } else { limit };
    let (word, c_type, text_capacity) = match &field.kind.element {
        Element::Primitive(of) => {
            let (word, c_type) = primitive(*of);
            (word.to_owned(), c_type.to_owned(), None)
        }
        Element::String { bound } | Element::WString { bound } => {
            let capacity = bound.or(text_limit).filter(|bound| *bound <= INLINE_MAX);
            let c_type = if capacity.is_some() { "char" } else { "noctule_text_t" };
            ("text".to_owned(), c_type.to_owned(), capacity)
        }
        Element::Named(of) => ("struct".to_owned(), type_name(of), None),
    };
    let suffix =
        text_capacity.map_or(String::new(), |capacity: u32| format!("[{}]", u64::from(capacity) + 1));
    let bound = match field.kind.shape {
        Shape::Sequence(bound) => bound.or(limit),
        _ => None,
    };
    let inline = bound.filter(|bound| *bound <= INLINE_MAX);
    let declaration = match (field.kind.shape, inline) {
        (Shape::One, _) => format!("{c_type} {name}{suffix};"),
        (Shape::Array(count), _) => format!("{c_type} {name}[{count}]{suffix};"),
        (Shape::Sequence(_), Some(bound)) => {
            format!("struct {{ uint32_t count; {c_type} data[{bound}]{suffix}; }} {name};")
        }
        (Shape::Sequence(_), None) if text_capacity.is_some() => {
            format!("struct {{ uint32_t count; const {c_type} (*data){suffix}; }} {name};")
        }
        (Shape::Sequence(_), None) => format!("struct {{ uint32_t count; const {c_type} *data; }} {name};"),
    };
    json!({
        "name": name,
        "plain": in_memory(field, &name, &c_type),
        "declaration": declaration,
        "word": word,
        "type": c_type,
        "element_bytes": match &field.kind.element {
            Element::Primitive(of) => of.size_bytes(),
            _ => 0,
        },
        "is_bool": matches!(field.kind.element, Element::Primitive(Primitive::Bool)),
        "text_capacity": text_capacity,
        "text_bound": match field.kind.element {
            Element::String { bound } => bound.or(text_limit),
            _ => None,
        },
        "bound": bound,
        "is_inline": inline.is_some(),
        "suffix": suffix,
        "default": default(field, text_capacity.is_some()),
        "default_count": match &field.default {
            Some(Literal::List(list)) => list.len(),
            _ => 0,
        },
    })
}

/// The declaration of a field of the struct in shared memory, whose truth values are bytes.
fn in_memory(field: &Field, name: &str, c_type: &str) -> String {
    let one = match &field.kind.element {
        Element::Primitive(Primitive::Bool) => "uint8_t".to_owned(),
        Element::Named(_) => format!("{c_type}_plain"),
        _ => c_type.to_owned(),
    };
    match field.kind.shape {
        Shape::Array(count) => format!("{one} {name}[{count}];"),
        _ => format!("{one} {name};"),
    }
}

/// Default that `_init` sets, if it is not zero: of one, a value; of many, the list of values.
fn default(field: &Field, is_inline_text: bool) -> Value {
    let one = |value: &Literal| literal(&field.kind.element, value, is_inline_text);
    match &field.default {
        None => Value::Null,
        Some(Literal::List(list)) => Value::Array(list.iter().map(|value| one(value).into()).collect()),
        Some(value) => one(value).into(),
    }
}

fn literal(element: &Element, value: &Literal, is_inline_text: bool) -> String {
    match value {
        Literal::Text(text) if is_inline_text => quoted(text),
        Literal::Text(text) => format!("{{{}, {}}}", quoted(text), text.len()),
        other => constant(element, other),
    }
}

/// A value of a constant.
pub(crate) fn constant(element: &Element, value: &Literal) -> String {
    match (value, element) {
        (Literal::Bool(value), _) => value.to_string(),
        (Literal::Integer(value), Element::Primitive(primitive)) => match primitive {
            // The least number has no literal of its own in C.
            Primitive::I64 if *value == i128::from(i64::MIN) => "INT64_MIN".to_owned(),
            Primitive::I64 => format!("INT64_C({value})"),
            Primitive::U64 => format!("UINT64_C({value})"),
            Primitive::I32 if *value == i128::from(i32::MIN) => "INT32_MIN".to_owned(),
            Primitive::Byte | Primitive::Char | Primitive::U8 | Primitive::U16 | Primitive::U32 => {
                format!("{value}u")
            }
            _ if *value < 0 => format!("({value})"),
            _ => value.to_string(),
        },
        (Literal::Float(value), Element::Primitive(Primitive::F32)) if value.is_finite() => {
            format!("{:?}f", *value as f32)
        }
        (Literal::Float(value), _) => float(*value, ["NAN", "INFINITY", "-INFINITY"]),
        (Literal::Text(text), _) => quoted(text),
        (Literal::Integer(value), _) => value.to_string(),
        (Literal::List(_), _) => String::new(),
    }
}
