use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::cdr::{WideStrings, decode, encode};
use crate::diagnostic::Source;
use crate::hash::{Hashes, rihs01};
use crate::rosidl::{self, Kind};

const TIME: &str = "int32 sec\nuint32 nanosec\n";
const HEADER: &str = "builtin_interfaces/Time stamp\nstring frame_id\n";
const STATUS: &str = "byte OK=0\nstd_msgs/Header header\nbyte level\nchar letter\nstring<=8[<=3] names\n\
                      float32[9] rows\nbuiltin_interfaces/Time[] times\nwstring wide\n";

fn library() -> (Library, TypeName) {
    let mut library = Library::default();
    let name = TypeName::new("demo_msgs/msg/Status");
    for (package, short, text) in [
        ("builtin_interfaces", "Time", TIME),
        ("std_msgs", "Header", HEADER),
        ("demo_msgs", "Status", STATUS),
    ] {
        for defined in rosidl::parse(&Source::new(short, text), Kind::Msg, package, short).unwrap() {
            library.insert(Named::Struct(Arc::new(defined)), &mut Faults::default());
        }
    }
    library.resolve([&name]).unwrap();
    (library, name)
}

fn described(text: &str) -> Result<Described, DescribedError> {
    Described::new(&TypeDescription::parse(text)?)
}

#[test]
fn a_model_that_travels_as_a_description_keeps_both_hashes() {
    let (library, name) = library();
    let description = description(&library, &name).unwrap();
    assert_eq!(description.hash(), Hashes::new(&library).noctule(&name));
    let again = Described::new(&description).unwrap();
    assert_eq!(Hashes::new(&again.library).noctule(&again.name), description.hash());
    assert_eq!(rihs01(&again.library, &again.name), rihs01(&library, &name));
    assert_eq!(self::description(&again.library, &again.name).unwrap(), description);
}

#[test]
fn ros2msg_is_what_recordings_of_ros_carry() {
    let (library, name) = library();
    let line = "=".repeat(80);
    let expected = format!(
        "std_msgs/Header header\nbyte level\nchar letter\nstring<=8[<=3] names\nfloat32[9] rows\n\
         builtin_interfaces/Time[] times\nwstring wide\n\
         {line}\nMSG: builtin_interfaces/Time\n{TIME}{line}\nMSG: std_msgs/Header\n{HEADER}"
    );
    assert_eq!(ros2msg(&library, &name).unwrap(), expected.replace("char", "uint8"));
    let of = described("struct a/S\n b/c/d/Mode mode\nenum b/c/d/Mode\n OFF\n").unwrap();
    assert_eq!(ros2msg(&of.library, &of.name), None);
}

#[test]
fn values_of_a_described_type_are_read_and_written() {
    let of = described(
        "struct demo/Path\n float64[3][3] matrix\n demo/Mode mode\n demo/Point[] points\n\
         struct demo/Point\n float64 x\n string frame\nenum demo/Mode\n OFF\n ON\n",
    )
    .unwrap();
    let value = json!({
        "matrix": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        "mode": "ON",
        "points": [{"x": 0.5, "frame": "map"}],
    });
    let bytes = encode(&of.library, &of.name, &value, WideStrings::Refused).unwrap();
    let tree = decode(&of.library, &of.name, &bytes, WideStrings::Refused).unwrap();
    assert_eq!(serde_json::to_value(tree).unwrap(), value);
}

#[test]
fn what_cannot_be_decoded_is_named() {
    for (text, fact) in [
        ("struct a/A\n uint8? x\n", "a/A.x is optional"),
        ("struct a/A\n uint8[][] x\n", "a sequence of sequences"),
        ("struct a/A\n uint8[3][] x\n", "a sequence of sequences or arrays"),
        ("struct a/A\n uint8[65536][65536] x\n", "larger than a message"),
        ("struct a/A\n uint8[4294967295] x\n", "takes at least 4294967295 bytes"),
    ] {
        let refused = described(text).unwrap_err().to_string();
        assert!(refused.contains(fact), "{refused}");
    }
    // Each type holds the next many times: the whole would have more bytes than there are.
    let levels: String = (0..40).map(|n| format!("struct a/T{n}\n a/T{}[1000] next\n", n + 1)).collect();
    let refused = described(&format!("{levels}struct a/T40\n uint8 x\n")).unwrap_err().to_string();
    assert!(refused.contains("more than the 64 MiB"), "{refused}");
}

proptest! {
    #[test]
    fn a_described_type_reads_any_bytes_or_refuses_them(
        shapes in proptest::collection::vec(("(uint8|bool|int64|string|string<=2|demo/B)", "(\\[\\]|\\[[1-9]\\]|\\[<=3\\])?"), 1..6),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let fields: String = shapes.iter().enumerate().map(|(n, (of, shape))| format!(" {of}{shape} f{n}\n")).collect();
        let inner = if fields.contains("demo/B") { "struct demo/B\n uint16 x\n string y\n" } else { "" };
        let of = described(&format!("struct demo/A\n{fields}{inner}")).unwrap();
        let whole = [&[0, 1, 0, 0], &bytes[..]].concat();
        if let Ok(tree) = decode(&of.library, &of.name, &whole, WideStrings::Refused) {
            let value = serde_json::to_value(tree).unwrap();
            prop_assert!(encode(&of.library, &of.name, &value, WideStrings::Refused).is_ok());
        }
    }
}

#[test]
fn long_lists_are_cut_and_what_follows_them_is_read() {
    let of = described("struct a/A\n uint16[] data\n string[3] names\n uint8 last\n").unwrap();
    let value = json!({ "data": (0..100).collect::<Vec<u16>>(), "names": ["a", "b", "c"], "last": 7 });
    let bytes = encode(&of.library, &of.name, &value, WideStrings::Refused).unwrap();
    let tree = crate::cdr::decode_some((&of.library, &of.name), &bytes, WideStrings::Refused, 2).unwrap();
    let expected = json!({ "data": [0, 1, "… 98 more"], "names": ["a", "b", "… 1 more"], "last": 7 });
    assert_eq!(serde_json::to_value(tree).unwrap(), expected);
    let short = &bytes[..20];
    assert!(crate::cdr::decode_some((&of.library, &of.name), short, WideStrings::Refused, 2).is_err());
}
