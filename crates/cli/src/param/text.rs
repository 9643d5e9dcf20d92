//! Values of parameters as text: YAML and JSON, and ROS 2's files of them.

use noctule::parameter::{ParameterType, ParameterValue};
use serde_json::{Map, Value, json};

use crate::units::printable;

/// Key between the name of a node and its parameters.
const ROS_PARAMETERS: &str = "ros__parameters";
/// Key of parameters for any node.
const ANY_NODE: &str = "/**";
/// Maps in maps.
const DEPTH_MAX: usize = 64;

/// Why a text holds no values of parameters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum TextError {
    #[error("the value is neither JSON nor YAML: {0}; write e.g. 0.5 or '[1, 2]'")]
    Value(String),
    #[error("{value} is no value of type {{{kind}}}, as which it is declared")]
    Kind { value: Value, kind: ParameterType },
    #[error("it is no YAML: {0}")]
    File(String),
    #[error(
        "it has no parameters of node {0}; write '{0}: {{{ROS_PARAMETERS}: {{NAME: VALUE}}}}', or /** for any node"
    )]
    NotThisNode(String),
    #[error("{0}: more than {DEPTH_MAX} maps in one another")]
    Deep(String),
    #[error("{0} has no value")]
    NoValue(String),
}

/// A value in YAML or JSON.
pub(super) fn parsed(text: &str) -> Result<Value, TextError> {
    serde_json::from_str(text)
        .or_else(|_| serde_saphyr::from_str(text).map_err(|error| TextError::Value(first_line(&error))))
}

/// First line of an error that also shows where.
fn first_line(error: &impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The value of this kind that is meant.
pub(super) fn value_of(value: &Value, kind: ParameterType) -> Result<ParameterValue, TextError> {
    let wrong = || TextError::Kind { value: value.clone(), kind };
    let list = || value.as_array().ok_or_else(wrong);
    fn all<T>(list: &[Value], one: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
        list.iter().map(one).collect()
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    };
    let found = match kind {
        ParameterType::NotSet => None,
        ParameterType::Bool => value.as_bool().map(ParameterValue::Bool),
        ParameterType::Integer => value.as_i64().map(ParameterValue::Integer),
        ParameterType::Double => value.as_f64().map(ParameterValue::Double),
        ParameterType::String => text(value).map(ParameterValue::String),
        ParameterType::ByteArray => {
            let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
            all(list()?, byte).map(ParameterValue::ByteArray)
        }
        ParameterType::BoolArray => all(list()?, Value::as_bool).map(ParameterValue::BoolArray),
        ParameterType::IntegerArray => all(list()?, Value::as_i64).map(ParameterValue::IntegerArray),
        ParameterType::DoubleArray => all(list()?, Value::as_f64).map(ParameterValue::DoubleArray),
        ParameterType::StringArray => all(list()?, text).map(ParameterValue::StringArray),
    };
    found.ok_or_else(wrong)
}

/// A value as JSON.
pub(super) fn json_of(value: &ParameterValue) -> Value {
    match value {
        ParameterValue::NotSet => Value::Null,
        ParameterValue::Bool(value) => json!(value),
        ParameterValue::Integer(value) => json!(value),
        ParameterValue::Double(value) => json!(value),
        ParameterValue::String(value) => json!(value),
        ParameterValue::ByteArray(value) => json!(value),
        ParameterValue::BoolArray(value) => json!(value),
        ParameterValue::IntegerArray(value) => json!(value),
        ParameterValue::DoubleArray(value) => json!(value),
        ParameterValue::StringArray(value) => json!(value),
    }
}

/// A value for people, on one line.
pub(super) fn shown(value: &ParameterValue) -> String {
    match value {
        ParameterValue::String(text) => printable(text) + "\n",
        other => format!("{}\n", json_of(other)),
    }
}

/// Parameters of a node as ROS 2 has them in files: names with dots are maps in maps, unless a parameter is in the way.
pub(super) fn dumped(node: &str, values: &[(String, ParameterValue)]) -> Value {
    let mut parameters = Map::new();
    for (name, value) in values {
        if !put(&mut parameters, name, value) {
            parameters.insert(name.clone(), json_of(value));
        }
    }
    json!({ format!("/{}", node.trim_matches('/')): { ROS_PARAMETERS: parameters } })
}

/// False if a parameter stands where a map should.
fn put(map: &mut Map<String, Value>, name: &str, value: &ParameterValue) -> bool {
    match name.split_once('.') {
        None if map.contains_key(name) => false,
        None => {
            map.insert(name.to_owned(), json_of(value));
            true
        }
        Some((first, rest)) => match map.entry(first).or_insert_with(|| json!({})) {
            Value::Object(inner) => put(inner, rest, value),
            _ => false,
        },
    }
}

/// A parameter of a file: its name and its value.
pub(super) type Named = (String, Value);

/// The parameters in a file that are meant for a node: by its name, or for any node.
pub(super) fn flat(text: &str, node: &str) -> Result<Vec<Named>, TextError> {
    let whole: Value = serde_saphyr::from_str(text).map_err(|error| TextError::File(first_line(&error)))?;
    let node = format!("/{}", node.trim_matches('/'));
    let nodes = whole.as_object().ok_or_else(|| TextError::NotThisNode(node.clone()))?;
    let mut values = Vec::new();
    for (name, inside) in nodes {
        let is_meant = name == ANY_NODE || format!("/{}", name.trim_matches('/')) == node;
        if !is_meant {
            continue;
        }
        let parameters = inside.get(ROS_PARAMETERS).ok_or_else(|| TextError::NotThisNode(node.clone()))?;
        flatten("", parameters, DEPTH_MAX, &mut values)?;
    }
    match values.is_empty() {
        true => Err(TextError::NotThisNode(node)),
        false => Ok(values),
    }
}

fn flatten(
    prefix: &str,
    value: &Value,
    depth: usize,
    values: &mut Vec<(String, Value)>,
) -> Result<(), TextError> {
    match value {
        Value::Object(map) if depth > 0 => {
            for (name, inner) in map {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{name}"), inner, depth - 1, values)?;
            }
            Ok(())
        }
        Value::Object(_) => Err(TextError::Deep(prefix.to_owned())),
        Value::Null => Err(TextError::NoValue(prefix.to_owned())),
        _ => {
            values.push((prefix.to_owned(), value.clone()));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dumped_is_loaded_again_whatever_its_names_and_kinds() {
        let values: Vec<(String, ParameterValue)> = vec![
            ("a".into(), 1.into()),
            ("a.b".into(), "x: y".into()),
            ("c.d.e".into(), 1.0.into()),
            ("c.d.f".into(), vec![1u8, 255].into()),
            ("flags".into(), vec![true].into()),
            ("names".into(), vec!["1".to_owned(), "true".to_owned(), String::new()].into()),
            ("none".into(), Vec::<f64>::new().into()),
            ("text".into(), "12".into()),
        ];
        let text = serde_saphyr::to_string(&dumped("/arm", &values)).unwrap();
        let mut again = flat(&text, "arm").unwrap();
        again.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(again.len(), values.len(), "{text}");
        for ((name, value), (again, text)) in values.iter().zip(&again) {
            assert_eq!((again, &value_of(text, value.kind()).unwrap()), (name, value));
        }
    }

    #[test]
    fn a_value_is_read_by_the_kind_that_is_declared() {
        let of = |text: &str, kind| value_of(&parsed(text).unwrap(), kind);
        assert_eq!(of("1", ParameterType::Double), Ok(1.0.into()));
        assert_eq!(of("1", ParameterType::String), Ok("1".into()));
        assert_eq!(of("true", ParameterType::Bool), Ok(true.into()));
        assert_eq!(of("[1, 2.5]", ParameterType::DoubleArray), Ok(vec![1.0, 2.5].into()));
        let error = of("1.5", ParameterType::Integer).unwrap_err();
        assert_eq!(error.to_string(), "1.5 is no value of type {integer}, as which it is declared");
        assert!(of("[1, 256]", ParameterType::ByteArray).is_err());
        assert!(of("{a: 1}", ParameterType::StringArray).is_err());
    }

    #[test]
    fn a_file_for_other_nodes_or_of_another_shape_is_named() {
        let both = "/**: {ros__parameters: {a: 1}}\n/arm: {ros__parameters: {b: {c: 2}}}\n/leg: {ros__parameters: {d: 3}}";
        let names = |node| flat(both, node).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(
            (names("/arm"), names("/leg")),
            (vec!["a".to_owned(), "b.c".to_owned()], vec!["a".to_owned(), "d".to_owned()])
        );
        for text in ["[]", "1", "/leg: {ros__parameters: {d: 3}}", "/arm: {d: 3}"] {
            assert!(
                flat(text, "/arm").unwrap_err().to_string().starts_with("it has no parameters of node /arm"),
                "{text}"
            );
        }
        let error = flat("/arm: {ros__parameters: {d: null}}", "/arm").unwrap_err();
        assert_eq!(error, TextError::NoValue("d".to_owned()));
    }
}
