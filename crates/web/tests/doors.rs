//! Which clients get in, and which do not; which messages pass between a browser and the program.

#![allow(clippy::unwrap_used)]

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use noctule_web::{Asset, CLIENTS_MAX, Event, Server, ServerOptions};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

const LONG: Duration = Duration::from_secs(60);

fn server() -> Server {
    let page = Asset { path: "/", content_type: "text/html", body: "<p>page</p>" };
    let script = Asset { path: "/a.js", content_type: "text/javascript", body: "1" };
    let options = ServerOptions { listen: ([127, 0, 0, 1], 0).into(), assets: vec![page, script] };
    Server::start(options).unwrap()
}

/// Host with port, and token.
fn parts(server: &Server) -> (String, String) {
    let url = server.url();
    let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    (host.to_owned(), token.to_owned())
}

fn get(host: &str, target: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(format!("GET {target} HTTP/1.1\r\n{headers}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn open(host: &str, token: &str, origin: &str) -> Result<WebSocket<TcpStream>, Box<dyn Error>> {
    let mut request = format!("ws://{host}/socket?token={token}").into_client_request().unwrap();
    request.headers_mut().insert("Origin", origin.parse().unwrap());
    let stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    Ok(tungstenite::client(request, stream)?.0)
}

#[test]
fn a_page_needs_the_token_its_own_host_and_no_foreign_origin() {
    let server = server();
    let (host, token) = parts(&server);
    let own = format!("Host: {host}\r\n");
    let page = get(&host, &format!("/?token={token}"), &own);
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("<p>page</p>"), "{page}");
    assert!(page.contains("default-src 'none'"), "{page}");
    assert!(get(&host, "/a.js", &own).starts_with("HTTP/1.1 200"));
    assert!(get(&host, "/b.js", &own).starts_with("HTTP/1.1 404"));
    assert!(get(&host, "/", &own).starts_with("HTTP/1.1 403"), "no token");
    assert!(get(&host, "/?token=0123", &own).starts_with("HTTP/1.1 403"), "a wrong token");
    let rebound = "Host: evil.example\r\n";
    assert!(get(&host, &format!("/?token={token}"), rebound).starts_with("HTTP/1.1 403"), "another name");
    let foreign = format!("{own}Origin: http://evil.example\r\n");
    assert!(get(&host, &format!("/?token={token}"), &foreign).starts_with("HTTP/1.1 403"), "another page");
    assert_eq!(server.refused(), 4);
}

#[test]
fn a_socket_needs_the_same_and_then_both_sides_hear_each_other() {
    let server = server();
    let (host, token) = parts(&server);
    assert!(open(&host, &token, "http://evil.example").is_err());
    assert!(open(&host, "0", &format!("http://{host}")).is_err());
    let mut socket = open(&host, &token, &format!("http://{host}")).unwrap();
    let Some(Event::Opened(client)) = server.poll_event(LONG) else { panic!("not opened") };
    socket.send(Message::text("hello")).unwrap();
    assert_eq!(server.poll_event(LONG), Some(Event::Text(client, "hello".into())));
    server.reply(client, "for you");
    assert_eq!(socket.read().unwrap(), Message::text("for you"));
    server.broadcast("for all");
    assert_eq!(socket.read().unwrap(), Message::text("for all"));
    drop(socket);
    assert_eq!(server.poll_event(LONG), Some(Event::Closed(client)));
    assert_eq!(server.clients(), 0);
}

#[test]
fn more_browsers_than_allowed_are_refused_and_counted() {
    let server = server();
    let (host, token) = parts(&server);
    let origin = format!("http://{host}");
    let sockets: Vec<_> = (0..CLIENTS_MAX).map(|_| open(&host, &token, &origin).unwrap()).collect();
    for _ in 0..CLIENTS_MAX {
        assert!(matches!(server.poll_event(LONG), Some(Event::Opened(_))));
    }
    let mut one_more = open(&host, &token, &origin).unwrap();
    assert!(one_more.read().is_err(), "it is closed");
    assert_eq!((server.clients(), server.refused()), (CLIENTS_MAX, 1));
    drop(sockets);
}

#[test]
fn a_message_that_is_too_long_ends_its_browser_alone() {
    let server = server();
    let (host, token) = parts(&server);
    let origin = format!("http://{host}");
    let (mut long, mut quiet) =
        (open(&host, &token, &origin).unwrap(), open(&host, &token, &origin).unwrap());
    for _ in 0..2 {
        assert!(matches!(server.poll_event(LONG), Some(Event::Opened(_))));
    }
    long.send(Message::text("x".repeat(noctule_web::MESSAGE_BYTES_MAX + 1))).unwrap();
    assert!(matches!(server.poll_event(LONG), Some(Event::Closed(_))));
    server.broadcast("still there");
    assert_eq!(quiet.read().unwrap(), Message::text("still there"));
}
