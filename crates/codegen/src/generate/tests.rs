//! A system of three programs, generated in every language, and compiled where a compiler is there.

use std::fs;
use std::process::Command;

use super::*;
use crate::hash::{Hashes, rihs01};
use crate::tree;

const ODD: &str = "\
# Words that are keywords somewhere, and everything else that is rare.
uint8 type
float32 from 1.5
int64 self -9223372036854775808
bool class true
string<=5 lambda 'a\"b'
float64[36] covariance
uint16[<=3] few [1, 2]
string[] names [\"x\", \"y\"]
string<=4[2] pair ['ab', 'cd']
Inner[] inners
Inner[2] two
Inner[<=2] some
byte octet 255
bool[] flags
float64 not_a_number nan
uint64 MANY=18446744073709551615
int64 LEAST=-9223372036854775808
string TEXT=\"a?\\b\"
float32 RATE=0.1
uint8 NULL=0
int32 INT32_MAX=1
float64 char16_t
string<=4[] open
";

const FIXED: &str = "\
bool flag
float64 from
bool[5] class
Part part
Part[2] parts
uint64 huge
uint16 last
";

const TOPICS: &str = "
[project]
name = \"robot\"
search = [\"packages\"]
types = [\"odd_msgs/*\"]
[programs]
console = { language = \"python\" }
control = { language = \"rust\" }
viewer = { language = \"cpp\" }
logger = { language = \"c\" }
drive = { language = \"mcu\", line = \"serial:921600\" }
plant = { language = \"simulink\" }
[topics.\"/odd\"]
type = \"odd_msgs/Odd\"
from = [\"console\"]
to = [\"control\", \"viewer\", \"logger\", \"plant\"]
reliability = \"deadline_bound\"
deadline = \"20ms\"
doc = \"Everything <odd> & rare.\"
[topics.\"/arm/state\"]
type = \"odd_msgs/Inner\"
from = [\"drive\"]
to = [\"control\", \"console\", \"viewer\", \"logger\"]
rate_hz = 100
limits = { label = 8, values = 4 }
[topics.\"/fixed\"]
type = \"odd_msgs/Fixed\"
from = [\"control\", \"logger\", \"viewer\"]
to = [\"control\", \"viewer\", \"logger\", \"console\"]
plain = true
[services.\"/ask\"]
type = \"odd_msgs/Ask\"
servers = [\"logger\", \"viewer\", \"control\", \"console\"]
clients = [\"control\", \"viewer\", \"logger\", \"console\"]
deadline = \"250ms\"
idempotent = true
[actions.\"/reach\"]
type = \"odd_msgs/Reach\"
servers = [\"logger\", \"viewer\", \"control\", \"console\"]
clients = [\"control\", \"viewer\", \"logger\", \"console\"]
deadline = \"250ms\"
result_deadline = \"60s\"
keep_results = \"5s\"
[topics.\"/plant/state\"]
type = \"odd_msgs/Inner\"
from = [\"plant\"]
to = [\"control\"]
";

/// A folder with the system.
pub(crate) fn system() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("topics.toml", TOPICS);
    write("packages/odd_msgs/msg/Odd.msg", ODD);
    write("packages/odd_msgs/msg/Inner.msg", "string label\nfloat32[] values # [m/s]\nuint8 last\n");
    write("packages/odd_msgs/msg/Empty.msg", "");
    write("packages/odd_msgs/msg/Fixed.msg", FIXED);
    write("packages/odd_msgs/msg/Part.msg", "uint8 first\nfloat64 second\nbool last\n");
    write("packages/odd_msgs/srv/Ask.srv", "int32 a\n---\nint32 b\n");
    let reach = "float64[] path\nstring name\n---\nint32 steps 3\nstring why\n---\nuint8 at\nfloat64 left\n";
    write("packages/odd_msgs/action/Reach.action", reach);
    write("packages/odd_msgs/msg/GPS.msg", "uint8 GPS=1\nuint8 value\n");
    write("packages/odd_msgs/msg/None.msg", "uint8 value\n");
    write("packages/odd_msgs/msg/String.msg", "string data\nstring[] list\n");
    write("packages/odd_msgs/msg/Wide.msg", "wstring text\n");
    folder
}

fn run(folder: &Path) -> Result<Generated, Faults> {
    generate(&folder.join("topics.toml"), &[], None)
}

/// Runs a compiler on generated files; `None` if it is not installed.
fn compile(program: &str, arguments: &[&str], folder: &Path) -> Option<()> {
    let output = match Command::new(program).args(arguments).current_dir(folder).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        other => other.unwrap(),
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

#[test]
fn the_same_input_gives_the_same_files_wherever_it_lies() {
    let (one, two) = (system(), system());
    let (one, two) = (run(one.path()).unwrap(), run(two.path()).unwrap());
    assert_eq!(one.files, two.files);
    assert_eq!(one.model, two.model);
    assert_eq!(one.model["version"], 1);
    let is_left_out = |fault: &Fault| fault.what.contains("odd_msgs/msg/Wide is left out");
    assert!(one.warnings.iter().any(is_left_out), "{:?}", one.warnings);
    for path in
        ["rust/odd_msgs.rs", "c/odd_msgs.h", "cpp/odd_msgs.hpp", "python/robot/odd_msgs.py", "catalogue.html"]
    {
        assert!(one.files[path].contains("odd_msgs"), "{path}");
    }
}

#[test]
fn a_message_may_be_called_as_a_type_of_a_language() {
    let rust = &run(system().path()).unwrap().files["rust/odd_msgs.rs"];
    assert!(rust.contains("pub data: ::std::string::String,") && !rust.contains(" String,"), "{rust}");
    let python = &run(system().path()).unwrap().files["python/robot/odd_msgs.py"];
    assert!(python.contains("odd_msgs__msg__None as None_\n") && python.contains("\"None_\","), "{python}");
    let folder = system();
    let package = folder.path().join("packages/crate/msg");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("Self.msg"), "uint8 value\n").unwrap();
    fs::write(folder.path().join("topics.toml"), TOPICS.replace("[\"odd_msgs/*\"]", "[\"crate/*\"]"))
        .unwrap();
    let files = run(folder.path()).unwrap().files;
    assert!(
        files["rust/mod.rs"].contains("#[path = \"crate.rs\"]\npub mod crate_;\n"),
        "{}",
        files["rust/mod.rs"]
    );
    assert!(files["rust/crate.rs"].contains("pub struct Self_: \"crate/msg/Self\""));
}

#[test]
fn a_changed_definition_changes_only_the_files_of_its_package() {
    let folder = system();
    let out = folder.path().join("out");
    tree::write(&out, &run(folder.path()).unwrap().files).unwrap();
    assert!(tree::compare(&out, &run(folder.path()).unwrap().files).unwrap().is_empty());
    fs::write(folder.path().join("packages/odd_msgs/msg/Empty.msg"), "uint8 a\n").unwrap();
    let difference = tree::compare(&out, &run(folder.path()).unwrap().files).unwrap();
    assert!(difference.write.contains(&"c/odd_msgs.h".to_owned()));
    assert!(!difference.write.iter().any(|path| path.contains("program_")), "{difference:?}");
}

#[test]
fn a_template_may_be_replaced_and_a_wrong_one_is_a_sentence() {
    let folder = system();
    let templates = folder.path().join("templates");
    fs::create_dir(&templates).unwrap();
    let with = |text: &str| {
        fs::write(templates.join("c_package.h.j2"), text).unwrap();
        generate(&folder.path().join("topics.toml"), &[], Some(&templates))
            .map_err(|faults| faults.to_string())
    };
    let mine = with("{% for type in model.types %}{{ type.name }}\n{% endfor %}").unwrap();
    assert!(mine.files["c/odd_msgs.h"].contains("odd_msgs/msg/Empty\n"));
    assert!(with("{% for %}").unwrap_err().contains("the template c_package.h.j2 is wrong"));
    assert!(with("{{ model.nosuch.part }}").unwrap_err().contains(".h cannot be rendered"));
}

#[test]
fn a_folder_of_templates_may_add_a_language() {
    let folder = system();
    let templates = folder.path().join("templates");
    fs::create_dir(&templates).unwrap();
    let with = |list: &str| {
        fs::write(templates.join("templates.toml"), list).unwrap();
        generate(&folder.path().join("topics.toml"), &[], Some(&templates))
            .map_err(|faults| faults.to_string())
    };
    let list = "[[template]]\nname = \"ada.j2\"\nscope = \"package\"\npath = \"ada/{}.ads\"\n";
    assert!(with(list).unwrap_err().contains("there is no file ada.j2"));
    fs::write(templates.join("ada.j2"), "package {{ entry.name }} is").unwrap();
    let added = with(list).unwrap();
    assert_eq!(added.files["ada/odd_msgs.ads"], "package odd_msgs is");
    for read in ["topics.toml", "templates/ada.j2", "packages/odd_msgs/msg/Odd.msg"] {
        assert!(added.inputs.contains(&folder.path().join(read)), "{:?}", added.inputs);
    }
    for (wrong, expected) in [
        (list.replace("ada/{}.ads", "../{}.ads"), "leads out of the folder"),
        (list.replace("ada.j2", "../x"), "leads out of the folder"),
        (list.replace("ada.j2", "c_package.h.j2"), "is compiled in"),
        (list.replace("package\"", "planet\""), "unknown variant"),
        (format!("{list}colour = 1\n"), "unknown field"),
        (list.replace("ada/{}.ads", "catalogue.html"), "two files would be called catalogue.html"),
    ] {
        let refused = with(&wrong).unwrap_err();
        assert!(refused.contains(expected), "{wrong}: {refused}");
    }
}

/// Names of all members at any depth.
fn members(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (name, value) in object {
                found.insert(name.clone());
                members(value, found);
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| members(value, found)),
        _ => {}
    }
}

#[test]
fn whatever_templates_receive_stands_in_the_specification() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/generator.md");
    let text = fs::read_to_string(path).unwrap();
    let words: BTreeSet<&str> =
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let mut found = BTreeSet::new();
    members(&run(system().path()).unwrap().model, &mut found);
    assert!(found.len() > 100, "{found:?}");
    let missing: Vec<&String> = found.iter().filter(|name| !words.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/spec/generator.md lacks {missing:?}");
}

#[test]
fn people_and_type_checkers_get_their_files() {
    let files = run(system().path()).unwrap().files;
    let stub = &files["python/robot/definitions.pyi"];
    assert!(stub.contains("    MANY: ClassVar[int]\n    LEAST: ClassVar[int]\n    TEXT: ClassVar[str]\n    RATE: ClassVar[float]"));
    assert!(stub.contains("        this,\n") && stub.contains("        self,\n"), "{stub}");
    let markdown = &files["catalogue.md"];
    assert!(
        files["catalogue.html"].contains("deadline 20 ms")
            && files["catalogue.html"].contains("<code>&#x2f;ask</code>")
    );
    assert!(markdown.contains("| `/ask` | odd_msgs/srv/Ask | console, control, "), "{markdown}");
    assert!(markdown.contains("| `/reach` | odd_msgs/action/Reach | console, control, "), "{markdown}");
    assert!(files["catalogue.html"].contains("odd_msgs&#x2f;action&#x2f;Reach_Goal"));
    assert!(markdown.contains("| `/arm/state` | [odd_msgs/msg/Inner](#odd_msgsmsginner) | drive | "));
    assert!(markdown.contains("| `values` | `float32[]` | m/s |"), "{markdown}");
}

/// The output of idlc for it is compared in `cargo xtask generated`.
#[test]
fn types_written_as_idl_are_the_same_types_when_they_are_read() {
    let folder = system();
    let text = TOPICS.replace("[project]", "[project]\nlanguages = [\"idl\"]");
    fs::write(folder.path().join("topics.toml"), text).unwrap();
    let generated = run(folder.path()).unwrap();
    let file = folder.path().join("odd_msgs.idl");
    fs::write(&file, &generated.files["idl/odd_msgs.idl"]).unwrap();
    let mut library = Library::new([]);
    library.add_idl(&file).map_err(|faults| faults.to_string()).unwrap();
    let types = generated.model["types"].as_array().unwrap();
    assert!(types.len() > 5);
    for of in types {
        let name = TypeName::new(of["name"].as_str().unwrap());
        library.resolve([&name]).map_err(|faults| faults.to_string()).unwrap();
        assert_eq!(rihs01(&library, &name), of["rihs01"].as_str().unwrap(), "{name}");
        assert_eq!(format!("{:016x}", Hashes::new(&library).noctule(&name)), of["hash"].as_str().unwrap());
    }
    let odd = library.structure(&TypeName::ros("odd_msgs", "msg", "Odd")).unwrap();
    assert_eq!(odd.constants.len(), 6, "{:?}", odd.constants);

    fs::write(folder.path().join("topics.toml"), TOPICS.replace("\"mcu\", line", "\"idl\", line")).unwrap();
    assert!(run(folder.path()).unwrap_err().to_string().contains("no program is written in IDL"));
}

#[test]
fn a_block_that_simulink_cannot_have_is_refused() {
    let folder = system();
    fs::write(folder.path().join("packages/odd_msgs/msg/Far.msg"), "Odd[100000] far\n").unwrap();
    let with = |text: String| {
        fs::write(folder.path().join("topics.toml"), text).unwrap();
        run(folder.path()).unwrap_err().to_string()
    };
    let far = "\n[topics.\"/far\"]\ntype = \"odd_msgs/Far\"\nfrom = [\"plant\"]\nto = [\"control\"]\n";
    let refused = with(format!("{TOPICS}{far}"));
    assert!(
        refused.contains("more than 1000 ports or 16 MiB") && refused.contains("plant is a block"),
        "{refused}"
    );
    let refused = with(TOPICS.replace("/plant/state", &format!("/plant/{}", "s".repeat(50))));
    assert!(refused.contains("would have a name of 69 letters"), "{refused}");
}

#[test]
fn a_type_that_is_missing_is_shown_in_topics_toml() {
    let folder = system();
    let text = TOPICS.replace("odd_msgs/Odd", "odd_msgs/Even");
    fs::write(folder.path().join("topics.toml"), text).unwrap();
    let refused = run(folder.path()).unwrap_err().to_string();
    assert!(
        refused.contains("odd_msgs/msg/Even is found nowhere") && refused.contains("topics.toml:14:8"),
        "{refused}"
    );
    assert!(generate(Path::new("/nowhere/topics.toml"), &[], None).is_err());
}

#[test]
fn a_fault_of_a_definition_is_shown_once_however_many_topics_carry_it() {
    let folder = system();
    fs::write(folder.path().join("packages/odd_msgs/msg/Odd.msg"), "float65 x\n").unwrap();
    let refused = run(folder.path()).unwrap_err().to_string();
    assert_eq!(refused.matches("error:").count(), 1, "{refused}");
}

#[test]
fn generated_c_and_cpp_compile_without_a_warning() {
    let folder = system();
    let out = folder.path().join("out");
    tree::write(&out, &run(folder.path()).unwrap().files).unwrap();
    let c = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../c");
    let include = [format!("-I{}", c.display()), format!("-I{}", c.join("include").display())];
    let warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"];
    let flags = |standard: &'static str, file: &'static str| -> Vec<String> {
        let words = [standard].into_iter().chain(warnings).map(str::to_owned);
        words.chain(include.clone()).chain([file.to_owned()]).collect()
    };
    for (compiler, standard, file) in [
        ("gcc", "-std=c99", "c/odd_msgs.c"),
        ("gcc", "-std=c99", "simulink/odd_msgs_ports.c"),
        ("gcc", "-std=c99", "simulink/plant_runtime.c"),
        ("gcc", "-std=c99", "c/program_drive.h"),
        ("gcc", "-std=c99", "c/program_logger.h"),
        ("g++", "-std=c++17", "c/odd_msgs.h"),
        ("g++", "-std=c++17", "cpp/odd_msgs.hpp"),
        ("g++", "-std=c++17", "cpp/program_viewer.hpp"),
    ] {
        let arguments = flags(standard, file);
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if file.ends_with(".h") {
            arguments.insert(0, if compiler == "g++" { "-xc++" } else { "-xc" });
        } else if file.ends_with(".hpp") {
            arguments.insert(0, "-xc++");
        }
        // Of a header by itself, gcc says that it is the main file, and that not all of it is used.
        arguments.extend(["-Wno-pragma-once-outside-header", "-Wno-unused-function"]);
        if compile(compiler, &arguments, &out).is_none() {
            eprintln!("skipped: {compiler} is not installed");
        }
    }
}
