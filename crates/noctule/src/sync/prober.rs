//! The asking side over UDP: sends what the exchanger wants sent, and feeds an estimator.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use noctule_sys::{datagram, random};
use noctule_time_sync::{
    Counters, DroppedCounters, Estimate, Estimator, Exchange, Exchanger, ExchangerConfig, Local, Nonce,
    PENDING_LIMIT, Rejection,
};
use noctule_timebase::{Instant, Span};

use crate::clock::{self, LocalClock, Raw};
use crate::sync::StampSource;
use crate::sync::arrival::{ArrivalCounters, Arrivals};
use crate::sync::warm_up::WarmUp;
use crate::sync::wire::{DATAGRAM_BYTES, MalformedCounters, Reply, Request};

/// Asks one server for its time, again and again.
pub struct Prober {
    socket: UdpSocket,
    warm_up: WarmUp,
    clock: LocalClock,
    exchanger: Exchanger,
    estimator: Box<dyn Estimator + Send>,
    arrivals: Arrivals,
    /// When the last requests left, by the crystal. Those that wait for a reply are among them.
    sent: [(Nonce, Instant<Raw>); PENDING_LIMIT],
    refused: u32,
    malformed: MalformedCounters,
}

/// One exchange, and what the estimator made of it.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The four stamps.
    pub exchange: Exchange,
    /// The crystal at `t1`.
    pub sent: Instant<Raw>,
    /// The crystal at `t4`.
    pub arrived: Instant<Raw>,
    /// Whether the estimator used it.
    pub verdict: Result<(), Rejection>,
    /// The estimate at `t4`, this exchange included.
    pub estimate: Option<Estimate>,
}

/// Counters of requests, replies and exchanges. Each saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProberCounters {
    /// Of requests and replies.
    pub replies: DroppedCounters,
    /// Of exchanges.
    pub exchanges: Counters,
    /// Datagrams that are no reply.
    pub malformed: MalformedCounters,
    /// Times the other host reported that no socket listens there, or the network that it leads nowhere.
    pub refused: u32,
    /// How replies were stamped.
    pub arrivals: ArrivalCounters,
}

impl Prober {
    /// A prober whose first request is due at once.
    ///
    /// # Errors
    /// No socket, no route to the server, or no randomness.
    pub fn connect(
        server: SocketAddr,
        clock: LocalClock,
        stamps: StampSource,
        rhythm: ExchangerConfig,
        estimator: Box<dyn Estimator + Send>,
    ) -> io::Result<Prober> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        // From now on the kernel drops what others send here.
        socket.connect(server)?;
        stamps.apply(&socket)?;
        let clock = clock.started(clock::now());
        let exchanger = Exchanger::new(rhythm, random::secret()?, clock.now());
        Ok(Prober {
            socket,
            warm_up: WarmUp::new(server.ip()),
            clock,
            exchanger,
            estimator,
            arrivals: Arrivals::new(),
            sent: [(Nonce(0), Instant::MIN); PENDING_LIMIT],
            refused: 0,
            malformed: MalformedCounters::default(),
        })
    }

    /// The clock it stamps with, with the moment from which it counts.
    pub fn clock(&self) -> &LocalClock {
        &self.clock
    }

    /// The estimate at local time `now`.
    pub fn estimate(&self, now: Instant<Local>) -> Option<Estimate> {
        self.estimator.estimate(now)
    }

    /// Counters so far.
    pub fn counters(&self) -> ProberCounters {
        ProberCounters {
            replies: self.exchanger.counters(),
            exchanges: self.estimator.counters(),
            malformed: self.malformed,
            refused: self.refused,
            arrivals: self.arrivals.counters(),
        }
    }

    /// Sends what is due and waits for the next exchange; `None` at `until`, or when a signal came.
    ///
    /// # Errors
    /// The socket fails. An unreachable server is no failure: it may come back.
    pub fn next(&mut self, until: Instant<Raw>) -> io::Result<Option<Measured>> {
        loop {
            self.send_due()?;
            let now = clock::now();
            let due_ns = (self.exchanger.poll_timeout() - self.clock.at(now)).ns();
            let left_ns = (until - now).ns();
            let wait_ns = due_ns.min(left_ns).max(0);
            // Even at `until` what is there already is taken: a late caller must not starve.
            if datagram::wait(&self.socket, wait_ns)? {
                if let Some(measured) = self.receive()? {
                    return Ok(Some(measured));
                }
            } else if left_ns <= 0 || clock::now() < now + Span::from_ns(wait_ns) {
                // Over, or woken early: a signal, of which the caller knows more.
                return Ok(None);
            }
        }
    }

    fn send_due(&mut self) -> io::Result<()> {
        while let Some(nonce) = self.exchanger.poll_request(self.clock.now()) {
            self.warm_up.run();
            // Stamped before the call: a departure may be stamped too early, never too late.
            let now = clock::now();
            self.sent.rotate_right(1);
            self.sent[0] = (nonce, now);
            self.exchanger.handle_sent(nonce, self.clock.at(now));
            if let Err(error) = self.socket.send(&Request { nonce }.encode()) {
                self.count_unreachable(error)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Option<Measured>> {
        let mut bytes = [0; DATAGRAM_BYTES + 1];
        let arrival = match datagram::receive(&self.socket, &mut bytes) {
            Ok(Some(arrival)) => arrival,
            Ok(None) => return Ok(None),
            Err(error) => return self.count_unreachable(error).map(|()| None),
        };
        let arrived = self.arrivals.handle(arrival.realtime_ns);
        let reply = match Reply::decode(&bytes[..arrival.length_bytes.min(bytes.len())]) {
            Ok(reply) => reply,
            Err(fault) => {
                self.malformed.count(fault);
                return Ok(None);
            }
        };
        let t4 = self.clock.at(arrived);
        // Why a reply does not count is in the counters.
        let Ok(exchange) = self.exchanger.handle_reply(reply.nonce, (reply.t2, reply.t3), t4) else {
            return Ok(None);
        };
        let verdict = self.estimator.handle_exchange(&exchange);
        let estimate = self.estimator.estimate(t4);
        if let Some(estimate) = estimate {
            self.exchanger.handle_state(estimate.state, self.clock.now());
        }
        let sent =
            self.sent.iter().find(|(nonce, _)| *nonce == reply.nonce).map_or(arrived, |(_, sent)| *sent);
        Ok(Some(Measured { exchange, sent, arrived, verdict, estimate }))
    }

    fn count_unreachable(&mut self, error: io::Error) -> io::Result<()> {
        use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, WouldBlock};
        match error.kind() {
            ConnectionRefused | HostUnreachable | NetworkUnreachable | WouldBlock => {
                self.refused = self.refused.saturating_add(1);
                Ok(())
            }
            _ => Err(error),
        }
    }
}
