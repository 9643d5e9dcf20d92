//! Templates → files in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use minijinja::{Environment, UndefinedBehavior, Value, context};
use serde::Deserialize;

use crate::diagnostic::Fault;

/// The list of templates of a folder that do not replace one that is compiled in.
pub const LIST: &str = "templates.toml";
/// Most templates that such a list may name.
const ADDED_MAX: usize = 1_000;

/// Unit of the system that a template is rendered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scope {
    /// Once.
    Project,
    /// Once for each package.
    Package,
    /// Once for each program in this language.
    Program,
    /// Once for each block of a program in Simulink.
    Block,
}

/// A template, and where its result goes; `{}` is the package's or program's name, `{project}` the project's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Template {
    name: Cow<'static, str>,
    #[serde(skip)]
    text: Cow<'static, str>,
    /// The language that it belongs to; empty for all.
    #[serde(default)]
    language: Cow<'static, str>,
    scope: Scope,
    path: Cow<'static, str>,
}

/// Contents of `templates.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    template: Vec<Template>,
}

macro_rules! template {
    ($name:literal, $language:literal, $scope:ident, $path:literal) => {
        Template {
            name: Cow::Borrowed($name),
            text: Cow::Borrowed(include_str!(concat!("../templates/", $name))),
            language: Cow::Borrowed($language),
            scope: Scope::$scope,
            path: Cow::Borrowed($path),
        }
    };
}

const TEMPLATES: &[Template] = &[
    template!("rust_mod.rs.j2", "rust", Project, "rust/mod.rs"),
    template!("rust_package.rs.j2", "rust", Package, "rust/{}.rs"),
    template!("rust_program.rs.j2", "rust", Program, "rust/program_{}.rs"),
    template!("c_package.h.j2", "c", Package, "c/{}.h"),
    template!("c_package.c.j2", "c", Package, "c/{}.c"),
    template!("c_program.h.j2", "c", Program, "c/program_{}.h"),
    template!("c_program.h.j2", "mcu", Program, "c/program_{}.h"),
    template!("cpp_package.hpp.j2", "cpp", Package, "cpp/{}.hpp"),
    template!("cpp_program.hpp.j2", "cpp", Program, "cpp/program_{}.hpp"),
    template!("python_init.py.j2", "python", Project, "python/{project}/__init__.py"),
    template!("python_definitions.py.j2", "python", Project, "python/{project}/definitions.py"),
    template!("python_definitions.pyi.j2", "python", Project, "python/{project}/definitions.pyi"),
    template!("python_package.py.j2", "python", Package, "python/{project}/{}.py"),
    template!("python_program.py.j2", "python", Program, "python/{project}/program_{}.py"),
    template!("simulink_buses.m.j2", "simulink", Project, "simulink/{project}_buses.m"),
    template!("simulink_slblocks.m.j2", "simulink", Project, "simulink/slblocks.m"),
    template!("simulink_ports.h.j2", "simulink", Package, "simulink/{}_ports.h"),
    template!("simulink_ports.c.j2", "simulink", Package, "simulink/{}_ports.c"),
    template!("simulink_runtime.h.j2", "simulink", Program, "simulink/{}_runtime.h"),
    template!("simulink_runtime.c.j2", "simulink", Program, "simulink/{}_runtime.c"),
    template!("simulink_mex.c.j2", "simulink", Program, "simulink/{}_mex.c"),
    template!("simulink_library.m.j2", "simulink", Program, "simulink/{}_library.m"),
    template!("simulink_block.m.j2", "simulink", Block, "simulink/{}.m"),
    template!("simulink_block.tlc.j2", "simulink", Block, "simulink/{}.tlc"),
    template!("idl_package.idl.j2", "idl", Package, "idl/{}.idl"),
    template!("catalogue.html.j2", "", Project, "catalogue.html"),
    template!("catalogue.md.j2", "", Project, "catalogue.md"),
];

/// Renders all files of a described system: path below the folder of results → text.
///
/// A file in `folder` that has the name of a template takes its place; those that its `templates.toml` lists are added.
///
/// # Errors
/// A template cannot be read or rendered.
pub fn render(model: &serde_json::Value, folder: Option<&Path>) -> Result<BTreeMap<String, String>, Fault> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.set_auto_escape_callback(|name| {
        if name.ends_with(".html.j2") { minijinja::AutoEscape::Html } else { minijinja::AutoEscape::None }
    });
    environment.add_filter("c_comment", |text: String| c_comment(&text));
    environment.add_filter("matlab", |text: String| matlab(&text));
    // 20, not 20.0, for people.
    environment.add_filter("number", |number: f64| ((number * 1000.0).round() / 1000.0).to_string());
    let added = added(folder)?;
    for template in TEMPLATES.iter().chain(&added) {
        let text = match replacement(folder, &template.name)? {
            Some(text) => text,
            None => template.text.clone().into_owned(),
        };
        let broken = |error: minijinja::Error| {
            Fault::new(format!("the template {} is wrong: {}", template.name, sentence(&error)))
        };
        environment.add_template_owned(template.name.clone(), text).map_err(broken)?;
    }
    let whole = Value::from_serialize(model);
    let mut files = BTreeMap::new();
    for template in TEMPLATES.iter().chain(&added) {
        for (name, entry) in targets(template, model) {
            let project = model["project"]["name"].as_str().unwrap_or_default();
            let path = template.path.replace("{project}", project).replace("{}", &name);
            let values = context! { model => whole, entry => Value::from_serialize(entry) };
            let rendered = environment.get_template(&template.name).and_then(|found| found.render(values));
            let text = rendered.map_err(|error| {
                Fault::new(format!("{path} cannot be rendered: {}", sentence(&error)))
                    .help("correct the template, or remove it from the folder of --templates")
            })?;
            if files.insert(path.clone(), text).is_some() {
                return Err(Fault::new(format!("two files would be called {path}"))
                    .help("rename the package or the program"));
            }
        }
    }
    Ok(files)
}

/// A text inside a comment of C or C++, which it must not end or continue.
fn c_comment(text: &str) -> String {
    let text = text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /");
    text.trim_end_matches(['\\', ' ']).to_owned()
}

/// A text as MATLAB has it between single quotes, on one line.
fn matlab(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("'{}'", line.replace('\'', "''"))
}

fn sentence(error: &minijinja::Error) -> String {
    let line = error.line().map_or(String::new(), |line| format!(" (line {line})"));
    format!("{error}{line}").replace('\n', " ")
}

fn replacement(folder: Option<&Path>, name: &str) -> Result<Option<String>, Fault> {
    let Some(path) = folder.map(|folder| folder.join(name)).filter(|path| path.is_file()) else {
        return Ok(None);
    };
    let cannot = |error| {
        Fault::new(format!("{} cannot be read: {error}", path.display()))
            .help("name a folder of templates in UTF-8")
    };
    fs::read_to_string(&path).map(Some).map_err(cannot)
}

/// The templates that the folder's list adds. Their files must be there, and lead nowhere but below the folder of results.
fn added(folder: Option<&Path>) -> Result<Vec<Template>, Fault> {
    let Some(text) = replacement(folder, LIST)? else { return Ok(Vec::new()) };
    let wrong = |what: String| {
        Fault::new(format!("{LIST} of the folder of templates is wrong: {what}")).help(
            "write [[template]] with name, scope (project, package, program, block) and path, e.g. \"ada/{}.ads\"",
        )
    };
    let list: List = toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
    if list.template.len() > ADDED_MAX {
        return Err(wrong(format!("it lists more than {ADDED_MAX} templates")));
    }
    let is_inside = |path: &str| {
        !path.is_empty() && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
    };
    for template in &list.template {
        if !is_inside(&template.path) || !is_inside(&template.name) {
            return Err(wrong(format!("the path \"{}\" leads out of the folder", template.path)));
        }
        if TEMPLATES.iter().any(|known| known.name == template.name) {
            return Err(wrong(format!("{} is compiled in, and replaced without a list", template.name)));
        }
        if replacement(folder, &template.name)?.is_none() {
            return Err(wrong(format!("there is no file {}", template.name)));
        }
    }
    Ok(list.template)
}

/// The names and values that a template is rendered for.
fn targets<'m>(template: &Template, model: &'m serde_json::Value) -> Vec<(String, &'m serde_json::Value)> {
    let is_wanted = |language: &str| {
        let languages = model["project"]["languages"].as_array();
        let has = |word: &str| languages.is_some_and(|list| list.iter().any(|known| known == word));
        // Boards are written in C.
        language.is_empty() || has(language) || (language == "c" && has("mcu"))
    };
    if !is_wanted(&template.language) {
        return Vec::new();
    }
    let list = |key: &str| model[key].as_array().map_or(&[][..], Vec::as_slice);
    let named = |value: &'m serde_json::Value| (value["name"].as_str().unwrap_or_default().to_owned(), value);
    match template.scope {
        Scope::Project => vec![(String::new(), &model["project"])],
        Scope::Package => list("packages").iter().map(named).collect(),
        Scope::Program => list("programs")
            .iter()
            .filter(|program| template.language.is_empty() || program["language"] == *template.language)
            .map(named)
            .collect(),
        Scope::Block => {
            let blocks = list("programs").iter().filter_map(|program| program["blocks"].as_array());
            blocks.flatten().map(named).collect()
        }
    }
}
