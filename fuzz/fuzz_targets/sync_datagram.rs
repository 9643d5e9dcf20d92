//! A datagram of the clock exchange: any bytes are refused, or decode to what encodes to them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule::sync::wire::{Reply, Request};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Ok(reply) = Reply::decode(bytes) {
        assert_eq!(reply.encode(), bytes);
    }
});
