//! Foxglove's WebSocket protocol: topics of a running system in Foxglove, with the layouts that somebody has there.
//!
//! # Problem
//!
//! A viewer connects and goes, and may be slow. It must get definitions and samples as they are, and no publisher may notice it.
//!
//! # Approach
//!
//! - [`session`] is the protocol of one connection without sockets: which channels were advertised, what is subscribed.
//! - [`outbox`] holds what waits for one viewer, limited in bytes; the oldest samples go first when it is full, and are counted.
//! - [`Bridge`] reads each topic that a viewer has subscribed once, best effort, for all viewers, and hands samples to their outboxes.
//!   It is a [`Protocol`](noctule_web::Protocol) of the server of our pages, on the same port.
//!
//! Served: channels, subscriptions, time, message data. Not served: publishing from Foxglove, parameters, services, assets.
//! Reference: github.com/foxglove/ws-protocol, docs/spec.md, version 1.
#![forbid(unsafe_code)]

pub mod outbox;
pub mod session;

mod bridge;

pub use bridge::{Bridge, Definitions};
