//! `.msg`, `.srv` and `.action` of ROS 2, by the grammar of rosidl_adapter.
//!
//! A service gives a request, a response, an event and the service itself as a type of those three; an action gives its
//! goal, result and feedback, the two services and the message that carry them, and the action itself. The names and
//! members of what is derived are those of rosidl, because they are part of ROS 2's type hashes.

mod lines;
pub(crate) mod literal;
pub mod rules;

use std::ops::Range;

use crate::diagnostic::{Fault, Faults, Place, Source};
use crate::model::{Element, Field, Primitive, Shape, Struct, TypeName};

/// Kind of a definition file, by its ending and folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// One message.
    Msg,
    /// A request and a response.
    Srv,
    /// A goal, a result and feedback.
    Action,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Msg, Self::Srv, Self::Action];

    /// Folder and ending: `msg`, `srv`, `action`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Msg => "msg",
            Self::Srv => "srv",
            Self::Action => "action",
        }
    }
}

/// Reads a file of one message, service or action of this name into all types that it defines.
///
/// # Errors
/// Everything that is wrong with the text, each with its place.
pub fn parse(source: &Source, kind: Kind, package: &str, name: &str) -> Result<Vec<Struct>, Faults> {
    let mut faults = Faults::default();
    let start = Place::new(source, 0..0);
    if !rules::is_field_name(package) {
        let what = format!("\"{package}\" is not a name that a package may have");
        let help = "a package's name has lower-case letters, digits and single underscores, and begins with a letter";
        faults.push(Fault::at(start.clone(), what).help(help));
    }
    if !rules::is_type_name(name) {
        let what = format!("\"{name}\" is not a name that a type may have");
        let help = "the file's name has letters and digits, and begins with an upper-case letter";
        faults.push(Fault::at(start, what).help(help));
    }
    let parts = split(source);
    let wanted = match kind {
        Kind::Msg => 1,
        Kind::Srv => 2,
        Kind::Action => 3,
    };
    if parts.len() != wanted {
        let end = parts.get(wanted).map_or(source.text.len(), |part| part.start.saturating_sub(1));
        let start = source.text[..end].rfind('\n').map_or(0, |newline| newline + 1);
        let (rule, help) = match kind {
            Kind::Msg => {
                ("a .msg has no line ---", "put a request and its response, with --- in between, into a .srv")
            }
            Kind::Srv => ("a .srv has one line ---", "write the request, a line ---, the response"),
            Kind::Action => (
                "an .action has two lines ---",
                "write the goal, a line ---, the result, a line ---, the feedback",
            ),
        };
        let what = format!("{rule}, and this one has {}", parts.len() - 1);
        return Err(Fault::at(Place::new(source, start..end), what).help(help).into());
    }
    let full = TypeName::ros(package, kind.word(), name);
    let mut read = |index: usize, suffix: &str| {
        lines::parse(source, parts[index].clone(), full.with_suffix(suffix), &mut faults)
    };
    let types = match kind {
        Kind::Msg => vec![read(0, "")],
        Kind::Srv => service(&full, read(0, "_Request"), read(1, "_Response")),
        Kind::Action => action(&full, [read(0, "_Goal"), read(1, "_Result"), read(2, "_Feedback")]),
    };
    if faults.refuse() { Err(faults) } else { Ok(types) }
}

/// The parts of a file between lines of `---`.
fn split(source: &Source) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in source.text.split_inclusive('\n') {
        let next = at + line.len();
        if line.trim_end() == "---" {
            parts.push(start..at);
            start = next;
        }
        at = next;
    }
    parts.push(start..source.text.len());
    parts
}

fn member(name: &str, of: &TypeName) -> Field {
    Field::new(name, Element::Named(of.clone()), Shape::One)
}

/// A service of its two messages: the service as a type, request, response, event.
fn service(name: &TypeName, request: Struct, response: Struct) -> Vec<Struct> {
    let one = Shape::Sequence(Some(1));
    let event = Struct::new(
        name.with_suffix("_Event"),
        vec![
            member("info", &TypeName::ros("service_msgs", "msg", "ServiceEventInfo")),
            Field::new("request", Element::Named(request.name.clone()), one),
            Field::new("response", Element::Named(response.name.clone()), one),
        ],
    );
    let all = Struct::new(
        name.clone(),
        vec![
            member("request_message", &request.name),
            member("response_message", &response.name),
            member("event_message", &event.name),
        ],
    );
    vec![all, request, response, event]
}

/// An action of its three messages, with what is derived.
fn action(name: &TypeName, [goal, result, feedback]: [Struct; 3]) -> Vec<Struct> {
    let goal_id = || member("goal_id", &TypeName::ros("unique_identifier_msgs", "msg", "UUID"));
    let send = name.with_suffix("_SendGoal");
    let get = name.with_suffix("_GetResult");
    let carrier = Struct::new(
        name.with_suffix("_FeedbackMessage"),
        vec![goal_id(), member("feedback", &feedback.name)],
    );
    let all = Struct::new(
        name.clone(),
        vec![
            member("goal", &goal.name),
            member("result", &result.name),
            member("feedback", &feedback.name),
            member("send_goal_service", &send),
            member("get_result_service", &get),
            member("feedback_message", &carrier.name),
        ],
    );
    let sent = Struct::new(send.with_suffix("_Request"), vec![goal_id(), member("goal", &goal.name)]);
    let accepted = Struct::new(
        send.with_suffix("_Response"),
        vec![
            Field::new("accepted", Element::Primitive(Primitive::Bool), Shape::One),
            member("stamp", &TypeName::ros("builtin_interfaces", "msg", "Time")),
        ],
    );
    let asked = Struct::new(get.with_suffix("_Request"), vec![goal_id()]);
    let got = Struct::new(
        get.with_suffix("_Response"),
        vec![
            Field::new("status", Element::Primitive(Primitive::I8), Shape::One),
            member("result", &result.name),
        ],
    );
    let mut types = vec![all, goal, result, feedback, carrier];
    types.extend(service(&send, sent, accepted));
    types.extend(service(&get, asked, got));
    types
}

#[cfg(test)]
mod tests;
