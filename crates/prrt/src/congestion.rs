//! Congestion control: the congestion window (RFC 9438), pacing, and path MTU discovery (RFC 8899).

mod average;
pub(crate) mod bandwidth;
mod chance_loss;
mod cubic;
pub(crate) mod ecn;
mod epoch;
pub(crate) mod pacer;
pub(crate) mod path_delay;
pub(crate) mod path_mtu;
pub(crate) mod rate_limit;
mod repair_breaker;
pub(crate) mod repair_budget;
mod unfilled;
pub(crate) mod window;
