//! Decoders of a page: any definition, any bytes of any format, and any bytes as a picture, points or a map.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_view::content::{Kind, message};
use noctule_view::types::{Types, json_tree, number_at};
use serde_json::json;

fuzz_target!(|input: (String, String, Vec<u8>)| {
    let (definition, path, bytes) = input;
    let message_bytes = [&[0, 1, 0, 0], bytes.as_slice()].concat();
    for kind in [Kind::Image, Kind::Compressed, Kind::Cloud, Kind::Grid] {
        let _ = message(kind, &message_bytes, json!({}));
    }
    let mut types = Types::default();
    types.add_text("demo/msg/T", definition.as_bytes());
    if let Ok(decoder) = types.decoder("demo/msg/T", 0) {
        for format in ["cdr", "plain", "other"] {
            if let Ok(tree) = decoder.decode(format, &message_bytes) {
                let _ = number_at(&tree, &path);
            }
        }
    }
    if let Ok(tree) = json_tree(&bytes) {
        let _ = number_at(&tree, &path);
    }
});
