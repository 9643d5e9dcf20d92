//! TOML → [`System`].

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeTable;

use super::names::{Filled, check_name, ends, type_name};
use super::table::{Table, duration_ns, whole};
use super::{
    Language, PROGRAMS_MAX, Program, Qos, Reliability, System, TOPICS_MAX, Topic, actions, services,
    unknown_word,
};
use crate::diagnostic::{Fault, Faults, Place, Source};
use crate::rosidl::rules;

const QOS_KEYS: &str = "reliability, keep_last, durability, deadline, lifespan, tolerable_loss_ppm";

pub(super) fn parse(source: &Source) -> Result<System, Faults> {
    let root = DeTable::parse(&source.text).map_err(|error| {
        let place = Place::new(source, error.span().unwrap_or(0..0));
        Fault::at(place, format!("this is no TOML: {}", error.message().replace('\n', " ")))
    })?;
    let mut faults = Faults::default();
    let mut table = Table::new(source, "topics.toml", root.get_ref(), 0..0);
    let mut system = System {
        name: String::new(),
        search: Vec::new(),
        idl: Vec::new(),
        types: Vec::new(),
        plain: Vec::new(),
        languages: Vec::new(),
        programs: Vec::new(),
        topics: Vec::new(),
        services: Vec::new(),
        actions: Vec::new(),
    };
    let read = sections(&mut table, &mut system, &mut faults);
    if let Err(fault) = read {
        faults.push(fault);
    } else {
        table.refuse_rest("project, defaults, programs, topics, groups, services, actions", &mut faults);
    }
    faults.warnings().map(|_| system)
}

fn sections(table: &mut Table<'_>, system: &mut System, faults: &mut Faults) -> Result<(), Fault> {
    match table.table("project", "[project]")? {
        Some(section) => project(section, system, faults)?,
        None => {
            return Err(
                Fault::at(table.place(), "there is no [project]").help("write [project] and name = \"…\"")
            );
        }
    }
    let mut defaults = Qos::default();
    if let Some(mut section) = table.table("defaults", "[defaults]")? {
        defaults = qos(&mut section, defaults)?;
        section.refuse_rest(QOS_KEYS, faults);
    }
    if let Some(mut section) = table.table("programs", "[programs]")? {
        for (name, entry) in section.rest() {
            let what = format!("program {name}");
            match section.of_entry(&name, &entry, &what).and_then(|table| program(&name, table, faults)) {
                Ok(program) => system.programs.push(program),
                Err(fault) => {
                    faults.push(fault);
                    // So that topics which name it are not refused for that, too.
                    system.programs.push(unreadable(name, section.at(entry.key.clone())));
                }
            }
        }
    }
    if system.programs.len() > PROGRAMS_MAX {
        let what = format!("{} programs are more than {PROGRAMS_MAX}", system.programs.len());
        return Err(Fault::at(table.place(), what).help("split the system"));
    }
    if let Some(section) = table.table("topics", "[topics]")? {
        topics(section, &Expansion::default(), defaults, (system, faults))?;
    }
    if let Some(mut section) = table.table("groups", "[groups]")? {
        for (name, entry) in section.rest() {
            let group = section.of_entry(&name, &entry, &format!("group {name}"))?;
            expand(group, defaults, (system, faults))?;
        }
    }
    if let Some(section) = table.table("services", "[services]")? {
        services::parse(section, system, faults)?;
    }
    if let Some(section) = table.table("actions", "[actions]")? {
        actions::parse(section, system, faults)?;
    }
    system.topics.sort_by(|one, other| one.name.cmp(&other.name));
    for pair in system.topics.windows(2) {
        if pair[0].name == pair[1].name {
            let line = pair[0].place.source.line(pair[0].place.span.start);
            let what =
                format!("topic {} is defined a second time; the first is in line {line}", pair[1].name);
            faults.push(Fault::at(pair[1].place.clone(), what).help("give one of them another name"));
        }
    }
    Ok(())
}

fn project(mut section: Table<'_>, system: &mut System, faults: &mut Faults) -> Result<(), Fault> {
    let (name, span) = section.required_text("name", "my_robot")?;
    if !rules::is_field_name(name) {
        let what = format!("\"{name}\" is not a name that a project may have");
        return Err(Fault::at(section.at(span), what)
            .help("it has lower-case letters, digits and single underscores"));
    }
    name.clone_into(&mut system.name);
    system.search = section.texts("search")?.into_iter().map(|(text, _)| text.to_owned()).collect();
    let idl = section.texts("idl")?;
    system.idl = idl.into_iter().map(|(text, span)| (text.to_owned(), section.at(span))).collect();
    let types = section.texts("types")?;
    system.types = types.into_iter().map(|(text, span)| (text.to_owned(), section.at(span))).collect();
    let plain = section.texts("plain")?;
    system.plain = plain.into_iter().map(|(text, span)| (text.to_owned(), section.at(span))).collect();
    for (word, span) in section.texts("languages")? {
        match language(word) {
            Some(language) => system.languages.push(language),
            None => faults.push(unknown_word(
                section.at(span),
                "language",
                word,
                &Language::ALL.map(Language::word),
            )),
        }
    }
    section.refuse_rest("name, search, idl, types, plain, languages", faults);
    Ok(())
}

fn language(word: &str) -> Option<Language> {
    Language::ALL.into_iter().find(|language| language.word() == word)
}

fn program(name: &str, mut table: Table<'_>, faults: &mut Faults) -> Result<Program, Fault> {
    let place = table.place();
    if !rules::is_field_name(name) {
        let what = format!("\"{name}\" is not a name that a program may have");
        return Err(Fault::at(place, what).help("it has lower-case letters, digits and single underscores"));
    }
    let (word, span) = table.required_text("language", "rust")?;
    let language = language(word).ok_or_else(|| {
        unknown_word(table.at(span.clone()), "language", word, &Language::ALL.map(Language::word))
    })?;
    if language == Language::Idl {
        return Err(Fault::at(table.at(span), "no program is written in IDL")
            .help("write languages = [\"idl\"] under [project] for the types, and \"external\" here"));
    }
    let mut baud = None;
    if let Some((line, span)) = table.text("line")? {
        let digits = line.strip_prefix("serial:").and_then(|digits| digits.parse::<u32>().ok());
        baud = Some(digits.filter(|baud| *baud >= 300).ok_or_else(|| {
            Fault::at(table.at(span), format!("\"{line}\" is no line")).help("write line = \"serial:921600\"")
        })?);
    }
    let budget_bytes_per_s = table.whole("budget_bytes_per_s", 1..u64::MAX)?;
    table.refuse_rest("language, line, budget_bytes_per_s", faults);
    Ok(Program { name: name.to_owned(), language, baud, budget_bytes_per_s, place })
}

/// In the place of a program whose table is wrong: nothing is generated then.
fn unreadable(name: String, place: Place) -> Program {
    Program { name, language: Language::External, baud: None, budget_bytes_per_s: None, place }
}

/// Words that stand for placeholders.
type Expansion<'a> = BTreeMap<&'a str, &'a str>;

/// The topics of a group, once for every combination of its words.
fn expand(
    mut group: Table<'_>,
    defaults: Qos,
    (system, faults): (&mut System, &mut Faults),
) -> Result<(), Fault> {
    let place = group.place();
    let missing =
        |what: &str, help: &str| Fault::at(place.clone(), format!("the group has no {what}")).help(help);
    let mut words = group
        .table("expand", "expand of a group")?
        .ok_or_else(|| missing("expand", "write expand = { joint = [\"elbow\", \"wrist\"] }"))?;
    let keys: Vec<String> = words.rest_keys();
    let mut combinations: Vec<Expansion<'_>> = vec![Expansion::new()];
    for key in &keys {
        let values = words.texts(key)?;
        if combinations.len().saturating_mul(values.len()) > TOPICS_MAX {
            let what = format!("the group expands to more than {TOPICS_MAX} topics");
            return Err(Fault::at(place, what).help("split the group"));
        }
        let mut longer = Vec::new();
        for known in &combinations {
            for (value, _) in &values {
                let mut with = known.clone();
                with.insert(key.as_str(), *value);
                longer.push(with);
            }
        }
        combinations = longer;
    }
    let entry = group
        .take("topics")
        .ok_or_else(|| missing("topics", "write [groups.NAME.topics.\"/arm/{joint}/state\"]"))?;
    for combination in &combinations {
        let section = group.of_entry("topics", &entry, "topics of a group")?;
        topics(section, combination, defaults, (system, faults))?;
    }
    group.refuse_rest("expand, topics", faults);
    Ok(())
}

fn topics(
    mut section: Table<'_>,
    expansion: &Expansion<'_>,
    defaults: Qos,
    (system, faults): (&mut System, &mut Faults),
) -> Result<(), Fault> {
    for (key, entry) in section.rest() {
        if system.topics.len() >= TOPICS_MAX {
            let what = format!("there are more than {TOPICS_MAX} topics");
            return Err(Fault::at(section.place(), what).help("split the system"));
        }
        let filled = |text: &str| {
            expansion.iter().fold(text.to_owned(), |text, (k, v)| text.replace(&format!("{{{k}}}"), v))
        };
        let name = filled(&key);
        let table = section.of_entry(&key, &entry, &format!("topic {name}"))?;
        match topic((name, &filled), table, defaults, (&system.programs, faults)) {
            Ok(topic) => system.topics.push(topic),
            Err(fault) => faults.push(fault),
        }
    }
    Ok(())
}

fn topic(
    (name, filled): (String, Filled<'_>),
    mut table: Table<'_>,
    defaults: Qos,
    (programs, faults): (&[Program], &mut Faults),
) -> Result<Topic, Fault> {
    let place = table.place();
    check_name(&name, &place)?;
    let (type_text, type_span) = table.required_text("type", "geometry_msgs/msg/Pose")?;
    let type_name = type_name(type_text).ok_or_else(|| {
        Fault::at(table.at(type_span.clone()), format!("\"{type_text}\" is no type"))
            .help("write package/msg/Name")
    })?;
    let from = ends(&mut table, "from", filled, (programs, faults))?;
    let to = ends(&mut table, "to", filled, (programs, faults))?;
    let rate_hz = table.positive("rate_hz")?;
    let offered = qos(&mut table, defaults)?;
    let mut requested = offered;
    if let Some(mut section) = table.table("request", "request of a topic")? {
        requested = qos(&mut section, offered)?;
        section.refuse_rest(QOS_KEYS, faults);
    }
    let mut limits = BTreeMap::new();
    if let Some(mut section) = table.table("limits", "limits of a topic")? {
        for (path, entry) in section.rest() {
            let place = section.at(entry.span.clone());
            let limit =
                whole(entry.value).and_then(|limit| u32::try_from(limit).ok()).filter(|limit| *limit > 0);
            let limit = limit.ok_or_else(|| {
                Fault::at(place.clone(), format!("the limit of {path} is no whole number from 1 on"))
            })?;
            limits.insert(path, (limit, place));
        }
    }
    let is_plain = table.truth("plain")?.unwrap_or(false);
    let doc = table.text("doc")?.map_or(String::new(), |(text, _)| filled(text));
    let type_place = table.at(type_span);
    table.refuse_rest(&format!("type, from, to, rate_hz, {QOS_KEYS}, request, limits, plain, doc"), faults);
    Ok(Topic {
        name,
        type_name,
        from,
        to,
        rate_hz,
        offered,
        requested,
        limits,
        is_plain,
        doc,
        place,
        type_place,
    })
}

fn qos(table: &mut Table<'_>, defaults: Qos) -> Result<Qos, Fault> {
    let mut qos = defaults;
    if let Some((word, span)) = table.text("reliability")? {
        let all = [Reliability::BestEffort, Reliability::DeadlineBound, Reliability::Reliable];
        let found = all.into_iter().find(|known| known.word() == word);
        qos.reliability = found
            .ok_or_else(|| unknown_word(table.at(span), "reliability", word, &all.map(Reliability::word)))?;
    }
    if let Some((word, span)) = table.text("durability")? {
        qos.transient_local = match word {
            "volatile" => false,
            "transient_local" => true,
            _ => {
                return Err(unknown_word(
                    table.at(span),
                    "durability",
                    word,
                    &["volatile", "transient_local"],
                ));
            }
        };
    }
    if let Some(depth) = table.whole("keep_last", 1..65_536)? {
        qos.keep_last = u16::try_from(depth).unwrap_or(u16::MAX);
    }
    if let Some(loss) = table.whole("tolerable_loss_ppm", 1..1_000_000)? {
        qos.tolerable_loss_ppm = u32::try_from(loss).ok();
    }
    let span_of = |found: Option<(&str, Range<usize>)>, table: &Table<'_>, known: Option<i64>| match found {
        None => Ok(known),
        Some((text, span)) => duration_ns(text).map(Some).ok_or_else(|| {
            Fault::at(table.at(span), format!("\"{text}\" is no span of time"))
                .help("write 500us, 2ms or 1.5s")
        }),
    };
    let deadline = table.text("deadline")?;
    qos.deadline_ns = span_of(deadline, table, qos.deadline_ns)?;
    let lifespan = table.text("lifespan")?;
    qos.lifespan_ns = span_of(lifespan, table, qos.lifespan_ns)?;
    Ok(qos)
}
