//! Bytes against those that Fast CDR writes of the same values, and every way in which a value or bytes are wrong.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::diagnostic::{Faults, Source};
use crate::library::Library;
use crate::model::{Element, Enum, Field, Named, Shape, Struct, TypeName};
use crate::rosidl::{self, Kind};

const DEFINITION: &str = "\
bool flag
int64 long_long
uint8 octet
int16 short
byte octet_again
float32 float
char one
float64 double
string string
string empty
uint32 unsigned_long
float64[] doubles
uint8[] octets
float64[] no_doubles
float32[3] floats
string[] strings
uint64 unsigned_long_long
int8 small
";

/// The values of formats/src/cdr/tests.rs, written by Fast CDR 1.0.26, without the enum at the end.
const FAST_CDR: &str = "
    00 01 00 00 01 00 00 00 00 00 00 00 fe ff ff ff ff ff ff ff 07 00 d4 fe 09 00 00 00 00 00 c0 3f
    01 00 00 00 00 00 00 00 00 00 02 40 04 00 00 00 75 61 76 00 01 00 00 00 00 00 00 00 00 28 6b ee
    02 00 00 00 00 00 00 00 00 00 f0 3f 00 00 00 00 00 00 f0 bf 03 00 00 00 01 02 03 00 00 00 00 00
    00 00 00 3f 00 00 80 3f 00 00 00 40 02 00 00 00 02 00 00 00 61 00 00 00 03 00 00 00 62 63 00 00
    00 00 00 00 ff ff ff ff ff ff ff ff ff";

fn value() -> Value {
    json!({
        "flag": true, "long_long": -2, "octet": 7, "short": -300, "octet_again": 9, "float": 1.5, "one": 1,
        "double": 2.25, "string": "uav", "unsigned_long": 4_000_000_000_u32, "doubles": [1, -1.0],
        "octets": [1, 2, 3], "floats": [0.5, 1.0, 2.0], "strings": ["a", "bc"],
        "unsigned_long_long": u64::MAX, "small": -1
    })
}

const BOUNDED: &str = "string<=3 name 'abc'\nuint16[<=2] numbers [7]\nOuter[2] nested\nwstring wide\n";

fn library() -> Library {
    let mut library = Library::default();
    let mut names = Vec::new();
    for (name, text) in [
        ("All", DEFINITION),
        ("Outer", "uint8 a 5\nfloat64 b -0.5\n"),
        ("Bounded", BOUNDED),
        ("Empty", ""),
        ("Floats", "float32 f\nfloat64 d\n"),
    ] {
        let types = rosidl::parse(&Source::new(name, text), Kind::Msg, "p", name).unwrap();
        for defined in types {
            names.push(defined.name.clone());
            library.insert(Named::Struct(std::sync::Arc::new(defined)), &mut Faults::default());
        }
    }
    let mode = TypeName::new("p/Mode");
    let variants = ["IDLE", "ARMED"].map(|name| (name.to_owned(), Vec::new())).to_vec();
    let defined = Enum { name: mode.clone(), variants, comment: Vec::new(), place: None };
    library.insert(Named::Enum(std::sync::Arc::new(defined)), &mut Faults::default());
    let holder =
        Struct::new(TypeName::new("p/Holder"), vec![Field::new("mode", Element::Named(mode), Shape::One)]);
    names.push(holder.name.clone());
    library.insert(Named::Struct(std::sync::Arc::new(holder)), &mut Faults::default());
    library.resolve(&names).unwrap();
    library
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn name(short: &str) -> TypeName {
    if matches!(short, "Holder") { TypeName::new("p/Holder") } else { TypeName::ros("p", "msg", short) }
}

fn write(short: &str, value: &Value) -> Result<Vec<u8>, CdrError> {
    encode(&library(), &name(short), value, WideStrings::Utf16)
}

fn read(short: &str, bytes: &[u8]) -> Result<Value, CdrError> {
    let tree = decode(&library(), &name(short), bytes, WideStrings::Utf16)?;
    Ok(serde_json::to_value(tree).unwrap())
}

#[test]
fn bytes_are_those_of_fast_cdr() {
    assert_eq!(write("All", &value()).unwrap(), hex(FAST_CDR));
    let decoded = read("All", &hex(FAST_CDR)).unwrap();
    for (key, expected) in value().as_object().unwrap().iter().filter(|(key, _)| *key != "doubles") {
        assert_eq!(&decoded[key], expected, "{key}");
    }
    assert_eq!(decoded["doubles"], json!([1.0, -1.0]));
    assert_eq!(decoded["empty"], "");
}

#[test]
fn what_is_missing_has_its_default() {
    let bytes = write("Bounded", &json!({})).unwrap();
    let expected = json!({
        "name": "abc", "numbers": [7], "nested": [{"a": 5, "b": -0.5}, {"a": 5, "b": -0.5}], "wide": ""
    });
    assert_eq!(read("Bounded", &bytes).unwrap(), expected);
    assert_eq!(write("Empty", &json!({})).unwrap(), [0, 1, 0, 0, 0]);
    assert_eq!(write("Holder", &json!({"mode": "ARMED"})).unwrap()[4..], [1, 0, 0, 0]);
    assert_eq!(read("Holder", &[0, 0, 0, 0, 0, 0, 0, 1]).unwrap(), json!({"mode": "ARMED"}));
}

#[test]
fn numbers_that_json_does_not_have_are_strings() {
    let value = json!({"f": "NaN", "d": "-Infinity"});
    assert_eq!(read("Floats", &write("Floats", &value).unwrap()).unwrap(), value);
}

#[test]
fn a_wide_string_travels_only_where_it_is_allowed() {
    let text = json!({"wide": "a😀"});
    assert_eq!(read("Bounded", &write("Bounded", &text).unwrap()).unwrap()["wide"], "a😀");
    let refused = encode(&library(), &name("Bounded"), &text, WideStrings::Refused).unwrap_err().to_string();
    assert!(refused.starts_with("wide: middlewares disagree about the bytes of a wstring"), "{refused}");
    let bytes = write("Bounded", &text).unwrap();
    assert!(decode(&library(), &name("Bounded"), &bytes, WideStrings::Refused).is_err());
}

#[test]
fn a_wrong_value_is_refused_with_its_field() {
    for (kind, value, expected) in [
        ("All", json!({"octet": 256}), "octet: 256 is not in the range of uint8, 0 to 255"),
        ("All", json!({"octet": 1.0}), "octet: 1.0 is no uint8"),
        ("All", json!({"octet": null}), "octet: null is no uint8"),
        ("All", json!({"flag": 1}), "flag: 1 is no bool"),
        ("All", json!({"float": 1e39}), "float: 1e39 is greater than the greatest float32"),
        ("All", json!({"floats": [1.0]}), "floats: the array has 3 elements and not 1"),
        ("All", json!({"strings": ["a", 5]}), "strings[1]: 5 is no string"),
        ("All", json!({"string": "a\0b"}), "string: the string contains NUL"),
        ("All", json!({"nosuch": 1}), "p/msg/All has no field \"nosuch\"; it has flag, long_long"),
        ("All", json!([]), "a list is no p/msg/All; write an object"),
        ("Bounded", json!({"name": "abcd"}), "name: the string has 4 bytes, and its type at most 3"),
        (
            "Bounded",
            json!({"numbers": [1, 2, 3]}),
            "numbers: the sequence has at most 2 elements, and the value 3",
        ),
        ("Bounded", json!({"nested": [{}, {"b": "x"}]}), "nested[1].b: \"x\" is no float64"),
        ("Holder", json!({"mode": "FLYING"}), "mode: \"FLYING\" is none of p/Mode: IDLE, ARMED"),
        ("Nosuch", json!({}), "p/msg/Nosuch is not a struct of these packages"),
    ] {
        let refused = write(kind, &value).unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn wrong_bytes_are_refused_with_their_field() {
    let all = hex(FAST_CDR);
    for length in 0..all.len() {
        assert!(read("All", &all[..length]).is_err(), "{length} bytes");
    }
    let padded: Vec<u8> = all.iter().copied().chain([0; 3]).collect();
    assert!(read("All", &padded).is_ok());
    let mut flag = all.clone();
    flag[4] = 2;
    for (kind, bytes, expected) in [
        ("All", [padded, vec![0]].concat(), "4 bytes are left over"),
        ("All", flag, "flag: the bool is 2, neither 0 nor 1"),
        ("All", hex("00 03 00 00 01"), "its representation is 00 03"),
        ("Bounded", hex("00 01 00 00 05 00 00 00 61 61 61 61 00"), "name: the string has 4 bytes"),
        ("Bounded", hex("00 01 00 00 00 00 00 00 03 00 00 00"), "numbers: the sequence has at most 2"),
        ("Bounded", hex("00 01 00 00 02 00 00 00 61 61"), "name: the string does not end with NUL"),
        ("Holder", hex("00 01 00 00 02 00 00 00"), "mode: p/Mode has no variant 2"),
    ] {
        let refused = read(kind, &bytes).unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic_and_what_it_reads_it_can_write(
        kind in prop::sample::select(vec!["All", "Bounded", "Empty", "Floats", "Holder"]),
        big in any::<bool>(),
        body in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 0..160),
    ) {
        let bytes = [&[0, u8::from(!big), 0, 0][..], &body].concat();
        if let Ok(value) = read(kind, &bytes) {
            let written = write(kind, &value).unwrap();
            prop_assert_eq!(read(kind, &written).unwrap(), value);
        }
    }
}
