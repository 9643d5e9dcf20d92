//! Values of parameters, their kinds and their limits, as `rcl_interfaces` has them.

use std::fmt;

use noctule_formats::bounded::Sequence;

use crate::generated::rcl_interfaces::msg;

/// A kind of value. The numbers are those of `rcl_interfaces/msg/ParameterType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ParameterType {
    /// No value.
    NotSet = 0,
    /// `bool`
    Bool = 1,
    /// `int64`
    Integer = 2,
    /// `float64`
    Double = 3,
    /// `string`
    String = 4,
    /// `byte[]`
    ByteArray = 5,
    /// `bool[]`
    BoolArray = 6,
    /// `int64[]`
    IntegerArray = 7,
    /// `float64[]`
    DoubleArray = 8,
    /// `string[]`
    StringArray = 9,
}

const TYPES: [(ParameterType, &str); 10] = [
    (ParameterType::NotSet, "not set"),
    (ParameterType::Bool, "bool"),
    (ParameterType::Integer, "integer"),
    (ParameterType::Double, "double"),
    (ParameterType::String, "string"),
    (ParameterType::ByteArray, "byte_array"),
    (ParameterType::BoolArray, "bool_array"),
    (ParameterType::IntegerArray, "integer_array"),
    (ParameterType::DoubleArray, "double_array"),
    (ParameterType::StringArray, "string_array"),
];

impl ParameterType {
    /// The kind with this number.
    pub fn of_number(number: u8) -> Option<ParameterType> {
        TYPES.get(usize::from(number)).map(|(kind, _)| *kind)
    }

    /// Its name, as ROS 2's tools show it.
    pub fn name(self) -> &'static str {
        TYPES[self as usize].1
    }
}

impl fmt::Display for ParameterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum ParameterValue {
    /// None.
    #[default]
    NotSet,
    /// `bool`
    Bool(bool),
    /// `int64`
    Integer(i64),
    /// `float64`
    Double(f64),
    /// `string`
    String(String),
    /// `byte[]`
    ByteArray(Vec<u8>),
    /// `bool[]`
    BoolArray(Vec<bool>),
    /// `int64[]`
    IntegerArray(Vec<i64>),
    /// `float64[]`
    DoubleArray(Vec<f64>),
    /// `string[]`
    StringArray(Vec<String>),
}

impl ParameterValue {
    /// Its kind.
    pub fn kind(&self) -> ParameterType {
        match self {
            ParameterValue::NotSet => ParameterType::NotSet,
            ParameterValue::Bool(_) => ParameterType::Bool,
            ParameterValue::Integer(_) => ParameterType::Integer,
            ParameterValue::Double(_) => ParameterType::Double,
            ParameterValue::String(_) => ParameterType::String,
            ParameterValue::ByteArray(_) => ParameterType::ByteArray,
            ParameterValue::BoolArray(_) => ParameterType::BoolArray,
            ParameterValue::IntegerArray(_) => ParameterType::IntegerArray,
            ParameterValue::DoubleArray(_) => ParameterType::DoubleArray,
            ParameterValue::StringArray(_) => ParameterType::StringArray,
        }
    }

    /// Bytes of its content.
    pub fn content_bytes(&self) -> usize {
        match self {
            ParameterValue::NotSet => 0,
            ParameterValue::Bool(_) => 1,
            ParameterValue::Integer(_) | ParameterValue::Double(_) => 8,
            ParameterValue::String(text) => text.len(),
            ParameterValue::ByteArray(bytes) => bytes.len(),
            ParameterValue::BoolArray(values) => values.len(),
            ParameterValue::IntegerArray(values) => values.len() * 8,
            ParameterValue::DoubleArray(values) => values.len() * 8,
            ParameterValue::StringArray(values) => values.iter().map(|text| text.len() + 8).sum(),
        }
    }

    pub(crate) fn to_message(&self) -> msg::ParameterValue {
        let mut message = msg::ParameterValue { r#type: self.kind() as u8, ..Default::default() };
        match self.clone() {
            ParameterValue::NotSet => {}
            ParameterValue::Bool(value) => message.bool_value = value,
            ParameterValue::Integer(value) => message.integer_value = value,
            ParameterValue::Double(value) => message.double_value = value,
            ParameterValue::String(value) => message.string_value = value,
            ParameterValue::ByteArray(value) => message.byte_array_value = value,
            ParameterValue::BoolArray(value) => message.bool_array_value = value,
            ParameterValue::IntegerArray(value) => message.integer_array_value = value,
            ParameterValue::DoubleArray(value) => message.double_array_value = value,
            ParameterValue::StringArray(value) => message.string_array_value = value,
        }
        message
    }

    /// `None` if its kind is none of `rcl_interfaces`.
    pub(crate) fn of_message(message: msg::ParameterValue) -> Option<ParameterValue> {
        Some(match ParameterType::of_number(message.r#type)? {
            ParameterType::NotSet => ParameterValue::NotSet,
            ParameterType::Bool => ParameterValue::Bool(message.bool_value),
            ParameterType::Integer => ParameterValue::Integer(message.integer_value),
            ParameterType::Double => ParameterValue::Double(message.double_value),
            ParameterType::String => ParameterValue::String(message.string_value),
            ParameterType::ByteArray => ParameterValue::ByteArray(message.byte_array_value),
            ParameterType::BoolArray => ParameterValue::BoolArray(message.bool_array_value),
            ParameterType::IntegerArray => ParameterValue::IntegerArray(message.integer_array_value),
            ParameterType::DoubleArray => ParameterValue::DoubleArray(message.double_array_value),
            ParameterType::StringArray => ParameterValue::StringArray(message.string_array_value),
        })
    }
}

macro_rules! from {
    ($($type:ty => $kind:ident),* $(,)?) => {
        $(impl From<$type> for ParameterValue {
            fn from(value: $type) -> ParameterValue {
                ParameterValue::$kind(value.into())
            }
        })*
    };
}

from! {
    bool => Bool, i64 => Integer, i32 => Integer, f64 => Double, String => String, &str => String, Vec<u8> => ByteArray,
    Vec<bool> => BoolArray, Vec<i64> => IntegerArray, Vec<f64> => DoubleArray, Vec<String> => StringArray,
}

/// Values from the first to the second, both included; with a step only those that lie a multiple of it behind the first, and the
/// second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterRange {
    /// Of an integer. A step of 0: any.
    Integer {
        /// The least.
        from: i64,
        /// The greatest.
        to: i64,
        /// Between two values.
        step: u64,
    },
    /// Of a double. A step of 0: any.
    Double {
        /// The least.
        from: f64,
        /// The greatest.
        to: f64,
        /// Between two values.
        step: f64,
    },
}

/// The description of a parameter, without its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterDescriptor {
    /// For people.
    pub description: String,
    /// For people: what the callback asks for beside the range.
    pub constraints: String,
    /// It keeps the value that it is declared with.
    pub read_only: bool,
    /// It may be set to values of other kinds, and be deleted.
    pub dynamic_typing: bool,
    /// Which values it may have.
    pub range: Option<ParameterRange>,
}

impl ParameterDescriptor {
    pub(crate) fn to_message(&self, name: &str, kind: ParameterType) -> msg::ParameterDescriptor {
        let mut message = msg::ParameterDescriptor {
            name: name.to_owned(),
            r#type: kind as u8,
            description: self.description.clone(),
            additional_constraints: self.constraints.clone(),
            read_only: self.read_only,
            dynamic_typing: self.dynamic_typing,
            ..Default::default()
        };
        // One fits.
        match self.range {
            Some(ParameterRange::Integer { from, to, step }) => {
                let range = msg::IntegerRange { from_value: from, to_value: to, step };
                message.integer_range = Sequence::try_from(vec![range]).unwrap_or_default();
            }
            Some(ParameterRange::Double { from, to, step }) => {
                let range = msg::FloatingPointRange { from_value: from, to_value: to, step };
                message.floating_point_range = Sequence::try_from(vec![range]).unwrap_or_default();
            }
            None => {}
        }
        message
    }

    pub(crate) fn of_message(message: msg::ParameterDescriptor) -> ParameterDescriptor {
        let integer = message.integer_range.first().map(|range| ParameterRange::Integer {
            from: range.from_value,
            to: range.to_value,
            step: range.step,
        });
        let double = message.floating_point_range.first().map(|range| ParameterRange::Double {
            from: range.from_value,
            to: range.to_value,
            step: range.step,
        });
        ParameterDescriptor {
            description: message.description,
            constraints: message.additional_constraints,
            read_only: message.read_only,
            dynamic_typing: message.dynamic_typing,
            range: integer.or(double),
        }
    }
}

impl ParameterRange {
    /// The kind of the values that it is for.
    pub fn kind(self) -> ParameterType {
        match self {
            ParameterRange::Integer { .. } => ParameterType::Integer,
            ParameterRange::Double { .. } => ParameterType::Double,
        }
    }

    /// Whether a value lies in it. Values of other kinds do.
    pub fn has(self, value: &ParameterValue) -> bool {
        match (self, value) {
            (ParameterRange::Integer { from, to, step }, ParameterValue::Integer(value)) => {
                let is_inside = (from..=to).contains(value);
                is_inside && (step == 0 || *value == to || value.abs_diff(from).is_multiple_of(step))
            }
            (ParameterRange::Double { from, to, step }, ParameterValue::Double(value)) => {
                let is_near =
                    |one: f64, other: f64| (one - other).abs() <= one.abs().max(other.abs()) * 1e-12;
                if value.is_finite() && (is_near(*value, from) || is_near(*value, to)) {
                    return true;
                }
                let steps = ((value - from) / step).round();
                (from..=to).contains(value) && (step == 0.0 || is_near(from + steps * step, *value))
            }
            _ => true,
        }
    }
}

impl fmt::Display for ParameterRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterRange::Integer { from, to, step: 0 } => write!(f, "{from} to {to}"),
            ParameterRange::Integer { from, to, step } => write!(f, "{from} to {to} in steps of {step}"),
            ParameterRange::Double { from, to, step } if *step == 0.0 => write!(f, "{from} to {to}"),
            ParameterRange::Double { from, to, step } => write!(f, "{from} to {to} in steps of {step}"),
        }
    }
}
