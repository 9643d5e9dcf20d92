//! C++17.

use serde_json::{Value, json};

use super::{C_KEYWORDS, escaped, float, quoted};
use crate::model::{Element, Field, Literal, Primitive, Shape, TypeName};

/// A name as an identifier. Members of a struct that are not of its definition begin with `noctule_`.
pub(crate) fn ident(name: &str) -> String {
    if name.starts_with("noctule_") { format!("{name}_") } else { escaped(name, C_KEYWORDS) }
}

/// A type's full name: `::sensor_msgs::msg::Imu`.
pub(crate) fn type_name(name: &TypeName) -> String {
    name.parts().map(|part| format!("::{}", ident(part))).collect()
}

fn element(of: &Element) -> String {
    match of {
        Element::Primitive(primitive) => match primitive {
            Primitive::Bool => "bool",
            Primitive::Byte | Primitive::Char | Primitive::U8 => "std::uint8_t",
            Primitive::I8 => "std::int8_t",
            Primitive::I16 => "std::int16_t",
            Primitive::U16 => "std::uint16_t",
            Primitive::I32 => "std::int32_t",
            Primitive::U32 => "std::uint32_t",
            Primitive::I64 => "std::int64_t",
            Primitive::U64 => "std::uint64_t",
            Primitive::F32 => "float",
            Primitive::F64 => "double",
        }
        .to_owned(),
        Element::String { .. } | Element::WString { .. } => "std::string".to_owned(),
        Element::Named(name) => type_name(name),
    }
}

pub(crate) fn field(field: &Field) -> Value {
    let one = element(&field.kind.element);
    let kind = match field.kind.shape {
        Shape::One => one,
        Shape::Array(count) => format!("std::array<{one}, {count}>"),
        Shape::Sequence(_) => format!("std::vector<{one}>"),
    };
    let text_bound = match field.kind.element {
        Element::String { bound } => bound.unwrap_or(0),
        _ => 0,
    };
    let bound = match field.kind.shape {
        Shape::Sequence(bound) => bound.unwrap_or(0),
        _ => 0,
    };
    json!({ "name": ident(&field.name), "type": kind, "plain": in_memory(field), "default": default(field), "bound": bound, "text_bound": text_bound })
}

/// A field of the struct in shared memory, whose truth values are bytes.
fn in_memory(field: &Field) -> String {
    let one = match &field.kind.element {
        Element::Primitive(Primitive::Bool) => "std::uint8_t".to_owned(),
        Element::Named(name) => {
            let full = type_name(name);
            let (space, short) = full.rsplit_once("::").unwrap_or(("", &full));
            format!("{space}::plain::{short}")
        }
        other => element(other),
    };
    match field.kind.shape {
        Shape::Array(count) => format!("std::array<{one}, {count}>"),
        _ => one,
    }
}

fn default(field: &Field) -> String {
    match &field.default {
        None => "{}".to_owned(),
        Some(Literal::List(list)) => {
            let parts: Vec<String> = list.iter().map(|part| constant(&field.kind.element, part)).collect();
            format!("{{{}}}", parts.join(", "))
        }
        Some(value) => format!("{{{}}}", constant(&field.kind.element, value)),
    }
}

/// A value of a constant or a default.
pub(crate) fn constant(element: &Element, value: &Literal) -> String {
    match (value, element) {
        (Literal::Float(value), Element::Primitive(primitive)) => {
            let of = if *primitive == Primitive::F32 { "float" } else { "double" };
            if *primitive == Primitive::F32 && value.is_finite() {
                return format!("{:?}f", *value as f32);
            }
            let limits = format!("std::numeric_limits<{of}>");
            let names = [
                format!("{limits}::quiet_NaN()"),
                format!("{limits}::infinity()"),
                format!("-{limits}::infinity()"),
            ];
            float(*value, [&names[0], &names[1], &names[2]])
        }
        (Literal::Text(text), _) => quoted(text),
        _ => super::c::constant(element, value),
    }
}

/// Macros of the standard headers whose names a constant may have.
const MACROS: &[&str] = &[
    "BUFSIZ",
    "CHAR_BIT",
    "DOMAIN",
    "EOF",
    "EXIT_FAILURE",
    "EXIT_SUCCESS",
    "HUGE_VAL",
    "INFINITY",
    "M_1_PI",
    "M_2_PI",
    "M_2_SQRTPI",
    "M_E",
    "M_LN10",
    "M_LN2",
    "M_LOG10E",
    "M_LOG2E",
    "M_PI",
    "M_PI_2",
    "M_PI_4",
    "M_SQRT1_2",
    "M_SQRT2",
    "NAN",
    "NULL",
    "OVERFLOW",
    "RAND_MAX",
    "SIZE_MAX",
    "UNDERFLOW",
];
/// Names with a macro for the greatest value, and for the least: `INT32_MAX`, `UINT32_MAX`.
const LIMITED: &[&str] = &[
    "CHAR", "DBL", "FLT", "INT", "INT16", "INT32", "INT64", "INT8", "INTMAX", "INTPTR", "LLONG", "LONG",
    "PTRDIFF", "SCHAR", "SHRT",
];

/// A constant's name in the struct `short`: a member cannot have that name, nor the name of a macro.
fn constant_name(name: &str, short: &str) -> String {
    let of = name.strip_suffix("_MAX").or_else(|| name.strip_suffix("_MIN"));
    let is_limit = of.is_some_and(|of| LIMITED.contains(&of.strip_prefix('U').unwrap_or(of)));
    let is_taken = is_limit || MACROS.contains(&name) || name == ident(short);
    if is_taken { format!("{name}_") } else { ident(name) }
}

/// Type and name of a constant of the struct `short`.
pub(crate) fn constant_declaration(of: &Element, name: &str, short: &str) -> String {
    let name = constant_name(name, short);
    match of {
        Element::Primitive(_) => format!("{} {name}", element(of)),
        _ => format!("const char *{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_has_neither_the_name_of_its_struct_nor_of_a_macro() {
        for (name, expected) in [
            ("NULL", "NULL_"),
            ("UINT32_MAX", "UINT32_MAX_"),
            ("GPS", "GPS_"),
            ("INTERVAL_MAX", "INTERVAL_MAX"),
            ("OK", "OK"),
        ] {
            assert_eq!(constant_name(name, "GPS"), expected);
        }
    }
}
