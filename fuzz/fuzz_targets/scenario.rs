//! A scenario: any text is read or refused with a place in it; what is read can be planned.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use noctule_lab::plan::{Choice, Plan};
use noctule_lab::scenario::ScenarioFile;

fuzz_target!(|text: &str| {
    if let Ok(file) = ScenarioFile::parse("fuzz", text.to_owned()) {
        let directory = noctule_lab_peers::registry(Path::new("noctule"));
        let _ = Plan::expand(&file, &directory, &[0, 1], &Choice::default());
    }
});
