//! One line of the protocol: a verb and `key=value` words.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write};
use std::str::FromStr;

/// Longest line accepted or written, in bytes, without the newline.
pub(crate) const LINE_BYTES_MAX: usize = 8192;

/// A parsed or growing line: `verb key=value key=value …`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    verb: String,
    words: BTreeMap<String, String>,
    /// The rest of an `error` line, as it stands.
    sentence: String,
}

/// Why a line could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// A word without `=`.
    #[error("the word \"{word}\" has no '='; words after the verb are key=value")]
    NotAPair {
        /// The word.
        word: String,
    },
    /// No verb.
    #[error("the line is empty; a line starts with a verb")]
    Empty,
    /// A verb or key with a character that is not printable ASCII.
    #[error("\"{word}\" is no verb or key: those are printable ASCII")]
    NotAWord {
        /// The word.
        word: String,
    },
    /// A line longer than `LINE_BYTES_MAX`.
    #[error("a line of {length_bytes} bytes; the longest is {LINE_BYTES_MAX}")]
    TooLong {
        /// Its length.
        length_bytes: usize,
    },
    /// A key that is needed is absent.
    #[error("\"{verb}\" needs {key}=…")]
    Missing {
        /// The line's verb.
        verb: String,
        /// The key.
        key: String,
    },
    /// A value of the wrong form.
    #[error("{key}={value} is not {wanted}")]
    Unreadable {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// The form that it must have.
        wanted: &'static str,
    },
}

impl Line {
    /// A line with only a verb.
    pub fn new(verb: &str) -> Self {
        Self { verb: verb.to_owned(), ..Self::default() }
    }

    /// An `error` line. Newlines in the sentence become spaces.
    pub fn error(sentence: &dyn Display) -> Self {
        let mut sentence = sentence.to_string().replace(['\n', '\r'], " ");
        let mut end = sentence.len().min(LINE_BYTES_MAX - "error ".len());
        while !sentence.is_char_boundary(end) {
            end -= 1;
        }
        sentence.truncate(end);
        Self { verb: "error".to_owned(), words: BTreeMap::new(), sentence }
    }

    /// Adds a word; spaces and percent signs in the value are escaped.
    pub fn with(mut self, key: &str, value: impl Display) -> Self {
        self.words.insert(key.to_owned(), value.to_string());
        self
    }

    /// Adds a word if there is a value.
    pub fn with_some(self, key: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Takes out all words whose key starts with `prefix`.
    pub(crate) fn without(mut self, prefix: &str) -> Self {
        self.words.retain(|key, _| !key.starts_with(prefix));
        self
    }

    /// The verb.
    pub fn verb(&self) -> &str {
        &self.verb
    }

    /// The sentence of an `error` line.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// The value of a key, unescaped.
    pub fn word(&self, key: &str) -> Option<&str> {
        self.words.get(key).map(String::as_str)
    }

    /// The value of a key, read as a number or word; `None` if the key is absent.
    pub fn read<T: FromStr>(&self, key: &str, wanted: &'static str) -> Result<Option<T>, LineError> {
        let Some(value) = self.word(key) else {
            return Ok(None);
        };
        let unreadable = |_| LineError::Unreadable { key: key.to_owned(), value: value.to_owned(), wanted };
        value.parse().map(Some).map_err(unreadable)
    }

    /// As [`Self::read`], for a key that must be there.
    pub fn require<T: FromStr>(&self, key: &str, wanted: &'static str) -> Result<T, LineError> {
        self.read(key, wanted)?
            .ok_or_else(|| LineError::Missing { verb: self.verb.clone(), key: key.to_owned() })
    }

    /// The comma-separated values of a key; none if it is absent or empty.
    pub fn list(&self, key: &str) -> Vec<String> {
        let value = self.word(key).unwrap_or("");
        value.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// All keys that start with `prefix`, without it, with their values.
    pub fn with_prefix(&self, prefix: &str) -> BTreeMap<String, String> {
        let strip =
            |(key, value): (&String, &String)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone()));
        self.words.iter().filter_map(strip).collect()
    }
}

impl FromStr for Line {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, LineError> {
        if text.len() > LINE_BYTES_MAX {
            return Err(LineError::TooLong { length_bytes: text.len() });
        }
        let text = text.trim_end_matches(['\n', '\r']);
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        if verb.is_empty() {
            return Err(LineError::Empty);
        }
        let mut line = Self::new(printable(verb)?);
        if verb == "error" {
            line.sentence = rest.to_owned();
            return Ok(line);
        }
        for word in rest.split(' ').filter(|word| !word.is_empty()) {
            let Some((key, value)) = word.split_once('=') else {
                return Err(LineError::NotAPair { word: word.to_owned() });
            };
            line.words.insert(printable(key)?.to_owned(), value.replace("%20", " ").replace("%25", "%"));
        }
        Ok(line)
    }
}

fn printable(word: &str) -> Result<&str, LineError> {
    if word.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(word);
    }
    Err(LineError::NotAWord { word: word.escape_debug().to_string() })
}

impl Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.verb)?;
        if self.verb == "error" {
            return write!(out, " {}", self.sentence);
        }
        for (key, value) in &self.words {
            write!(out, " {key}=")?;
            for character in value.chars() {
                match character {
                    ' ' | '\n' | '\r' | '\t' => out.write_str("%20")?,
                    '%' => out.write_str("%25")?,
                    other => out.write_char(other)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_survives_the_wire() {
        let line = Line::new("ready").with("setting.qos", "keep last 50%25").with("x", 7);
        assert_eq!(line.to_string(), "ready setting.qos=keep%20last%2050%2525 x=7");
        assert_eq!(line.to_string().parse::<Line>().unwrap(), line);
    }

    #[test]
    fn error_keeps_its_sentence_whole_and_on_one_line() {
        let line = Line::error(&"cannot bind\n127.0.0.1: a=b");
        assert_eq!(line.to_string(), "error cannot bind 127.0.0.1: a=b");
        let read: Line = line.to_string().parse().unwrap();
        assert_eq!(read.sentence(), "cannot bind 127.0.0.1: a=b");
    }

    #[test]
    fn faults_are_named() {
        assert_eq!("".parse::<Line>(), Err(LineError::Empty));
        assert!(matches!("\n\n x=1".parse::<Line>(), Err(LineError::NotAWord { .. })));
        assert!(matches!("run fast".parse::<Line>(), Err(LineError::NotAPair { .. })));
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        assert!(matches!(long.parse::<Line>(), Err(LineError::TooLong { .. })));
        let line: Line = "run messages=many".parse().unwrap();
        let error = line.require::<u64>("messages", "a number").unwrap_err();
        assert_eq!(error.to_string(), "messages=many is not a number");
        let error = line.require::<u64>("seconds", "a number").unwrap_err();
        assert_eq!(error.to_string(), "\"run\" needs seconds=…");
    }

    #[test]
    fn arbitrary_bytes_never_panic() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..10_000 {
            let bytes: Vec<u8> = (0..state % 40)
                .map(|i| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i | 1);
                    (state >> 56) as u8
                })
                .collect();
            state = state.wrapping_add(0x1234_5678_9ABC_DEF1);
            let _ = String::from_utf8_lossy(&bytes).parse::<Line>();
        }
    }
}
