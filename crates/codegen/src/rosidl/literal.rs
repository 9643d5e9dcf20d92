//! Values of constants and defaults, as rosidl_adapter reads them.

use crate::model::{Element, FieldType, Literal, Primitive, Shape, TypeName};

/// Why a text is no value of a type, one sentence each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LiteralError {
    #[error("{0} cannot have a default, because only numbers, strings and arrays of those have one")]
    NoDefault(TypeName),
    #[error("{0} has no literals")]
    NoLiterals(TypeName),
    #[error("{0} is not a list; write it as [a, b, c]")]
    NoList(String),
    #[error("the array has {length} elements, and the default {count}")]
    ArrayLength { length: u32, count: usize },
    #[error("the sequence has at most {bound} elements, and the default {count}")]
    SequenceLength { bound: u32, count: usize },
    #[error("{0} is not a bool; write true or false")]
    Bool(String),
    #[error("{text} is not a whole number of type {element}")]
    Integer { text: String, element: Element },
    #[error("{text} is not in the range of {element}, {least} to {most}")]
    Range { text: String, element: Element, least: i128, most: i128 },
    #[error("{0} is not a floating-point number; write it as 1.5e3")]
    Float(String),
    #[error("{0} is greater than the greatest float32, {max:e}", max = f32::MAX)]
    Float32(String),
    #[error("a string contains NUL, which ends strings in CDR")]
    Nul,
    #[error("the string has {length} {unit}, and its type at most {bound}")]
    StringLength { length: usize, unit: &'static str, bound: u32 },
    #[error("{text} has no closing {quote}; a # begins a comment even inside quotes")]
    Unclosed { text: String, quote: char },
    #[error("{text} has a {quote} inside; write it as \\{quote}")]
    Quote { text: String, quote: char },
    #[error("an element of the list is missing between two commas")]
    NoElement,
    #[error("between two strings stands {0} and not a comma")]
    NoComma(String),
    #[error("a text is no {0}")]
    Text(FieldType),
}

/// Reads the value of a constant or of a field.
///
/// # Errors
/// The text is no value of this type.
pub(crate) fn parse(kind: &FieldType, text: &str) -> Result<Literal, LiteralError> {
    if let Element::Named(name) = &kind.element {
        return Err(LiteralError::NoDefault(name.clone()));
    }
    let (bound, is_array) = match kind.shape {
        Shape::One => return one(&kind.element, text),
        Shape::Array(count) => (Some(count), true),
        Shape::Sequence(bound) => (bound, false),
    };
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(|| LiteralError::NoList(text.to_owned()))?;
    let is_text = matches!(kind.element, Element::String { .. } | Element::WString { .. });
    let parts = if is_text { quoted_parts(inner)? } else { plain_parts(inner) };
    if let Some(bound) = bound {
        let count = parts.len();
        if is_array && count != bound as usize {
            return Err(LiteralError::ArrayLength { length: bound, count });
        }
        if count > bound as usize {
            return Err(LiteralError::SequenceLength { bound, count });
        }
    }
    parts.into_iter().map(|part| one(&kind.element, part)).collect::<Result<_, _>>().map(Literal::List)
}

/// Reads one number, truth value or string.
fn one(element: &Element, text: &str) -> Result<Literal, LiteralError> {
    match element {
        Element::Primitive(Primitive::Bool) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Literal::Bool(true)),
            "false" | "0" => Ok(Literal::Bool(false)),
            _ => Err(LiteralError::Bool(text.to_owned())),
        },
        Element::Primitive(primitive @ (Primitive::F32 | Primitive::F64)) => float(*primitive, text),
        Element::Primitive(primitive) => integer(*primitive, text),
        Element::String { bound } => string(text, *bound, str::len, "bytes"),
        Element::WString { bound } => {
            string(text, *bound, |text| text.encode_utf16().count(), "code units of UTF-16")
        }
        Element::Named(name) => Err(LiteralError::NoLiterals(name.clone())),
    }
}

/// A number in Python's notation: `12`, `-0x1F`, `0b101`, `0o17`, `1_000`.
pub(crate) fn integer(primitive: Primitive, text: &str) -> Result<Literal, LiteralError> {
    let (least, most) = primitive.range().unwrap_or_default();
    let value = number(text);
    let element = Element::Primitive(primitive);
    let text = || text.to_owned();
    let Some(value) = value else {
        return Err(LiteralError::Integer { text: text(), element });
    };
    if value < least || value > most {
        return Err(LiteralError::Range { text: text(), element, least, most });
    }
    Ok(Literal::Integer(value))
}

fn number(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.get(..2).unwrap_or_default() {
        "0x" | "0X" => (16, &digits[2..]),
        "0o" | "0O" => (8, &digits[2..]),
        "0b" | "0B" => (2, &digits[2..]),
        _ => (10, digits),
    };
    // Python allows one underscore between digits, and after the letter of the base.
    let digits = if radix == 10 { digits } else { digits.strip_prefix('_').unwrap_or(digits) };
    if digits.starts_with(['_', '+', '-']) || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let magnitude = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(if is_negative { -magnitude } else { magnitude })
}

pub(crate) fn float(primitive: Primitive, text: &str) -> Result<Literal, LiteralError> {
    let is_plain = !text.starts_with('_') && !text.ends_with('_') && !text.contains("__");
    let value = text.replace('_', "").parse::<f64>().ok().filter(|_| is_plain);
    let value = value.ok_or_else(|| LiteralError::Float(text.to_owned()))?;
    if primitive == Primitive::F64 {
        return Ok(Literal::Float(value));
    }
    let rounded = value as f32;
    if rounded.is_infinite() && value.is_finite() {
        return Err(LiteralError::Float32(text.to_owned()));
    }
    Ok(Literal::Float(f64::from(rounded)))
}

fn string(
    text: &str,
    bound: Option<u32>,
    length: fn(&str) -> usize,
    unit: &'static str,
) -> Result<Literal, LiteralError> {
    let text = unquoted(text)?;
    if text.contains('\0') {
        return Err(LiteralError::Nul);
    }
    let length = length(&text);
    match bound {
        Some(bound) if length > bound as usize => Err(LiteralError::StringLength { length, unit, bound }),
        _ => Ok(Literal::Text(text)),
    }
}

/// The text between quotes of either kind, or as it stands.
fn unquoted(text: &str) -> Result<String, LiteralError> {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        return Ok(text.to_owned());
    };
    let inner = text[1..].strip_suffix(quote);
    let inner = inner.ok_or_else(|| LiteralError::Unclosed { text: text.to_owned(), quote })?;
    let escaped = format!("\\{quote}");
    if inner.replace(&escaped, "").contains(quote) {
        return Err(LiteralError::Quote { text: text.to_owned(), quote });
    }
    Ok(inner.replace(&escaped, &quote.to_string()))
}

fn plain_parts(inner: &str) -> Vec<&str> {
    if inner.trim().is_empty() { Vec::new() } else { inner.split(',').map(str::trim).collect() }
}

/// Splits at commas that stand outside of quotes.
fn quoted_parts(inner: &str) -> Result<Vec<&str>, LiteralError> {
    let mut parts = Vec::new();
    let mut rest = inner.trim_start();
    while !rest.is_empty() {
        let length = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                closing(rest, quote).ok_or_else(|| LiteralError::Unclosed { text: rest.to_owned(), quote })?
            }
            _ => rest.find(',').unwrap_or(rest.len()),
        };
        let (part, after) = rest.split_at(length);
        if part.trim().is_empty() {
            return Err(LiteralError::NoElement);
        }
        parts.push(part.trim());
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if after.is_empty() => after,
            None => return Err(LiteralError::NoComma(after.to_owned())),
        };
    }
    Ok(parts)
}

/// Length of a quoted string with its quotes.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(element: Element, shape: Shape, text: &str) -> Result<Literal, LiteralError> {
        parse(&FieldType { element, shape }, text)
    }

    fn int(primitive: Primitive, text: &str) -> Result<Literal, LiteralError> {
        read(Element::Primitive(primitive), Shape::One, text)
    }

    #[test]
    fn integers_are_those_of_python_in_the_range_of_their_type() {
        for (primitive, text, value) in [
            (Primitive::I8, "-128", -128),
            (Primitive::U8, "0xFF", 255),
            (Primitive::U16, "0b1_01", 5),
            (Primitive::U32, "0o17", 15),
            (Primitive::U64, "18446744073709551615", u64::MAX as i128),
            (Primitive::I64, "-9223372036854775808", i64::MIN as i128),
            (Primitive::U8, "+1", 1),
            (Primitive::I32, "1_000", 1_000),
        ] {
            assert_eq!(int(primitive, text), Ok(Literal::Integer(value)), "{text}");
        }
        for (primitive, text) in [
            (Primitive::U8, "256"),
            (Primitive::I8, "128"),
            (Primitive::U64, "-1"),
            (Primitive::U8, "1.0"),
            (Primitive::U8, "é"),
            (Primitive::U8, "0x"),
            (Primitive::U8, "1__0"),
            (Primitive::U8, "--1"),
            (Primitive::U8, "0x-1"),
            (Primitive::U8, ""),
            (Primitive::U64, "999999999999999999999999999999999999999999999999999999"),
        ] {
            assert!(int(primitive, text).is_err(), "{text}");
        }
    }

    #[test]
    fn floats_are_rounded_to_their_type() {
        assert_eq!(int(Primitive::F32, "0.1"), Ok(Literal::Float(f64::from(0.1f32))));
        assert_eq!(int(Primitive::F64, "-1e3"), Ok(Literal::Float(-1_000.0)));
        assert!(matches!(int(Primitive::F64, "nan"), Ok(Literal::Float(x)) if x.is_nan()));
        assert!(int(Primitive::F32, "1e39").is_err() && int(Primitive::F32, "1,5").is_err());
    }

    #[test]
    fn strings_have_either_quote_or_none() {
        let text = Element::String { bound: Some(5) };
        for (written, value) in [
            ("abc", "abc"),
            ("\" a \"", " a "),
            ("'it''", "!"),
            (r"'it\'s'", "it's"),
            ("\"\"", ""),
            ("'\"'", "\""),
            ("\"abcdef\"", "!"),
            ("\"abc", "!"),
            ("ééé", "!"),
        ] {
            let read = read(text.clone(), Shape::One, written);
            if value == "!" {
                assert!(read.is_err(), "{written}");
            } else {
                assert_eq!(read, Ok(Literal::Text(value.to_owned())), "{written}");
            }
        }
    }

    #[test]
    fn lists_have_as_many_elements_as_their_type() {
        let numbers = |count, text| read(Element::Primitive(Primitive::U8), count, text);
        let list = |values: &[i128]| {
            Ok(Literal::List(values.iter().map(|value| Literal::Integer(*value)).collect()))
        };
        assert_eq!(numbers(Shape::Array(3), "[1, 2,3]"), list(&[1, 2, 3]));
        assert_eq!(numbers(Shape::Sequence(None), "[]"), list(&[]));
        let wrong = numbers(Shape::Array(3), "[1, 2]").unwrap_err();
        assert_eq!(wrong.to_string(), "the array has 3 elements, and the default 2");
        let wrong = int(Primitive::U8, "256").unwrap_err();
        assert_eq!(wrong.to_string(), "256 is not in the range of uint8, 0 to 255");
        let wrong = read(Element::String { bound: None }, Shape::One, "'it''").unwrap_err();
        assert_eq!(wrong.to_string(), r"'it'' has a ' inside; write it as \'");
        assert!(numbers(Shape::Sequence(Some(1)), "[1, 2]").is_err());
        assert!(numbers(Shape::Array(1), "1").is_err());
        let texts = |text| read(Element::String { bound: None }, Shape::Sequence(None), text);
        let expected =
            vec![Literal::Text("a,b".into()), Literal::Text("c".into()), Literal::Text(String::new())];
        assert_eq!(texts(r#"["a,b", c, '']"#), Ok(Literal::List(expected)));
        for text in [r#"["a" "b"]"#, r#"["a]"#, "[a,,b]", "[,]"] {
            assert!(texts(text).is_err(), "{text}");
        }
    }
}
