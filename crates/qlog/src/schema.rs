//! Schema of one core's events: their names and their sentences.

use std::fmt::Write as _;

use crate::field::{Field, FieldsOfFile, Put};

/// An event of a core.
pub trait Event {
    /// Of the core's schema, as it stands in a file before the colon.
    fn schema(&self) -> &'static str;

    /// Its name in a file, behind the colon.
    fn name(&self) -> &'static str;

    /// Calls `put` with each of its fields in a file.
    fn fields(&self, put: &mut Put<'_>);
}

/// The events of one core: their names and sentences.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Stands before the colon of an event's name in a file.
    pub name: &'static str,
    /// Name of an event, and its sentence with `{field}` where a field stands.
    pub sentences: &'static [(&'static str, &'static str)],
    /// Words of the field `trigger`, and each as the end of a sentence.
    pub reasons: &'static [&'static [(&'static str, &'static str)]],
}

impl Schema {
    /// An event of a file as a sentence; `None` if there is none of this name, or it lacks a field.
    pub fn sentence(&self, name: &str, get: &FieldsOfFile<'_, '_>) -> Option<String> {
        let &(_, mut rest) = self.sentences.iter().find(|(known, _)| *known == name)?;
        let mut out = String::new();
        while let Some((before, behind)) = rest.split_once('{') {
            let (key, after) = behind.split_once('}')?;
            out.push_str(before);
            // Writing to a String cannot fail.
            let _ = match get(key)? {
                Field::Number(number) => write!(out, "{number}"),
                Field::Word(word) if key == "trigger" => write!(out, "{}", self.reason(word)?),
                Field::Word(word) => write!(out, "{word}"),
                Field::Flag(flag) => write!(out, "{}", if flag { "yes" } else { "no" }),
            };
            rest = after;
        }
        out.push_str(rest);
        Some(out)
    }

    /// An event as a sentence; `None` if it is of another schema.
    pub fn sentence_of(&self, event: &dyn Event) -> Option<String> {
        let mut fields: Vec<(&str, Kept)> = Vec::new();
        event.fields(&mut |key, field| fields.push((key, Kept::of(field))));
        self.sentence(event.name(), &|key| {
            fields.iter().find(|(known, _)| *known == key).map(|(_, kept)| kept.field())
        })
    }

    fn reason(&self, word: &str) -> Option<&'static str> {
        let mut reasons = self.reasons.iter().copied().flatten();
        reasons.find(|(known, _)| *known == word).map(|(_, sentence)| *sentence)
    }
}

/// A field that outlives the event.
enum Kept {
    Number(u64),
    Word(String),
    Flag(bool),
}

impl Kept {
    fn of(field: Field<'_>) -> Kept {
        match field {
            Field::Number(number) => Kept::Number(number),
            Field::Word(word) => Kept::Word(word.to_owned()),
            Field::Flag(flag) => Kept::Flag(flag),
        }
    }

    fn field(&self) -> Field<'_> {
        match self {
            Kept::Number(number) => Field::Number(*number),
            Kept::Word(word) => Field::Word(word),
            Kept::Flag(flag) => Field::Flag(*flag),
        }
    }
}
