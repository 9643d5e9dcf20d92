//! Lines whose losses are our own doing, and paths that only look as if they were: no class is worse there than best effort by more
//! than a point.
//!
//! Seeds are fixed, so a link either fails or does not.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests and what they share

use noctule_timebase::Span;

mod map;

use map::{Beside, Cell, Form, Load, Outcome, Service, run};

const SEED: u64 = 20_261_125;

fn cell(load: Load, deadline_ms: i64, link: &str) -> Cell {
    let (axis, name, link) = ("test", String::new(), link.to_owned());
    Cell {
        axis,
        name,
        load,
        deadline: Span::from_ms(deadline_ms),
        link,
        beside: Beside::Nothing,
        form: Form::Full,
    }
}

fn share(outcome: &Outcome) -> f64 {
    outcome.on_time as f64 / outcome.samples as f64
}

/// Shares of samples on time with this class and with best effort, and the redundancy.
fn shares(service: Service, cell: &Cell) -> (f64, f64, f64) {
    let [ours, other] = [service, Service::BestEffort].map(|class| run(cell, class, SEED).unwrap());
    let redundancy = ours.redundancy.unwrap_or(0.0);
    println!(
        "seed {SEED}: {:.4}, best effort {:.4}, redundancy {redundancy:.3}, {:.2} bytes a byte: {}",
        share(&ours),
        share(&other),
        ours.wire_ratio,
        cell.link
    );
    (share(&ours), share(&other), redundancy)
}

#[test]
fn repairs_do_not_keep_up_the_losses_of_a_line_that_loses_nothing_without_them() {
    // 1.3 times what is offered; and with jitter 1.2 times, and a queue of a packet and a half.
    for (link, deadline_ms) in [
        ("delay=10ms; a>b: rate=413920bit queue=20ms", 60),
        (
            "delay=8ms jitter=2500us distribution=lognormal loss=0.1% burst=3; a>b: rate=382080bit queue=5ms",
            84,
        ),
    ] {
        let (ours, other, redundancy) = shares(Service::DeadlineBound, &cell(Load::State, deadline_ms, link));
        assert!(ours > other - 0.005, "{ours} of {other}: {link}");
        assert!(redundancy < 0.2, "{redundancy}: {link}");
    }
}

#[test]
fn where_a_policer_loses_what_repairs_send_they_end() {
    let (ours, other, _) =
        shares(Service::DeadlineBound, &cell(Load::Sensors, 60, "delay=10ms; a>b: police=9244800bit/23112B"));
    assert!(ours > other - 0.01, "{ours} of {other}");
}

#[test]
fn a_radio_that_loses_much_keeps_its_repairs() {
    for link in ["delay=10ms loss=20%", "delay=10ms loss=20% burst=30ms", "delay=40ms loss=20% burst=3"] {
        let (ours, other, _) = shares(Service::DeadlineBound, &cell(Load::State, 100, link));
        assert!(ours > other + 0.1, "{ours} of {other}: {link}");
    }
}

#[test]
fn jitter_and_chance_losses_are_no_other_flow() {
    // A window of 140 packets, of which two in a hundred are lost; and one of 30, of which one in five is.
    for (load, deadline_ms, link) in [
        (Load::Sensors, 1_700, "delay=70ms jitter=14ms distribution=lognormal loss=2% burst=3"),
        (
            Load::State,
            438,
            "a>b: delay=52ms jitter=10ms distribution=normal loss=20% burst=3 rate=509440bit queue=300ms; b>a: delay=52ms \
             jitter=10ms distribution=normal",
        ),
    ] {
        let (ours, other, _) = shares(Service::Reliable, &cell(load, deadline_ms, link));
        assert!(ours > other - 0.01, "{ours} of {other}: {link}");
    }
}
