//! `[actions]` of `topics.toml`: which program executes which goals, and which send them.

use super::names::{check_name, ends};
use super::services::{interface, span_of, takes_part};
use super::table::Table;
use super::{Action, System};
use crate::diagnostic::{Fault, Faults};

const KEYS: &str = "type, servers, clients, deadline, result_deadline, keep_results, doc";

/// Longest name of an action, in bytes: the topics of its services have longer ones.
const ACTION_NAME_BYTES_MAX: usize = 223;

pub(super) fn parse(mut section: Table<'_>, system: &mut System, faults: &mut Faults) -> Result<(), Fault> {
    for (key, entry) in section.rest() {
        let table = section.of_entry(&key, &entry, &format!("action {key}"))?;
        match action(&key, table, system, faults) {
            Ok(action) => system.actions.push(action),
            Err(fault) => faults.push(fault),
        }
    }
    system.actions.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(())
}

fn action(name: &str, mut table: Table<'_>, system: &System, faults: &mut Faults) -> Result<Action, Fault> {
    let place = table.place();
    check_name(name, &place)?;
    if name.len() > ACTION_NAME_BYTES_MAX {
        let what = format!("the name of the action has {} bytes", name.len());
        return Err(Fault::at(place, what).help(format!("use at most {ACTION_NAME_BYTES_MAX}")));
    }
    let (type_name, type_place) = interface(&mut table, ("action", "action"), "nav2_msgs/action/Spin")?;
    let same = |text: &str| text.to_owned();
    let servers = ends(&mut table, "servers", &same, (&system.programs, faults))?;
    let clients = ends(&mut table, "clients", &same, (&system.programs, faults))?;
    let deadline_ns = span_of(&mut table, "deadline")?;
    let result_deadline_ns = span_of(&mut table, "result_deadline")?;
    let keep_results_ns = span_of(&mut table, "keep_results")?;
    let doc = table.text("doc")?.map_or(String::new(), |(text, _)| text.to_owned());
    table.refuse_rest(KEYS, faults);
    Ok(Action {
        name: name.to_owned(),
        type_name,
        servers,
        clients,
        deadline_ns,
        result_deadline_ns,
        keep_results_ns,
        doc,
        place,
        type_place,
    })
}

/// Adds the contradictions in the actions of a system to `faults`.
pub(super) fn check(system: &System, faults: &mut Faults) {
    for action in &system.actions {
        let at = |what: String| Fault::at(action.place.clone(), what);
        if action.servers.is_empty() {
            let help = "name a program in servers; one that is not generated has language = \"external\"";
            faults.push(at(format!("nothing executes {}", action.name)).help(help));
        }
        if action.clients.is_empty() {
            faults.push(at(format!("nothing sends goals of {}", action.name)).as_warning());
        }
        takes_part(
            system,
            (&action.servers, &action.clients),
            (&action.name, "actions"),
            &action.place,
            faults,
        );
    }
}
