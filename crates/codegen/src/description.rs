//! The checked system as JSON: what templates receive and `noctule gen --dump-model` prints. `docs/spec/generator.md`
//! describes it; [`VERSION`] counts changes that an old template would not survive.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::described::description;
use crate::hash::{Hashes, rihs01};
use crate::languages::{
    c, cpp, idl, python, rust,
    simulink::{Ports, block_name},
};
use crate::layout::Layouts;
use crate::library::Library;
use crate::model::{Constant, Element, Field, Literal, Primitive, Shape, Struct, TypeName};
use crate::topics::Language;
use crate::topics::check::{Limits, bytes_per_s, size_bytes_max};
use crate::topics::{Action, Program, Qos, Service, System, Topic};

/// Version of the description's shape.
pub const VERSION: u32 = 1;

/// Everything that is generated from, in one value.
#[derive(Debug, Clone)]
pub struct Description {
    /// The whole, as it is printed.
    pub model: Value,
    /// Names of types that are left out because they hold a `wstring`.
    pub left_out: Vec<TypeName>,
}

/// Describes a checked system and these of its types, with all that they refer to.
pub fn describe(
    system: &System,
    library: &Library,
    limits: &Limits,
    types: &BTreeSet<TypeName>,
) -> Description {
    let mut all: BTreeSet<TypeName> = types.clone();
    for name in types {
        all.extend(library.referred(name));
    }
    let wide: BTreeSet<TypeName> = all.iter().filter(|name| is_wide(library, name)).cloned().collect();
    let (left_out, order) = (wide.iter().cloned().collect(), ordered(library, all.difference(&wide)));
    let (mut hashes, mut ports) = (Hashes::new(library), Ports::new(library, limits));
    let (plain, mut layouts) = (plain_types(system, library, &all), Layouts::new(library));
    let mut described = Map::new();
    for name in &order {
        let Some(defined) = library.structure(name) else { continue };
        let mut value = structure(defined, (library, limits), &mut hashes, &mut ports);
        value["plain"] = Value::Null;
        if plain.contains(name) {
            in_memory(&mut value, name, &mut layouts);
        }
        described.insert(name.to_string(), value);
    }
    let types: Vec<&Value> = order.iter().filter_map(|name| described.get(name.as_str())).collect();
    let topics: Vec<Value> =
        system.topics.iter().map(|of| topic(of, system, (library, limits), &described)).collect();
    let services: Vec<Value> =
        system.services.iter().map(|of| service(of, system, (library, limits), &described)).collect();
    let actions: Vec<Value> =
        system.actions.iter().map(|of| action(of, system, (library, limits), &described)).collect();
    let all = [&topics[..], &services[..], &actions[..]];
    let of_program = |(index, of)| program((of, index), system, all);
    let programs: Vec<Value> = system.programs.iter().enumerate().map(of_program).collect();
    let languages: Vec<&str> = system.all_languages().iter().map(|language| language.word()).collect();
    let model = json!({
        "version": VERSION,
        "generator": env!("CARGO_PKG_VERSION"),
        "project": { "name": system.name, "languages": languages },
        "packages": packages(&types),
        "types": types,
        "topics": topics,
        "services": services,
        "actions": actions,
        "programs": programs,
    });
    Description { model, left_out }
}

/// The types of plain topics and those that the project wants plain, with all that they are made of.
fn plain_types(system: &System, library: &Library, all: &BTreeSet<TypeName>) -> BTreeSet<TypeName> {
    let is_named = |name: &TypeName| {
        system.plain.iter().any(|(entry, _)| match entry.strip_suffix("/*") {
            Some(package) => name.package() == package,
            None => entry == name.as_str(),
        })
    };
    let of_topics = system.topics.iter().filter(|topic| topic.is_plain).map(|topic| &topic.type_name);
    let is_fixed = |name: &&TypeName| library.measure(name).is_some_and(|measure| measure.is_fixed);
    let wanted: Vec<&TypeName> =
        all.iter().filter(|name| is_named(name)).chain(of_topics).filter(is_fixed).collect();
    let inner = wanted.iter().flat_map(|name| library.referred(name));
    inner.chain(wanted.iter().map(|name| (*name).clone())).collect()
}

/// Adds to a described type how it lies in memory.
fn in_memory(value: &mut Value, name: &TypeName, layouts: &mut Layouts<'_>) {
    let Some(layout) = layouts.of(name) else { return };
    value["plain"] = json!({
        "size_bytes": layout.size_bytes,
        "alignment_bytes": layout.alignment_bytes,
        "tail_bytes": layout.tail_bytes,
    });
    let fields = value["fields"].as_array_mut().into_iter().flatten();
    for (field, place) in fields.zip(&layout.fields) {
        field["plain"] = json!({ "offset_bytes": place.offset_bytes, "padding_bytes": place.padding_bytes });
    }
}

/// True if a type holds a `wstring`, itself or in what it refers to.
fn is_wide(library: &Library, name: &TypeName) -> bool {
    let holds = |name: &TypeName| {
        let fields = library.structure(name).map_or(&[][..], |defined| defined.fields.as_slice());
        fields.iter().any(|field| matches!(field.kind.element, Element::WString { .. }))
    };
    holds(name) || library.referred(name).iter().any(holds)
}

/// Types so that each comes after those it refers to, else by name.
fn ordered<'a>(library: &Library, names: impl Iterator<Item = &'a TypeName>) -> Vec<TypeName> {
    let mut waiting: Vec<(usize, TypeName)> = names
        .map(|name| (library.measure(name).map_or(0, |measure| measure.nesting), name.clone()))
        .collect();
    waiting.sort();
    waiting.into_iter().map(|(_, name)| name).collect()
}

/// Packages with the names of their types, by kind.
fn packages(types: &[&Value]) -> Value {
    let mut packages: Map<String, Value> = Map::new();
    let mut includes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for of in types {
        let text = |key: &str| of[key].as_str().unwrap_or_default().to_owned();
        let entry = packages.entry(text("package")).or_insert_with(|| json!({ "kinds": {} }));
        let inner = of["depends"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let others = inner.filter_map(|name| name.split_once('/')).map(|(package, _)| package.to_owned());
        includes.entry(text("package")).or_default().extend(others.filter(|other| *other != text("package")));
        let kinds = entry["kinds"].as_object_mut();
        let list = kinds.map(|kinds| kinds.entry(text("kind")).or_insert_with(|| json!([])));
        if let Some(Value::Array(list)) = list {
            list.push(text("name").into());
        }
    }
    let list = packages.into_iter().map(|(name, mut value)| {
        value["name"] = name.clone().into();
        value["includes"] = includes.remove(&name).unwrap_or_default().into_iter().collect();
        value["rust"] = rust::ident(&name).into();
        value["cpp"] = cpp::ident(&name).into();
        value["python"] = python::ident(&name).into();
        value
    });
    Value::Array(list.collect())
}

fn structure(
    defined: &Struct,
    (library, limits): (&Library, &Limits),
    hashes: &mut Hashes<'_>,
    ports: &mut Ports<'_>,
) -> Value {
    let name = &defined.name;
    let parts: Vec<&str> = name.parts().collect();
    let kind = if parts.len() == 3 { parts[1] } else { "msg" };
    let fields: Vec<Value> = defined.fields.iter().map(|of| field(name, of, limits, ports)).collect();
    let depends: BTreeSet<&str> = defined
        .fields
        .iter()
        .filter_map(|field| match &field.kind.element {
            Element::Named(inner) => Some(inner.as_str()),
            _ => None,
        })
        .collect();
    json!({
        "name": name.as_str(),
        "package": name.package(),
        "kind": kind,
        "short": name.name(),
        "comment": defined.comment,
        "hash": format!("{:016x}", hashes.noctule(name)),
        "rihs01": rihs01(library, name),
        "description": described(library, name),
        "is_empty": defined.is_empty(),
        "is_fixed": library.measure(name).is_some_and(|measure| measure.is_fixed),
        "size_bytes_max": size_bytes_max(library, name, limits),
        "fields": fields,
        "constants": defined.constants.iter().map(|of| constant(of, name.name())).collect::<Vec<_>>(),
        "depends": depends,
        "has_array_default": defined.fields.iter().any(|field| matches!(field.default, Some(Literal::List(_)))),
        "rust": rust::ident(name.name()),
        "c": c::type_name(name),
        "cpp": { "full": cpp::type_name(name), "namespace": format!("{}::{kind}", cpp::ident(name.package())) },
        "python": python::type_name(name),
        "idl": idl::type_name(name),
        "simulink": ports.described(name),
    })
}

fn field(owner: &TypeName, field: &Field, limits: &Limits, ports: &mut Ports<'_>) -> Value {
    let limit = limits.get(&(owner.clone(), field.name.clone())).copied();
    let (shape, count, bound) = match field.kind.shape {
        Shape::One => ("one", None, None),
        Shape::Array(count) => ("array", Some(count), None),
        Shape::Sequence(bound) => ("sequence", None, bound),
    };
    let (kind, of, text_bound) = match &field.kind.element {
        Element::Primitive(primitive) => ("primitive", primitive.word().to_owned(), None),
        Element::String { bound } => ("string", String::new(), *bound),
        Element::WString { bound } => ("wstring", String::new(), *bound),
        Element::Named(name) => ("struct", name.to_string(), None),
    };
    json!({
        "name": field.name,
        "definition": field.kind.to_string(),
        "comment": field.comment,
        "unit": field.unit,
        "is_key": field.is_key,
        "element": kind,
        "of": of,
        "is_bool": matches!(field.kind.element, Element::Primitive(Primitive::Bool)),
        "text_bound": text_bound,
        "shape": shape,
        "count": count,
        "bound": bound,
        "limit": limit,
        "default": field.default.as_ref().map(literal),
        "rust": rust::field(field),
        "c": c::field(field, limit),
        "cpp": cpp::field(field),
        "python": python::field(field),
        "idl": idl::field(field),
        "simulink": ports.field(owner, field),
    })
}

/// The type's description as text, as Rust's literal where Rust's own types say less, and as C's initializer; null if it is too long to travel.
fn described(library: &Library, name: &TypeName) -> Value {
    let Ok(description) = description(library, name) else { return Value::Null };
    let text = description.text();
    // Rust has `u8` for both.
    let says_more = [" byte", " char"].iter().any(|word| text.contains(word));
    json!({
        "text": text,
        "rust": says_more.then(|| format!("{text:?}")),
        "c": c::text_initializer(text),
    })
}

fn constant(of: &Constant, short: &str) -> Value {
    let (element, value) = (&of.element, &of.value);
    json!({
        "name": of.name,
        "type": element.to_string(),
        "value": literal(value),
        "comment": of.comment,
        "unit": of.unit,
        "rust": { "type": rust::constant_type(element), "value": rust::constant(element, value) },
        "c": c::constant(element, value),
        "cpp": { "declared": cpp::constant_declaration(element, &of.name, short), "value": cpp::constant(element, value) },
        "python": python::constant(element, value),
        "idl": idl::constant(&of.name, element, value),
    })
}

/// A value as JSON; numbers that JSON does not have are strings.
fn literal(value: &Literal) -> Value {
    match value {
        Literal::Bool(value) => (*value).into(),
        Literal::Integer(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => Value::Null,
        },
        Literal::Float(value) => {
            serde_json::Number::from_f64(*value).map_or_else(|| value.to_string().into(), Value::Number)
        }
        Literal::Text(text) => text.clone().into(),
        Literal::List(list) => list.iter().map(literal).collect(),
    }
}

fn qos(of: &Qos) -> Value {
    json!({
        "reliability": of.reliability.word(),
        "keep_last": of.keep_last,
        "transient_local": of.transient_local,
        "deadline_ns": of.deadline_ns,
        "lifespan_ns": of.lifespan_ns,
        "tolerable_loss_ppm": of.tolerable_loss_ppm,
    })
}

fn program_names<'s>(programs: &[usize], system: &'s System) -> Vec<&'s str> {
    programs.iter().map(|index| system.programs[*index].name.as_str()).collect()
}

fn topic(
    of: &Topic,
    system: &System,
    (library, limits): (&Library, &Limits),
    types: &Map<String, Value>,
) -> Value {
    let known = types.get(of.type_name.as_str());
    let part = |key: &str| known.map_or(Value::Null, |known| known[key].clone());
    let size_bytes_max = size_bytes_max(library, &of.type_name, limits);
    let plain_bytes = part("plain")["size_bytes"].as_u64().unwrap_or(0);
    json!({
        "name": of.name,
        "ident": of.ident(),
        "rust": rust::ident(&of.ident()),
        "c": super::languages::c::field(&Field::new(&of.ident(), Element::Primitive(Primitive::U8), Shape::One), None)["name"],
        "python": python::ident(&of.ident()),
        "doc": of.doc,
        // As ROS 2 calls it on DDS.
        "dds_name": format!("rt/{}", of.name.trim_start_matches('/')),
        "type": of.type_name.as_str(),
        "package": of.type_name.package(),
        "kind": part("kind"),
        "short": part("short"),
        "type_c": part("c"),
        "type_cpp": part("cpp"),
        "type_rust": part("rust"),
        "type_python": part("python"),
        "simulink": part("simulink"),
        "package_rust": rust::ident(of.type_name.package()),
        "hash": part("hash"),
        "rihs01": part("rihs01"),
        "description": part("description"),
        "size_bytes_max": size_bytes_max,
        "payload_bytes_max": size_bytes_max.map(|bytes| bytes.saturating_add(4).max(plain_bytes)),
        "bytes_per_s": bytes_per_s(of, library, limits),
        "rate_hz": of.rate_hz,
        "is_plain": of.is_plain,
        "offered": qos(&of.offered),
        "requested": qos(&of.requested),
        "from": program_names(&of.from, system),
        "to": program_names(&of.to, system),
    })
}

/// Description of a service: of its request and its response as of a topic's type.
fn service(
    of: &Service,
    system: &System,
    (library, limits): (&Library, &Limits),
    types: &Map<String, Value>,
) -> Value {
    let [request, response] = of.messages().map(|name| message(&name, (library, limits), types));
    json!({
        "name": of.name,
        "ident": of.ident(),
        "doc": of.doc,
        "type": of.type_name.as_str(),
        "package": of.type_name.package(),
        "package_rust": rust::ident(of.type_name.package()),
        "request": request,
        "response": response,
        "deadline_ns": of.deadline_ns,
        "is_idempotent": of.is_idempotent,
        "servers": program_names(&of.servers, system),
        "clients": program_names(&of.clients, system),
    })
}

/// Description of a type that a service or an action exchanges.
fn message(name: &TypeName, (library, limits): (&Library, &Limits), types: &Map<String, Value>) -> Value {
    let part = |key: &str| types.get(name.as_str()).map_or(Value::Null, |known| known[key].clone());
    json!({
        "type": name.as_str(),
        "type_c": part("c"),
        "type_cpp": part("cpp"),
        "type_rust": part("rust"),
        "type_python": part("python"),
        "description": part("description"),
        "payload_bytes_max": size_bytes_max(library, name, limits).map(|bytes| bytes.saturating_add(4)),
    })
}

/// Description of an action: of each of its messages as of a service's.
fn action(
    of: &Action,
    system: &System,
    (library, limits): (&Library, &Limits),
    types: &Map<String, Value>,
) -> Value {
    let [goal, result, feedback, send_request, send_response, get_request, get_response, feedback_message] =
        of.messages().map(|name| message(&name, (library, limits), types));
    json!({
        "name": of.name,
        "ident": of.ident(),
        "doc": of.doc,
        "type": of.type_name.as_str(),
        "type_c": c::type_name(&of.type_name),
        "package": of.type_name.package(),
        "package_rust": rust::ident(of.type_name.package()),
        "goal": goal,
        "result": result,
        "feedback": feedback,
        "send_request": send_request,
        "send_response": send_response,
        "get_request": get_request,
        "get_response": get_response,
        "feedback_message": feedback_message,
        "deadline_ns": of.deadline_ns,
        "result_deadline_ns": of.result_deadline_ns,
        "keep_results_ns": of.keep_results_ns,
        "servers": program_names(&of.servers, system),
        "clients": program_names(&of.clients, system),
    })
}

fn program(
    (of, index): (&Program, usize),
    system: &System,
    [topics, services, actions]: [&[Value]; 3],
) -> Value {
    let of_ends = |ends: fn(&Topic) -> &Vec<usize>| -> Vec<&Value> {
        let described = system.topics.iter().zip(topics);
        described.filter(|(topic, _)| ends(topic).contains(&index)).map(|(_, value)| value).collect()
    };
    let words = of.name.split('_').map(|word| {
        let mut letters = word.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    });
    let used = system.topics.iter().filter(|topic| topic.from.contains(&index) || topic.to.contains(&index));
    let mut includes: BTreeSet<&str> = used.map(|topic| topic.type_name.package()).collect();
    let of_services = |ends: fn(&Service) -> &Vec<usize>| -> Vec<&Value> {
        let described = system.services.iter().zip(services);
        described.filter(|(service, _)| ends(service).contains(&index)).map(|(_, value)| value).collect()
    };
    let (serves, calls) = (of_services(|service| &service.servers), of_services(|service| &service.clients));
    let of_actions = |ends: fn(&Action) -> &Vec<usize>| -> Vec<&Value> {
        let described = system.actions.iter().zip(actions);
        described.filter(|(action, _)| ends(action).contains(&index)).map(|(_, value)| value).collect()
    };
    let (executes, sends) = (of_actions(|action| &action.servers), of_actions(|action| &action.clients));
    let interfaces = serves.iter().chain(&calls).chain(&executes).chain(&sends);
    includes.extend(interfaces.filter_map(|interface| interface["package"].as_str()));
    let (writes, reads) = (of_ends(|topic| &topic.from), of_ends(|topic| &topic.to));
    let is_model = of.language == Language::Simulink;
    let blocks = if is_model { blocks(of, &writes, &reads) } else { Vec::new() };
    json!({
        "name": of.name,
        "includes": includes,
        "rust": rust::ident(&of.name),
        "python": python::ident(&of.name),
        "cpp": cpp::ident(&of.name),
        "class": words.collect::<String>(),
        "language": of.language.word(),
        "baud": of.baud,
        "budget_bytes_per_s": of.budget_bytes_per_s,
        "writes": writes,
        "reads": reads,
        "serves": serves,
        "calls": calls,
        "executes": executes,
        "sends": sends,
        "blocks": blocks,
    })
}

/// A block of Simulink for each topic of a program.
fn blocks(of: &Program, writes: &[&Value], reads: &[&Value]) -> Vec<Value> {
    let writes = writes.iter().map(|topic| ("writes", topic));
    let all = writes.chain(reads.iter().map(|topic| ("reads", topic)));
    let described = all.enumerate().map(|(index, (direction, topic))| {
        let ident = topic["ident"].as_str().unwrap_or_default();
        json!({
            "name": block_name(&of.name, direction, ident),
            "index": index,
            "program": of.name,
            "direction": direction,
            "topic": topic,
        })
    });
    described.collect()
}
