//! Publishers and readers of a topic, in the metadata of its channel: a line for each node, the first 16 hexadecimal digits
//! of its number, a space, and its name. Bytes: `docs/spec/recording.md`.

use std::collections::BTreeSet;

use noctule::{Endpoint, EndpointKind, KnownEndpoint, Node, incompatible};

/// Key of the nodes that published the topic when its recording began.
pub const PUBLISHERS: &str = "noctule_publishers";
/// Key of the nodes that read it then, without the recorder and those that do not match.
pub const SUBSCRIBERS: &str = "noctule_subscribers";
/// Nodes that are written, and nodes that are read, of one topic.
pub const NODES_MAX: usize = 256;
/// Digits of a node's number.
const DIGITS: usize = 16;

/// A node that publishes or reads a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The first 16 hexadecimal digits of its number.
    pub number: String,
    /// Its name.
    pub name: String,
}

/// The nodes that publish or read what a writer publishes, as the node knows them now; it is none of them.
pub(crate) fn text(node: &Node, writer: &Endpoint, kind: EndpointKind) -> String {
    let is_end = |other: &Endpoint| {
        let fits = kind == EndpointKind::Writer || incompatible(writer, other).is_none();
        other.kind == kind && other.topic == writer.topic && fits
    };
    let known = node.endpoints().into_iter();
    let ends = known.filter(|known| known.node != node.id() && is_end(&known.endpoint));
    let lines: BTreeSet<String> = ends
        .map(|known| {
            let End { number, name } = End::of(&known);
            format!("{number} {name}")
        })
        .collect();
    lines.into_iter().take(NODES_MAX).collect::<Vec<_>>().join("\n")
}

impl End {
    /// The node of an endpoint.
    pub(crate) fn of(known: &KnownEndpoint) -> End {
        End { number: short(&known.node.to_string()), name: known.node_name.replace(char::is_control, " ") }
    }
}

/// The first 16 digits of a node's number.
pub fn short(number: &str) -> String {
    number.chars().take(DIGITS).collect()
}

/// The nodes of a text; lines that are none are left out.
pub fn read(text: &str) -> Vec<End> {
    let end = |line: &str| {
        let (number, name) = line.split_once(' ')?;
        let is_number = number.len() == DIGITS && number.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number.then(|| End { number: number.to_owned(), name: name.to_owned() })
    };
    text.lines().filter_map(end).take(NODES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_no_node_are_left_out() {
        let read =
            read("0011223344556677 imu driver\n0011 short\nnone\n00112233445566zz odd\n8899aabbccddeeff \n");
        let names: Vec<_> = read.iter().map(|end| (end.number.as_str(), end.name.as_str())).collect();
        assert_eq!(names, [("0011223344556677", "imu driver"), ("8899aabbccddeeff", "")]);
    }
}
