//! Events as text: qlog's JSON text sequence (draft-ietf-quic-qlog-main-schema, version 0.3; RFC 7464), with event names of our own.
//!
//! A file begins with [`header`]; each event is one record made by [`record`].

use std::fmt::Write as _;

use crate::field::Field;
use crate::schema::Event;

/// Begins every record (RFC 7464).
pub const RECORD_SEPARATOR: char = '\u{1e}';

/// The first record: `vantage` names whose events follow, `reference_ms` is what their times count from, in milliseconds since 1970.
pub fn header(vantage: &str, reference_ms: f64) -> String {
    format!(
        "{RECORD_SEPARATOR}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"noctule\",\"trace\":{{\"vantage_point\":\
         {{\"type\":\"unknown\",\"name\":{}}},\"common_fields\":{{\"time_format\":\"relative\",\"reference_time\":{reference_ms:.6},\
         \"protocol_type\":[\"NOCTULE\"]}}}}}}\n",
        quoted(vantage)
    )
}

/// Appends the record of an event at `time_ms`, of whom `group` names: a link, a node, a stream.
pub fn record(out: &mut String, time_ms: f64, group: &str, event: &dyn Event) {
    begin(out, time_ms, (event.schema(), event.name()), group);
    let mut comma = "";
    event.fields(&mut |key, field| {
        put(out, comma, (key, field));
        comma = ",";
    });
    out.push_str("}}\n");
}

/// Appends a record with these fields.
pub fn record_fields(
    out: &mut String,
    time_ms: f64,
    (schema, name): (&str, &str),
    group: &str,
    fields: &[(&str, Field<'_>)],
) {
    begin(out, time_ms, (schema, name), group);
    for (at, field) in fields.iter().enumerate() {
        put(out, if at == 0 { "" } else { "," }, *field);
    }
    out.push_str("}}\n");
}

/// Appends that so many events of `group` were dropped.
pub fn record_dropped(out: &mut String, time_ms: f64, (schema, group): (&str, &str), events: u64) {
    record_fields(out, time_ms, (schema, "events_dropped"), group, &[("events", Field::Number(events))]);
}

fn put(out: &mut String, comma: &str, (key, field): (&str, Field<'_>)) {
    // Writing to a String cannot fail.
    let _ = match field {
        Field::Number(number) => write!(out, "{comma}\"{key}\":{number}"),
        Field::Word(word) => write!(out, "{comma}\"{key}\":{}", quoted(word)),
        Field::Flag(flag) => write!(out, "{comma}\"{key}\":{flag}"),
    };
}

fn begin(out: &mut String, time_ms: f64, (schema, name): (&str, &str), group: &str) {
    let _ = write!(
        out,
        "{RECORD_SEPARATOR}{{\"time\":{time_ms:.6},\"name\":\"{schema}:{name}\",\"group_id\":{},\"data\":{{",
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

    #[test]
    fn a_record_is_one_line_of_json_behind_a_separator() {
        let mut out = String::new();
        let fields =
            [("writer", Field::Number(3)), ("topic", Field::Word("a\"b\n")), ("is", Field::Flag(true))];
        record_fields(&mut out, 1.25, ("test", "matched"), "a→b", &fields);
        assert_eq!(
            out,
            "\u{1e}{\"time\":1.250000,\"name\":\"test:matched\",\"group_id\":\"a→b\",\"data\":{\"writer\":3,\"topic\":\"a\\\"b\\u000a\",\
             \"is\":true}}\n"
        );
        out.clear();
        record_dropped(&mut out, 2.0, ("test", "a→b"), 5);
        assert!(
            out.ends_with("\"name\":\"test:events_dropped\",\"group_id\":\"a→b\",\"data\":{\"events\":5}}\n")
        );
        assert!(
            header("node 1", 12.5)
                .starts_with("\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\"")
        );
    }
}
