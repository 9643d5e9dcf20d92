//! Bytes against Fast CDR, and the ways in which input is wrong.

use serde::{Deserialize, Serialize};

use crate::positional::DEPTH_MAX;
use crate::{Format, decode_value, encode_value};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Mode {
    Idle,
    Armed,
    Flying,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    flag: bool,
    long_long: i64,
    octet: u8,
    short: i16,
    octet_again: u8,
    float: f32,
    one: u8,
    double: f64,
    string: String,
    empty: String,
    unsigned_long: u32,
    doubles: Vec<f64>,
    octets: Vec<u8>,
    no_doubles: Vec<f64>,
    floats: [f32; 3],
    strings: Vec<String>,
    unsigned_long_long: u64,
    char: i8,
    mode: Mode,
}

fn everything() -> Everything {
    Everything {
        flag: true,
        long_long: -2,
        octet: 7,
        short: -300,
        octet_again: 9,
        float: 1.5,
        one: 1,
        double: 2.25,
        string: "uav".into(),
        empty: String::new(),
        unsigned_long: 4_000_000_000,
        doubles: vec![1.0, -1.0],
        octets: vec![1, 2, 3],
        no_doubles: vec![],
        floats: [0.5, 1.0, 2.0],
        strings: vec!["a".into(), "bc".into()],
        unsigned_long_long: u64::MAX,
        char: -1,
        mode: Mode::Flying,
    }
}

/// The same values written by Fast CDR 1.0.26 of Debian 12 (`Cdr::DDS_CDR`, little-endian).
const FAST_CDR: &str = "
    00 01 00 00 01 00 00 00 00 00 00 00 fe ff ff ff ff ff ff ff 07 00 d4 fe 09 00 00 00 00 00 c0 3f
    01 00 00 00 00 00 00 00 00 00 02 40 04 00 00 00 75 61 76 00 01 00 00 00 00 00 00 00 00 28 6b ee
    02 00 00 00 00 00 00 00 00 00 f0 3f 00 00 00 00 00 00 f0 bf 03 00 00 00 01 02 03 00 00 00 00 00
    00 00 00 3f 00 00 80 3f 00 00 00 40 02 00 00 00 02 00 00 00 61 00 00 00 03 00 00 00 62 63 00 00
    00 00 00 00 ff ff ff ff ff ff ff ff ff 00 00 00 02 00 00 00";

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn cdr<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    encode_value(Format::Cdr, value, &mut out).unwrap();
    out
}

fn refusal<T: serde::de::DeserializeOwned + std::fmt::Debug>(bytes: &[u8]) -> String {
    decode_value::<T>(Format::Cdr, bytes).unwrap_err().to_string()
}

#[test]
fn bytes_are_those_of_fast_cdr() {
    assert_eq!(cdr(&everything()), hex(FAST_CDR));
    assert_eq!(decode_value::<Everything>(Format::Cdr, &hex(FAST_CDR)).unwrap(), everything());
}

#[test]
fn alignment_counts_from_the_header_wherever_the_message_begins() {
    let mut out = vec![0xEE; 3];
    encode_value(Format::Cdr, &everything(), &mut out).unwrap();
    assert_eq!(out[3..], hex(FAST_CDR));
}

#[test]
fn big_endian_writers_are_understood() {
    let bytes = hex("00 00 00 00 00 00 00 03 00 00 00 02 61 00 00 00 00 00 00 00 3f f8 00 00 00 00 00 00");
    let read: (u32, String, f64) = decode_value(Format::Cdr, &bytes).unwrap();
    assert_eq!(read, (3, "a".into(), 1.5));
}

#[test]
fn padding_of_the_transport_is_accepted_and_more_is_not() {
    let mut bytes = cdr(&7u8);
    for _ in 0..3 {
        bytes.push(0);
        assert_eq!(decode_value::<u8>(Format::Cdr, &bytes).unwrap(), 7);
    }
    bytes.push(0);
    assert_eq!(
        refusal::<u8>(&bytes),
        "cannot decode as cdr: 4 bytes are left over; the types of the two sides differ"
    );
}

#[test]
fn every_truncation_is_refused() {
    let bytes = hex(FAST_CDR);
    for length in 0..bytes.len() {
        assert!(decode_value::<Everything>(Format::Cdr, &bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn each_fault_has_its_sentence() {
    let body = |text: &str| hex(&format!("00 01 00 00 {text}"));
    for (found, fact) in [
        (refusal::<u8>(&hex("00 03 00 00 01")), "its representation is 00 03, not plain CDR"),
        (refusal::<bool>(&body("02")), "a bool is 2, neither 0 nor 1"),
        (refusal::<String>(&body("02 00 00 00 61 62")), "does not end with NUL"),
        (refusal::<String>(&body("03 00 00 00 61 00 00")), "contains NUL"),
        (refusal::<String>(&body("02 00 00 00 ff 00")), "is not UTF-8"),
        (refusal::<Vec<u64>>(&body("ff ff ff ff 00")), "says it has 4294967295 elements, with 1 bytes left"),
        (refusal::<Vec<()>>(&body("ff ff ff ff 00")), "says it has 4294967295 elements, with 1 bytes left"),
        (refusal::<Mode>(&body("03 00 00 00")), "expected variant index 0 <= i < 3"),
        (refusal::<Option<u8>>(&body("01")), "optional"),
    ] {
        assert!(found.contains(fact), "{found}");
    }
}

#[test]
fn an_empty_string_without_its_nul_is_read() {
    assert_eq!(decode_value::<String>(Format::Cdr, &hex("00 01 00 00 00 00 00 00")).unwrap(), "");
}

#[test]
fn what_cdr_cannot_express_is_refused_and_leaves_no_bytes() {
    let mut out = vec![1, 2];
    let map = std::collections::BTreeMap::from([(1, 2)]);
    for error in [
        encode_value(Format::Cdr, &("a\0b",), &mut out),
        encode_value(Format::Cdr, &(1u8, Some(2)), &mut out),
        encode_value(Format::Cdr, &(1u8, map), &mut out),
        encode_value(Format::Cdr, &(1u8, 'x'), &mut out),
        encode_value(Format::Cdr, &(1u8, Ok::<u8, u8>(1)), &mut out),
    ] {
        assert!(error.unwrap_err().to_string().starts_with("cannot encode as cdr: "));
        assert_eq!(out, [1, 2]);
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Tree(Vec<Tree>);

#[test]
fn input_that_nests_without_end_is_refused_before_the_stack_ends() {
    let mut bytes = hex("00 01 00 00");
    for _ in 0..100_000 {
        bytes.extend(1u32.to_le_bytes());
    }
    assert!(refusal::<Tree>(&bytes).contains(&format!("nests deeper than {DEPTH_MAX}")));
}
