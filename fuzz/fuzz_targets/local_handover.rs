//! Packets of the hand-over: any bytes are refused, or come back as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule::local::{Answer, Request};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::parse(bytes) {
        assert_eq!(request.emit().expect("it was read"), bytes);
    }
    if let Ok(answer) = Answer::parse(bytes) {
        assert_eq!(Answer::parse(&answer.emit()), Ok(answer));
    }
});
