use super::*;
use crate::replay;
use noctule_netsim::{Scenario, round_trips};
use noctule_time_sync::EstimatorKind;

fn trace(scenario: &str, truth: bool) -> Vec<TraceRow> {
    let rows = round_trips(&Scenario::named(scenario).unwrap(), 1).into_iter().map(TraceRow::from);
    rows.map(|row| TraceRow { offset_true_ns: row.offset_true_ns.filter(|_| truth), ..row }).collect()
}

fn panels_of(rows: &[TraceRow]) -> Vec<Panel> {
    panels(rows, &replay(rows, &mut EstimatorKind::Bounded.build(Default::default())))
}

fn of<'a>(panels: &'a [Panel], id: &str) -> &'a Panel {
    panels.iter().find(|panel| panel.id == id).unwrap()
}

fn marks<'a>(panel: &'a Panel, label: &'a str) -> impl Iterator<Item = &'a PanelMark> {
    panel.marks.iter().filter(move |mark| mark.label == label)
}

#[test]
fn a_step_is_ringed_and_the_withdrawn_bound_is_a_gap() {
    let panels = panels_of(&trace("F", true));
    let error = of(&panels, "error");
    let ring = marks(error, "first exchange after a true step").next().unwrap();
    assert_eq!(ring.xs.len(), 1);
    assert!((ring.xs[0] - 300.0).abs() < 0.5, "{}", ring.xs[0]);
    assert_eq!(marks(error, "proven bound").count(), 2, "one band before the step and one after");
    assert_eq!(marks(error, "± sigma").count(), 1, "sigma is known throughout");
    assert!(marks(error, "stepped").next().is_some());
}

#[test]
fn every_column_of_the_band_holds_the_truth() {
    let panels = panels_of(&trace("B", true));
    for band in marks(of(&panels, "error"), "proven bound") {
        assert!(band.low.iter().zip(&band.ys).all(|(low, high)| *low <= 0.0 && 0.0 <= *high));
    }
}

#[test]
fn without_the_truth_a_straight_clock_lies_on_the_straight_line() {
    let panels = panels_of(&trace("A", false));
    let error = of(&panels, "error");
    assert_eq!(error.lines[0].0, "straight line");
    let line = marks(error, "estimate").next().unwrap();
    let settled = line.xs.iter().zip(&line.ys).filter(|(at_s, _)| **at_s > 60.0);
    let worst = settled.map(|(_, ns)| ns.abs()).fold(0.0, f64::max);
    assert!(worst < 20_000.0, "{worst}");
}

#[test]
fn all_midpoints_lie_within_the_wedge() {
    let panels = panels_of(&trace("C", true));
    for mark in of(&panels, "wedge").marks.iter().filter(|mark| mark.kind == MarkKind::Dots) {
        // The truth belongs to the end of the exchange, the midpoint to its middle.
        assert!(mark.xs.iter().zip(&mark.ys).all(|(trip, off)| off.abs() <= trip / 2.0 + 1_000.0));
    }
}

#[test]
fn white_noise_of_the_stamps_falls_by_a_decade_per_decade() {
    let panels = panels_of(&trace("A", true));
    let curve = marks(of(&panels, "allan"), "raw midpoints").next().unwrap();
    let at = |tau_s: f64| curve.xs.iter().position(|x| *x >= tau_s).unwrap();
    let (early, late) = (at(0.1), at(10.0));
    let slope = (curve.ys[late] / curve.ys[early]).log10() / (curve.xs[late] / curve.xs[early]).log10();
    assert!((slope + 1.0).abs() < 0.1, "{slope}");
}

#[test]
fn what_nothing_is_known_of_has_no_panel() {
    assert!(panels_of(&[]).is_empty());
    // The reply arrives before the request leaves.
    let exchange = noctule_time_sync::Exchange::from_ns(10, 0, 0, 5);
    assert!(panels_of(&[TraceRow { exchange, offset_true_ns: None, step_in_flight: false }]).is_empty());
}
