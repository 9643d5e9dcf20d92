//! `noctule sync serve`

use std::error::Error;
use std::sync::atomic::Ordering;

use noctule::clock::LocalClock;
use noctule::sync::{PORT, Server, ServerCounters, StampSource};
use serde_json::json;

use super::{clock, interruption, stop_with_input};
use crate::Outcome;

/// The server looks up from its socket this often even if nobody asks.
const TICK_NS: i64 = 200_000_000;

#[derive(clap::Args)]
pub(crate) struct ServeArguments {
    /// Address and UDP port to listen on; port 0 takes a free one
    #[arg(default_value_t = format!("0.0.0.0:{PORT}"))]
    address: String,
    /// Tell the time of an artificial clock: offset=5s,ppm=50,step=20ms@30s[,since=NS]
    #[arg(long, value_name = "SPEC", value_parser = clock, default_value = "")]
    clock: LocalClock,
    /// Stamp requests in this process only, not in the kernel
    #[arg(long)]
    process_stamps: bool,
    /// Print JSON: one line with the address at the start, one with the counters at the end
    #[arg(long)]
    json: bool,
    /// End when standard input does
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

pub(crate) fn run(arguments: &ServeArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = interruption()?;
    if arguments.until_input_ends {
        stop_with_input(&stop);
    }
    let stamps = if arguments.process_stamps { StampSource::Process } else { StampSource::Kernel };
    let cannot = |error| {
        let address = &arguments.address;
        format!("cannot listen on {address}: {error}; name another address, such as 127.0.0.1:0")
    };
    let mut server =
        Server::bind(arguments.address.as_str(), arguments.clock.clone(), stamps).map_err(cannot)?;
    let (address, clock) = (server.address()?, server.clock().to_string());
    if arguments.json {
        anstream::println!("{}", json!({ "address": address.to_string(), "clock": clock }));
    } else {
        let whose = if arguments.clock.is_raw() { "this machine".into() } else { format!("\"{clock}\"") };
        anstream::println!("telling the time of {whose} on {address}");
    }
    while !stop.load(Ordering::Relaxed) {
        server.serve(TICK_NS, &stop)?;
    }
    let counters = server.counters();
    if arguments.json {
        anstream::println!("{}", as_json(&counters));
    } else {
        anstream::println!(
            "{} answered, {} not sent, {} malformed",
            counters.answered,
            counters.unsent,
            counters.malformed.total()
        );
    }
    Ok(Outcome::Done)
}

fn as_json(counters: &ServerCounters) -> serde_json::Value {
    json!({
        "answered": counters.answered,
        "unsent": counters.unsent,
        "malformed": super::probe::malformed(&counters.malformed),
        "arrivals": super::probe::arrivals(&counters.arrivals),
    })
}
