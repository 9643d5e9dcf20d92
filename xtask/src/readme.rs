//! README.md cannot drift: its commands are run, its table is made from a committed run, and its programs are
//! those of `examples/`, which are run against each other.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::evidence::{self, Tie};
use crate::{programs, shell};

const TABLE_BEGIN: &str = "<!-- table of ";
const TABLE_END: &str = "<!-- end of table -->";

/// Languages of `examples/`: how a block of README.md is marked, and how a file ends.
const EXAMPLES: [(&str, &str); 4] = [("python", "py"), ("rust", "rs"), ("cpp", "cpp"), ("c", "c")];

/// And what is shown in one language alone.
const MORE_EXAMPLES: [(&str, &str); 2] = [("rust", "typed.rs"), ("python", "typed.py")];

type Check = JoinHandle<Result<(), String>>;

/// The check that [`begin`] began.
static BEGUN: Mutex<Option<Check>> = Mutex::new(None);

/// Begins the step "README" beside those that follow. Its output comes at its end, in one piece.
pub fn begin() -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let line = format!("'{}' test README", program.display());
    let check = std::thread::spawn(move || shell::run_whole(&shell::root(), &line));
    *BEGUN.lock().unwrap_or_else(PoisonError::into_inner) = Some(check);
    Ok(())
}

/// Waits for the check that was begun, or makes it: when the step is run by itself, or a second time.
pub fn finish() -> Result<(), String> {
    let begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner).take();
    begun.map_or_else(run, |check| check.join().unwrap_or_else(|_| Err("the check panicked".into())))
}

/// Checks the table and the programs, then runs every block marked `sh` in the checkout's root, in order; the first
/// that fails ends it.
pub fn run() -> Result<(), String> {
    let text = read()?;
    if with_table(&text, "target/release/noctule")? != text {
        return Err("the table in README.md is not that of its run; `cargo xtask readme` rewrites it".into());
    }
    check_examples(&text)?;
    let blocks = blocks(&text, "sh");
    if blocks.is_empty() {
        return Err("README.md has no block marked sh: a README without a command".into());
    }
    for block in blocks.iter().filter(|block| !block.contains("cargo xtask test")) {
        shell::run(block)?;
    }
    Ok(())
}

/// Every example is shown as it is.
fn check_examples(markdown: &str) -> Result<(), String> {
    let both = EXAMPLES.into_iter().flat_map(|(language, extension)| {
        ["publish", "subscribe"].map(|example| (language, format!("{example}.{extension}")))
    });
    let more = MORE_EXAMPLES.map(|(language, file)| (language, file.to_owned()));
    for (language, file) in both.chain(more) {
        let name = format!("examples/{file}");
        let text = fs::read_to_string(shell::root().join(&name)).map_err(|e| format!("{name}: {e}"))?;
        if !blocks(markdown, language).iter().any(|block| block == code(&text)) {
            return Err(format!("README.md does not show {name} as it is; copy all below its first comment"));
        }
    }
    Ok(())
}

/// A program from its first line on that is neither comment nor attribute.
fn code(program: &str) -> &str {
    let is_heading = |line: &str| {
        line.trim().is_empty() || ["//", "/*", "#![", "\"\"\""].iter().any(|mark| line.starts_with(mark))
    };
    let heading = program.split_inclusive('\n').take_while(|line| is_heading(line)).map(str::len).sum();
    &program[heading..]
}

/// Rewrites the table from the run that its first line names.
pub fn rewrite() -> Result<(), String> {
    programs::build()?;
    let text = with_table(&read()?, programs::NOCTULE)?;
    fs::write(shell::root().join("README.md"), text).map_err(|e| format!("README.md: {e}"))
}

fn read() -> Result<String, String> {
    fs::read_to_string(shell::root().join("README.md")).map_err(|e| format!("README.md: {e}"))
}

/// `text` with the table that `program`, the command `noctule`, makes of the run that the text names.
fn with_table(text: &str, program: &str) -> Result<String, String> {
    let (before, rest) = text.split_once(TABLE_BEGIN).ok_or("README.md has no `<!-- table of DIR -->`")?;
    let (name, rest) = rest.split_once(" -->").ok_or("README.md: the table's first line has no end")?;
    let (_, after) = rest.split_once(TABLE_END).ok_or("README.md has no `<!-- end of table -->`")?;
    let changed = match evidence::of_run(name)? {
        Tie::Committed => "",
        Tie::Changed(_) => " and changes that were not committed",
        Tie::Missing(why) => {
            return Err(format!(
                "{name} is of a commit that is not in the repository ({why}); measure again at one"
            ));
        }
    };
    let line = format!("{program} lab report {name} --markdown --changed '{changed}'");
    let table = shell::output(&line).ok_or_else(|| format!("`{line}` failed; run it to see why"))?;
    Ok(format!("{before}{TABLE_BEGIN}{name} -->\n{table}\n{TABLE_END}{after}"))
}

/// The fenced blocks of one language.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut inside: Option<String> = None;
    for line in markdown.lines() {
        match (&mut inside, line.trim()) {
            (None, fence) if fence.strip_prefix("```") == Some(language) => inside = Some(String::new()),
            (Some(_), "```") => blocks.extend(inside.take()),
            (Some(block), _) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_of_the_language_are_taken() {
        let text = "# x\n```sh\na\nb\n```\n```text\nc\n```\n```sh\nd\n```\n";
        assert_eq!(blocks(text, "sh"), ["a\nb\n", "d\n"]);
    }

    #[test]
    fn code_begins_below_the_heading() {
        for text in ["//! x\n#![allow(y)] // z\n\nuse a;\n\n// b\n", "/* x */\n\nuse a;\n\n// b\n"] {
            assert_eq!(code(text), "use a;\n\n// b\n");
        }
        assert_eq!(code("// nothing else\n"), "");
    }

    #[test]
    fn the_examples_of_the_readme_are_those_that_are_run() {
        let text = read().unwrap();
        assert_eq!(check_examples(&text), Ok(()));
        let error = check_examples(&text.replace("listener", "reader")).unwrap_err();
        assert!(error.contains("subscribe.py"), "{error}");
    }
}
