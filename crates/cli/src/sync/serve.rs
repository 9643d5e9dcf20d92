//! `noctule sync serve`

use std::error::Error;
use std::sync::atomic::Ordering;

use noctule::sync::{PORT, Server, ServerCounters};
use serde_json::json;

use super::EndArguments;
use crate::Outcome;

/// The server wakes from its socket this often even without a request.
const TICK_NS: i64 = 200_000_000;

#[derive(clap::Args)]
pub(crate) struct ServeArguments {
    /// Address and UDP port to listen on; port 0 takes a free one
    #[arg(default_value_t = format!("0.0.0.0:{PORT}"))]
    address: String,
    #[command(flatten)]
    end: EndArguments,
    /// Print JSON: one line with the address at the start, one with the counters at the end
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ServeArguments) -> Result<Outcome, Box<dyn Error>> {
    let stop = arguments.end.interruption()?;
    let cannot = |error| {
        let address = &arguments.address;
        format!("cannot listen on {address}: {error}; name another address, such as 127.0.0.1:0")
    };
    let mut server =
        Server::bind(arguments.address.as_str(), arguments.end.clock.clone(), arguments.end.stamps())
            .map_err(cannot)?;
    let (address, clock) = (server.address()?, server.clock().to_string());
    if arguments.json {
        anstream::println!("{}", json!({ "address": address.to_string(), "clock": clock }));
    } else {
        let whose = if arguments.end.clock.is_raw() { "this machine".into() } else { format!("\"{clock}\"") };
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
