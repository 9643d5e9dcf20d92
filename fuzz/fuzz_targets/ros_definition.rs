//! A definition of ROS 2 and bytes of its type: both are read or refused, and what is read has hashes and is written again.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use noctule_codegen::cdr::{WideStrings, decode, encode};
use noctule_codegen::diagnostic::{Faults, Source};
use noctule_codegen::hash::{Hashes, rihs01};
use noctule_codegen::library::Library;
use noctule_codegen::model::Named;
use noctule_codegen::rosidl::{Kind, parse};

fuzz_target!(|input: (u8, &str, &[u8])| {
    let (kind, text, bytes) = input;
    let kind = Kind::ALL[usize::from(kind) % Kind::ALL.len()];
    let types = match parse(&Source::new("fuzz", text), kind, "pkg", "T") {
        Ok(types) => types,
        Err(faults) => return assert!(!faults.to_string().is_empty()),
    };
    let (mut library, mut faults) = (Library::default(), Faults::default());
    let names: Vec<_> = types.iter().map(|defined| defined.name.clone()).collect();
    types.into_iter().for_each(|defined| library.insert(Named::Struct(Arc::new(defined)), &mut faults));
    if library.resolve(&names).is_err() {
        return;
    }
    for name in &names {
        assert_ne!(Hashes::new(&library).noctule(name), 0);
        assert_eq!(rihs01(&library, name).len(), 71);
        if let Ok(tree) = decode(&library, name, bytes, WideStrings::Utf16) {
            let value = serde_json::to_value(tree).expect("a tree is JSON");
            encode(&library, name, &value, WideStrings::Utf16).expect("what was read can be written");
        }
    }
});
