//! `noctule link serial`

use std::error::Error;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use clap::Args;
use noctule_link_emulator::serial::{SerialPump, SerialReport, Unplug};
use noctule_netsim::link::{parse_share, parse_time};
use noctule_netsim::serial::{
    Adapter, BAUD_RANGE, CharacterFormat, FIFO_16550, Noise, SerialSpec, SerialStatistics,
};
use noctule_timebase::Span;
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;

use crate::argument::ArgumentError;
use crate::units;

/// Where the ends are found, unless asked otherwise.
const FOLDER: &str = "/run/noctule/serial";
/// A line of commands may be this long.
const COMMAND_BYTES_MAX: usize = 1_024;

#[derive(Args)]
pub(crate) struct SerialArguments {
    /// Name of the line: its ends are FOLDER/NAME-a and FOLDER/NAME-b
    name: String,
    /// Bits per second
    #[arg(long, default_value_t = 115_200, value_parser = clap::value_parser!(u32).range(i64::from(*BAUD_RANGE.start())..=i64::from(*BAUD_RANGE.end())))]
    baud: u32,
    /// Data bits, parity and stop bits
    #[arg(long, default_value = "8N1")]
    format: CharacterFormat,
    /// Put a USB adapter with this latency timer at both ends: 16ms as delivered, 1ms with low latency set
    #[arg(long, value_name = "TIMER", value_parser = time)]
    ftdi: Option<Span>,
    /// USB frames of the adapter: 1ms at full speed, 125us at high speed
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = time)]
    usb_frame: Span,
    /// Share of bytes that are hit: a third each flipped, dropped, and preceded by a false one
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = noise)]
    noise: Noise,
    /// Mean length of the runs of bytes in which noise comes
    #[arg(long, default_value_t = 1, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    burst: u32,
    /// Bytes the sender may be ahead of the wire
    #[arg(long, default_value_t = 64, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    fifo: u32,
    /// Hand bytes over as the FIFO of a 16550 does: by eight, or after four characters' silence
    #[arg(long)]
    receive_fifo: bool,
    /// Seed of the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder of the two ends
    #[arg(long, default_value = FOLDER)]
    folder: PathBuf,
    /// Print everything as JSON, one value per line
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Span, ArgumentError> {
    parse_time(text).ok_or(ArgumentError::Duration { example: "16ms" })
}

fn noise(text: &str) -> Result<Noise, ArgumentError> {
    let share = parse_share(text).filter(|share| share.as_f64() <= 0.3);
    share.map(Noise::of).ok_or(ArgumentError::NoisePercent)
}

/// Runs a line until Ctrl-C or SIGTERM, and executes the commands on standard input.
pub(crate) fn run(arguments: &SerialArguments) -> Result<(), Box<dyn Error>> {
    if arguments.name.is_empty() || arguments.name.contains('/') || arguments.name.starts_with('.') {
        return Err(format!("\"{}\" is no name of a line; take letters and digits", arguments.name).into());
    }
    let spec = SerialSpec {
        baud: arguments.baud,
        format: arguments.format,
        fifo_bytes: arguments.fifo as usize,
        receive_fifo: arguments.receive_fifo.then_some(FIFO_16550),
        adapter: arguments.ftdi.map(|latency_timer| Adapter { latency_timer, frame: arguments.usb_frame }),
        noise: Noise { burst_bytes: arguments.burst, ..arguments.noise },
    };
    let (stop, waker) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
    }
    let paths = ["a", "b"].map(|end| arguments.folder.join(format!("{}-{end}", arguments.name)));
    let line = SerialPump::start(spec, arguments.seed, paths)?;
    let mut output = std::io::stdout();
    match arguments.json {
        true => writeln!(output, "{}", json!({ "a": line.paths()[0], "b": line.paths()[1] }))?,
        false => {
            let [a, b] = line.paths();
            writeln!(output, "{} baud {}: {} and {}", spec.baud, spec.format, a.display(), b.display())?;
            writeln!(output, "type unplug, plug or report; Ctrl-C ends the line")?;
        }
    }
    obey(&line, &stop, arguments.json)?;
    show(&line.stop()?, arguments.json)
}

fn obey(line: &SerialPump, stop: &UnixStream, json: bool) -> Result<(), Box<dyn Error>> {
    let input = std::io::stdin();
    let (mut said, mut open) = (Vec::new(), true);
    loop {
        let mut descriptors = vec![PollFd::new(stop, PollFlags::IN)];
        if open {
            descriptors.push(PollFd::new(&input, PollFlags::IN));
        }
        // A signal interrupts; what it means, `stop` says.
        let _ = poll(&mut descriptors, None);
        if !descriptors[0].revents().is_empty() {
            return Ok(());
        }
        if descriptors.get(1).is_none_or(|input| input.revents().is_empty()) {
            continue;
        }
        let mut chunk = [0; 256];
        let count = rustix::io::read(&input, &mut chunk)?;
        open = count > 0;
        said.extend_from_slice(&chunk[..count]);
        while let Some(end) = said.iter().position(|byte| *byte == b'\n') {
            let command: Vec<u8> = said.drain(..=end).collect();
            command_line(line, String::from_utf8_lossy(&command).trim(), json)?;
        }
        if said.len() > COMMAND_BYTES_MAX {
            said.clear();
        }
    }
}

fn command_line(line: &SerialPump, command: &str, json: bool) -> Result<(), Box<dyn Error>> {
    match command {
        "unplug" => show(&line.unplug(Unplug::BothEnds)?, json),
        "plug" => show(&line.plug()?, json),
        "report" => show(&line.report()?, json),
        "" => Ok(()),
        other => {
            anstream::eprintln!(
                "noctule: \"{}\" is no command; type unplug, plug or report",
                units::printable(other)
            );
            Ok(())
        }
    }
}

fn show(report: &SerialReport, json: bool) -> Result<(), Box<dyn Error>> {
    let mut output = std::io::stdout();
    if json {
        writeln!(output, "{}", serde_json::to_string(report)?)?;
        return Ok(());
    }
    let heading =
        ["way", "sent", "delivered", "flipped", "dropped", "inserted", "parity", "unplugged", "overrun"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    let ways = ["a>b", "b>a"].into_iter().zip(&report.directions);
    rows.extend(ways.map(|(way, direction)| row(way, direction)));
    let mut right = [true; 9];
    right[0] = false;
    write!(output, "{}", units::columns(&rows, &right))?;
    if let (Some(p50), Some(p99)) = (report.lateness_ns.p50, report.lateness_ns.p99) {
        let time = |ns: u64| units::time(Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)));
        writeln!(output, "handed over later than due: p50 {}, p99 {}", time(p50), time(p99))?;
    }
    writeln!(output, "{}", if report.plugged { "plugged in" } else { "unplugged" })?;
    Ok(())
}

fn row(way: &str, direction: &SerialStatistics) -> Vec<String> {
    let counts = [
        direction.sent,
        direction.delivered,
        direction.flipped,
        direction.dropped,
        direction.inserted,
        direction.parity_errors,
        direction.unplugged,
        direction.overrun,
    ];
    std::iter::once(way.to_owned()).chain(counts.map(|count| count.to_string())).collect()
}
