//! Coverage of the library by each language: `docs/guide/languages.md` shows the table, and this derives it from the code.
//!
//! A name in the table must be in its language's sources, and every function of the C header must be in the table: an author that adds one says
//! what it is in the other languages. With `NOCTULE_WRITE=1` the document is written anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests and what they share

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Function, and its name in Rust, C, C++ and Python; `-` where the language has none.
const ROWS: &[[&str; 5]] = &[
    ["start a node", "Node::open", "noctule_node_open", "Node", "Node"],
    ["close a node", "Drop", "noctule_node_close", "~Node", "close"],
    ["domain", "domain", "domain", "domain", "domain"],
    ["static peers", "static_peer", "static_peers", "static_peers", "static_peers"],
    ["key", "swarm_key", "swarm_key", "swarm_key", "swarm_key"],
    ["only one interface", "interface", "interface_address", "interface_address", "interface"],
    [
        "share memory with a group",
        "share_with_group",
        "shares_with_group",
        "share_with_group",
        "share_with_group",
    ],
    ["no shared memory", "without_shared_memory", "without_shared_memory", "shared_memory", "shared_memory"],
    [
        "limit of unacknowledged bytes",
        "unacknowledged_bytes_max",
        "unacknowledged_bytes_max",
        "unacknowledged_bytes_max",
        "unacknowledged_bytes_max",
    ],
    ["an artificial clock", "clock", "-", "-", "-"],
    ["notices by a callback, log hook", "on_notice", "on_notice", "on_notice", "on_notice"],
    ["notices one by one", "poll_notice", "-", "-", "-"],
    ["the node's number", "id", "noctule_node_id", "id", "id"],
    ["now on the node's clock", "now", "noctule_now_ns", "now", "now_ns"],
    [
        "source time of another clock's stamp",
        "source_time_of",
        "noctule_source_time_of",
        "source_time_of",
        "source_time_of",
    ],
    ["other nodes", "nodes", "noctule_nodes", "nodes", "nodes"],
    ["their endpoints", "endpoints", "noctule_endpoints", "endpoints", "endpoints"],
    ["describe a type to them", "describe", "noctule_node_describe", "describe", "describe"],
    ["round trip to a node", "ping", "noctule_ping", "ping", "ping"],
    ["counters of a node", "counters", "noctule_node_counters", "counters", "counters"],
    ["… of what it sent", "send_counters", "sent_datagrams", "counters", "sent_datagrams"],
    [
        "… bytes that are not acknowledged",
        "unacknowledged_bytes",
        "unacknowledged_bytes",
        "counters",
        "unacknowledged_bytes",
    ],
    ["counters of a link", "link_counters", "noctule_link_counters", "link_counters", "link_counters"],
    ["… its path: round trip, loss, capacity", "path_to", "-", "-", "-"],
    ["… those of another node", "links_of", "-", "-", "-"],
    ["another node's clock", "clock_of", "-", "-", "-"],
    ["description of a type, from another node", "type_description", "-", "-", "-"],
    ["changes by a callback", "on_change", "-", "-", "-"],
    ["open a topic for writing", "publisher", "noctule_publisher_open", "publisher", "publisher"],
    ["type", "type_name", "type_name", "type_name", "type_name"],
    ["format of a publisher", "format", "format", "format", "format"],
    ["formats of a subscriber", "formats", "format", "format", "formats"],
    ["longest sample", "payload_bytes_max", "payload_bytes_max", "payload_bytes_max", "payload_bytes_max"],
    ["number of samples that may be borrowed", "borrows", "borrows", "borrows", "borrows"],
    ["all QoS at once", "qos", "qos", "qos", "-"],
    ["… reliability", "reliability", "reliability", "reliability", "reliability"],
    [
        "… history for late joiners",
        "transient_local",
        "transient_local",
        "transient_local",
        "transient_local",
    ],
    ["… deadline", "deadline", "deadline_ns", "deadline", "deadline"],
    [
        "… share of samples that may miss it",
        "tolerable_loss",
        "tolerable_loss_ppm",
        "tolerable_loss_ppm",
        "tolerable_loss",
    ],
    ["… lifespan", "lifespan", "lifespan_ns", "lifespan", "lifespan"],
    ["… keep last", "keep_last", "keep_last", "keep_last", "keep_last"],
    ["… keep all", "keep_all", "keep_all", "keep_all", "keep_all"],
    ["multicast", "multicast", "multicast", "multicast", "multicast"],
    ["publish a copy", "publish", "noctule_publish", "publish", "publish"],
    ["publish with a source time", "publish_at", "noctule_publish_at", "publish_at", "source_time_ns"],
    [
        "publish with a source time and its bound",
        "publish_uncertain",
        "noctule_publish_uncertain",
        "publish_uncertain",
        "bound_ns",
    ],
    ["write in place", "loan", "noctule_loan", "loan", "loan"],
    ["publish the loan", "publish_loan", "noctule_publish_loan", "publish_part", "publish"],
    ["return the loan", "drop_loan", "noctule_drop_loan", "~Loan", "drop"],
    [
        "wait for room in the history (keep all)",
        "wait_for_room",
        "noctule_wait_for_room",
        "wait_for_room",
        "wait_for_room",
    ],
    [
        "wait for acknowledgements",
        "wait_for_acknowledgments",
        "noctule_wait_for_acknowledgments",
        "wait_for_acknowledgments",
        "wait_for_acknowledgments",
    ],
    ["closing waits for them", "linger", "linger_ns", "linger", "linger"],
    ["readers that are matched", "readers", "noctule_publisher_readers", "readers", "readers"],
    ["counters of a publisher", "given_up", "noctule_publisher_counters", "counters", "counters"],
    ["… samples published", "published", "published", "published", "published"],
    ["… of a deadline, by reader", "deadline_counters", "-", "-", "-"],
    ["… capacity of the path, by reader", "capacities_bytes_per_s", "-", "-", "-"],
    ["… samples that would have blocked", "would_block", "would_block", "would_block", "would_block"],
    ["… times a reader held it up for 5 s", "held_up", "held_up", "held_up", "held_up"],
    ["close a publisher", "Drop", "noctule_publisher_close", "~Publisher", "close"],
    ["use by a second thread is an error", "&mut self", "NOCTULE_ERROR_BUSY", "Error", "lock"],
    ["open a topic for reading", "subscriber", "noctule_subscriber_open", "subscriber", "subscriber"],
    ["take without a copy", "take", "noctule_take", "take", "take"],
    ["take a copy", "take_into", "noctule_take_into", "-", "copy"],
    ["take the newest", "take_latest", "noctule_take_latest", "take_latest", "latest"],
    ["wait for a sample", "receive", "noctule_receive", "receive", "receive"],
    ["release a sample", "Drop", "noctule_sample_release", "~Sample", "Sample"],
    ["age, bound, sigma", "age", "age_ns", "age", "age"],
    ["its publisher and medium", "publisher", "publisher", "publisher", "publisher"],
    ["… by which of its publishers", "EndpointId", "endpoint", "endpoint", "endpoint"],
    ["ignore the own node's samples", "ignore_local", "ignore_local", "ignore_local", "ignore_local"],
    [
        "publishers that are matched",
        "publishers",
        "noctule_subscriber_publishers",
        "publishers",
        "publishers",
    ],
    ["statistics of a topic", "statistics", "noctule_subscriber_statistics", "statistics", "statistics"],
    [
        "… missed deadlines between samples",
        "deadline_missed",
        "deadline_missed",
        "deadline_missed",
        "deadline_missed",
    ],
    ["histogram of ages", "ages", "-", "-", "-"],
    ["descriptor for poll and epoll", "descriptor", "noctule_subscriber_descriptor", "descriptor", "fileno"],
    ["asynchronous: Stream, asyncio", "into_samples", "-", "-", "__aiter__"],
    ["close a subscriber", "Drop", "noctule_subscriber_close", "~Subscriber", "close"],
    ["wait for many", "WaitSet", "noctule_wait_set_open", "WaitSet", "WaitSet"],
    ["… until one has a sample", "wait", "noctule_wait", "wait", "receive"],
    ["… or another thread wakes it", "wake", "noctule_wake", "wake", "wake"],
    ["… close it", "Drop", "noctule_wait_set_close", "~WaitSet", "WaitSet"],
    ["callbacks for samples", "Dispatcher", "noctule_dispatcher_open", "Dispatcher", "Dispatcher"],
    ["… of one subscriber", "on_sample", "noctule_on_sample", "on_sample", "on_sample"],
    ["… a callback for errors", "Result", "noctule_on_error", "Error", "Exception"],
    ["… until stopped", "spin", "noctule_spin", "spin", "spin"],
    ["… once", "spin_once", "noctule_spin_once", "spin_once", "spin_once"],
    ["… stop", "stop", "noctule_stop", "stop", "stop"],
    ["… close it", "Drop", "noctule_dispatcher_close", "~Dispatcher", "Dispatcher"],
    ["call a service", "client", "noctule_client_open", "client", "client"],
    ["… and wait for its response", "call", "noctule_call", "call", "call"],
    ["… or begin the call", "start", "noctule_call_start", "start", "call_async"],
    ["… and wait for any", "next", "noctule_call_next", "next", "call_async"],
    ["… or cancel it", "cancel", "noctule_call_cancel", "cancel", "-"],
    ["… release the reply", "Drop", "noctule_reply_release", "Received", "Reply"],
    ["… close it", "Drop", "noctule_client_close", "Owner", "close"],
    ["serve a service", "server", "noctule_server_open", "server", "server"],
    ["… wait for a request", "receive", "noctule_server_receive", "receive", "receive"],
    ["… answer it", "reply", "noctule_server_reply", "reply", "reply"],
    ["… or fail it with a reason", "fail", "noctule_server_fail", "fail", "fail"],
    ["… with a function", "serve", "-", "serve", "serve"],
    [
        "… whether the client still waits",
        "is_cancelled",
        "noctule_server_is_cancelled",
        "is_cancelled",
        "is_cancelled",
    ],
    ["… release the request", "Drop", "noctule_request_release", "Received", "Request"],
    ["… close it", "Drop", "noctule_server_close", "Owner", "close"],
    ["typed requests", "TypedClientBuilder", "-", "TypedClient", "TypedClient"],
    [
        "send goals of an action",
        "action_client",
        "noctule_action_client_open",
        "action_client",
        "action_client",
    ],
    ["… one goal", "start", "noctule_action_send", "start", "start"],
    ["… wait until it is accepted", "send_goal", "-", "-", "send_goal"],
    ["… its events", "next", "noctule_action_next", "next", "next"],
    ["… release a message", "Drop", "noctule_goal_message_release", "Received", "GoalEvent"],
    ["… wait for its result", "wait_for_result", "-", "-", "wait_for_result"],
    ["… cancel it, or others", "start_cancel", "noctule_action_cancel", "cancel", "cancel"],
    [
        "… wait for a server",
        "wait_for_server",
        "noctule_action_wait_for_server",
        "wait_for_server",
        "wait_for_server",
    ],
    ["… close it", "Drop", "noctule_action_client_close", "Owner", "close"],
    [
        "execute goals of an action",
        "action_server",
        "noctule_action_server_open",
        "action_server",
        "action_server",
    ],
    [
        "… a callback that allows or refuses a cancellation",
        "on_cancel",
        "noctule_cancel_callback_t",
        "on_cancel",
        "-",
    ],
    ["… wait for a goal", "next", "noctule_action_server_next", "next", "next"],
    ["… its number", "id", "noctule_goal_id", "id", "id"],
    ["… accept it", "accept", "noctule_goal_accept", "accept", "accept"],
    ["… or reject it", "reject", "noctule_goal_reject", "reject", "reject"],
    ["… execute it later", "execute", "noctule_goal_execute", "execute", "execute"],
    [
        "… wait until it is to be canceled",
        "wait_for_cancel",
        "noctule_goal_wait_for_cancel",
        "wait_for_cancel",
        "wait_for_cancel",
    ],
    ["… publish feedback", "feedback", "noctule_goal_feedback", "feedback", "feedback"],
    ["… end it", "end", "noctule_goal_end", "end", "end"],
    ["… abandon it", "Drop", "noctule_goal_close", "Received", "close"],
    ["… close it", "Drop", "noctule_action_server_close", "Owner", "close"],
    ["typed actions", "TypedActionClientBuilder", "-", "TypedActionClient", "TypedActionClient"],
    ["parameters of a node", "parameters", "noctule_parameters_open", "parameters", "parameters"],
    ["… declare one", "declare_as", "noctule_parameters_declare", "declare", "declare"],
    ["… its value", "get", "noctule_parameters_get", "get", "get"],
    ["… set it", "set", "noctule_parameters_set", "set", "set"],
    ["… all or none", "set_all", "-", "-", "-"],
    [
        "… a callback that allows or refuses a value",
        "on_set",
        "noctule_parameters_on_set",
        "on_set",
        "on_set",
    ],
    ["… close it", "Drop", "noctule_parameters_close", "Owner", "close"],
    [
        "another node's parameters",
        "parameter_client",
        "noctule_parameter_client_open",
        "parameter_client",
        "parameter_client",
    ],
    ["… their names", "list", "noctule_parameter_client_list", "list", "list"],
    ["… a value", "get", "noctule_parameter_client_get", "get", "get"],
    ["… set it", "set", "noctule_parameter_client_set", "set", "set"],
    ["… its description", "describe", "-", "-", "describe"],
    ["… all or none", "set_atomically", "-", "-", "-"],
    ["… release a value", "Drop", "noctule_parameter_release", "Owner", "get"],
    ["… close it", "Drop", "noctule_parameter_client_close", "Owner", "close"],
    ["why a call failed", "Error", "noctule_last_error", "Error", "NoctuleError"],
    ["typed topics", "typed", "-", "TypedPublisher", "TypedPublisher"],
];

/// Each row with a dash, and why it is there.
const WHY_NOT: &[(&str, &str)] = &[
    ("an artificial clock", "tests and simulations that need one are written in Rust"),
    ("notices one by one", "they come to a callback"),
    ("… its path: round trip, loss, capacity", "not there yet"),
    ("… those of another node", "not there yet"),
    ("another node's clock", "not there yet; ages, bounds and source times are by the own clock already"),
    (
        "description of a type, from another node",
        "not there yet; the tools that show types are written in Rust",
    ),
    ("changes by a callback", "not there yet; ask for nodes and endpoints again"),
    ("all QoS at once", "Python has keyword arguments"),
    ("… of a deadline, by reader", "not there yet"),
    ("… capacity of the path, by reader", "not there yet"),
    ("take a copy", "C++ copies from the sample, which gives itself back"),
    ("histogram of ages", "not there yet; the statistics have its quantiles"),
    ("asynchronous: Stream, asyncio", "C and C++ poll the descriptor"),
    ("… or cancel it", "not there yet in Python; a call ends by its deadline"),
    ("… with a function", "C receives and replies in a loop"),
    (
        "typed requests",
        "C has no generics; the generator writes `NAME_call_SERVICE`, `NAME_receive_SERVICE` and `NAME_reply_SERVICE`",
    ),
    ("… wait until it is accepted", "what becomes of a goal says so, by `next`"),
    ("… wait for its result", "what becomes of a goal brings it, by `next`"),
    ("… a callback that allows or refuses a cancellation", "not there yet; each is canceled"),
    (
        "typed actions",
        "C has no generics; the generator writes `NAME_send_ACTION`, `NAME_next_ACTION`, `NAME_receive_ACTION`, `NAME_feedback_ACTION` and `NAME_end_ACTION`",
    ),
    ("… all or none", "not there yet"),
    ("… its description", "not there yet"),
    (
        "typed topics",
        "C has no generics; the generator writes `NAME_open_TOPIC`, `NAME_publish_TOPIC` and `NAME_read_TOPIC`",
    ),
];

/// Names that are public in Rust and in no row, and why. Everything else that a node, its endpoints and their builders can do is in a row.
const NOT_IN_TABLE: &[(&str, &str)] = &[
    ("builder", "how Rust gives options"),
    ("new", "`Node::open` without options"),
    ("keep_notices", "how Rust chooses `poll_notice`, a row"),
    ("publish_in_place", "`loan` and `publish_loan` with a function between them"),
    ("topic", "what the caller opened it with"),
    ("endpoint", "the number of the own endpoint; that of a sample's publisher is a row"),
    ("aligned_behind_header", "for a middleware on top, whose messages have a header of CDR"),
    ("raw_client", "for a middleware on top, that brings its own types"),
    ("raw_server", "for a middleware on top, that brings its own types"),
    ("raw_action_client", "for a middleware on top, that brings its own types"),
    ("raw_action_server", "for a middleware on top, that brings its own types"),
];

/// A word of another language that has the name of a row's dash, and what it is there.
const OTHER_MEANINGS: &[(&str, &str, &str)] = &[
    ("C", "describe", "noctule_node_describe: a type, to other nodes"),
    ("C++", "clock", "the clock of a stamp"),
    ("C++", "describe", "a type, to other nodes"),
    ("Python", "cancel", "a goal"),
    ("Python", "qos", "of the glue alone"),
];

/// Prefixes of a function's word in C.
const C_OBJECTS: &[&str] = &[
    "noctule_",
    "noctule_node_",
    "noctule_publisher_",
    "noctule_subscriber_",
    "noctule_client_",
    "noctule_server_",
    "noctule_action_",
    "noctule_parameters_",
    "noctule_parameter_client_",
];

/// Types of the library whose every public function is looked for in the table.
const TYPES: &[&str] =
    &["Node", "NodeBuilder", "Publisher", "PublisherBuilder", "Subscriber", "SubscriberBuilder"];

/// Where a language's names are looked for.
const SOURCES: [&[&str]; 4] = [
    &["crates/noctule/src"],
    &["c/include/noctule/noctule.h", "c/include/noctule/action.h"],
    &[
        "c/include/noctule/noctule.hpp",
        "c/include/noctule/request.hpp",
        "c/include/noctule/action.hpp",
        "c/include/noctule/parameter.hpp",
        "c/include/noctule/typed.hpp",
        "c/include/noctule/service.hpp",
        "c/include/noctule/typed_action.hpp",
    ],
    &["python/noctule", "python/src"],
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path, text: &mut String) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|path| read(path, text));
    } else if path
        .extension()
        .is_some_and(|end| ["rs", "h", "hpp", "py", "pyi"].iter().any(|known| end == *known))
    {
        text.push_str(&fs::read_to_string(path).unwrap());
    }
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether a name stands in a text as a word of its own.
fn has_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// The form of a name in the code: C++'s destructors are those of its classes, and Rust's methods have a type in front.
fn in_code(name: &str) -> &str {
    let name = name.strip_prefix('~').unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

/// Names that are methods in Rust are public functions.
fn is_there(language: usize, text: &str, name: &str) -> bool {
    let name = in_code(name);
    let is_method = language == 0 && name.chars().all(|c| c.is_lowercase() || c == '_');
    match is_method {
        true => ["pub fn ", "pub async fn "].iter().any(|head| has_word(text, &format!("{head}{name}"))),
        false => has_word(text, name),
    }
}

fn table() -> String {
    let mut table = "| | Rust | C | C++ | Python |\n|---|---|---|---|---|\n".to_owned();
    for [what, names @ ..] in ROWS {
        let cells = names.map(|name| if name == "-" { "–".to_owned() } else { format!("`{name}`") });
        table.push_str(&format!("| {what} | {} |\n", cells.join(" | ")));
    }
    table.push_str("\n## Why there is a dash\n\n| | why |\n|---|---|\n");
    WHY_NOT.iter().for_each(|(what, why)| table.push_str(&format!("| {what} | {why} |\n")));
    table
}

#[test]
fn every_dash_of_the_table_has_its_reason() {
    let with_dash: BTreeSet<&str> =
        ROWS.iter().filter(|row| row.contains(&"-")).map(|[what, ..]| *what).collect();
    let with_reason: BTreeSet<&str> = WHY_NOT.iter().map(|(what, _)| *what).collect();
    assert_eq!(with_dash, with_reason, "correct WHY_NOT of crates/ffi/tests/parity.rs");
    assert_eq!(WHY_NOT.len(), with_reason.len(), "one of each");
}

#[test]
fn every_name_of_the_table_is_in_its_language() {
    for (language, folders) in SOURCES.iter().enumerate() {
        let mut text = String::new();
        folders.iter().for_each(|folder| read(&root().join(folder), &mut text));
        for row in ROWS {
            let name = row[language + 1];
            assert!(
                name == "-" || is_there(language, &text, name),
                "{name} ({}) is not in {folders:?}",
                row[0]
            );
        }
    }
}

/// The public functions of [`TYPES`] in Rust sources: those in blocks that begin with `impl` and the type's name and end with a brace in the first column.
fn functions(text: &str) -> Vec<String> {
    let mut functions = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("impl").and_then(|rest| rest.strip_suffix('{')) {
            let name = head.rsplit_once("> ").map_or(head, |(_, name)| name).trim();
            is_inside = TYPES.contains(&name);
        } else if line == "}" {
            is_inside = false;
        }
        let function = line.strip_prefix("    pub fn ").or_else(|| line.strip_prefix("    pub async fn "));
        if let Some(function) = function.filter(|_| is_inside) {
            functions.push(function.split(['(', '<']).next().unwrap_or_default().to_owned());
        }
    }
    functions
}

#[test]
fn every_function_of_nodes_and_endpoints_is_in_the_table_or_has_a_reason_not_to_be() {
    let mut text = String::new();
    read(&root().join(SOURCES[0][0]), &mut text);
    let functions = functions(&text);
    assert!(functions.len() > 70, "{functions:?}");
    for function in &functions {
        let in_row = ROWS.iter().any(|row| in_code(row[1]) == function);
        let has_reason = NOT_IN_TABLE.iter().any(|(name, _)| name == function);
        assert!(
            in_row != has_reason,
            "{function}: in one of ROWS and NOT_IN_TABLE of crates/ffi/tests/parity.rs"
        );
    }
    for (name, _) in NOT_IN_TABLE {
        assert!(functions.iter().any(|function| function == name), "{name} is no function any more");
    }
}

/// A dash is true: the language has no word that is the row's in Rust, in C with `noctule_` and the object in front.
#[test]
fn what_the_table_says_is_not_there_is_not_there() {
    let mut wrong = Vec::new();
    for (language, name) in [(1, "C"), (2, "C++"), (3, "Python")] {
        let mut text = String::new();
        SOURCES[language].iter().for_each(|folder| read(&root().join(folder), &mut text));
        let heads: &[&str] = match language {
            1 => C_OBJECTS,
            2 => &[""],
            _ => &["fn ", "def ", "class "],
        };
        for row in ROWS.iter().filter(|row| row[language + 1] == "-") {
            let word = in_code(row[1]);
            let is_there = heads.iter().any(|head| has_word(&text, &format!("{head}{word}")));
            let is_other = OTHER_MEANINGS.iter().any(|(other, of, _)| (*other, *of) == (name, word));
            if is_there != is_other {
                wrong.push(format!("{name}, {}: {word}", row[0]));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "there although the table says not, or not there although OTHER_MEANINGS says so; correct crates/ffi/tests/parity.rs: {wrong:#?}"
    );
}

#[test]
fn every_function_of_the_c_header_is_in_the_table() {
    let mut header = String::new();
    SOURCES[1].iter().for_each(|file| read(&root().join(file), &mut header));
    let mut functions = 0;
    for line in header.lines().filter(|line| !line.starts_with([' ', '/', '*', '#', 't'])) {
        let Some((head, _)) = line.split_once('(') else { continue };
        let name = head.rsplit([' ', '*']).next().unwrap_or_default();
        if name.starts_with("noctule_") {
            functions += 1;
            assert!(
                ROWS.iter().any(|row| row[2] == name),
                "{name} is not in the table of crates/ffi/tests/parity.rs"
            );
        }
    }
    assert!(functions > 40, "{functions}");
}

#[test]
fn the_document_shows_the_table() {
    let path = root().join("docs/guide/languages.md");
    let text = fs::read_to_string(&path).unwrap();
    let (head, _) = text.split_once("| |").expect("a table");
    let fresh = format!("{head}{}", table());
    if std::env::var("NOCTULE_WRITE").is_ok() {
        fs::write(&path, &fresh).unwrap();
    }
    assert!(
        text == fresh,
        "docs/guide/languages.md is not what the code says; run this test with NOCTULE_WRITE=1"
    );
}
