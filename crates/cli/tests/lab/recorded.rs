//! Commands on existing data: import, report again, compare.

use super::*;

const FILES: [&str; 4] = ["run.json", "samples.mcap", "latency.hlog", "report.html"];

fn vectors(recording: &str) -> [String; 2] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/pingpong").join(recording);
    ["pub.csv", "sub.csv"].map(|name| text(&root.join(name)).to_owned())
}

fn import(recording: &str, out: &Path) -> String {
    let [published, received] = vectors(recording);
    let output = noctule(&["lab", "import", "pingpong", &published, &received, "--out", text(out)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs, demands exit code 2 and one line that contains `wanted`.
fn assert_refused(arguments: &[&str], wanted: &str) {
    let output = noctule(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    assert_eq!(errors.trim_end().lines().count(), 1, "one sentence: {errors}");
    assert!(errors.contains(wanted), "{errors:?} lacks {wanted:?}");
}

#[test]
fn an_imported_recording_prints_its_figures_and_leaves_a_whole_report() {
    let directory = tempfile::tempdir().unwrap();
    let said = import("m5atom_serial", directory.path());
    for figure in ["2000 received, 0 lost", "12.829694", "14.970970", "10.838289", "0.986918"] {
        assert!(said.contains(figure), "{said} lacks {figure}");
    }
    let page = std::fs::read(directory.path().join("report.html")).unwrap();
    for file in FILES {
        assert!(directory.path().join(file).is_file(), "{file}");
    }
    std::fs::remove_file(directory.path().join("report.html")).unwrap();
    let output = noctule(&["lab", "report", text(directory.path())]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(std::fs::read(directory.path().join("report.html")).unwrap(), page, "the same page again");
}

#[test]
fn an_import_as_json_is_its_run_json() {
    let directory = tempfile::tempdir().unwrap();
    let [published, received] = vectors("m5atom_udp_wifi");
    let out = text(directory.path());
    let output = noctule(&["lab", "import", "pingpong", &published, &received, "--json", "--out", out]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let written = std::fs::read(directory.path().join("run.json")).unwrap();
    assert_eq!(printed, serde_json::from_slice::<Value>(&written).unwrap());
    assert_eq!(only_cell(&printed)["latency_ns"]["max"], 123_242_448);
}

#[test]
fn a_malformed_recording_is_refused_with_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let [published, _] = vectors("m5atom_serial");
    let broken = directory.path().join("broken.csv");
    let out = directory.path().join("out");
    for (content, wanted) in [
        ("0,1704430803595228850,0\n1,17044\0", "broken.csv line 2: a NUL byte"),
        ("0,1704430803595228850\n", "broken.csv line 1: 2 fields instead of 3"),
        ("0,1704430803595228850,77777\n", "broken.csv line 1: index 77777 is not in"),
        ("", "broken.csv is empty"),
    ] {
        std::fs::write(&broken, content).unwrap();
        let arguments = ["lab", "import", "pingpong", &published, text(&broken), "--out", text(&out)];
        assert_refused(&arguments, wanted);
    }
    assert!(!out.exists(), "nothing is written for a refused recording");
    let [published, received] = vectors("m5atom_serial");
    let arguments = ["lab", "import", "pingpong", &published, &received, "--out", "/dev/null/out"];
    assert_refused(&arguments, "cannot write /dev/null/out");
}

#[test]
fn a_report_needs_a_run_and_its_own_samples() {
    let directory = tempfile::tempdir().unwrap();
    assert_refused(&["lab", "report", text(directory.path())], "name a directory made by");
    import("m5atom_serial", directory.path());
    let samples = directory.path().join("samples.mcap");
    let whole = std::fs::read(&samples).unwrap();
    std::fs::write(&samples, &whole[..whole.len() / 2]).unwrap();
    assert_refused(&["lab", "report", text(directory.path())], "samples.mcap is damaged");
    std::fs::remove_file(samples).unwrap();
    assert_refused(&["lab", "report", text(directory.path())], "samples.mcap");
}

#[test]
fn runs_too_short_to_compare_say_so_and_exit_with_1() {
    let directory = tempfile::tempdir().unwrap();
    import("m5atom_serial", directory.path());
    let run = directory.path().join("run.json");
    let output = noctule(&["lab", "compare", text(&run), text(directory.path()), "--seed", "9"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("too few trials to say: A has 1, B has 1"), "{said}");
    assert!(said.trim_end().ends_with("seed 9"), "{said}");
    let output = noctule(&["lab", "compare", text(&run), text(&run), "--json"]);
    let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(comparison["cells"][0]["p50"]["change"], "unknown");
}

#[test]
fn what_is_not_a_run_cannot_be_compared() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.json");
    assert_refused(&["lab", "compare", text(&file), text(&file)], "cannot use");
    for (content, wanted) in [
        ("{", "is not a run.json"),
        ("{\"a\":1}", "no number named \"schema\""),
        ("{\"schema\":99}", "has schema 99, this program reads schema 1"),
    ] {
        std::fs::write(&file, content).unwrap();
        assert_refused(&["lab", "compare", text(&file), text(&file)], wanted);
    }
}
