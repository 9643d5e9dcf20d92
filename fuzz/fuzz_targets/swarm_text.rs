//! A drone's state and a swarm's scenario: read or refused; what is read can be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_swarm::{Own, Scenario, State};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(state) = State::<Own>::decode(bytes) {
        assert_eq!(State::<Own>::decode(&state.encode()), Ok(state));
    }
    if let Ok(scenario) = std::str::from_utf8(bytes).map_err(|_| ()).and_then(|text| Scenario::parse(text).map_err(|_| ())) {
        let _ = scenario.plan_rate();
    }
});
