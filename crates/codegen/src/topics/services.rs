//! `[services]` of `topics.toml`: which program answers which requests, and which send them.

use super::names::{check_name, ends, type_name};
use super::table::{Table, duration_ns};
use super::{Language, Service, System};
use crate::diagnostic::{Fault, Faults};

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
    let (text, span) = table.required_text("type", "std_srvs/srv/Trigger")?;
    let type_place = table.at(span);
    let named = type_name(&match text.split('/').collect::<Vec<_>>().as_slice() {
        [package, short] => format!("{package}/srv/{short}"),
        _ => text.to_owned(),
    });
    let is_service = named.as_ref().is_some_and(|named| named.parts().nth(1) == Some("srv"));
    let named = named.filter(|_| is_service).ok_or_else(|| {
        Fault::at(type_place.clone(), format!("\"{text}\" is no service")).help("write package/srv/Name")
    })?;
    let same = |text: &str| text.to_owned();
    let servers = ends(&mut table, "servers", &same, (&system.programs, faults))?;
    let clients = ends(&mut table, "clients", &same, (&system.programs, faults))?;
    let deadline_ns = match table.text("deadline")? {
        None => None,
        Some((text, span)) => Some(duration_ns(text).ok_or_else(|| {
            Fault::at(table.at(span), format!("\"{text}\" is no span of time"))
                .help("write 500us, 2ms or 1.5s")
        })?),
    };
    let is_idempotent = table.truth("idempotent")?.unwrap_or(false);
    let doc = table.text("doc")?.map_or(String::new(), |(text, _)| text.to_owned());
    table.refuse_rest(KEYS, faults);
    Ok(Service {
        name: name.to_owned(),
        type_name: named,
        servers,
        clients,
        deadline_ns,
        is_idempotent,
        doc,
        place,
        type_place,
    })
}

/// What does not fit together in the services of a system.
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
        let mut ends = service.servers.iter().chain(&service.clients).map(|index| &system.programs[*index]);
        let has_none = |language| matches!(language, Language::Mcu | Language::Simulink);
        if let Some(program) = ends.find(|program| has_none(program.language)) {
            let what = format!(
                "{}, in {}, takes part in {}, and requests are not generated for that language",
                program.name,
                program.language.word(),
                service.name
            );
            faults.push(at(what).help("let another program take part, and give this one topics"));
        }
    }
}
