//! A board: the microcontroller client in C, which speaks XRCE over UDP to `noctule gateway`; and what it published.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use noctule_board::{Client, ClientConfig, Endpoint, Line};
use noctule_sys::clock::raw_ns;

pub(crate) const TOPIC: &str = "/board/pressure";
const PERIOD_NS: i64 = 20_000_000;

/// Time by the board's clock, which is that of the nodes, ns, and value of each sample.
type Published = Arc<Mutex<Vec<(i64, f64)>>>;

/// A board and its gateway, until it is dropped.
pub(crate) struct Board {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    gateway: Child,
    pub(crate) published: Published,
}

impl Board {
    pub(crate) fn start(domain: &str) -> Board {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        command.args(["gateway", "--udp", "0", "--domain", domain]);
        let mut gateway = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(gateway.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port: u16 = line.trim().strip_prefix("listening on udp ").unwrap().parse().unwrap();
        let (stop, published) = (Arc::new(AtomicBool::new(false)), Published::default());
        let (stopped, kept) = (Arc::clone(&stop), Arc::clone(&published));
        let thread = std::thread::spawn(move || run(port, &stopped, &kept));
        Board { stop, thread: Some(thread), gateway, published }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

fn run(port: u16, stop: &AtomicBool, published: &Published) {
    let pressure = Endpoint {
        topic: format!("rt{TOPIC}"),
        type_name: "std_msgs::msg::dds_::Float64_".into(),
        subscribes: false,
        reliable: false,
        stamped: true,
    };
    let config = ClientConfig {
        key: 7,
        line: Line::Datagram,
        domain: 0,
        endpoints: vec![pressure],
        message_bytes: 512,
        sync_interval_ns: 100_000_000,
    };
    let mut client = Client::new(&config).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let (mut due_ns, mut bytes) = (raw_ns(), [0; 2048]);
    while !stop.load(Ordering::Relaxed) {
        while let Some(datagram) = client.poll_transmit(raw_ns()) {
            socket.send(datagram).unwrap();
        }
        if let Ok(length) = socket.recv(&mut bytes) {
            client.handle_datagram(&bytes[..length], raw_ns());
        }
        let at_ns = raw_ns();
        if at_ns >= due_ns {
            let mut published = published.lock().unwrap();
            let value = published.len() as f64 * 0.25 + 100.0;
            if client.publish(0, &value.to_le_bytes(), at_ns).is_ok() {
                published.push((at_ns, value));
            }
            due_ns = at_ns + PERIOD_NS;
        }
    }
}
