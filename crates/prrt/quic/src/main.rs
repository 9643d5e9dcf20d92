//! QUIC on the map of links: the same links, loads and deadlines as `sweep_prrt`, in virtual time, with quinn-proto's BBR and CUBIC.
//!
//! `cargo xtask sweep prrt --quic` runs it; the words are those of `sweep_prrt`. One connection, whose handshake is over before the first sample;
//! one stream, each sample after its length; flow control that never limits; datagrams of 1,472 bytes, as an Ethernet frame holds.

mod chance;
mod host;
#[path = "../../tests/map/mod.rs"]
mod map;
mod tls;

use std::sync::Arc;

use noctule_netsim::Network;
use noctule_timebase::{Instant, Span};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn_proto::{TransportConfig, VarInt};

use host::Host;
use map::{Cell, Fault, Outcome};

const CLASSES: [&str; 2] = ["QUIC BBR", "QUIC CUBIC"];
/// More than any load publishes in its run.
const WINDOW_BYTES: u32 = 1 << 30;
const PACKET_BYTES: u16 = 1_472;
/// A handshake that fails for so long fails for ever.
const HANDSHAKE_MAX: Span = Span::from_s(60);
/// After it, until acknowledgements have arrived too.
const REST: Span = Span::from_s(2);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    map::sweep::sweep(&words, &CLASSES, |cell, class, seed| run(cell, class, seed));
}

fn transport(class: usize) -> TransportConfig {
    let congestion: Arc<dyn ControllerFactory + Send + Sync> = match class {
        0 => Arc::new(BbrConfig::default()),
        _ => Arc::new(CubicConfig::default()),
    };
    let window = VarInt::from_u32(WINDOW_BYTES);
    let mut config = TransportConfig::default();
    config
        .congestion_controller_factory(congestion)
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(u64::from(WINDOW_BYTES))
        .initial_mtu(PACKET_BYTES)
        .mtu_discovery_config(None)
        // An outage is no reason to give up.
        .max_idle_timeout(None);
    config
}

/// Sends the cell's samples by QUIC with the congestion controller of `CLASSES`, and lets all deadlines pass.
fn run(cell: &Cell, class: usize, seed: u64) -> Result<Outcome, Fault> {
    let seed = cell.seed(seed);
    chance::with_seed(seed, || run_here(cell, class, seed))
}

fn run_here(cell: &Cell, class: usize, seed: u64) -> Result<Outcome, Fault> {
    let hosts = Host::pair(cell, tls::pair(&Arc::new(transport(class)))?, seed)?;
    let mut as_it_begins = cell.spec()?;
    as_it_begins.a_to_b.script.clear();
    as_it_begins.b_to_a.script.clear();
    let mut before = Network::new(hosts, &as_it_begins, !seed);
    let end = before.now() + HANDSHAKE_MAX;
    if !before.run_until(end, |network| (0..2).all(|node| network.endpoint(node).is_connected))? {
        return Err("no handshake".into());
    }
    before.run_for(REST)?;
    let passed = before.now() - Instant::from_ns(0);
    let mut hosts = before.into_endpoints();
    hosts.iter_mut().for_each(|host| host.begin(cell, passed));
    let mut network = Network::new(hosts, &cell.spec()?, seed);
    network.run_for(cell.load.span(cell.form))?;
    let beside_bytes = network.endpoint(1).flow.delivered_bytes();
    network.run_for(cell.deadline + Span::from_ms(100))?;
    let wire_bytes = network.endpoint(0).wire_bytes + network.endpoint(1).wire_bytes;
    Ok(Outcome::of(cell, &mut network.endpoint(1).arrived, wire_bytes, beside_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use map::{Beside, Form, Load};

    fn cell(load: Load, link: &str) -> Cell {
        let (axis, name, link) = ("test", String::new(), link.to_owned());
        // A megabyte takes as long to leave at the start as the window takes to grow.
        let deadline = Span::from_ms(if load == Load::Images { 1_000 } else { 100 });
        Cell { axis, name, load, deadline, link, beside: Beside::Nothing, form: Form::Short }
    }

    #[test]
    fn every_sample_is_in_time_on_an_ideal_link() {
        for load in Load::ALL {
            for (class, name) in CLASSES.iter().enumerate() {
                let outcome = run(&cell(load, "delay=5ms"), class, 1).unwrap();
                assert_eq!(outcome.on_time, outcome.samples, "{name}, {}", load.name());
                assert!(outcome.p50_ms >= 5.0 && outcome.wire_ratio > 1.0, "{outcome:?}");
            }
        }
    }

    #[test]
    fn a_loss_delays_what_is_behind_it_and_a_seed_gives_the_same_run() {
        for class in 0..CLASSES.len() {
            let of_seed = |seed| {
                let outcome =
                    run(&cell(Load::State, "delay=10ms loss=5%; a>b: rate=4mbit queue=50ms"), class, seed);
                format!("{:?}", outcome.unwrap())
            };
            assert_eq!(of_seed(3), of_seed(3));
            assert_ne!(of_seed(3), of_seed(4));
            let late = run(&cell(Load::State, "delay=45ms loss=5%"), class, 3).unwrap();
            assert!(late.on_time < late.samples * 9 / 10, "{late:?}");
        }
    }

    /// The phase of BBR's cycle is drawn: on a line that it fills, runs differ unless the seed gives that, too.
    #[test]
    fn a_seed_gives_bbrs_cycle_too() {
        let line = cell(Load::Images, "delay=10ms; a>b: rate=88mbit queue=50ms");
        let runs: Vec<String> = (0..3).map(|_| format!("{:?}", run(&line, 0, 5).unwrap())).collect();
        assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    }
}
