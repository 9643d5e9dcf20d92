//! What happened to one sample of a simulation: a session that fails is run again from its seed, with traces.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests and what they share

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use noctule_prrt::trace::{Event, qlog};
use noctule_prrt::{Link, Local};
use noctule_timebase::Instant;

use super::{Cell, START, Simulation, WRITER};

/// Names a file for all events of the first session of a process; `cargo xtask sim prrt --trace FILE` sets it.
const VARIABLE: &str = "NOCTULE_TRACE";

/// When, on which side (0: sender), what.
type Entry = (Instant<Local>, usize, Event);

/// Events of both links, in the order of time.
#[derive(Default)]
pub struct Story {
    events: Vec<Entry>,
}

impl Story {
    pub(super) fn drain(&mut self, links: &mut [Link; 2]) {
        for (side, link) in links.iter_mut().enumerate() {
            self.events.extend(std::iter::from_fn(|| link.poll_event()).map(|(at, event)| (at, side, event)));
        }
    }

    /// Of the sample with this sequence number, in sentences.
    pub fn of_sample(&self, sequence: u64) -> String {
        let mut text = format!("What happened to sample {sequence}:\n");
        let of_sample = |event: &Event| event.sample() == Some((WRITER, sequence));
        for (at, side, event) in self.events.iter().filter(|(.., event)| of_sample(event)) {
            let side = ["sender", "receiver"][*side];
            let ms = (*at - START).as_s_f64() * 1e3;
            writeln!(text, "{ms:>10.3} ms  {side:<8}  {event}").unwrap();
        }
        text
    }

    /// Samples of which a datagram was declared lost and that were delivered nevertheless.
    pub fn repaired(&self) -> Vec<u64> {
        let sequences = |is_wanted: fn(&Event) -> bool| {
            let wanted = self.events.iter().filter(move |(.., event)| is_wanted(event));
            wanted.filter_map(|(.., event)| event.sample()).map(|(_, sequence)| sequence)
        };
        let lost: std::collections::BTreeSet<u64> =
            sequences(|event| matches!(event, Event::Lost { .. })).collect();
        sequences(|event| matches!(event, Event::Delivered { .. })).filter(|one| lost.contains(one)).collect()
    }

    fn qlog(&self, seed: u64) -> String {
        let mut text = qlog::header(&format!("simulation prrt, seed {seed}"), 0.0);
        for (at, side, event) in &self.events {
            let link = ["sender→receiver", "receiver→sender"][*side];
            qlog::record(&mut text, (*at - START).as_s_f64() * 1e3, link, event);
        }
        text
    }
}

/// The events of a whole session.
pub fn of(cell: Cell, samples: u64, seed: u64) -> Story {
    let mut simulation = Simulation::new(cell, samples, seed);
    simulation.story = Some(Story::default());
    while simulation.step() {}
    simulation.story.take().unwrap_or_default()
}

/// Writes the file that the environment names, once.
pub fn write_if_wanted(cell: Cell, samples: u64, seed: u64) {
    static IS_WRITTEN: AtomicBool = AtomicBool::new(false);
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    if !IS_WRITTEN.swap(true, Ordering::Relaxed) {
        std::fs::write(&path, of(cell, samples, seed).qlog(seed)).unwrap();
        println!("the events of seed {seed} are in {}", path.display());
    }
}
