//! Scenarios of the lab on links that a seed draws, and on those that many robots have: all peers that can be had, on each.
//!
//! Each is one link. Every peer has a row, or two where its maintainers would pick one or the other; TCP and QUIC with either congestion control, by name.

use std::fs;

use noctule_netsim::Random;
use noctule_netsim::link::{LinkSpec, PRESETS, no_recordings};

use crate::shell;

/// The links of `scenarios/transports_map.toml` beside presets: specification and deadline in ms.
const NAMED: [(&str, u32); 2] = [("delay=10ms loss=5% burst=15ms", 60), ("delay=10ms jitter=2ms", 60)];
const NAMED_PRESETS: [(&str, u32); 2] = [("wifi_bursty", 60), ("lte", 150)];
const SCENARIO: &str = "scenarios/transports_map.toml";

/// One link.
struct Drawn {
    link: String,
    deadline_ms: u32,
    /// Mean of the way there, ms.
    way_ms: f64,
}

/// Writes one scenario for each of `cells` links drawn by `seed` into `folder`.
pub fn draw(seed: u64, cells: u64, folder: &str) -> Result<(), String> {
    let path = shell::root().join(folder);
    fs::create_dir_all(&path).map_err(|error| format!("{folder}: {error}"))?;
    for number in 0..cells {
        let drawn = drawn(seed, number)?;
        let text =
            scenario(&format!("map_{seed}_{number}"), &format!("A link that seed {seed} drew"), &[drawn]);
        let file = path.join(format!("{number:02}.toml"));
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    println!("{cells} scenarios in {folder}; run one: noctule lab run {folder}/00.toml --smoke");
    Ok(())
}

/// Rewrites the scenario of the named links.
pub fn rewrite_named() -> Result<(), String> {
    fs::write(shell::root().join(SCENARIO), named()).map_err(|error| format!("{SCENARIO}: {error}"))
}

fn named() -> String {
    let lines = NAMED.iter().map(|(link, deadline_ms)| Drawn {
        link: (*link).into(),
        deadline_ms: *deadline_ms,
        way_ms: 10.0,
    });
    let presets = NAMED_PRESETS.iter().map(|(name, deadline_ms)| {
        let way_ms = PRESETS.iter().find(|(known, _)| known == name).map_or(0.0, |(_, spec)| way_ms(spec));
        Drawn { link: (*name).into(), deadline_ms: *deadline_ms, way_ms }
    });
    let links: Vec<Drawn> = lines.chain(presets).collect();
    scenario(
        "transports_map",
        "Which share of small messages is in time on links that robots have, and what everybody else makes of them",
        &links,
    )
}

fn way_ms(spec: &str) -> f64 {
    let spec = LinkSpec::parse(spec, &mut no_recordings);
    spec.map_or(0.0, |spec| spec.a_to_b.initial.delay.ns() as f64 * 1e-6)
}

/// A link that a person can emulate: 2 ms and more each way, no more than a few Mbit/s beside.
fn drawn(seed: u64, number: u64) -> Result<Drawn, String> {
    let mut random = Random::for_part(seed, 0x11fe + number);
    let mut pick = |count: usize| (random.bits() % count as u64) as usize;
    let jitter_percent = [0, 0, 5, 10, 20, 30][pick(6)];
    let shape = ["normal", "lognormal"][pick(2)];
    let loss = ["0", "0", "0.1", "0.5", "1", "2", "5", "10", "20"][pick(9)];
    let burst = ["none", "3", "10", "5ms", "15ms", "30ms", "60ms"][pick(7)];
    let rate = ["", "", "rate=1mbit queue=50ms", "rate=4mbit queue=200ms", "police=2mbit/8kB"][pick(5)];
    let event = ["", "", "", "@3s: delay=", "@3s: down; @3.2s: up"][pick(5)];
    let round_trips = [1.5, 2.0, 3.0, 3.0, 5.0][pick(5)];
    let alike = pick(4) > 0;
    let way_ms = (2.0 * 50.0_f64.powf(random.unit()) * 10.0).round() / 10.0;
    let jitter_us = (way_ms * f64::from(jitter_percent) * 10.0).round();
    let lossy = if loss == "0" { String::new() } else { format!("loss={loss}% burst={burst}") };
    let way = format!("delay={way_ms}ms jitter={jitter_us}us distribution={shape}");
    let mut link = format!("a>b: {way} {lossy} {rate}; b>a: {way} {}", if alike { &lossy } else { "" });
    let longest_ms = if event.ends_with("delay=") { 2.0 * way_ms } else { way_ms };
    if event.ends_with("delay=") {
        link += &format!("; {event}{longest_ms}ms");
    } else if !event.is_empty() {
        link += &format!("; {event}");
    }
    let tail_ms = longest_ms * (1.0 + f64::from(jitter_percent) / 50.0);
    let deadline_ms = (2.0 * tail_ms * round_trips + 5.0).round() as u32;
    LinkSpec::parse(&link, &mut no_recordings).map_err(|error| format!("{link}: {error}"))?;
    Ok(Drawn { link, deadline_ms, way_ms })
}

/// Everybody on one link: peer and options.
fn ring(drawn: &Drawn) -> Vec<(&'static str, String)> {
    let deadline_ms = drawn.deadline_ms;
    // SRT hands out at the way and its latency: the deadline less the way and a margin of 5 ms.
    let latency_ms = (f64::from(deadline_ms) - drawn.way_ms - 5.0).max(1.0).round();
    let live = format!("latency_ms = \"{latency_ms}\"");
    let mut rows: Vec<(&str, String)> = vec![
        ("noctule", r#"reliability = "deadline_bound", loss = "0.0001""#.into()),
        // As deep as those of DDS and of TCP's and QUIC's buffers are: 5 s at 200 Hz.
        ("noctule", r#"reliability = "reliable", history = "keep_all", depth = "1000""#.into()),
        ("noctule", r#"reliability = "best_effort""#.into()),
        ("udp", String::new()),
    ];
    for congestion in ["cubic", "bbr"] {
        rows.push(("tcp", format!("congestion = \"{congestion}\"")));
        rows.push(("quinn", format!("delivery = \"stream\", congestion = \"{congestion}\"")));
        rows.push(("zenoh", format!("express = \"1\", tcp_congestion = \"{congestion}\"")));
    }
    rows.extend([
        // As a sender of voice by RFC 9221 sets it: what waits is dropped, the oldest first.
        ("quinn", r#"delivery = "datagram", congestion = "bbr", datagram_buffer_bytes = "1500""#.into()),
        ("srt", live.clone()),
        ("srt", r#"tsbpd = "0""#.into()),
        ("srt", format!("{live}, filter = \"fec,cols:4,rows:1,arq:always\"")),
        ("enet", r#"reliability = "reliable""#.into()),
        (
            "cyclonedds",
            format!(r#"reliability = "reliable", history = "keep_all", nack_delay_ms = "1", heartbeat_ms = "10", lifespan_ms = "{deadline_ms}""#),
        ),
        (
            "fastdds",
            format!(
                r#"reliability = "reliable", history = "keep_all", nack_response_us = "0", heartbeat_response_us = "0", heartbeat_ms = "10", lifespan_ms = "{deadline_ms}""#
            ),
        ),
    ]);
    rows
}

fn scenario(name: &str, description: &str, links: &[Drawn]) -> String {
    let mut text = format!(
        "# Written by `cargo xtask live-map`; do not edit.\n\nname = \"{name}\"\ndescription = \"{description}\"\ntrials = 2\nseconds = 60\nmessages = 5_000\n\
         warm_up_seconds = 1\n# What is measured is the link, not the scheduler.\npriority = 30\n"
    );
    for drawn in links {
        for (peer, options) in ring(drawn) {
            text += &format!(
                "\n[[cells]]\npeer = \"{peer}\"\nlink = \"link:{}\"\nmode = \"one_way\"\npayload_bytes = 115\nrate_hz = 200\ndeadline_us = {}\n\
                 placement = \"free\"\n",
                drawn.link,
                drawn.deadline_ms * 1_000
            );
            if !options.is_empty() {
                text += &format!("options = {{ {options} }}\n");
            }
            text += "expect = \"may_saturate\"\n";
        }
    }
    text + "\n[smoke]\ntrials = 1\nseconds = 1\nmessages = 200\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_that_is_drawn_can_be_read_and_a_seed_draws_the_same_ones() {
        for number in 0..200 {
            let (first, again) = (drawn(7, number).unwrap(), drawn(7, number).unwrap());
            assert_eq!(first.link, again.link);
            assert!(f64::from(first.deadline_ms) > 2.0 * first.way_ms, "{}", first.link);
        }
        assert_ne!(drawn(7, 0).unwrap().link, drawn(8, 0).unwrap().link);
    }

    #[test]
    fn the_committed_scenario_is_the_one_that_is_written() {
        let committed = fs::read_to_string(shell::root().join(SCENARIO)).unwrap();
        assert_eq!(committed, named(), "`cargo xtask live-map` rewrites it");
        let table: toml::Table = committed.parse().unwrap();
        assert_eq!(table["cells"].as_array().unwrap().len(), 4 * ring(&drawn(1, 1).unwrap()).len());
    }
}
