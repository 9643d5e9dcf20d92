//! A viewer on a running system: the token, channels, samples as they are, and two viewers that read a topic once.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noctule::{Endpoint, Format, Node, NodeId};
use noctule_foxglove::Bridge;
use noctule_web::{Server, ServerOptions};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

type Socket = WebSocket<std::net::TcpStream>;

fn domain(offset: u32) -> u32 {
    2000 + std::process::id() % 400 * 2 + offset
}

fn node(name: &str, domain: u32) -> Node {
    Node::builder(name).domain(domain).keep_notices().open().unwrap()
}

fn server(domain: u32) -> (Server, Arc<Bridge>) {
    let definitions = |_: &Node, _: NodeId, endpoint: &Endpoint| {
        let is_known = endpoint.type_name == "test/msg/Number";
        is_known.then(|| ("ros2msg".to_owned(), "uint64 number\n".to_owned()))
    };
    let bridge = Arc::new(Bridge::start(node("foxglove", domain), "robot", Box::new(definitions)).unwrap());
    let options = ServerOptions { listen: "127.0.0.1:0".parse().unwrap(), assets: Vec::new() };
    let protocol: Arc<dyn noctule_web::Protocol> = Arc::clone(&bridge) as _;
    (Server::start_with(options, vec![protocol]).unwrap(), bridge)
}

fn connect(url: &str, protocol: &'static str) -> Result<Socket, Box<dyn Error>> {
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("Sec-WebSocket-Protocol", protocol.parse().unwrap());
    let address = url.strip_prefix("ws://").unwrap().split('/').next().unwrap();
    let stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    Ok(tungstenite::client(request, stream)?.0)
}

/// The next text with this `op`.
fn text(socket: &mut Socket, op: &str) -> Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let value: Value = serde_json::from_str(&text).unwrap();
            if value["op"] == op {
                return value;
            }
        }
    }
}

/// Subscription and number of the next message; the time is skipped.
fn message(socket: &mut Socket) -> (u32, u64) {
    loop {
        match socket.read().unwrap() {
            Message::Binary(bytes) if bytes[0] == 1 => {
                let subscription = u32::from_le_bytes(*bytes[1..].first_chunk().unwrap());
                assert_eq!(bytes.len(), 13 + 8);
                return (subscription, u64::from_le_bytes(*bytes[13..].first_chunk().unwrap()));
            }
            _ => {}
        }
    }
}

fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it did not come about in a minute");
        std::thread::yield_now();
    }
}

#[test]
fn two_viewers_get_every_sample_and_the_topic_is_read_once() {
    let talker = node("talker", domain(0));
    let builder = talker.publisher("/number").type_name("test/msg/Number", 7).format(Format::Cdr);
    let mut numbers = builder.keep_last(512).open().unwrap();
    let (server, bridge) = server(domain(0));
    let mut viewers = ["foxglove.websocket.v1", "foxglove.sdk.v1"]
        .map(|protocol| connect(&server.socket_url(), protocol).unwrap());
    for (viewer, id) in viewers.iter_mut().zip([11, 12]) {
        assert_eq!(text(viewer, "serverInfo")["name"], "robot");
        let channels = text(viewer, "advertise")["channels"].clone();
        let number =
            channels.as_array().unwrap().iter().find(|channel| channel["topic"] == "/number").unwrap();
        assert_eq!((&number["encoding"], &number["schemaEncoding"]), (&json!("cdr"), &json!("ros2msg")));
        assert_eq!(
            (&number["schemaName"], &number["schema"]),
            (&json!("test/msg/Number"), &json!("uint64 number\n"))
        );
        assert_eq!(
            numbers.readers(),
            usize::from(id == 12),
            "a topic without a subscription has no reader, and one reader serves all"
        );
        let subscribe =
            json!({ "op": "subscribe", "subscriptions": [{ "id": id, "channelId": number["id"] }] });
        viewer.send(Message::text(subscribe.to_string())).unwrap();
        // Its answer says that the subscription was handled.
        viewer.send(Message::text(r#"{"op": "getParameters"}"#)).unwrap();
        assert!(text(viewer, "status")["message"].as_str().unwrap().contains("channels and time only"));
        until(|| numbers.readers() == 1);
    }
    for number in 0_u64..200 {
        numbers.publish(&number.to_le_bytes()).unwrap();
    }
    for (viewer, id) in viewers.iter_mut().zip([11, 12]) {
        let got: Vec<(u32, u64)> = (0..200).map(|_| message(viewer)).collect();
        assert_eq!(got, (0..200).map(|number| (id, number)).collect::<Vec<_>>());
    }
    assert_eq!((bridge.viewers(), bridge.counts()), (2, (200, 0)));
    drop(viewers);
    until(|| numbers.readers() == 0 && bridge.viewers() == 0);
    drop(numbers);
    drop(server);
}

#[test]
fn a_client_without_the_token_or_of_another_protocol_gets_nothing() {
    let (server, _bridge) = server(domain(1));
    let url = server.socket_url();
    let wrong = url.replace("token=", "token=0");
    assert!(connect(&wrong, "foxglove.websocket.v1").unwrap_err().to_string().contains("403"));
    // Without the protocol it is the page's socket, which needs its own origin.
    assert!(connect(&url, "chat").unwrap_err().to_string().contains("403"));
    assert_eq!(server.refused(), 2);
    let mut viewer = connect(&url, "foxglove.sdk.v1").unwrap();
    assert_eq!(text(&mut viewer, "serverInfo")["capabilities"], json!(["time"]));
    // The end of the server ends its viewers.
    drop(server);
    while viewer.read().is_ok() {}
}
