//! How the library grows: processes on one host, topics in one node, readers of one topic.
//!
//! `cargo run --release -p noctule --example growth` prints three tables, with `processes`, `topics` or
//! `readers` behind `--` only one. Each process is this program again; all of it happens on this host and
//! ends by itself.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use noctule::{Node, Wait};

const PROCESSES: [usize; 3] = [10, 50, 100];
const TOPICS: [usize; 4] = [1, 10, 100, 1000];
const READERS: [usize; 7] = [1, 4, 16, 32, 64, 128, 256];
/// Of one node and one of its publishers at most so many; the readers are spread over nodes.
const READERS_PER_NODE: usize = 128;
const SAMPLES: u32 = 20_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, domain, index, count] = &arguments[..] {
        assert_eq!(role, "node");
        return be_a_node(domain.parse().unwrap(), index.parse().unwrap(), count.parse().unwrap());
    }
    let is_wanted = |table: &str| arguments.get(1).is_none_or(|only| only == table);
    let mut domains = 3000 + std::process::id() % 1000..;
    let mut domain = || domains.next().unwrap();
    if is_wanted("processes") {
        println!(
            "| processes | all matched after the last one started | slowest of them |\n|---:|---:|---:|"
        );
        PROCESSES.into_iter().for_each(|count| processes(domain(), count));
    }
    if is_wanted("topics") {
        println!("\n| topics | opened in | matched in | memory a topic, both nodes |\n|---:|---:|---:|---:|");
        TOPICS.into_iter().for_each(|count| topics(domain(), count));
    }
    if is_wanted("readers") {
        println!("\n| readers | publish 64 B, all polling elsewhere |\n|---:|---:|");
        READERS.into_iter().for_each(|count| readers(domain(), count));
    }
}

/// Publishes to the right neighbour, subscribes to the left one, says when both are found.
fn be_a_node(domain: u32, index: usize, count: usize) {
    let start = Instant::now();
    let node = Node::builder("growth").domain(domain).keep_notices().open().unwrap();
    let publisher = node.publisher(&format!("t{index}")).open().unwrap();
    let mut subscriber = node.subscriber(&format!("t{}", (index + 1) % count)).open().unwrap();
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(1)));
    }
    println!("{}", start.elapsed().as_millis());
    // Until the parent has read all: the end of standard input.
    std::io::stdin().lines().for_each(drop);
}

fn processes(domain: u32, count: usize) {
    let start = |index: usize| -> Child {
        let arguments =
            ["node", &domain.to_string(), &index.to_string(), &count.to_string()].map(String::from);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let mut children: Vec<Child> = (0..count).map(start).collect();
    let last_started = Instant::now();
    let hear = |child: &mut Child| {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    let slowest_ms = children.iter_mut().map(hear).max().unwrap();
    println!("| {count} | {} ms | {slowest_ms} ms |", last_started.elapsed().as_millis());
    for mut child in children {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

fn topics(domain: u32, count: usize) {
    let node = || Node::builder("growth").domain(domain).keep_notices().open().unwrap();
    let (a, b) = (node(), node());
    let before_bytes = resident_bytes();
    let start = Instant::now();
    let publishers: Vec<_> = (0..count).map(|i| a.publisher(&format!("topic_{i}")).open().unwrap()).collect();
    let mut subscribers: Vec<_> =
        (0..count).map(|i| b.subscriber(&format!("topic_{i}")).open().unwrap()).collect();
    let opened = start.elapsed();
    while subscribers.iter_mut().any(|subscriber| subscriber.publishers() == 0) {
        subscribers[0].wait(Some(Duration::from_millis(1)));
    }
    let each_bytes = resident_bytes().saturating_sub(before_bytes) / count;
    println!("| {count} | {opened:.1?} | {:.1?} | {} KiB |", start.elapsed(), each_bytes / 1024);
    drop(publishers);
}

fn readers(domain: u32, count: usize) {
    let node = || Node::builder("growth").domain(domain).keep_notices().open().unwrap();
    let nodes: Vec<Node> = (0..count.div_ceil(READERS_PER_NODE)).map(|_| node()).collect();
    let node = node();
    let mut publisher = node.publisher("shared").payload_bytes_max(64).open().unwrap();
    let open = |number: usize| {
        let node = &nodes[number / READERS_PER_NODE];
        node.subscriber("shared").wait(Wait::Spin).borrows(1).open().unwrap()
    };
    let mut subscribers: Vec<_> = (0..count).map(open).collect();
    let mut matched = 0;
    while matched < count {
        matched = subscribers
            .iter_mut()
            .filter_map(|subscriber| (subscriber.publishers() > 0).then_some(()))
            .count();
        let refused = |notice: &noctule::Notice| notice.kind() != "no_key";
        if let Some(notice) = nodes.iter().chain([&node]).find_map(Node::poll_notice).filter(refused) {
            println!("| {count} | {notice} |");
            return;
        }
    }
    let start = Instant::now();
    for _ in 0..SAMPLES {
        publisher.publish(&[0; 64]).unwrap();
    }
    println!("| {count} | {:.0} ns |", start.elapsed().as_nanos() as f64 / f64::from(SAMPLES));
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
