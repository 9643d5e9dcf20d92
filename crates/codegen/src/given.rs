//! Types of topics whose nodes do not describe them: out of folders of definitions, or out of a `topics.toml`, as a user names them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use noctule_formats::description::TypeDescription;

use crate::described::description;
use crate::diagnostic::{Fault, Faults};
use crate::generate::folders;
use crate::library::{Library, read_source};
use crate::model::TypeName;
use crate::rosidl::Kind;
use crate::topics::System;

/// Definitions that a user named.
#[derive(Debug, Default)]
pub struct Given {
    sources: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    library: Library,
    /// Types by topic, of a `topics.toml`.
    topics: BTreeMap<String, TypeName>,
}

impl Given {
    /// Reads what each path names: a `topics.toml`, a file of IDL, a package, or a folder of packages. `installed` are folders to look
    /// in for packages that those refer to.
    ///
    /// # Errors
    /// A path that is none of these, or something wrong in its files.
    pub fn load(paths: &[PathBuf], installed: &[PathBuf]) -> Result<Self, Faults> {
        let sources: Result<Vec<Source>, Faults> =
            paths.iter().map(|path| Source::load(path, installed)).collect();
        Ok(Self { sources: sources? })
    }

    /// True if nothing was named.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The description of a topic's type: by the topic's name in a `topics.toml`, or else by the name of the type.
    ///
    /// # Errors
    /// A definition was found, and it is wrong.
    pub fn find(&mut self, topic: &str, type_name: &str) -> Result<Option<TypeDescription>, Fault> {
        for source in &mut self.sources {
            let named = source.topics.get(topic).cloned();
            let name = named.clone().unwrap_or_else(|| TypeName::new(type_name));
            let is_known =
                named.is_some() || source.library.get(&name).is_some() || name.parts().count() == 3;
            if !is_known {
                continue;
            }
            match source.library.resolve([&name]) {
                Ok(()) => {
                    let found = description(&source.library, &name);
                    return found.map(Some).map_err(|error| Fault::new(format!("{name}: {error}")));
                }
                Err(faults) if source.library.get(&name).is_some() => {
                    return Err(faults
                        .0
                        .into_iter()
                        .next()
                        .unwrap_or_else(|| Fault::new(format!("{name} is wrong"))));
                }
                // Found nowhere here; the next may have it.
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Descriptions of the types of all topics that a `topics.toml` names, by topic.
    ///
    /// # Errors
    /// A definition is wrong.
    pub fn topics(&mut self) -> Result<BTreeMap<String, TypeDescription>, Fault> {
        let names: Vec<String> =
            self.sources.iter().flat_map(|source| source.topics.keys().cloned()).collect();
        let mut all = BTreeMap::new();
        for topic in names {
            if let Some(found) = self.find(&topic, "")? {
                all.insert(topic, found);
            }
        }
        Ok(all)
    }
}

impl Source {
    fn load(path: &Path, installed: &[PathBuf]) -> Result<Self, Faults> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if extension == Some("toml") {
            return Self::system(path, installed);
        }
        let search = [path.to_path_buf()].into_iter().chain(installed.iter().cloned());
        let mut library = Library::new(search);
        if extension == Some("idl") {
            library.add_idl(path)?;
        } else if !path.is_dir() {
            let what =
                format!("{} is no folder of definitions, no topics.toml and no file of IDL", path.display());
            return Err(Fault::new(what).help("name the folder that holds packages, or one package").into());
        } else if Kind::ALL.iter().any(|kind| path.join(kind.word()).is_dir()) {
            library.add_package(path)?;
        }
        Ok(Self { library, topics: BTreeMap::new() })
    }

    fn system(path: &Path, installed: &[PathBuf]) -> Result<Self, Faults> {
        let system = System::parse(&read_source(path)?)?;
        let root = path.parent().unwrap_or(Path::new(""));
        let named = system.search.iter().flat_map(|entry| folders(root, entry));
        let mut library = Library::new(named.chain(installed.iter().cloned()));
        for (entry, _) in &system.idl {
            library.add_idl(&root.join(entry))?;
        }
        let topics =
            system.topics.iter().map(|topic| (topic.name.clone(), topic.type_name.clone())).collect();
        Ok(Self { library, topics })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn types_are_found_by_topic_by_name_and_not_by_chance() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("demo_msgs/msg");
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("Level.msg"), "float32 level\n").unwrap();
        fs::write(package.join("Bad.msg"), "nowhere/Type x\n").unwrap();
        let toml = "[project]\nname = \"t\"\nsearch = [\".\"]\n[programs]\na = { language = \"rust\" }\n\
                    [topics.\"/level\"]\ntype = \"demo_msgs/msg/Level\"\nfrom = [\"a\"]\nto = []\nrate_hz = 1\n";
        fs::write(folder.path().join("topics.toml"), toml).unwrap();
        let paths =
            [folder.path().to_path_buf(), folder.path().join("demo_msgs"), folder.path().join("topics.toml")];
        for path in &paths {
            let mut given = Given::load(std::slice::from_ref(path), &[]).unwrap();
            let found = given.find("/level", "demo_msgs/msg/Level").unwrap().unwrap();
            assert_eq!(found.text(), "struct demo_msgs/msg/Level\n float32 level\n", "{}", path.display());
            assert_eq!(given.find("/other", "other_msgs/msg/Level").unwrap(), None);
            assert!(
                given.find("/bad", "demo_msgs/msg/Bad").unwrap_err().to_string().contains("nowhere/msg/Type")
            );
        }
        let mut given = Given::load(&paths[2..], &[]).unwrap();
        assert_eq!(given.topics().unwrap().len(), 1);
        assert!(given.find("/level", "bytes").unwrap().is_some());
        let refused = Given::load(&["/nowhere".into()], &[]).unwrap_err().to_string();
        assert!(refused.contains("no folder of definitions"), "{refused}");
    }
}
