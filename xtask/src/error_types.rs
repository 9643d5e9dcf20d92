//! Finds errors that are only texts: `Result<T, String>` says nothing that a caller could match.

use std::path::Path;

use syn::visit::{self, Visit};

/// Reports each `Result` in a Rust file whose error is a `String`. The commands of `xtask` are exempt: their errors are for eyes alone.
pub fn check(file: &Path, text: &str, faults: &mut Vec<String>) {
    let is_counted =
        file.extension().is_some_and(|extension| extension == "rs") && !file.starts_with("xtask");
    // Cheaper than to parse every file.
    let may_have = text.contains("Result<") && text.contains("String");
    if !is_counted || !may_have {
        return;
    }
    let Ok(parsed) = syn::parse_file(text) else { return };
    let mut finder = Finder::default();
    finder.visit_file(&parsed);
    if finder.count > 0 {
        faults.push(format!(
            "{}: {} times Result<_, String>: make the error a type with thiserror, one sentence for each cause",
            file.display(),
            finder.count
        ));
    }
}

#[derive(Default)]
struct Finder {
    count: usize,
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if segment.ident == "Result"
            && let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments
            && let Some(syn::GenericArgument::Type(syn::Type::Path(error))) = arguments.args.iter().nth(1)
            && error.path.segments.last().is_some_and(|last| last.ident == "String")
        {
            self.count += 1;
        }
        visit::visit_path_segment(self, segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(text: &str) -> usize {
        let mut faults = Vec::new();
        check(Path::new("crates/lab/src/x.rs"), text, &mut faults);
        faults.len()
    }

    #[test]
    fn texts_as_errors_are_found_wherever_the_type_stands() {
        assert_eq!(faults_of("fn f() -> Result<u8, String> { Ok(1) }"), 1);
        assert_eq!(faults_of("type A = Option<Result<(),\n String>>;"), 1);
        assert_eq!(faults_of("fn f(g: impl Fn() -> std::result::Result<(), String>) {}"), 1);
        assert_eq!(faults_of("fn f() -> Result<Vec<String>, Fault> {}"), 0);
        assert_eq!(faults_of("fn f() -> Result<BTreeMap<String, String>, Fault> {}"), 0);
        let mut faults = Vec::new();
        check(Path::new("xtask/src/x.rs"), "fn f() -> Result<u8, String> { Ok(1) }", &mut faults);
        assert!(faults.is_empty(), "{faults:?}");
    }
}
