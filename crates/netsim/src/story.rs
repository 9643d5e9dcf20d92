//! The events of one simulated session, for the file that the environment names.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use noctule_qlog::{Event, Log, text};
use noctule_timebase::{Instant, Local};

/// Names the file; `cargo xtask sim CORE --seed N --trace FILE` sets it.
const VARIABLE: &str = "NOCTULE_TRACE";

/// Events of the first session of a process. The file is written when it is dropped, by a session that fails as well.
#[derive(Debug)]
pub struct Story {
    path: PathBuf,
    text: String,
}

impl Story {
    /// The story of the simulation `what` from `seed`; `None` if the environment names no file, or a session before has it.
    pub fn wanted(what: &str, seed: u64) -> Option<Story> {
        static IS_TAKEN: AtomicBool = AtomicBool::new(false);
        let path = PathBuf::from(std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?);
        let is_first = !IS_TAKEN.swap(true, Ordering::Relaxed);
        is_first.then(|| Story { path, text: text::header(&format!("simulation {what}, seed {seed}"), 0.0) })
    }

    /// Adds an event of whom `group` names.
    pub fn note(&mut self, at: Instant<Local>, group: &str, event: &dyn Event) {
        text::record(&mut self.text, at.ns() as f64 / 1e6, group, event);
    }

    /// Adds what a log holds.
    pub fn drain<E: Event>(&mut self, group: &str, log: &mut Log<E>) {
        while let Some((at, event)) = log.poll() {
            self.note(at, group, &event);
        }
    }
}

impl Drop for Story {
    #[allow(clippy::print_stderr)] // a simulation is run by a person
    fn drop(&mut self) {
        match std::fs::write(&self.path, &self.text) {
            Ok(()) => eprintln!("the events of the first seed are in {}", self.path.display()),
            Err(error) => {
                eprintln!("{VARIABLE} names {}, which cannot be written: {error}", self.path.display())
            }
        }
    }
}
