//! Cost of a swarm key: the handshake of two nodes, sealing and opening beside the bare cipher, bytes on the wire, and `publish`.
//!
//! `key_cost [ROUNDS]`, as root or in `unshare -rn`; prints tables in Markdown. Handshake and seal are state machines without sockets, on one
//! pinned core. For the wire and for `publish`, two nodes with different clocks, which count as different hosts, share a namespace; not pinned.
//! In each round every variant runs once, in turns. A figure is the median of the rounds with the interval that holds the true median
//! in 95 of 100 such runs (order statistics).

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)] // a measuring program

#[path = "key_cost/machines.rs"]
mod machines;
#[path = "key_cost/nodes.rs"]
mod nodes;

/// Of one round: name of the variant, and its figure.
type Round = Vec<(String, f64)>;

fn main() {
    let rounds = std::env::args().nth(1).map_or(101, |rounds| rounds.parse().expect("a number of rounds"));
    // Before the pinning, which their threads would inherit.
    nodes::print(rounds);
    let core = noctule_sys::scheduling::allowed_cores().ok().and_then(|cores| cores.last().copied());
    if let Some(core) = core {
        noctule_sys::scheduling::pin_to_core(core).unwrap();
    }
    println!("{rounds} rounds, handshake and seal on core {core:?}\n");
    table("one handshake, µs", rounds, machines::handshake);
    table("a signature of a datagram, µs", rounds, machines::signature);
    for payload_bytes in machines::PAYLOADS {
        table(&format!("a sample of {payload_bytes} B, µs"), rounds, |round| {
            machines::sample(payload_bytes, round)
        });
    }
}

/// Prints median and interval of each variant.
fn table(title: &str, rounds: usize, mut run: impl FnMut(usize) -> Round) {
    // The first warms up.
    run(0);
    let all: Vec<Round> = (1..=rounds).map(run).collect();
    print_table(title, &all);
}

fn print_table(title: &str, all: &[Round]) {
    println!("| {title} | median | 95 % of medians |\n|---|---:|---:|");
    for (at, (name, _)) in all[0].iter().enumerate() {
        let (median, low, high) = median(all.iter().map(|round| round[at].1).collect());
        println!("| {name} | {median:.3} | {low:.3} – {high:.3} |");
    }
    println!();
}

/// With the interval of the order statistics at n/2 ± 0.98 √n.
fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let reach = (0.98 * (count as f64).sqrt()).ceil() as usize;
    let middle = count / 2;
    let last = count - 1;
    (values[middle], values[middle.saturating_sub(reach)], values[(middle + reach).min(last)])
}
