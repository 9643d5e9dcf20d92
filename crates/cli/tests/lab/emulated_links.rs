//! Cells across an emulated link: its counts and the peers' are the same.

use super::*;

/// The reasons other than a machine too busy for the rate or the emulator.
fn faults(cell: &Value) -> String {
    let busy = |why: &&str| {
        why.starts_with("the rate was not held") || why.starts_with("the link emulator was late")
    };
    why(cell).split("; ").filter(|why| !why.is_empty() && !busy(why)).collect::<Vec<_>>().join("; ")
}

/// IPv4 and UDP.
const HEADER_BYTES: u64 = 28;

#[test]
fn what_the_peers_miss_is_what_the_link_says_it_lost() {
    let (_, run, errors) = Experiment::new(
        r#"
        name = "lossy"
        trials = 2
        seconds = 1
        warm_up_seconds = 0
        [[cells]]
        peer = "udp"
        link = "link:delay=3ms loss=20% burst=2"
        mode = "one_way"
        payload_bytes = 100
        rate_hz = 200
        deadline_us = 1_000_000
        placement = "free"
        "#,
    )
    .run();
    let cells = run["cells"].as_array().unwrap_or_else(|| panic!("{errors}"));
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(faults(cell), "", "{errors}");
        let count = |value: &Value| value.as_u64().unwrap();
        let link = &cell["emulated_link"];
        let out = &link["directions"][0];
        assert_eq!((count(&cell["sent"]), count(&cell["warm_up_sent"])), (200, 0));
        assert_eq!((&out["offered"], &out["lost"]), (&cell["sent"], &cell["lost"]));
        assert_eq!(&out["delivered"], &cell["received"]);
        assert!(count(&cell["lost"]) > 0 && count(&cell["received"]) > 0, "{cell}");
        assert_eq!(link["directions"][1]["packets"], 0);
        assert_eq!(count(&cell["wire_bytes"]), 200 * (100 + HEADER_BYTES));
        assert_eq!(cell["link"], "link:delay=3ms loss=20% burst=2");
        if cell["valid"] == true {
            assert!(cell["latency_ns"]["min"].as_i64().unwrap() >= 3_000_000, "{cell}");
        }
    }
    let seed = |trial: usize| cells[trial]["emulated_link"]["seed"].as_u64().unwrap();
    assert_ne!(seed(0), seed(1), "trials that lose the same would be one trial");
}

#[test]
fn every_receiver_of_a_fan_out_has_a_link_of_its_own() {
    let (_, run, errors) = Experiment::new(
        r#"
        name = "swarm"
        trials = 1
        seconds = 0.5
        warm_up_seconds = 0
        [[cells]]
        peer = "udp"
        link = "link:delay=2ms loss=30%"
        mode = "fan_out"
        nodes = 4
        rate_hz = 200
        placement = "free"
        "#,
    )
    .run();
    let cell = only_cell(&run);
    assert_eq!(faults(cell), "", "{errors}");
    let out = &cell["emulated_link"]["directions"][0];
    assert_eq!((&cell["sent"], &out["offered"]), (&300.into(), &300.into()));
    assert_eq!(out["lost"], cell["lost"]);
    assert!(cell["lost"].as_u64().unwrap() > 0);
    assert_eq!(cell["hosts"], 4);
}

#[test]
fn a_link_nobody_can_read_is_one_sentence_with_its_line() {
    let (code, _, errors) =
        Experiment::new("name = \"x\"\n\n[[cells]]\npeer = \"udp\"\nlink = \"link:delay=soon\"\n").run();
    assert_eq!(code, 2);
    assert!(errors.contains("scenario.toml:3:1: link = \"link:delay=soon\": "), "{errors}");
    assert_eq!(errors.trim().lines().count(), 1, "{errors}");
}
