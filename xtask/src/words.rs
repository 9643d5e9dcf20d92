//! Refuses words that the glossary replaces, in prose and as parts of identifiers, so that they do not come back.

use std::path::Path;

use crate::shell;

/// The page that decides on words; its last table lists those that it replaces.
const GLOSSARY: &str = "docs/glossary.md";
/// Where replaced words may still stand: the table itself, and records of the past.
const NOT_RENAMED: &[&str] = &[GLOSSARY, "CHANGELOG.md", "benchmarks/"];
/// Files whose words are ours.
const OURS: &[&str] =
    &["rs", "c", "h", "cpp", "hpp", "py", "pyi", "js", "html", "css", "j2", "toml", "sh", "md"];

/// `who` may stand after these; nothing else is a person.
const PEOPLE: &[&str] = &[
    "anybody",
    "author",
    "engineer",
    "everybody",
    "everyone",
    "human",
    "humans",
    "liar",
    "nobody",
    "one",
    "operator",
    "people",
    "person",
    "somebody",
    "someone",
    "those",
    "user",
    "users",
];

/// How a word is joined to the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    /// Of another phrase: other characters are between them.
    Apart,
    /// By a space.
    Space,
    /// In one identifier: `last_told`, `LastTold`.
    Identifier,
}

struct Word {
    /// In lower case.
    letters: String,
    joint: Joint,
}

/// A row's words, and what to write instead.
struct Replaced {
    text: String,
    words: Vec<Word>,
    instead: String,
}

/// The words that the glossary replaces.
pub struct Words(Vec<Replaced>);

impl Words {
    /// Reads the glossary.
    pub fn read() -> Result<Words, String> {
        let glossary = std::fs::read_to_string(shell::root().join(GLOSSARY));
        Ok(Words::of(&glossary.map_err(|error| format!("{GLOSSARY}: {error}"))?))
    }

    /// The rows of the last table: words in backquotes in the first column, and what to write instead.
    fn of(glossary: &str) -> Words {
        let table = glossary.rsplit("| instead of | write |").next().unwrap_or_default();
        let rows =
            table.lines().filter_map(|row| row.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
        let replaced = rows.flat_map(|(old, new)| {
            old.split('`').skip(1).step_by(2).map(|old| Replaced {
                text: old.to_owned(),
                words: split(old),
                instead: new.to_owned(),
            })
        });
        Words(replaced.collect())
    }

    /// Reports each replaced word in a file.
    pub fn check(&self, file: &Path, text: &str, faults: &mut Vec<String>) {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let path = file.to_string_lossy();
        if !OURS.contains(&extension) || NOT_RENAMED.iter().any(|folder| path.starts_with(folder)) {
            return;
        }
        let mut before = String::new();
        for (number, line) in text.lines().enumerate() {
            let words = split(line);
            if machines_that_are_who(&words, &before) {
                faults.push(format!(
                    "{path}:{}: `who` is no machine: write which node, thread or program ({GLOSSARY})",
                    number + 1
                ));
            }
            before = words.last().map_or(before, |word| word.letters.clone());
            for Replaced { text, words: old, instead } in &self.0 {
                if words.windows(old.len()).any(|found| is_same(old, found)) {
                    faults.push(format!("{path}:{}: `{text}`: write {instead} ({GLOSSARY})", number + 1));
                }
            }
        }
    }
}

/// Whether a line has a `who` that follows no word for people; `before` is the last word of the lines before it.
fn machines_that_are_who(words: &[Word], before: &str) -> bool {
    let mut before = before;
    words.iter().enumerate().any(|(at, word)| {
        let is_in_identifier =
            [Some(word), words.get(at + 1)].iter().flatten().any(|word| word.joint == Joint::Identifier);
        let is_person = PEOPLE.contains(&before) && !is_in_identifier;
        before = &word.letters;
        word.letters == "who" && !is_person
    })
}

/// Whether words are those of a row. Those that the row joins by a space may stand in an identifier, too.
fn is_same(old: &[Word], found: &[Word]) -> bool {
    old.iter().zip(found).enumerate().all(|(at, (old, found))| {
        let is_joined = at == 0 || found.joint == old.joint || found.joint == Joint::Identifier;
        old.letters == found.letters && is_joined
    })
}

/// The words of a line; identifiers are split at `_` and before capitals.
fn split(line: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut joint = Joint::Apart;
    let mut before = ' ';
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_alphanumeric() {
            let ends_acronym =
                before.is_uppercase() && letters.peek().is_some_and(|next| next.is_lowercase());
            let begins = letter.is_uppercase() && (before.is_lowercase() || ends_acronym);
            match words.last_mut().filter(|_| before.is_alphanumeric() && !begins) {
                Some(word) => word.letters.extend(letter.to_lowercase()),
                None => {
                    let joint = if before.is_alphanumeric() { Joint::Identifier } else { joint };
                    words.push(Word { letters: letter.to_lowercase().collect(), joint });
                }
            }
            joint = Joint::Apart;
        } else if before.is_alphanumeric() || letter == '_' && before == '_' {
            joint = match letter {
                '_' => Joint::Identifier,
                ' ' => Joint::Space,
                _ => Joint::Apart,
            };
        } else {
            joint = Joint::Apart;
        }
        before = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(line: &str) -> usize {
        let table = "| instead of | write |\n|---|---|\n| `told of`, `rebel`, `stand_in` | acknowledged |\n";
        let mut faults = Vec::new();
        Words::of(table).check(Path::new("crates/lab/src/x.rs"), line, &mut faults);
        faults.len()
    }

    #[test]
    fn a_replaced_word_is_found_in_prose_and_in_identifiers() {
        let lines = [
            "// What it is Told of.",
            "last_rebel: u64",
            "enum RebelKind {",
            "A_REBEL",
            "told_of()",
            "StandIn",
        ];
        for line in lines {
            assert_eq!(faults(line), 1, "{line}");
        }
        assert_eq!(faults("told of a rebel"), 2);
    }

    #[test]
    fn only_people_are_who() {
        for line in ["// a user who asks", "people\n// who ask", "whom, whose"] {
            assert_eq!(faults(line), 0, "{line}");
        }
        for line in
            ["// Who asks?", "a node who asks", "fn who_asks()", "somebody_who()", "nodes\n/// who ask"]
        {
            assert_eq!(faults(line), 1, "{line}");
        }
    }

    #[test]
    fn longer_words_and_words_apart_are_others() {
        for line in ["rebels and untold officers", "told, of", "stand in the way", "rebelKind_", "rebell_ion"]
        {
            assert_eq!(faults(line), usize::from(line.contains("Kind")), "{line}");
        }
    }
}
