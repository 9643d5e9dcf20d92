//! Names, sizes and counts of topics up to their limits, and one beyond (`docs/design/security.md` lists them).
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests and what they share

use noctule::{Node, NodeError};

fn node(number: u32) -> Node {
    let domain = 2900 + (std::process::id() % 20) * 4 + number;
    Node::builder("limits").domain(domain).keep_notices().open().unwrap()
}

#[test]
fn the_longest_name_is_taken_and_one_byte_more_is_refused() {
    let node = node(0);
    let longest = "n".repeat(255);
    node.publisher(&longest).type_name(&longest, 1).open().unwrap();
    node.subscriber(&longest).type_name(&longest, 1).open().unwrap();
    let too_long = longest + "n";
    let refused = |error: NodeError| assert!(error.to_string().contains("256 bytes long; 255"), "{error}");
    refused(node.publisher(&too_long).open().unwrap_err());
    refused(node.subscriber(&too_long).open().unwrap_err());
    refused(node.publisher("short").type_name(&too_long, 1).open().unwrap_err());
}

#[test]
fn the_longest_sample_and_history_are_taken_and_more_are_refused() {
    let node = node(1);
    let publisher = |bytes, depth| node.publisher("t").payload_bytes_max(bytes).keep_last(depth).open();
    assert!(publisher(1 << 30, 8).is_ok() && publisher(8, 65_535 - 2 * 7 - 1).is_ok());
    let error = publisher((1 << 30) + 1, 8).unwrap_err();
    assert!(matches!(error, NodeError::Layout { .. }) && error.to_string().contains("1073741824"), "{error}");
    let error = publisher(8, 65_536).unwrap_err();
    assert!(matches!(error, NodeError::Depth { .. }) && error.to_string().contains("65535"), "{error}");
    let error = node.publisher("t").keep_last(65_535).borrows(u32::MAX).open().unwrap_err();
    assert!(matches!(error, NodeError::Layout { .. }) && error.to_string().contains("65536"), "{error}");
}

#[test]
fn a_full_node_refuses_one_topic_more_and_takes_it_when_there_is_room() {
    // Two of the longest fit on a page.
    let node = node(2);
    let name = |number: usize| format!("{number:0>255}");
    let open = |number| node.publisher(&name(number)).type_name(&name(0), 1).open();
    let mut publishers = Vec::new();
    let full = loop {
        match open(publishers.len()) {
            Ok(publisher) => publishers.push(publisher),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, NodeError::Full) && full.to_string().contains("another node"), "{full}");
    assert_eq!(publishers.len(), 512);
    publishers.pop();
    publishers.push(open(100_000).unwrap());
    assert!(open(100_001).is_err());
}
