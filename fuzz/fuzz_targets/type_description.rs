//! A type description as another node may send it, and bytes of its type: both are read or refused, and what is read has the hash
//! of the generator, is described again, and decodes or refuses any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use noctule_codegen::cdr::{WideStrings, decode_some, encode, yaml};
use noctule_codegen::described::{Described, description, ros2msg};
use noctule_codegen::hash::{Hashes, rihs01};
use noctule_formats::TypeDescription;

fuzz_target!(|input: (&str, u8, &[u8])| {
    let (text, elements, bytes) = input;
    let read = match TypeDescription::parse(text) {
        Ok(read) => read,
        Err(refused) => return assert!(!refused.to_string().is_empty()),
    };
    let Ok(Described { library, name }) = Described::new(&read) else { return };
    // Arrays of arrays are one array to a decoder, so that the hash is another there.
    if !text.contains("][") {
        assert_eq!(Hashes::new(&library).noctule(&name), read.hash());
        assert_eq!(description(&library, &name).expect("it was one").hash(), read.hash());
    }
    assert_eq!(rihs01(&library, &name).len(), 71);
    let _ = ros2msg(&library, &name);
    if let Ok(tree) = decode_some((&library, &name), bytes, WideStrings::Utf16, usize::from(elements)) {
        assert!(!yaml(&tree).is_empty());
    }
    if let Ok(tree) = decode_some((&library, &name), bytes, WideStrings::Utf16, usize::MAX) {
        let value = serde_json::to_value(tree).expect("a tree is JSON");
        let _ = encode(&library, &name, &value, WideStrings::Utf16);
    }
});
