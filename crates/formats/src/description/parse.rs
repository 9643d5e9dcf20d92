//! Text → types, line by line.

use super::{
    DESCRIPTION_BYTES_MAX, DescribedElement, DescribedField, DescribedShape, DescribedType, DescriptionError,
    NAME_BYTES_MAX, PRIMITIVES, SHAPES_MAX, TYPES_MAX,
};

/// Fault in a line.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("a member stands before the first type")]
    NoType,
    #[error("there are more than {TYPES_MAX} types")]
    Types,
    #[error("it begins with neither \"struct \" nor \"enum \" nor a space")]
    Beginning,
    #[error("a name is empty, or has a space or a control character in it")]
    Name,
    #[error("a name has {0} bytes, more than {NAME_BYTES_MAX}")]
    NameLength(usize),
    #[error("a field is no type, a space and a name")]
    Field,
    #[error("more than {SHAPES_MAX} arrays, sequences and options lie in each other")]
    Shapes,
    #[error("a type has neither [N], [<=N], [] nor ? after its name")]
    Shape,
    #[error("\"{0}\" is no number from 1 to {max}", max = u32::MAX)]
    Number(String),
}

pub(super) fn types(text: &str) -> Result<Vec<DescribedType>, DescriptionError> {
    if text.len() > DESCRIPTION_BYTES_MAX {
        let what = format!(
            "the type description has {} bytes, more than the {DESCRIPTION_BYTES_MAX} that travel",
            text.len()
        );
        return Err(DescriptionError::whole(what));
    }
    let Some(body) = text.strip_suffix('\n') else {
        return Err(DescriptionError::whole("the type description does not end with a line break"));
    };
    let mut types: Vec<DescribedType> = Vec::new();
    for (line, content) in (1..).zip(body.split('\n')) {
        let fault = |wrong: Wrong| DescriptionError { line, what: wrong.to_string() };
        if let Some(member) = content.strip_prefix(' ') {
            match types.last_mut() {
                None => return Err(fault(Wrong::NoType)),
                Some(DescribedType::Struct { fields, .. }) => fields.push(field(member).map_err(fault)?),
                Some(DescribedType::Enum { variants, .. }) => {
                    variants.push(name(member).map_err(fault)?);
                }
            }
            continue;
        }
        if types.len() >= TYPES_MAX {
            return Err(fault(Wrong::Types));
        }
        types.push(match content.split_once(' ') {
            Some(("struct", of)) => {
                DescribedType::Struct { name: name(of).map_err(fault)?, fields: Vec::new() }
            }
            Some(("enum", of)) => {
                DescribedType::Enum { name: name(of).map_err(fault)?, variants: Vec::new() }
            }
            _ => {
                return Err(fault(Wrong::Beginning));
            }
        });
    }
    Ok(types)
}

fn name(word: &str) -> Result<String, Wrong> {
    let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
    if word.is_empty() || !word.chars().all(is_plain) {
        return Err(Wrong::Name);
    }
    if word.len() > NAME_BYTES_MAX {
        return Err(Wrong::NameLength(word.len()));
    }
    Ok(word.to_owned())
}

fn field(member: &str) -> Result<DescribedField, Wrong> {
    let (kind, field) = member.split_once(' ').ok_or(Wrong::Field)?;
    let end = kind.find(['[', '?']).unwrap_or(kind.len());
    let (word, shapes) = kind.split_at(end);
    Ok(DescribedField { name: name(field)?, element: element(word)?, shapes: self::shapes(shapes)? })
}

fn element(word: &str) -> Result<DescribedElement, Wrong> {
    if let Some((primitive, _)) = PRIMITIVES.iter().find(|(primitive, _)| *primitive == word) {
        return Ok(DescribedElement::Primitive(primitive));
    }
    match word.split_once("<=") {
        None if word == "string" => Ok(DescribedElement::String(0)),
        None if word == "wstring" => Ok(DescribedElement::WideString(0)),
        Some(("string", bound)) => number(bound).map(DescribedElement::String),
        Some(("wstring", bound)) => number(bound).map(DescribedElement::WideString),
        _ => name(word).map(DescribedElement::Named),
    }
}

fn shapes(mut rest: &str) -> Result<Vec<DescribedShape>, Wrong> {
    let mut shapes = Vec::new();
    while !rest.is_empty() {
        if shapes.len() >= SHAPES_MAX {
            return Err(Wrong::Shapes);
        }
        if let Some(after) = rest.strip_prefix('?') {
            shapes.push(DescribedShape::Optional);
            rest = after;
            continue;
        }
        let inner = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (count, after) = inner.ok_or(Wrong::Shape)?;
        shapes.push(match count.strip_prefix("<=") {
            Some(bound) => DescribedShape::Sequence(number(bound)?),
            None if count.is_empty() => DescribedShape::Sequence(0),
            None => DescribedShape::Array(number(count)?),
        });
        rest = after;
    }
    Ok(shapes)
}

/// Decimal, from 1, without a sign or leading zeros.
fn number(digits: &str) -> Result<u32, Wrong> {
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|digit| digit.is_ascii_digit());
    let value = if is_plain { digits.parse().ok() } else { None };
    value.ok_or_else(|| {
        let shown: String = digits.chars().take(20).collect();
        Wrong::Number(shown.escape_debug().to_string())
    })
}
