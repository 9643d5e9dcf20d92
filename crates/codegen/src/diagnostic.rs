//! Faults of an input, shown as rustc shows them: the sentence, the file, the line, a caret, the way out.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// Longest part of a line that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 240;
/// Faults that are shown; the rest is counted.
const SHOWN_FAULTS_MAX: usize = 20;

/// The text of one input file, shared by everything that points into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path as messages show it.
    pub path: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

impl Source {
    /// A source of this path and text.
    pub fn new(path: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Number of the line that holds a byte offset, from 1.
    pub fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// A place in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub source: Source,
    /// The bytes in question.
    pub span: Range<usize>,
}

impl Place {
    /// The bytes `span` of `source`.
    pub fn new(source: &Source, span: Range<usize>) -> Self {
        Self { source: source.clone(), span }
    }
}

/// Whether an input is refused for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is generated.
    Error,
    /// Something is generated, but somebody should look.
    Warning,
}

/// One fault: a sentence that names the fact, where it is, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Error or warning.
    pub severity: Severity,
    /// The fact, one sentence without a full stop.
    pub what: String,
    /// Where, if it is in a file's text.
    pub place: Option<Place>,
    /// The way out, if it is not obvious.
    pub help: Option<String>,
}

impl Fault {
    /// An error without a place.
    pub fn new(what: impl Into<String>) -> Self {
        Self { severity: Severity::Error, what: what.into(), place: None, help: None }
    }

    /// An error at a place.
    pub fn at(place: Place, what: impl Into<String>) -> Self {
        Self { place: Some(place), ..Self::new(what) }
    }

    /// A fault as a warning.
    #[must_use]
    pub fn as_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }

    /// Adds the way out.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let what = visible(&self.what);
        let shown = self.place.as_ref().map(shown_line);
        let mut group = match (&shown, &self.place) {
            (Some(line), Some(place)) => level.primary_title(what.as_str()).element(
                Snippet::source(line.text.as_str())
                    .line_start(line.number)
                    .path(&*place.source.path)
                    .annotation(AnnotationKind::Primary.span(line.span.clone())),
            ),
            _ => annotate_snippets::Group::with_title(level.primary_title(what.as_str())),
        };
        let help = self.help.as_deref().map(visible);
        if let Some(help) = &help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        write!(out, "{}", Renderer::plain().render(&[group]))
    }
}

/// A line of a source, cut to what can be shown.
struct ShownLine {
    text: String,
    number: usize,
    span: Range<usize>,
}

fn shown_line(place: &Place) -> ShownLine {
    let text = &*place.source.text;
    let start = floor(text, place.span.start.min(text.len()));
    let end = floor(text, place.span.end.clamp(start, text.len()));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let from = line_start.max(floor(text, start.saturating_sub(SHOWN_BYTES_MAX / 2)));
    let to = line_end.min(floor(text, start + SHOWN_BYTES_MAX));
    // One character stays one byte wide or its own width; a tab would move the caret.
    let cleaned = |part: &str| -> String {
        part.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
    };
    let (before, marked) = (cleaned(&text[from..start]), cleaned(&text[start..end.min(to).max(start)]));
    let after = cleaned(&text[end.min(to).max(start)..to.max(start)]);
    let span = before.len()..before.len() + marked.len();
    ShownLine { text: before + &marked + &after, number: place.source.line(start), span }
}

/// The nearest offset at or before `at` that begins a character.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Names out of an input may hold control characters and be of any length.
fn visible(text: &str) -> String {
    let cut = floor(text, 1_000);
    let mut shown: String =
        text[..cut].chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    if cut < text.len() {
        shown.push('…');
    }
    shown
}

/// Everything that is wrong, in the order it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Adds a fault.
    pub fn push(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// True if one of them is an error.
    pub fn refuse(&self) -> bool {
        self.0.iter().any(|fault| fault.severity == Severity::Error)
    }

    /// Each of them once: what two topics refer to is read for both.
    #[must_use]
    pub fn unique(mut self) -> Self {
        let mut known = HashSet::new();
        self.0.retain(|fault| {
            let place = fault.place.as_ref().map(|place| (place.source.path.clone(), place.span.clone()));
            known.insert((fault.what.clone(), place))
        });
        self
    }

    /// The warnings, if there is no error.
    ///
    /// # Errors
    /// All faults, if one of them is an error.
    pub fn warnings(self) -> Result<Vec<Fault>, Self> {
        if self.refuse() { Err(self) } else { Ok(self.0) }
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().take(SHOWN_FAULTS_MAX).enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write!(out, "{fault}")?;
        }
        match self.0.len().saturating_sub(SHOWN_FAULTS_MAX) {
            0 => Ok(()),
            more => write!(out, "\nand {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_shown_with_file_line_and_caret() {
        let source = Source::new("msg/Imu.msg", "int32 a\nfloat65 b\n");
        let fault = Fault::at(Place::new(&source, 8..15), "float65 is not a type").help("write float64");
        let expected = "error: float65 is not a type
 --> msg/Imu.msg:2:1
  |
2 | float65 b
  | ^^^^^^^
  |
  = help: write float64";
        assert_eq!(fault.to_string(), expected);
    }

    #[test]
    fn a_line_of_any_length_and_any_bytes_is_shown_in_little() {
        let source = Source::new("x.msg", format!("{}é\u{7}\t{}", "ä".repeat(5_000), "ö".repeat(100_000)));
        for at in [0, 1, 9_999, 10_000, 10_001, 10_003, 150_000, 1_000_000] {
            let shown = Fault::at(Place::new(&source, at..at + 3), "x".repeat(1 << 20)).to_string();
            assert!(shown.len() < 3_000, "{}", shown.len());
            assert!(!shown.contains('\u{7}'));
        }
    }
}
