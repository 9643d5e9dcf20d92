//! XML of clients and of files of profiles.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_xrce::References;

fuzz_target!(|text: &str| {
    if let Ok(references) = References::from_xml(text) {
        assert!(references.len() <= noctule_xrce::XML_OBJECTS_MAX);
    }
});
