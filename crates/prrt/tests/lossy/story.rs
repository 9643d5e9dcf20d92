//! History of one sample of a simulation: a session that fails is run again from its seed, with traces.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests and what they share

use std::fmt::Write as _;

use noctule_prrt::trace::Event;
use noctule_prrt::{Link, Local};
use noctule_timebase::Instant;

use super::{Cell, START, Simulation, WRITER};

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
    let Some(mut file) = noctule_netsim::Story::wanted("prrt", seed) else { return };
    for (at, side, event) in &of(cell, samples, seed).events {
        let link = ["sender→receiver", "receiver→sender"][*side];
        file.note(Instant::from_ns((*at - START).ns()), link, event);
    }
}
