//! A reader that may not read shared memory, and memory that cannot be had: each is reported in a sentence, the samples come by UDP if that
//! can be, and the node lives on.
//!
//! Children are this test binary itself, started again with a role; their notices they print to standard error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::{Node, Notice, Publisher, Route, Sample, Subscriber};
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

const ROLE: &str = "NOCTULE_REFUSED_ROLE";
/// A user that may do nothing: `nobody`.
const STRANGER: u32 = 65_534;
/// Of address space that a starved process may have beyond what it has: less than the ring below, more than all else.
const SPARE_BYTES: u64 = 256 << 20;
/// Eight of these and some more are a ring.
const LARGE_BYTES: u32 = 100 << 20;
/// Topics that one process reads from another: more than it has descriptors to spare.
const MANY: usize = 300;
/// The first of 303 domains of tests that are not in [`domain`]'s eight.
const DOMAIN_OF_GROUPS: u32 = 4_000;

fn node(domain: u32, clock: &str) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder("refused").domain(domain).clock(clock).keep_notices().open().unwrap()
}

fn domain(number: u32) -> u32 {
    4200 + (std::process::id() % 100) * 8 + number
}

/// The next notice that speaks of memory or permission. `check` panics if none can come any more.
fn next_refusal(node: &Node, subscriber: &mut Subscriber, mut check: impl FnMut()) -> String {
    loop {
        check();
        match node.poll_notice() {
            Some(notice @ (Notice::Refused { .. } | Notice::Unreadable { .. } | Notice::ByUdp { .. })) => {
                return notice.to_string();
            }
            Some(_) => {}
            None => _ = subscriber.wait(Some(Duration::from_millis(5))),
        }
    }
}

fn until_received(publisher: &mut Publisher, subscriber: &mut Subscriber) {
    while subscriber.take().unwrap().is_none() {
        publisher.publish(b"small").unwrap();
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

/// Leaves this process little address space.
fn starve() {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    let most = pages * rustix::param::page_size() as u64 + SPARE_BYTES;
    setrlimit(Resource::As, Rlimit { current: Some(most), maximum: Some(most) }).unwrap();
}

fn large(node: &Node) -> noctule::PublisherBuilder {
    node.publisher("large").payload_bytes_max(LARGE_BYTES)
}

/// Not a test by itself: what a started process does.
#[test]
fn role_of_a_started_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut words = role.split(' ');
    let (role, domain, clock) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    if role == "read_many_without_descriptors" || role == "publish_many" {
        // A node budgets with those that there are at its start.
        setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum: Some(256) }).unwrap();
    }
    let node = node(domain.parse().unwrap(), clock);
    match role {
        "read" => {
            let mut subscriber = node.subscriber("secret").open().unwrap();
            eprintln!("NOTICE {}", next_refusal(&node, &mut subscriber, || {}));
            eprintln!("NOTICE took {}", way(&next(&mut subscriber)));
            let more =
                std::iter::from_fn(|| node.poll_notice()).filter(|it| matches!(it, Notice::ByUdp { .. }));
            eprintln!("NOTICE once, and {} times more", more.count());
        }
        "read_shared" => {
            eprintln!("NOTICE took {}", way(&next(&mut node.subscriber("secret").open().unwrap())));
        }
        "read_without_descriptors" => {
            use_up_descriptors();
            let mut subscriber = node.subscriber("secret").open().unwrap();
            eprintln!("NOTICE {}", next_refusal(&node, &mut subscriber, || {}));
            eprintln!("NOTICE took {}", way(&next(&mut subscriber)));
        }
        "read_many_without_descriptors" => read_many(&node),
        "publish_many" => publish_many(&node),
        "read_own_without_descriptors" => read_own(&node),
        "publish" | "publish_without_descriptors" => {
            if role != "publish" {
                use_up_descriptors();
            }
            let mut publisher = node.publisher("cmd").open().unwrap();
            // Its ring is there from the beginning, whether it can be lent or not.
            let _history = node.publisher("history").transient_local().open().unwrap();
            eprintln!("NOTICE publishes");
            loop {
                publisher.publish(b"forged").unwrap();
                std::thread::yield_now();
            }
        }
        "publish_starved" => {
            starve();
            let history = large(&node).transient_local().open().unwrap_err();
            eprintln!("NOTICE {history}");
            let _large = large(&node).open().unwrap();
            let mut small = node.publisher("small").open().unwrap();
            loop {
                small.publish(b"small").unwrap();
                std::thread::yield_now();
            }
        }
        _ => {
            starve();
            let mut unread = node.subscriber("large").open().unwrap();
            eprintln!("NOTICE {}", next_refusal(&node, &mut unread, || {}));
            let mut small = node.subscriber("small").open().unwrap();
            while small.take().unwrap().is_none() {
                small.wait(Some(Duration::from_millis(5)));
            }
            eprintln!("NOTICE small came");
        }
    }
}

/// Reads what it publishes, without a descriptor.
fn read_own(node: &Node) {
    let mut publisher = node.publisher("own").open().unwrap();
    use_up_descriptors();
    let mut subscriber = node.subscriber("own").open().unwrap();
    while publisher.readers() == 0 {
        subscriber.wait(Some(Duration::from_millis(1)));
    }
    publisher.publish(b"own").unwrap();
    eprintln!("NOTICE took {}", way(&next(&mut subscriber)));
}

/// Reads a sample of each of many topics, without a descriptor.
fn read_many(node: &Node) {
    use_up_descriptors();
    let open = |number: usize| node.subscriber(&format!("topic{number}")).open().unwrap();
    let mut silent: Vec<Subscriber> = (0..MANY).map(open).collect();
    while !silent.is_empty() {
        silent.retain_mut(|subscriber| subscriber.take().unwrap().is_none());
        let refused = std::iter::from_fn(|| node.poll_notice())
            .find(|it| matches!(it, Notice::Refused { .. } | Notice::Unreadable { .. }));
        if let Some(refused) = refused {
            return eprintln!("NOTICE {} topics bring nothing: {refused}", silent.len());
        }
        std::thread::yield_now();
    }
    eprintln!("NOTICE all bring samples");
}

/// Publishes many topics, once all are read.
fn publish_many(node: &Node) {
    let open = |number: usize| node.publisher(&format!("topic{number}")).open().unwrap();
    let mut publishers: Vec<Publisher> = (0..MANY).map(open).collect();
    while publishers.iter().any(|publisher| publisher.readers() == 0) {
        std::thread::yield_now();
    }
    let files: Vec<_> = (0..16).map(|_| std::fs::File::open("/dev/null")).collect();
    eprintln!("NOTICE files that can be opened: {}", files.iter().filter(|file| file.is_ok()).count());
    drop(files);
    loop {
        publishers.iter_mut().for_each(|publisher| publisher.publish(b"sample").unwrap());
        std::thread::yield_now();
    }
}

/// Leaves this process no file descriptor but those that it has.
fn use_up_descriptors() {
    use std::os::fd::AsRawFd;
    let free = std::fs::File::open("/dev/null").unwrap().as_raw_fd();
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(free.unsigned_abs().into()), maximum }).unwrap();
    assert!(std::fs::File::open("/dev/null").is_err());
}

/// The next sample, however long it takes.
fn next(subscriber: &mut Subscriber) -> Sample {
    subscriber.receive(None).unwrap().unwrap()
}

/// How a sample came, and how far its age is known.
fn way(sample: &Sample) -> String {
    format!("{}, {:?}", sample.info().route, sample.age().and_then(|age| age.bound).map(|bound| bound.ns()))
}

/// Publishes until it is dropped.
struct Publishing(std::sync::Arc<std::sync::atomic::AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Publishing {
    fn start(mut publisher: Publisher) -> Publishing {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let is_over = std::sync::Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                publisher.publish(b"sample").unwrap();
                std::thread::yield_now();
            }
        });
        Publishing(stop, Some(thread))
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        let _ = self.1.take().map(std::thread::JoinHandle::join);
    }
}

struct Reporter {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Reporter {
    fn start(role: &str, uid: u32) -> Reporter {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "role_of_a_started_process", "--nocapture"])
            .env(ROLE, role)
            .uid(uid)
            .gid(if uid == STRANGER { STRANGER } else { rustix::process::getgid().as_raw() })
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Reporter { child, lines }
    }

    fn next(&mut self) -> String {
        let mut others = String::new();
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            if let Some(words) = line.strip_prefix("NOTICE ") {
                return words.to_owned();
            }
            others += &line;
        }
        panic!("it ended by itself: {others}");
    }

    /// A test that waits for what this process does would wait for ever if it had ended.
    fn check_alive(&mut self) {
        let status = self.child.try_wait().unwrap();
        assert!(status.is_none(), "it ended by itself: {status:?}");
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_reader_of_another_user_gets_the_samples_by_udp_and_one_notice() {
    if std::env::var(ROLE).is_ok() || !getuid().is_root() {
        return; // Only root can become another user.
    }
    let domain = domain(0);
    let ours = node(domain, "offset=0s");
    let _publishing = Publishing::start(ours.publisher("secret").open().unwrap());
    let mut stranger = Reporter::start(&format!("read {domain} offset=0s"), STRANGER);
    let words = stranger.next();
    assert!(words.contains("topic secret") && words.contains("runs as another user"), "{words}");
    assert!(words.contains("name a group"), "{words}");
    assert!(words.contains("samples come by UDP instead"), "{words}");
    // One clock, so the age is exact.
    assert_eq!(stranger.next(), "took udp, Some(0)");
    assert_eq!(stranger.next(), "once, and 0 times more");
}

#[test]
fn a_reader_of_another_user_reads_shared_memory_if_its_group_is_named() {
    if std::env::var(ROLE).is_ok() || !getuid().is_root() {
        return; // Only root can become another user.
    }
    let domain = DOMAIN_OF_GROUPS + std::process::id() % 100;
    let ours =
        Node::builder("refused").domain(domain).share_with_group(STRANGER).keep_notices().open().unwrap();
    let _publishing = Publishing::start(ours.publisher("secret").open().unwrap());
    let mut stranger = Reporter::start(&format!("read_shared {domain} offset=0s"), STRANGER);
    assert_eq!(stranger.next(), "took shm, Some(0)");
}

#[test]
fn a_node_without_shared_memory_exchanges_samples_by_udp() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = DOMAIN_OF_GROUPS + 100 + std::process::id() % 100;
    let open = |builder: noctule::NodeBuilder| builder.domain(domain).keep_notices().open().unwrap();
    let (ours, beside) = (open(Node::builder("ours")), open(Node::builder("beside")));
    let without = open(Node::builder("without").without_shared_memory());
    let _publishing = Publishing::start(ours.publisher("secret").open().unwrap());
    for (node, route) in [(&without, Route::Udp), (&beside, Route::SharedMemory)] {
        let mut subscriber = node.subscriber("secret").open().unwrap();
        assert_eq!(next(&mut subscriber).info().route, route);
        // It is what was requested, so there is no notice of it.
        assert_eq!(std::iter::from_fn(|| node.poll_notice()).filter(|it| it.kind() != "no_key").count(), 0);
    }
}

#[test]
fn memory_of_another_user_is_not_read_even_by_root() {
    if std::env::var(ROLE).is_ok() || !getuid().is_root() {
        return; // Only root can become another user.
    }
    let domain = domain(4);
    let ours = node(domain, "offset=0s");
    let mut subscriber = ours.subscriber("cmd").open().unwrap();
    let mut stranger = Reporter::start(&format!("publish {domain} offset=0s"), STRANGER);
    assert_eq!(stranger.next(), "publishes");
    let words = next_refusal(&ours, &mut subscriber, || stranger.check_alive());
    assert!(words.contains("topic cmd") && words.contains("belongs to another user"), "{words}");
    // Without a key any process can send datagrams, on this host as on others; memory that can change under the reader is not.
    let sample = next(&mut subscriber);
    assert_eq!((sample.info().route, sample.to_vec()), (Route::Udp, b"forged".to_vec()));
}

#[test]
fn a_reader_without_a_file_descriptor_gets_the_samples_by_udp() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = domain(5);
    let ours = node(domain, "offset=0s");
    let _publishing = Publishing::start(ours.publisher("secret").open().unwrap());
    let mut poor =
        Reporter::start(&format!("read_without_descriptors {domain} offset=0s"), getuid().as_raw());
    let words = poor.next();
    assert!(words.contains("topic secret") && words.contains("samples come by UDP instead"), "{words}");
    assert_eq!(poor.next(), "took udp, Some(0)");
}

#[test]
fn a_process_with_few_file_descriptors_reads_hundreds_of_topics_of_its_host() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = DOMAIN_OF_GROUPS + 301;
    let ours = node(domain, "offset=0s");
    let open = |number: usize| ours.publisher(&format!("topic{number}")).open().unwrap();
    let mut publishers: Vec<Publisher> = (0..MANY).map(open).collect();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                publishers.iter_mut().for_each(|publisher| publisher.publish(b"sample").unwrap());
                std::thread::yield_now();
            }
        });
        let role = format!("read_many_without_descriptors {domain} offset=0s");
        let words = Reporter::start(&role, getuid().as_raw()).next();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(words, "all bring samples");
    });
}

#[test]
fn publishers_of_hundreds_of_topics_leave_their_process_file_descriptors() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = DOMAIN_OF_GROUPS + 302;
    let ours = node(domain, "offset=0s");
    let open = |number: usize| ours.subscriber(&format!("topic{number}")).open().unwrap();
    let mut subscribers: Vec<Subscriber> = (0..MANY).map(open).collect();
    let mut many = Reporter::start(&format!("publish_many {domain} offset=0s"), getuid().as_raw());
    assert_eq!(many.next(), "files that can be opened: 16");
    let routes: Vec<Route> = subscribers.iter_mut().map(|subscriber| next(subscriber).info().route).collect();
    let shared = routes.iter().filter(|route| **route == Route::SharedMemory).count();
    // Of 256 descriptors 64 are left, and the node has some for itself.
    assert!((128..192).contains(&shared), "{shared}");
}

#[test]
fn readers_of_a_publisher_without_a_file_descriptor_get_the_samples_by_udp() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = domain(6);
    let ours = node(domain, "offset=0s");
    let mut subscriber = ours.subscriber("cmd").open().unwrap();
    let mut poor =
        Reporter::start(&format!("publish_without_descriptors {domain} offset=0s"), getuid().as_raw());
    assert_eq!(poor.next(), "publishes");
    let words = next_refusal(&ours, &mut subscriber, || poor.check_alive());
    assert!(words.contains("ulimit -n") && words.contains("samples come by UDP instead"), "{words}");
    assert_eq!(way(&next(&mut subscriber)), "udp, Some(0)");
    // A node that was turned away has not hung up: the other is not taken for dead.
    for _ in 0..200 {
        poor.check_alive();
        assert_eq!((next(&mut subscriber).info().route, ours.nodes().len()), (Route::Udp, 1));
    }
}

#[test]
fn the_reader_that_a_full_ring_refuses_gets_history_and_samples_by_udp() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = domain(7);
    let ours = node(domain, "offset=0s");
    let reliable = noctule::Reliability::Reliable;
    let builder = ours.publisher("clock").payload_bytes_max(64).reliability(reliable);
    let mut publisher = builder.keep_last(400).transient_local().open().unwrap();
    (0..3_u32).for_each(|number| publisher.publish(&number.to_le_bytes()).unwrap());
    // One node may have 128 matches with another's publisher.
    let crowd = [node(domain, "offset=0s"), node(domain, "offset=0s")];
    let open = |node: &Node| node.subscriber("clock").reliability(reliable).transient_local().open().unwrap();
    let mut readers: Vec<Subscriber> =
        crowd.iter().flat_map(|node| (0..128).map(move |_| open(node))).collect();
    while publisher.readers() < 256 {
        readers[255].wait(Some(Duration::from_millis(5)));
    }
    let last_node = node(domain, "offset=0s");
    let mut last = open(&last_node);
    let words = next_refusal(&last_node, &mut last, || {});
    assert!(
        words.contains("has its 256 readers") && words.contains("samples come by UDP instead"),
        "{words}"
    );
    (3..300_u32).for_each(|number| publisher.publish(&number.to_le_bytes()).unwrap());
    for number in 0..300_u32 {
        let sample = next(&mut last);
        assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
        assert_eq!((sample.info().route, sample.info().publisher), (Route::Udp, ours.id()));
        let shared = next(&mut readers[number as usize % 2 * 255]);
        assert_eq!(shared.info().route, Route::SharedMemory);
    }
    assert_eq!(publisher.readers(), 257);
    drop(last);
    while publisher.readers() > 256 {
        readers[0].wait(Some(Duration::from_millis(5)));
    }
}

#[test]
fn readers_in_the_publishers_own_node_read_its_ring_however_many_others_there_are() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = DOMAIN_OF_GROUPS + 200 + std::process::id() % 100;
    let (ours, other) = (node(domain, "offset=0s"), node(domain, "offset=0s"));
    let mut publisher = ours.publisher("clock").payload_bytes_max(64).keep_last(8).open().unwrap();
    let mut readers: Vec<Subscriber> = (0..300).map(|_| ours.subscriber("clock").open().unwrap()).collect();
    while publisher.readers() < readers.len() {
        readers[0].wait(Some(Duration::from_millis(5)));
    }
    // The ring is full for others.
    let mut last = other.subscriber("clock").open().unwrap();
    assert!(next_refusal(&other, &mut last, || {}).contains("has its 256 readers"));
    while publisher.readers() <= readers.len() {
        readers[0].wait(Some(Duration::from_millis(5)));
    }
    for number in 0..20_u32 {
        publisher.publish(&number.to_le_bytes()).unwrap();
        for reader in &mut readers {
            let sample = next(reader);
            assert_eq!((sample.to_vec(), sample.info().missed), (number.to_le_bytes().to_vec(), 0));
            assert_eq!(sample.info().route, Route::SharedMemory);
        }
        assert_eq!(next(&mut last).info().route, Route::Udp);
    }
    // One that goes gives its place back, and what it has borrowed stays as it is.
    publisher.publish(b"kept").unwrap();
    let kept = next(&mut readers[299]);
    readers.truncate(200);
    while publisher.readers() > 201 {
        readers[0].wait(Some(Duration::from_millis(5)));
    }
    (0..100_u32).for_each(|number| publisher.publish(&number.to_le_bytes()).unwrap());
    assert_eq!(kept.to_vec(), b"kept");
    assert_eq!(std::iter::from_fn(|| ours.poll_notice()).filter(|it| it.kind() != "no_key").count(), 0);
}

#[test]
fn a_reader_in_the_publishers_own_node_needs_no_file_descriptor() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let role = format!("read_own_without_descriptors {} offset=0s", DOMAIN_OF_GROUPS + 300);
    assert_eq!(Reporter::start(&role, getuid().as_raw()).next(), "took shm, Some(0)");
}

#[test]
fn a_publisher_without_memory_says_so_on_both_sides_and_goes_on_with_others() {
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let domain = domain(1);
    let mut starved = Reporter::start(&format!("publish_starved {domain} offset=0s"), getuid().as_raw());
    let words = starved.next();
    assert!(words.contains("bytes of shared memory cannot be had"), "{words}");
    assert!(words.contains("lower keep_last"), "{words}");
    let ours = node(domain, "offset=0s");
    let mut subscriber = ours.subscriber("large").open().unwrap();
    let words = next_refusal(&ours, &mut subscriber, || starved.check_alive());
    assert!(words.contains("topic large") && words.contains("shared memory cannot be had"), "{words}");
    let mut small = ours.subscriber("small").open().unwrap();
    while small.take().unwrap().is_none() {
        starved.check_alive();
        small.wait(Some(Duration::from_millis(5)));
    }
}

fn a_starved_subscriber_says_so(number: u32, its_clock: &str, says: &str) {
    let domain = domain(number);
    let ours = node(domain, "offset=0s");
    let _large = large(&ours).open().unwrap();
    let mut small = ours.publisher("small").open().unwrap();
    let mut starved = Reporter::start(&format!("read_starved {domain} {its_clock}"), getuid().as_raw());
    let words = starved.next();
    assert!(words.contains("topic large: cannot be read here") && words.contains(says), "{words}");
    assert!(words.contains("lower"), "{words}");
    // It holds nothing of ours, and other topics are not touched.
    let mut ear = ours.subscriber("small").open().unwrap();
    until_received(&mut small, &mut ear);
    // It may have received one of those already, and be gone.
    while starved.child.try_wait().unwrap().is_none() {
        until_received(&mut small, &mut ear);
    }
    assert_eq!(starved.next(), "small came");
}

#[test]
fn a_subscriber_without_memory_for_the_ring_of_its_host_says_so() {
    if std::env::var(ROLE).is_err() {
        a_starved_subscriber_says_so(2, "offset=0s", "cannot be mapped");
    }
}

#[test]
fn a_subscriber_without_memory_for_a_topic_of_another_host_says_so() {
    if std::env::var(ROLE).is_err() {
        a_starved_subscriber_says_so(3, "offset=5s", "shared memory cannot be had");
    }
}
