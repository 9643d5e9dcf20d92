//! Services across, beside a program on Cyclone DDS that has its services as `rmw_cyclonedds_cpp` has them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use noctule::request::{Client, EndedCall, Server};
use noctule::{CallError, Failure, Node};
use serde_json::{Value, json};

use super::{Place, Process, TIMEOUT, build, foreign, report_until};

noctule::message! {
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct Add: "example_interfaces/srv/AddTwoInts_Request" {
        a: i64,
        b: i64,
    }
}
noctule::message! {
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct Sum: "example_interfaces/srv/AddTwoInts_Response" {
        sum: i64,
    }
}

/// The program, if Cyclone is there.
fn program() -> Option<&'static PathBuf> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        foreign().iter().find(|(name, _)| *name == "cyclone")?;
        Some(build("ros_services.idl", "services.c", "services"))
    });
    built.as_ref()
}

impl Place {
    fn service(&self, role: &str, rest: &[&str]) -> Option<Process> {
        let domain = self.dds.to_string();
        Some(Process::start(Command::new(program()?).args([role, &domain, "/add"]).args(rest)))
    }
}

fn client(node: &Node, deadline: Duration) -> Client<Add, Sum> {
    node.client("/add").deadline(deadline).open().unwrap()
}

/// The report's figures of the service.
fn of_service(report: &Value) -> Option<&Value> {
    report["services"].as_array()?.iter().find(|service| service["service"] == "/add")
}

/// Answers until a request says that it is the last: its `a` is -1.
fn serve(mut server: Server<Add, Sum>) {
    let end = Instant::now() + TIMEOUT;
    let mut is_over = false;
    while !is_over && Instant::now() < end {
        server
            .serve(Some(Duration::from_millis(100)), |add| {
                is_over = add.a == -1;
                Ok(Sum { sum: add.a + add.b })
            })
            .unwrap();
    }
}

#[test]
fn clients_of_the_bus_call_a_server_on_cyclone_and_each_gets_its_own_replies() {
    let place = Place::new(20);
    let Some(server) = place.service("serve", &[]) else { return };
    let bridge = place.bridge(&[]);
    let nodes = [place.node(), place.node()];
    let mut clients = nodes.each_ref().map(|node| client(node, TIMEOUT));
    let first = clients[0].call(&Add { a: 2, b: 3 }).unwrap();
    assert_eq!(first.sum, 5);
    // The server is a process of this host, so that the age of its reply is proven.
    assert!(first.age().unwrap().bound.is_some(), "{:?}", first.age());
    let asked = [0, 1].map(|number| {
        let ask = |i: i64| clients[number].start(&Add { a: 1000 * number as i64 + i, b: 1 }, None).unwrap();
        (0..20).map(ask).collect::<Vec<_>>()
    });
    for (number, (client, asked)) in clients.iter_mut().zip(asked).enumerate() {
        for (i, call) in asked.into_iter().enumerate() {
            let sum = client.wait_for(call).unwrap().sum;
            assert_eq!(sum, 1000 * number as i64 + i as i64 + 1);
        }
    }
    let report = report_until(&bridge, "all calls", |report| {
        of_service(report).is_some_and(|service| service["replies"] == 41)
    });
    let service = of_service(&report).unwrap();
    assert_eq!((&service["requests"], &service["way"]), (&json!(41), &json!("from_dds")));
    assert_eq!((&service["late"], &service["failed"]), (&json!(0), &json!(0)));

    // One that is never answered, and then a server that goes.
    let call = clients[0].start(&Add { a: 99, b: 0 }, Some(Duration::from_millis(500))).unwrap();
    assert!(matches!(clients[0].wait_for(call), Err(CallError::DeadlineExceeded { .. })));
    let call = clients[0].start(&Add { a: 99, b: 1 }, None).unwrap();
    while server.line() != "asked 99 1" {}
    assert!(server.end());
    let Some(EndedCall { call: ended, result }) = clients[0].next(Some(TIMEOUT)).unwrap() else {
        panic!("no end")
    };
    assert!(ended == call && matches!(result, Err(CallError::ServerGone { .. })), "{result:?}");
    let ended = clients[0].start(&Add { a: 1, b: 1 }, Some(Duration::from_millis(300))).unwrap();
    assert!(matches!(clients[0].wait_for(ended), Err(CallError::NoServer { .. })));
    assert!(bridge.end());
}

#[test]
fn clients_on_cyclone_call_a_server_of_the_bus_and_each_gets_its_own_replies() {
    let place = Place::new(21);
    if program().is_none() {
        return;
    }
    let (node, bridge) = (place.node(), place.bridge(&[]));
    let server = node.server::<Add, Sum>("/add").open().unwrap();
    let serving = std::thread::spawn(move || serve(server));
    let callers = [1, 2].map(|number| place.service("call", &[&number.to_string(), "20"]).unwrap());
    for (number, caller) in callers.into_iter().enumerate() {
        assert_eq!(caller.line(), "found");
        let mut came: Vec<String> = (0..20).map(|_| caller.line()).collect();
        came.sort_by_key(|line| line.split(' ').next().unwrap().parse::<i64>().unwrap());
        let expected = |i: usize| format!("{} {}", i + 1, 100 * (number + 1) + i + 1);
        assert_eq!(came, (0..20).map(expected).collect::<Vec<_>>());
        assert!(caller.line().starts_with("others "));
        assert!(caller.end());
    }
    let mut notices = String::new();
    let report = report_until(&bridge, "all calls", |report| {
        notices.push_str(report["notice"].as_str().unwrap_or_default());
        of_service(report).is_some_and(|service| service["replies"] == 40)
    });
    assert_eq!(of_service(&report).unwrap()["way"], "to_dds");
    assert_eq!(notices, "");
    client(&node, TIMEOUT).call(&Add { a: -1, b: 0 }).unwrap();
    serving.join().unwrap();
    report_until(&bridge, "that the server is gone", |report| report["services"] == json!([]));
    assert!(bridge.end());
}

#[test]
fn a_request_of_dds_that_the_bus_does_not_answer_is_named() {
    let place = Place::new(22);
    if program().is_none() {
        return;
    }
    let (node, bridge) = (place.node(), place.bridge(&[]));
    let mut server = node.server::<Add, Sum>("/add").open().unwrap();
    let caller = place.service("call", &["3", "1"]).unwrap();
    assert_eq!(caller.line(), "found");
    server.serve(Some(TIMEOUT), |_| Err(Failure("it is closed today".to_owned()))).unwrap();
    let notice = report_until(&bridge, "why", |report| report["notice"].is_string());
    let expected =
        "service /add: a request from DDS has no reply, which nothing there can say: service /add: node ";
    let text = notice["notice"].as_str().unwrap();
    assert!(text.starts_with(expected) && text.ends_with("failed: it is closed today"), "{text}");
    report_until(&bridge, "its count", |report| {
        of_service(report).is_some_and(|service| service["failed"] == 1 && service["replies"] == 0)
    });
    assert!(caller.end());
    // One whose server goes before it answers.
    let caller = place.service("call", &["4", "1"]).unwrap();
    assert_eq!(caller.line(), "found");
    assert!(server.receive(Some(TIMEOUT)).unwrap().is_some());
    drop(server);
    let mut notices = Vec::new();
    report_until(&bridge, "that it is gone", |report| {
        notices.extend(report["notice"].as_str().map(str::to_owned));
        report["services"] == json!([])
    });
    assert!(
        notices
            .iter()
            .any(|notice| notice.contains("have no reply") || notice.contains("ended before it answered")),
        "{notices:?}"
    );
    assert!(caller.end() && bridge.end());
}

#[test]
fn a_service_that_both_sides_serve_stays_on_both_and_is_named() {
    let place = Place::new(23);
    let Some(theirs) = place.service("serve", &[]) else { return };
    let (node, bridge) = (place.node(), place.bridge(&[]));
    report_until(&bridge, "the service", |report| of_service(report).is_some());
    let ours = node.server::<Add, Sum>("/add").open().unwrap();
    let notice = report_until(&bridge, "both", |report| report["notice"].is_string());
    let expected = "service /add: it has a server in DDS and one on the bus: not exchanged, each side asks its own; give one of them another name";
    assert_eq!(notice["notice"], expected);
    report_until(&bridge, "none", |report| report["services"] == json!([]));
    drop(ours);
    report_until(&bridge, "the service again", |report| of_service(report).is_some());
    assert!(theirs.end() && bridge.end());
}
