//! JSON → CDR.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{CdrError, WideStrings};
use crate::library::Library;
use crate::model::{Element, Enum, Field, Literal, Named, Primitive, Shape, Struct, TypeName};

/// Encodes a JSON value as a message of this resolved type. Fields that are missing have their defaults; `NaN`,
/// `Infinity` and `-Infinity` are written as strings.
///
/// # Errors
/// The type is not there or cannot travel, or the value is none of this type; the sentence names the field.
pub fn encode(
    library: &Library,
    name: &TypeName,
    value: &Value,
    wide: WideStrings,
) -> Result<Vec<u8>, CdrError> {
    let defined = library
        .structure(name)
        .ok_or_else(|| CdrError::Type(format!("{name} is not a struct of these packages; check its name")))?;
    let mut encoder = Encoder { library, wide, body: Vec::new() };
    encoder.structure(defined, value)?;
    let mut bytes = vec![0, 1, 0, 0];
    bytes.append(&mut encoder.body);
    Ok(bytes)
}

struct Encoder<'a> {
    library: &'a Library,
    wide: WideStrings,
    /// Bytes behind the header; alignment counts from here.
    body: Vec<u8>,
}

/// A value as it was given, or as the definition says.
enum Given<'a> {
    Json(&'a Value),
    Default(&'a Literal),
    Zero,
}

impl<'a> Encoder<'a> {
    fn structure(&mut self, defined: &Struct, value: &Value) -> Result<(), CdrError> {
        let Value::Object(members) = value else {
            return Err(CdrError::value(format!("{} is no {}; write an object", shown(value), defined.name)));
        };
        if let Some(unknown) =
            members.keys().find(|key| defined.fields.iter().all(|field| field.name != **key))
        {
            let known: Vec<&str> = defined.fields.iter().take(30).map(|field| field.name.as_str()).collect();
            let what = format!("{} has no field \"{unknown}\"; it has {}", defined.name, known.join(", "));
            return Err(CdrError::value(what));
        }
        self.fields(defined, Some(members))
    }

    fn fields(&mut self, defined: &Struct, members: Option<&Map<String, Value>>) -> Result<(), CdrError> {
        for field in &defined.fields {
            let given = match (members.and_then(|members| members.get(&field.name)), &field.default) {
                (Some(value), _) => Given::Json(value),
                (None, Some(default)) => Given::Default(default),
                (None, None) => Given::Zero,
            };
            self.field(field, &given).map_err(|error| error.within(|| format!(".{}", field.name)))?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, given: &Given<'_>) -> Result<(), CdrError> {
        let element = &field.kind.element;
        let length = match given {
            _ if field.kind.shape == Shape::One => return self.element(element, given),
            Given::Json(Value::Array(list)) => Some(list.len()),
            Given::Default(Literal::List(list)) => Some(list.len()),
            Given::Json(other) => return Err(CdrError::value(format!("{} is no list", shown(other)))),
            Given::Default(_) | Given::Zero => None,
        };
        let length = match field.kind.shape {
            Shape::Array(count) => {
                let count = count as usize;
                if length.is_some_and(|length| length != count) {
                    let what =
                        format!("the array has {count} elements and not {}", length.unwrap_or_default());
                    return Err(CdrError::value(what));
                }
                count
            }
            Shape::Sequence(bound) => {
                let length = length.unwrap_or_default();
                if let Some(bound) = bound
                    && length > bound as usize
                {
                    let what = format!("the sequence has at most {bound} elements, and the value {length}");
                    return Err(CdrError::value(what));
                }
                self.count(length)?;
                length
            }
            Shape::One => 1,
        };
        for index in 0..length {
            let one = match given {
                Given::Json(Value::Array(list)) => list.get(index).map(Given::Json),
                Given::Default(Literal::List(list)) => list.get(index).map(Given::Default),
                _ => None,
            };
            let one = one.unwrap_or(Given::Zero);
            self.element(element, &one).map_err(|error| error.within(|| format!("[{index}]")))?;
        }
        Ok(())
    }

    fn element(&mut self, element: &Element, given: &Given<'_>) -> Result<(), CdrError> {
        match element {
            Element::Primitive(primitive) => self.primitive(*primitive, given),
            Element::String { bound } => {
                let text = text(given)?;
                check_length(text.len(), *bound, "bytes")?;
                if text.contains('\0') {
                    return Err(CdrError::value("the string contains NUL, which ends strings in CDR"));
                }
                self.count(text.len() + 1)?;
                self.body.extend_from_slice(text.as_bytes());
                self.body.push(0);
                Ok(())
            }
            Element::WString { bound } => {
                self.wide.check()?;
                let units: Vec<u16> = text(given)?.encode_utf16().collect();
                check_length(units.len(), *bound, "code units of UTF-16")?;
                self.count(units.len())?;
                units.iter().for_each(|unit| self.body.extend_from_slice(&unit.to_le_bytes()));
                Ok(())
            }
            Element::Named(name) => match (self.library.get(name), given) {
                (Some(Named::Struct(defined)), Given::Json(value)) => self.structure(defined, value),
                (Some(Named::Struct(defined)), _) => self.fields(defined, None),
                (Some(Named::Enum(defined)), given) => self.variant(defined, given),
                (None, _) => Err(CdrError::Type(format!("{name} is not resolved"))),
            },
        }
    }

    fn variant(&mut self, defined: &Enum, given: &Given<'_>) -> Result<(), CdrError> {
        let number = match given {
            Given::Json(Value::String(text)) => defined.variants.iter().position(|(name, _)| name == text),
            Given::Json(value) => value
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .filter(|number| *number < defined.variants.len()),
            Given::Default(Literal::Integer(number)) => usize::try_from(*number).ok(),
            Given::Default(_) | Given::Zero => Some(0),
        };
        let number = number.and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
            let value = if let Given::Json(value) = given { shown(value) } else { "the default".to_owned() };
            let names: Vec<&str> = defined.variants.iter().take(30).map(|(name, _)| name.as_str()).collect();
            CdrError::value(format!("{value} is none of {}: {}", defined.name, names.join(", ")))
        })?;
        self.align(4);
        self.body.extend_from_slice(&number.to_le_bytes());
        Ok(())
    }

    fn primitive(&mut self, primitive: Primitive, given: &Given<'_>) -> Result<(), CdrError> {
        let name = Element::Primitive(primitive);
        let wrong = || match given {
            Given::Json(value) => CdrError::value(format!("{} is no {name}", shown(value))),
            Given::Default(_) | Given::Zero => CdrError::value(format!("the default is no {name}")),
        };
        self.align(primitive.size_bytes());
        match primitive {
            Primitive::Bool => {
                let value = match given {
                    Given::Json(Value::Bool(value)) | Given::Default(Literal::Bool(value)) => *value,
                    Given::Zero => false,
                    _ => return Err(wrong()),
                };
                self.body.push(u8::from(value));
            }
            Primitive::F32 | Primitive::F64 => {
                let value = float(given).ok_or_else(wrong)?;
                if primitive == Primitive::F64 {
                    self.body.extend_from_slice(&value.to_le_bytes());
                } else {
                    let rounded = value as f32;
                    if rounded.is_infinite() && value.is_finite() {
                        return Err(CdrError::value(format!(
                            "{value:e} is greater than the greatest float32"
                        )));
                    }
                    self.body.extend_from_slice(&rounded.to_le_bytes());
                }
            }
            integer => {
                let value = match given {
                    Given::Json(Value::Number(number)) => number
                        .as_i64()
                        .map(i128::from)
                        .or_else(|| number.as_u64().map(i128::from))
                        .ok_or_else(wrong)?,
                    Given::Default(Literal::Integer(value)) => *value,
                    Given::Zero => 0,
                    _ => return Err(wrong()),
                };
                let (least, most) = integer.range().unwrap_or_default();
                if value < least || value > most {
                    return Err(CdrError::value(format!(
                        "{value} is not in the range of {name}, {least} to {most}"
                    )));
                }
                self.body.extend_from_slice(&value.to_le_bytes()[..integer.size_bytes()]);
            }
        }
        Ok(())
    }

    fn count(&mut self, count: usize) -> Result<(), CdrError> {
        let count =
            u32::try_from(count).map_err(|_| CdrError::value("it has more elements than CDR can count"))?;
        self.align(4);
        self.body.extend_from_slice(&count.to_le_bytes());
        Ok(())
    }

    fn align(&mut self, size: usize) {
        self.body.resize(self.body.len().next_multiple_of(size), 0);
    }
}

fn float(given: &Given<'_>) -> Option<f64> {
    match given {
        Given::Json(Value::Number(number)) => number.as_f64(),
        Given::Json(Value::String(text)) => match text.as_str() {
            "NaN" | "nan" => Some(f64::NAN),
            "Infinity" | "inf" => Some(f64::INFINITY),
            "-Infinity" | "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        Given::Default(Literal::Float(value)) => Some(*value),
        Given::Default(Literal::Integer(value)) => Some(*value as f64),
        Given::Zero => Some(0.0),
        Given::Json(_) | Given::Default(_) => None,
    }
}

fn text<'v>(given: &Given<'v>) -> Result<Cow<'v, str>, CdrError> {
    match given {
        Given::Json(Value::String(text)) => Ok(Cow::Borrowed(text)),
        Given::Default(Literal::Text(text)) => Ok(Cow::Borrowed(text)),
        Given::Zero => Ok(Cow::Borrowed("")),
        Given::Json(other) => Err(CdrError::value(format!("{} is no string", shown(other)))),
        Given::Default(_) => Err(CdrError::value("the default is no string")),
    }
}

fn check_length(length: usize, bound: Option<u32>, unit: &str) -> Result<(), CdrError> {
    match bound {
        Some(bound) if length > bound as usize => {
            Err(CdrError::value(format!("the string has {length} {unit}, and its type at most {bound}")))
        }
        _ => Ok(()),
    }
}

/// A value in a sentence.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => {
            let text = other.to_string();
            if text.chars().count() > 60 {
                text.chars().take(60).chain("…".chars()).collect()
            } else {
                text
            }
        }
    }
}
