//! Definitions that are read, and the sentence for each construct that is refused.

use proptest::prelude::*;

use super::*;
use crate::model::{Literal, Named};

fn message(text: &str) -> Struct {
    let source = Source::new("msg/T.msg", text);
    parse(&source, Kind::Msg, "pkg", "T").unwrap().remove(0)
}

fn refusal(kind: Kind, text: &str) -> String {
    parse(&Source::new("T.msg", text), kind, "pkg", "T").unwrap_err().to_string()
}

const EXAMPLE: &str = "\
# A joint.
#
# Second paragraph.

# Not attached to the message, but to the constant.
uint8 MODE_OFF = 0   # nothing moves
uint8\tMODE_ON=0x1
string NAME = \"a = b\"

float64[6] position  # of each joint [rad]
   # counted from the base
float64 rate 1.5     # [Hz] range [0, 10]
string<=10[<=3] names ['a', \"b\"]
std_msgs/Header header
Other[] others
string greeting \"x = y\"
char letter
byte octet
wstring<=4 wide
bool[2] flags [true, 0]
";

#[test]
fn every_part_of_a_message_is_read() {
    let joint = message(EXAMPLE);
    assert_eq!(joint.name.as_str(), "pkg/msg/T");
    assert_eq!(joint.comment, ["A joint.", "", "Second paragraph."]);
    let constants: Vec<_> = joint.constants.iter().map(|c| (c.name.as_str(), c.value.clone())).collect();
    let expected = [
        ("MODE_OFF", Literal::Integer(0)),
        ("MODE_ON", Literal::Integer(1)),
        ("NAME", Literal::Text("a = b".into())),
    ];
    assert_eq!(constants, expected);
    assert_eq!(joint.constants[0].comment[1], "nothing moves");
    let fields: Vec<String> = joint.fields.iter().map(|f| format!("{} {}", f.kind, f.name)).collect();
    let expected = [
        "float64[6] position",
        "float64 rate",
        "string<=10[<=3] names",
        "std_msgs/msg/Header header",
        "pkg/msg/Other[] others",
        "string greeting",
        "uint8 letter",
        "byte octet",
        "wstring<=4 wide",
        "bool[2] flags",
    ];
    assert_eq!(fields, expected);
    assert_eq!(joint.fields[0].unit.as_deref(), Some("rad"));
    assert_eq!(joint.fields[0].comment, ["of each joint", "counted from the base"]);
    assert_eq!(
        (joint.fields[1].unit.as_deref(), &joint.fields[1].default),
        (Some("Hz"), &Some(Literal::Float(1.5)))
    );
    assert_eq!(joint.fields[5].default, Some(Literal::Text("x = y".into())));
}

#[test]
fn an_empty_message_has_the_member_that_ros_2_gives_it() {
    let empty = message("# Nothing.\n");
    assert!(empty.is_empty());
    assert_eq!(empty.fields[0].name, "structure_needs_at_least_one_member");
    assert!(!message("uint8 a\n").is_empty());
}

#[test]
fn services_and_actions_give_the_types_of_rosidl() {
    let names = |kind, text: &str| -> Vec<String> {
        let types = parse(&Source::new("T", text), kind, "pkg", "T").unwrap();
        types.iter().map(|defined| defined.name.to_string()).collect()
    };
    let service = names(Kind::Srv, "int32 a\r\n---\r\nint32 b\r\n");
    assert_eq!(service, ["pkg/srv/T", "pkg/srv/T_Request", "pkg/srv/T_Response", "pkg/srv/T_Event"]);
    let action = names(Kind::Action, "---\n---\n");
    assert_eq!(action.len(), 13);
    assert!(action.contains(&"pkg/action/T_SendGoal_Event".to_owned()));
}

#[test]
fn each_fault_has_its_sentence_its_line_and_its_way_out() {
    for (text, expected) in [
        ("Header header\n", ["T.msg:1:1", "write std_msgs/Header"]),
        ("\ntime stamp\n", ["T.msg:2:1", "write builtin_interfaces/Time"]),
        ("double x\n", ["double is not a type", "write float64"]),
        ("int32 Abc\n", ["T.msg:1:7", "not a name that a field may have"]),
        ("int32 a__b\n", ["\"a__b\"", "single underscores"]),
        ("int32 max=5\n", ["\"max\"", "upper-case"]),
        ("int32\n", ["without a name", "TYPE NAME"]),
        ("int32[0] a\n", ["\"0\" is not a size", "from 1"]),
        ("int32[4294967296] a\n", ["\"4294967296\" is not a size", "T.msg:1:1"]),
        ("int32[2][3] a\n", ["array of arrays", "message of its own"]),
        ("int32 a\nint32 a\n", ["T.msg:2:7", "the first is in line 1"]),
        ("uint8 A=256\n", ["256 is not in the range of uint8", "T.msg:1:9"]),
        ("std_msgs/Header h 5\n", ["cannot have a default", "T.msg:1:19"]),
        ("a/b/c/D x\n", ["a/b/c/D is not a type", "package/Name"]),
        ("string s \"a#b\"\n", ["no closing", "# begins a comment even inside quotes"]),
        ("---\n", ["a .msg has no line ---, and this one has 1", "T.msg:1:1"]),
    ] {
        let shown = refusal(Kind::Msg, text);
        for part in expected {
            assert!(shown.contains(part), "{text:?} gives {shown}, without {part}");
        }
    }
    assert!(refusal(Kind::Srv, "int32 a\n").contains("a .srv has one line ---, and this one has 0"));
    let both = refusal(Kind::Msg, "int32 A\nint32 B\n");
    assert!(both.contains("T.msg:1:7") && both.contains("T.msg:2:7"), "{both}");
}

#[test]
fn a_message_of_10_000_fields_is_read() {
    let text: String = (0..10_000).map(|number| format!("float64 f{number} {number}\n")).collect();
    assert_eq!(message(&text).fields.len(), 10_000);
}

/// Text that is nearly a definition.
fn nearly() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "int32",
        "string<=5",
        "[",
        "]",
        "[<=",
        "3",
        "a",
        "A",
        "=",
        " ",
        "\n",
        "\"",
        "'",
        "\\",
        "#",
        "---",
        "\t",
        "é",
        "0x",
        "-",
        ",",
        "std_msgs/Header",
        "true",
        "\r\n",
        "[m/s]",
        "float64[2]",
        "wstring",
        "\0",
        "_",
    ]);
    prop::collection::vec(words, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in nearly(), any in ".{0,80}") {
        for kind in Kind::ALL {
            for text in [&text, &any] {
                match parse(&Source::new("T", text.as_str()), kind, "pkg", "T") {
                    Ok(types) => prop_assert!(types.iter().all(|defined| !defined.fields.is_empty())),
                    Err(faults) => prop_assert!(!faults.to_string().is_empty()),
                }
            }
        }
    }
}

#[test]
fn a_type_knows_where_it_stands() {
    let defined = Named::Struct(std::sync::Arc::new(message("int32 a")));
    assert_eq!(&*defined.place().unwrap().source.path, "msg/T.msg");
}
