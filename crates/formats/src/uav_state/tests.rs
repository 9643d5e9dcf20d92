//! Every format carries the whole state, in every size.

use super::{Point, UavState};
use crate::{Format, Message, decode, encode};

fn bytes(format: Format, state: &UavState) -> Vec<u8> {
    let mut out = vec![0xEE; 5];
    encode(format, state, &mut out).unwrap();
    assert_eq!(out[..5], [0xEE; 5], "{format} appends");
    out.split_off(5)
}

#[test]
fn every_format_carries_the_whole_state() {
    for target in [0, 1024, 5120, 1 << 17] {
        let mut state = UavState::realistic(target, 7);
        state.header.sequence = u64::MAX >> 1;
        state.header.stamp_ns = -3;
        for format in Format::ALL {
            let encoded = bytes(format, &state);
            assert_eq!(decode::<UavState>(format, &encoded).unwrap(), state, "{format} {target}");
        }
    }
}

#[test]
fn empty_sequences_and_odd_texts_survive() {
    let mut state = UavState::realistic(1024, 7);
    state.points.clear();
    state.parameters.clear();
    state.waypoints.clear();
    state.battery.cells_v.clear();
    state.header.frame_id.clear();
    state.status_text = "null, \"quoted\"; <b>&amp;</b> äöü: - 12".into();
    for format in Format::ALL {
        assert_eq!(decode::<UavState>(format, &bytes(format, &state)).unwrap(), state, "{format}");
    }
}

#[test]
fn size_is_that_of_the_plain_and_of_the_cdr_encoding_within_two_percent() {
    for target in [1024, 5120, 1 << 20] {
        let state = UavState::realistic(target, 1);
        for format in [Format::Plain, Format::Cdr] {
            let found = bytes(format, &state).len();
            assert!(found.abs_diff(target) * 50 <= target, "{format}: {found} bytes, wanted {target}");
        }
    }
}

#[test]
fn content_is_seeded() {
    let [one, again, other] = [1, 1, 2].map(|seed| UavState::realistic(1024, seed));
    assert_eq!(one, again);
    assert_ne!(one, other);
    // SplitMix64's first output for seed 1 is 0x910a2dec89025cc1; its upper 20 bits scale position x.
    assert_eq!(one.position_m[0], (f64::from(0x910a2) / f64::from(1 << 20) * 2.0 - 1.0) * 1024.0);
}

#[test]
fn a_plain_message_is_read_where_it_lies() {
    let state = UavState::realistic(1024, 1);
    let encoded = bytes(Format::Plain, &state);
    let mut memory = vec![0u64; encoded.len() / 8];
    zerocopy::IntoBytes::as_mut_bytes(&mut memory[..]).copy_from_slice(&encoded);
    let memory = zerocopy::IntoBytes::as_bytes(&memory[..]);
    let seen = super::plain::PlainUavState::view(memory).unwrap();
    assert_eq!(seen.fixed.position_m, state.position_m);
    assert_eq!(seen.points, state.points[..]);
    assert!(super::plain::PlainUavState::view(&memory[4..]).is_err());
}

#[test]
fn plain_layout_refuses_what_it_has_no_room_for() {
    let mut state = UavState::realistic(1024, 1);
    state.waypoints.push(state.waypoints[0]);
    let refused = encode(Format::Plain, &state, &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(refused, "cannot encode as plain: 5 waypoints, but the layout has room for 4");
    state.waypoints.pop();
    state.parameters[0].name = "SEVENTEEN_LETTERS".into();
    assert!(encode(Format::Plain, &state, &mut Vec::new()).unwrap_err().to_string().contains("16 bytes"));
}

#[test]
fn a_type_tells_which_formats_it_has() {
    assert_eq!(UavState::formats(), Format::ALL.into_iter().fold(0, |bits, format| bits | format.bit()));
    assert_eq!(UavState::format_in_shared_memory(), Format::Plain);
    assert_eq!(UavState::format_on_network(), Format::Cdr);
    assert_eq!(super::Header::format_in_shared_memory(), Format::Cdr);
    assert_eq!(super::Header::formats() & Format::Protobuf.bit(), 0);
    let point = Point { x_m: 1.0, y_m: 2.0, z_m: 3.0, intensity: 4.0 };
    let refused = encode(Format::Protobuf, &point, &mut Vec::new()).unwrap_err().to_string();
    assert!(refused.contains("protobuf needs a schema"), "{refused}");
    assert_ne!(UavState::type_hash(), Point::type_hash());
}

#[test]
fn a_flat_buffer_that_repeats_one_long_name_is_refused() {
    use crate::generated::uav_state::uav as wire;
    let mut out = Vec::new();
    crate::flat_buffers::append(&mut out, |builder| {
        let name = planus::WriteAsOffset::prepare(&"x".repeat(1000), builder);
        let header = wire::Header::create(builder, 0, 0, "");
        let imu = wire::Imu::create(builder, [0f32; 3], [0f32; 3], 0.0);
        let battery = wire::Battery::create(builder, 0.0, 0.0, 0.0, [0f32; 0]);
        let gps = wire::Gps::create(builder, 0.0, 0.0, 0.0, 0.0, 0, 0);
        let parameter = wire::Parameter::create(builder, name, 0.0);
        let (points, waypoints): (&[wire::Point], &[wire::Waypoint]) = (&[], &[]);
        wire::UavState::create(
            builder,
            header,
            [0f64; 3],
            [0f64; 4],
            [0f32; 3],
            [0f32; 21],
            [0f32; 21],
            imu,
            battery,
            gps,
            false,
            0,
            "",
            [parameter; 1000],
            waypoints,
            points,
        )
    });
    let refused = decode::<UavState>(Format::FlatBuffers, &out).unwrap_err().to_string();
    assert!(refused.contains("names are larger than the input"), "{refused}");
}

#[test]
fn bytes_are_those_that_other_languages_are_tested_with() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/formats");
    for format in Format::ALL {
        let recorded = std::fs::read(folder.join(format!("uav_state.{format}"))).unwrap();
        assert_eq!(decode::<UavState>(format, &recorded).unwrap(), UavState::realistic(1024, 1), "{format}");
        assert_eq!(bytes(format, &UavState::realistic(1024, 1)), recorded, "{format}: run the example again");
    }
}

#[test]
fn the_hash_of_the_definition_is_that_of_other_languages() {
    // Also in python/tests/test_typed.py.
    assert_eq!(<UavState as crate::Definition>::HASH, 0x167d_357f_bf8d_5942);
}
