//! Type descriptions, which nodes send to nodes that ask ([`noctule_formats::description`]), and the model: each from the other.

use std::fmt::Write as _;
use std::sync::Arc;

use noctule_formats::description::{
    DescribedElement, DescribedField, DescribedShape, DescribedType, DescriptionError, TypeDescription,
};

use crate::diagnostic::{Faults, Source};
use crate::library::Library;
use crate::model::{Element, Enum, Field, Named, Primitive, Shape, Struct, TypeName};
use crate::rosidl::{self, Kind};

/// A type that came as a description, ready to decode and encode its values.
#[derive(Debug)]
pub struct Described {
    /// The type and all that it refers to, resolved.
    pub library: Library,
    /// Name of the type.
    pub name: TypeName,
}

/// Why a described type has no values that can be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescribedError {
    /// The text describes no type.
    #[error(transparent)]
    Text(#[from] DescriptionError),
    /// Something that neither CDR nor `.msg` has.
    #[error("{type_name}.{field} is {what}, which is not decoded; its bytes can be shown")]
    NotDecoded {
        /// The struct.
        type_name: String,
        /// Its field.
        field: String,
        /// The fault.
        what: &'static str,
    },
    /// The type cannot be, in the sentences of the generator.
    #[error("{0}")]
    Refused(String),
}

/// The description of a resolved type: what generated code and gateways give to their nodes.
///
/// # Errors
/// It is longer than descriptions may be, or a name cannot stand in one.
pub fn description(library: &Library, name: &TypeName) -> Result<TypeDescription, DescribedError> {
    let mut text = String::new();
    let referred = library.referred(name);
    for defined in std::iter::once(name).chain(&referred).filter_map(|name| library.get(name)) {
        write(defined, &mut text);
    }
    Ok(TypeDescription::parse(&text)?)
}

fn write(defined: &Named, text: &mut String) {
    // A String takes everything.
    match defined {
        Named::Struct(defined) => {
            let _ = writeln!(text, "struct {}", defined.name);
            for field in &defined.fields {
                let _ = writeln!(text, " {} {}", field.kind, field.name);
            }
        }
        Named::Enum(defined) => {
            let _ = writeln!(text, "enum {}", defined.name);
            for (variant, _) in &defined.variants {
                let _ = writeln!(text, " {variant}");
            }
        }
    }
}

impl Described {
    /// The types of a description.
    ///
    /// # Errors
    /// It holds something that is not decoded, or a type nests too deeply or is too large.
    pub fn new(description: &TypeDescription) -> Result<Self, DescribedError> {
        let (mut library, mut faults) = (Library::default(), Faults::default());
        for described in description.types() {
            library.insert(named(described)?, &mut faults);
        }
        let name = TypeName::new(description.name());
        let resolved = faults.warnings().and_then(|_| library.resolve([&name]));
        resolved.map_err(|faults| {
            let sentences: Vec<&str> = faults.0.iter().map(|fault| fault.what.as_str()).collect();
            DescribedError::Refused(sentences.join("; "))
        })?;
        Ok(Self { library, name })
    }
}

fn named(described: &DescribedType) -> Result<Named, DescribedError> {
    Ok(match described {
        DescribedType::Struct { name, fields } => {
            let fields: Result<Vec<Field>, DescribedError> =
                fields.iter().map(|described| field(name, described)).collect();
            Named::Struct(Arc::new(Struct::new(TypeName::new(name.as_str()), fields?)))
        }
        DescribedType::Enum { name, variants } => Named::Enum(Arc::new(Enum {
            name: TypeName::new(name.as_str()),
            variants: variants.iter().map(|variant| (variant.clone(), Vec::new())).collect(),
            comment: Vec::new(),
            place: None,
        })),
    })
}

fn field(type_name: &str, described: &DescribedField) -> Result<Field, DescribedError> {
    let refuse = |what| DescribedError::NotDecoded {
        type_name: type_name.to_owned(),
        field: described.name.clone(),
        what,
    };
    let bound = |bound: u32| (bound > 0).then_some(bound);
    let element = match &described.element {
        DescribedElement::Primitive(word) => {
            Element::Primitive(primitive(word).ok_or_else(|| refuse("unknown"))?)
        }
        DescribedElement::String(most) => Element::String { bound: bound(*most) },
        DescribedElement::WideString(most) => Element::WString { bound: bound(*most) },
        DescribedElement::Named(name) => Element::Named(TypeName::new(name.as_str())),
    };
    let mut shape = Shape::One;
    for outer in &described.shapes {
        shape = match (shape, outer) {
            (Shape::One, DescribedShape::Array(count)) => Shape::Array(*count),
            (Shape::One, DescribedShape::Sequence(most)) => Shape::Sequence(bound(*most)),
            // Has the bytes of all rows behind each other.
            (Shape::Array(inner), DescribedShape::Array(count)) => {
                Shape::Array(inner.checked_mul(*count).ok_or_else(|| refuse("larger than a message may be"))?)
            }
            (_, DescribedShape::Optional) => return Err(refuse("optional")),
            _ => return Err(refuse("a sequence of sequences or arrays, or an array of sequences")),
        };
    }
    Ok(Field::new(&described.name, element, shape))
}

fn primitive(word: &str) -> Option<Primitive> {
    Primitive::ALL.into_iter().find(|primitive| Element::Primitive(*primitive).to_string() == word)
}

/// The definition as recordings carry it: the language `ros2msg`, the type's fields, and behind lines of `=` those of all
/// types that it refers to. `None` if ROS 2 cannot write it: an enum, a name that is no `package/msg/Name` or `package/Name`.
pub fn ros2msg(library: &Library, name: &TypeName) -> Option<String> {
    let mut text = fields_of(library, name)?;
    for inner in library.referred(name) {
        let _ = write!(text, "{}\nMSG: {}\n{}", "=".repeat(80), short(&inner)?, fields_of(library, &inner)?);
    }
    short(name).map(|_| text)
}

/// The other way: what a definition in `ros2msg` defines, not yet resolved. What is wrong in it is left out.
pub fn of_ros2msg(type_name: &str, text: &str) -> Library {
    let (mut library, mut current) = (Library::new([]), (full_name(type_name), String::new()));
    for line in text.lines() {
        let is_rule = line.len() >= 3 && line.bytes().all(|byte| byte == b'=');
        if is_rule {
            continue;
        }
        if let Some(next) = line.strip_prefix("MSG:") {
            let (name, body) = std::mem::replace(&mut current, (full_name(next.trim()), String::new()));
            add_message(&mut library, &name, &body);
            continue;
        }
        current.1.push_str(line);
        current.1.push('\n');
    }
    add_message(&mut library, &current.0, &current.1);
    library
}

/// Adds a message by its full name and its text in `.msg`, unless it is wrong or there already.
pub fn add_message(library: &mut Library, full: &str, text: &str) {
    let parts: Vec<&str> = full.split('/').collect();
    let [package, _, name] = parts.as_slice() else { return };
    if library.get(&TypeName::new(full)).is_some() {
        return;
    }
    let source = Source::new(full, text);
    for defined in rosidl::parse(&source, Kind::Msg, package, name).unwrap_or_default() {
        library.insert(Named::Struct(Arc::new(defined)), &mut Faults::default());
    }
}

/// `pkg/T` as `pkg/msg/T`.
pub fn full_name(type_name: &str) -> String {
    match type_name.split('/').collect::<Vec<_>>().as_slice() {
        [package, name] => format!("{package}/msg/{name}"),
        _ => type_name.to_owned(),
    }
}

fn fields_of(library: &Library, name: &TypeName) -> Option<String> {
    let defined = library.structure(name)?;
    let mut text = String::new();
    for field in &defined.fields {
        let element = match &field.kind.element {
            Element::Named(inner) => short(inner)?,
            other => other.to_string(),
        };
        let whole = field.kind.to_string();
        let shape = whole.get(field.kind.element.to_string().len()..)?;
        let _ = writeln!(text, "{element}{shape} {}", field.name);
    }
    Some(text)
}

/// `package/Name`, as definitions of ROS write references.
fn short(name: &TypeName) -> Option<String> {
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    match name.parts().collect::<Vec<_>>().as_slice() {
        [package, last] | [package, "msg" | "srv" | "action", last] if is_word(package) && is_word(last) => {
            Some(format!("{package}/{last}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
