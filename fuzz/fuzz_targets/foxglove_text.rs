//! Texts of a viewer: any texts are handled, and subscriptions name channels that were advertised.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_foxglove::session::{Channel, Session};

fuzz_target!(|texts: Vec<String>| {
    let mut session = Session::new("robot", "1");
    let channel = |id: u32| Channel {
        id,
        topic: format!("/t{id}"),
        encoding: String::new(),
        schema_name: String::new(),
        schema: String::new(),
        schema_encoding: String::new(),
    };
    session.handle_channels(&[channel(1), channel(2)]);
    for text in &texts {
        session.handle_text(text);
        assert!(session.wanted().iter().all(|id| (1..=2).contains(id)));
    }
    session.handle_channels(&[channel(2)]);
    assert!(session.wanted().iter().all(|id| *id == 2));
    while session.poll_text().is_some() {}
});
