//! `@name` and `@name(arguments)`: known ones are understood or refused, others warned about.

use super::{Kind, Parser};
use crate::diagnostic::{Fault, Place};

/// Annotations and comment before a definition or a member.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    pub(super) comment: Vec<String>,
    pub(super) unit: Option<String>,
    /// The default, as `.msg` would write it.
    pub(super) default: Option<String>,
    pub(super) is_key: bool,
    pub(super) has_value: bool,
}

impl Parser<'_> {
    pub(super) fn annotations(&mut self) -> Result<Annotations, Fault> {
        let mut all = Annotations::default();
        while self.accept("@") {
            let (name, span) = self.name()?;
            let (texts, plain) =
                if self.accept("(") { self.arguments()? } else { (Vec::new(), String::new()) };
            match name.as_str() {
                "verbatim" => {
                    // The first text is the language, the others are lines of the comment.
                    let lines = texts.iter().skip(1).flat_map(|text| text.lines());
                    all.comment
                        .extend(lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()));
                }
                "unit" => all.unit = texts.into_iter().next(),
                "default" => all.default = Some(default(texts, &plain)),
                "key" => all.is_key = true,
                "value" => all.has_value = true,
                "final" | "appendable" | "nested" | "id" | "autoid" | "min" | "max" | "range" | "topic"
                | "hashid" | "must_understand" | "default_literal" => {}
                "extensibility" if !plain.eq_ignore_ascii_case("mutable") => {}
                "mutable" | "extensibility" | "optional" | "external" => {
                    let place = Place::new(self.source, span);
                    return Err(Fault::at(
                        place,
                        format!(
                            "@{} is not supported: plain CDR has no place for it",
                            if name == "extensibility" { "mutable" } else { &name }
                        ),
                    )
                    .help("remove it; a sequence of at most one element is an optional value"));
                }
                _ => {
                    let place = Place::new(self.source, span);
                    self.known.warnings.push(
                        Fault::at(place, format!("@{name} is not known, and has no effect")).as_warning(),
                    );
                }
            }
        }
        Ok(all)
    }

    /// The texts between parentheses, and all other words behind the last `=`.
    fn arguments(&mut self) -> Result<(Vec<String>, String), Fault> {
        let (mut texts, mut plain, mut depth) = (Vec::new(), String::new(), 1);
        loop {
            match self.token().kind.clone() {
                Kind::End => return self.expect(")").map(|()| (texts, plain)),
                Kind::Text(text) => {
                    self.next();
                    texts.push(text);
                }
                _ => {
                    let (word, _) = self.next();
                    match word {
                        "(" => depth += 1,
                        ")" => depth -= 1,
                        "=" => plain.clear(),
                        other => plain.push_str(other),
                    }
                    if depth == 0 {
                        return Ok((texts, plain));
                    }
                }
            }
        }
    }
}

/// A default as `.msg` writes it; ROS 2 writes that of an array as a text, `"(1, 2)"`.
fn default(texts: Vec<String>, plain: &str) -> String {
    let Some(text) = texts.into_iter().next() else { return plain.to_owned() };
    match text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        Some(list) => format!("[{}]", list.trim_end_matches(',')),
        None => text,
    }
}
