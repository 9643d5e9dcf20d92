use super::*;
use noctule_lab::fixture;
use noctule_lab::merge::merge;
use noctule_lab::run::{Skipped, ThresholdResult};
use noctule_lab::samples::CellSamples;

fn page(run: &Run, samples: &[CellSamples]) -> String {
    let merged = merge(run, samples);
    let charts = Charts::of(run, &merged, samples);
    render(run, &merged, &charts).unwrap()
}

#[test]
fn a_page_holds_the_verdict_the_table_and_only_the_charts_with_material() {
    let (run, samples) = fixture::chain_and_round_trips();
    let page = page(&run, &samples);
    assert!(page.contains("class=\"verdict valid\""));
    assert!(page.contains("udp 64 B round trip spin cores 0,1"), "row label");
    for chart in ["curve", "histogram", "dots", "cumulative"] {
        assert!(page.contains(&format!("id=\"chart-{chart}\"")), "{chart}");
    }
    for chart in ["sweep_payload", "heat_map"] {
        assert!(!page.contains(&format!("id=\"chart-{chart}\"")), "{chart}");
    }
}

#[test]
fn a_page_refers_to_nothing_outside_itself() {
    let (run, samples) = fixture::chain_and_round_trips();
    let page = page(&run, &samples);
    for reference in ["src=", "url(", "@import", "href=\"http", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn names_from_outside_cannot_leave_their_place() {
    let (mut run, samples) = fixture::chain_and_round_trips();
    let hostile = "</script><script>alert(1)</script>";
    for cell in &mut run.cells {
        cell.peer = hostile.to_owned();
    }
    run.scenario.name = hostile.to_owned();
    run.scenario.source = hostile.to_owned();
    run.skipped.push(Skipped { peer: hostile.to_owned(), why: hostile.to_owned() });
    let page = page(&run, &samples);
    assert!(!page.contains("<script>alert"));
    assert_eq!(page.matches("</script>").count(), 5, "the page's own");
}

#[test]
fn an_invalid_experiment_fails_the_page_and_shows_its_reason_instead_of_figures() {
    let (mut run, samples) = fixture::chain_and_round_trips();
    run.cells[1].valid = false;
    run.cells[1].latency_ns = None;
    run.cells[1].why_invalid = vec!["the rate was not held".to_owned()];
    let text = page(&run, &samples);
    assert!(text.contains("class=\"verdict fail\""));
    assert!(text.contains("the rate was not held (1 of 2 trials)"));
    for cell in &mut run.cells {
        cell.expect = Some("may_saturate".to_owned());
    }
    let text = page(&run, &samples);
    assert!(text.contains("class=\"verdict valid\""), "allowed to saturate");
    assert!(text.contains("(expected: may saturate): the rate was not held"));
}

#[test]
fn a_missed_threshold_fails_and_an_interruption_is_named() {
    let (mut run, samples) = fixture::chain_and_round_trips();
    run.partial = true;
    assert!(page(&run, &samples).contains("class=\"verdict partial\""));
    run.thresholds
        .push(ThresholdResult { what: "udp p99 ≤ 200000 ns".to_owned(), found: None, held: false });
    let text = page(&run, &samples);
    assert!(text.contains("class=\"verdict fail\""));
    assert!(text.contains("no valid cell"));
}

#[test]
fn a_run_without_cells_makes_a_page() {
    let (run, samples) = fixture::run(vec![]);
    assert!(page(&run, &samples).contains("0 experiments"));
}

#[test]
fn what_costs_latency_on_the_machine_stands_beside_the_verdict() {
    let (mut run, samples) = fixture::chain_and_round_trips();
    assert!(!page(&run, &samples).contains("costs latency:"));
    run.host.fingerprint.insert("c_states".to_owned(), "bad: C6 wakes in 133 µs".to_owned());
    let text = page(&run, &samples);
    assert!(text.contains("costs latency: C-states: C6 wakes in 133 µs"), "beside the verdict");
    assert!(text.contains("<tr class=\"warning\"><td>C-states</td>"), "in the machine's table");
}
