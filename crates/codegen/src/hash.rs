//! The two hashes of a type: Noctule's own, which discovery compares, and ROS 2's RIHS01.
//!
//! Noctule's is FNV-1a over names and hashes of the parts (`docs/spec/formats.md`, section 5). RIHS01 is SHA-256 over a
//! description of the type and all that it refers to as JSON, byte for byte as rosidl_generator_type_description writes it
//! (REP-2016). Defaults, constants and comments are part of neither.

use std::collections::HashMap;
use std::fmt::Write as _;

use noctule_formats::{array_hash, enum_hash, sequence_hash, string_hash, struct_hash};

use crate::library::Library;
use crate::model::{Element, Field, FieldType, Named, Primitive, Shape, TypeName};

/// Computes hashes of resolved types, each once.
#[derive(Debug)]
pub struct Hashes<'a> {
    library: &'a Library,
    known: HashMap<TypeName, u64>,
}

impl<'a> Hashes<'a> {
    /// Hashes of the types of this library.
    pub fn new(library: &'a Library) -> Self {
        Self { library, known: HashMap::new() }
    }

    /// Noctule's hash of a resolved type, never 0.
    pub fn noctule(&mut self, name: &TypeName) -> u64 {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let library = self.library;
        let hash = match library.get(name) {
            Some(Named::Struct(defined)) => {
                let fields: Vec<(&str, u64)> = defined
                    .fields
                    .iter()
                    .map(|field| (field.name.as_str(), self.field(&field.kind)))
                    .collect();
                struct_hash(name.as_str(), &fields)
            }
            Some(Named::Enum(defined)) => {
                let variants: Vec<&str> =
                    defined.variants.iter().map(|(variant, _)| variant.as_str()).collect();
                enum_hash(name.as_str(), &variants)
            }
            None => struct_hash(name.as_str(), &[]),
        };
        self.known.insert(name.clone(), hash);
        hash
    }

    fn field(&mut self, kind: &FieldType) -> u64 {
        let bytes = |bound: Option<u32>| u64::from(bound.unwrap_or(0));
        let element = match &kind.element {
            Element::Primitive(primitive) => struct_hash(primitive.word(), &[]),
            Element::String { bound } => string_hash("string", bytes(*bound)),
            Element::WString { bound } => string_hash("wstring", bytes(*bound)),
            Element::Named(name) => self.noctule(name),
        };
        match kind.shape {
            Shape::One => element,
            Shape::Array(count) => array_hash(element, u64::from(count)),
            Shape::Sequence(bound) => sequence_hash(element, bytes(bound)),
        }
    }
}

/// ROS 2's hash of a resolved type: `RIHS01_` and 64 hexadecimal digits.
pub fn rihs01(library: &Library, name: &TypeName) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, description(library, name).as_bytes());
    digest.as_ref().iter().fold(String::from("RIHS01_"), |mut text, byte| {
        // A String takes everything.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The text that RIHS01 is computed of.
fn description(library: &Library, name: &TypeName) -> String {
    let mut text = String::from("{\"type_description\": ");
    individual(library, name, &mut text);
    text.push_str(", \"referenced_type_descriptions\": [");
    let referred = library.referred(name);
    for (index, inner) in referred.iter().filter(|inner| is_structure(library, inner)).enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        individual(library, inner, &mut text);
    }
    text.push_str("]}");
    text
}

fn is_structure(library: &Library, name: &TypeName) -> bool {
    library.structure(name).is_some()
}

fn individual(library: &Library, name: &TypeName, text: &mut String) {
    let _ = write!(text, "{{\"type_name\": \"{name}\", \"fields\": [");
    let fields = library.structure(name).map_or(&[][..], |defined| defined.fields.as_slice());
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        let (id, capacity, string_capacity, nested) = type_fields(library, field);
        let _ = write!(
            text,
            "{{\"name\": \"{}\", \"type\": {{\"type_id\": {id}, \"capacity\": {capacity}, \
             \"string_capacity\": {string_capacity}, \"nested_type_name\": \"{nested}\"}}}}",
            field.name
        );
    }
    text.push_str("]}");
}

/// `type_id`, `capacity`, `string_capacity` and `nested_type_name` of type_description_interfaces/msg/FieldType.
fn type_fields<'a>(library: &Library, field: &'a Field) -> (u32, u32, u32, &'a str) {
    let (id, string_capacity, nested) = match &field.kind.element {
        // ROS 2 describes no enum; on the wire it is this number.
        Element::Named(name) if !is_structure(library, name) => (id_of(Primitive::U32), 0, ""),
        Element::Named(name) => (1, 0, name.as_str()),
        Element::Primitive(primitive) => (id_of(*primitive), 0, ""),
        Element::String { bound: None } => (17, 0, ""),
        Element::WString { bound: None } => (18, 0, ""),
        Element::String { bound: Some(bound) } => (21, *bound, ""),
        Element::WString { bound: Some(bound) } => (22, *bound, ""),
    };
    let (offset, capacity) = match field.kind.shape {
        Shape::One => (0, 0),
        Shape::Array(count) => (48, count),
        Shape::Sequence(Some(bound)) => (96, bound),
        Shape::Sequence(None) => (144, 0),
    };
    (id + offset, capacity, string_capacity, nested)
}

const fn id_of(primitive: Primitive) -> u32 {
    match primitive {
        Primitive::I8 => 2,
        Primitive::U8 => 3,
        Primitive::I16 => 4,
        Primitive::U16 => 5,
        Primitive::I32 => 6,
        Primitive::U32 => 7,
        Primitive::I64 => 8,
        Primitive::U64 => 9,
        Primitive::F32 => 10,
        Primitive::F64 => 11,
        Primitive::Char => 13,
        Primitive::Bool => 15,
        Primitive::Byte => 16,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnostic::{Faults, Source};
    use crate::rosidl::{self, Kind};

    /// Types of ROS 2 in as few words as give their hash.
    const DEFINITIONS: [(&str, &str, &str); 9] = [
        ("builtin_interfaces", "Time", "int32 sec\nuint32 nanosec"),
        ("std_msgs", "Header", "builtin_interfaces/Time stamp\nstring frame_id"),
        ("std_msgs", "Empty", ""),
        ("std_msgs", "Byte", "byte data"),
        ("std_msgs", "Char", "char data"),
        ("geometry_msgs", "Point", "float64 x\nfloat64 y\nfloat64 z"),
        ("geometry_msgs", "Quaternion", "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1"),
        ("geometry_msgs", "Pose", "Point position\nQuaternion orientation"),
        ("geometry_msgs", "PoseStamped", "std_msgs/Header header\nPose pose"),
    ];

    fn library() -> Library {
        let mut library = Library::default();
        let mut names = Vec::new();
        for (package, name, text) in DEFINITIONS {
            let source = Source::new(format!("{package}/{name}"), text);
            for defined in rosidl::parse(&source, Kind::Msg, package, name).unwrap() {
                names.push(defined.name.clone());
                library.insert(Named::Struct(Arc::new(defined)), &mut Faults::default());
            }
        }
        library.resolve(&names).unwrap();
        library
    }

    #[test]
    fn rihs01_is_that_of_rosidl() {
        let library = library();
        for (name, digits) in [
            (
                "builtin_interfaces/msg/Time",
                "b106235e25a4c5ed35098aa0a61a3ee9c9b18d197f398b0e4206cea9acf9c197",
            ),
            ("std_msgs/msg/Header", "f49fb3ae2cf070f793645ff749683ac6b06203e41c891e17701b1cb597ce6a01"),
            ("std_msgs/msg/Empty", "20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312"),
            ("std_msgs/msg/Byte", "41e1a3345f73fe93ede006da826a6ee274af23dd4653976ff249b0f44e3e798f"),
            ("std_msgs/msg/Char", "3ad2d04dd29ba19d04b16659afa3ccaedd691914b02a64e82e252f2fa6a586a9"),
            ("geometry_msgs/msg/Pose", "d501954e9476cea2996984e812054b68026ae0bfae789d9a10b23daf35cc90fa"),
            (
                "geometry_msgs/msg/PoseStamped",
                "10f3786d7d40fd2b54367835614bff85d4ad3b5dab62bf8bca0cc232d73b4cd8",
            ),
        ] {
            assert_eq!(rihs01(&library, &TypeName::new(name)), format!("RIHS01_{digits}"), "{name}");
        }
    }

    #[test]
    fn noctules_hash_is_that_of_the_same_type_in_rust() {
        noctule_formats::message! {
            #[derive(serde::Serialize, serde::Deserialize)]
            struct Time: "builtin_interfaces/msg/Time" {
                sec: i32,
                nanosec: u32,
            }
        }
        noctule_formats::message! {
            #[derive(serde::Serialize, serde::Deserialize)]
            struct Header: "std_msgs/msg/Header" {
                stamp: Time,
                frame_id: String,
            }
        }
        let library = library();
        let hash = Hashes::new(&library).noctule(&TypeName::new("std_msgs/msg/Header"));
        assert_eq!(hash, <Header as noctule_formats::Message>::type_hash());
    }
}
