//! Names of topics, services, types and programs, as they stand in a table.

use super::table::Table;
use super::{Program, TOPIC_NAME_BYTES_MAX};
use crate::diagnostic::{Fault, Faults, Place};
use crate::model::TypeName;
use crate::nearest::nearest;

/// Puts the words of a group in the place of their placeholders.
pub(super) type Filled<'a> = &'a dyn Fn(&str) -> String;

/// Refuses what is no name of a topic.
pub(super) fn check_name(name: &str, place: &Place) -> Result<(), Fault> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'/';
    let parts = name.strip_prefix('/').unwrap_or(name);
    let is_name = name.len() <= TOPIC_NAME_BYTES_MAX
        && name.bytes().all(is_letter)
        && !parts
            .split('/')
            .any(|part| part.is_empty() || part.starts_with(|first: char| first.is_ascii_digit()));
    if is_name {
        return Ok(());
    }
    let help = if name.contains(['{', '}']) {
        "a placeholder is replaced only in a group that names its words under expand".to_owned()
    } else {
        format!(
            "a topic's name has parts of letters, digits and _, none of which begins with a digit, / between them, and at most {TOPIC_NAME_BYTES_MAX} bytes"
        )
    };
    Err(Fault::at(place.clone(), format!("\"{name}\" is not a name that a topic may have")).help(help))
}

/// `pkg/msg/Name`, or without `msg`.
pub(super) fn type_name(text: &str) -> Option<TypeName> {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [package, name] if !package.is_empty() && !name.is_empty() => {
            Some(TypeName::ros(package, "msg", name))
        }
        [package, kind, name] if ![package, kind, name].iter().any(|part| part.is_empty()) => {
            Some(TypeName::new(text))
        }
        _ => None,
    }
}

/// Indices of the programs at one end of a topic.
pub(super) fn ends(
    table: &mut Table<'_>,
    key: &str,
    filled: Filled<'_>,
    (programs, faults): (&[Program], &mut Faults),
) -> Result<Vec<usize>, Fault> {
    let mut found: Vec<usize> = Vec::new();
    for (text, span) in table.texts(key)? {
        let name = filled(text);
        match programs.iter().position(|program| program.name == name) {
            Some(index) if found.contains(&index) => {
                faults.push(
                    Fault::at(table.at(span), format!("{name} is named twice in {key}")).help("remove one"),
                );
            }
            Some(index) => found.push(index),
            None => {
                let what = format!("{name} is none of the programs");
                let meant = nearest(&name, programs.iter().map(|program| program.name.as_str()));
                let help = match meant {
                    Some(meant) => format!("write {meant}, or add {name} under [programs]"),
                    None => format!(
                        "write {name} = {{ language = \"rust\" }} under [programs], or \"external\" if it is not generated"
                    ),
                };
                faults.push(Fault::at(table.at(span), what).help(help));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
