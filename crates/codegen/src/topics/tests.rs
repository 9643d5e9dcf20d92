//! A system that fits, and the sentence for each thing that does not.

use proptest::prelude::*;

use super::*;
use crate::library::Library;
use crate::model::Named;
use crate::rosidl::{self, Kind};

const PROGRAMS: &str = "
[project]
name = \"robot\"
[programs]
console = { language = \"python\" }
control = { language = \"rust\" }
drive = { language = \"mcu\", line = \"serial:921600\" }
";

fn library() -> Library {
    let mut library = Library::default();
    let mut names = Vec::new();
    for (name, text) in [
        ("Pose", "float64[6] joints\n"),
        ("Text", "string text\nPose[] poses\nLabel label\n"),
        ("Label", "string name\n"),
    ] {
        for defined in rosidl::parse(&Source::new(name, text), Kind::Msg, "p", name).unwrap() {
            names.push(defined.name.clone());
            library.insert(Named::Struct(std::sync::Arc::new(defined)), &mut Faults::default());
        }
    }
    library.resolve(&names).unwrap();
    library
}

/// All faults of a system, warnings included.
fn faults(text: &str) -> String {
    let source = Source::new("topics.toml", format!("{PROGRAMS}{text}"));
    match System::parse(&source) {
        Err(faults) => faults.to_string(),
        Ok(system) => {
            let mut faults = Faults::default();
            check::check(&system, &library(), &mut faults);
            faults.to_string()
        }
    }
}

#[test]
fn a_system_is_read_with_groups_defaults_and_limits() {
    let text = format!(
        "{PROGRAMS}
[defaults]
reliability = \"reliable\"
keep_last = 1
[topics.\"/pose\"]
type = \"p/Pose\"
from = [\"console\"]
to = [\"control\", \"drive\"]
rate_hz = 100
deadline = \"20ms\"
doc = \"Where to go.\"
[groups.joint]
expand = {{ joint = [\"elbow\", \"wrist\"], side = [\"left\", \"right\"] }}
[groups.joint.topics.\"/arm/{{side}}/{{joint}}\"]
type = \"p/msg/Text\"
from = [\"drive\"]
to = [\"control\"]
rate_hz = 0.5
reliability = \"best_effort\"
limits = {{ text = 16, poses = 2, \"label.name\" = 8 }}
doc = \"State of {{joint}}.\"
"
    );
    let system = System::parse(&Source::new("topics.toml", text.as_str())).unwrap();
    let names: Vec<&str> = system.topics.iter().map(|topic| topic.name.as_str()).collect();
    assert_eq!(
        names,
        ["/arm/left/elbow", "/arm/left/wrist", "/arm/right/elbow", "/arm/right/wrist", "/pose"]
    );
    assert_eq!(system.topics[0].doc, "State of elbow.");
    assert_eq!(system.topics[0].ident(), "arm_left_elbow");
    let pose = &system.topics[4];
    assert_eq!((pose.type_name.as_str(), pose.from.len(), pose.to.len()), ("p/msg/Pose", 1, 2));
    assert_eq!((pose.offered.reliability, pose.offered.keep_last), (Reliability::Reliable, 1));
    assert_eq!(pose.offered.deadline_ns, Some(20_000_000));
    let mut found = Faults::default();
    let (library, system) = (library(), system);
    let limits = check::check(&system, &library, &mut found);
    assert_eq!(found.to_string(), "");
    let size = check::size_bytes_max(&library, &system.topics[0].type_name, &limits);
    // Text of 16: 4 + 17 + 3; count 4; padding 4, two poses 96; label 4 + 9.
    assert_eq!(size, Some(24 + 4 + 4 + 96 + 13));
}

/// Every case has these words in its faults.
fn assert_faults<const N: usize>(cases: [(String, [&str; 2]); N]) {
    for (text, expected) in cases {
        let shown = faults(&text);
        for part in expected {
            assert!(shown.contains(part), "{text}\ngives\n{shown}\nwithout {part}");
        }
    }
}

/// The ends of a topic that is in order.
const ENDS: &str = "from = [\"console\"]\nto = [\"control\"]\n";

#[test]
fn each_fault_has_its_sentence_and_its_place() {
    let topic = ENDS;
    assert_faults([
        ("[topics.\"/a\"]\nfrom = [\"console\"]\n".to_owned(), ["topics.toml:8", "topic /a has no type"]),
        (format!("[topics.\"/a\"]\ntype = \"Pose\"\n{topic}"), ["topics.toml:9:8", "write package/msg/Name"]),
        (
            "[topics.\"/a\"]\ntype = \"p/Pose\"\nfrom = [\"consol\"]\n".to_owned(),
            ["topics.toml:10:9", "consol is none of the programs"],
        ),
        (
            "[topics.\"/a\"]\ntype = \"p/Pose\"\nto = [\"control\"]\n".to_owned(),
            ["error: nothing writes /a", "external"],
        ),
        (
            "[topics.\"/a\"]\ntype = \"p/Pose\"\nfrom = [\"control\"]\n".to_owned(),
            ["warning: nothing reads /a", "to"],
        ),
        (
            format!("[topics.\"/a\"]\ntype = \"p/Pose\"\nrate = 5\n{topic}"),
            ["no setting \"rate\"", "rate_hz"],
        ),
        (
            format!("[topics.\"/a\"]\ntype = \"p/Pose\"\nrate_hz = -5\n{topic}"),
            ["rate_hz of topic /a is no number above zero", "topics.toml:10:11"],
        ),
    ]);
    let shown = System::parse(&Source::new("t", "")).unwrap_err().to_string();
    assert!(shown.contains("there is no [project]"), "{shown}");
}

#[test]
fn a_slip_of_the_pen_has_one_fault_and_the_word_that_was_meant() {
    for (text, expected) in [
        ("[project]\nname = \"x\"\nserach = []\n", "write search; there are name"),
        (
            "[project]\nname = \"x\"\n[programs]\na = { language = \"pyhton\" }\n[topics.\"/a\"]\ntype = \"p/Pose\"\nfrom = [\"a\"]\n",
            "write python; there are rust",
        ),
        (
            "[project]\nname = \"x\"\n[programs]\nconsole = { language = \"c\" }\n[topics.\"/a\"]\ntype = \"p/Pose\"\nfrom = [\"consol\"]\n",
            "write console, or add consol",
        ),
    ] {
        let shown = System::parse(&Source::new("topics.toml", text)).unwrap_err().to_string();
        assert_eq!(shown.matches("error:").count(), 1, "{shown}");
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn readers_that_tolerate_less_loss_than_writers_are_refused() {
    let topic = ENDS;
    assert_faults([(
        format!(
            "[topics.\"/a\"]\ntype = \"p/Pose\"\nreliability = \"deadline_bound\"\ndeadline = \"50ms\"\ntolerable_loss_ppm = 1000\n\
                 request = {{ tolerable_loss_ppm = 10 }}\n{topic}"
        ),
        ["readers of /a request at most 10 of a million samples late, and it is written with 1000", "offer"],
    )]);
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let topic = ENDS;
    assert_faults([
        (
            format!("[topics.\"/a\"]\ntype = \"p/Pose\"\nreliability = \"sure\"\n{topic}"),
            ["\"sure\" is no reliability", "deadline_bound"],
        ),
        (
            format!(
                "[topics.\"/a\"]\ntype = \"p/Pose\"\nrequest = {{ reliability = \"reliable\" }}\n{topic}"
            ),
            ["readers of /a request reliable, and it is written best_effort", "offer"],
        ),
        (
            format!("[topics.\"/a\"]\ntype = \"p/Pose\"\nrate_hz = 10\ndeadline = \"2ms\"\n{topic}"),
            ["2 ms, is shorter than its period, 100 ms", "at least one period"],
        ),
        (
            format!("[topics.\"/a\"]\ntype = \"p/Pose\"\ndeadline = \"2 hours\"\n{topic}"),
            ["\"2 hours\" is no span of time", "2ms"],
        ),
        (
            format!("[topics.\"/a\"]\ntype = \"p/Pose\"\nlimits = {{ joints = 5 }}\n{topic}"),
            ["joints has a bound already", "remove the limit"],
        ),
        (
            format!("[topics.\"/a\"]\ntype = \"p/Text\"\nlimits = {{ nosuch = 5 }}\n{topic}"),
            ["p/msg/Text has no field \"nosuch\"", "topics.toml:10"],
        ),
        (
            format!("[topics.\"/a b\"]\ntype = \"p/Pose\"\n{topic}"),
            ["\"/a b\" is not a name that a topic may have", "letters"],
        ),
        (
            format!("[topics.\"/a/{{x}}\"]\ntype = \"p/Pose\"\n{topic}"),
            ["not a name that a topic may have", "expand"],
        ),
        (
            format!(
                "[topics.\"/a/b\"]\ntype = \"p/Pose\"\n{topic}[topics.\"/a_b\"]\ntype = \"p/Pose\"\n{topic}"
            ),
            ["/a/b and /a_b have the same name in code, a_b", "rename"],
        ),
        (
            "[topics.\"/a\"]\ntype = \"p/Text\"\nfrom = [\"drive\"]\nto = [\"control\"]\n".to_owned(),
            ["drive has no heap: label.name, poses, text", "limits = { \"label.name\" = 16 }"],
        ),
        (
            "[topics.\"/a\"]\ntype = \"p/Pose\"\nfrom = [\"drive\"]\nto = [\"control\"]\nrate_hz = 4000\n"
                .to_owned(),
            ["drive writes 304000 bytes a second, and its line carries 73728", "topics.toml:7"],
        ),
        (
            "[topics.\"/a\"]\ntype = \"p/Text\"\nplain = true\nfrom = [\"console\"]\nto = [\"control\"]\n"
                .to_owned(),
            ["p/msg/Text cannot be plain: ", "arrays of a fixed length"],
        ),
        (
            "[topics.\"/a\"]\ntype = \"p/Pose\"\nplain = true\nfrom = [\"drive\"]\nto = [\"control\"]\n"
                .to_owned(),
            ["/a is plain, and drive, in mcu, understands CDR alone", "remove plain = true"],
        ),
        (
            format!("[topics.\"/a\"]\ntype = \"p/Pose\"\nplain = \"yes\"\n{topic}"),
            ["plain of topic /a is no truth value", "topics.toml:10"],
        ),
    ]);
}

#[test]
fn services_that_do_not_fit_are_refused() {
    let topic = ENDS;
    assert_faults([
        (
            "[services.\"/a\"]\ntype = \"p/srv/Go\"\nclients = [\"control\"]\n".to_owned(),
            ["nothing serves /a", "name a program in servers"],
        ),
        (
            "[services.\"/a\"]\ntype = \"p/srv/Go\"\nservers = [\"drive\"]\nclients = [\"control\"]\n".to_owned(),
            ["drive, in mcu, takes part in /a", "give this one topics"],
        ),
        (
            "[services.\"/a\"]\ntype = \"p/msg/Pose\"\nservers = [\"console\"]\nclients = [\"control\"]\n".to_owned(),
            ["\"p/msg/Pose\" is no service", "write package/srv/Name"],
        ),
        (
            "[services.\"/a\"]\ntype = \"p/Go\"\nservers = [\"console\"]\nclients = [\"control\"]\nrate_hz = 1\n".to_owned(),
            ["service /a has no setting \"rate_hz\"", "idempotent"],
        ),
        (
            format!("[topics.\"/a_client\"]\ntype = \"p/Pose\"\n{topic}[services.\"/a\"]\ntype = \"p/Go\"\nservers = [\"console\"]\nclients = [\"control\"]\n"),
            ["/a_client and /a have the same name in code, a_client", "rename"],
        ),
        ("[nosuch]\n".to_owned(), ["topics.toml has no setting \"nosuch\"", "groups"]),
        ("x = [\n".to_owned(), ["this is no TOML", "topics.toml:"]),
    ]);
}

#[test]
fn actions_that_do_not_fit_are_refused() {
    let action = |name: &str, rest: &str| format!("[actions.\"{name}\"]\ntype = \"p/Go\"\n{rest}");
    let ends = "servers = [\"console\"]\nclients = [\"control\"]\n";
    assert_faults([
        (action("/a", "clients = [\"control\"]\n"), ["nothing executes /a", "name a program in servers"]),
        (
            action("/a", "servers = [\"drive\"]\nclients = [\"control\"]\n"),
            ["drive, in mcu, takes part in /a", "actions are not generated"],
        ),
        (
            action("/a", ends).replace("p/Go", "p/srv/Go"),
            ["\"p/srv/Go\" is no action", "write package/action/Name"],
        ),
        (
            action("/a", &format!("{ends}idempotent = true\n")),
            ["action /a has no setting \"idempotent\"", "result_deadline"],
        ),
        (
            action("/a", &format!("{ends}keep_results = \"long\"\n")),
            ["\"long\" is no span of time", "write 500us"],
        ),
        (
            format!("{}{}", action("/a", ends), action("/a", ends).replace("action", "service")),
            ["/a and /a have the same name in code, a_client", "rename"],
        ),
        (
            action(&format!("/{}", "a".repeat(223)), ends),
            ["the name of the action has 224 bytes", "use at most 223"],
        ),
    ]);
    assert_eq!(faults(&action(&format!("/{}", "a".repeat(222)), ends)), "");
}

#[test]
fn limits_of_a_running_system_are_warned_of() {
    let words = |count: usize| (0..count).map(|at| format!("\"w{at}\"")).collect::<Vec<_>>().join(", ");
    let group = |count: usize, to: &str| {
        let topic = format!("type = \"p/Pose\"\nfrom = [\"console\"]\nto = [\"{to}\"]\n");
        format!("[groups.g]\nexpand = {{ x = [{}] }}\n[groups.g.topics.\"/{{x}}\"]\n{topic}", words(count))
    };
    assert_eq!(faults(&group(127, "control")), "");
    let shown = faults(&group(128, "control"));
    assert!(shown.contains("warning: control reads 128 publishers, and one thread waits for 127"), "{shown}");

    let external = "outside = { language = \"external\" }\n";
    let shown = faults(&format!("{external}{}", group(4097, "outside")));
    assert!(shown.contains("4097 topics go to programs outside, and the DDS bridge carries 4096"), "{shown}");

    let programs: String = (0..257).map(|at| format!("w{at} = {{ language = \"rust\" }}\n")).collect();
    let read_by = |count: usize| {
        let topic = format!("type = \"p/Pose\"\nfrom = [\"console\"]\nto = [{}]\n", words(count));
        faults(&format!("{programs}[topics.\"/a\"]\n{topic}"))
    };
    assert_eq!(read_by(256), "");
    assert!(read_by(257).contains("/a has 257 readers, and 256 can share memory"));
}

#[test]
fn a_group_does_not_expand_without_end() {
    let words: Vec<String> = (0..200).map(|number| format!("\"w{number}\"")).collect();
    let words = words.join(",");
    let text = format!(
        "[groups.g]\nexpand = {{ a = [{words}], b = [{words}], c = [{words}] }}\n[groups.g.topics.\"/{{a}}{{b}}{{c}}\"]\ntype = \"p/Pose\"\n"
    );
    assert!(faults(&text).contains("expands to more than 10000 topics"));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(
        text in "[\\[\\]\"a-z./{}=, \n0-9_]{0,120}",
        words in prop::collection::vec(prop::sample::select(vec![
            "[topics.\"/a\"]\n", "type", "=", "\"p/Pose\"\n", "from", "[\"console\"]\n", "limits", "{", "}", "\n", "expand",
            "[groups.g]\n", "5\n", "rate_hz", "deadline", "\"2ms\"\n", "request", "{ reliability = \"reliable\" }\n",
            "[actions.\"/a\"]\n", "[services.\"/a\"]\n", "servers", "clients", "keep_results", "\"p/Go\"\n",
        ]), 0..40),
    ) {
        let _ = faults(&text);
        let _ = faults(&words.concat());
        let _ = System::parse(&Source::new("t", text));
    }
}
