//! Which names ROS 2 allows, by the patterns of rosidl_adapter.

/// Lower-case letters, digits and single underscores, a letter first, no underscore last: packages and fields.
pub fn is_field_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    starts && letters && !name.ends_with('_') && !name.contains("__")
}

/// Letters and digits, an upper-case letter first: messages, services, actions.
pub fn is_type_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_uppercase());
    starts && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// As [`is_type_name`], or the name of a part of a service or an action, as messages of ROS 2 itself refer to them.
pub fn is_referred_type_name(name: &str) -> bool {
    const SUFFIXES: [&str; 5] = ["_Request", "_Response", "_SendGoal", "_GetResult", "_FeedbackMessage"];
    let mut name = name;
    for suffix in SUFFIXES {
        name = name.strip_suffix(suffix).unwrap_or(name);
    }
    is_type_name(name)
}

/// Upper-case letters, digits and single underscores, a letter first, no underscore last.
pub fn is_constant_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_uppercase());
    let letters = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    starts && letters && !name.ends_with('_') && !name.contains("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_rosidl_allows() {
        for (name, field, type_name, constant) in [
            ("a", true, false, false),
            ("a_b1", true, false, false),
            ("a__b", false, false, false),
            ("a_", false, false, false),
            ("_a", false, false, false),
            ("1a", false, false, false),
            ("A", false, true, true),
            ("Ab1", false, true, false),
            ("A_B", false, false, true),
            ("A__B", false, false, false),
            ("A_1", false, false, true),
            ("A_", false, false, false),
            ("é", false, false, false),
            ("", false, false, false),
        ] {
            assert_eq!(
                (is_field_name(name), is_type_name(name), is_constant_name(name)),
                (field, type_name, constant),
                "{name}"
            );
        }
        assert!(is_referred_type_name("Fibonacci_SendGoal_Request"));
        assert!(!is_referred_type_name("Fibonacci_Goals"));
    }
}
