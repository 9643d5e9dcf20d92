//! The noctule command.
fn main() {}
