//! Checks a system: contradictions between its parts, and its cost.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Language, Qos, Reliability, System, Topic, actions, services};
use crate::diagnostic::{Fault, Faults, Place};
use crate::layout::first_of_any_length;
use crate::library::Library;
use crate::model::{Element, Field, FieldType, Named, Shape, TypeName};
use crate::size::Span;

/// Publishers that one thread can wait for at once (futex_waitv).
const PUBLISHERS_IN_A_WAIT: usize = 127;
/// Readers of one ring in shared memory.
const READERS_OF_A_RING: usize = 256;
/// Topics that the DDS bridge carries at once.
const ROUTES_OF_THE_BRIDGE: usize = 4096;
/// Overhead of a sample on a serial line beside its CDR: frame, message, submessage and data headers of DDS-XRCE.
pub const SERIAL_OVERHEAD_BYTES: u64 = 24;
/// Share of a line's rate that samples may take: acknowledgements, the exchange of clocks and repairs take the rest.
const LINE_SHARE: f64 = 0.8;

/// Greatest lengths of fields without a bound, for C without a heap: struct and field → limit.
pub type Limits = HashMap<(TypeName, String), u32>;

/// Checks a system whose types are resolved; gives the limits that its topics set.
///
/// Adds to `faults` what is refused and what somebody should look at.
pub fn check(system: &System, library: &Library, faults: &mut Faults) -> Limits {
    let mut limits = Limits::new();
    let mut idents: BTreeMap<String, &str> = BTreeMap::new();
    for topic in &system.topics {
        ends(system, topic, faults);
        qos(topic, faults);
        set_limits(topic, library, &mut limits, faults);
        unique((&topic.name, topic.ident(), &topic.place), &mut idents, faults);
    }
    let services = system.services.iter().map(|of| (&of.name, of.ident(), &of.place));
    let actions = system.actions.iter().map(|of| (&of.name, of.ident(), &of.place));
    for (name, ident, place) in services.chain(actions) {
        for end in ["client", "server"] {
            unique((name, format!("{ident}_{end}"), place), &mut idents, faults);
        }
    }
    services::check(system, faults);
    actions::check(system, faults);
    for topic in &system.topics {
        heap(system, topic, (library, &limits), faults);
        plain(system, topic, library, faults);
    }
    lines(system, (library, &limits), faults);
    numbers(system, faults);
    limits
}

/// Refuses a name in code that another topic, service or action has.
fn unique<'s>(
    (name, ident, place): (&'s str, String, &Place),
    idents: &mut BTreeMap<String, &'s str>,
    faults: &mut Faults,
) {
    if let Some(first) = idents.insert(ident.clone(), name) {
        let what = format!("{first} and {name} have the same name in code, {ident}");
        faults.push(Fault::at(place.clone(), what).help("rename one of them"));
    }
}

fn ends(system: &System, topic: &Topic, faults: &mut Faults) {
    let at = |what: &str| Fault::at(topic.place.clone(), format!("nothing {what} {}", topic.name));
    let help =
        |key: &str| format!("name a program in {key}; one that is not generated has language = \"external\"");
    match (topic.from.is_empty(), topic.to.is_empty()) {
        (true, true) => {
            faults.push(at("writes or reads").help("name programs in from and to, or remove the topic"))
        }
        (true, false) => faults.push(at("writes").help(help("from"))),
        (false, true) => faults.push(at("reads").help(help("to")).as_warning()),
        (false, false) => {}
    }
    let both = topic.from.iter().find(|program| topic.to.contains(program));
    if let Some(both) = both {
        let name = &system.programs[*both].name;
        faults.push(
            Fault::at(topic.place.clone(), format!("{name} reads {}, which it writes", topic.name))
                .as_warning(),
        );
    }
}

fn qos(topic: &Topic, faults: &mut Faults) {
    let (offered, requested) = (&topic.offered, &topic.requested);
    let at = |what: String| Fault::at(topic.place.clone(), what);
    if let Some(why) = mismatch(offered, requested) {
        faults.push(
            at(format!("readers of {} request {why}", topic.name))
                .help("offer as much as is requested, or request less"),
        );
    }
    if let (Some(rate_hz), Some(deadline_ns)) = (topic.rate_hz, requested.deadline_ns)
        && (deadline_ns as f64) < 1e9 / rate_hz
    {
        let period_ms = 1e3 / rate_hz;
        let what = format!(
            "the deadline of {}, {} ms, is shorter than its period, {period_ms} ms",
            topic.name,
            deadline_ns as f64 / 1e6
        );
        faults.push(at(what).help("a deadline is at least one period: raise it, or the rate"));
    }
    if let (Some(lifespan_ns), Some(deadline_ns)) = (offered.lifespan_ns, offered.deadline_ns)
        && lifespan_ns < deadline_ns
    {
        let what = format!("samples of {} expire before their deadline", topic.name);
        faults.push(at(what).help("raise the lifespan, or lower the deadline").as_warning());
    }
}

/// Tolerable loss by default, offered and requested, in parts per million.
const TOLERABLE_LOSS_PPM: u32 = 100;

/// Why a request is more than what is offered, by the rules of DDS.
fn mismatch(offered: &Qos, requested: &Qos) -> Option<String> {
    if requested.reliability > offered.reliability {
        return Some(format!(
            "{}, and it is written {}",
            requested.reliability.word(),
            offered.reliability.word()
        ));
    }
    if requested.transient_local && !offered.transient_local {
        return Some("transient_local, and it is written volatile".to_owned());
    }
    let both_bound = [offered, requested].iter().all(|qos| qos.reliability == Reliability::DeadlineBound);
    let loss_ppm = |qos: &Qos| qos.tolerable_loss_ppm.unwrap_or(TOLERABLE_LOSS_PPM);
    if both_bound && loss_ppm(offered) > loss_ppm(requested) {
        return Some(format!(
            "at most {} of a million samples late, and it is written with {}",
            loss_ppm(requested),
            loss_ppm(offered)
        ));
    }
    match (requested.deadline_ns, offered.deadline_ns) {
        (Some(requested), Some(offered)) if requested < offered => {
            Some(format!("a deadline of {requested} ns, and it is written with {offered} ns"))
        }
        (Some(requested), None) => {
            Some(format!("a deadline of {requested} ns, and it is written without one"))
        }
        _ => None,
    }
}

fn set_limits(topic: &Topic, library: &Library, limits: &mut Limits, faults: &mut Faults) {
    for (path, (limit, place)) in &topic.limits {
        match field_of(library, &topic.type_name, path) {
            Err(why) => faults.push(
                Fault::at(place.clone(), why.to_string())
                    .help("a limit is for a field, its name as in the definition: header.frame_id"),
            ),
            Ok((owner, field)) if !has_no_bound(field) => {
                let what = format!("{path} has a bound already: {} of {owner}", field.kind);
                faults.push(Fault::at(place.clone(), what).help("remove the limit"));
            }
            Ok((owner, field)) => {
                let known = limits.entry((owner.clone(), field.name.clone())).or_insert(*limit);
                *known = (*known).max(*limit);
            }
        }
    }
}

/// Why a path leads to no field.
#[derive(Debug, thiserror::Error)]
enum PathError {
    #[error("{0} has no fields")]
    NoStruct(TypeName),
    #[error("{0} has no field \"{1}\"")]
    NoField(TypeName, String),
    #[error("{step} of {name} is a {kind}, which has no fields")]
    NoFieldsInside { step: String, name: TypeName, kind: FieldType },
    #[error("the path is empty")]
    Empty,
}

/// The struct and the field that a path from a type leads to.
fn field_of<'l>(
    library: &'l Library,
    name: &TypeName,
    path: &str,
) -> Result<(&'l TypeName, &'l Field), PathError> {
    let mut name = name.clone();
    let mut steps = path.split('.').peekable();
    while let Some(step) = steps.next() {
        let defined = library.structure(&name).ok_or_else(|| PathError::NoStruct(name.clone()))?;
        let field = defined.fields.iter().find(|field| field.name == step);
        let field = field.ok_or_else(|| PathError::NoField(name.clone(), step.to_owned()))?;
        match &field.kind.element {
            _ if steps.peek().is_none() => return Ok((&defined.name, field)),
            Element::Named(inner) => name = inner.clone(),
            _ => {
                let (step, kind) = (step.to_owned(), field.kind.clone());
                return Err(PathError::NoFieldsInside { step, name, kind });
            }
        }
    }
    Err(PathError::Empty)
}

/// True if the field itself may be of any length.
pub fn has_no_bound(field: &Field) -> bool {
    let is_open = |element: &Element| {
        matches!(element, Element::String { bound: None } | Element::WString { bound: None })
    };
    field.kind.shape == Shape::Sequence(None) || is_open(&field.kind.element)
}

/// Paths of fields without bound and limit, below a type.
fn open_fields(library: &Library, name: &TypeName, limits: &Limits) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![(name.clone(), String::new())];
    let mut seen = BTreeSet::new();
    while let Some((name, path)) = waiting.pop() {
        let Some(defined) = library.structure(&name).filter(|_| seen.insert(name.clone())) else { continue };
        for field in &defined.fields {
            let path = if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
            if let Element::Named(inner) = &field.kind.element {
                waiting.push((inner.clone(), path.clone()));
            }
            if has_no_bound(field) && !limits.contains_key(&(name.clone(), field.name.clone())) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn heap(system: &System, topic: &Topic, (library, limits): (&Library, &Limits), faults: &mut Faults) {
    let all = topic.from.iter().chain(&topic.to);
    let Some(board) =
        all.map(|index| &system.programs[*index]).find(|program| program.language == Language::Mcu)
    else {
        return;
    };
    let open = open_fields(library, &topic.type_name, limits);
    if open.is_empty() {
        return;
    }
    let shown: Vec<&str> = open.iter().take(5).map(String::as_str).collect();
    let what = format!(
        "{} may be of any length, and {} has no heap: {}",
        topic.type_name,
        board.name,
        shown.join(", ")
    );
    let help = format!("write limits = {{ \"{}\" = 16 }} for the topic", open[0]);
    faults.push(Fault::at(topic.type_place.clone(), what).help(help));
}

/// A plain topic is the struct itself: only for types of one length, between programs that share the layout.
fn plain(system: &System, topic: &Topic, library: &Library, faults: &mut Faults) {
    if !topic.is_plain {
        return;
    }
    if let Some(path) = first_of_any_length(library, &topic.type_name) {
        let what = format!("{} cannot be plain: {path} may have more than one length", topic.type_name);
        let fault = Fault::at(topic.type_place.clone(), what);
        faults.push(fault.help("remove plain = true, or use arrays of a fixed length"));
    }
    let mut ends = topic.from.iter().chain(&topic.to).map(|index| &system.programs[*index]);
    let only_cdr = |language| matches!(language, Language::Mcu | Language::Simulink | Language::External);
    if let Some(program) = ends.find(|program| only_cdr(program.language)) {
        let what = format!(
            "{} is plain, and {}, in {}, understands CDR alone",
            topic.name,
            program.name,
            program.language.word()
        );
        faults
            .push(Fault::at(topic.place.clone(), what).help("remove plain = true, or give it another topic"));
    }
}

/// The greatest size of a message as CDR without its header, limits counted in; `None` without bound.
pub fn size_bytes_max(library: &Library, name: &TypeName, limits: &Limits) -> Option<u64> {
    span(library, name, limits).map(|span| span.bytes())
}

fn span(library: &Library, name: &TypeName, limits: &Limits) -> Option<Span> {
    let defined = match library.get(name)? {
        Named::Enum(_) => return Some(Span::primitive(4)),
        Named::Struct(defined) => defined,
    };
    let mut all = Span::none();
    for field in &defined.fields {
        let limit = limits.get(&(name.clone(), field.name.clone())).copied();
        let element = match &field.kind.element {
            Element::Primitive(primitive) => Span::primitive(primitive.size_bytes()),
            Element::String { bound } => Span::string(u64::from(bound.or(limit)?)),
            Element::WString { bound } => Span::primitive(2).sequence(u64::from(bound.or(limit)?)),
            Element::Named(inner) => span(library, inner, limits)?,
        };
        let field = match field.kind.shape {
            Shape::One => element,
            Shape::Array(count) => element.times(u64::from(count)),
            Shape::Sequence(bound) => element.sequence(u64::from(bound.or(limit)?)),
        };
        all = all.then(&field);
    }
    Some(all)
}

/// Bytes a second of a topic as CDR, if its rate and its size are known.
pub fn bytes_per_s(topic: &Topic, library: &Library, limits: &Limits) -> Option<f64> {
    let size = size_bytes_max(library, &topic.type_name, limits)?;
    Some(topic.rate_hz? * (size + 4) as f64)
}

/// Compares the load of each serial line with its rate.
fn lines(system: &System, (library, limits): (&Library, &Limits), faults: &mut Faults) {
    for (index, program) in system.programs.iter().enumerate() {
        let by_baud = program.baud.map(|baud| f64::from(baud) / 10.0 * LINE_SHARE);
        let Some(budget) = program.budget_bytes_per_s.map(|budget| budget as f64).or(by_baud) else {
            continue;
        };
        let (mut out, mut into) = (0.0, 0.0);
        for topic in &system.topics {
            let Some(rate) = bytes_per_s(topic, library, limits) else { continue };
            let rate = rate + topic.rate_hz.unwrap_or_default() * SERIAL_OVERHEAD_BYTES as f64;
            out += if topic.from.contains(&index) { rate } else { 0.0 };
            into += if topic.to.contains(&index) { rate } else { 0.0 };
        }
        for (direction, load) in [("writes", out), ("reads", into)] {
            if load > budget {
                let what = format!(
                    "{} {direction} {load:.0} bytes a second, and its line carries {budget:.0}",
                    program.name
                );
                let fault = Fault::at(program.place.clone(), what);
                faults.push(fault.help("lower rates, use smaller types, or a faster line"));
            }
        }
    }
}

/// The limits of a running system.
fn numbers(system: &System, faults: &mut Faults) {
    for (index, program) in system.programs.iter().enumerate() {
        let read = system.topics.iter().filter(|topic| topic.to.contains(&index));
        let publishers: usize = read.map(|topic| topic.from.len()).sum();
        if publishers > PUBLISHERS_IN_A_WAIT {
            let what = format!(
                "{} reads {publishers} publishers, and one thread waits for {PUBLISHERS_IN_A_WAIT} at once",
                program.name
            );
            faults.push(
                Fault::at(program.place.clone(), what)
                    .help("read some of them on another thread")
                    .as_warning(),
            );
        }
    }
    for topic in system.topics.iter().filter(|topic| topic.to.len() > READERS_OF_A_RING) {
        let what = format!(
            "{} has {} readers, and {READERS_OF_A_RING} can share memory",
            topic.name,
            topic.to.len()
        );
        faults.push(
            Fault::at(topic.place.clone(), what)
                .help("the others get nothing; put some readers into one program")
                .as_warning(),
        );
    }
    let foreign = |topic: &&Topic| {
        let mut ends = topic.from.iter().chain(&topic.to);
        ends.any(|index| system.programs[*index].language == Language::External)
    };
    let routes = system.topics.iter().filter(foreign).count();
    if routes > ROUTES_OF_THE_BRIDGE {
        let what = format!(
            "{routes} topics go to programs outside, and the DDS bridge carries {ROUTES_OF_THE_BRIDGE}"
        );
        faults.push(Fault::new(what).help("run two bridges").as_warning());
    }
}
