//! Runs the commands a reader of README.md would type: every block marked `sh`, in order.

use std::fs;

use crate::shell;

/// Runs all blocks in the checkout's root; the first that fails ends it.
pub fn run() -> Result<(), String> {
    let text = fs::read_to_string(shell::root().join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    let blocks = blocks(&text, "sh");
    if blocks.is_empty() {
        return Err("README.md has no block marked sh: a README without a command".into());
    }
    for block in blocks {
        shell::run(&block)?;
    }
    Ok(())
}

/// The fenced blocks of one language.
pub fn blocks(markdown: &str, language: &str) -> Vec<String> {
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
    use super::blocks;

    #[test]
    fn only_blocks_of_the_language_are_taken() {
        let text = "# x\n```sh\na\nb\n```\n```text\nc\n```\n```sh\nd\n```\n";
        assert_eq!(blocks(text, "sh"), ["a\nb\n", "d\n"]);
    }
}
