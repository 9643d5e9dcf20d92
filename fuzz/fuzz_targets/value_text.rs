//! A definition and a value of its type as a user types it, JSON or YAML: it becomes bytes that read as a value again, or is refused with a sentence.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use noctule_codegen::cdr::{WideStrings, decode, encode};
use noctule_codegen::diagnostic::{Faults, Source};
use noctule_codegen::library::Library;
use noctule_codegen::model::{Named, TypeName};
use noctule_codegen::rosidl::{Kind, parse};

fuzz_target!(|input: (&str, &str)| {
    let (definition, text) = input;
    let Ok(types) = parse(&Source::new("fuzz", definition), Kind::Msg, "pkg", "T") else { return };
    let (mut library, mut faults) = (Library::default(), Faults::default());
    types.into_iter().for_each(|defined| library.insert(Named::Struct(Arc::new(defined)), &mut faults));
    let name = TypeName::ros("pkg", "msg", "T");
    if library.resolve([&name]).is_err() {
        return;
    }
    // As `noctule pub` reads it.
    let value: serde_json::Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => match serde_saphyr::from_str(text) {
            Ok(value) => value,
            Err(error) => return assert!(!error.to_string().is_empty()),
        },
    };
    match encode(&library, &name, &value, WideStrings::Utf16) {
        Ok(bytes) => {
            decode(&library, &name, &bytes, WideStrings::Utf16).expect("what was written can be read");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
