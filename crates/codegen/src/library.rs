//! All types of a run, found where their packages lie, and checked: everything they refer to is there, nothing contains
//! itself, nothing is larger than a message may be.

mod search;

pub use search::read_source;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::diagnostic::{Fault, Faults};
use crate::model::{Element, Field, Named, Shape, Struct, TypeName};
use crate::size::Span;

/// How deep structs may contain each other. Decoders of CDR allow 128 levels, and a sequence of structs takes two.
pub const NESTING_MAX: usize = 60;
/// The most that all arrays of a type may take, in bytes: a default value of it is made without being asked.
pub const FIXED_BYTES_MAX: u64 = 64 << 20;

/// Types by name, with all that they refer to.
#[derive(Debug, Default)]
pub struct Library {
    search: search::Search,
    types: BTreeMap<TypeName, Named>,
    /// Files that were refused: what they should define is not missed besides.
    refused: BTreeSet<String>,
    /// Structs of files that others include: taken where no folder has a file of theirs.
    included: BTreeMap<TypeName, Named>,
    included_files: BTreeSet<PathBuf>,
    warnings: Vec<Fault>,
    measures: HashMap<TypeName, Measure>,
}

/// Size and nesting of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Levels of structs, 1 for a struct of primitives.
    pub nesting: usize,
    /// Least size of a value, padding aside.
    pub fixed_bytes: u64,
    /// The size as CDR; `None` if it holds something without a bound.
    pub span: Option<Span>,
    /// True if every value has the same size.
    pub is_fixed: bool,
}

impl Library {
    /// A library that looks for packages in these folders, in order, after those that are added.
    pub fn new(search: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { search: search::Search::new(search), ..Self::default() }
    }

    /// Reads all definitions of a package: a folder that holds `msg`, `srv` or `action`.
    ///
    /// Gives the names of the types that it defines, sorted; [`resolve`](Self::resolve) reads what they refer to.
    ///
    /// # Errors
    /// The folder or a file cannot be read, or a definition is wrong.
    pub fn add_package(&mut self, folder: &Path) -> Result<Vec<TypeName>, Faults> {
        let package = self.search.package(folder)?;
        let mut faults = Faults::default();
        let mut names = Vec::new();
        for file in package.files()? {
            match file.read(&self.search) {
                Ok(read) => {
                    for defined in self.take(read) {
                        names.push(defined.name().clone());
                        self.insert(defined, &mut faults);
                    }
                }
                Err(found) => faults.0.extend(found.0),
            }
        }
        names.sort();
        faults.warnings().map(|_| names)
    }

    /// [`add_package`](Self::add_package) of a package by its name, where it is found.
    ///
    /// # Errors
    /// It is found nowhere, or as [`add_package`](Self::add_package).
    pub fn add_found(&mut self, package: &str) -> Result<Vec<TypeName>, Faults> {
        let folder = self.search.folder_of(package);
        let missing = || {
            Fault::new(format!("the package {package} is found nowhere"))
                .help("add the folder that holds it to search")
        };
        self.add_package(&folder.ok_or_else(missing)?)
    }

    /// Reads a file of IDL; gives the names of the types that it defines.
    ///
    /// # Errors
    /// The file cannot be read, or a definition is wrong or not supported.
    pub fn add_idl(&mut self, path: &Path) -> Result<Vec<TypeName>, Faults> {
        let source = read_source(path)?;
        let (mut faults, mut names) = (Faults::default(), Vec::new());
        let read = self.search.read_idl(&source)?;
        for defined in self.take(read) {
            names.push(defined.name().clone());
            self.insert(defined, &mut faults);
        }
        faults.warnings().map(|_| names)
    }

    /// The types of a file; what else was found in it is kept.
    fn take(&mut self, read: search::Read) -> Vec<Named> {
        let included = read.included.into_iter().map(|defined| (defined.name().clone(), defined));
        self.included.extend(included);
        self.included_files.extend(read.files);
        for fault in read.warnings {
            if !self.warnings.contains(&fault) {
                self.warnings.push(fault);
            }
        }
        read.types
    }

    /// Warnings about the files that were read.
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }

    /// Files that others include.
    pub fn included_files(&self) -> impl Iterator<Item = &Path> {
        self.included_files.iter().map(PathBuf::as_path)
    }

    /// Adds a type that is already read. A second type of the same name is a fault, unless it is the same type.
    pub fn insert(&mut self, defined: Named, faults: &mut Faults) {
        let name = defined.name().clone();
        let place = defined.place().cloned();
        if let Some(first) = self.types.insert(name.clone(), defined) {
            let first_path = first.place().map(|place| place.source.path.clone());
            // Read once because it was referred to, and again with its package.
            if first_path == place.as_ref().map(|place| place.source.path.clone()) {
                return;
            }
            let what = format!(
                "{name} is defined a second time; the first is in {}",
                first_path.as_deref().unwrap_or("-")
            );
            let fault = match place {
                Some(place) => Fault::at(place, what),
                None => Fault::new(what),
            };
            faults.push(fault.help("remove one, or name only one of the two packages"));
        }
    }

    /// Reads and checks everything that these types refer to.
    ///
    /// # Errors
    /// A type is found nowhere, is wrong, contains itself, nests too deeply or is too large.
    pub fn resolve<'a>(&mut self, names: impl IntoIterator<Item = &'a TypeName>) -> Result<(), Faults> {
        let mut faults = Faults::default();
        for name in names {
            self.resolve_one(name, None, &mut Vec::new(), &mut faults);
        }
        faults.warnings().map(|_| ())
    }

    /// A type by its name. All types that it refers to are there once it is [resolved](Self::resolve).
    pub fn get(&self, name: &TypeName) -> Option<&Named> {
        self.types.get(name)
    }

    /// A struct by its name.
    pub fn structure(&self, name: &TypeName) -> Option<&Struct> {
        match self.types.get(name)? {
            Named::Struct(defined) => Some(defined),
            Named::Enum(_) => None,
        }
    }

    /// All types, in the order of their names.
    pub fn types(&self) -> impl Iterator<Item = &Named> {
        self.types.values()
    }

    /// Size and nesting of a resolved type.
    pub fn measure(&self, name: &TypeName) -> Option<Measure> {
        self.measures.get(name).copied()
    }

    /// Size and nesting of a field, if its type is resolved.
    pub fn field_measure(&self, field: &Field) -> Option<Measure> {
        let of = match &field.kind.element {
            Element::Named(name) => self.measure(name)?,
            other => element_measure(other),
        };
        Some(shaped(of, field.kind.shape))
    }

    /// Names of all types that a type refers to, itself left out.
    pub fn referred(&self, name: &TypeName) -> BTreeSet<TypeName> {
        let mut found = BTreeSet::new();
        let mut waiting = vec![name.clone()];
        while let Some(name) = waiting.pop() {
            let fields = self.structure(&name).map_or(&[][..], |defined| defined.fields.as_slice());
            for field in fields {
                if let Element::Named(inner) = &field.kind.element
                    && found.insert(inner.clone())
                {
                    waiting.push(inner.clone());
                }
            }
        }
        found
    }

    /// The measure of a type, reading it and what it refers to first if need be. `path` holds what contains it.
    fn resolve_one(
        &mut self,
        name: &TypeName,
        at: Option<&Field>,
        path: &mut Vec<TypeName>,
        faults: &mut Faults,
    ) -> Option<Measure> {
        if let Some(known) = self.measures.get(name) {
            return Some(*known);
        }
        let mut refuse = |what: String, help: &str| {
            let place = at.and_then(|field| field.place.clone());
            let fault = Fault { place, ..Fault::new(what) };
            faults.push(if help.is_empty() { fault } else { fault.help(help) });
            None
        };
        if path.contains(name) {
            let cycle = path.iter().skip_while(|outer| *outer != name).chain([name]);
            let cycle: Vec<&str> = cycle.map(TypeName::as_str).collect();
            return refuse(
                format!("{} contains itself: {}", name, cycle.join(" > ")),
                "a message has a finite size; remove one of these fields",
            );
        }
        if path.len() >= NESTING_MAX {
            return refuse(
                format!("{name} lies more than {NESTING_MAX} structs deep"),
                "flatten some of the structs",
            );
        }
        if self.refused.contains(search::file_of(name)) {
            return None;
        }
        if !self.types.contains_key(name) {
            match self.search.find(name) {
                Ok(Some(read)) => {
                    for defined in self.take(read) {
                        self.types.entry(defined.name().clone()).or_insert(defined);
                    }
                }
                Ok(None) => {
                    if let Some(defined) = self.included.remove(name) {
                        self.types.insert(name.clone(), defined);
                    }
                }
                Err(found) => {
                    faults.0.extend(found.0);
                    self.refused.insert(search::file_of(name).to_owned());
                    return None;
                }
            }
        }
        let Some(defined) = self.types.get(name).cloned() else {
            if faults.0.iter().any(|fault| fault.what.starts_with(&format!("{name} is found nowhere"))) {
                return None;
            }
            let (what, help) = self.search.not_found(name);
            let place = at.and_then(|field| field.type_place.clone().or(field.place.clone()));
            faults.push(Fault { place, help: Some(help), ..Fault::new(what) });
            return None;
        };
        let measure = match &defined {
            Named::Enum(_) => {
                Measure { nesting: 0, fixed_bytes: 4, span: Some(Span::primitive(4)), is_fixed: true }
            }
            Named::Struct(defined) => {
                path.push(name.clone());
                let measure = self.measure_struct(defined, path, faults);
                path.pop();
                measure?
            }
        };
        self.measures.insert(name.clone(), measure);
        Some(measure)
    }

    fn measure_struct(
        &mut self,
        defined: &Struct,
        path: &mut Vec<TypeName>,
        faults: &mut Faults,
    ) -> Option<Measure> {
        let mut all = Some(Measure { nesting: 0, fixed_bytes: 0, span: Some(Span::none()), is_fixed: true });
        for field in &defined.fields {
            let of = match &field.kind.element {
                Element::Named(inner) => self.resolve_one(inner, Some(field), path, faults),
                other => Some(element_measure(other)),
            };
            all = all.zip(of).map(|(all, of)| {
                let field = shaped(of, field.kind.shape);
                Measure {
                    nesting: all.nesting.max(field.nesting),
                    fixed_bytes: all.fixed_bytes.saturating_add(field.fixed_bytes),
                    span: all.span.zip(field.span).map(|(all, field)| all.then(&field)),
                    is_fixed: all.is_fixed && field.is_fixed,
                }
            });
        }
        let all = all?;
        let measure = Measure { nesting: all.nesting + 1, ..all };
        let (what, help) = if measure.nesting > NESTING_MAX {
            (
                format!("{} holds structs more than {NESTING_MAX} deep", defined.name),
                "flatten some of the structs",
            )
        } else if measure.fixed_bytes > FIXED_BYTES_MAX {
            (
                format!(
                    "{} takes at least {} bytes, more than the {} MiB that a message may",
                    defined.name,
                    measure.fixed_bytes,
                    FIXED_BYTES_MAX >> 20
                ),
                "use a sequence, or smaller arrays",
            )
        } else {
            return Some(measure);
        };
        faults.push(Fault { place: defined.place.clone(), ..Fault::new(what) }.help(help));
        None
    }
}

fn element_measure(element: &Element) -> Measure {
    let bounded = |bound: &Option<u32>, span: fn(u64) -> Span| bound.map(|bound| span(u64::from(bound)));
    let (fixed_bytes, span, is_fixed) = match element {
        Element::Primitive(primitive) => {
            let size = primitive.size_bytes();
            (size as u64, Some(Span::primitive(size)), true)
        }
        Element::String { bound } => (5, bounded(bound, Span::string), false),
        Element::WString { bound } => (4, bounded(bound, |bound| Span::primitive(2).sequence(bound)), false),
        Element::Named(_) => (0, None, false),
    };
    Measure { nesting: 0, fixed_bytes, span, is_fixed }
}

fn shaped(of: Measure, shape: Shape) -> Measure {
    match shape {
        Shape::One => of,
        Shape::Array(count) => Measure {
            fixed_bytes: of.fixed_bytes.saturating_mul(u64::from(count)),
            span: of.span.map(|span| span.times(u64::from(count))),
            ..of
        },
        Shape::Sequence(bound) => Measure {
            fixed_bytes: 4,
            span: of.span.zip(bound).map(|(span, bound)| span.sequence(u64::from(bound))),
            is_fixed: false,
            ..of
        },
    }
}

#[cfg(test)]
mod tests;
