//! Events as text: qlog's JSON text sequence (draft-ietf-quic-qlog-main-schema, version 0.3; RFC 7464), with event names of our own.
//!
//! A file begins with [`header`]; each event is one record made by [`record`]. Fields: `docs/guide/trace.md`.

use std::fmt::Write as _;

use super::{Event, Field};

/// Begins every record (RFC 7464).
const RECORD_SEPARATOR: char = '\u{1e}';
/// Of the names of events.
pub const SCHEMA: &str = "prrt";

/// The first record: `vantage` names whose events follow, `reference_ms` is what their times count from, in milliseconds since 1970.
pub fn header(vantage: &str, reference_ms: f64) -> String {
    format!(
        "{RECORD_SEPARATOR}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"noctule\",\"trace\":{{\"vantage_point\":\
         {{\"type\":\"unknown\",\"name\":{}}},\"common_fields\":{{\"time_format\":\"relative\",\"reference_time\":{reference_ms:.6},\
         \"protocol_type\":[\"NOCTULE_PRRT\"]}}}}}}\n",
        quoted(vantage)
    )
}

/// Appends the record of an event at `time_ms` of the link `group`.
pub fn record(out: &mut String, time_ms: f64, group: &str, event: &Event) {
    begin(out, time_ms, event.name(), group);
    let mut comma = "";
    event.fields(&mut |key, field| {
        // Writing to a String cannot fail.
        let _ = match field {
            Field::Number(number) => write!(out, "{comma}\"{key}\":{number}"),
            Field::Word(word) => write!(out, "{comma}\"{key}\":{}", quoted(word)),
            Field::Flag(flag) => write!(out, "{comma}\"{key}\":{flag}"),
        };
        comma = ",";
    });
    out.push_str("}}\n");
}

/// Appends that `writer` of the link `group` writes `topic`.
pub fn record_topic(out: &mut String, time_ms: f64, group: &str, (writer, topic): (u32, &str)) {
    begin(out, time_ms, "writer_matched", group);
    let _ = writeln!(out, "\"writer\":{writer},\"topic\":{}}}}}", quoted(topic));
}

/// Appends that so many events of the link `group` were dropped.
pub fn record_dropped(out: &mut String, time_ms: f64, group: &str, events: u64) {
    begin(out, time_ms, "events_dropped", group);
    let _ = writeln!(out, "\"events\":{events}}}}}");
}

fn begin(out: &mut String, time_ms: f64, name: &str, group: &str) {
    let _ = write!(
        out,
        "{RECORD_SEPARATOR}{{\"time\":{time_ms:.6},\"name\":\"{SCHEMA}:{name}\",\"group_id\":{},\"data\":{{",
        quoted(group)
    );
}

/// A JSON string (RFC 8259, section 7).
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StreamId;
    use crate::trace::{LossRule, Part};

    #[test]
    fn a_record_is_one_line_of_json_behind_a_separator() {
        let part = Part { writer: StreamId(3), sequence: Some(42), part: 0 };
        let mut out = String::new();
        record(&mut out, 1.25, "a→b", &Event::Lost { packet: 17, part, rule: LossRule::TimeThreshold });
        assert_eq!(
            out,
            "\u{1e}{\"time\":1.250000,\"name\":\"prrt:packet_lost\",\"group_id\":\"a→b\",\"data\":{\"packet_number\":17,\"writer\":3,\
             \"sequence\":42,\"part\":0,\"trigger\":\"time_threshold\"}}\n"
        );
        out.clear();
        record_topic(&mut out, 0.0, "a→b", (3, "a\"b\n"));
        assert!(out.ends_with("\"data\":{\"writer\":3,\"topic\":\"a\\\"b\\u000a\"}}\n"), "{out}");
        out.clear();
        record_dropped(&mut out, 2.0, "a→b", 5);
        assert!(
            out.ends_with("\"name\":\"prrt:events_dropped\",\"group_id\":\"a→b\",\"data\":{\"events\":5}}\n")
        );
        assert!(
            header("node 1", 12.5)
                .starts_with("\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\"")
        );
    }
}
