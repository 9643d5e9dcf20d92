use super::*;

const SECOND_NS: u64 = 1_000_000_000;
/// The first log time, on the day this was written.
const START_NS: u64 = 1_795_000_000 * SECOND_NS;

fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u64).to_le_bytes()[..], body].concat()
}

fn channel(id: u8, topic: &str, encoding: &str) -> Vec<u8> {
    let named = |name: &str| [&(name.len() as u32).to_le_bytes()[..], name.as_bytes()].concat();
    record(4, &[&[id, 0, 0, 0][..], &named(topic), &named(encoding), &[0; 4]].concat())
}

fn message(channel: u8, log_ns: u64, payload: &str) -> Vec<u8> {
    record(5, &[&[channel, 0, 0, 0, 0, 0][..], &log_ns.to_le_bytes(), &[0; 8], payload.as_bytes()].concat())
}

fn stamped(ns: u64) -> String {
    format!("{{\"stamp\": {{\"sec\": {}, \"nsec\": {}}}}}", ns / SECOND_NS, ns % SECOND_NS)
}

/// A robot of 100 Hz with 1,000 messages a topic: `imu` is 1 to 3 ms old, of `odom` every tenth stamp is
/// 2 ms ahead, `text` has no stamp, `sim` one of another time, and one message of `state` lacks it.
fn robot(wanted: &[&str]) -> Recording {
    let mut file = b"\x89MCAP0\r\n".to_vec();
    for (id, topic) in (0..).zip(["imu", "odom", "sim", "state", "text"]) {
        file.extend(channel(id, topic, if topic == "text" { "cdr" } else { "json" }));
    }
    for index in 0..1000 {
        let log_ns = START_NS + index * 10_000_000;
        let payloads = [
            stamped(log_ns - 1_000_000 - index * 2_000),
            stamped(if index % 10 == 0 { log_ns + 2_000_000 } else { log_ns - 1_000_000 }),
            stamped(index * 10_000_000),
            if index == 7 { "{}".to_owned() } else { stamped(log_ns) },
            "text".to_owned(),
        ];
        (0..).zip(&payloads).for_each(|(id, payload)| file.extend(message(id, log_ns, payload)));
    }
    file.extend(record(2, &[0; 20]));
    file.extend(b"\x89MCAP0\r\n");
    let mut recording = Recording::default();
    assert_eq!(recording.read(&file[..], wanted), Ok(()));
    recording
}

#[test]
fn what_the_figures_do_not_say_is_said_by_name() {
    let text = plain(&rows(&robot(&[]), Order::Name));
    let says = |line: &str| assert!(text.lines().any(|other| other.starts_with(line)), "{line}\nin\n{text}");
    says("topic  messages      rate   age p50");
    says("imu        1000  100.0 Hz  2 ms ± ?  2.98 ms ± ?  3.00 ms ± ?");
    says("odom: 100 of 1000 stamps are later than the log, by up to 2 ms: the clock of the stamps is ahead");
    says("text: no age: untyped has no definition in the file");
    says("state: 1 of 1000 messages have no stamp");
    says("sim: 1 of 1000 stamps are zero: never set");
    says("sim: no age: stamps and log do not count from one beginning");
    says("age = log time of the recorder");
}

#[test]
fn only_topics_that_are_named_are_read() {
    let recording = robot(&["odom"]);
    assert_eq!(rows(&recording, Order::Age).iter().map(|row| row.name).collect::<Vec<_>>(), ["odom"]);
}

#[test]
fn the_oldest_topic_comes_first_if_sorted_by_age() {
    let recording = robot(&[]);
    let names: Vec<_> = rows(&recording, Order::Age).iter().map(|row| row.name).collect();
    assert_eq!(names, ["imu", "odom", "state", "sim", "text"]);
}
