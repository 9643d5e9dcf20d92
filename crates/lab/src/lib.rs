//! The Noctule latency lab.
