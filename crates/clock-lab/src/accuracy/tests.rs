use super::*;
use noctule_time_sync::{Counters, Drift, Exchange, State};
use noctule_timebase::Span;

/// A row at `at_s` seconds whose truth is `truth_ns`.
fn row(at_s: f64, truth_ns: i64) -> TraceRow {
    let t4_ns = (at_s * 1e9) as i64;
    TraceRow {
        exchange: Exchange::from_ns(t4_ns - 1_000_000, 0, 0, t4_ns),
        offset_true_ns: Some(truth_ns),
        step_in_flight: false,
    }
}

fn said(offset_ns: i64, bound_ns: Option<i64>) -> Option<Estimate> {
    Some(Estimate {
        offset: Span::from_ns(offset_ns),
        drift: Drift::default(),
        bound: bound_ns.map(Span::from_ns),
        sigma: Some(Span::from_ns(500)),
        state: State::Locked,
    })
}

fn judged(rows: &[TraceRow], estimates: Vec<Option<Estimate>>) -> Accuracy {
    judge(rows, &Replayed { estimates, verdicts: vec![Ok(()); rows.len()], counters: Counters::default() })
}

#[test]
fn errors_of_the_first_minute_do_not_count() {
    let rows: Vec<TraceRow> = (0..=70).map(|s| row(f64::from(s), 0)).collect();
    let estimates = (0..=70)
        .map(|s| {
            said(
                if s < 60 {
                    1_000_000
                } else if s % 2 == 0 {
                    300
                } else {
                    -400
                },
                None,
            )
        })
        .collect();
    let accuracy = judged(&rows, estimates);
    // Six of 300 and five of 400 from the 60th second on.
    let expected = ((6.0 * 300.0 * 300.0 + 5.0 * 400.0 * 400.0) / 11.0_f64).sqrt();
    assert!((accuracy.rms_error_ns.unwrap() - expected).abs() < 1e-9);
    assert_eq!(accuracy.max_error_ns, Some(400.0));
}

#[test]
fn a_trace_shorter_than_a_minute_has_no_rms_and_says_so() {
    let rows: Vec<TraceRow> = (0..30).map(|s| row(f64::from(s), 0)).collect();
    let accuracy = judged(&rows, vec![said(0, None); 30]);
    assert_eq!((accuracy.rms_error_ns, accuracy.max_error_ns), (None, None));
    assert!(accuracy.time_to_100us_s.is_some());
}

#[test]
fn violations_are_counted_after_every_exchange_that_no_step_crossed() {
    let mut rows: Vec<TraceRow> = (0..5).map(|s| row(f64::from(s), 0)).collect();
    rows[3].step_in_flight = true;
    let bound = |offset_ns| said(offset_ns, Some(1_000));
    let estimates = vec![bound(1_000), bound(1_001), said(9_999, None), bound(5_000), bound(-2_000)];
    assert_eq!(judged(&rows, estimates).bound_violations, Some(2));
}

#[test]
fn what_an_estimator_does_not_give_is_null() {
    let rows = [row(0.0, 0), row(1.0, 0)];
    let accuracy = judged(&rows, vec![None, None]);
    assert_eq!((accuracy.bound_violations, accuracy.mean_bound_ns), (None, None));
    assert_eq!((accuracy.mean_sigma_ns, accuracy.time_to_100us_s), (None, None));
}

#[test]
fn without_the_truth_only_the_widths_apply() {
    let blind = TraceRow { offset_true_ns: None, ..row(0.0, 0) };
    let accuracy = judged(&[blind], vec![said(7, Some(300))]);
    assert_eq!((accuracy.mean_bound_ns, accuracy.mean_sigma_ns), (Some(300.0), Some(500.0)));
    assert_eq!((accuracy.bound_violations, accuracy.rms_error_ns), (None, None));
}

#[test]
fn time_to_100_us_is_when_the_error_comes_down_for_good() {
    let rows: Vec<TraceRow> = (0..6).map(|s| row(f64::from(s), 0)).collect();
    let errors = [900_000, 50_000, 100_001, 100_000, -20_000, 0];
    let accuracy = judged(&rows, errors.iter().map(|e| said(*e, None)).collect());
    // From the first departure, 1 ms before its arrival, to the fourth arrival.
    assert!((accuracy.time_to_100us_s.unwrap() - 3.001).abs() < 1e-9);
    assert_eq!(accuracy.relock_after_step_s, None);
}

#[test]
fn a_step_cuts_the_trace_and_the_worst_recovery_is_reported() {
    let truth = |i: i64| {
        if i < 100 {
            0
        } else if i < 200 {
            5_000_000
        } else {
            -5_000_000
        }
    };
    let rows: Vec<TraceRow> = (0..300).map(|i| row(i as f64 / 10.0, truth(i))).collect();
    let late = |i: i64| i == 100 || (200..203).contains(&i);
    let estimates: Vec<_> =
        (0..300).map(|i| said(truth(i) + if late(i) { 1_000_000 } else { 0 }, None)).collect();
    let accuracy = judged(&rows, estimates.clone());
    assert!((accuracy.relock_after_step_s.unwrap() - 0.301).abs() < 1e-9);
    let mut never = estimates;
    never[299] = said(0, None);
    assert_eq!(judged(&rows, never).relock_after_step_s, None);
}

#[test]
fn a_slewed_clock_is_not_taken_for_a_stepping_one() {
    let rows: Vec<TraceRow> = (0..100).map(|i| row(f64::from(i) / 10.0, i64::from(i) * 100_000)).collect();
    let accuracy = judged(&rows, vec![said(0, None); 100]);
    assert_eq!(accuracy.relock_after_step_s, None);
}

#[test]
fn drift_is_judged_by_the_slope_of_the_truth() {
    // 20 ppm, and the estimator says zero.
    let rows: Vec<TraceRow> = (0..900).map(|i| row(f64::from(i) / 10.0, i64::from(i) * 2_000)).collect();
    let accuracy = judged(&rows, vec![said(0, None); 900]);
    assert!((accuracy.drift_error_ppm.unwrap() - 20.0).abs() < 1e-6);
}
