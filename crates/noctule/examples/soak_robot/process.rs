//! The processes of the robot: this program itself, started again with a role.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use noctule::{Node, NodeId, Publisher, Ready, Reliability, Subscriber, Wait, WaitSet};
use noctule_sys::clock::{now_ns, sleep_until};

use crate::TOPICS;
use crate::hosts::Hosts;

const ROLE: &str = "NOCTULE_SOAK_ROLE";
/// By which a deadline-bound sample must have arrived.
const DEADLINE: Duration = Duration::from_millis(200);

#[derive(Clone, Copy)]
pub enum Kind {
    Writer((&'static str, &'static str, u32, u32)),
    Reader,
}

pub struct Process {
    host: usize,
    kind: Kind,
    child: Child,
    /// Of lives that are over: what they had said last.
    former: Tally,
    lives: u32,
    said: Arc<std::sync::Mutex<Tally>>,
}

/// What became of samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub taken: u64,
    /// As the library counts them.
    pub missed: u64,
    /// Gaps in the writers' own numbers that the library did not count.
    pub unaccounted: u64,
    pub twice: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.taken += other.taken;
        self.missed += other.missed;
        self.unaccounted += other.unaccounted;
        self.twice += other.twice;
    }

    fn parse(line: &str) -> Option<Tally> {
        let mut numbers = line.strip_prefix("TALLY ")?.split(' ').map(|word| word.parse().unwrap_or(0));
        let mut next = || numbers.next();
        Some(Tally { taken: next()?, missed: next()?, unaccounted: next()?, twice: next()? })
    }
}

impl Process {
    pub fn start(hosts: &Hosts, host: usize, kind: Kind, key: &Path) -> Process {
        let (child, said) = spawn(hosts, host, kind, key);
        Process { host, kind, child, former: Tally::default(), lives: 1, said }
    }

    pub fn name(&self) -> String {
        let Process { host, lives, .. } = self;
        match self.kind {
            Kind::Writer((topic, ..)) => format!("writer of {topic}, life {lives}"),
            Kind::Reader => format!("reader on host {host}, life {lives}"),
        }
    }

    pub fn kill_and_start_again(&mut self, hosts: &Hosts, key: &Path) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.former.add(&self.said.lock().unwrap());
        (self.child, self.said) = spawn(hosts, self.host, self.kind, key);
        self.lives += 1;
    }

    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }

    /// Ends it, and gives what it has counted.
    pub fn stop(&mut self) -> Tally {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        // Its last words are read by a thread that ends with them.
        while Arc::strong_count(&self.said) > 1 {
            sleep_until(now_ns() + 1_000_000);
        }
        let mut tally = self.former;
        tally.add(&self.said.lock().unwrap());
        tally
    }
}

type Said = Arc<std::sync::Mutex<Tally>>;

fn spawn(hosts: &Hosts, host: usize, kind: Kind, key: &Path) -> (Child, Said) {
    let role = match kind {
        Kind::Writer((topic, ..)) => topic,
        Kind::Reader => "read",
    };
    let start = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(ROLE, role).env("NOCTULE_KEY_FILE", key).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn()
    };
    let mut child = hosts.robots[host].run(start).unwrap();
    let said = Said::default();
    let (writes, lines) = (Arc::clone(&said), BufReader::new(child.stdout.take().unwrap()).lines());
    std::thread::spawn(move || {
        for tally in lines.map_while(Result::ok).filter_map(|line| Tally::parse(&line)) {
            *writes.lock().unwrap() = tally;
        }
    });
    (child, said)
}

pub fn write_key(path: &Path) {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    let key: [u8; 32] = noctule_sys::random::secret().unwrap();
    key.iter().for_each(|byte| write!(file, "{byte:02x}").unwrap());
}

/// True if this process is one of the robot's; then it has done what it is for.
pub fn play_role() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let stop = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        is_over.store(true, Ordering::Relaxed);
    });
    let node = Node::builder(&role).keep_notices().open().unwrap();
    match TOPICS.iter().find(|topic| topic.0 == role) {
        Some(topic) => write(&node, *topic, &stop),
        None => read(&node, &stop),
    }
    true
}

fn write(node: &Node, (topic, class, rate_hz, bytes): (&str, &str, u32, u32), stop: &AtomicBool) {
    let builder = node
        .publisher(topic)
        .reliability(class.parse::<Reliability>().unwrap())
        .payload_bytes_max(bytes)
        .keep_last(64);
    let mut publisher: Publisher =
        if class == "deadline_bound" { builder.deadline(DEADLINE) } else { builder }.open().unwrap();
    let mut sample = vec![7; bytes as usize];
    let mut at_ns = now_ns();
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        sample[..8].copy_from_slice(&number.to_le_bytes());
        publisher.publish(&sample).unwrap();
        at_ns += 1_000_000_000 / i64::from(rate_hz);
        sleep_until(at_ns);
    }
}

/// What has come from one writer.
#[derive(Default)]
struct Seen {
    last: u64,
    /// Of those that may come in another order.
    recent: std::collections::BTreeSet<u64>,
}

impl Seen {
    fn take(&mut self, number: u64, missed: u64, in_order: bool, tally: &mut Tally) {
        tally.taken += 1;
        tally.missed += missed;
        if !in_order {
            tally.twice += u64::from(!self.recent.insert(number));
            if self.recent.len() > 4_096 {
                self.recent.pop_first();
            }
            return;
        }
        if self.last > 0 && number <= self.last {
            tally.twice += 1;
            return;
        }
        // What was before the first was before this reader.
        if self.last > 0 {
            let gap = number - self.last - 1;
            tally.unaccounted += gap.saturating_sub(missed);
        }
        self.last = number;
    }
}

fn read(node: &Node, stop: &AtomicBool) {
    let open = |(topic, class, ..): &(&str, &str, u32, u32)| {
        let builder = node.subscriber(topic).reliability(class.parse::<Reliability>().unwrap());
        if *class == "deadline_bound" { builder.deadline(DEADLINE) } else { builder }.open().unwrap()
    };
    let mut subscribers: Vec<Subscriber> = TOPICS.iter().map(open).collect();
    let mut seen: BTreeMap<(usize, NodeId), Seen> = BTreeMap::new();
    let (mut set, mut tally, mut reported_ns) = (WaitSet::new(Wait::Block), Tally::default(), now_ns());
    loop {
        let is_over = stop.load(Ordering::Relaxed);
        if let Ready::Sample(at) = set.wait(&mut subscribers, Some(Duration::from_millis(100)))
            && let Ok(Some(sample)) = subscribers[at].take()
        {
            let mut number = [0; 8];
            sample.read_at(0, &mut number);
            let (number, in_order) = (u64::from_le_bytes(number), TOPICS[at].1 != "deadline_bound");
            let from = seen.entry((at, sample.info().publisher)).or_default();
            from.take(number, sample.info().missed, in_order, &mut tally);
        }
        if is_over || now_ns() - reported_ns > 500_000_000 {
            reported_ns = now_ns();
            let Tally { taken, missed, unaccounted, twice } = tally;
            println!("TALLY {taken} {missed} {unaccounted} {twice}");
        }
        if is_over {
            return;
        }
    }
}
