//! What DDS has and the bridge does not carry: services, and what ROS 2 builds on them, actions and parameters. Each is named once.

use std::collections::BTreeSet;

use crate::plan::DdsEndpoint;
use crate::rules::Rules;

/// The services by which each node of ROS 2 answers for its parameters.
const PARAMETERS: [&str; 6] = [
    "describe_parameters",
    "get_parameter_types",
    "get_parameters",
    "list_parameters",
    "set_parameters",
    "set_parameters_atomically",
];

/// A sentence about each service, action and node with parameters among the endpoints, as far as the rules allow their names.
pub fn not_carried(dds: &[DdsEndpoint], rules: &Rules) -> BTreeSet<String> {
    let services = dds.iter().filter_map(|endpoint| service(&endpoint.topic));
    let allowed = services.filter(|service| rules.allow(service));
    allowed.map(|service| sentence(&service)).collect()
}

/// The name of the service that a topic of requests or replies belongs to.
fn service(topic: &str) -> Option<String> {
    let request = topic.strip_prefix("rq/").and_then(|rest| rest.strip_suffix("Request"));
    let reply = || topic.strip_prefix("rr/").and_then(|rest| rest.strip_suffix("Reply"));
    let name = request.or_else(reply)?;
    (!name.is_empty()).then(|| format!("/{name}"))
}

fn sentence(service: &str) -> String {
    let (owner, last) = service.rsplit_once('/').unwrap_or(("", service));
    let what = match owner.strip_suffix("/_action") {
        Some(action) => format!("action {action}"),
        None if PARAMETERS.contains(&last) && !owner.is_empty() => format!("parameters of node {owner}"),
        None => format!("service {service}"),
    };
    format!(
        "{what}: not carried between DDS and the bus, as only topics are; call it from a program of ROS 2"
    )
}

#[cfg(test)]
mod tests {
    use noctule::{EndpointKind, Qos};

    use super::*;

    fn named(topics: &[&str], rules: &Rules) -> Vec<String> {
        let endpoint = |topic: &&str| DdsEndpoint {
            guid: [7; 16],
            kind: EndpointKind::Reader,
            topic: (*topic).to_owned(),
            type_name: String::new(),
            rihs01: None,
            qos: Qos::default(),
        };
        let endpoints: Vec<DdsEndpoint> = topics.iter().map(endpoint).collect();
        let sentences = not_carried(&endpoints, rules).into_iter();
        sentences.map(|sentence| sentence.split(": ").next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_service_an_action_and_a_nodes_parameters_are_one_sentence_each() {
        let topics = [
            "rt/chatter",
            "rq/add_two_intsRequest",
            "rr/add_two_intsReply",
            "rq/fibonacci/_action/send_goalRequest",
            "rr/fibonacci/_action/get_resultReply",
            "rt/fibonacci/_action/status",
            "rq/talker/get_parametersRequest",
            "rq/talker/set_parametersRequest",
            "rq/talker/get_type_descriptionRequest",
            "rq/Request",
            "rq/",
            "rr/odd",
        ];
        let expected = [
            "action /fibonacci",
            "parameters of node /talker",
            "service /add_two_ints",
            "service /talker/get_type_description",
        ];
        assert_eq!(named(&topics, &Rules::default()), expected);
        let rules = Rules { only: vec![], except: vec!["/talker/*".into(), "/fib*".into()] };
        assert_eq!(named(&topics, &rules), ["service /add_two_ints"]);
    }
}
