//! No decoder panics or takes more memory than its input can account for, whatever the input.

use noctule_formats::uav_state::UavState;
use noctule_formats::{Format, Message, decode, decode_value, encode};
use proptest::prelude::*;
use serde::Deserialize;

/// Serde reserves up to a mebibyte per sequence by its announced count, on every level of this type.
const RESERVED_BYTES_MAX: u64 = 4 << 20;
/// Bytes that a byte of input may become: a point of two bytes in Protobuf is 32 bytes on the way.
const GROWTH_MAX: u64 = 256;

fn decode_within_limits<T: Message>(format: Format, bytes: &[u8]) {
    let used = allocation_counter::measure(|| {
        let _ = std::hint::black_box(decode::<T>(format, bytes));
    });
    let limit = RESERVED_BYTES_MAX + GROWTH_MAX * bytes.len() as u64;
    assert!(used.bytes_max <= limit, "{format}: {} bytes for an input of {}", used.bytes_max, bytes.len());
}

fn any_format() -> impl Strategy<Value = Format> {
    proptest::sample::select(&Format::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn arbitrary_bytes_neither_panic_nor_exhaust_memory(
        format in any_format(),
        bytes in proptest::collection::vec(any::<u8>(), 0..512),
    ) {
        decode_within_limits::<UavState>(format, &bytes);
    }

    #[test]
    fn damaged_messages_neither_panic_nor_exhaust_memory(
        format in any_format(),
        seed in any::<u64>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        length in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = Vec::new();
        encode(format, &UavState::realistic(900, seed), &mut bytes).unwrap();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(length) = length {
            bytes.truncate(length.index(bytes.len()));
        }
        decode_within_limits::<UavState>(format, &bytes);
    }
}

#[test]
fn whatever_follows_a_message_is_noticed() {
    let state = UavState::realistic(800, 1);
    for format in Format::ALL {
        // A FlatBuffer does not say where it ends, Protobuf takes more fields for a newer writer's, and the
        // plain layout of this type takes what follows for points.
        if !format.needs_no_schema() {
            continue;
        }
        let mut bytes = Vec::new();
        encode(format, &state, &mut bytes).unwrap();
        let again = bytes.clone();
        bytes.extend(again);
        assert!(decode::<UavState>(format, &bytes).is_err(), "{format}");
    }
}

#[derive(Debug, Deserialize)]
struct Tree {
    #[serde(default)]
    #[expect(dead_code, reason = "only its depth matters")]
    branches: Vec<Tree>,
}

/// Values that nest `depth` deep, some in a field the type does not have.
fn deep(format: Format, name: &str, depth: usize) -> Option<Vec<u8>> {
    let name_bytes = name.len() as u8;
    let repeat = |open: &[u8], middle: &[u8], close: &[u8]| {
        let mut bytes = open.repeat(depth);
        bytes.extend_from_slice(middle);
        bytes.extend(close.repeat(depth));
        bytes
    };
    Some(match format {
        Format::Json => repeat(format!("{{\"{name}\":[").as_bytes(), b"", b"]}"),
        Format::Yaml => repeat(format!("{{{name}: [").as_bytes(), b"", b"]}"),
        Format::Xml => repeat(format!("<{name}>").as_bytes(), b"", format!("</{name}>").as_bytes()),
        Format::MessagePack => {
            let open = [&[0x81, 0xA0 | name_bytes][..], name.as_bytes(), &[0x91]].concat();
            repeat(&open, &[0x80], b"")
        }
        Format::Cbor => {
            let open = [&[0xA1, 0x60 | name_bytes][..], name.as_bytes(), &[0x81]].concat();
            repeat(&open, &[0xA0], b"")
        }
        Format::Bson => deep_bson(name, depth),
        _ => return None,
    })
}

fn deep_bson(name: &str, depth: usize) -> Vec<u8> {
    // From the inside out: length, then an array of one document under the name, then the closing zero.
    let level = 4 + 1 + name.len() + 1 + 4 + 3 + 1 + 1;
    let mut bytes = Vec::new();
    for inside in (1..=depth).rev() {
        let outer = (level * inside + 5) as i32;
        bytes.extend(outer.to_le_bytes());
        bytes.push(4);
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.extend((outer - 4 - 2 - name.len() as i32 - 1).to_le_bytes());
        bytes.extend([3, b'0', 0]);
    }
    bytes.extend([5, 0, 0, 0, 0]);
    bytes.extend(std::iter::repeat_n([0, 0], depth).flatten());
    bytes
}

#[test]
fn input_that_nests_without_end_is_refused_before_the_stack_ends() {
    for format in Format::ALL {
        for name in ["branches", "unknown"] {
            let Some(shallow) = deep(format, name, 10) else { continue };
            let read = decode_value::<Tree>(format, &shallow);
            assert!(read.is_ok(), "{format} {name}: {read:?}");
            let refused = decode_value::<Tree>(format, &deep(format, name, 100_000).unwrap());
            // Some skip what the type does not have without recursion, and may.
            assert!(refused.is_err() || name == "unknown", "{format}");
        }
    }
}

#[test]
fn yaml_does_not_expand_aliases() {
    let bomb = "branches: [&a {branches: []}, *a, *a, *a]";
    let refused = decode_value::<Tree>(Format::Yaml, bomb.as_bytes()).unwrap_err();
    assert!(refused.to_string().contains("cannot decode as yaml"), "{refused}");
}

#[test]
fn announced_lengths_reserve_nothing_that_is_not_there() {
    // A field of the state followed by a sequence that says it has 2³² − 1 elements.
    for (format, bytes) in [
        (Format::MessagePack, &b"\x81\xa6points\xdd\xff\xff\xff\xff"[..]),
        (Format::MessagePack, b"\x81\xabstatus_text\xdb\xff\xff\xff\xff"),
        (Format::Cbor, b"\xa1\x66points\x9b\xff\xff\xff\xff\xff\xff\xff\xff"),
        (Format::Cbor, b"\xa1\x6bstatus_text\x7b\xff\xff\xff\xff\xff\xff\xff\xff"),
        (Format::Csv, b"0,0,map,18446744073709551615"),
        (Format::Protobuf, b"\x7a\xff\xff\xff\xff\x0f"),
        (Format::Protobuf, b"\x62\xff\xff\xff\xff\x0f"),
        (Format::Bson, b"\xff\xff\xff\x7f\x02status_text\0\xff\xff\xff\x7f"),
    ] {
        assert!(decode::<UavState>(format, bytes).is_err(), "{format}");
        decode_within_limits::<UavState>(format, bytes);
    }
}
