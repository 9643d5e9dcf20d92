//! Alarms: any text is read or refused, and what was read takes any samples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_record::alarms::{Alarms, Seen};

fuzz_target!(|input: (&str, Vec<(u64, Option<u64>, Option<u64>)>)| {
    let (text, samples) = input;
    let Ok(mut alarms) = Alarms::parse(text) else { return };
    for (log_ns, source_ns, bound_ns) in samples {
        alarms.handle_sample(Seen { topic: "/a", log_ns, source_ns, bound_ns });
        while alarms.poll_fired().is_some() {}
    }
});
