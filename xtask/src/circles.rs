//! Finds modules of one crate that use each other in a circle.
//!
//! Problem: neighbours that need each other can only be read together. A parent and its children may name each other (the
//! parent is the face of the room); brothers may not.
//!
//! Approach: every path in every file (`use` and in expressions) that begins with `crate`, `super` or `self` is resolved to the
//! module that owns the name, through the re-exports on its way. Each such use is an edge between the two children of the
//! module's lowest common ancestor. Tarjan's algorithm names the strongly connected components.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{self, Visit};

/// A module: the names from the crate's root down to it; the root is empty.
type Module = Vec<String>;

/// Tests may look at a module from where it is used; they do not count.
const TESTS: &str = "tests";

/// Names that one file of a crate uses and defines.
#[derive(Default)]
struct Room {
    /// Paths that it uses, as written, with the module that they are written in (inline modules count as their file).
    used: Vec<Vec<String>>,
    /// Names that `use` brings into it, with their paths.
    imports: BTreeMap<String, Vec<String>>,
    /// Modules whose names all come in (`use x::*`).
    globs: Vec<Vec<String>>,
    /// Names that it defines itself.
    defined: BTreeSet<String>,
}

type Rooms = BTreeMap<Module, Room>;

/// Reports circles among the modules of all crates in `crates/*/src`.
pub fn check(root: &Path, faults: &mut Vec<String>) {
    let Ok(folders) = std::fs::read_dir(root.join("crates")) else { return };
    for folder in folders.flatten().map(|folder| folder.path()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        faults.extend(of_rooms(&rooms(&folder.join("src"))).iter().map(|Circle { modules, example }| {
            format!("crates/{name}: {modules} use each other in a circle ({example}): move what both need into a module of its own")
        }));
    }
}

/// Brothers that need each other.
struct Circle {
    modules: String,
    example: String,
}

/// Reads all files below `source`, by module.
fn rooms(source: &Path) -> Rooms {
    let mut found = Rooms::new();
    let mut open = vec![source.to_path_buf()];
    while let Some(folder) = open.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && let module = module_of(source, &path)
                && !module.iter().any(|name| name == TESTS)
                && let Ok(text) = std::fs::read_to_string(&path)
                && let Ok(file) = syn::parse_file(&text)
            {
                found.insert(module, read(&file));
            }
        }
    }
    found
}

fn module_of(source: &Path, path: &Path) -> Module {
    let inside = path.strip_prefix(source).unwrap_or(path).with_extension("");
    let mut names: Module = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        names.pop();
    }
    names
}

fn read(file: &syn::File) -> Room {
    let mut reader = Reader::default();
    reader.visit_file(file);
    reader.room
}

#[derive(Default)]
struct Reader {
    room: Room,
    /// How many inline modules deep; `super` there means less.
    depth: usize,
}

impl Reader {
    fn tree(&mut self, tree: &syn::UseTree, mut prefix: Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.tree(&path.tree, prefix);
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.tree(tree, prefix.clone()));
            }
            syn::UseTree::Glob(_) => {
                self.used(prefix.clone());
                if self.depth == 0 {
                    self.room.globs.push(prefix);
                }
            }
            syn::UseTree::Name(name) => self.import(name.ident.to_string(), name.ident.to_string(), prefix),
            syn::UseTree::Rename(name) => {
                self.import(name.rename.to_string(), name.ident.to_string(), prefix);
            }
        }
    }

    fn import(&mut self, name: String, item: String, mut path: Vec<String>) {
        // `use a::{self}` brings in `a`.
        let name = if item == "self" { path.last().cloned().unwrap_or_default() } else { name };
        if item != "self" {
            path.push(item);
        }
        self.used(path.clone());
        if self.depth == 0 {
            self.room.imports.insert(name, path);
        }
    }

    fn used(&mut self, mut path: Vec<String>) {
        for _ in 0..self.depth {
            if path.first().is_some_and(|first| first == "super") {
                path.remove(0);
                if path.first().is_none_or(|first| first != "super") {
                    path.insert(0, "self".to_owned());
                }
            }
        }
        self.room.used.push(path);
    }

    fn is_test(attributes: &[syn::Attribute]) -> bool {
        attributes.iter().any(|attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Meta>().is_ok_and(|meta| meta.path().is_ident("test"))
        })
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (name, attributes) = match item {
            syn::Item::Fn(it) => (Some(&it.sig.ident), &it.attrs),
            syn::Item::Struct(it) => (Some(&it.ident), &it.attrs),
            syn::Item::Enum(it) => (Some(&it.ident), &it.attrs),
            syn::Item::Trait(it) => (Some(&it.ident), &it.attrs),
            syn::Item::Type(it) => (Some(&it.ident), &it.attrs),
            syn::Item::Const(it) => (Some(&it.ident), &it.attrs),
            syn::Item::Static(it) => (Some(&it.ident), &it.attrs),
            syn::Item::Mod(it) => (None, &it.attrs),
            syn::Item::Impl(it) => (None, &it.attrs),
            syn::Item::Use(it) => (None, &it.attrs),
            _ => return visit::visit_item(self, item),
        };
        if Self::is_test(attributes) {
            return;
        }
        if self.depth == 0 {
            self.room.defined.extend(name.map(ToString::to_string));
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.ident == TESTS {
            return;
        }
        self.depth += 1;
        visit::visit_item_mod(self, module);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.first().is_some_and(|first| ["crate", "super", "self"].contains(&first.as_str())) {
            self.used(names);
        }
        visit::visit_path(self, path);
    }
}

/// The module that owns the name at the end of `path`, written in `module`; `None` for names of other crates.
fn owner(rooms: &Rooms, module: &Module, path: &[String], hops: usize) -> Option<Module> {
    // Re-exports may form a circle of their own.
    if hops == 0 {
        return None;
    }
    let mut at = match path.first()?.as_str() {
        "crate" => Module::new(),
        "self" => module.clone(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        first => {
            let mut child = module.clone();
            child.push(first.to_owned());
            if !rooms.contains_key(&child) {
                let import = rooms.get(module)?.imports.get(first)?;
                if import.first().is_some_and(|name| name == first) {
                    return None;
                }
                let whole: Vec<String> = import.iter().chain(&path[1..]).cloned().collect();
                return owner(rooms, module, &whole, hops - 1);
            }
            child
        }
    };
    for (index, name) in path.iter().enumerate().skip(1) {
        if name == "super" {
            at.pop()?;
            continue;
        }
        let mut child = at.clone();
        child.push(name.clone());
        if rooms.contains_key(&child) {
            at = child;
            continue;
        }
        let room = rooms.get(&at)?;
        if room.defined.contains(name) {
            return Some(at);
        }
        if let Some(import) = room.imports.get(name) {
            let whole: Vec<String> = import.iter().chain(&path[index + 1..]).cloned().collect();
            return owner(rooms, &at, &whole, hops - 1).or(Some(at));
        }
        let through = room.globs.iter().find_map(|glob| {
            let inside = owner(rooms, &at, glob, hops - 1)?;
            rooms.get(&inside)?.defined.contains(name).then_some(inside)
        });
        return through.or(Some(at));
    }
    Some(at)
}

/// Uses between brothers: parent → (from → (to → one use, for the message)).
type Edges = BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>>;

fn edges(rooms: &Rooms) -> Edges {
    let mut edges = Edges::new();
    for (from, room) in rooms {
        for path in &room.used {
            let Some(to) = owner(rooms, from, path, 8) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (Some(below), Some(other)) = (from.get(shared), to.get(shared)) else { continue };
            let example = format!("{} uses {}", from.join("::"), path.join("::"));
            let brothers = edges.entry(from[..shared].to_vec()).or_default();
            brothers.entry(below.clone()).or_default().entry(other.clone()).or_insert(example);
        }
    }
    edges
}

fn of_rooms(rooms: &Rooms) -> Vec<Circle> {
    let mut circles = Vec::new();
    for (parent, uses) in edges(rooms) {
        let reached: BTreeMap<&String, BTreeSet<&String>> =
            uses.keys().map(|from| (from, reachable(&uses, from))).collect();
        let mut named = BTreeSet::new();
        for (from, to) in &reached {
            let together: Vec<&String> = to
                .iter()
                .copied()
                .filter(|other| reached.get(*other).is_some_and(|back| back.contains(*from)))
                .collect();
            if together.len() < 2 || !named.insert(together.clone()) {
                continue;
            }
            let inside = |name: &String| together.contains(&name);
            let example = uses.iter().filter(|(from, _)| inside(from));
            let example = example.flat_map(|(_, to)| to.iter().filter(|(to, _)| inside(to)));
            let example: Vec<&str> = example.map(|(_, example)| example.as_str()).collect();
            let name = |module: &&String| {
                parent.iter().chain([*module]).cloned().collect::<Vec<String>>().join("::")
            };
            circles.push(Circle {
                modules: together.iter().map(name).collect::<Vec<String>>().join(", "),
                example: example.join("; "),
            });
        }
    }
    circles
}

/// All that `from` needs, directly or through others; itself only if it is in a circle.
fn reachable<'a>(
    uses: &'a BTreeMap<String, BTreeMap<String, String>>,
    from: &String,
) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = uses.get(from).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(uses.get(module).into_iter().flat_map(BTreeMap::keys));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(files: &[(&str, &str)]) -> Vec<String> {
        let read = |(name, text): &(&str, &str)| {
            let module = name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
            (module, super::read(&syn::parse_file(text).unwrap()))
        };
        of_rooms(&files.iter().map(read).collect()).into_iter().map(|circle| circle.modules).collect()
    }

    #[test]
    fn brothers_in_a_circle_are_found_through_re_exports_and_paths_in_expressions() {
        let through_the_face = [
            ("", "mod link; mod send; mod wire; pub use link::Link;"),
            ("link", "use crate::send::Sender; pub struct Link;"),
            ("send", "pub struct Sender; fn go(_: &crate::Link) { crate::wire::put() }"),
            ("wire", "pub fn put() {}"),
        ];
        assert_eq!(house(&through_the_face), ["link, send"]);
        let deeper = [
            ("", "mod a;"),
            ("a", "mod b; mod c;"),
            ("a::b", "pub fn f() { super::c::g() }"),
            ("a::c", "use super::b; pub fn g() { b::f() }"),
        ];
        assert_eq!(house(&deeper), ["a::b, a::c"]);
    }

    #[test]
    fn parents_tests_and_other_crates_make_no_circle() {
        let house = house(&[
            ("", "mod a; mod b; pub struct Face;"),
            ("a", "use crate::Face; pub use std::fmt; #[cfg(test)] mod tests { use crate::b::B; }"),
            ("b", "use crate::a::fmt; pub struct B(crate::Face);"),
        ]);
        assert!(house.is_empty(), "{house:?}");
    }
}
