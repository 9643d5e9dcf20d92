//! Fields as OMG IDL has them, under the names that ROS 2 gives its types on DDS.

use serde_json::{Value, json};

use crate::model::{Element, Field, Literal, Primitive, Shape, TypeName};

/// The words of IDL 4.2, in lower case: names are the same in any case.
const KEYWORDS: &[&str] = &[
    "abstract",
    "alias",
    "any",
    "attribute",
    "bitfield",
    "bitmask",
    "bitset",
    "boolean",
    "case",
    "char",
    "component",
    "connector",
    "const",
    "consumes",
    "context",
    "custom",
    "default",
    "double",
    "emits",
    "enum",
    "eventtype",
    "exception",
    "factory",
    "false",
    "finder",
    "fixed",
    "float",
    "getraises",
    "home",
    "import",
    "in",
    "inout",
    "int16",
    "int32",
    "int64",
    "int8",
    "interface",
    "local",
    "long",
    "manages",
    "map",
    "mirrorport",
    "module",
    "multiple",
    "native",
    "object",
    "octet",
    "oneway",
    "out",
    "port",
    "porttype",
    "primarykey",
    "private",
    "provides",
    "public",
    "publishes",
    "raises",
    "readonly",
    "sequence",
    "setraises",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "true",
    "truncatable",
    "typedef",
    "typeid",
    "typename",
    "typeprefix",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "union",
    "unsigned",
    "uses",
    "valuebase",
    "valuetype",
    "void",
    "wchar",
    "wstring",
]; // fmt: skip

/// A name that is no keyword: one has an underscore in front, which is no part of it.
fn ident(name: &str) -> String {
    let is_keyword = KEYWORDS.contains(&name.to_ascii_lowercase().as_str());
    if is_keyword { format!("_{name}") } else { name.to_owned() }
}

/// The modules around a type and its name in them: `pkg`, `msg`, `dds_` and `T_` for `pkg/msg/T`.
fn scopes(name: &TypeName) -> Vec<&str> {
    let mut modules: Vec<&str> = name.parts().collect();
    modules.pop();
    modules.push("dds_");
    modules
}

/// Its modules and its name as IDL writes them, and its full name on DDS.
pub(crate) fn type_name(name: &TypeName) -> Value {
    let modules: Vec<String> = scopes(name).into_iter().map(ident).collect();
    let full = format!("{}::{}_", scopes(name).join("::"), name.name());
    json!({ "modules": modules, "name": format!("{}_", name.name()), "full": full })
}

/// A field: its type, its name, and `[N]` behind that.
pub(crate) fn field(field: &Field) -> Value {
    let bounded = |word: &str, bound: &Option<u32>| match bound {
        Some(bound) => format!("{word}<{bound}>"),
        None => word.to_owned(),
    };
    let element = match &field.kind.element {
        Element::Primitive(of) => primitive(*of).to_owned(),
        Element::String { bound } => bounded("string", bound),
        Element::WString { bound } => bounded("wstring", bound),
        // From outside all modules, whatever else they hold.
        Element::Named(name) => {
            let modules: Vec<String> = scopes(name).into_iter().map(ident).collect();
            format!("::{}::{}_", modules.join("::"), name.name())
        }
    };
    let (kind, suffix) = match field.kind.shape {
        Shape::One => (element, String::new()),
        Shape::Array(count) => (element, format!("[{count}]")),
        Shape::Sequence(None) => (format!("sequence<{element}>"), String::new()),
        Shape::Sequence(Some(bound)) => (format!("sequence<{element}, {bound}>"), String::new()),
    };
    json!({ "name": ident(&field.name), "type": kind, "suffix": suffix })
}

/// A constant's type and value; null if IDL cannot write it.
pub(crate) fn constant(name: &str, element: &Element, value: &Literal) -> Value {
    let text = match value {
        Literal::Bool(value) => value.to_string().to_uppercase(),
        Literal::Integer(value) => value.to_string(),
        Literal::Float(value) if value.is_finite() => format!("{value:?}"),
        Literal::Text(text) if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) => {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        Literal::Float(_) | Literal::Text(_) | Literal::List(_) => return Value::Null,
    };
    let kind = match element {
        Element::Primitive(of) => primitive(*of),
        Element::String { .. } => "string",
        Element::WString { .. } | Element::Named(_) => return Value::Null,
    };
    json!({ "name": ident(name), "type": kind, "value": text })
}

/// In words that IDL has had longest, where it has two.
const fn primitive(of: Primitive) -> &'static str {
    match of {
        Primitive::Bool => "boolean",
        Primitive::Byte => "octet",
        Primitive::Char => "char",
        Primitive::I8 => "int8",
        Primitive::U8 => "uint8",
        Primitive::I16 => "short",
        Primitive::U16 => "unsigned short",
        Primitive::I32 => "long",
        Primitive::U32 => "unsigned long",
        Primitive::I64 => "long long",
        Primitive::U64 => "unsigned long long",
        Primitive::F32 => "float",
        Primitive::F64 => "double",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_ros_2_on_dds_and_no_keywords() {
        let of = type_name(&TypeName::ros("std_msgs", "msg", "Header"));
        assert_eq!(of["full"], "std_msgs::msg::dds_::Header_");
        let of = |name: &str, shape| field(&Field::new(name, Element::String { bound: Some(4) }, shape));
        assert_eq!(
            of("Sequence", Shape::Array(2)),
            json!({ "name": "_Sequence", "type": "string<4>", "suffix": "[2]" })
        );
        assert_eq!(of("x", Shape::Sequence(Some(3)))["type"], "sequence<string<4>, 3>");
        let float = Element::Primitive(Primitive::F32);
        assert_eq!(constant("A", &float, &Literal::Float(f64::NAN)), Value::Null);
        assert_eq!(constant("A", &float, &Literal::Float(1.0))["value"], "1.0");
        let text = Element::String { bound: None };
        assert_eq!(constant("A", &text, &Literal::Text("a\"\\".into()))["value"], "\"a\\\"\\\\\"");
        assert_eq!(constant("A", &text, &Literal::Text("é".into())), Value::Null);
    }
}
