//! The whole way: `topics.toml` → files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::description::{Description, describe};
use crate::diagnostic::{Fault, Faults, Place};
use crate::languages::simulink;
use crate::layout::first_of_any_length;
use crate::library::{Library, read_source};
use crate::model::TypeName;
use crate::render::render;
use crate::topics::System;
use crate::topics::check::check;

/// Output for a `topics.toml`, in memory.
#[derive(Debug)]
pub struct Generated {
    /// The description that templates receive.
    pub model: serde_json::Value,
    /// Path below the folder of results → text.
    pub files: BTreeMap<String, String>,
    /// The files that were read, sorted: if one of them changes, the result may.
    pub inputs: BTreeSet<PathBuf>,
    /// Warnings for the user.
    pub warnings: Vec<Fault>,
}

/// Reads and checks a system and renders all its files; writes nothing.
///
/// `installed` are folders to look in for packages after those that the file names; a file in `templates` takes the place
/// of the template of its name.
///
/// # Errors
/// Everything that is wrong with the system, its types or the templates.
pub fn generate(topics: &Path, installed: &[PathBuf], templates: Option<&Path>) -> Result<Generated, Faults> {
    let source = read_source(topics)?;
    let system = System::parse(&source)?;
    let root = topics.parent().unwrap_or(Path::new(""));
    let named = system.search.iter().flat_map(|entry| folders(root, entry));
    let mut library = Library::new(named.chain(installed.iter().cloned()));
    let mut faults = Faults::default();
    for (entry, place) in &system.idl {
        if let Err(found) = library.add_idl(&root.join(entry)) {
            faults.0.extend(found.0.into_iter().map(|fault| placed(fault, place)));
        }
    }
    let names = types(&system, &mut library, &mut faults);
    for (entry, place) in &system.plain {
        if let Some(path) = first_of_any_length(&library, &TypeName::new(entry.as_str())) {
            let what = format!("{entry} cannot be plain: {path} may have more than one length");
            faults.push(Fault::at(place.clone(), what).help("remove it from plain of [project]"));
        }
    }
    if faults.refuse() {
        return Err(faults.unique());
    }
    let limits = check(&system, &library, &mut faults);
    simulink::check(&system, &library, &limits, &mut faults);
    if faults.refuse() {
        return Err(faults);
    }
    let Description { model, left_out } = describe(&system, &library, &limits, &names);
    let carried = |name: &&TypeName| system.topics.iter().any(|topic| topic.type_name == **name);
    let answered = |name: &&TypeName| system.services.iter().any(|of| of.messages().contains(name));
    let of_action = |name: &&TypeName| system.actions.iter().any(|of| of.messages().contains(name));
    if let Some(name) = left_out.iter().find(|name| carried(name) || answered(name) || of_action(name)) {
        let what = format!("{name} holds a wstring, of which middlewares have different bytes");
        return Err(Fault::new(what).help("use string").into());
    }
    for name in left_out {
        faults.push(Fault::new(format!("{name} is left out: it holds a wstring")).as_warning());
    }
    faults.0.extend(library.warnings().iter().cloned());
    let files = render(&model, templates)?;
    let inputs = inputs(topics, &library, templates);
    Ok(Generated { model, files, inputs, warnings: faults.warnings()? })
}

/// The files that a result is made of.
fn inputs(topics: &Path, library: &Library, templates: Option<&Path>) -> BTreeSet<PathBuf> {
    let defined = library.types().filter_map(|named| named.place());
    let mut inputs: BTreeSet<PathBuf> =
        defined.map(|place| PathBuf::from(&*place.source.path)).filter(|path| path.is_file()).collect();
    inputs.extend(library.included_files().map(Path::to_path_buf));
    inputs.insert(topics.to_path_buf());
    let entries = templates.and_then(|folder| fs::read_dir(folder).ok());
    inputs.extend(entries.into_iter().flatten().flatten().map(|entry| entry.path()));
    inputs
}

/// Where ROS 2 is installed, as its setup script says in `AMENT_PREFIX_PATH`.
pub fn installed() -> Vec<PathBuf> {
    let installed = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
    std::env::split_paths(&installed).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// The folders that an entry of `search` names: below the file's folder, or those in a variable of the environment.
pub(crate) fn folders(root: &Path, entry: &str) -> Vec<PathBuf> {
    match entry.strip_prefix('$') {
        Some(variable) => {
            let value = std::env::var_os(variable).unwrap_or_default();
            std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
        }
        None => vec![root.join(entry)],
    }
}

/// Resolves the types of all topics and those that the project names besides.
fn types(system: &System, library: &mut Library, faults: &mut Faults) -> BTreeSet<TypeName> {
    let mut names = BTreeSet::new();
    for topic in &system.topics {
        if names.insert(topic.type_name.clone())
            && let Err(found) = library.resolve([&topic.type_name])
        {
            faults.0.extend(found.0.into_iter().map(|fault| placed(fault, &topic.type_place)));
        }
    }
    let services = system.services.iter().map(|of| (of.messages().to_vec(), &of.type_place));
    let actions = system.actions.iter().map(|of| (of.messages().to_vec(), &of.type_place));
    for (messages, place) in services.chain(actions) {
        for message in messages {
            if let Err(found) = library.resolve([&message]) {
                faults.0.extend(found.0.into_iter().map(|fault| placed(fault, place)));
            }
            names.insert(message);
        }
    }
    for (entry, place) in system.types.iter().chain(&system.plain) {
        let result = match entry.strip_suffix("/*") {
            Some(package) => library.add_found(package).and_then(|found| {
                library.resolve(&found)?;
                names.extend(found);
                Ok(())
            }),
            None => {
                let name = TypeName::new(entry.as_str());
                let result = library.resolve([&name]);
                names.insert(name);
                result
            }
        };
        if let Err(found) = result {
            faults.0.extend(found.0.into_iter().map(|fault| placed(fault, place)));
        }
    }
    names
}

/// A fault without a place is shown where the file is named.
fn placed(fault: Fault, place: &Place) -> Fault {
    match fault.place {
        Some(_) => fault,
        None => Fault { place: Some(place.clone()), ..fault },
    }
}

#[cfg(test)]
mod tests;
