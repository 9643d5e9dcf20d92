//! Every mode over a real socket: all messages accounted for, all files written.

use super::*;

fn counts(cell: &Value) -> (u64, u64, u64) {
    // A busy machine may not keep a rate, and then says so; that is no fault of the accounting.
    let faults: Vec<_> = why(cell)
        .split("; ")
        .filter(|why| !why.starts_with("the rate was not held"))
        .map(str::to_owned)
        .collect();
    assert!(faults.iter().all(String::is_empty), "{faults:?}");
    let count = |key: &str| cell[key].as_u64().unwrap();
    (count("sent"), count("received"), count("lost"))
}

#[test]
fn every_floor_makes_a_valid_round_trip() {
    let (code, run, errors) = Experiment::new(
        r#"
        name = "floors"
        trials = 1
        seconds = 5
        messages = 200
        [[cells]]
        peer = ["futex", "eventfd"]
        payload_bytes = 16
        [[cells]]
        peer = ["unix", "udp", "tcp", "pty"]
        wait = ["block", "hybrid"]
        payload_bytes = [16, 64, 4096]
        [[cells]]
        peer = "memcpy"
        mode = "one_way"
        wait = "spin"
        "#,
    )
    .run();
    assert_eq!(code, 0, "{errors}");
    let cells = run["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 + 4 * 2 * 3 + 1);
    for cell in cells {
        assert_eq!(counts(cell), (200, 200, 0), "{cell}");
        assert!(cell["latency_ns"]["min"].as_i64().unwrap() > 0, "{cell}");
        assert_eq!(cell["rate_hz"], Value::Null);
        assert_eq!(cell["clock_bound_ns"], 0);
    }
}

#[test]
fn spinning_nodes_on_two_cores_bounce_a_cache_line() {
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores < 2 {
        return;
    }
    let (code, run, errors) = Experiment::new(
        "name = \"x\"\ntrials = 2\nmessages = 1000\n[[cells]]\npeer = \"cache_line\"\npayload_bytes = 16\nwait = \"spin\"\n",
    )
    .run();
    assert_eq!(code, 0, "{errors}");
    assert_eq!(run["cells"].as_array().unwrap().len(), 2);
    assert_eq!(counts(&run["cells"][0]).1, counts(&run["cells"][0]).0);
}

#[test]
fn chain_and_fan_out_account_for_every_delivery() {
    let (_, run, errors) = Experiment::new(
        r#"
        name = "topologies"
        trials = 1
        seconds = 1
        messages = 50
        [[cells]]
        peer = "udp"
        mode = "chain"
        nodes = 4
        rate_hz = 100
        [[cells]]
        peer = "tcp"
        mode = "fan_out"
        nodes = 4
        rate_hz = 100
        [[cells]]
        peer = "unix"
        mode = "one_way"
        rate_hz = 100
        "#,
    )
    .run();
    let cells = run["cells"].as_array().unwrap_or_else(|| panic!("{errors}"));
    let [chain, fan, one_way] = cells.as_slice() else { panic!("three cells") };
    assert_eq!((counts(chain), chain["hops"].as_array().unwrap().len()), ((50, 50, 0), 3));
    assert_eq!((counts(fan), fan["hops"].as_array().unwrap().len()), ((150, 150, 0), 3));
    assert_eq!(counts(one_way), (50, 50, 0));
    assert_eq!(one_way["deadline_ns"], 10_000_000);
}

#[test]
fn a_chain_over_two_hosts_is_measured_by_stamps_of_one() {
    let (_, run, errors) = Experiment::new(
        "name = \"x\"\ntrials = 1\nmessages = 20\n[[cells]]\npeer = \"udp\"\nmode = \"chain\"\nnodes = 5\nhosts = 2\nrate_hz = 100\nseconds = 1\n",
    )
    .run();
    let cell = only_cell(&run);
    assert_eq!(cell["link"], "link:veth", "{errors}");
    assert_eq!(counts(cell), (20, 20, 0), "{cell}");
    let hops: Vec<(u64, u64)> = cell["hops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hop| (hop["from"].as_u64().unwrap(), hop["to"].as_u64().unwrap()))
        .collect();
    assert_eq!(hops, [(0, 2), (2, 4)]);
}

#[test]
fn a_run_leaves_every_file_and_its_own_fingerprint() {
    let experiment = Experiment::new("name = \"x\"\ntrials = 1\nmessages = 100\n[[cells]]\npeer = \"udp\"\n");
    let (code, run, errors) = experiment.run();
    assert_eq!(code, 0, "{errors}");
    for file in ["run.json", "samples.mcap", "latency.hlog", "report.html"] {
        assert!(experiment.out().join(file).metadata().unwrap().len() > 0, "{file}");
    }
    assert_eq!(run["schema"], 1);
    assert_eq!(run["partial"], false);
    assert!(run["host"]["fingerprint"]["clock_source"].is_string());
    assert!(run["scenario"]["source"].as_str().unwrap().contains("peer = \"udp\""));
}

#[test]
fn thresholds_decide_the_exit_code() {
    let with = |max: f64, peer: &str| {
        let text = format!(
            "name = \"x\"\ntrials = 1\nmessages = 200\n[[cells]]\npeer = \"udp\"\n[[thresholds]]\npeer = \"{peer}\"\nstatistic = \"p50\"\nmax = {max}\n"
        );
        Experiment::new(&text).run()
    };
    let (code, run, _) = with(60e6, "udp");
    assert_eq!((code, &run["thresholds"][0]["held"]), (0, &Value::Bool(true)));
    let (code, run, _) = with(0.001, "udp");
    assert_eq!((code, &run["thresholds"][0]["held"]), (1, &Value::Bool(false)));
    let (code, run, _) = with(60e6, "upd");
    assert_eq!((code, &run["thresholds"][0]["found"]), (1, &Value::Null), "a misspelt one must not pass");
}

#[test]
fn two_scenarios_in_turns_leave_two_runs_that_belong_together() {
    let experiment = Experiment::new("name = \"x\"\ntrials = 3\nmessages = 50\n[[cells]]\npeer = \"udp\"\n");
    let (scenario, out) = (experiment.scenario(), experiment.out());
    let output = noctule(&["lab", "run", text(&scenario), "--versus", text(&scenario), "--out", text(&out)]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |side: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(out.join(side).join("run.json")).unwrap()).unwrap()
    };
    let (a, b) = (read("a"), read("b"));
    assert!(a["interleaving"].is_string());
    assert_eq!(a["interleaving"], b["interleaving"]);
    assert_eq!(b["cells"].as_array().unwrap().len(), 3);
}
