use super::store::Store;
use super::*;

fn declared(descriptor: ParameterDescriptor, value: impl Into<ParameterValue>) -> Store {
    let mut store = Store::default();
    store.handle_declaration("p", value.into(), descriptor).unwrap();
    store
}

fn set(store: &mut Store, value: impl Into<ParameterValue>) -> Result<ParameterChanges, ParameterError> {
    let values = vec![("p".to_owned(), value.into())];
    store.check(&values)?;
    Ok(store.handle_values(values))
}

#[test]
fn a_parameter_keeps_its_kind_unless_it_is_declared_otherwise() {
    let mut store = declared(ParameterDescriptor::default(), 5);
    assert_eq!(set(&mut store, 6).unwrap().changed, [("p".to_owned(), ParameterValue::Integer(6))]);
    let error = set(&mut store, "six").unwrap_err();
    assert_eq!(error.to_string(), "parameter p is of type {integer}, setting it to {string} is not allowed");
    let deleted = set(&mut store, ParameterValue::NotSet).unwrap_err();
    assert!(matches!(deleted, ParameterError::Type { given: ParameterType::NotSet, .. }));
    assert_eq!(store.value("p"), Some(&ParameterValue::Integer(6)));

    let dynamic = ParameterDescriptor { dynamic_typing: true, ..Default::default() };
    let mut store = declared(dynamic, 5);
    set(&mut store, "six").unwrap();
    assert_eq!(store.descriptor("p").unwrap().1, ParameterType::String);
    assert_eq!(set(&mut store, ParameterValue::NotSet).unwrap().deleted, ["p"]);
    assert!(matches!(set(&mut store, 1), Err(ParameterError::NotDeclared { .. })));
}

#[test]
fn what_is_read_only_out_of_range_or_too_long_is_refused_with_a_sentence() {
    let read_only = ParameterDescriptor { read_only: true, ..Default::default() };
    let error = set(&mut declared(read_only, 5), 5).unwrap_err();
    assert_eq!(error.to_string(), "parameter p cannot be set because it is read-only");

    let range = Some(ParameterRange::Integer { from: -4, to: 5, step: 3 });
    let mut store = declared(ParameterDescriptor { range, ..Default::default() }, -1);
    for value in [-4, 2, 5] {
        set(&mut store, value).unwrap();
    }
    for value in [-5, -3, 6, i32::MAX] {
        let error = set(&mut store, value).unwrap_err();
        assert_eq!(error.to_string(), "parameter p can be -4 to 5 in steps of 3, of type {integer}");
    }
    let range = Some(ParameterRange::Double { from: 0.0, to: 1.0, step: 0.1 });
    let mut store = declared(ParameterDescriptor { range, ..Default::default() }, 0.30000000000000004);
    set(&mut store, 1.0).unwrap();
    for value in [0.25, 1.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(set(&mut store, value), Err(ParameterError::Range { .. })), "{value}");
    }
    let wrong = Store::default().handle_declaration(
        "p",
        1.into(),
        ParameterDescriptor { range, ..Default::default() },
    );
    assert!(matches!(wrong, Err(ParameterError::Range { .. })));

    let mut store = declared(ParameterDescriptor::default(), "");
    set(&mut store, "x".repeat(PARAMETER_BYTES_MAX)).unwrap();
    let error = set(&mut store, "x".repeat(PARAMETER_BYTES_MAX + 1)).unwrap_err();
    assert!(matches!(error, ParameterError::TooLong { bytes: 65_537, .. }));
}

#[test]
fn names_and_their_number_have_limits() {
    let mut store = Store::default();
    let mut declare = |name: &str| store.handle_declaration(name, 1.into(), ParameterDescriptor::default());
    for name in ["", "a b", "a/b", "a\n", &"x".repeat(256)] {
        assert!(matches!(declare(name), Err(ParameterError::Name { .. })), "{name:?}");
    }
    for number in 0..PARAMETERS_MAX {
        declare(&format!("p{number}")).unwrap();
    }
    assert!(matches!(declare("p0"), Err(ParameterError::Declared { .. })));
    assert!(matches!(declare("more"), Err(ParameterError::Full { .. })));
}

#[test]
fn names_are_listed_by_prefix_and_depth_as_rclcpp_does() {
    let mut store = Store::default();
    for name in ["a", "b.c", "b.d.e", "b.d.f", "bc.x"] {
        store.handle_declaration(name, 1.into(), ParameterDescriptor::default()).unwrap();
    }
    let names = |prefixes: &[&str], depth| {
        let prefixes: Vec<String> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        let found = store.names(&prefixes, depth);
        (found.names.join(" "), found.prefixes.join(" "))
    };
    let texts = |names: &str, prefixes: &str| (names.to_owned(), prefixes.to_owned());
    assert_eq!(names(&[], 0), texts("a b.c b.d.e b.d.f bc.x", "b b.d bc"));
    assert_eq!(names(&[], 1), texts("a", ""));
    assert_eq!(names(&[], 2), texts("a b.c bc.x", "b bc"));
    assert_eq!(names(&["b"], 0), texts("b.c b.d.e b.d.f", "b b.d"));
    assert_eq!(names(&["b"], 1), texts("b.c", "b"));
    assert_eq!(names(&["a", "b.d"], 1), texts("a b.d.e b.d.f", "b.d"));
    assert_eq!(names(&["none"], 0), texts("", ""));
}

#[test]
fn values_of_each_kind_are_the_same_in_a_message_and_unknown_kinds_are_none() {
    let values = [
        ParameterValue::NotSet,
        true.into(),
        i64::MIN.into(),
        0.5.into(),
        "text".into(),
        vec![1u8, 2].into(),
        vec![true, false].into(),
        vec![1i64, -1].into(),
        vec![0.5, 1.5].into(),
        vec!["a".to_owned(), String::new()].into(),
    ];
    for (number, value) in values.into_iter().enumerate() {
        let message = value.to_message();
        assert_eq!(usize::from(message.r#type), number);
        assert_eq!(ParameterValue::of_message(message), Some(value));
    }
    let message = crate::generated::rcl_interfaces::msg::ParameterValue { r#type: 10, ..Default::default() };
    assert_eq!(ParameterValue::of_message(message), None);
}
