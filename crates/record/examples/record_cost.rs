//! Cost of a recorder, and the share of 1 GB/s that it keeps: `cost FOLDER [SECONDS [MB_PER_S]]`.
//!
//! One process publishes a camera of 2 MB frames and an IMU of 200 Hz. Another reads both and takes the latency of the IMU. A third, by turns, does not
//! exist, records, and records with LZ4. Every frame that was offered must be in one of the recorder's counts: in the file, missed
//! before it, left out because its queue was full, or not written. In that file are as many messages as it says.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use noctule::{Node, Publisher};
use noctule_record::alarms::Alarms;
use noctule_record::check::contents;
use noctule_record::recorder::{Recorder, Selection};
use noctule_record::writer::{Format, Limits, Recording};
use noctule_sys::clock::{now_ns, sleep_until};

const FRAME_BYTES: usize = 2_000_000;
const IMU_PERIOD_NS: i64 = 5_000_000;
/// As `noctule record` has it.
const QUEUE_BYTES: usize = 256 << 20;
const WITHIN: Duration = Duration::from_secs(30);

type Outcome<T> = Result<T, Box<dyn Error>>;
/// Frames, how long each `publish` took in ns, and how long all took in s.
type Published = (u64, Vec<i64>, f64);

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["record", domain, path, compression] => {
            record(domain.parse()?, Path::new(path), compression == "lz4")
        }
        ["read", domain] => read(domain.parse()?),
        [folder] => all(Path::new(folder), 10.0, 1000.0),
        [folder, seconds] => all(Path::new(folder), seconds.parse()?, 1000.0),
        [folder, seconds, rate] => all(Path::new(folder), seconds.parse()?, rate.parse()?),
        _ => Err("cost FOLDER [SECONDS [MB_PER_S]]".into()),
    }
}

fn all(folder: &Path, seconds: f64, megabytes_per_s: f64) -> Outcome<()> {
    println!(
        "{megabytes_per_s} MB/s offered for {seconds} s in frames of 2 MB; IMU of 200 Hz; latencies p50/p99/max in us"
    );
    println!(
        "| recorder | frames offered | recorded | missed | left out | not written | offered | to the file | peak memory | CPU | IMU latency | publish of a frame |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    // Without one before and after: what the machine does beside shows.
    for compression in ["", "none", "lz4", ""] {
        turn(folder, compression, seconds, megabytes_per_s)?;
    }
    Ok(())
}

fn turn(folder: &Path, compression: &str, seconds: f64, megabytes_per_s: f64) -> Outcome<()> {
    let domain = 4_600 + std::process::id() % 300;
    let path: PathBuf = folder.join("cost.mcap");
    let _ = std::fs::remove_file(&path);
    let node = Node::builder("robot").domain(domain).keep_notices().open()?;
    let mut camera = node.publisher("/camera").keep_last(8).payload_bytes_max(FRAME_BYTES as u32).open()?;
    let mut imu = node.publisher("/imu").keep_last(64).open()?;
    let domain = domain.to_string();
    let mut reader = start(&["read", &domain])?;
    let mut recorder = match compression {
        "" => None,
        compression => Some(start(&["record", &domain, &path.display().to_string(), compression])?),
    };
    let readers = 1 + usize::from(recorder.is_some());
    let end = Instant::now() + WITHIN;
    while imu.readers() < readers || camera.readers() < readers {
        if Instant::now() > end {
            return Err("the readers did not come".into());
        }
        sleep_until(now_ns() + 10_000_000);
    }
    let (frames, mut publish_ns, took_s) = publish(&mut camera, &mut imu, seconds, megabytes_per_s)?;
    let latency = ask(&mut reader)?;
    let line = match &mut recorder {
        None => "| | | | | | |".to_owned(),
        Some(recorder) => {
            let said = ask(recorder)?;
            let (counts, rest) = said.split_once(';').ok_or("the recorder said nothing")?;
            let counts: Vec<u64> = counts.split(' ').map(str::parse).collect::<Result<_, _>>()?;
            let [recorded, missed, left_out, not_written, bytes] = counts[..] else {
                return Err("counts".into());
            };
            let sum = recorded + missed + left_out + not_written;
            assert_eq!(sum, frames, "every frame is in one count: {said}");
            let (found, damage) = contents(BufReader::new(File::open(&path)?));
            let in_file =
                found.channels.values().filter(|topic| topic.topic == "/camera").map(|topic| topic.messages);
            assert_eq!((in_file.sum::<u64>(), damage), (recorded, Ok(())));
            let kept = bytes as f64 / 1e6 / took_s;
            format!(
                "{recorded} | {missed} | {left_out} | {not_written} | {:.0} MB/s | {kept:.0} MB/s | {rest}",
                frames as f64 * 2.0 / took_s
            )
        }
    };
    let name = if compression.is_empty() { "no recorder" } else { compression };
    println!("| {name} | {frames} | {line} | {latency} | {} |", quantiles(&mut publish_ns));
    let _ = std::fs::remove_file(&path);
    Ok(())
}

/// Publishes both topics.
fn publish(
    camera: &mut Publisher,
    imu: &mut Publisher,
    seconds: f64,
    megabytes_per_s: f64,
) -> Outcome<Published> {
    let frame = picture();
    let period_ns = (FRAME_BYTES as f64 / megabytes_per_s * 1e3) as i64;
    let start_ns = now_ns();
    let end_ns = start_ns + (seconds * 1e9) as i64;
    let (mut frame_ns, mut imu_ns, mut frames, mut took) = (start_ns, start_ns, 0, Vec::new());
    while frame_ns.min(imu_ns) < end_ns {
        sleep_until(frame_ns.min(imu_ns));
        if imu_ns <= frame_ns {
            imu.publish(&now_ns().to_le_bytes())?;
            imu_ns += IMU_PERIOD_NS;
        } else {
            let before_ns = now_ns();
            camera.publish(&frame)?;
            took.push(now_ns() - before_ns);
            frames += 1;
            frame_ns += period_ns;
        }
    }
    Ok((frames, took, (now_ns() - start_ns) as f64 / 1e9))
}

/// A gradient with three bits of noise, as a camera has it.
fn picture() -> Vec<u8> {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 29) as u8
    };
    (0..FRAME_BYTES).map(|at| ((at % 1920) / 16) as u8 + noise()).collect()
}

/// A process of this program that ends when its input does.
fn start(words: &[&str]) -> Outcome<Child> {
    let program = std::env::current_exe()?;
    Ok(Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

/// Ends a process and returns what it says.
fn ask(process: &mut Child) -> Outcome<String> {
    let mut input = process.stdin.take().ok_or("no input")?;
    writeln!(input)?;
    let mut line = String::new();
    BufReader::new(process.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    process.wait()?;
    Ok(line.trim().to_owned())
}

/// The thread that waits for the end of a child process's work.
fn asked() -> std::thread::JoinHandle<()> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
    })
}

fn read(domain: u32) -> Outcome<()> {
    let node = Node::builder("reader").domain(domain).keep_notices().open()?;
    let (mut imu, mut camera) = (node.subscriber("/imu").open()?, node.subscriber("/camera").open()?);
    // It is looked at where it lies; a robot that works with it does more.
    std::thread::spawn(move || while camera.receive(Some(Duration::from_secs(1))).is_ok() {});
    let (asked, mut latencies_ns) = (asked(), Vec::new());
    while !asked.is_finished() {
        if let Some(sample) = imu.receive(Some(Duration::from_millis(50)))? {
            let received_ns = now_ns();
            let bytes: Vec<u8> = sample.to_vec();
            let sent_ns = bytes.first_chunk().map_or(received_ns, |bytes| i64::from_le_bytes(*bytes));
            latencies_ns.push(received_ns - sent_ns);
        }
    }
    println!("{}", quantiles(&mut latencies_ns));
    Ok(())
}

fn record(domain: u32, path: &Path, lz4: bool) -> Outcome<()> {
    let node = Node::builder("recorder").domain(domain).keep_notices().open()?;
    let recording = Recording::create(path, Limits::default(), Format { lz4 })?;
    let selection = Selection { topics: Vec::new(), queue_bytes_max: QUEUE_BYTES };
    let mut recorder =
        Recorder::start(node, recording, selection, Box::new(|_, _, _| None), Alarms::default())?;
    let asked = asked();
    while !asked.is_finished() {
        recorder.look();
        sleep_until(now_ns() + 50_000_000);
    }
    let (counts, ended) = recorder.finish();
    ended?;
    let count = counts.get("/camera").copied().unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let peak_mb = peak.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1e3;
    let cpu_s = noctule_sys::clock::process_cpu_ns() as f64 / 1e9;
    println!(
        "{} {} {} {} {};{peak_mb:.0} MB | {cpu_s:.1} s",
        count.recorded, count.missed, count.left_out, count.not_written, count.bytes
    );
    Ok(())
}

/// p50/p99/max in microseconds.
fn quantiles(ns: &mut [i64]) -> String {
    ns.sort_unstable();
    let at = |share: f64| ns.get((ns.len() as f64 * share) as usize).map_or(0.0, |ns| *ns as f64 / 1e3);
    let max = ns.last().map_or(0.0, |ns| *ns as f64 / 1e3);
    format!("{:.0} / {:.0} / {max:.0}", at(0.5), at(0.99))
}
