//! A file of IDL and a topics.toml: any text is read or refused with a sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_codegen::diagnostic::{Faults, Source};
use noctule_codegen::idl;
use noctule_codegen::library::Library;
use noctule_codegen::topics::{System, check};

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz", text);
    // It includes itself under the names that it gives.
    let find = |_: &Source, path: &str| Ok((path.len() < 9).then(|| Source::new(path, text)));
    if let Err(faults) = idl::parse_with(&source, &find) {
        assert!(!faults.to_string().is_empty());
    }
    match System::parse(&source) {
        Ok(system) => {
            check::check(&system, &Library::default(), &mut Faults::default());
        }
        Err(faults) => assert!(!faults.to_string().is_empty()),
    }
});
