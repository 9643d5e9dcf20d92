//! A decoded value as YAML, in the manner of `ros2 topic echo`: a line for each field, lists of numbers in one line.

use std::fmt::Write as _;

use super::Tree;

/// The value as a YAML document that ends with a line break. Elements that were left out are a comment.
pub fn yaml(tree: &Tree) -> String {
    let mut out = String::new();
    match tree {
        Tree::Fields(fields) => write_fields(fields, 0, &mut out),
        other => {
            write_scalar(other, &mut out);
            out.push('\n');
        }
    }
    out
}

fn write_fields(fields: &[(String, Tree)], indent: usize, out: &mut String) {
    for (index, (name, value)) in fields.iter().enumerate() {
        // The first field of an element of a list stands behind its dash.
        if index > 0 || indent == 0 || out.ends_with('\n') {
            let _ = write!(out, "{:indent$}", "");
        }
        out.push_str(&key(name));
        out.push(':');
        write_value(value, indent, out);
    }
}

fn write_value(value: &Tree, indent: usize, out: &mut String) {
    match value {
        Tree::Fields(fields) => {
            out.push('\n');
            write_fields(fields, indent + 2, out);
        }
        Tree::List(list) if list.iter().any(|element| matches!(element, Tree::Fields(_))) => {
            out.push('\n');
            for element in list {
                match element {
                    Tree::Fields(fields) => {
                        let _ = write!(out, "{:indent$}- ", "");
                        write_fields(fields, indent + 2, out);
                    }
                    other => {
                        let _ = write!(out, "{:indent$}", "");
                        write_scalar(other, out);
                        out.push('\n');
                    }
                }
            }
        }
        Tree::List(list) => {
            let (shown, more) = match list.split_last() {
                Some((Tree::More(count), shown)) => (shown, format!("  # {count} more")),
                _ => (list.as_slice(), String::new()),
            };
            out.push_str(" [");
            for (index, element) in shown.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_scalar(element, out);
            }
            out.push(']');
            out.push_str(&more);
            out.push('\n');
        }
        scalar => {
            out.push(' ');
            write_scalar(scalar, out);
            out.push('\n');
        }
    }
}

fn write_scalar(value: &Tree, out: &mut String) {
    // A String takes everything.
    let _ = match value {
        Tree::Bool(value) => write!(out, "{value}"),
        Tree::Integer(value) => write!(out, "{value}"),
        Tree::Float(value) if value.is_nan() => write!(out, ".nan"),
        Tree::Float(value) if value.is_infinite() => {
            write!(out, "{}", if *value > 0.0 { ".inf" } else { "-.inf" })
        }
        Tree::Float(value) => write!(out, "{value:?}"),
        Tree::Text(text) => write!(out, "{}", quoted(text)),
        Tree::More(count) => write!(out, "# {count} more"),
        // Lists of lists do not come out of a decoder.
        Tree::List(_) | Tree::Fields(_) => Ok(()),
    };
}

/// Names of fields are words; others are quoted.
fn key(name: &str) -> String {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // Words that older YAML reads as truth values.
    let is_special = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
        .contains(&name.to_ascii_lowercase().as_str());
    let begins_with_digit = name.starts_with(|first: char| first.is_ascii_digit());
    if is_word && !is_special && !begins_with_digit && !name.is_empty() {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// In double quotes; what a terminal would obey is escaped.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Controls, and characters that break lines or change the direction of text.
            letter
                if letter.is_control()
                    || matches!(u32::from(letter), 0x2028..=0x202e | 0x2066..=0x2069 | 0xfeff) =>
            {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(list: &[(&str, Tree)]) -> Tree {
        Tree::Fields(list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    #[test]
    fn fields_lists_and_odd_texts_are_yaml() {
        let point = |x: f64| fields(&[("x", Tree::Float(x)), ("y", Tree::Float(f64::NAN))]);
        let tree = fields(&[
            ("header", fields(&[("sec", Tree::Integer(-1)), ("frame", Tree::Text("a\"\u{1b}\n".into()))])),
            ("ok", Tree::Bool(true)),
            ("points", Tree::List(vec![point(1.0), point(1e300), Tree::More(2)])),
            ("data", Tree::List(vec![Tree::Integer(1), Tree::Integer(2), Tree::More(7)])),
            ("none", Tree::List(vec![])),
        ]);
        let text = "header:\n  sec: -1\n  frame: \"a\\\"\\u001b\\n\"\nok: true\npoints:\n- x: 1.0\n  \"y\": .nan\n\
                    - x: 1e300\n  \"y\": .nan\n# 2 more\ndata: [1, 2]  # 7 more\nnone: []\n";
        assert_eq!(yaml(&tree), text);
    }
}
