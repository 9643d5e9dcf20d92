//! Text → words of IDL, each with its place.

use std::ops::Range;

use crate::diagnostic::{Fault, Place, Source};

/// Kind of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Name,
    /// A number as it is written.
    Number,
    /// A text without its quotes, escapes resolved.
    Text(String),
    /// A character without its quotes.
    Character(String),
    /// One sign, or `::`.
    Sign,
    /// End of the file.
    End,
}

/// One word.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

/// The words of a source, and the files that it includes.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) words: Vec<Token>,
    pub(super) includes: Vec<(String, Range<usize>)>,
}

/// All words of a source. Lines of a preprocessor are passed over if they guard, and refused if they do not include.
pub(super) fn read(source: &Source) -> Result<Tokens, Fault> {
    let text = &*source.text;
    let (mut tokens, mut includes) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let refuse = |length: usize, what: &str| Fault::at(Place::new(source, at..at + length), what);
        let length = match first {
            _ if first.is_whitespace() => first.len_utf8(),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                rest.find("*/")
                    .ok_or_else(|| refuse(2, "this comment has no end").help("write */ behind it"))?
                    + 2
            }
            '#' => {
                let line = rest.lines().next().unwrap_or_default();
                if let Some(word) = unsupported_directive(line) {
                    let what = format!("#{word} of a preprocessor is not supported");
                    return Err(refuse(line.len(), &what).help("write the definitions out"));
                }
                if let Some(path) = included(line) {
                    let path = path.ok_or_else(|| {
                        refuse(line.len(), "this line names no file").help("write #include \"pkg/msg/T.idl\"")
                    })?;
                    includes.push((path.to_owned(), at..at + line.len()));
                }
                line.len()
            }
            '"' | '\'' => {
                let (content, length) = quoted(rest, first).ok_or_else(|| {
                    refuse(1, "this text has no end in its line").help("write a closing quote")
                })?;
                let kind = if first == '"' { Kind::Text(content) } else { Kind::Character(content) };
                tokens.push(Token { kind, span: at..at + length });
                length
            }
            _ if first.is_ascii_alphabetic() || first == '_' => {
                let length =
                    rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                tokens.push(Token { kind: Kind::Name, span: at..at + length });
                length
            }
            _ if first.is_ascii_digit() => {
                let length = number_length(rest);
                tokens.push(Token { kind: Kind::Number, span: at..at + length });
                length
            }
            _ => {
                let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
                tokens.push(Token { kind: Kind::Sign, span: at..at + length });
                length
            }
        };
        at += length;
    }
    tokens.push(Token { kind: Kind::End, span: text.len()..text.len() });
    Ok(Tokens { words: tokens, includes })
}

fn number_length(rest: &str) -> usize {
    let mut before = '0';
    let goes_on = |c: char| {
        let is_part =
            c.is_ascii_alphanumeric() || c == '.' || (matches!(c, '+' | '-') && matches!(before, 'e' | 'E'));
        before = c;
        !is_part
    };
    rest.find(goes_on).unwrap_or(rest.len())
}

/// The file that a line of a preprocessor includes, if it does: between quotes or angle brackets.
fn included(line: &str) -> Option<Option<&str>> {
    let rest = line[1..].trim_start().strip_prefix("include")?.trim();
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let path = quoted.or_else(|| rest.strip_prefix('<').and_then(|rest| rest.split_once('>')));
    Some(path.map(|(path, _)| path).filter(|path| !path.is_empty()))
}

/// The word of a line of a preprocessor that cannot be passed over.
fn unsupported_directive(line: &str) -> Option<&str> {
    let word = line[1..].split_whitespace().next().unwrap_or_default();
    let is_known = matches!(word, "include" | "ifndef" | "define" | "endif" | "pragma");
    (!is_known).then_some(word)
}

/// The content of a text up to its closing quote, and its whole length.
fn quoted(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\n' => return None,
            '\\' => match letters.next()?.1 {
                'n' => content.push('\n'),
                't' => content.push('\t'),
                other => content.push(other),
            },
            _ if letter == quote => return Some((content, at + 1)),
            _ => content.push(letter),
        }
    }
    None
}
