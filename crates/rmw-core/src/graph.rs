//! The graph of ROS 2, as discovery knows it: nodes, their publishers and subscriptions, and the services made of them.

use std::collections::{BTreeMap, BTreeSet};

use noctule::request::ServiceTopics;

use crate::gid::Gid;
use crate::quality::Quality;
use crate::status::policy;

/// Publisher or subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Publisher, client (of its requests) or server (of its replies).
    Writes,
    /// Subscription, client (of its replies) or server (of its requests).
    Reads,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeName {
    /// `/` or `/ns`.
    pub namespace: String,
    /// Name without its namespace.
    pub name: String,
    /// Enclave; of another process `/`, for discovery does not carry it.
    pub enclave: String,
}

/// One end of a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its node.
    pub node: NodeName,
    /// Whether it writes or reads the topic.
    pub way: Way,
    /// The bus's name of the topic: `/chatter`, `rq/add_two_intsRequest`.
    pub topic: String,
    /// `std_msgs/msg/String`; empty in a reader of any type.
    pub type_name: String,
    /// Noctule's hash of the type; 0: not known.
    pub type_hash: u64,
    /// ROS 2's hash of the type, where it is known.
    pub rihs01: Option<[u8; 32]>,
    /// QoS that it offers or requests.
    pub quality: Quality,
    /// Its identity.
    pub gid: Gid,
}

/// Kind of names that a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Topics of ROS, by either end.
    Topics,
    /// Every topic of the bus, with the two of each service.
    AllTopics,
    /// Topics of ROS that are published.
    Published,
    /// Topics of ROS that are subscribed.
    Subscribed,
    /// Services, by either end.
    Services,
    /// Services that are served.
    Served,
    /// Services that are called.
    Called,
}

/// Why two ends of a topic do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The types differ.
    Type,
    /// A policy, by its number in [`policy`].
    Policy(u32),
}

impl Wanted {
    /// The name under which an end of a topic is shown, and its type.
    fn of(self, entry: &Entry) -> Option<(String, String)> {
        let is_topic = entry.topic.starts_with('/');
        let plain = || (entry.topic.clone(), entry.type_name.clone());
        let way = match self {
            Wanted::Topics => return is_topic.then(plain),
            Wanted::AllTopics => return Some(plain()),
            Wanted::Published => return (is_topic && entry.way == Way::Writes).then(plain),
            Wanted::Subscribed => return (is_topic && entry.way == Way::Reads).then(plain),
            Wanted::Services => None,
            Wanted::Served => Some(Way::Reads),
            Wanted::Called => Some(Way::Writes),
        };
        // The topic of the requests alone: each end of a service has an end of it.
        let service = ServiceTopics::service_of(&entry.topic)?;
        let type_name = entry.type_name.strip_suffix("_Request").unwrap_or(&entry.type_name);
        way.is_none_or(|way| way == entry.way).then(|| (service, type_name.to_owned()))
    }
}

/// Names with their types, of all nodes or of one.
pub fn names(
    entries: &[Entry],
    wanted: Wanted,
    node: Option<(&str, &str)>,
) -> BTreeMap<String, BTreeSet<String>> {
    let is_meant = |entry: &&Entry| {
        node.is_none_or(|(namespace, name)| entry.node.namespace == namespace && entry.node.name == name)
    };
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, type_name) in entries.iter().filter(is_meant).filter_map(|entry| wanted.of(entry)) {
        let types = names.entry(name).or_default();
        if !type_name.is_empty() {
            types.insert(type_name);
        }
    }
    names
}

/// How many ends of this name there are.
pub fn count(entries: &[Entry], wanted: Wanted, name: &str) -> usize {
    let is_it = |entry: &&Entry| wanted.of(entry).is_some_and(|(found, _)| found == name);
    entries.iter().filter(is_it).count()
}

/// Why a writer and a reader of one topic do not find each other; `None` if they do.
pub fn misfit(writer: &Entry, reader: &Entry) -> Option<Misfit> {
    let any = reader.type_name.is_empty();
    let hashes = (writer.type_hash, reader.type_hash);
    if !any
        && (writer.type_name != reader.type_name || (hashes.0 != hashes.1 && hashes.0 != 0 && hashes.1 != 0))
    {
        return Some(Misfit::Type);
    }
    let (offered, asked) = (&writer.quality, &reader.quality);
    if asked.reliable && !offered.reliable {
        return Some(Misfit::Policy(policy::RELIABILITY));
    }
    if asked.transient_local && !offered.transient_local {
        return Some(Misfit::Policy(policy::DURABILITY));
    }
    let is_late = asked.deadline.is_some_and(|asked| offered.deadline.is_none_or(|offered| offered > asked));
    is_late.then_some(Misfit::Policy(policy::DEADLINE))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(name: &str, way: Way, topic: &str, type_name: &str) -> Entry {
        let node = NodeName { namespace: "/".into(), name: name.into(), enclave: "/".into() };
        let quality = Quality::DEFAULT;
        let (topic, type_name) = (topic.to_owned(), type_name.to_owned());
        Entry { node, way, topic, type_name, type_hash: 0, rihs01: None, quality, gid: Gid::default() }
    }

    fn bus() -> Vec<Entry> {
        vec![
            entry("talker", Way::Writes, "/chatter", "std_msgs/msg/String"),
            entry("listener", Way::Reads, "/chatter", "std_msgs/msg/String"),
            entry("any", Way::Reads, "/chatter", ""),
            entry("camera", Way::Writes, "image", "bytes"),
            entry("server", Way::Reads, "rq/addRequest", "demo/srv/Add_Request"),
            entry("server", Way::Writes, "rr/addReply", "demo/srv/Add_Response"),
            entry("client", Way::Writes, "rq/addRequest", "demo/srv/Add_Request"),
        ]
    }

    #[test]
    fn topics_and_services_are_distinguished() {
        let bus = bus();
        let list = |wanted, node| names(&bus, wanted, node).into_iter().collect::<Vec<_>>();
        let chatter = ("/chatter".to_owned(), BTreeSet::from(["std_msgs/msg/String".to_owned()]));
        assert_eq!(list(Wanted::Topics, None), std::slice::from_ref(&chatter));
        assert_eq!(list(Wanted::Published, Some(("/", "talker"))), [chatter]);
        assert_eq!(list(Wanted::Published, Some(("/", "listener"))), []);
        assert_eq!(list(Wanted::AllTopics, None).len(), 4);
        let add = ("/add".to_owned(), BTreeSet::from(["demo/srv/Add".to_owned()]));
        assert_eq!(list(Wanted::Served, Some(("/", "server"))), std::slice::from_ref(&add));
        assert_eq!(list(Wanted::Called, Some(("/", "server"))), []);
        assert_eq!(list(Wanted::Services, None), [add]);
        assert_eq!(count(&bus, Wanted::Subscribed, "/chatter"), 2);
        assert_eq!((count(&bus, Wanted::Served, "/add"), count(&bus, Wanted::Called, "/add")), (1, 1));
    }

    #[test]
    fn ends_that_do_not_fit_say_why() {
        let (writer, reader) = (&bus()[0], &bus()[1]);
        assert_eq!(misfit(writer, reader), None);
        let quality = Quality { transient_local: true, ..reader.quality };
        let late = Entry { quality, ..reader.clone() };
        assert_eq!(misfit(writer, &late), Some(Misfit::Policy(policy::DURABILITY)));
        let quality = Quality { reliable: false, ..writer.quality };
        let weak = Entry { quality, ..writer.clone() };
        assert_eq!(misfit(&weak, reader), Some(Misfit::Policy(policy::RELIABILITY)));
        let quality = Quality { deadline: Some(Duration::from_secs(1)), ..reader.quality };
        let strict = Entry { quality, ..reader.clone() };
        assert_eq!(misfit(writer, &strict), Some(Misfit::Policy(policy::DEADLINE)));
        let other = Entry { type_name: "std_msgs/msg/Int8".into(), ..reader.clone() };
        assert_eq!(misfit(writer, &other), Some(Misfit::Type));
        let changed = Entry { type_hash: 7, ..reader.clone() };
        assert_eq!(misfit(writer, &changed), None);
        assert_eq!(misfit(&Entry { type_hash: 8, ..writer.clone() }, &changed), Some(Misfit::Type));
    }
}
