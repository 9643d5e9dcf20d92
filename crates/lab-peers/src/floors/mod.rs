//! The floors: the least that a message can cost on this machine, one file per mechanism.
//!
//! Each is an ordinary peer, run by the same loop as any middleware, but with nothing between the
//! loop and the mechanism. What a middleware needs beyond its floor is the middleware's own.

mod mailbox;
mod memcpy;
mod pty;
mod serial_pump;
mod socket;
mod stream;
mod tcp;
pub(crate) mod tcp_streams;
mod udp;
mod unix;

use noctule_peer::{Description, Peer, Wait};

pub(crate) use socket::{own_timeout, start_pulse};

/// All floors, in the order they are shown.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(mailbox::Mailbox::CACHE_LINE),
        Box::new(mailbox::Mailbox::FUTEX),
        Box::new(mailbox::Mailbox::EVENTFD),
        Box::new(memcpy::Memcpy),
        Box::new(unix::Unix),
        Box::new(udp::Udp),
        Box::new(tcp::Tcp),
        Box::new(pty::Pty),
        Box::new(serial_pump::SerialPump),
    ]
}

pub(crate) fn description(name: &str, link: &str, waits: &[Wait], payload_bytes_max: u64) -> Description {
    let modes = ["round_trip", "one_way", "chain", "fan_out"];
    Description {
        name: name.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        links: vec![link.into()],
        waits: waits.to_vec(),
        modes: modes.map(String::from).to_vec(),
        formats: vec!["raw".into()],
        payload_bytes_max,
    }
}
