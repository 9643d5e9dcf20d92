//! Where packages lie: in folders that are named, and as ROS 2 installs them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Fault, Faults, Source};
use crate::idl;
use crate::model::{Named, Struct, TypeName};
use crate::nearest::nearest;
use crate::rosidl::{self, Kind};

/// Longest definition that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most definitions of one package.
const FILES_MAX: usize = 20_000;
/// Most types of a package that a sentence lists.
const LISTED_MAX: usize = 12;

/// Types that services and actions of ROS 2 are derived with, for those who have no ROS 2 installed. A package of the same
/// name that is found takes their place.
const BUILT_IN: [(&str, &str, &str); 4] = [
    ("builtin_interfaces", "Time", "int32 sec\nuint32 nanosec\n"),
    ("builtin_interfaces", "Duration", "int32 sec\nuint32 nanosec\n"),
    ("unique_identifier_msgs", "UUID", "uint8[16] uuid\n"),
    (
        "service_msgs",
        "ServiceEventInfo",
        "uint8 REQUEST_SENT=0\nuint8 REQUEST_RECEIVED=1\nuint8 RESPONSE_SENT=2\nuint8 RESPONSE_RECEIVED=3\n\
         uint8 event_type\nbuiltin_interfaces/Time stamp\nchar[16] client_gid\nint64 sequence_number\n",
    ),
];

/// Packages that were named, and folders to look in for others.
#[derive(Debug, Default)]
pub(super) struct Search {
    named: BTreeMap<String, PathBuf>,
    folders: Vec<PathBuf>,
}

/// A folder that holds `msg`, `srv` or `action`.
#[derive(Debug)]
pub(super) struct Package {
    name: String,
    folder: PathBuf,
}

/// One definition.
#[derive(Debug)]
pub(super) struct Definition {
    package: String,
    kind: Kind,
    name: String,
    path: PathBuf,
}

impl Search {
    pub(super) fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { named: BTreeMap::new(), folders: folders.into_iter().collect() }
    }

    /// A package by its folder. Its name is the one in `package.xml`, or else the folder's.
    pub(super) fn package(&mut self, folder: &Path) -> Result<Package, Fault> {
        let cannot = |error| {
            Fault::new(format!("{} cannot be read: {error}", folder.display()))
                .help("name the folder of a package, which holds msg, srv or action")
        };
        let full = fs::canonicalize(folder).map_err(cannot)?;
        let by_folder = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = fs::read_to_string(full.join("package.xml"))
            .ok()
            .and_then(|xml| name_of(&xml))
            .unwrap_or(by_folder);
        if Kind::ALL.iter().all(|kind| !full.join(kind.word()).is_dir()) {
            let what = format!("{} holds no folder msg, srv or action", folder.display());
            return Err(
                Fault::new(what).help("name the folder of a package, e.g. /opt/ros/jazzy/share/std_msgs")
            );
        }
        self.named.insert(name.clone(), folder.to_path_buf());
        Ok(Package { name, folder: folder.to_path_buf() })
    }

    /// Reads the file that defines a type, if there is one: of a folder with both, the `.msg` and not the `.idl` that ROS 2 makes of it.
    pub(super) fn find(&self, name: &TypeName) -> Result<Option<Read>, Faults> {
        let parts: Vec<&str> = name.parts().collect();
        let [package, kind_word, full_name] = parts.as_slice() else { return Ok(None) };
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.word() == *kind_word) else {
            return Ok(None);
        };
        // A part of a service or an action stands in the file of the whole.
        let stem = full_name.split('_').next().unwrap_or_default();
        let endings = [kind_word, "idl"].map(|ending| format!("{kind_word}/{stem}.{ending}"));
        let paths = |folder: PathBuf| endings.clone().map(|file| folder.join(file));
        let found = self.folders_of(package).into_iter().flat_map(paths).find(|path| path.is_file());
        let definition =
            |path| Definition { package: (*package).to_owned(), kind, name: stem.to_owned(), path };
        match found {
            Some(path) => definition(path).read(self).map(Some),
            None => Ok(built_in(package, full_name).map(Read::of)),
        }
    }

    /// Folders that may be the package's, best first.
    fn folders_of(&self, package: &str) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self.named.get(package).cloned().into_iter().collect();
        for folder in &self.folders {
            folders.push(folder.join(package));
            folders.push(folder.join("share").join(package));
            folders.push(folder.join(package).join("share").join(package));
            folders.extend(children(folder).into_iter().map(|child| child.join(package)));
        }
        folders
    }

    /// The first folder that is this package.
    pub(super) fn folder_of(&self, package: &str) -> Option<PathBuf> {
        let is_package = |folder: &PathBuf| Kind::ALL.iter().any(|kind| folder.join(kind.word()).is_dir());
        self.folders_of(package).into_iter().find(is_package)
    }

    /// The sentence for a type that is found nowhere, and the way out.
    pub(super) fn not_found(&self, name: &TypeName) -> (String, String) {
        if let Some(found) = self.not_in_package(name) {
            return found;
        }
        let package = name.package();
        let is_closed = |folder: &PathBuf| {
            fs::read_dir(folder).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
        };
        if let Some(folder) = self.folders_of(package).into_iter().find(is_closed) {
            let what = format!("{name} is found nowhere, and {} must not be read", folder.display());
            return (what, "give this user the right to read it".to_owned());
        }
        let what = match self.named.get(package) {
            Some(folder) => format!("{name} is found nowhere in {}", folder.display()),
            None if self.folders.is_empty() => {
                format!("{name} is found nowhere, and there is no folder to look in")
            }
            None => {
                let folders: Vec<_> =
                    self.folders.iter().take(5).map(|folder| folder.display().to_string()).collect();
                format!("{name} is found nowhere below {}", folders.join(", "))
            }
        };
        let way_out = match self.named.contains_key(package) {
            true => "check the name, or name the package's other folder, too".to_owned(),
            false => format!(
                "name the folder that holds the package {package} with --search DIR or in search of [project], or source ROS 2's setup script, which sets AMENT_PREFIX_PATH"
            ),
        };
        let help = match self.folders.iter().find(|folder| !folder.is_dir()) {
            Some(folder) => format!("there is no folder {}; {way_out}", folder.display()),
            None => way_out,
        };
        (what, help)
    }

    /// Fault and way out for a package that is there and has no such type.
    fn not_in_package(&self, name: &TypeName) -> Option<(String, String)> {
        let folder = self.folder_of(name.package())?;
        let files = Package { name: name.package().to_owned(), folder: folder.clone() }.files().ok()?;
        let types: Vec<String> =
            files.iter().map(|file| format!("{}/{}/{}", file.package, file.kind.word(), file.name)).collect();
        let last = |file: &Definition| file.name.clone();
        let names: Vec<String> = files.iter().map(last).collect();
        let meant = nearest(name.name(), names.iter().map(String::as_str));
        let help = match meant.and_then(|meant| names.iter().position(|known| known == meant)) {
            Some(index) => format!("write {}", types[index]),
            None if types.len() > LISTED_MAX => {
                format!("it has {} types, and none of that name", types.len())
            }
            None => format!("it has {}", types.join(", ")),
        };
        Some((format!("{name} is found nowhere in {}", folder.display()), help))
    }
}

/// Common name of the types of one file: of `pkg/srv/Name_Request` it is `pkg/srv/Name`.
pub(super) fn file_of(name: &TypeName) -> &str {
    let text = name.as_str();
    let last = text.rfind('/').map_or(0, |slash| slash + 1);
    text[last..].find('_').map_or(text, |suffix| &text[..last + suffix])
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    let mut children: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    children.sort();
    children
}

fn built_in(package: &str, name: &str) -> Option<Vec<Named>> {
    let (.., text) = BUILT_IN.iter().find(|(of, known, _)| (*of, *known) == (package, name))?;
    let source = Source::new(format!("built-in definition of {package}/msg/{name}"), *text);
    let types = rosidl::parse(&source, Kind::Msg, package, name).ok()?;
    Some(types.into_iter().map(|defined| Named::Struct(Arc::new(defined))).collect())
}

/// The text of the first `<name>` of a `package.xml`.
fn name_of(xml: &str) -> Option<String> {
    let (_, rest) = xml.split_once("<name>")?;
    let (name, _) = rest.split_once("</name>")?;
    Some(name.trim().to_owned()).filter(|name| rosidl::rules::is_field_name(name))
}

impl Package {
    /// Its definitions, in the order of kind and name.
    pub(super) fn files(&self) -> Result<Vec<Definition>, Fault> {
        let mut files = Vec::new();
        for kind in Kind::ALL {
            let folder = self.folder.join(kind.word());
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let mut paths: Vec<PathBuf> =
                entries.flatten().map(|entry| entry.path()).take(FILES_MAX + 1).collect();
            if paths.len() > FILES_MAX {
                let what = format!("{} holds more than {FILES_MAX} files", folder.display());
                return Err(Fault::new(what).help("split the package"));
            }
            // Where ROS 2 is installed both lie side by side; the .idl is made of the other.
            let has_both = |path: &Path| path.with_extension(kind.word()).is_file();
            paths.retain(|path| {
                let ending = path.extension().unwrap_or_default();
                ending == kind.word() || (ending == "idl" && !has_both(path))
            });
            paths.sort();
            files.extend(paths.into_iter().map(|path| Definition {
                package: self.name.clone(),
                kind,
                name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                path,
            }));
        }
        if files.is_empty() {
            let what = format!("{} holds no .msg, .srv, .action or .idl", self.folder.display());
            return Err(
                Fault::new(what).help("name the folder of a package, e.g. /opt/ros/jazzy/share/std_msgs")
            );
        }
        Ok(files)
    }
}

/// Contents of a definition file.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) types: Vec<Named>,
    /// Types of files that it includes.
    pub(super) included: Vec<Named>,
    /// Paths of those.
    pub(super) files: Vec<PathBuf>,
    pub(super) warnings: Vec<Fault>,
}

impl Read {
    fn of(types: Vec<Named>) -> Self {
        Self { types, included: Vec::new(), files: Vec::new(), warnings: Vec::new() }
    }
}

fn named(structs: Vec<Struct>) -> Vec<Named> {
    structs.into_iter().map(|defined| Named::Struct(Arc::new(defined))).collect()
}

impl Definition {
    /// Reads the file into the types that it defines.
    pub(super) fn read(&self, search: &Search) -> Result<Read, Faults> {
        let source = read_source(&self.path)?;
        if self.path.extension().is_some_and(|ending| ending == "idl") {
            return search.read_idl(&source);
        }
        Ok(Read::of(named(rosidl::parse(&source, self.kind, &self.package, &self.name)?)))
    }
}

impl Search {
    /// The structs of a file of IDL and of those that it includes.
    pub(super) fn read_idl(&self, source: &Source) -> Result<Read, Faults> {
        let parsed = idl::parse_with(source, &|from, path| self.included(from, path))?;
        let files = parsed.files.iter().map(|path| PathBuf::from(&**path)).collect();
        let (types, included) = (named(parsed.structs), named(parsed.included));
        Ok(Read { types, included, files, warnings: parsed.warnings })
    }

    /// A file that another includes: beside that one, in a folder to look in, or in a package.
    fn included(&self, from: &Source, path: &str) -> Result<Option<Source>, Fault> {
        let beside = Path::new(&*from.path).parent().map(|folder| folder.join(path));
        let below = self.folders.iter().map(|folder| folder.join(path));
        let of_package = path.split_once('/').map(|(package, rest)| (self.folders_of(package), rest));
        let of_package = of_package
            .into_iter()
            .flat_map(|(folders, rest)| folders.into_iter().map(move |folder| folder.join(rest)));
        let found = beside.into_iter().chain(below).chain(of_package).find(|path| path.is_file());
        let Some(found) = found else { return Ok(None) };
        // One file has one name, by whatever way it is found.
        let whole = fs::canonicalize(&found).unwrap_or(found);
        let is_from = fs::canonicalize(&*from.path).is_ok_and(|from| from == whole);
        read_source(if is_from { Path::new(&*from.path) } else { &whole }).map(Some)
    }
}

/// Reads a text file of bounded size.
///
/// # Errors
/// It cannot be read, is too long or not UTF-8.
pub fn read_source(path: &Path) -> Result<Source, Fault> {
    let shown = path.display().to_string();
    let cannot =
        |error| Fault::new(format!("{shown} cannot be read: {error}")).help("name a file that can be read");
    let mut bytes = Vec::new();
    let mut file = fs::File::open(path).map_err(cannot)?.take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let what = format!("{shown} is longer than a definition may be, {FILE_BYTES_MAX} bytes");
        return Err(Fault::new(what).help("split it"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Fault::new(format!("{shown} is not UTF-8 from byte {at} on")).help("save it as UTF-8")
    })?;
    // Some editors put a byte order mark in front, which shows nowhere.
    Ok(Source::new(shown, text.strip_prefix('\u{feff}').unwrap_or(&text)))
}
