//! IDL that is read, and the sentence for each construct that is refused.

use proptest::prelude::*;

use super::*;
use crate::model::Literal;

fn read(text: &str) -> Vec<Struct> {
    parse(&Source::new("T.idl", text)).map_err(|faults| faults.to_string()).unwrap().structs
}

const EXAMPLE: &str = r#"
#ifndef GUARD
#define GUARD
#include "std_msgs/msg/Header.idl"
// As ROS 2 writes it.
module pkg {
  module msg {
    typedef double double__3[3];
    typedef string string__3[3];
    typedef std_msgs::msg::Header Stamp;
    enum Mode { IDLE, ARMED };
    const uint32 MANY = 0x10;
    module Pose_Constants {
      @verbatim (language="comment", text="Nothing moves.")
      const uint8 OFF = 0;
      const string WORD = "a" "b";
    };
    @verbatim (language="comment", text=
      "A pose." "\n"
      "Of a tool.")
    struct Pose {
      @unit (value="m")
      double__3 position;
      @key @default (value=-5)
      long long id;
      /* several */ unsigned short a, b[2][3];
      string__3 names;
      Stamp header;
      sequence<Mode, MANY> modes;
      sequence<octet> bytes;
      string<10> short_text;
      @default (value="(1, 2)")
      int16 two[2];
      boolean _module;
    };
    struct Child : Pose { char letter; };
  };
};
module hugo { struct DesireJoint { double oriThetaArr[6]; double desiredPosArr[6]; }; };
#endif
"#;

#[test]
fn every_part_of_a_file_is_read() {
    let structs = read(EXAMPLE);
    let names: Vec<&str> = structs.iter().map(|defined| defined.name.as_str()).collect();
    assert_eq!(names, ["pkg/msg/Pose", "pkg/msg/Child", "hugo/msg/DesireJoint"]);
    let fields: Vec<String> =
        structs[1].fields.iter().map(|field| format!("{} {}", field.kind, field.name)).collect();
    let expected = [
        "float64[3] position",
        "int64 id",
        "uint16 a",
        "uint16[6] b",
        "string[3] names",
        "std_msgs/msg/Header header",
        "uint32[<=16] modes",
        "byte[] bytes",
        "string<=10 short_text",
        "int16[2] two",
        "bool module",
        "char letter",
    ];
    assert_eq!(fields, expected);
    let pose = &structs[0];
    assert_eq!(pose.comment, ["A pose.", "Of a tool."]);
    assert_eq!((pose.fields[0].unit.as_deref(), pose.fields[1].is_key), (Some("m"), true));
    assert_eq!(pose.fields[1].default, Some(Literal::Integer(-5)));
    let constants: Vec<&str> = pose.constants.iter().map(|constant| constant.name.as_str()).collect();
    assert_eq!(constants, ["IDLE", "ARMED", "OFF", "WORD"]);
    assert_eq!(pose.constants[3].value, Literal::Text("ab".into()));
}

#[test]
fn what_is_not_supported_is_refused_by_name_and_line() {
    let inside = |text: &str| format!("module p {{ module msg {{\n{text}\n}}; }};");
    for (text, expected) in [
        (inside("union U switch (long) { case 1: long a; };"), "union of IDL is not supported"),
        (inside("struct S { map<long, long> a; };"), "map of IDL is not supported"),
        (inside("struct S { any a; };"), "any of IDL is not supported"),
        (inside("interface I {};"), "interface of IDL is not supported"),
        (inside("struct S { long double a; };"), "long double of IDL is not supported"),
        (inside("struct S { wchar a; };"), "wchar of IDL is not supported"),
        (inside("@mutable struct S { long a; };"), "@mutable is not supported"),
        (inside("struct S { @optional long a; };"), "@optional is not supported"),
        (inside("struct S { sequence<sequence<long>> a; };"), "a sequence of arrays or of sequences"),
        (inside("struct S { Nosuch a; };"), "Nosuch is defined nowhere before"),
        (inside("struct S { long a; long a; };"), "a is defined a second time"),
        (inside("struct S { long a[0]; };"), "a size is a whole number from 1"),
        (inside("struct S { long a[2+3]; };"), "expressions are not supported"),
        (inside("const long A = (2);"), "expressions are not supported"),
        (inside("const long A = 1 << 3;"), "expressions are not supported"),
        (inside("#include"), "this line names no file"),
        (inside("@extensibility(MUTABLE) struct S { long a; };"), "@mutable is not supported"),
        (inside("const octet A = 256;"), "256 is not in the range"),
        (inside("struct S : Nosuch { long a; };"), "Nosuch is defined nowhere before"),
        (inside("struct S { long a }"), "here stands }, and ; is expected"),
        (inside("#if 0"), "#if of a preprocessor is not supported"),
        ("struct S { long a; };".to_owned(), "S lies outside of a package"),
        ("/* x".to_owned(), "this comment has no end"),
        ("module p { \"abc".to_owned(), "this text has no end"),
        ("module p {".to_owned(), "the end of the file"),
    ] {
        let refused = parse(&Source::new("T.idl", text.as_str())).unwrap_err().to_string();
        assert!(refused.contains(expected) && refused.contains("T.idl:"), "{text}: {refused}");
    }
    let warned =
        parse(&Source::new("T.idl", "module p { @nosuch struct S { long a; }; };")).unwrap().warnings;
    assert!(warned[0].what.contains("@nosuch is not known"));
}

/// Reads the first of these files, which include each other by their names.
fn read_of(files: &[(&str, &str)]) -> Result<Parsed, Faults> {
    let find = |_: &Source, path: &str| {
        Ok(files.iter().find(|(name, _)| *name == path).map(|(name, text)| Source::new(*name, *text)))
    };
    parse_with(&find(&Source::new("", ""), files[0].0)?.unwrap(), &find)
}

#[test]
fn what_an_included_file_defines_is_known() {
    let parsed = read_of(&[
        (
            "a.idl",
            "#include \"b.idl\"\n#include <c.idl>\n#include \"nowhere.idl\"\n\
             module p { struct A { long a[MANY]; other::Part part; Mode mode; Row row; }; };",
        ),
        ("b.idl", "#include \"c.idl\"\nmodule p { const long MANY = 3; typedef double Row[2]; };"),
        ("c.idl", "module p { enum Mode { ON, OFF }; }; module other { struct Part { octet x; }; };"),
    ])
    .unwrap();
    let fields: Vec<String> = parsed.structs[0].fields.iter().map(|field| field.kind.to_string()).collect();
    assert_eq!(fields, ["int32[3]", "other/msg/Part", "uint32", "float64[2]"]);
    assert_eq!((parsed.structs.len(), parsed.included[0].name.as_str()), (1, "other/msg/Part"));
    let files: Vec<&str> = parsed.files.iter().map(|path| &**path).collect();
    assert_eq!(files, ["c.idl", "b.idl"]);

    let ring = read_of(&[("a.idl", "#include \"b.idl\"\n"), ("b.idl", "#include \"a.idl\"\n")]).unwrap_err();
    assert!(ring.to_string().contains("a.idl includes itself: a.idl > b.idl > a.idl"), "{ring}");
    let missing = read_of(&[("a.idl", "#include \"k.idl\"\nmodule p { struct A { long a[MANY]; }; };")]);
    let missing = missing.unwrap_err().to_string();
    assert!(missing.contains("k.idl is included and found nowhere"), "{missing}");
}

#[test]
fn a_sequence_that_nests_without_end_is_refused_before_the_stack_ends() {
    let text = format!("module p {{ struct S {{ {} long a; }}; }};", "sequence<".repeat(100_000));
    assert!(parse(&Source::new("T.idl", text)).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "module ", "p ", "{", "}", ";", "struct ", "S ", "long ", "a", "[", "3", "]", "sequence<", ">", ",", "string<", "::", "@",
            "key ", "default", "(", ")", "value=", "\"x\"", "'c'", "enum ", "const ", "=", "-", "typedef ", "#include\n", "/*", "*/", "é",
            "0x1", "1e", "\n", "unsigned ", ":", "_",
        ]), 0..60),
        any in ".{0,60}",
    ) {
        for text in [words.concat(), format!("module p {{ module msg {{ {} }}; }};", words.concat()), any] {
            if let Err(faults) = parse(&Source::new("T", text)) {
                prop_assert!(!faults.to_string().is_empty());
            }
        }
    }
}
