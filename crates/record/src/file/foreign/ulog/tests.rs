use proptest::prelude::*;

use super::*;
use crate::check::contents;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u16).to_le_bytes()[..], &[kind], body].concat()
}

fn header() -> Vec<u8> {
    [&b"ULog\x01\x12\x35\x01"[..], &7_u64.to_le_bytes()].concat()
}

fn flags(appended_at: u64) -> Vec<u8> {
    let mut body = vec![0; 40];
    body[8] = u8::from(appended_at > 0);
    body[16..24].copy_from_slice(&appended_at.to_le_bytes());
    message(FLAGS, &body)
}

fn data(id: u16, timestamp_us: u64, sample_us: u64) -> Vec<u8> {
    let body = [
        &id.to_le_bytes()[..],
        &timestamp_us.to_le_bytes(),
        &sample_us.to_le_bytes(),
        &1.5_f32.to_le_bytes(),
        &[1, 2, 3, 4, 5, 6],
        &0x0708_u16.to_le_bytes(),
    ];
    message(DATA, &body.concat())
}

const DEFINITIONS: [&str; 2] = [
    "esc_report:uint8_t[3] state;uint8_t _padding0;",
    "status:uint64_t timestamp;uint64_t timestamp_sample;float x;uint8_t flag;esc_report esc;uint8_t[1] _padding1;uint16_t y;",
];

fn begun(appended_at: u64) -> Vec<u8> {
    let mut file = [header(), flags(appended_at)].concat();
    DEFINITIONS.iter().for_each(|text| file.extend(message(FORMAT, text.as_bytes())));
    for (instance, id) in [(0, 5_u16), (1, 6)] {
        let added = [&[instance], &id.to_le_bytes()[..], b"status"].concat();
        file.extend(message(ADDED, &added));
    }
    file
}

/// Topic, log time, publish time and payload of each message, the definitions, and how it ended.
type Read = (Vec<(u16, u64, u64, Vec<u8>)>, Vec<String>, Result<(), FileError>);

fn all(file: &[u8]) -> Read {
    let (mut messages, mut definitions) = (Vec::new(), Vec::new());
    let result = crate::file::read(file, &mut |record| {
        match record {
            Record::Message { channel, log_ns, publish_ns, payload, .. } => {
                messages.push((channel, log_ns, publish_ns, payload.to_vec()));
            }
            Record::Schema { name, text, .. } => {
                definitions.push(format!("{name}\n{}", String::from_utf8_lossy(text)))
            }
            _ => {}
        }
        Ok(())
    });
    (messages, definitions, result)
}

#[test]
fn values_are_aligned_as_cdr_wants_and_padding_goes() {
    let file = [begun(0), data(5, 2_000, 1_500), message(b'L', b"text"), data(6, 3_000, 0)].concat();
    let (messages, definitions, result) = all(&file);
    assert_eq!(result, Ok(()));
    let [(5, 2_000_000, 1_500_000, payload), (6, 3_000_000, 3_000_000, _)] = &messages[..] else {
        panic!("{messages:?}")
    };
    let expected = [
        &CDR_HEAD[..],
        &2_000_u64.to_le_bytes(),
        &1_500_u64.to_le_bytes(),
        &1.5_f32.to_le_bytes(),
        // The flag, three states; the number after them is aligned to two.
        &[1, 2, 3, 4],
        &0x0708_u16.to_le_bytes(),
    ];
    assert_eq!(payload, &expected.concat());
    assert_eq!(
        definitions[0],
        format!(
            "ulog/msg/Status\nuint64 timestamp\nuint64 timestamp_sample\nfloat32 x\nuint8 flag\nEscReport esc\nuint16 y\n{}\n\
             MSG: ulog/EscReport\nuint8[3] state\n",
            "=".repeat(80)
        )
    );
    let (contents, _) = contents(&file[..]);
    let topics: Vec<_> = contents
        .channels
        .values()
        .map(|topic| (topic.topic.as_str(), topic.messages, topic.age_max_ns))
        .collect();
    assert_eq!(topics, [("/status", 1, Some(500_000)), ("/status_1", 1, None)]);
}

const CDR_HEAD: [u8; 4] = [0, 1, 0, 0];

#[test]
fn padding_at_the_end_may_be_missing_and_values_may_not() {
    let mut formats = Formats::default();
    formats.add(b"a:uint16_t x;uint8_t[6] _padding0;").unwrap();
    let layout = formats.layout("a").unwrap();
    assert_eq!(layout.cdr(&[1, 2]), Some(vec![0, 1, 0, 0, 1, 2]));
    assert_eq!(layout.cdr(&[1, 2, 0, 0, 0, 0, 0, 0]), Some(vec![0, 1, 0, 0, 1, 2]));
    assert_eq!(layout.cdr(&[1]), None);
}

#[test]
fn data_that_were_appended_after_a_cut_message_are_read() {
    let length_bytes = [begun(1), data(5, 2_000, 1_500)].concat().len() as u64 + 9;
    let cut = data(5, 9_000, 8_000);
    let file =
        [begun(length_bytes), data(5, 2_000, 1_500), cut[..9].to_vec(), data(5, 3_000, 2_500)].concat();
    let (messages, _, result) = all(&file);
    assert_eq!(result, Ok(()));
    assert_eq!(messages.iter().map(|(_, log_ns, ..)| *log_ns).collect::<Vec<_>>(), [2_000_000, 3_000_000]);
}

#[test]
fn definitions_that_contain_themselves_or_are_absurd_are_refused() {
    for (definitions, says) in [
        (&["a:a b;"][..], "contains itself"),
        (&["a:b[60000] x;", "b:c[60000] x;", "c:uint8_t[60000] x;"], "longer than a message"),
        (&["a:b[65535] x;", "b:c[65535] x;", "c:"], "longer than a message"),
        (&["a:b x;"], "b has no definition"),
        (&["a:uint8_t[99999999999] x;"], "no fields that can be read"),
        (&["a:uint8_t"], "no fields that can be read"),
    ] {
        let mut formats = Formats::default();
        let added: Result<Vec<()>, FileError> =
            definitions.iter().map(|text| formats.add(text.as_bytes())).collect();
        let error = added.and_then(|_| formats.layout("a").map(|_| ())).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_log_that_is_cut_anywhere_gives_what_comes_before() {
    let whole = [begun(0), data(5, 2_000, 1_500), data(6, 3_000, 0)].concat();
    let mut found = 0;
    for cut in 8..whole.len() {
        let (messages, _, result) = all(&whole[..cut]);
        assert!(
            messages.len() >= found && matches!(result, Ok(()) | Err(FileError::Cut)),
            "{cut}: {result:?}"
        );
        found = messages.len();
    }
    assert_eq!(found, 1);
}

proptest! {
    #[test]
    fn any_messages_are_read_or_refused(bodies in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..12)) {
        let mut file = begun(0);
        for (kind, body) in bodies {
            file.extend(message(b"BFADXL"[kind as usize % 6], &body));
        }
        let _ = all(&file);
    }

    #[test]
    fn flipped_bytes_are_read_or_refused(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut file = [begun(0), data(5, 2_000, 1_500), data(6, 3_000, 0)].concat();
        let at = at.index(file.len());
        file[at] = value;
        let _ = all(&file);
    }
}
