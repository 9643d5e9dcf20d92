//! Docstrings of `python/noctule/_native.pyi`: those of the extension module, which are the `///` of `python/src`, so that
//! editors show them. `cargo xtask docstrings` writes them; `tidy` refuses a page that differs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const STUB: &str = "python/noctule/_native.pyi";
const SOURCES: &str = "python/src";

/// Class, or empty for a function of the module; then its method or property, or empty for the class itself.
type Item = (String, String);
/// The lines of each item's doc.
type Docs = BTreeMap<Item, Vec<String>>;

/// Rewrites the stub.
pub fn rewrite(root: &Path) -> Result<(), String> {
    let (stub, items) = read(root)?;
    fs::write(root.join(STUB), with_docstrings(&stub, &items).0).map_err(|e| format!("{STUB}: {e}"))
}

/// Reports a stub that is not what [`rewrite`] writes, and items without a docstring.
pub fn check(root: &Path, faults: &mut Vec<String>) {
    let (stub, items) = match read(root) {
        Ok(read) => read,
        Err(error) => return faults.push(error),
    };
    let (wanted, missing) = with_docstrings(&stub, &items);
    faults.extend(missing.iter().map(|(class, name)| {
        format!("{STUB}: {class}.{name} has no docstring: give its item in {SOURCES} a `///`")
    }));
    if wanted != stub {
        faults.push(format!("{STUB}: its docstrings are not those of {SOURCES}: `cargo xtask docstrings`"));
    }
}

fn read(root: &Path) -> Result<(String, Docs), String> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let mut items = BTreeMap::new();
    for file in fs::read_dir(root.join(SOURCES)).map_err(|e| format!("{SOURCES}: {e}"))?.flatten() {
        if file.path().extension().is_some_and(|extension| extension == "rs") {
            documented(&read(&file.path())?, &mut items);
        }
    }
    Ok((read(&root.join(STUB))?, items))
}

/// Collects the docs of classes, their methods and fields, functions and exceptions.
fn documented(source: &str, items: &mut Docs) {
    let (mut docs, mut class, mut is_for_python) = (Vec::new(), String::new(), false);
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let text = line.trim();
        if let Some(doc) = text.strip_prefix("///") {
            docs.push(doc.strip_prefix(' ').unwrap_or(doc).to_owned());
            continue;
        }
        if text.starts_with("#[") {
            is_for_python |=
                ["#[pyclass", "#[pymethods", "#[pyfunction"].iter().any(|mark| text.starts_with(mark));
            if !text.ends_with(']') {
                lines.by_ref().find(|line| line.ends_with(']'));
            }
            continue;
        }
        if text.starts_with("pyo3::create_exception!") {
            exception(lines.by_ref().take_while(|line| *line != ");"), items);
        }
        let text = text.strip_prefix("pub(crate) ").unwrap_or(text);
        let name = |rest: &str| {
            rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().map(str::to_owned)
        };
        if line == "}" {
            class.clear();
        } else if !line.starts_with(' ') {
            let kinds = ["struct ", "impl ", "fn "].into_iter();
            let found = kinds.filter_map(|kind| Some((kind, name(text.strip_prefix(kind)?)?))).next();
            match found.filter(|_| std::mem::take(&mut is_for_python)) {
                Some(("fn ", function)) => drop(items.insert((String::new(), function), docs.clone())),
                Some((kind, found)) => {
                    class = found;
                    if kind == "struct " {
                        items.insert((class.clone(), String::new()), docs.clone());
                    }
                }
                None => {}
            }
        } else if !class.is_empty() && !docs.is_empty() {
            let member =
                text.strip_prefix("fn ").or_else(|| text.contains(": ").then_some(text)).and_then(name);
            if let Some(member) = member {
                let member = if member == "new" { "__new__".to_owned() } else { member };
                items.insert((class.clone(), member), docs.clone());
            }
        }
        docs.clear();
    }
}

/// Of an exception the name is the second argument and the docstring the last.
fn exception<'a>(arguments: impl Iterator<Item = &'a str>, items: &mut Docs) {
    let arguments: Vec<&str> = arguments.map(|line| line.trim().trim_end_matches(',')).collect();
    if let [_, name, .., docs] = arguments[..] {
        items.insert((name.to_owned(), String::new()), vec![docs.trim_matches('"').to_owned()]);
    }
}

/// The stub with the docstrings of these items in place of its own, and the items that have none. Methods with two
/// underscores are Python's, and say themselves what they are.
fn with_docstrings(stub: &str, items: &Docs) -> (String, Vec<Item>) {
    let plain = without_docstrings(stub);
    let (mut out, mut missing) = (String::new(), Vec::new());
    let (mut class, mut name) = (String::new(), String::new());
    for line in plain.lines() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let named = |keyword: &str| Some(text.strip_prefix(keyword)?.split(['(', ':']).next()?.to_owned());
        if let Some(begun) = named("class ") {
            (class, name) = (begun, String::new());
        } else if let Some(begun) = named("def ") {
            name = begun;
            if indent == 0 {
                class.clear();
            }
        }
        let (head, is_end) = match line.strip_suffix(": ...") {
            Some(head) => (head, true),
            None => (line.strip_suffix(':').unwrap_or(line), text.starts_with("class ")),
        };
        let item = (class.clone(), name.clone());
        let docs = items.get(&item).filter(|docs| is_end && !docs.is_empty());
        match docs {
            Some(docs) => {
                let docstring = docstring(docs, &" ".repeat(indent + 4));
                out.push_str(&format!("{head}:\n{docstring}"));
            }
            None => {
                if is_end && !name.starts_with("__") {
                    missing.push(item);
                }
                out.push_str(&format!("{line}\n"));
            }
        }
    }
    (out, missing)
}

fn docstring(docs: &[String], indent: &str) -> String {
    match docs {
        [line] => format!("{indent}\"\"\"{line}\"\"\"\n"),
        lines => {
            let lines: String = lines[1..]
                .iter()
                .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{indent}{line}\n") })
                .collect();
            format!("{indent}\"\"\"{}\n{lines}{indent}\"\"\"\n", docs[0])
        }
    }
}

/// Removes the docstrings that [`with_docstrings`] adds: a class or function without a body gets its `...` again.
fn without_docstrings(stub: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut lines = stub.lines().peekable();
    while let Some(line) = lines.next() {
        let text = line.trim();
        if !text.starts_with("\"\"\"") {
            out.push(line.to_owned());
            continue;
        }
        if text.len() < 6 || !text.ends_with("\"\"\"") {
            lines.by_ref().find(|line| line.trim_end().ends_with("\"\"\""));
        }
        let indent = line.len() - text.len();
        let has_body = lines
            .peek()
            .is_some_and(|next| !next.is_empty() && next.len() - next.trim_start().len() >= indent);
        if let Some(head) = out.last_mut().filter(|_| !has_body) {
            head.push_str(" ...");
        }
    }
    out.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// A thing.\n///\n/// It has two lines.\n#[pyclass(module = \"x\", get_all)]\npub(crate) struct Thing {\n    \
        /// Its length.\n    pub(crate) length: usize,\n}\n\n/// Not for Python.\nstruct Other {\n}\n\n#[pymethods]\nimpl Thing {\n    \
        /// Grow\n    /// it.\n    #[pyo3(signature = (by,\n        much=true))]\n    fn grow(&self, by: u32) {\n        let x: u32 = 1;\n    }\n}\n\n\
        impl Thing {\n    /// Hidden.\n    fn shrink(&self) {\n    }\n}\n\npyo3::create_exception!(\n    x,\n    Wrong,\n    Base,\n    \"It went wrong.\"\n);\n";
    const STUB: &str = "class Wrong(Base): ...\n\n@final\nclass Thing:\n    @property\n    def length(self) -> int: ...\n    def grow(\n        self,\n    \
        ) -> None: ...\n    def shrink(self) -> None: ...\n    def __len__(self) -> int: ...\n";

    #[test]
    fn docs_of_the_sources_become_docstrings_of_the_stub() {
        let mut items = BTreeMap::new();
        documented(SOURCE, &mut items);
        let (text, missing) = with_docstrings(STUB, &items);
        assert_eq!(missing, [("Thing".to_owned(), "shrink".to_owned())]);
        let wanted = "class Wrong(Base):\n    \"\"\"It went wrong.\"\"\"\n\n@final\nclass Thing:\n    \"\"\"A thing.\n\n    It has two lines.\n    \"\"\"\n    \
            @property\n    def length(self) -> int:\n        \"\"\"Its length.\"\"\"\n    def grow(\n        self,\n    ) -> None:\n        \"\"\"Grow\n        it.\n        \
            \"\"\"\n    def shrink(self) -> None: ...\n    def __len__(self) -> int: ...\n";
        assert_eq!(text, wanted);
        assert_eq!(without_docstrings(&text), STUB);
        assert_eq!(with_docstrings(&text, &items).0, text);
    }
}
