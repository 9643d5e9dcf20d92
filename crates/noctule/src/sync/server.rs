//! The answering side over UDP: no state between requests, nothing to gain by forging a sender.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use noctule_sys::datagram;

use crate::clock::{self, LocalClock};
use crate::sync::StampSource;
use crate::sync::arrival::{ArrivalCounters, Arrivals};
use crate::sync::wire::{DATAGRAM_BYTES, MalformedCounters, Reply, Request};

/// Answers requests for the time of one local clock.
#[derive(Debug)]
pub struct Server {
    socket: UdpSocket,
    clock: LocalClock,
    arrivals: Arrivals,
    counters: ServerCounters,
}

/// Counters of the datagrams of a server. Each saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Requests answered.
    pub answered: u32,
    /// Replies that the kernel did not take.
    pub unsent: u32,
    /// Datagrams that are no request.
    pub malformed: MalformedCounters,
    /// How requests were stamped.
    pub arrivals: ArrivalCounters,
}

impl Server {
    /// A server on an address; port 0 takes a free one.
    ///
    /// # Errors
    /// The address is in use, is not of this machine, or its name is not known.
    pub fn bind(address: impl ToSocketAddrs, clock: LocalClock, stamps: StampSource) -> io::Result<Server> {
        let socket = UdpSocket::bind(address)?;
        stamps.apply(&socket)?;
        let clock = clock.started(clock::now());
        Ok(Server { socket, clock, arrivals: Arrivals::new(), counters: ServerCounters::default() })
    }

    /// The address it has.
    ///
    /// # Errors
    /// Passes on what the kernel says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The clock it answers from, with the moment from which it counts.
    pub fn clock(&self) -> &LocalClock {
        &self.clock
    }

    /// Counters of datagrams so far.
    pub fn counters(&self) -> ServerCounters {
        ServerCounters { arrivals: self.arrivals.counters(), ..self.counters }
    }

    /// Answers what comes until `timeout_ns` pass without a datagram, a signal comes, or `stop` is
    /// true.
    ///
    /// # Errors
    /// The socket fails. That no socket listens any more where a reply went is no failure.
    pub fn serve(&mut self, timeout_ns: i64, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) && datagram::wait(&self.socket, timeout_ns)? {
            self.answer_one()?;
        }
        Ok(())
    }

    fn answer_one(&mut self) -> io::Result<()> {
        // One byte more than a request, so that a longer datagram is seen to be longer.
        let mut bytes = [0; DATAGRAM_BYTES + 1];
        let arrival = match datagram::receive(&self.socket, &mut bytes) {
            Ok(Some(arrival)) => arrival,
            Ok(None) => return Ok(()),
            // The ICMP error of an earlier reply that found no socket.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) => return Err(error),
        };
        let arrived = self.arrivals.handle(arrival.realtime_ns);
        let nonce = match Request::decode(&bytes[..arrival.length_bytes.min(bytes.len())]) {
            Ok(request) => request.nonce,
            Err(fault) => {
                self.counters.malformed.count(fault);
                return Ok(());
            }
        };
        let t2 = self.clock.at(arrived);
        let reply = Reply { nonce, t2, t3: self.clock.now() }.encode();
        let counter = match self.socket.send_to(&reply, arrival.from) {
            Ok(_) => &mut self.counters.answered,
            Err(_) => &mut self.counters.unsent,
        };
        *counter = counter.saturating_add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use noctule_time_sync::Nonce;
    use noctule_timebase::Instant;

    use super::*;

    #[test]
    fn a_request_is_answered_once_with_two_readings_and_nothing_else_is() {
        let clock: LocalClock = "offset=5s".parse().unwrap();
        let mut server = Server::bind("127.0.0.1:0", clock, StampSource::Kernel).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(server.address().unwrap()).unwrap();

        let request = Request { nonce: Nonce(9) }.encode();
        let before = clock::now();
        client.send(&request).unwrap();
        for wrong in [&request[..31], &[0_u8; 32], &[request.as_slice(), &[0]].concat()] {
            client.send(wrong).unwrap();
        }
        client
            .send(&Reply { nonce: Nonce(9), t2: Instant::from_ns(0), t3: Instant::from_ns(0) }.encode())
            .unwrap();
        server.serve(0, &AtomicBool::new(false)).unwrap();

        let mut bytes = [0; 64];
        assert_eq!(client.recv(&mut bytes).unwrap(), DATAGRAM_BYTES);
        let reply = Reply::decode(&bytes[..DATAGRAM_BYTES]).unwrap();
        assert_eq!(reply.nonce, Nonce(9));
        let [first, last] = [before, clock::now()].map(|raw| server.clock().at(raw));
        assert!(first <= reply.t2 && reply.t2 <= reply.t3 && reply.t3 <= last);
        client.set_nonblocking(true).unwrap();
        assert!(client.recv(&mut bytes).is_err(), "one reply only");
        let counters = server.counters();
        assert_eq!((counters.answered, counters.unsent), (1, 0));
        let malformed = counters.malformed;
        assert_eq!((malformed.length, malformed.magic, malformed.kind), (2, 1, 1));
        assert_eq!(malformed.total(), 4);
    }
}
