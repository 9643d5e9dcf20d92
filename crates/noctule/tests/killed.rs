//! Writers and readers killed at random points: no process hangs, no torn sample is accepted, nothing is
//! left behind.
//!
//! `NOCTULE_KILLS` (default 12) kills from seed `NOCTULE_SEED` (default 1), half of them of readers,
//! half of writers. The processes are this test binary itself, started again with a role.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test, roles included

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use noctule::{Node, Publisher, Sample, Subscriber};

const ROLE: &str = "NOCTULE_KILLED_ROLE";
const WORDS_MAX: usize = 40;

/// Every word of a message is a function of its number, which is the first, and so is its length.
fn message(number: u64) -> Vec<u8> {
    let words = (number % WORDS_MAX as u64) as usize + 1;
    let word = |index: u64| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index).to_le_bytes();
    number.to_le_bytes().into_iter().chain((0..words as u64).flat_map(word)).collect()
}

fn check(bytes: &[u8], how: &str) {
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!(bytes, message(number), "torn {how}");
}

fn publish(publisher: &mut Publisher) {
    publisher.publish(&message(publisher.published())).unwrap();
}

/// Takes what there is, by copy and in place in turn, and holds on to the last one borrowed.
fn read(subscriber: &mut Subscriber, held: &mut Option<Sample>) -> u64 {
    let mut count = 0;
    let mut buffer = [0; 8 + WORDS_MAX * 8];
    while let Some(info) = subscriber.take_into(&mut buffer).unwrap() {
        check(&buffer[..info.length_bytes], "copy");
        count += 1;
        if let Some(sample) = subscriber.take().unwrap() {
            check(&sample.to_vec(), "in place");
            *held = Some(sample);
            count += 1;
        }
    }
    count
}

fn node(domain: &str) -> Node {
    Node::builder("killed").domain(domain.parse().unwrap()).keep_notices().open().unwrap()
}

fn publisher(node: &Node) -> Publisher {
    let builder = node.publisher("killed").keep_last(5).borrows(6);
    builder.payload_bytes_max(8 + 8 * WORDS_MAX as u32).open().unwrap()
}

fn subscriber(node: &Node) -> Subscriber {
    node.subscriber("killed").borrows(2).open().unwrap()
}

/// Not a test by itself: what a started process does until it is killed.
#[test]
fn role_of_a_started_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, domain) = role.split_once(' ').unwrap();
    let node = node(domain);
    if role == "write" {
        let mut publisher = publisher(&node);
        loop {
            publish(&mut publisher);
        }
    }
    let mut subscriber = subscriber(&node);
    let mut held = None;
    loop {
        read(&mut subscriber, &mut held);
    }
}

fn start(role: &str, domain: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "role_of_a_started_process", "--nocapture"])
        .env(ROLE, format!("{role} {domain}"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills it; it must not have ended by itself, as it does when it reads something torn.
fn kill(mut child: Child) {
    use std::os::unix::process::ExitStatusExt;
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9), "it ended by itself");
}

struct Random(u64);

impl Random {
    /// xorshift64.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// How long it took that a started process was seen, and that a killed one was no longer.
#[derive(Default)]
struct Delays {
    joined: Vec<Duration>,
    gone: Vec<Duration>,
}

impl Delays {
    fn print(&mut self, whose: &str) {
        for (what, delays) in [("joined", &mut self.joined), ("gone", &mut self.gone)] {
            delays.sort_unstable();
            let at = |share: usize| delays.get(delays.len() * share / 100).or(delays.last());
            println!("{whose} {what}: median {:?}, 99 % {:?}, longest {:?}", at(50), at(99), delays.last());
        }
    }
}

fn kill_readers(count: u64, domain: &str, random: &mut Random) {
    let (ours, faithful_node) = (node(domain), node(domain));
    let mut publisher = publisher(&ours);
    let mut faithful = subscriber(&faithful_node);
    let (mut held, mut heard, mut delays) = (None, 0, Delays::default());
    for _ in 0..count {
        let started = Instant::now();
        let child = start("read", domain);
        while publisher.readers() < 2 {
            publish(&mut publisher);
            heard += read(&mut faithful, &mut held);
        }
        delays.joined.push(started.elapsed());
        for _ in 0..random.below(20_000) {
            publish(&mut publisher);
        }
        let killed = Instant::now();
        kill(child);
        while publisher.readers() > 1 {
            publish(&mut publisher);
        }
        delays.gone.push(killed.elapsed());
        heard += read(&mut faithful, &mut held);
    }
    assert!(heard >= count);
    delays.print("readers");
}

fn kill_writers(count: u64, domain: &str, random: &mut Random) {
    let ours = node(domain);
    let mut subscriber = subscriber(&ours);
    let mut delays = Delays::default();
    for _ in 0..count {
        let started = Instant::now();
        let child = start("write", domain);
        let (mut held, mut heard) = (None, 0);
        let enough = random.below(5_000);
        while heard == 0 {
            heard += read(&mut subscriber, &mut held);
        }
        delays.joined.push(started.elapsed());
        while heard <= enough {
            heard += read(&mut subscriber, &mut held);
        }
        let killed = Instant::now();
        kill(child);
        while subscriber.publishers() > 0 {
            subscriber.wait(None);
        }
        delays.gone.push(killed.elapsed());
        // What it left can still be read, and is whole.
        read(&mut subscriber, &mut held);
    }
    delays.print("writers");
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn files_in_dev_shm() -> Vec<std::ffi::OsString> {
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    files.map(|file| file.file_name()).filter(|name| name.to_string_lossy().contains("noctule")).collect()
}

#[test]
fn a_killed_process_harms_nobody_and_leaves_nothing() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (kills, seed) = (number("NOCTULE_KILLS", 12), number("NOCTULE_SEED", 1));
    println!("{kills} kills from seed {seed}");
    drop(node("0"));
    let (descriptors, files) = (open_descriptors(), files_in_dev_shm());
    let mut random = Random(seed);
    let domain = (2000 + std::process::id() % 2000).to_string();
    kill_readers(kills / 2, &domain, &mut random);
    kill_writers(kills / 2, &domain, &mut random);
    assert_eq!(open_descriptors(), descriptors);
    assert_eq!(files_in_dev_shm(), files);
}
