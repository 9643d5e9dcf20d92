//! Between two gateways of Noctule: keys of their own beside ROS 2's, and the exchange by which each knows the other's clock.
//!
//! ```text
//! @noctule/<domain>/gateway/<zid>                        a liveliness token: this session is a gateway of Noctule
//! @noctule/<domain>/sample/<zid>/<topic>/<type>/<hash>   samples with the attachment of `attachment::SiteAttachment`
//! @noctule/<domain>/clock/<zid>                          a queryable: `ClockRequest` → `ClockReply`
//! ```
//!
//! ROS 2 neither reads nor sees these. The exchange is as between nodes (`docs/spec/sync.md`): four stamps, and an offset that causality
//! proves. Routers on the way make the round trip longer and so the bound wider, never false.

use noctule_time_sync::{
    Bounded, BoundedConfig, Dropped, Estimator, Exchanger, ExchangerConfig, Local, Nonce, Remote, State,
};
use noctule_timebase::{Instant, Span};

use crate::attachment::SiteAttachment;
use crate::key::{KEY_BYTES_MAX, TypedName, decimal};
use crate::token::is_zid;

/// The first part of all of our keys.
pub const PREFIX: &str = "@noctule";
/// Length of a request for the clock.
pub const REQUEST_BYTES: usize = 9;
/// Length of a reply with the clock.
pub const REPLY_BYTES: usize = 25;
/// The first byte of both.
const VERSION: u8 = 1;
/// The clocks drift apart no faster than this, as between nodes.
const DRIFT_PPM: i64 = 200;
/// Requests go at this distance while the drift is not known, and in the long run; a fleet pays for each.
const RHYTHM: ExchangerConfig = ExchangerConfig {
    burst_interval: Span::from_ms(50),
    fastest_interval: Span::from_ms(250),
    slowest_interval: Span::from_s(2),
    timeout: Span::from_s(5),
};

/// The token of a gateway.
pub fn presence(domain: u32, zid: &str) -> String {
    format!("{PREFIX}/{domain}/gateway/{zid}")
}

/// The gateway whose token this is: domain and session.
pub fn parse_presence(key: &str) -> Option<(u32, &str)> {
    let rest = key.strip_prefix(PREFIX)?.strip_prefix('/')?;
    let (domain, zid) = rest.split_once("/gateway/")?;
    is_zid(zid).then_some((decimal(domain)?, zid))
}

/// The key of a topic's samples from one gateway, or with `*` from all.
pub fn sample_key(domain: u32, zid: &str, name: &TypedName, hash: &str) -> String {
    format!("{PREFIX}/{domain}/sample/{zid}/{}/{}/{hash}", name.topic_in_key(), name.type_in_key())
}

/// The session of the gateway whose sample this is.
pub fn sample_zid(key: &str) -> Option<&str> {
    if key.len() > KEY_BYTES_MAX {
        return None;
    }
    let mut parts = key.split('/');
    let is_ours = parts.next() == Some(PREFIX) && parts.next().is_some() && parts.next() == Some("sample");
    parts.next().filter(|zid| is_ours && is_zid(zid))
}

/// The key of a gateway's clock.
pub fn clock_key(domain: u32, zid: &str) -> String {
    format!("{PREFIX}/{domain}/clock/{zid}")
}

/// Answers a request for this side's clock that arrived at `arrived` and is answered at `now`; `None` if it is none.
pub fn clock_reply(
    request: &[u8],
    arrived: Instant<Local>,
    now: Instant<Local>,
) -> Option<[u8; REPLY_BYTES]> {
    let request: &[u8; REQUEST_BYTES] = request.try_into().ok()?;
    if request[0] != VERSION {
        return None;
    }
    let mut reply = [0; REPLY_BYTES];
    reply[..REQUEST_BYTES].copy_from_slice(request);
    reply[9..17].copy_from_slice(&arrived.ns().to_le_bytes());
    reply[17..].copy_from_slice(&now.ns().to_le_bytes());
    Some(reply)
}

/// Why a reply does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyFault {
    /// Not a reply.
    #[error("it is no reply of a clock")]
    Unreadable,
    /// Not to a request that waits.
    #[error(transparent)]
    Dropped(Dropped),
    /// The estimator refuses it.
    #[error("its stamps contradict each other")]
    Contradiction,
}

/// When a sample of another gateway was true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated {
    /// Source time in this side's clock.
    pub source: Instant<Local>,
    /// Half the width of what is proven of it; `None`: nothing is.
    pub bound: Option<Span>,
    /// Its standard error, if that is known.
    pub sigma: Option<Span>,
}

/// The clock of another gateway.
#[derive(Clone, Debug)]
pub struct SiteClock {
    exchanger: Exchanger,
    estimator: Bounded,
}

impl SiteClock {
    /// The first request is due at `now`. The key is 16 bytes from the system's random source.
    pub fn new(key: [u8; 16], now: Instant<Local>) -> SiteClock {
        let config = BoundedConfig { stale_after: Span::from_s(30), ..BoundedConfig::default() };
        SiteClock { exchanger: Exchanger::new(RHYTHM, key, now), estimator: Bounded::new(config) }
    }

    /// A request to send now, if one is due.
    pub fn poll_request(&mut self, now: Instant<Local>) -> Option<[u8; REQUEST_BYTES]> {
        let Nonce(nonce) = self.exchanger.poll_request(now)?;
        let mut request = [VERSION; REQUEST_BYTES];
        request[1..].copy_from_slice(&nonce.to_le_bytes());
        Some(request)
    }

    /// When [`poll_request`](SiteClock::poll_request) has something next.
    pub fn poll_timeout(&self) -> Instant<Local> {
        self.exchanger.poll_timeout()
    }

    /// A reply, which may be anything, arrived at `arrived`.
    ///
    /// # Errors
    /// It does not count.
    pub fn handle_reply(&mut self, reply: &[u8], arrived: Instant<Local>) -> Result<(), ReplyFault> {
        let reply: &[u8; REPLY_BYTES] = reply.try_into().map_err(|_| ReplyFault::Unreadable)?;
        let number =
            |at: usize| reply[at..at + 8].iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        if reply[0] != VERSION {
            return Err(ReplyFault::Unreadable);
        }
        let stamp = |at: usize| Instant::<Remote>::from_ns(number(at) as i64);
        let exchange = self.exchanger.handle_reply(Nonce(number(1)), (stamp(9), stamp(17)), arrived);
        let exchange = exchange.map_err(ReplyFault::Dropped)?;
        let judged = self.estimator.handle_exchange(&exchange);
        if let Some(estimate) = self.estimator.estimate(arrived) {
            self.exchanger.handle_state(estimate.state, arrived);
        }
        judged.map_err(|_| ReplyFault::Contradiction)
    }

    /// When a sample was true, in this side's clock, with what is proven of that; `None` as long as the other clock is not known, or if the
    /// stamp lies outside of all time. `now`: the sample's arrival.
    pub fn source(&self, sample: &SiteAttachment, now: Instant<Local>) -> Option<Dated> {
        let estimate = self.estimator.estimate(now)?;
        let ns = sample.source_ns.checked_sub(estimate.offset.ns())?;
        let source = Instant::from_ns(ns);
        // The offset is the present one; the sample is older.
        let drifted = now.checked_since(source)?.abs().scale(DRIFT_PPM, 1_000_000)?;
        let wider = |width: Option<Span>, more: Option<Span>| width?.checked_add(more?)?.checked_add(drifted);
        let (bound, sigma) = (wider(sample.bound, estimate.bound), wider(sample.sigma, estimate.sigma));
        Some(Dated { source, bound, sigma })
    }

    /// Half the width of what is proven of the other clock now.
    pub fn bound(&self, now: Instant<Local>) -> Option<Span> {
        self.estimator.estimate(now).filter(|estimate| estimate.state != State::Stale)?.bound
    }

    /// Requests so far, and replies that counted.
    pub fn counts(&self) -> (u32, u32) {
        let counters = self.exchanger.counters();
        (counters.asked, counters.answered)
    }
}

#[cfg(test)]
#[path = "site_tests.rs"]
mod tests;
