//! A link's specification, as a line and as TOML: read or refused; what is read prints as itself and
//! can be run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_netsim::link::{Entry, Link, LinkSpec, Recording, ReplayError, no_recordings};
use noctule_timebase::{Instant, Span};

fuzz_target!(|text: &str| {
    let mut recorded = |_: &str| {
        let entries = vec![Entry { at: Span::ZERO, delay: Some(Span::from_ms(3)) }];
        Recording::new(entries).map_err(ReplayError::unreadable)
    };
    let _ = LinkSpec::parse_toml(text, &mut no_recordings);
    let Ok(spec) = LinkSpec::parse(text, &mut recorded) else { return };
    let printed = spec.to_string();
    assert_eq!(LinkSpec::parse(&printed, &mut recorded), Ok(spec.clone()), "{printed}");
    let mut link = Link::new(&spec.a_to_b, Instant::from_ns(0), 1);
    for second in 0..20 {
        let now = Instant::from_ns(second * 1_000_000_000);
        link.handle_packet(now, &[0; 100]);
        while let Some(delivery) = link.poll_deliver(now) {
            assert!(delivery.due <= now);
        }
    }
});
