//! Finds the cause in a failed command's output: a log of CI is long, and a reader begins at its end.

/// Lines that begin a cause: a test's panic and its name, a test that may hang, a compiler's error, pytest's and ctest's summaries.
const CAUSES: &[&str] = &[
    "panicked at",
    "... FAILED",
    "has been running for over",
    "error:",
    "error[",
    "FAILED ",
    "(Failed)",
    "AssertionError",
];

/// Lines kept from each such line on.
const AFTER_A_CAUSE: usize = 8;

/// Lines kept in all; the first causes are worth more than the last.
const MAX_LINES: usize = 80;

/// Lines of the end, for a command that names no cause.
const LAST_LINES: usize = 12;

/// Takes lines of output, and keeps those that tell why it failed.
#[derive(Default)]
pub struct Excerpt {
    causes: Vec<String>,
    last: std::collections::VecDeque<String>,
    /// Lines still to keep after a cause.
    ahead: usize,
}

impl Excerpt {
    /// The next line of output.
    pub fn handle_line(&mut self, line: &str) {
        if CAUSES.iter().any(|cause| line.contains(cause)) {
            self.ahead = AFTER_A_CAUSE;
        }
        if self.ahead > 0 {
            self.ahead -= 1;
            if self.causes.len() < MAX_LINES {
                self.causes.push(line.to_owned());
            }
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }

    /// The lines that were kept, each behind a bar, beginning with a line break; empty if nothing came.
    pub fn text(&self) -> String {
        let lines: Vec<&String> =
            if self.causes.is_empty() { self.last.iter().collect() } else { self.causes.iter().collect() };
        lines.iter().map(|line| format!("\n  | {line}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> String {
        let mut excerpt = Excerpt::default();
        for line in lines {
            excerpt.handle_line(line);
        }
        excerpt.text()
    }

    #[test]
    fn a_failed_test_is_found_among_those_that_passed() {
        let mut lines = vec!["test a ... ok"; 500];
        lines.insert(100, "test b ... FAILED");
        lines.insert(200, "thread 'b' panicked at src/lib.rs:3:5:");
        lines.insert(201, "two is not three");
        let text = of(&lines);
        assert!(text.contains("test b ... FAILED"), "{text}");
        assert!(text.contains("panicked at src/lib.rs:3:5:\n  | two is not three"), "{text}");
        assert!(text.lines().count() < 20, "{text}");
    }

    #[test]
    fn a_test_that_hangs_is_named() {
        let hangs = "test c has been running for over 60 seconds";
        let lines = [&["test a ... ok"; 50][..], &[hangs], &["test b ... ok"; 50]].concat();
        assert!(of(&lines).starts_with(&format!("\n  | {hangs}")));
    }

    #[test]
    fn a_command_that_names_no_cause_shows_its_end() {
        let lines: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = of(&lines);
        assert!(text.ends_with("\n  | 99") && text.starts_with("\n  | 88"), "{text}");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn a_thousand_causes_are_cut() {
        assert_eq!(of(&["error: no"; 1000]).lines().count(), MAX_LINES + 1);
    }
}
