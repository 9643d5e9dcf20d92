//! A record file of a peer: any bytes are read or refused, without trusting a count.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_peer::Table;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(table) = Table::parse(bytes) {
        assert_eq!(32 + table.slots().len() * 32, bytes.len());
        let _ = (table.sent(), table.received(), table.duplicated());
    }
});
