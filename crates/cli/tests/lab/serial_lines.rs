//! Boards and companions with a paced serial line between them.

use serde_json::Value;

use crate::{Experiment, why};

fn cells(text: &str) -> (Vec<Value>, String) {
    let (_, run, errors) = Experiment::new(text).run();
    (run["cells"].as_array().cloned().unwrap_or_default(), errors)
}

#[test]
fn every_peer_of_a_line_carries_every_message_there_and_back() {
    let (cells, errors) = cells(
        r#"
        name = "line"
        trials = 1
        messages = 20

        [[cells]]
        peer = ["serial_pump", "xrce", "mavlink"]
        link = "serial"
        payload_bytes = 32
        rate_hz = 40
        seconds = 60
        deadline_us = 1e6
        placement = "free"
        options = { baud = 460800 }
        "#,
    );
    assert_eq!(cells.len(), 3, "{errors}");
    for cell in &cells {
        assert_eq!(
            (&cell["sent"], &cell["received"]),
            (&20.into(), &20.into()),
            "{}: {}",
            cell["peer"],
            why(cell)
        );
        // There and back: at least every message's own bytes twice.
        assert!(cell["wire_bytes"].as_u64().unwrap() >= 2 * 20 * 32, "{cell}");
        assert_eq!(cell["link"], "serial");
    }
    assert!(cells[1]["facts"]["cpu_percent"].is_number(), "{}", cells[1]["facts"]);
}

#[test]
fn both_ways_of_a_board_whose_clock_is_off_carry_a_bound_that_holds() {
    for (board, clocks) in [(0, r#"["offset=3s,ppm=50", ""]"#), (1, r#"["", "offset=3s,ppm=50"]"#)] {
        let (cells, errors) = cells(&format!(
            r#"
            name = "clocks"
            trials = 1
            messages = 40

            [[cells]]
            peer = ["xrce", "mavlink"]
            link = "serial"
            mode = "one_way"
            clocks = {clocks}
            payload_bytes = 115
            rate_hz = 40
            seconds = 60
            placement = "free"
            options = {{ baud = 921600, board = {board} }}
            "#
        ));
        assert_eq!(cells.len(), 2, "{errors}");
        for cell in &cells {
            assert_eq!(cell["received"], 40, "{}: {}", cell["peer"], why(cell));
            // The wire time of an exchange is not known to be symmetric; the bound contains it.
            let bound_ns = cell["clock_bound_ns"].as_u64().unwrap();
            assert!(bound_ns > 100_000, "{bound_ns}");
            assert!(!why(cell).contains("wrong by more than their clock bound"), "{}", why(cell));
        }
    }
}

#[test]
fn a_board_with_several_topics_loses_nothing_between_them() {
    let (cells, errors) = cells(
        r#"
        name = "topics"
        trials = 1
        messages = 30

        [[cells]]
        peer = "xrce"
        link = "serial"
        mode = "one_way"
        payload_bytes = 64
        rate_hz = 60
        seconds = 60
        placement = "free"
        options = { baud = 921600, board = [0, 1], topics = 7, reliability = "reliable" }
        "#,
    );
    assert_eq!(cells.len(), 2, "{errors}");
    for cell in &cells {
        assert_eq!((&cell["received"], &cell["duplicated"]), (&30.into(), &0.into()), "{}", why(cell));
        assert_eq!(cell["settings"]["topics"], "7");
    }
}

#[test]
fn an_application_behind_dds_that_is_not_there_is_skipped_by_name() {
    let (_, run, errors) = Experiment::new(
        r#"
        name = "dds"
        trials = 1
        messages = 10

        [[cells]]
        peer = "xrce"
        link = "serial"
        mode = "one_way"
        payload_bytes = 115
        rate_hz = 40
        placement = "free"
        options = { baud = 921600, gateway = ["inside", "dds"] }
        "#,
    )
    .run();
    assert_eq!(run["cells"].as_array().map(Vec::len), Some(1), "{errors}");
    assert_eq!(
        run["skipped"][0]["why"],
        "gateway = \"dds\": no peer is called cyclonedds; set NOCTULE_PEERS to a folder that has it"
    );
}

#[test]
fn a_line_without_a_speed_is_a_fault_with_its_place() {
    let (cells, errors) = cells("name = \"x\"\n[[cells]]\npeer = \"xrce\"\nlink = \"serial\"\n");
    assert!(cells.is_empty());
    assert!(
        errors.contains(":2:1: a serial line needs a speed; write options = { baud = 115200 }"),
        "{errors}"
    );
}

#[test]
fn a_firmware_option_that_nobody_knows_is_said_by_the_node() {
    let (cells, _) = cells(
        "name = \"x\"\ntrials = 1\n[[cells]]\npeer = \"xrce\"\nlink = \"serial\"\noptions = { baud = 9600, spin_delay = \"often\" }\n",
    );
    assert!(
        why(&cells[0]).contains("spin_delay = \"often\": say none, or a time up to 1s such as 5ms"),
        "{}",
        why(&cells[0])
    );
}
