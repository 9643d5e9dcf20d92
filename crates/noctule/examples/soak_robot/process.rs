//! The processes of the robot: this program itself, started again with a role.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use noctule::{
    Node, NodeId, PublishError, Publisher, ReadError, Ready, Reliability, Route, SampleInfo, Subscriber,
    Wait, WaitSet,
};
use noctule_sys::clock::{now_ns, sleep_until};
use noctule_sys::process::in_child;

use crate::TOPICS;
use crate::hosts::Hosts;

const SIGKILL: i32 = 9;
const ROLE: &str = "NOCTULE_SOAK_ROLE";
/// By which a deadline-bound sample must have arrived.
const DEADLINE: Duration = Duration::from_millis(200);
/// Of the topics the deadline-bound one.
const BOUND: usize = 3;
/// What a deadline-bound writer published so long before its newest sample has come or is counted: the newest may have been on its way for a
/// deadline, and so may its repair.
const DECIDED_NS: i64 = 400_000_000;
/// A writer that is silent for so long counts as gone: three times as long as a busy machine takes to notice.
const GONE_NS: i64 = 15_000_000_000;

#[derive(Clone, Copy)]
pub enum Kind {
    Writer((&'static str, &'static str, u32, u32)),
    Reader,
}

pub struct Process {
    host: usize,
    kind: Kind,
    child: Child,
    /// Sum of the last reports of lives that are over.
    former: Tally,
    lives: u32,
    said: Arc<std::sync::Mutex<Tally>>,
}

/// Counts of samples, forks and crashes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub taken: u64,
    /// As the library counts them.
    pub missed: u64,
    /// Gaps in the writers' own numbers that the library did not count.
    pub unaccounted: u64,
    /// Samples counted as missed by the library that the writers' numbers do not lack.
    pub overcounted: u64,
    pub twice: u64,
    /// Forks whose child was refused what it tried with its parent's node.
    pub forks: u64,
    /// Forks whose child was not.
    pub forks_wrong: u64,
    /// Lives that ended by themselves.
    pub crashed: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.taken += other.taken;
        self.missed += other.missed;
        self.unaccounted += other.unaccounted;
        self.overcounted += other.overcounted;
        self.twice += other.twice;
        self.forks += other.forks;
        self.forks_wrong += other.forks_wrong;
        self.crashed += other.crashed;
    }

    pub fn is_right(&self) -> bool {
        self.unaccounted + self.overcounted + self.twice + self.forks_wrong + self.crashed == 0
    }

    /// A process's report to the main one: all but whether it crashed.
    fn line(&self) -> String {
        let Tally { taken, missed, unaccounted, overcounted, twice, forks, forks_wrong, .. } = self;
        format!("TALLY {taken} {missed} {unaccounted} {overcounted} {twice} {forks} {forks_wrong}")
    }

    fn parse(line: &str) -> Option<Tally> {
        let mut numbers = line.strip_prefix("TALLY ")?.split(' ').map(|word| word.parse().unwrap_or(0));
        let mut next = || numbers.next();
        Some(Tally {
            taken: next()?,
            missed: next()?,
            unaccounted: next()?,
            overcounted: next()?,
            twice: next()?,
            forks: next()?,
            forks_wrong: next()?,
            crashed: 0,
        })
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
        let is_killed = |status: ExitStatus| status.signal() == Some(SIGKILL);
        self.former.crashed += u64::from(!self.child.wait().is_ok_and(is_killed));
        self.former.add(&self.said.lock().unwrap());
        (self.child, self.said) = spawn(hosts, self.host, self.kind, key);
        self.lives += 1;
    }

    /// Has it fork; the child tries to use its parent's node.
    pub fn fork(&mut self) {
        // One that has crashed is counted when it is killed or stopped.
        let _ = self.child.stdin.as_mut().map(|orders| orders.write_all(b"f"));
    }

    /// Has it stand still for so long.
    pub fn pause(&mut self, length_ns: i64) {
        self.signal("STOP");
        sleep_until(now_ns() + length_ns);
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{name}");
    }

    pub fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }

    /// Ends it, and gives what it has counted.
    pub fn stop(&mut self) -> Tally {
        drop(self.child.stdin.take());
        self.former.crashed += u64::from(!self.child.wait().is_ok_and(|status| status.success()));
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
    let orders = Orders::default();
    let gives = orders.clone();
    std::thread::spawn(move || {
        while std::io::stdin().read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
            gives.forks.fetch_add(1, Ordering::Relaxed);
        }
        gives.stop.store(true, Ordering::Relaxed);
    });
    let node = Node::builder(&role).keep_notices().open().unwrap();
    match TOPICS.iter().find(|topic| topic.0 == role) {
        Some(topic) => write(&node, *topic, &orders),
        None => read(&node, &orders),
    }
    true
}

/// Requests of the main process to this one.
#[derive(Clone, Default)]
struct Orders {
    stop: Arc<AtomicBool>,
    forks: Arc<AtomicU64>,
}

impl Orders {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Forks if that was ordered; `is_refused` says in the child whether what it tries is refused.
    fn fork(&self, tally: &mut Tally, is_refused: impl FnOnce() -> bool) {
        if self.forks.load(Ordering::Relaxed) == tally.forks + tally.forks_wrong {
            return;
        }
        match in_child(|| u8::from(is_refused())) {
            Ok(1) => tally.forks += 1,
            _ => tally.forks_wrong += 1,
        }
    }
}

fn reliability(name: &str) -> Reliability {
    match name {
        "reliable" => Reliability::Reliable,
        "deadline_bound" => Reliability::DeadlineBound,
        _ => Reliability::BestEffort,
    }
}

fn write(node: &Node, (topic, class, rate_hz, bytes): (&str, &str, u32, u32), orders: &Orders) {
    let builder =
        node.publisher(topic).reliability(reliability(class)).payload_bytes_max(bytes).keep_last(64);
    let mut publisher: Publisher =
        if class == "deadline_bound" { builder.deadline(DEADLINE) } else { builder }.open().unwrap();
    let mut sample = vec![7; bytes as usize];
    let mut at_ns = now_ns();
    let mut number = 0_u64;
    let mut tally = Tally::default();
    while !orders.is_over() {
        let before = tally.forks + tally.forks_wrong;
        orders.fork(&mut tally, || matches!(publisher.publish(b"child"), Err(PublishError::Forked { .. })));
        if tally.forks + tally.forks_wrong > before {
            println!("{}", tally.line());
        }
        number += 1;
        sample[..8].copy_from_slice(&number.to_le_bytes());
        publisher.publish(&sample).unwrap();
        at_ns += 1_000_000_000 / i64::from(rate_hz);
        sleep_until(at_ns);
    }
}

#[allow(clippy::print_stderr)] // the judge reads standard output
fn print_lacking(samples: u64, lacks: &[String]) {
    eprintln!("not counted in two reports: {samples} of the deadline-bound topic; {}", lacks.join("; "));
}

/// Samples received from one writer.
#[derive(Default)]
struct Seen {
    first: u64,
    last: u64,
    taken: u64,
    missed: u64,
    /// Of those that may come in another order, the newest, each with its source time if that is known.
    recent: BTreeMap<u64, Option<i64>>,
    /// When the last came.
    last_ns: i64,
}

impl Seen {
    /// A sample of a writer whose samples come in its order.
    #[allow(clippy::print_stderr)] // the judge reads standard output
    fn take(&mut self, number: u64, missed: u64, tally: &mut Tally) {
        tally.taken += 1;
        tally.missed += missed;
        // What was before the first was before this reader.
        let gap = match self.last {
            0 => missed,
            last if number <= last => return tally.twice += 1,
            last => number - last - 1,
        };
        if gap > missed {
            eprintln!("not counted: {} before {number}, {missed} of {gap} are", gap - missed);
        }
        tally.unaccounted += gap.saturating_sub(missed);
        tally.overcounted += missed.saturating_sub(gap);
        self.last = number;
    }

    /// A sample of one whose repaired samples come behind newer ones.
    fn take_in_any_order(&mut self, number: u64, info: &SampleInfo, tally: &mut Tally) {
        tally.taken += 1;
        tally.missed += info.missed;
        let source_ns = info.source_time.map(|time| time.ns());
        if self.recent.insert(number, source_ns).is_some() {
            return tally.twice += 1;
        }
        if self.recent.len() > 4_096 {
            self.recent.pop_first();
        }
        if self.first == 0 {
            // The library's count begins with the first datagram, which may be of an older sample that is late or still to be whole.
            self.first = match info.route {
                Route::SharedMemory => number,
                Route::Udp => info.sequence - info.missed,
            };
        }
        self.missed += info.missed;
        self.taken += 1;
        self.last = self.last.max(number);
        self.last_ns = now_ns();
    }

    /// Samples that did not come, by the writer's numbers.
    fn lacking(&self) -> u64 {
        self.last + 1 - self.first - self.taken
    }

    /// Those of them that may still come: of a writer that is there, published hardly before the newest.
    fn undecided(&self) -> u64 {
        if now_ns() - self.last_ns > GONE_NS {
            return 0;
        }
        let newest_ns = self.recent.values().rev().find_map(|source_ns| *source_ns).unwrap_or(i64::MAX);
        let is_old = |source_ns: &Option<i64>| source_ns.is_some_and(|at| at <= newest_ns - DECIDED_NS);
        let old = self.recent.iter().rev().find(|(_, source_ns)| is_old(source_ns));
        let decided = old.map_or(self.first, |(number, _)| *number);
        (decided..=self.last).filter(|number| !self.recent.contains_key(number)).count() as u64
    }

    /// Description of a writer of which samples are in no counter.
    fn story(&self, publisher: NodeId) -> Option<String> {
        let (lacking, undecided) = (self.lacking(), self.undecided());
        let newest = self.first.max(self.last.saturating_sub(4_000))..=self.last;
        let gaps: Vec<u64> =
            newest.filter(|number| !self.recent.contains_key(number)).rev().take(8).collect();
        let silent_ms = (now_ns() - self.last_ns) / 1_000_000;
        (lacking > undecided + self.missed).then(|| {
            format!(
                "of {publisher}, from {} to {}, the last {silent_ms} ms ago, {lacking} lack, {} are counted, {undecided} may still come; newest gaps {gaps:?}",
                self.first, self.last, self.missed
            )
        })
    }
}

/// Holds the gaps in the writers' numbers against what the library has counted by now: what was not yet decided
/// when its writer went is in the subscriber's counter alone, as no later sample could say so.
fn judge<'a>(writers: impl Iterator<Item = &'a Seen>, counted: u64, tally: &mut Tally) {
    let (mut open, mut lacking, mut said) = (0, 0, 0);
    for from in writers {
        (lacking, said) = (lacking + from.lacking(), said + from.missed);
        open += from.lacking().saturating_sub(from.undecided() + from.missed);
        tally.overcounted += from.missed.saturating_sub(from.lacking());
    }
    let unsaid = counted.saturating_sub(said);
    tally.unaccounted += open.saturating_sub(unsaid);
    tally.overcounted += unsaid.saturating_sub(lacking.saturating_sub(said));
}

fn read(node: &Node, orders: &Orders) {
    let open = |(topic, class, ..): &(&str, &str, u32, u32)| {
        let builder = node.subscriber(topic).reliability(reliability(class));
        if *class == "deadline_bound" { builder.deadline(DEADLINE) } else { builder }.open().unwrap()
    };
    let mut subscribers: Vec<Subscriber> = TOPICS.iter().map(open).collect();
    let mut seen: BTreeMap<(usize, NodeId), Seen> = BTreeMap::new();
    let (mut set, mut tally, mut reported_ns) = (WaitSet::new(Wait::Block), Tally::default(), now_ns());
    // Of the report before: what is under way just then is counted by the next.
    let mut lacking = 0;
    loop {
        let is_over = orders.is_over();
        orders.fork(&mut tally, || {
            subscribers
                .iter_mut()
                .all(|each| each.take().is_err_and(|error| error.cause == ReadError::Forked))
        });
        if let Ready::Sample(at) = set.wait(&mut subscribers, Some(Duration::from_millis(100)))
            && let Ok(Some(sample)) = subscribers[at].take()
        {
            let mut number = [0; 8];
            sample.read_at(0, &mut number);
            let (number, missed) = (u64::from_le_bytes(number), sample.info().missed);
            let from = seen.entry((at, sample.info().publisher)).or_default();
            match TOPICS[at].1 {
                "deadline_bound" => from.take_in_any_order(number, sample.info(), &mut tally),
                _ => from.take(number, missed, &mut tally),
            }
        }
        if is_over || now_ns() - reported_ns > 500_000_000 {
            reported_ns = now_ns();
            let mut judged = tally;
            let in_any_order = || seen.iter().filter(|((at, _), _)| *at == BOUND);
            judge(in_any_order().map(|(_, from)| from), subscribers[BOUND].counters().missed, &mut judged);
            let undecided = judged.unaccounted - tally.unaccounted;
            if undecided.min(lacking) > 0 {
                let lacks = in_any_order().filter_map(|((_, publisher), from)| from.story(*publisher));
                print_lacking(undecided.min(lacking), &lacks.collect::<Vec<_>>());
            }
            if !is_over {
                judged.unaccounted = tally.unaccounted + undecided.min(lacking);
            }
            lacking = undecided;
            println!("{}", judged.line());
        }
        if is_over {
            return;
        }
    }
}
