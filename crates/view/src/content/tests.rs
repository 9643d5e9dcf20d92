use proptest::prelude::*;

use super::*;

/// Writes little-endian CDR.
struct Cdr(Vec<u8>);

impl Cdr {
    fn header() -> Cdr {
        Cdr(vec![0, 1, 0, 0]).u32(7).u32(8).text("map")
    }

    fn align(mut self, size: usize) -> Cdr {
        while !(self.0.len() - 4).is_multiple_of(size) {
            self.0.push(0);
        }
        self
    }

    fn u8(mut self, value: u8) -> Cdr {
        self.0.push(value);
        self
    }

    fn u32(self, value: u32) -> Cdr {
        let mut to = self.align(4);
        to.0.extend(value.to_le_bytes());
        to
    }

    fn f32(self, value: f32) -> Cdr {
        self.u32(value.to_bits())
    }

    fn f64(self, value: f64) -> Cdr {
        let mut to = self.align(8);
        to.0.extend(value.to_le_bytes());
        to
    }

    fn text(self, text: &str) -> Cdr {
        let mut to = self.u32(text.len() as u32 + 1);
        to.0.extend(text.as_bytes());
        to.0.push(0);
        to
    }

    fn bytes(self, bytes: &[u8]) -> Cdr {
        let mut to = self.u32(bytes.len() as u32);
        to.0.extend(bytes);
        to
    }
}

fn picture(encoding: &str, (width, height): (u32, u32), step: u32, data: &[u8]) -> Vec<u8> {
    Cdr::header().u32(height).u32(width).text(encoding).u8(0).u32(step).bytes(data).0
}

#[test]
fn pixels_are_red_green_blue_whatever_their_order() {
    let (head, rgb) = image(&picture("bgr8", (2, 1), 6, &[1, 2, 3, 4, 5, 6])).unwrap().unwrap();
    assert_eq!(rgb, [3, 2, 1, 6, 5, 4]);
    assert_eq!((head["columns"].as_u64(), head["frame"].as_str()), (Some(2), Some("map")));
    let (_, grey) = image(&picture("mono8", (2, 1), 2, &[9, 200])).unwrap().unwrap();
    assert_eq!(grey, [9, 9, 9, 200, 200, 200]);
    let depths: Vec<u8> = [1_u16, 3].iter().flat_map(|depth| depth.to_le_bytes()).collect();
    let (head, grey) = image(&picture("16UC1", (2, 1), 4, &depths)).unwrap().unwrap();
    assert_eq!((grey[0], grey[3]), (30, 255));
    assert_eq!(head["range"], json!([1.0, 3.0]));
}

#[test]
fn a_large_picture_loses_rows_and_columns() {
    let (width, height) = (1000_u32, 600_u32);
    let data: Vec<u8> = (0..width * height).map(|index| (index % width / 4) as u8).collect();
    let (head, rgb) = image(&picture("mono8", (width, height), width, &data)).unwrap().unwrap();
    assert_eq!((head["columns"].as_u64(), head["rows"].as_u64()), (Some(334), Some(200)));
    assert_eq!(rgb.len(), 334 * 200 * 3);
    // The second column that is shown is the fourth.
    assert_eq!(rgb[3], data[3]);
}

#[test]
fn a_picture_that_contradicts_itself_is_named() {
    for (encoding, step, data) in [("rgb8", 6, [0; 5].as_slice()), ("rgb8", 3, &[0; 6]), ("xyz", 6, &[0; 6])]
    {
        assert!(image(&picture(encoding, (2, 1), step, data)).unwrap().is_err(), "{encoding} {step}");
    }
}

#[test]
fn a_compressed_picture_is_passed_on_and_what_is_none_is_named() {
    let of = |data: &[u8]| compressed(&Cdr::header().text("jpeg").bytes(data).0).unwrap();
    let (head, body) = of(&[0xFF, 0xD8, 1, 2]).unwrap();
    assert_eq!((&head["mime"], body.as_slice()), (&json!("image/jpeg"), [0xFF, 0xD8, 1, 2].as_slice()));
    assert!(of(b"not a picture").unwrap_err().to_string().contains("JPEG"));
    let mut large = vec![0xFF; COMPRESSED_BYTES_MAX + 1];
    large[1] = 0xD8;
    assert!(of(&large).unwrap_err().to_string().contains("at most"));
}

#[test]
fn points_keep_their_place_and_colour() {
    let mut data = Vec::new();
    for (place, colour) in [([1.0_f32, 2.0, 3.0], 0x00_11_22_33_u32), ([f32::NAN, 0.0, 0.0], 0)] {
        place.iter().for_each(|part| data.extend(part.to_le_bytes()));
        data.extend(colour.to_le_bytes());
    }
    let mut cdr = Cdr::header().u32(1).u32(2).u32(4);
    for (name, offset, datatype) in [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("rgb", 12, 7)] {
        cdr = cdr.text(name).u32(offset).u8(datatype).u32(1);
    }
    let bytes = cdr.u8(0).u32(16).u32(32).bytes(&data).u8(1).0;
    let (head, points) = cloud(&bytes).unwrap().unwrap();
    assert_eq!((head["points"].as_u64(), head["of"].as_u64()), (Some(1), Some(2)));
    assert_eq!(points[..12], data[..12]);
    assert_eq!(points[12..], [0x11, 0x22, 0x33, 255]);
}

#[test]
fn a_map_keeps_its_origin() {
    let mut cdr = Cdr::header().u32(0).u32(0).f32(0.5).u32(2).u32(2);
    for part in [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0] {
        cdr = cdr.f64(part);
    }
    let (head, cells) = grid(&cdr.bytes(&[0, 100, 255, 50]).0).unwrap().unwrap();
    assert_eq!(cells, [0, 100, 255, 50]);
    assert_eq!((&head["origin"][1], &head["resolution"]), (&json!(2.0), &json!(0.5)));
}

#[test]
fn a_message_names_its_parts() {
    let bytes = picture("mono8", (1, 1), 1, &[7]);
    let Payload::Binary(message) = message(Kind::Image, &bytes, json!({ "topic": "camera" })).unwrap() else {
        panic!("text");
    };
    let length = u32::from_le_bytes(*message.first_chunk().unwrap()) as usize;
    let head: Value = serde_json::from_slice(&message[4..4 + length]).unwrap();
    assert_eq!((&head["topic"], &head["width"]), (&json!("camera"), &json!(1)));
    assert_eq!(message[(4 + length).next_multiple_of(4)..], [7, 7, 7]);
}

proptest! {
    #[test]
    fn any_bytes_are_shown_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..200, value: u8,
    ) {
        let mut damaged = picture("rgb8", (4, 4), 12, &[1; 48]);
        if let Some(byte) = damaged.get_mut(at) {
            *byte = value;
        }
        for kind in [Kind::Image, Kind::Compressed, Kind::Cloud, Kind::Grid] {
            for bytes in [&[&[0, 1, 0, 0], bytes.as_slice()].concat(), &damaged] {
                let _ = message(kind, bytes, json!({}));
            }
        }
    }
}
