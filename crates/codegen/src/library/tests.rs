//! Packages on disk, and types that do not fit together.

use std::fs;

use super::*;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn load(root: &Path, packages: &[&str], search: &[&str]) -> Result<(Library, Vec<TypeName>), Faults> {
    let mut library = Library::new(search.iter().map(|path| root.join(path)));
    let mut names = Vec::new();
    for package in packages {
        names.extend(library.add_package(&root.join(package))?);
    }
    library.resolve(&names)?;
    Ok((library, names))
}

#[test]
fn types_are_found_in_named_packages_installed_ones_and_workspaces() {
    let root = folder(&[
        (
            "mine/msg/Pose.msg",
            "geometry_msgs/Point at\nstd_msgs/Header header\nOther other\nbuiltin_interfaces/Time t\n",
        ),
        ("mine/msg/Other.msg", "deep_msgs/Deep deep\n"),
        ("ros/share/std_msgs/msg/Header.msg", "string frame_id\n"),
        ("ws/repo/geometry_msgs/msg/Point.msg", "float64 x\n"),
        ("isolated/deep_msgs/share/deep_msgs/msg/Deep.msg", "uint8 a\n"),
    ]);
    let (library, names) = load(root.path(), &["mine"], &["ros", "ws", "isolated"]).unwrap();
    assert_eq!(names.iter().map(TypeName::as_str).collect::<Vec<_>>(), ["mine/msg/Other", "mine/msg/Pose"]);
    assert_eq!(library.types().count(), 6);
    let referred = library.referred(&names[1]);
    assert_eq!(referred.len(), 5);
}

#[test]
fn a_packages_name_is_the_one_in_its_manifest() {
    let xml = "<package><name> good_msgs </name></package>";
    let root = folder(&[("clone-of-it/package.xml", xml), ("clone-of-it/msg/A.msg", "uint8 a\n")]);
    assert_eq!(load(root.path(), &["clone-of-it"], &[]).unwrap().1[0].as_str(), "good_msgs/msg/A");
}

#[test]
fn what_does_not_fit_together_is_refused_in_a_sentence() {
    let huge = "uint8[4294967295] a\n";
    let square = ("p/msg/A.msg", "B[60000] b\n");
    for (files, expected) in [
        (
            vec![("p/msg/A.msg", "B b\n"), ("p/msg/B.msg", "A[] a\n")],
            "contains itself: p/msg/A > p/msg/B > p/msg/A",
        ),
        (vec![("p/msg/A.msg", "q/B b\n")], "q/msg/B is found nowhere, and there is no folder to look in"),
        (vec![("p/msg/A.msg", "B b\n")], "p/msg/B is found nowhere in"),
        (vec![("p/msg/A.msg", huge)], "takes at least 4294967295 bytes"),
        (vec![square, ("p/msg/B.msg", "float64[60000] b\n")], "more than the 64 MiB"),
        (vec![("p/x.msg", "")], "holds no folder msg, srv or action"),
        (vec![("p/msg/x.txt", "")], "holds no .msg, .srv, .action or .idl"),
        (vec![("p/msg/small.msg", "uint8 a\n")], "\"small\" is not a name that a type may have"),
    ] {
        let root = folder(&files);
        let refused = load(root.path(), &["p"], &[]).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    let refused = load(Path::new("/nowhere"), &["p"], &[]).unwrap_err().to_string();
    assert!(refused.contains("/nowhere/p cannot be read"), "{refused}");
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let root = folder(&[("p/msg/A.msg", "")]);
    fs::write(root.path().join("p/msg/A.msg"), b"uint8 a # \xff\n").unwrap();
    assert!(load(root.path(), &["p"], &[]).unwrap_err().to_string().contains("is not UTF-8 from byte 10"));
}

#[test]
fn nesting_ends_where_decoders_end() {
    let chain = |depth: usize| {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("p/msg")).unwrap();
        for level in 0..depth {
            let text =
                if level + 1 == depth { "uint8 a\n".to_owned() } else { format!("T{}[] t\n", level + 1) };
            fs::write(root.path().join(format!("p/msg/T{level}.msg")), text).unwrap();
        }
        load(root.path(), &["p"], &[]).map(|_| ())
    };
    chain(NESTING_MAX).unwrap();
    assert!(chain(NESTING_MAX + 1).unwrap_err().to_string().contains("60"));
    assert!(chain(3 * NESTING_MAX).is_err());
}

#[test]
fn sizes_are_those_of_cdr() {
    let root = folder(&[
        ("p/msg/Fixed.msg", "uint8 a\nfloat64 b\nuint8 c\n"),
        ("p/msg/Bounded.msg", "string<=5 s\nFixed[<=2] f\n"),
        ("p/msg/Open.msg", "string s\n"),
        ("p/msg/Empty.msg", ""),
    ]);
    let (library, names) = load(root.path(), &["p"], &[]).unwrap();
    let sizes: Vec<_> = names
        .iter()
        .map(|name| library.measure(name).map(|m| (m.span.map(|span| span.bytes()), m.is_fixed)).unwrap())
        .collect();
    // 4 + 6 + 2 + 4, then twice: a byte, padding to 8, 8, a byte.
    assert_eq!(sizes, [(Some(16 + 17 + 7 + 8 + 1), false), (Some(1), true), (Some(17), true), (None, false)]);
}

#[test]
fn idl_is_read_where_there_is_no_msg() {
    let idl = |name: &str| {
        format!("module p {{ module msg {{ struct {name} {{ double x; p::msg::Other other; }}; }}; }};")
    };
    let root = folder(&[
        ("p/msg/One.idl", &idl("One")),
        ("p/msg/Other.idl", "module p { module msg { struct Other { long a; }; }; };"),
        ("p/msg/Two.idl", "this is not read"),
        ("p/msg/Two.msg", "float64 x\n"),
    ]);
    let (library, names) = load(root.path(), &["p"], &[]).unwrap();
    assert_eq!(names.len(), 3);
    assert_eq!(library.measure(&names[0]).unwrap().fixed_bytes, 12);
    let wrong = folder(&[("p/msg/One.idl", "module p { union U; };")]);
    assert!(
        load(wrong.path(), &["p"], &[]).unwrap_err().to_string().contains("union of IDL is not supported")
    );
}

#[test]
fn a_type_in_idl_is_found_by_its_name_and_with_what_its_file_includes() {
    let root = folder(&[
        (
            "ws/p/msg/Goal.idl",
            "#include \"p/common.idl\"\nmodule p { module msg { @odd struct Goal { long a[MANY]; Row row; }; }; };",
        ),
        ("ws/p/common.idl", "module p { module msg { const long MANY = 3; struct Row { octet x; }; }; };"),
        ("q/msg/A.msg", "p/Goal goal\n"),
    ]);
    let (library, _) = load(root.path(), &["q"], &["ws"]).unwrap();
    assert_eq!(library.measure(&TypeName::ros("p", "msg", "Goal")).unwrap().fixed_bytes, 13);
    assert!(library.warnings()[0].what.contains("@odd is not known"));
    let included: Vec<_> =
        library.included_files().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(included, ["common.idl"]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let root = folder(&[
        ("p/msg/A.msg", "\u{feff}uint8 a\n"),
        ("p/msg/B.idl", "\u{feff}module p { module msg { struct B { long b; }; }; };"),
    ]);
    assert_eq!(load(root.path(), &["p"], &[]).unwrap().1.len(), 2);
}

/// Files, folders to look in, and what the refusal contains.
type Refusal<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);

#[test]
fn what_was_probably_meant_is_in_the_way_out() {
    let goal = ("other/p/msg/Goal.msg", "uint8 a\n");
    let cases: [Refusal<'_>; 4] = [
        (
            &[goal, ("q/msg/A.msg", "p/Gaol at\n")],
            &["other"],
            &["A.msg:1:1", "p/msg/Gaol is found nowhere in", "write p/msg/Goal"],
        ),
        (&[goal, ("q/msg/A.msg", "p/Pose at\n")], &["other"], &["help: it has p/msg/Goal"]),
        (
            &[("q/msg/A.msg", "p/Pose at\n")],
            &["othre"],
            &["there is no folder", "othre; name the folder that holds"],
        ),
        (
            &[("q/msg/A.msg", "Pozition at\n"), ("q/msg/Position.msg", "uint8 a\n")],
            &[],
            &["q/msg/Pozition is found nowhere", "write q/msg/Position"],
        ),
    ];
    for (files, search, expected) in cases {
        let root = folder(files);
        let refused = load(root.path(), &["q"], search).unwrap_err().to_string();
        for part in expected {
            assert!(refused.contains(part), "{refused}\nwithout {part}");
        }
    }
}

#[test]
fn a_wrong_file_is_shown_once_and_its_types_are_not_missed_besides() {
    let root = folder(&[
        ("q/msg/A.msg", "p/Goal one\np/Goal two\n"),
        ("q/msg/B.msg", "p/Goal one\n"),
        ("q/srv/C.srv", "p/Goal at\n---\n"),
        ("other/p/msg/Goal.msg", "float65 x\n"),
    ]);
    let refused = load(root.path(), &["q"], &["other"]).unwrap_err().to_string();
    assert_eq!(refused.matches("error:").count(), 1, "{refused}");
    assert!(refused.contains("float65 is not a type"), "{refused}");
}
