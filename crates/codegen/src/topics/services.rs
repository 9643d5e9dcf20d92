//! `[services]` of `topics.toml`: which program answers which requests, and which send them.

use super::names::{check_name, ends, type_name};
use super::table::{Table, duration_ns};
use super::{Language, Service, System};
use crate::diagnostic::{Fault, Faults, Place};
use crate::model::TypeName;

const KEYS: &str = "type, servers, clients, deadline, idempotent, doc";

/// Longest name of a service, in bytes: its two topics have longer ones.
const SERVICE_NAME_BYTES_MAX: usize = 243;

pub(super) fn parse(mut section: Table<'_>, system: &mut System, faults: &mut Faults) -> Result<(), Fault> {
    for (key, entry) in section.rest() {
        let table = section.of_entry(&key, &entry, &format!("service {key}"))?;
        match service(&key, table, system, faults) {
            Ok(service) => system.services.push(service),
            Err(fault) => faults.push(fault),
        }
    }
    system.services.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(())
}

fn service(name: &str, mut table: Table<'_>, system: &System, faults: &mut Faults) -> Result<Service, Fault> {
    let place = table.place();
    check_name(name, &place)?;
    if name.len() > SERVICE_NAME_BYTES_MAX {
        let what = format!("the name of the service has {} bytes", name.len());
        return Err(Fault::at(place, what).help(format!("use at most {SERVICE_NAME_BYTES_MAX}")));
    }
    let (type_name, type_place) = interface(&mut table, ("service", "srv"), "std_srvs/srv/Trigger")?;
    let same = |text: &str| text.to_owned();
    let servers = ends(&mut table, "servers", &same, (&system.programs, faults))?;
    let clients = ends(&mut table, "clients", &same, (&system.programs, faults))?;
    let deadline_ns = span_of(&mut table, "deadline")?;
    let is_idempotent = table.truth("idempotent")?.unwrap_or(false);
    let doc = table.text("doc")?.map_or(String::new(), |(text, _)| text.to_owned());
    table.refuse_rest(KEYS, faults);
    Ok(Service {
        name: name.to_owned(),
        type_name,
        servers,
        clients,
        deadline_ns,
        is_idempotent,
        doc,
        place,
        type_place,
    })
}

/// Adds the contradictions in the services of a system to `faults`.
pub(super) fn check(system: &System, faults: &mut Faults) {
    for service in &system.services {
        let at = |what: String| Fault::at(service.place.clone(), what);
        if service.servers.is_empty() {
            let help = "name a program in servers; one that is not generated has language = \"external\"";
            faults.push(at(format!("nothing serves {}", service.name)).help(help));
        }
        if service.clients.is_empty() {
            faults.push(at(format!("nothing calls {}", service.name)).as_warning());
        }
        takes_part(
            system,
            (&service.servers, &service.clients),
            (&service.name, "requests"),
            &service.place,
            faults,
        );
    }
}

/// Refuses an end in a language that has none: `what` is of the name.
pub(super) fn takes_part(
    system: &System,
    (servers, clients): (&[usize], &[usize]),
    (name, what): (&str, &str),
    place: &Place,
    faults: &mut Faults,
) {
    let mut ends = servers.iter().chain(clients).map(|index| &system.programs[*index]);
    let has_none = |language| matches!(language, Language::Mcu | Language::Simulink);
    if let Some(program) = ends.find(|program| has_none(program.language)) {
        let (of, language) = (&program.name, program.language.word());
        let what = format!(
            "{of}, in {language}, takes part in {name}, and {what} are not generated for that language"
        );
        let fault = Fault::at(place.clone(), what);
        faults.push(fault.help("let another program take part, and give this one topics"));
    }
}

/// The setting `type`: a service or an action, whose kind may be left out.
pub(super) fn interface(
    table: &mut Table<'_>,
    (what, kind): (&str, &str),
    example: &'static str,
) -> Result<(TypeName, Place), Fault> {
    let (text, span) = table.required_text("type", example)?;
    let place = table.at(span);
    let named = type_name(&match text.split('/').collect::<Vec<_>>().as_slice() {
        [package, short] => format!("{package}/{kind}/{short}"),
        _ => text.to_owned(),
    });
    let of_kind = named.filter(|named| named.parts().nth(1) == Some(kind));
    match of_kind {
        Some(named) => Ok((named, place)),
        None => {
            Err(Fault::at(place, format!("\"{text}\" is no {what}"))
                .help(format!("write package/{kind}/Name")))
        }
    }
}

/// A span of time in nanoseconds, if the table has one of this name.
pub(super) fn span_of(table: &mut Table<'_>, key: &str) -> Result<Option<i64>, Fault> {
    let Some((text, span)) = table.text(key)? else { return Ok(None) };
    match duration_ns(text) {
        Some(ns) => Ok(Some(ns)),
        None => Err(Fault::at(table.at(span), format!("\"{text}\" is no span of time"))
            .help("write 500us, 2ms or 1.5s")),
    }
}
