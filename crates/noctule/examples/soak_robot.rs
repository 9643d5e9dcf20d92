//! A robot's day, shortened: `soak_robot MINUTES [SEED [NOCTULE]]`, as root. Three hosts in namespaces, twelve processes with a swarm key, a
//! stranger without one; links that go down, roaming to a recorded Wi-Fi and back, processes that are killed and started again, fork or stand still, and (with
//! the command `noctule`) a recorder whose disk becomes full, at times drawn from the seed. Afterwards every sample that a reader did not get is
//! one that it counted, and none else; none came twice; no child used its parent's node; no process crashed; each recording opens; and processes that lived all the
//! time are as large as after the first minute.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)] // a program of the developers

#[path = "soak_robot/disk.rs"]
mod disk;
#[path = "soak_robot/hosts.rs"]
mod hosts;
#[path = "soak_robot/process.rs"]
mod process;

use std::path::Path;
use std::time::{Duration, Instant};

use disk::Recorder;
use hosts::Hosts;
use noctule_proto_kit::SplitMix64;
use process::{Kind, Process, Tally};

/// Topic, reliability, samples a second, bytes.
type Written = (&'static str, &'static str, u32, u32);

/// Topics of the robot's writers.
const TOPICS: [Written; 4] = [
    ("imu", "best_effort", 200, 64),
    ("command", "reliable", 50, 256),
    ("camera", "best_effort", 5, 200_000),
    ("state", "deadline_bound", 50, 512),
];
/// On the other robot and beside the writers.
const READERS: [usize; 2] = [5, 3];
/// May grow by so much after the first minute: fragmentation of the allocator, and tables that fill slowly.
const GROWTH_KIB: u64 = 2_048;

fn start_all(hosts: &Hosts, key: &Path) -> Vec<Process> {
    let writers = TOPICS.iter().map(|topic| (0, Kind::Writer(*topic)));
    let readers =
        (0..READERS[0]).map(|_| (1, Kind::Reader)).chain((0..READERS[1]).map(|_| (0, Kind::Reader)));
    writers.chain(readers).map(|(host, kind)| Process::start(hosts, host, kind, key)).collect()
}

/// Counts and durations of the faults injected into the robot.
#[derive(Debug, Default)]
struct Events {
    kills: u32,
    cuts: u32,
    cut_s: f64,
    roams: u32,
    wifi_s: f64,
    forks: u32,
    pauses: u32,
    paused_s: f64,
    full_disks: u32,
    /// Recorders that did not get through theirs.
    recorders_wrong: u32,
}

/// Where everything happens.
struct Robot<'a> {
    hosts: &'a Hosts,
    folder: &'a Path,
    key: &'a Path,
    /// The command `noctule`, if there is one.
    noctule: Option<&'a Path>,
}

/// Draws what happens next, and does it. The first writer of each reliability, and two readers, live all the time.
fn disturb(random: &mut SplitMix64, robot: &Robot<'_>, processes: &mut [Process], events: &mut Events) {
    // 0.2 to 8 s: some are longer than a node's lifetime.
    let length = Duration::from_millis(200 + random.below(7_800));
    let length_ns = length.as_nanos() as i64;
    match random.below(9) {
        0 | 1 => {
            robot.hosts.set_link(false);
            noctule_sys::clock::sleep_until(noctule_sys::clock::now_ns() + length_ns);
            robot.hosts.set_link(true);
            (events.cuts, events.cut_s) = (events.cuts + 1, events.cut_s + length.as_secs_f64());
        }
        2 => {
            robot.hosts.roam(length_ns, random.below(u64::MAX));
            (events.roams, events.wifi_s) = (events.roams + 1, events.wifi_s + length.as_secs_f64());
        }
        3 => {
            processes[random.below(processes.len() as u64) as usize].fork();
            events.forks += 1;
        }
        4 => {
            // As on a machine that is too busy: others give it up if it lasts.
            processes[random.below(processes.len() as u64) as usize].pause(length_ns);
            (events.pauses, events.paused_s) = (events.pauses + 1, events.paused_s + length.as_secs_f64());
        }
        5 if robot.noctule.is_some() => fill_disk(robot, length_ns, events),
        _ => {
            let mortal: Vec<usize> = (0..processes.len()).filter(|at| !is_spared(*at)).collect();
            let at = mortal[random.below(mortal.len() as u64) as usize];
            processes[at].kill_and_start_again(robot.hosts, robot.key);
            events.kills += 1;
        }
    }
}

/// A recorder begins, its disk is full for a while, it records on, and ends.
fn fill_disk(robot: &Robot<'_>, length_ns: i64, events: &mut Events) {
    let Some(noctule) = robot.noctule else { return };
    let folder = robot.folder.join("disk");
    std::fs::create_dir_all(&folder).unwrap();
    let mut recorder = Recorder::start(robot.hosts, noctule, &folder, robot.key);
    noctule_sys::clock::sleep_until(noctule_sys::clock::now_ns() + 3_000_000_000);
    // Long enough for it to notice: it writes once a second at least.
    let filled = recorder.fill_disk(length_ns.max(3_000_000_000));
    if let Err(why) = recorder.end().and(filled) {
        println!("a recorder with a full disk: {why}");
        events.recorders_wrong += 1;
    }
    events.full_disks += 1;
}

/// Writers of `imu` and `command`, the first reader of each host.
fn is_spared(at: usize) -> bool {
    [0, 1, TOPICS.len(), TOPICS.len() + READERS[0]].contains(&at)
}

fn report(processes: &mut [Process], before: &[u64], events: &Events) -> bool {
    let mut total = Tally::default();
    let mut is_right = true;
    println!(
        "{:<28} {:>10} {:>9} {:>12} {:>12} {:>6} {:>6} {:>17}",
        "process", "taken", "missed", "unaccounted", "overcounted", "twice", "forks", "memory in KiB"
    );
    for (at, process) in processes.iter_mut().enumerate() {
        let after = process.resident_kib();
        let tally = process.stop();
        total.add(&tally);
        let memory = format!("{} -> {after}", before[at]);
        println!(
            "{:<28} {:>10} {:>9} {:>12} {:>12} {:>6} {:>6} {memory:>17}",
            process.name(),
            tally.taken,
            tally.missed,
            tally.unaccounted,
            tally.overcounted,
            tally.twice,
            tally.forks
        );
        if is_spared(at) && after > before[at] + GROWTH_KIB {
            println!("it has grown by more than {GROWTH_KIB} KiB");
            is_right = false;
        }
    }
    println!("{events:?}");
    println!(
        "taken {}, missed and counted {}, missed and not counted {}, counted and not missed {}, twice {}; forks refused {}, not refused {}; crashed {}",
        total.taken,
        total.missed,
        total.unaccounted,
        total.overcounted,
        total.twice,
        total.forks,
        total.forks_wrong,
        total.crashed
    );
    is_right && total.is_right() && total.taken > 0 && events.recorders_wrong == 0
}

fn main() {
    if process::play_role() {
        return;
    }
    let mut arguments = std::env::args().skip(1);
    let minutes: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        println!("soak_robot MINUTES [SEED [NOCTULE]]");
        std::process::exit(2);
    });
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let noctule = arguments.next().map(|path| std::path::absolute(path).unwrap());
    println!("{minutes} minutes, seed {seed}, {} processes", TOPICS.len() + READERS[0] + READERS[1]);
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    process::write_key(&key);
    let hosts = Hosts::new();
    let mut processes = start_all(&hosts, &key);
    let _strangers = hosts.start_strangers();
    let robot = Robot { hosts: &hosts, folder: folder.path(), key: &key, noctule: noctule.as_deref() };
    let (mut random, mut events) = (SplitMix64::new(seed), Events::default());
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(minutes * 60.0);
    let mut before: Option<Vec<u64>> = None;
    while Instant::now() < end {
        let pause = 1_000 + random.below(4_000);
        noctule_sys::clock::sleep_until(noctule_sys::clock::now_ns() + pause as i64 * 1_000_000);
        disturb(&mut random, &robot, &mut processes, &mut events);
        let is_warm = begin.elapsed() >= Duration::from_secs(60).min((end - begin) / 3);
        if before.is_none() && is_warm {
            before = Some(processes.iter().map(Process::resident_kib).collect());
        }
    }
    // What is under way arrives.
    noctule_sys::clock::sleep_until(noctule_sys::clock::now_ns() + 3_000_000_000);
    let before = before.unwrap_or_else(|| vec![0; processes.len()]);
    if !report(&mut processes, &before, &events) {
        std::process::exit(1);
    }
}
