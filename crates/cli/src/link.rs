//! `noctule link …`

mod serial;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command as Process, Stdio};

use clap::{Args, Subcommand};
use noctule_link_emulator::forwarder::{MTU_BYTES_DEFAULT, SPIN_DEFAULT};
use noctule_link_emulator::instance::{self, Instance, State};
use noctule_link_emulator::precision::{self, Precision};
use noctule_link_emulator::report::{ChannelReport, NodeReport};
use noctule_link_emulator::{ForwarderSettings, Report, source};
use noctule_sys::process::leave_session;
use noctule_timebase::Span;

use crate::Outcome;
use crate::units;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Bring up a link: two or more network namespaces with the model between them
    ///
    /// It stays up until `noctule link down NAME`.
    Up(UpArguments),
    /// Run a program at one end of a link; its exit code is this command's
    Exec {
        /// The link
        name: String,
        /// The end: a, b, …
        node: String,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        program: Vec<String>,
    },
    /// Show the links that are up, and what they have done
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a link down and show what it did
    Down {
        /// The link
        name: String,
        /// Print the counts as JSON
        #[arg(long)]
        json: bool,
    },
    /// Measure what the emulator adds to a delay on this machine, about ten seconds
    Check {
        /// Datagrams per delay, 4 ms apart
        #[arg(long, default_value_t = precision::COUNT_DEFAULT, value_parser = clap::value_parser!(u32).range(10..=100_000))]
        count: u32,
        /// Spin this many microseconds before each packet
        #[arg(long, default_value_t = SPIN_DEFAULT.ns() as u32 / 1_000, value_parser = clap::value_parser!(u32).range(0..=10_000))]
        spin_us: u32,
        /// Print the figures as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a serial line of two pseudo-terminals, at the pace and with the faults of a real one
    ///
    /// Runs until Ctrl-C. The words unplug, plug and report on standard input are obeyed.
    Serial(serial::SerialArguments),
    /// Be a link (started by `link up`)
    #[command(hide = true)]
    Serve(UpArguments),
}

#[derive(Args)]
pub(crate) struct UpArguments {
    /// Name of the link
    name: String,
    /// The model: `delay=10ms loss=5% burst=3; b>a: loss=0`, a preset, replay:FILE, or a file in TOML
    ///
    /// Presets: wifi_clean, wifi_bursty, lte, radio_telemetry, satellite. Every setting stands in
    /// docs/spec/link-text.md.
    #[arg(long, default_value = "")]
    spec: String,
    /// Ends of the link; more than two are a star, and multicast reaches all of them
    #[arg(long, default_value_t = 2, value_name = "N")]
    nodes: usize,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write what each end sees to FILE-a.pcap, FILE-b.pcap, …
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Longest packet of the interfaces, in bytes
    #[arg(long, default_value_t = MTU_BYTES_DEFAULT, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(68..))]
    mtu: u16,
    /// Print the link as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: Command) -> Result<Outcome, Box<dyn Error>> {
    match command {
        Command::Up(arguments) => up(&arguments)?,
        Command::Serial(arguments) => serial::run(&arguments)?,
        Command::Serve(arguments) => serve(&arguments)?,
        Command::Exec { name, node, program } => return exec(&name, &node, &program),
        Command::List { json } => list(json)?,
        Command::Down { name, json } => {
            let report = instance::down(&name)?;
            match json {
                true => anstream::println!("{}", serde_json::to_string_pretty(&report)?),
                false => anstream::print!("{}", table(&report)),
            }
        }
        Command::Check { count, spin_us, json } => check(count, Span::from_us(i64::from(spin_us)), json)?,
    }
    Ok(Outcome::Done)
}

/// Starts the process that is the link, and waits for its first line: what it is, or why it is not.
fn up(arguments: &UpArguments) -> Result<(), Box<dyn Error>> {
    let mut process = Process::new(std::env::current_exe()?);
    process.args(["link", "serve", &arguments.name, "--spec", &arguments.spec]);
    process.args(["--nodes", &arguments.nodes.to_string(), "--seed", &arguments.seed.to_string()]);
    process.args(["--mtu", &arguments.mtu.to_string()]);
    if let Some(pcap) = &arguments.pcap {
        process.arg("--pcap").arg(pcap);
    }
    let mut process = process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut line = String::new();
    if let Some(output) = process.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    let state: State = match serde_json::from_str(&line) {
        Ok(Ok::<State, String>(state)) => state,
        Ok(Err(why)) => return Err(why.into()),
        Err(_) => return Err("the link ended before it was up; run `noctule link serve` to see why".into()),
    };
    if arguments.json {
        anstream::println!("{}", serde_json::to_string_pretty(&state)?);
        return Ok(());
    }
    anstream::println!("{} is up: {}", state.name, model(&state.spec));
    for (node, address) in &state.nodes {
        anstream::println!("  {node}  {address}  noctule link exec {} {node} -- PROGRAM", state.name);
    }
    anstream::println!("  noctule link down {}", state.name);
    Ok(())
}

fn serve(arguments: &UpArguments) -> Result<(), Box<dyn Error>> {
    // Of no terminal: closing the one it was started from must not end it.
    let _ = leave_session();
    let (stop, waker) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
    }
    let brought_up = bring_up(arguments).map_err(|error| error.to_string());
    let line = serde_json::to_string(&brought_up.as_ref().map(Instance::state))?;
    // The program that asked may be gone; the link was requested all the same.
    let _ = writeln!(std::io::stdout(), "{line}");
    brought_up?.serve(&stop)?;
    Ok(())
}

fn bring_up(arguments: &UpArguments) -> Result<Instance, Box<dyn Error>> {
    let settings = ForwarderSettings {
        mtu_bytes: arguments.mtu,
        capture: arguments.pcap.clone(),
        ..ForwarderSettings::new(source::read(&arguments.spec)?, arguments.seed)
    };
    Ok(Instance::up(&arguments.name, arguments.nodes, &settings)?)
}

/// Becomes the program. Returns only if it cannot.
fn exec(name: &str, node: &str, program: &[String]) -> Result<Outcome, Box<dyn Error>> {
    let (path, arguments) = program.split_first().ok_or("name a program behind --")?;
    instance::namespace(name, node)?.enter()?;
    let error = Process::new(path).args(arguments).exec();
    Err(format!("cannot run {path} ({error}); name a program behind --").into())
}

fn list(json: bool) -> Result<(), Box<dyn Error>> {
    let mut links = Vec::new();
    for state in instance::list()? {
        // It may have gone down meanwhile.
        if let Ok(report) = instance::report(&state.name) {
            links.push((state, report));
        }
    }
    if json {
        let links = links.iter().map(|(state, report)| {
            let mut link = serde_json::to_value(state)?;
            link["report"] = serde_json::to_value(report)?;
            Ok(link)
        });
        let links = links.collect::<Result<Vec<_>, serde_json::Error>>()?;
        anstream::println!("{}", serde_json::to_string_pretty(&links)?);
        return Ok(());
    }
    if links.is_empty() {
        anstream::println!("no link is up; `noctule link up NAME --spec SPEC` brings one up");
    }
    for (state, report) in &links {
        anstream::println!("{}: {} (seed {})", state.name, model(&state.spec), state.seed);
        anstream::print!("{}", table(report));
    }
    Ok(())
}

fn model(spec: &str) -> &str {
    if spec.is_empty() { "no impairment" } else { spec }
}

fn table(report: &Report) -> String {
    let headings =
        ["way", "sent", "queue full", "down", "too long", "lost", "delivered", "duplicated", "corrupted"];
    let mut rows = vec![headings.map(String::from).to_vec()];
    for node in &report.nodes {
        rows.extend(node.to.iter().map(|channel| row(node, channel)));
    }
    let mut right = [true; 9];
    right[0] = false;
    let mut text = units::columns(&rows, &right);
    if let (Some(p50), Some(p99), Some(max)) =
        (report.lateness_ns.p50, report.lateness_ns.p99, report.lateness_ns.max)
    {
        let time = |ns: u64| units::time(Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)));
        text +=
            &format!("handed over later than due: p50 {}, p99 {}, max {}", time(p50), time(p99), time(max));
        text += if report.real_time { "\n" } else { "; without real-time priority\n" };
    }
    for (count, what) in [
        (report.unroutable, "packets to addresses nobody has"),
        (report.refused, "packets refused by an interface that was down"),
        (report.capture_missed, "packets missing from the capture: the disk was slower"),
        (flight_full(report), "packets dropped for want of memory in the emulator: distrust this run"),
    ] {
        if count > 0 {
            text += &format!("{count} {what}\n");
        }
    }
    text
}

fn row(node: &NodeReport, channel: &ChannelReport) -> Vec<String> {
    let counts = [
        node.packets,
        node.queue_full,
        node.down,
        node.too_long,
        channel.counts.lost,
        channel.counts.delivered,
        channel.counts.duplicated,
        channel.counts.corrupted,
    ];
    let way = format!("{}>{}", node.name, channel.name);
    [way].into_iter().chain(counts.map(|count| count.to_string())).collect()
}

fn flight_full(report: &Report) -> u64 {
    report.nodes.iter().flat_map(|node| &node.to).map(|channel| channel.counts.flight_full).sum()
}

fn check(count: u32, spin: Span, json: bool) -> Result<(), Box<dyn Error>> {
    let mut measured = Vec::new();
    for delay in [0, 2, 5, 10, 50].map(Span::from_ms) {
        measured.push(precision::measure(delay, count, spin)?);
    }
    if json {
        anstream::println!("{}", serde_json::to_string_pretty(&measured)?);
        return Ok(());
    }
    let heading = ["delay", "received", "added: min", "p50", "p99", "max"];
    let mut rows = vec![heading.map(String::from).to_vec()];
    rows.extend(measured.iter().map(precision_row));
    anstream::print!("{}", units::columns(&rows, &[true; 6]));
    Ok(())
}

fn precision_row(row: &Precision) -> Vec<String> {
    let time = |ns| units::time(Span::from_ns(ns));
    vec![
        time(row.delay_ns),
        format!("{} of {}", row.received, row.sent),
        time(row.added_min_ns),
        time(row.added_p50_ns),
        time(row.added_p99_ns),
        time(row.added_max_ns),
    ]
}
