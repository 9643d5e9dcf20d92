//! How discovery grows: swarms of 10, 100 and 1,000 nodes, with loss and churn, as a table.
//!
//! `cargo xtask sweep discovery` writes it to `crates/discovery/sweep.md`.

#[path = "../tests/swarm/mod.rs"]
mod swarm;

use noctule_discovery::{Endpoint, EndpointId, EndpointKind, Qos};
use noctule_timebase::Span;
use swarm::Swarm;

const SEED: u64 = 1;
/// Topics that each node writes to its right neighbour, which reads them.
const TOPICS: usize = 4;
const STEP: Span = Span::from_ms(10);
const STEADY_S: i64 = 10;

#[allow(clippy::print_stdout)] // a table on standard output is what this program is for
fn main() {
    println!(
        "Simulated: each node writes {TOPICS} topics, which its right neighbour reads; seed {SEED}. Of all datagrams to each"
    );
    println!(
        "receiver the given share is lost. Matched: every endpoint has its partner. Bytes: discovery's datagrams as sent,"
    );
    println!("without UDP and IP, mean over the nodes that stay and {STEADY_S} s.\n");
    println!(
        "| nodes | loss | all matched after start | a newcomer matched after | bytes/s per node, quiet | … one node restarting each second |"
    );
    println!("|---:|---:|---:|---:|---:|---:|");
    for nodes in [10, 100, 1000] {
        for loss in [0.0, 0.05, 0.2] {
            let row = measure(nodes, loss);
            println!(
                "| {nodes} | {loss} | {} | {} | {:.0} | {:.0} |",
                seconds(row.start),
                seconds(row.newcomer),
                row.quiet,
                row.churn
            );
        }
    }
}

struct Row {
    start: Option<Span>,
    newcomer: Option<Span>,
    quiet: f64,
    churn: f64,
}

fn measure(nodes: usize, loss: f64) -> Row {
    let mut swarm = Swarm::new(SEED);
    swarm.loss = loss;
    for _ in 0..nodes {
        swarm.start("node");
    }
    (0..nodes).for_each(|node| populate(&mut swarm, node, nodes));
    let start = until_matched(&mut swarm, nodes);
    swarm.run(Span::from_s(5));
    let quiet = bytes_per_s(&mut swarm, nodes, |_, _| {});
    swarm.restart(0);
    populate(&mut swarm, 0, nodes);
    let newcomer = until_matched(&mut swarm, 1);
    swarm.run(Span::from_s(5));
    let churn = bytes_per_s(&mut swarm, nodes, |swarm, second| {
        let node = 1 + second as usize % (nodes - 2);
        swarm.restart(node);
        populate(swarm, node, nodes);
    });
    Row { start, newcomer, quiet, churn }
}

fn populate(swarm: &mut Swarm, node: usize, nodes: usize) {
    for topic in 0..TOPICS {
        swarm.add(node, endpoint(EndpointKind::Writer, node, topic));
        swarm.add(node, endpoint(EndpointKind::Reader, (node + 1) % nodes, topic));
    }
}

fn endpoint(kind: EndpointKind, node: usize, topic: usize) -> Endpoint {
    Endpoint {
        id: EndpointId(0),
        kind,
        topic: format!("robot_{node}/sensor_{topic}/state"),
        type_name: "sensor_msgs/JointState".into(),
        type_hash: 1,
        formats: 1,
        payload_bytes_max: 1024,
        qos: Qos::default(),
        relayed: false,
    }
}

/// Until the first `watched` nodes have a partner for each of their endpoints; `None` after a minute.
fn until_matched(swarm: &mut Swarm, watched: usize) -> Option<Span> {
    let wanted = 2 * TOPICS as i64;
    (1..6000).find_map(|step| {
        swarm.run(STEP);
        (0..watched).all(|node| swarm.matches(node) == wanted).then_some(STEP * step)
    })
}

/// Bytes that a node sends each second, in the mean over all that stay, while `each_second` happens to others.
fn bytes_per_s(swarm: &mut Swarm, nodes: usize, each_second: impl Fn(&mut Swarm, i64)) -> f64 {
    // A restarted node counts from zero.
    let staying = || (0..nodes).filter(|node| *node == 0 || *node == nodes - 1 || *node > STEADY_S as usize);
    let sent = |swarm: &Swarm| staying().map(|node| swarm.counters(node).sent_bytes).sum::<u64>();
    let before = sent(swarm);
    for second in 0..STEADY_S {
        each_second(swarm, second);
        swarm.run(Span::from_s(1));
    }
    (sent(swarm) - before) as f64 / (STEADY_S as f64 * staying().count() as f64)
}

fn seconds(span: Option<Span>) -> String {
    span.map_or("not within a minute".into(), |span| format!("{:.2} s", span.as_s_f64()))
}
