use proptest::prelude::*;

use super::*;

fn point() -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 0];
    [1.5_f64, -2.0, 1e9].iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    bytes
}

#[test]
fn every_built_in_definition_resolves() {
    let types = Types::default();
    for (name, _) in DEFINITIONS {
        assert!(types.decoder(name, 0).is_ok(), "{name}");
    }
}

#[test]
fn a_field_is_found_by_its_path() {
    let decoder = Types::default().decoder("geometry_msgs/Point", 0).unwrap();
    let tree = decoder.decode("cdr", &point()).unwrap();
    assert_eq!(number_at(&tree, "y"), Some(-2.0));
    assert_eq!(number_at(&tree, "w"), None);
    let tree = json_tree(br#"{"a":[{"b":true},{"b":3}]}"#).unwrap();
    assert_eq!(number_at(&tree, "a[1].b"), Some(3.0));
    assert_eq!(number_at(&tree, "a[0].b"), Some(1.0));
    assert_eq!(number_at(&tree, "a[7].b"), None);
}

#[test]
fn a_definition_that_a_node_sends_replaces_that_there_was_none() {
    let types = Types::default();
    assert!(!types.has("demo/msg/Level", 7));
    let mut other = Types::default();
    other.add_text("demo/msg/Level", b"float64 level\n");
    let Decoder { library, name } = Arc::into_inner({
        let found = other.decoder("demo/msg/Level", 0).unwrap();
        drop(other);
        found
    })
    .unwrap();
    types.add_described("demo/msg/Level", 7, Described { library, name });
    let tree = types.decoder("demo/msg/Level", 7).unwrap().decode("cdr", &point()[..12]).unwrap();
    assert_eq!(number_at(&tree, "level"), Some(1.5));
    assert!(!types.has("demo/msg/Level", 8));
}

#[test]
fn a_definition_of_a_recording_goes_before_the_built_in_one() {
    let mut types = Types::default();
    let text = "MyPart part\n================\nMSG: demo/MyPart\nfloat64 level\n";
    types.add_text("demo/msg/Whole", text.as_bytes());
    let decoder = types.decoder("demo/msg/Whole", 0).unwrap();
    let tree = decoder.decode("cdr", &point()[..12]).unwrap();
    assert_eq!(number_at(&tree, "part.level"), Some(1.5));
}

#[test]
fn the_plain_layout_is_that_of_a_c_struct() {
    let mut types = Types::default();
    let text =
        "uint8 a\nfloat64 b\nPart[2] parts\nbool on\n================\nMSG: demo/Part\nint16 x\nfloat32 y\n";
    types.add_text("demo/msg/Whole", text.as_bytes());
    let decoder = types.decoder("demo/msg/Whole", 0).unwrap();
    // a, 7 bytes of padding, b, two parts of 8 bytes, on, 7 bytes of padding.
    let mut bytes = vec![7, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(2.5_f64.to_ne_bytes());
    for (x, y) in [(-1_i16, 0.5_f32), (300, -4.0)] {
        bytes.extend(x.to_ne_bytes());
        bytes.extend([0, 0]);
        bytes.extend(y.to_ne_bytes());
    }
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    let tree = decoder.decode("plain", &bytes).unwrap();
    let found = ["a", "b", "parts[0].x", "parts[1].x", "parts[1].y", "on"].map(|path| number_at(&tree, path));
    assert_eq!(found, [7.0, 2.5, -1.0, 300.0, -4.0, 1.0].map(Some));
    let short = decoder.decode("plain", &bytes[1..]).unwrap_err().to_string();
    assert!(short.contains("40 bytes") && short.contains("39"), "{short}");
}

#[test]
fn what_is_not_known_or_another_is_named() {
    let types = Types::default();
    let unknown = types.decoder("demo/msg/Nothing", 0).unwrap_err().to_string();
    assert!(unknown.contains("demo/msg/Nothing") && unknown.contains("--types"), "{unknown}");
    let other = types.decoder("geometry_msgs/msg/Point", 1).unwrap_err();
    assert_eq!(other, NotDecoded::Other("geometry_msgs/msg/Point".into()));
    assert_eq!(types.decoder("", 0).unwrap_err(), NotDecoded::NoType);
}

proptest! {
    #[test]
    fn any_definition_and_any_bytes_are_read_or_refused(
        text in "[a-z0-9 \\[\\]<=#/\n:A-Z]{0,120}", bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut types = Types::default();
        types.add_text("demo/msg/T", text.as_bytes());
        if let Ok(decoder) = types.decoder("demo/msg/T", 0) {
            let _ = decoder.decode("cdr", &bytes);
            let _ = decoder.decode("plain", &bytes);
        }
        let image = types.decoder("sensor_msgs/msg/PointCloud2", 0).unwrap();
        let _ = image.decode("cdr", &[&[0, 1, 0, 0], bytes.as_slice()].concat());
    }
}
