use proptest::prelude::*;

use super::*;
use crate::bounded::{Sequence, Text};
use crate::{Message, message};

message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Point: "demo/Point" {
        x: f64,
        y: f64,
    }
}

message! {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Path: "demo/Path" {
        r#type: u8,
        #[serde(rename = "self")]
        self_ as "self": bool,
        start: Point,
        points: Vec<Point>,
        corners: [Point; 4],
        names: Sequence<Text<16>, 5>,
        rows: Vec<[f32; 3]>,
        note: Option<String>,
    }
}

const PATH: &str = "struct demo/Path\n uint8 type\n bool self\n demo/Point start\n demo/Point[] points\n \
                    demo/Point[4] corners\n string<=16[<=5] names\n float32[3][] rows\n string? note\n\
                    struct demo/Point\n float64 x\n float64 y\n";

#[test]
fn a_type_of_rust_describes_itself_and_the_description_has_its_hash() {
    assert_eq!(Path::description(), PATH);
    let read = TypeDescription::parse(PATH).unwrap();
    assert_eq!((read.name(), read.hash()), ("demo/Path", Path::type_hash()));
    assert_eq!(read.types().len(), 2);
}

#[test]
fn what_does_not_fit_together_is_refused_with_the_fact() {
    let deep: String = (0..70).map(|n| format!("struct T{n}\n T{} next\n", n + 1)).collect();
    let wide: String = (0..TYPES_MAX).map(|n| format!("struct T{n}\n")).collect();
    for (text, fact) in [
        ("", "does not end with a line break"),
        ("\n", "begins with neither"),
        ("struct a/A", "does not end with a line break"),
        ("struct a/A\n", "a/A has no members"),
        (" uint8 x\n", "before the first type"),
        ("struct a/A\n uint8 x\n\n", "line 3"),
        ("struct a/A\n uint8\n", "no type, a space and a name"),
        ("struct a/A\n uint8 x y\n", "space or a control"),
        ("struct a/A\n uint8[0] x\n", "no number from 1"),
        ("struct a/A\n uint8[99999999999] x\n", "no number from 1"),
        ("struct a/A\n uint8[+1] x\n", "no number from 1"),
        ("struct a/A\n uint8[3 x\n", "neither [N]"),
        ("struct a/A\n uint8[1][1][1][1][1][1][1][1][1] x\n", "more than 8"),
        ("struct a/A\n b/B b\n", "b/B is not defined"),
        ("struct a/A\n a/A[] next\n", "a/A contains itself"),
        ("struct a/A\n b/B b\nstruct b/B\n a/A a\n", "a/A contains itself"),
        ("struct a/A\n uint8 x\nstruct b/B\n uint8 x\n", "nothing refers to b/B"),
        ("struct a/A\n uint8 x\nstruct a/A\n uint8 x\n", "defined twice"),
        ("struct uint8\n uint8 x\n", "cannot be the name"),
        (deep.as_str(), "more than 60 types deep"),
        (format!("{wide}struct a/A\n").as_str(), "more than 1024 types"),
        ("x".repeat(DESCRIPTION_BYTES_MAX + 1).as_str(), "more than the 65536"),
    ] {
        let refused = TypeDescription::parse(text).unwrap_err().to_string();
        assert!(refused.contains(fact), "{refused} does not say {fact}");
    }
}

#[test]
fn an_enum_has_the_hash_of_the_generator() {
    let text = "struct a/S\n a/Mode mode\n byte raw\nenum a/Mode\n OFF\n ON\n";
    let expected = crate::struct_hash(
        "a/S",
        &[("mode", crate::enum_hash("a/Mode", &["OFF", "ON"])), ("raw", crate::struct_hash("u8", &[]))],
    );
    assert_eq!(TypeDescription::parse(text).unwrap().hash(), expected);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(struct |enum | )?([a-c/]{1,3}|uint8|string|[\\[\\]<=?0-9 \n]){0,40}\n?") {
        match TypeDescription::parse(&text) {
            Ok(read) => prop_assert_ne!(read.hash(), 0),
            Err(refused) => prop_assert!(!refused.to_string().is_empty()),
        }
    }

    #[test]
    fn a_description_with_one_change_is_another_type_or_none(at in 0..PATH.len(), letter in b' '..b'~') {
        let mut bytes = PATH.as_bytes().to_vec();
        bytes[at] = letter;
        let changed = String::from_utf8(bytes).unwrap();
        if let Ok(read) = TypeDescription::parse(&changed) {
            prop_assert!(changed == PATH || read.hash() != Path::type_hash());
        }
    }
}
