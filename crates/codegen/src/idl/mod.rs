//! The subset of OMG IDL 4.2 that users of ROS 2 and DDS write: modules, structs, enums, typedefs and constants.
//!
//! `module pkg { module msg { struct T …` is `pkg/msg/T`; with one module the second is `msg`. An enum is a `uint32` whose
//! variants are constants of each struct that has it. What is not supported is refused by its name and line.

mod parser;
mod tokens;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::diagnostic::{Fault, Faults, Place, Source};
use crate::model::Struct;
use tokens::Tokens;

/// Most files that one file includes, directly or by others.
const INCLUDES_MAX: usize = 1_000;

/// All structs of a file, and what somebody should look at.
#[derive(Debug)]
pub struct Parsed {
    /// Structs in the order of the file.
    pub structs: Vec<Struct>,
    /// Those of the files that it includes.
    pub included: Vec<Struct>,
    /// Paths of the files that it includes.
    pub files: Vec<Arc<str>>,
    /// Unknown annotations.
    pub warnings: Vec<Fault>,
}

/// Finds a file that another includes by these words; `None` if it is nowhere.
pub type Find<'f> = dyn Fn(&Source, &str) -> Result<Option<Source>, Fault> + 'f;

/// Reads a file of IDL without the files that it includes.
///
/// # Errors
/// The first thing that is wrong or not supported, with its place.
pub fn parse(source: &Source) -> Result<Parsed, Faults> {
    parse_with(source, &|_, _| Ok(None))
}

/// Reads a file of IDL and the files that it includes, each once. One that is found nowhere is passed over: types are also known by their whole names.
///
/// # Errors
/// The first thing that is wrong or not supported, with its place.
pub fn parse_with(source: &Source, find: &Find<'_>) -> Result<Parsed, Faults> {
    let mut files =
        Files { find, read: Vec::new(), known: HashSet::new(), open: Vec::new(), missing: Vec::new() };
    files.add(source.clone())?;
    let mut known = parser::Known::default();
    known.missing = files.missing;
    for (source, tokens) in &files.read {
        let mut parser = parser::Parser::new(source, tokens, known);
        parser.file()?;
        known = parser.finish();
    }
    let of_file = |found: &Struct| found.place.as_ref().is_some_and(|place| place.source.path == source.path);
    let (structs, included) = known.structs.into_iter().partition(of_file);
    let mut paths: Vec<Arc<str>> = files.read.into_iter().map(|(source, _)| source.path).collect();
    paths.pop();
    Ok(Parsed { structs, included, files: paths, warnings: known.warnings })
}

/// Files in the order in which a compiler would have them before it.
struct Files<'f> {
    find: &'f Find<'f>,
    read: Vec<(Source, Tokens)>,
    known: HashSet<Arc<str>>,
    /// Those that include the one that is read.
    open: Vec<Arc<str>>,
    missing: Vec<String>,
}

impl Files<'_> {
    fn add(&mut self, source: Source) -> Result<(), Fault> {
        self.known.insert(source.path.clone());
        self.open.push(source.path.clone());
        let tokens = tokens::read(&source)?;
        for (path, span) in &tokens.includes {
            let place = Place::new(&source, Range::clone(span));
            let Some(found) = (self.find)(&source, path)? else {
                self.missing.push(path.clone());
                continue;
            };
            if let Some(first) = self.open.iter().position(|open| *open == found.path) {
                let ring = self.open[first..].iter().chain([&found.path]);
                let ring: Vec<&str> = ring.map(|path| &**path).collect();
                return Err(Fault::at(
                    place,
                    format!("{} includes itself: {}", found.path, ring.join(" > ")),
                )
                .help("move what several files need into one that includes none of them"));
            }
            if self.known.contains(&found.path) {
                continue;
            }
            if self.known.len() > INCLUDES_MAX {
                return Err(Fault::at(place, format!("more than {INCLUDES_MAX} files are included"))
                    .help("include less"));
            }
            self.add(found)?;
        }
        self.open.pop();
        self.read.push((source, tokens));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
