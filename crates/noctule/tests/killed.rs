//! Writers and readers killed at random points: nobody hangs, no torn sample is accepted, nothing is
//! left behind.
//!
//! `NOCTULE_KILLS` (default 100) kills from seed `NOCTULE_SEED` (default 1), half of them of readers,
//! half of writers. The processes are this test binary itself, started again with a role.

#![allow(clippy::unwrap_used)] // a test, roles included

use std::process::{Child, Command};

use noctule::local::{Access, Interest, LocalError, Origin, Publisher, RingConfig, StartAt, Subscriber};

const ROLE: &str = "NOCTULE_KILLED_ROLE";
const WORDS_MAX: usize = 40;
const CONFIG: RingConfig =
    RingConfig { history: 5, pins: 6, payload_bytes_max: WORDS_MAX * 8, type_hash: 0x6B31 };
const INTEREST: Interest =
    Interest { type_hash: 0x6B31, pins: 2, start: StartAt::Oldest, access: Access { group: None } };

/// Every word of a message is a function of its number, and so is its length.
fn message(number: u64) -> Vec<u8> {
    let words = (number % WORDS_MAX as u64) as usize + 1;
    let word = |index: u64| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index).to_le_bytes();
    (0..words as u64).flat_map(word).collect()
}

fn publish(publisher: &mut Publisher) {
    let number = publisher.counters().published + 1;
    publisher.publish(&message(number), Origin::default()).unwrap();
}

/// Takes what there is, by copy and in place in turn, and holds on to the last one borrowed.
fn read(subscriber: &mut Subscriber, held: &mut Option<noctule::local::Borrowed>) -> u64 {
    let mut count = 0;
    let mut buffer = [0; WORDS_MAX * 8];
    while let Some(sample) = subscriber.take_next(&mut buffer).unwrap() {
        assert_eq!(buffer[..sample.length_bytes], message(sample.number), "torn copy");
        count += 1;
        if let Some(borrowed) = subscriber.borrow_latest().unwrap() {
            let mut bytes = vec![0; borrowed.len()];
            borrowed.copy_to(&mut bytes);
            assert_eq!(bytes, message(borrowed.sample().number), "torn in place");
            *held = Some(borrowed);
            count += 1;
        }
    }
    count
}

fn connect(address: &str) -> Subscriber {
    loop {
        match Subscriber::connect(address, "killed", &INTEREST) {
            Err(LocalError::NobodyThere(_)) => std::thread::yield_now(),
            other => return other.unwrap(),
        }
    }
}

/// Not a test by itself: what a started process does until it is killed.
#[test]
fn role_of_a_started_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, address) = role.split_once(' ').unwrap();
    if role == "write" {
        let mut publisher = Publisher::open(address, "killed", &CONFIG, Access::default()).unwrap();
        loop {
            publish(&mut publisher);
        }
    }
    let mut subscriber = connect(address);
    let mut held = None;
    loop {
        read(&mut subscriber, &mut held);
    }
}

fn start(role: &str, address: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "role_of_a_started_process", "--nocapture"])
        .env(ROLE, format!("{role} {address}"))
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

fn kill_readers(count: u64, random: &mut Random) {
    let address = format!("noctule-test/{}/killed-readers", std::process::id());
    let mut publisher = Publisher::open(&address, "killed", &CONFIG, Access::default()).unwrap();
    let mut faithful = connect(&address);
    let (mut held, mut heard) = (None, 0);
    for _ in 0..count {
        let child = start("read", &address);
        while publisher.readers() < 2 {
            publish(&mut publisher);
        }
        for _ in 0..random.below(20_000) {
            publish(&mut publisher);
        }
        kill(child);
        while publisher.readers() > 1 {
            publish(&mut publisher);
        }
        heard += read(&mut faithful, &mut held);
    }
    drop(held);
    let skipped = publisher.counters().skipped;
    (0..1000).for_each(|_| publish(&mut publisher));
    assert!(publisher.counters().skipped <= skipped + 2, "the pins of the dead are reclaimed");
    assert_eq!(publisher.counters().revoked, 0);
    assert!(heard >= count);
}

fn kill_writers(count: u64, random: &mut Random) {
    for round in 0..count {
        let address = format!("noctule-test/{}/killed-writer-{round}", std::process::id());
        let child = start("write", &address);
        let mut subscriber = connect(&address);
        let (mut held, mut heard) = (None, 0);
        let enough = random.below(5_000);
        while heard <= enough {
            heard += read(&mut subscriber, &mut held);
        }
        kill(child);
        while !subscriber.publisher_is_gone() {
            subscriber.wait(noctule::local::Waiting::Block, None);
        }
        // What it left can still be read, and is whole.
        read(&mut subscriber, &mut held);
        let gone = Subscriber::connect(&address, "killed", &INTEREST).unwrap_err();
        assert!(matches!(gone, LocalError::NobodyThere(_)), "{gone}");
    }
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
    let (kills, seed) = (number("NOCTULE_KILLS", 100), number("NOCTULE_SEED", 1));
    println!("{kills} kills from seed {seed}");
    let (descriptors, files) = (open_descriptors(), files_in_dev_shm());
    let mut random = Random(seed);
    kill_readers(kills / 2, &mut random);
    kill_writers(kills / 2, &mut random);
    assert_eq!(open_descriptors(), descriptors);
    assert_eq!(files_in_dev_shm(), files);
}
