//! `noctule swarm run`: figures of a small swarm, and what is refused.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::process::{Command, Output};

use serde_json::Value;

const SMALL: &str = "name = \"small\"\n[swarm]\nnodes = 12\nseconds = 25\nspacing_m = 20\n";

fn run(text: &str, words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(["swarm", "run"]).arg(&file).args(words).output().unwrap()
}

#[test]
fn a_swarm_flies_the_same_way_for_the_same_seed() {
    let figures = |seed: &str| -> Value {
        let output = run(SMALL, &["--json", "--seed", seed, "--neighbours", "bound"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let mut figures: Value = serde_json::from_slice(&output.stdout).unwrap();
        figures.as_object_mut().unwrap().remove("cpu_s");
        figures
    };
    let (first, again, other) = (figures("3"), figures("3"), figures("4"));
    assert_eq!(first, again);
    assert_ne!(first["min_separation_m"], other["min_separation_m"]);
    assert_eq!((first["collisions"].as_u64(), first["finished"].as_f64()), (Some(0), Some(1.0)));
    assert!(first["age_p50_ms"].as_f64().unwrap() > 50.0);
}

#[test]
fn what_is_wrong_is_one_sentence_and_exit_code_2() {
    let slow = format!("{SMALL}[air]\nband_ghz = 2.4\nmulticast_mbps = 1\nbudget = 0.1\n");
    for (text, words, wanted) in [
        ("name = 3", &[][..], "cannot be read"),
        (SMALL, &["--nodes", "1"][..], "2 to 4096 drones, not 1"),
        (SMALL, &["--neighbours", "guess"][..], "give hold, age or bound"),
        (&slow, &[][..], "at 1 Mb/s are 20 % of the air"),
    ] {
        let output = run(text, words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted), "{said}");
    }
    let mut missing = Command::new(env!("CARGO_BIN_EXE_noctule"));
    let missing = missing.args(["swarm", "run", "/no/such/file.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn a_live_swarm_is_refused_at_one_megabit_with_the_arithmetic() {
    for (words, wanted) in [
        (
            &["--band", "2.4", "--multicast-mbps", "1", "--nodes", "32"][..],
            "32 drones × 10 Hz × 2.28 ms at 1 Mb/s are 73 % of the air",
        ),
        (&["--multicast-mbps", "1"][..], "--multicast-mbps is 1; give 6"),
        (&["--band", "6"][..], "--band is 6; give 2.4 or 5"),
        (&["--nodes", "1"][..], "2 to 128 drones, not 1"),
        (&["--no-open"][..], "--map"),
        (&["--carrier", "/no/such/program"][..], "there is no program /no/such/program"),
        (&["--carrier", "no-such-program --fast"][..], "there is no program no-such-program"),
        (&["--carrier", " "][..], "--carrier names no program"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        let output = command.args(["swarm", "fly"]).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted), "{words:?}: {said}");
    }
}

#[test]
fn a_drone_without_its_radio_is_lost() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a_drone_without_its_radio_is_lost: needs root");
        return;
    }
    // A carrier that ends at once ends the radio process; the vehicles hover on.
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(["swarm", "fly", "--nodes", "2", "--seconds", "4", "--carrier", "true", "--json"]);
    let output = command.output().unwrap();
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((figures["lost_nodes"].as_u64(), output.status.code()), (Some(2), Some(1)), "{figures}");
}

#[test]
fn a_study_shows_what_age_costs_and_draws_it() {
    let folder = tempfile::tempdir().unwrap();
    let (file, picture) = (folder.path().join("scenario.toml"), folder.path().join("age.svg"));
    let text = "name = \"study\"\n[swarm]\nnodes = 8\nseconds = 24\nspacing_m = 8\nmission = \"formation\"\nshape_s = 60\n";
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(["swarm", "study", "--seeds", "1", "--delays", "0,600", "--picture"]);
    let output = command.args([&picture, &file]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .map(|line| line.split('|').collect())
        .collect();
    assert_eq!(rows.len(), 6, "{table}");
    let number = |row: usize, column: usize| rows[row][column].trim().parse::<f64>().unwrap();
    // Held states of 600 ms are worse than fresh ones, and than extrapolated ones.
    assert!(number(1, 6) > 1.5 * number(0, 6) && number(3, 6) < number(1, 6), "{table}");
    assert!(number(1, 3) > number(0, 3) + 500.0, "{table}");
    let drawn = std::fs::read_to_string(&picture).unwrap();
    assert!(drawn.contains("Formation error over age") && drawn.contains("held as it came"));
    let mut wrong = Command::new(env!("CARGO_BIN_EXE_noctule"));
    let wrong = wrong.args(["swarm", "study", "--delays", "0,soon"]).arg(&file).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}
