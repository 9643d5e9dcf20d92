//! Parameters between two nodes: all six services, the events, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use noctule::parameter::{
    PARAMETER_EVENTS, ParameterCallError, ParameterDescriptor, ParameterError, ParameterRange, ParameterType,
    ParameterValue,
};
use noctule::{CallError, Node, Reliability};

/// Far longer than anything takes here, on any machine.
const LONG: Duration = Duration::from_secs(60);

fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    2300 + (std::process::id() % 100) * 8 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(name: &str, domain: u32) -> Node {
    Node::builder(name).domain(domain).open().unwrap()
}

#[test]
fn another_node_lists_describes_reads_and_sets_parameters() {
    let domain = domain();
    let (arm, tool) = (node("arm", domain), node("tool", domain));
    let parameters = arm.parameters("/left/arm").unwrap();
    let range = Some(ParameterRange::Double { from: 0.0, to: 2.0, step: 0.0 });
    let speed = ParameterDescriptor { description: "m/s".into(), range, ..Default::default() };
    parameters.declare_as("joint.speed", 0.5, speed.clone()).unwrap();
    parameters.declare("names", vec!["a".to_owned()]).unwrap();
    let read_only = ParameterDescriptor { read_only: true, ..Default::default() };
    parameters.declare_as("serial", "X1", read_only).unwrap();

    let mut client = tool.parameter_client("left/arm", LONG).unwrap();
    let found = client.list(&[], 0).unwrap();
    assert_eq!(
        (found.names.join(" ").as_str(), found.prefixes.join(" ").as_str()),
        ("joint.speed names serial", "joint")
    );
    assert_eq!(client.list(&["joint"], 1).unwrap().names, ["joint.speed"]);
    let values = client.get(&["joint.speed", "nothing", "names"]).unwrap();
    assert_eq!(values, [0.5.into(), ParameterValue::NotSet, vec!["a".to_owned()].into()]);
    let kinds = client.types(&["serial", "nothing"]).unwrap();
    assert_eq!(kinds, [ParameterType::String, ParameterType::NotSet]);
    assert_eq!(client.describe(&["joint.speed"]).unwrap(), [(ParameterType::Double, speed)]);

    let results =
        client.set(&[("joint.speed", 1.5.into()), ("joint.speed", 3.0.into()), ("serial", "X2".into())]);
    let results = results.unwrap();
    assert_eq!(results[0], Ok(()));
    assert_eq!(results[1], Err("parameter joint.speed can be 0 to 2, of type {double}".into()));
    assert_eq!(results[2], Err("parameter serial cannot be set because it is read-only".into()));
    assert_eq!(parameters.get("joint.speed"), Some(1.5.into()));
    // All or none.
    let refused = client.set_atomically(&[("joint.speed", 0.1.into()), ("nothing", 1.into())]).unwrap();
    assert_eq!(refused, Err("parameter nothing cannot be set because it was not declared".into()));
    assert_eq!(parameters.get("joint.speed"), Some(1.5.into()));
    let both = [("joint.speed", 0.1.into()), ("names", Vec::<String>::new().into())];
    assert_eq!(client.set_atomically(&both).unwrap(), Ok(()));
    assert_eq!(parameters.get("names"), Some(Vec::<String>::new().into()));

    drop(parameters);
    // That it has gone is known a moment later.
    let mut client = tool.parameter_client("/left/arm", Duration::from_millis(200)).unwrap();
    let end = std::time::Instant::now() + LONG;
    loop {
        match client.list(&[], 0) {
            Err(ParameterCallError::Call(CallError::NoServer { .. })) => break,
            other => assert!(other.is_err() && std::time::Instant::now() < end, "{other:?}"),
        }
    }
}

#[test]
fn the_programs_callback_refuses_with_its_own_sentence_and_sees_what_is_set_together() {
    let domain = domain();
    let (arm, tool) = (node("arm", domain), node("tool", domain));
    let parameters = Arc::new(arm.parameters("/arm").unwrap());
    parameters.declare("least", 1).unwrap();
    parameters.declare("most", 5).unwrap();
    let reads = Arc::downgrade(&parameters);
    parameters.on_set(move |values| {
        let now = |name: &str| {
            let given = values.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            match given.or_else(|| reads.upgrade()?.get(name)) {
                Some(ParameterValue::Integer(value)) => value,
                other => panic!("{other:?}"),
            }
        };
        match now("least") <= now("most") {
            true => Ok(()),
            false => Err("the least is above the most".into()),
        }
    });
    let mut client = tool.parameter_client("/arm", LONG).unwrap();
    assert_eq!(client.set(&[("least", 7.into())]).unwrap(), [Err("the least is above the most".into())]);
    assert_eq!(client.set_atomically(&[("least", 7.into()), ("most", 9.into())]).unwrap(), Ok(()));
    assert_eq!(parameters.get("least"), Some(7.into()));
    assert_eq!(
        parameters.set("most", 2),
        Err(ParameterError::Refused { why: "the least is above the most".into() })
    );
}

/// Bytes of an event → how many are new, changed, deleted; and its node. By hand, so that a mistake on both ends would show.
fn event(bytes: &[u8]) -> (String, [u32; 3]) {
    let mut at = 4 + 8;
    let u32_at = |at: &mut usize| {
        *at = at.next_multiple_of(4);
        *at += 4;
        u32::from_le_bytes(bytes[*at - 4..*at].try_into().unwrap())
    };
    let length = u32_at(&mut at) as usize;
    let node = String::from_utf8(bytes[at..at + length - 1].to_vec()).unwrap();
    at += length;
    let first = u32_at(&mut at);
    // Only the empty lists before the first entry can be counted without a parser.
    let second = if first == 0 { u32_at(&mut at) } else { 0 };
    let third = if first == 0 && second == 0 { u32_at(&mut at) } else { 0 };
    (node, [first, second, third])
}

#[test]
fn what_becomes_of_parameters_is_an_event() {
    let domain = domain();
    let (arm, tool) = (node("arm", domain), node("tool", domain));
    let mut events = tool.subscriber(PARAMETER_EVENTS).reliability(Reliability::Reliable).open().unwrap();
    let parameters = arm.parameters("/arm").unwrap();
    let dynamic = ParameterDescriptor { dynamic_typing: true, ..Default::default() };
    parameters.declare_as("first", 1, dynamic).unwrap();
    while events.publishers() == 0 {
        events.wait(Some(LONG));
    }
    // The writer must know of its reader, too: what it declares before that is gone.
    let mut number = 0;
    let (node, counts) = loop {
        number += 1;
        parameters.declare(&format!("p{number}"), 0.5).unwrap();
        if let Some(sample) = events.receive(Some(Duration::from_millis(50))).unwrap() {
            break event(&sample.to_vec());
        }
        assert!(number < 1000, "no event came");
    };
    assert_eq!((node.as_str(), counts), ("/arm", [1, 0, 0]));
    parameters.set("first", 2).unwrap();
    parameters.set("first", ParameterValue::NotSet).unwrap();
    let mut counts = Vec::new();
    while counts.len() < 2 {
        let sample = events.receive(Some(LONG)).unwrap().expect("an event");
        let (_, count) = event(&sample.to_vec());
        if count != [1, 0, 0] {
            counts.push(count);
        }
    }
    assert_eq!(counts, [[0, 1, 0], [0, 0, 1]]);
}
