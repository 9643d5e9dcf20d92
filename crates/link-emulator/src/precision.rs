//! Excess of the emulator's delay over the delay asked for.
//!
//! A sender in one namespace, a receiver in the other, one clock. The kernel stamps each datagram
//! when the forwarder hands it over, so neither the receiver's waking nor its reading is in the
//! figure; what is: sending, waking the forwarder, being late, handing over. One stamp is of
//! `CLOCK_REALTIME` and is translated for every datagram.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};

use noctule_netsim::link::LinkSpec;
use noctule_sys::namespace::NetworkNamespace;
use noctule_sys::{clock, datagram};
use noctule_timebase::Span;
use serde::Serialize;

use crate::forwarder::{Forwarder, ForwarderError, ForwarderSettings};
use crate::star::node_address;

/// Datagrams per delay.
pub const COUNT_DEFAULT: u32 = 400;
/// Time between two.
const INTERVAL_NS: i64 = 4_000_000;
/// Longest wait for the last datagram, beyond the delay.
const TIMEOUT_NS: i64 = 1_000_000_000;
const PORT: u16 = 7_401;

/// Excess over one delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Precision {
    /// Asked for.
    pub delay_ns: i64,
    /// Datagrams sent.
    pub sent: u32,
    /// Datagrams received.
    pub received: u32,
    /// The least that was added; below zero the emulator would be early.
    pub added_min_ns: i64,
    /// Median.
    pub added_p50_ns: i64,
    /// One in a hundred is later.
    pub added_p99_ns: i64,
    /// The latest.
    pub added_max_ns: i64,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum PrecisionError {
    /// No link.
    #[error(transparent)]
    Forwarder(#[from] ForwarderError),
    /// No namespace or socket.
    #[error("cannot measure across two network namespaces ({0}); run as root")]
    System(#[from] io::Error),
    /// Nothing came.
    #[error("no datagram arrived within a second at a delay of {0}; the machine is too busy, measure again")]
    Nothing(Span),
}

/// Measures one delay with `count` datagrams; about 4 ms each.
pub fn measure(delay: Span, count: u32, spin: Span) -> Result<Precision, PrecisionError> {
    let mut spec = LinkSpec::default();
    spec.a_to_b.initial.delay = delay;
    let (a, b) = (NetworkNamespace::create()?, NetworkNamespace::create()?);
    let settings = ForwarderSettings { spin, ..ForwarderSettings::new(spec, 1) };
    let _forwarder = Forwarder::start(&[&a, &b], &settings)?;
    let receiver = b.run(|| UdpSocket::bind(SocketAddrV4::new(node_address(1), PORT)))?;
    datagram::stamp_arrivals(&receiver)?;
    let sender = a.run(|| UdpSocket::bind(SocketAddrV4::new(node_address(0), PORT)))?;
    sender.connect(SocketAddrV4::new(node_address(1), PORT))?;

    let receiving = std::thread::scope(|scope| {
        let end_ns = clock::now_ns() + i64::from(count) * INTERVAL_NS + delay.ns() + TIMEOUT_NS;
        let receiving = scope.spawn(move || receive_all(&receiver, count, end_ns));
        let start_ns = clock::now_ns() + INTERVAL_NS;
        for number in 0..i64::from(count) {
            clock::sleep_until(start_ns + number * INTERVAL_NS);
            // A datagram that cannot be sent is missing from what was received.
            let _ = sender.send(&clock::now_ns().to_le_bytes());
        }
        receiving.join()
    });
    let delays = receiving.map_err(|_| io::Error::other("the receiver ended"))??;
    let mut added: Vec<i64> = delays.iter().map(|measured_ns| measured_ns - delay.ns()).collect();
    added.sort_unstable();
    let (Some(&least), Some(&most)) = (added.first(), added.last()) else {
        return Err(PrecisionError::Nothing(delay));
    };
    let at = |quantile: f64| added[((added.len() as f64 * quantile) as usize).min(added.len() - 1)];
    Ok(Precision {
        delay_ns: delay.ns(),
        sent: count,
        received: added.len() as u32,
        added_min_ns: least,
        added_p50_ns: at(0.5),
        added_p99_ns: at(0.99),
        added_max_ns: most,
    })
}

/// The delay of each datagram, from its own stamp to the kernel's.
fn receive_all(socket: &UdpSocket, count: u32, end_ns: i64) -> io::Result<Vec<i64>> {
    let mut delays = Vec::with_capacity(count as usize);
    let mut buffer = [0; 8];
    while delays.len() < count as usize {
        let left_ns = end_ns - clock::now_ns();
        if left_ns <= 0 {
            break;
        }
        if !datagram::wait(socket, left_ns)? {
            continue;
        }
        while let Some(arrival) = datagram::receive(socket, &mut buffer)? {
            let clocks = clock::three_clocks();
            let to_monotonic_ns = clocks.monotonic_before_ns - clocks.realtime_ns;
            if let Some(realtime_ns) = arrival.realtime_ns {
                delays.push(realtime_ns + to_monotonic_ns - i64::from_le_bytes(buffer));
            }
        }
    }
    Ok(delays)
}
