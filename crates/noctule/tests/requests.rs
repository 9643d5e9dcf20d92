//! Requests between nodes: through shared memory and by UDP, in one process and in two, with servers that are killed.
//! The second process is this test binary itself, started again with a role.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // a test, roles included

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use noctule::clock::LocalClock;
use noctule::request::ReplyError;
use noctule::{CallError, Client, Failure, Node, Notice, Server, message};
use serde::{Deserialize, Serialize};

const ROLE: &str = "NOCTULE_REQUESTS_ROLE";
/// Far longer than anything takes here, on any machine.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);
/// A request that the server of another process never answers.
const SILENCE: i64 = -1;

message! {
    /// Two numbers.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Add: "demo/srv/Add_Request" {
        /// The first.
        pub a: i64,
        /// The second.
        pub b: i64,
    }
}

message! {
    /// Their sum.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Sum: "demo/srv/Add_Response" {
        /// a + b.
        pub sum: i64,
    }
}

fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    3000 + (std::process::id() % 100) * 20 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn node(name: &str, domain: u32, clock: &str) -> Node {
    let clock: LocalClock = clock.parse().unwrap();
    Node::builder(name).domain(domain).clock(clock).keep_notices().open().unwrap()
}

fn client(node: &Node) -> Client<Add, Sum> {
    node.client::<Add, Sum>("/add").deadline(LONG).open().unwrap()
}

fn server(node: &Node) -> Server<Add, Sum> {
    node.server::<Add, Sum>("/add").open().unwrap()
}

/// Serves until it is stopped, on a thread of its own.
fn serving<T>(server: &mut Server<Add, Sum>, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                server
                    .serve(Some(Duration::from_millis(20)), |request| {
                        match request.a.checked_add(request.b) {
                            Some(sum) => Ok(Sum { sum }),
                            None => Err(Failure::from("the sum does not fit")),
                        }
                    })
                    .unwrap();
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// `clock`: with one of its own, a node is another host.
fn calls_are_answered(clock: &str) {
    let domain = domain();
    let (a, b) = (node("asks", domain, clock), node("serves", domain, ""));
    let (mut client, mut server) = (client(&a), server(&b));
    serving(&mut server, || {
        for number in 0..50 {
            let reply = client.call(&Add { a: number, b: 1 }).unwrap();
            assert_eq!(reply.sum, number + 1);
            assert_eq!(reply.server(), b.id());
        }
        let age = client.call(&Add { a: 1, b: 1 }).unwrap().age().expect("its clock is known by now");
        assert!(age.bound.is_some_and(|bound| age.span + bound > noctule_timebase::Span::ZERO), "{age:?}");
        let failed = client.call(&Add { a: i64::MAX, b: 1 }).unwrap_err();
        assert!(failed.to_string().ends_with("failed: the sum does not fit"), "{failed}");
    });
    let (client, server) = (client.raw().counters(), server.raw().counters());
    assert_eq!((client.calls, client.malformed, server.requests, server.malformed), (52, 0, 52, 0));
}

#[test]
fn calls_are_answered_through_shared_memory() {
    calls_are_answered("");
}

#[test]
fn calls_are_answered_between_hosts() {
    calls_are_answered("offset=3s");
}

#[test]
fn the_server_knows_the_age_of_a_request_and_its_client() {
    let node = node("both", domain(), "");
    let (mut client, mut server) = (client(&node), server(&node));
    assert!(client.raw().wait_for_server(LONG).unwrap());
    let call = client.start(&Add { a: 1, b: 2 }, None).unwrap();
    let request = loop {
        // The copies of a request go out while the client is asked for results.
        assert!(client.next(Some(SHORT)).unwrap().is_none());
        if let Some(request) = server.receive(Some(SHORT)).unwrap() {
            break request;
        }
    };
    assert_eq!((request.caller(), request.a, request.b), (node.id(), 1, 2));
    // One clock: the age is exact, and the client waited at least once before.
    let age = request.age().unwrap();
    assert_eq!(age.bound, Some(noctule_timebase::Span::ZERO));
    assert!(age.span > noctule_timebase::Span::ZERO && request.raw().time_left(node.now()).is_some());
    server.reply(request.id(), &Sum { sum: 3 }).unwrap();
    assert_eq!(client.wait_for(call).unwrap().sum, 3);
    assert!(matches!(server.reply(request.id(), &Sum { sum: 3 }), Err(ReplyError::Twice { .. })));
    let unknown = client.wait_for(call).unwrap_err();
    assert!(matches!(unknown, CallError::Unknown { .. }), "{unknown}");
}

#[test]
fn many_clients_and_servers_share_a_service_and_each_gets_its_own_replies() {
    let domain = domain();
    let (a, b) = (node("a", domain, ""), node("b", domain, ""));
    let (mut one, mut two) = (server(&a), server(&b));
    let mut clients: Vec<_> = [&a, &b, &a, &b].into_iter().map(client).collect();
    serving(&mut one, || {
        serving(&mut two, || {
            std::thread::scope(|scope| {
                for (index, client) in clients.iter_mut().enumerate() {
                    scope.spawn(move || {
                        while client.raw().servers().unwrap().len() < 2 {
                            client.call(&Add { a: 0, b: 0 }).unwrap();
                        }
                        for number in 0..100 {
                            let sum = client.call(&Add { a: number, b: index as i64 * 1_000 }).unwrap().sum;
                            assert_eq!(sum, number + index as i64 * 1_000);
                        }
                    });
                }
            });
        });
    });
    let (one, two) = (one.raw().counters(), two.raw().counters());
    let calls: u64 = clients.iter_mut().map(|client| client.raw().counters().calls).sum();
    assert_eq!(one.requests + two.requests, calls, "each request was executed once");
    assert!(one.requests >= 200 && two.requests >= 200, "{one:?} {two:?}");
}

#[test]
fn what_cannot_be_asked_is_refused_in_words() {
    let node = node("alone", domain(), "");
    let mut client = node.client::<Add, Sum>("/add").deadline(SHORT).payload_bytes_max(16).open().unwrap();
    let nobody = client.call(&Add { a: 1, b: 2 }).unwrap_err();
    assert!(nobody.to_string().contains("no server was found within 100 ms"), "{nobody}");
    let zero = client.start(&Add { a: 1, b: 2 }, Some(Duration::ZERO)).unwrap_err();
    assert!(matches!(zero, CallError::NoTime { .. }));
    let _server = server(&node);
    assert!(client.raw().wait_for_server(LONG).unwrap());
    // 16 bytes and the format's own four.
    let long = client.call(&Add { a: 1, b: 2 }).unwrap_err();
    assert!(matches!(long, CallError::Publish(_)), "{long}");
    assert!(node.client::<Add, Sum>("/").open().is_err());
}

#[test]
fn a_call_is_cancelled_and_its_server_learns_it() {
    let node = node("both", domain(), "");
    let (mut client, mut server) = (client(&node), server(&node));
    assert!(client.raw().wait_for_server(LONG).unwrap());
    let mut received = |client: &mut Client<Add, Sum>, deadline| {
        let call = client.start(&Add { a: 1, b: 2 }, Some(deadline)).unwrap();
        loop {
            if let Some(request) = server.receive(Some(Duration::from_millis(5))).unwrap() {
                return (call, request.id());
            }
            assert!(client.next(Some(Duration::from_millis(5))).unwrap().is_none());
        }
    };
    let (call, cancelled) = received(&mut client, LONG);
    assert!(client.raw().cancel(call).unwrap());
    assert!(matches!(client.wait_for(call), Err(CallError::Cancelled { .. })));
    while !server.raw().is_cancelled(cancelled) {
        assert!(server.receive(Some(SHORT)).unwrap().is_none());
    }
    let refused = server.reply(cancelled, &Sum { sum: 3 }).unwrap_err();
    assert!(matches!(refused, ReplyError::Cancelled { .. }), "{refused}");
}

#[test]
fn a_late_reply_is_a_notice_and_an_error_of_the_call() {
    let domain = domain();
    let (a, b) = (node("asks", domain, ""), node("serves", domain, ""));
    let mut client = client(&a);
    // A server that answers when the call is over: raw, so that its own memory does not refuse.
    let mut requests =
        b.subscriber("rq/addRequest").reliability(noctule::Reliability::Reliable).open().unwrap();
    let mut replies = b.publisher("rr/addReply").reliability(noctule::Reliability::Reliable);
    replies = replies.type_name("demo/srv/Add_Response", <Sum as noctule::Message>::type_hash());
    let mut replies = replies.open().unwrap();
    assert!(client.raw().wait_for_server(LONG).unwrap());
    let request = loop {
        let call = client.start(&Add { a: 1, b: 2 }, Some(Duration::from_millis(300))).unwrap();
        let error = client.wait_for(call).unwrap_err();
        assert!(matches!(error, CallError::DeadlineExceeded { .. }), "{error}");
        let mut last = None;
        while let Some(sample) = requests.take().unwrap() {
            last = Some(sample.to_vec());
        }
        if let Some(last) = last {
            break last;
        }
    };
    let mut reply = vec![1, 0, 0, 0, 0, 0, 0, 0];
    reply.extend_from_slice(&request[8..32]);
    replies.publish(&reply).unwrap();
    while client.raw().counters().late_replies == 0 {
        client.raw().wait_for_server(SHORT).unwrap();
    }
    let notices: Vec<_> = std::iter::from_fn(|| a.poll_notice()).collect();
    let late = |notice: &&Notice| matches!(notice, Notice::LateReply { .. });
    let notice = notices.iter().find(late).expect("a notice").to_string();
    assert!(notice.contains("/add") && notice.contains("when the call had ended"), "{notice}");
}

/// Not a test by itself: what a started process does until it is killed.
#[test]
fn role_of_a_started_process() {
    let Ok(domain) = std::env::var(ROLE) else { return };
    let node = node("another process", domain.parse().unwrap(), "");
    let mut server = server(&node);
    loop {
        let Some(request) = server.receive(None).unwrap() else { continue };
        if request.a == SILENCE {
            println!("received");
            continue;
        }
        server.reply(request.id(), &Sum { sum: request.a + request.b }).unwrap();
    }
}

/// The process, and what says that it has received a request which it does not answer.
fn start(domain: u32) -> (Child, Receiver<()>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "role_of_a_started_process", "--nocapture"])
        .env(ROLE, domain.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if line.contains("received") && sender.send(()).is_err() {
                return;
            }
        }
    });
    (child, receiver)
}

/// The copies of a request go out meanwhile.
fn wait_until_received(client: &mut Client<Add, Sum>, receiver: &Receiver<()>) {
    while receiver.try_recv().is_err() {
        assert!(client.next(Some(SHORT)).unwrap().is_none());
    }
}

#[test]
fn a_server_killed_in_the_middle_is_an_error_and_an_idempotent_request_goes_to_another() {
    let domain = domain();
    let node = node("asks", domain, "");
    let mut client = client(&node);
    let (mut child, received) = start(domain);
    assert_eq!(client.call(&Add { a: 20, b: 22 }).unwrap().sum, 42);
    let call = client.start(&Add { a: SILENCE, b: 0 }, None).unwrap();
    wait_until_received(&mut client, &received);
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = client.wait_for(call).unwrap_err();
    assert!(matches!(gone, CallError::ServerGone { .. }), "{gone}");

    let mut client = node.client::<Add, Sum>("/add").deadline(LONG).idempotent(true).open().unwrap();
    let (mut child, received) = start(domain);
    assert!(client.raw().wait_for_server(LONG).unwrap());
    let call = client.start(&Add { a: SILENCE, b: 0 }, None).unwrap();
    wait_until_received(&mut client, &received);
    let mut other = server(&node);
    serving(&mut other, || {
        child.kill().unwrap();
        child.wait().unwrap();
        let reply = client.wait_for(call).unwrap();
        assert_eq!((reply.sum, reply.server()), (SILENCE, node.id()));
    });
}
