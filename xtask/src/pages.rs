//! ARCHITECTURE.md and CONTRIBUTING.md say what is so: every crate has its line, and code is shown as it stands.

use std::fs;
use std::path::Path;

/// Lists every crate once, in the tree below this line.
const TREE: (&str, &str) = ("ARCHITECTURE.md", "\ncrates/\n");
/// Shows excerpts of files: a line that ends with a link to a file, then a block of code.
const EXAMPLES: &str = "CONTRIBUTING.md";

/// Reports crates that the tree leaves out or invents, and excerpts that are not in their file.
pub fn check(root: &Path, faults: &mut Vec<String>) {
    let read = |path: &Path| fs::read_to_string(root.join(path)).unwrap_or_default();
    let folders = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let crates: Vec<String> = folders
        .filter(|folder| folder.path().join("Cargo.toml").is_file())
        .map(|folder| folder.file_name().to_string_lossy().into_owned())
        .collect();
    tree(&read(Path::new(TREE.0)), &crates, faults);
    excerpts(&read(Path::new(EXAMPLES)), &|file| read(Path::new(file)), faults);
}

fn tree(page: &str, crates: &[String], faults: &mut Vec<String>) {
    let lines = page.split(TREE.1).nth(1).unwrap_or_default().lines();
    // Deeper lines continue the one before.
    let rows = lines.map_while(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let named: Vec<&str> = rows.filter_map(|row| Some(row.split_once('/')?.0)).collect();
    for name in crates.iter().filter(|name| !named.contains(&name.as_str())) {
        faults.push(format!("{}: the tree leaves out crates/{name}: give it a line", TREE.0));
    }
    for name in named.iter().filter(|name| !crates.iter().any(|known| known == *name)) {
        faults.push(format!("{}: there is no crates/{name}: remove its line", TREE.0));
    }
}

/// Every block marked `rust` or `c` is found, line for line, in the file that the line before it links to.
fn excerpts(page: &str, read: &dyn Fn(&str) -> String, faults: &mut Vec<String>) {
    let mut linked = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if matches!(line, "```rust" | "```c") {
            let code: String =
                lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
            let Some(file) = linked else {
                faults.push(format!(
                    "{EXAMPLES}: a block of code without a link to its file in the line before"
                ));
                continue;
            };
            if !read(file).contains(&code) {
                let first = code.lines().next().unwrap_or_default().trim();
                faults.push(format!("{EXAMPLES}: `{first}` is not so in {file}: copy it again"));
            }
        } else if !line.is_empty() {
            linked = line.rsplit_once("](").and_then(|(_, rest)| Some(rest.split_once(')')?.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_the_tree_leaves_out_and_one_that_is_gone_are_faults() {
        let page =
            "```text\ncrates/\n  a/    one\n        deeper/: no crate\n  gone/ two\nc/     three\n```\n";
        let mut faults = Vec::new();
        tree(page, &["a".into(), "b".into()], &mut faults);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("crates/b") && faults[1].contains("crates/gone"), "{faults:?}");
    }

    #[test]
    fn an_excerpt_that_is_not_in_its_file_is_a_fault() {
        let page = "See [it](a.rs):\n\n```rust\nlet x = 1;\n```\n\nand\n\n```rust\nlet y;\n```\n";
        let faults_with = |file: &str| {
            let mut faults = Vec::new();
            excerpts(page, &|_| file.to_owned(), &mut faults);
            faults
        };
        assert_eq!(faults_with("fn f() {\nlet x = 1;\n}\n").len(), 1, "the second has no file");
        let faults = faults_with("let x = 2;\n");
        assert!(faults.len() == 2 && faults[0].contains("a.rs"), "{faults:?}");
    }
}
