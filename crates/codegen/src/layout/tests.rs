//! Layouts against those that the C compiler of this machine makes, and CDR of values in them.

use std::fs;
use std::process::Command;

use super::*;
use crate::model::Primitive;

fn loaded(files: &[(&str, &str)]) -> (tempfile::TempDir, Library, Vec<TypeName>) {
    let folder = tempfile::tempdir().unwrap();
    let messages = folder.path().join("p/msg");
    fs::create_dir_all(&messages).unwrap();
    for (name, text) in files {
        fs::write(messages.join(format!("{name}.msg")), text).unwrap();
    }
    let mut library = Library::default();
    let names = library.add_package(&folder.path().join("p")).unwrap();
    library.resolve(&names).unwrap();
    (folder, library, names)
}

#[test]
fn padding_stands_before_fields_and_at_the_end() {
    let (_folder, library, _) = loaded(&[
        ("Inner", "float64 x\nbool flag\n"),
        ("Outer", "uint8 a\nInner[2] inner\nuint16 b\nuint8[3] c\n"),
        ("Empty", ""),
    ]);
    let mut layouts = Layouts::new(&library);
    let place = |offset_bytes, padding_bytes| FieldPlace { offset_bytes, padding_bytes };
    let outer = layouts.of(&TypeName::ros("p", "msg", "Outer")).unwrap();
    assert_eq!(outer.fields, [place(0, 0), place(8, 7), place(40, 0), place(42, 0)]);
    assert_eq!((outer.size_bytes, outer.alignment_bytes, outer.tail_bytes), (48, 8, 3));
    let empty = layouts.of(&TypeName::ros("p", "msg", "Empty")).unwrap();
    assert_eq!((empty.size_bytes, empty.alignment_bytes, empty.tail_bytes), (1, 1, 0));
}

#[test]
fn texts_and_sequences_lie_elsewhere() {
    let (_folder, library, names) = loaded(&[
        ("A", "string<=3 a\n"),
        ("B", "uint8[<=3] b\n"),
        ("C", "uint8 a\nA[2] deep\n"),
        ("D", "uint8 a\n"),
    ]);
    let found: Vec<Option<String>> = names.iter().map(|name| first_of_any_length(&library, name)).collect();
    assert_eq!(found, [Some("a".to_owned()), Some("b".to_owned()), Some("deep.a".to_owned()), None]);
    let mut layouts = Layouts::new(&library);
    for (name, path) in names.iter().zip(found) {
        assert_eq!(layouts.of(name).is_none(), path.is_some(), "{name}");
    }
}

#[test]
fn plain_bytes_become_cdr_without_their_padding() {
    let (_folder, library, _) =
        loaded(&[("Inner", "float64 x\nbool flag\n"), ("Outer", "uint8 a\nInner[2] inner\nuint16 b\n")]);
    let outer = TypeName::ros("p", "msg", "Outer");
    let mut plain = vec![0xee; 48];
    plain[0] = 7;
    plain[8..16].copy_from_slice(&1.5f64.to_le_bytes());
    plain[16] = 1;
    plain[24..32].copy_from_slice(&2.5f64.to_le_bytes());
    plain[32] = 0;
    plain[40..42].copy_from_slice(&9u16.to_le_bytes());
    let mut expected = vec![0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
    expected.extend(1.5f64.to_le_bytes());
    // The second struct follows the first's bool, aligned as its first field.
    expected.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend(2.5f64.to_le_bytes());
    expected.extend([0, 0, 9, 0]);
    let mut layouts = Layouts::new(&library);
    assert_eq!(layouts.cdr(&outer, &plain), Some(expected));
    assert_eq!(layouts.cdr(&outer, &plain[1..]), None);
    assert_eq!(layouts.cdr(&outer, &[]), None);
}

/// A struct of C with these primitives, as `sizeof` and `offsetof` of the compiler see it.
#[test]
fn the_compiler_of_c_agrees() {
    if Command::new("gcc").arg("--version").output().is_err() {
        return;
    }
    let words = [
        ("uint8", "uint8_t", Primitive::U8),
        ("int16", "int16_t", Primitive::I16),
        ("float32", "float", Primitive::F32),
        ("int64", "int64_t", Primitive::I64),
    ];
    // Every order of three of them, the second one an array of three.
    let all: Vec<[usize; 3]> = (0..64).map(|code| [code % 4, code / 4 % 4, code / 16]).collect();
    let files: Vec<(String, String)> = all
        .iter()
        .enumerate()
        .map(|(at, [a, b, c])| {
            let text = format!("{} a\n{}[3] b\n{} c\n", words[*a].0, words[*b].0, words[*c].0);
            (format!("T{at:02}"), text)
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let (folder, library, names) = loaded(&files);
    let mut layouts = Layouts::new(&library);
    let mut source = "#include <stddef.h>\n#include <stdint.h>\n".to_owned();
    for (name, [a, b, c]) in names.iter().zip(&all) {
        let layout = layouts.of(name).unwrap();
        let at: Vec<u64> = layout.fields.iter().map(|place| place.offset_bytes).collect();
        let (t, size) = (name.name(), layout.size_bytes);
        source += &format!(
            "struct {t} {{ {} a; {} b[3]; {} c; }};\n_Static_assert(sizeof(struct {t}) == {size} && offsetof(struct {t}, b) == {} && offsetof(struct {t}, c) == {}, \"{t}\");\n",
            words[*a].1, words[*b].1, words[*c].1, at[1], at[2]
        );
    }
    let file = folder.path().join("layout.c");
    fs::write(&file, source).unwrap();
    let compiled = Command::new("gcc").args(["-std=c11", "-fsyntax-only"]).arg(&file).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}
