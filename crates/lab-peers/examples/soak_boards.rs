//! A board on a bad line, for long: every sample that is lost is counted by one side.
//!
//! `noctule gateway` on one end of a serial line of 921600 baud, a program that is the board of `c/examples` on the
//! other, and this program as the application on the bus: it publishes and subscribes 100 times a second, reliably
//! and at best effort. One byte in a hundred is hit, each way; now and then the line is unplugged for half a second.
//!
//! Samples are numbers, so each side knows what the other sent. The sums must agree: what was published on the bus is
//! what the board received, what the gateway let newer samples replace, and what the board saw missing on the line;
//! what the board published is what arrived here and the gaps that the gateway saw. Prints one line of JSON; what
//! does not add up is printed to the error output, and the exit code is 1.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};

use noctule::{Format, Node, Publisher, Reliability, Subscriber};
use noctule_link_emulator::serial::{SerialPump, SerialReport, Unplug};
use noctule_netsim::link::parse_share;
use noctule_netsim::serial::{Noise, SerialSpec};
use noctule_sys::clock::{now_ns, sleep_until};
use serde_json::{Value, json};

const USAGE: &str = "soak_boards NOCTULE SECONDS UNPLUGS both|first SEED BOARD: the program `noctule`, how long, how \
    often the line is unplugged and which ends go then, of the noise, and a command line that is the board, in which \
    {} stands for its device";
const BAUD: u32 = 921_600;
const PERIOD_NS: i64 = 10_000_000;
const SECOND_NS: i64 = 1_000_000_000;
const UNPLUGGED_NS: i64 = SECOND_NS / 2;
/// Everything has found everything by then, or never will.
const READY_NS: i64 = 30 * SECOND_NS;
/// A board on the bus again later than this has failed.
const BACK_MS_MAX: i64 = 1_000;
/// Share of the run after which the gateway has touched all memory that it needs.
const SETTLED: f64 = 0.2;
/// The gateway may grow by so much after that: pages of the allocator, not samples.
const GROWTH_KIB_MAX: u64 = 256;
/// A number so far ahead is none: a garbled frame in 65536 passes its checksum.
const JUMP_MAX: u64 = 100_000;
/// Garbled messages that may pass for good ones in ten minutes, two or three of 65536.
const GARBLED_MAX: u64 = 3;
/// One message of the board holds so many samples of the counters at most: those that it publishes while unplugged.
const SAMPLES_OF_A_MESSAGE_MAX: u64 = 16;
const CDR_LE: [u8; 4] = [0, 1, 0, 0];
const UINT32: &str = "std_msgs/msg/UInt32";

type Fault = Box<dyn Error>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [noctule, seconds, unplugs, ends, seed, board] = &words[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let numbers = (seconds.parse().ok(), unplugs.parse().ok(), seed.parse().ok());
    let ends = match ends.as_str() {
        "both" => Some(Unplug::BothEnds),
        "first" => Some(Unplug::FirstEnd),
        _ => None,
    };
    let ((Some(seconds), Some(unplugs), Some(seed)), Some(ends)) = (numbers, ends) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&Plan { noctule, seconds, unplugs, ends, seed, board }) {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            faults.iter().for_each(|fault| eprintln!("does not add up: {fault}"));
            ExitCode::FAILURE
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

struct Plan<'a> {
    noctule: &'a str,
    seconds: i64,
    unplugs: i64,
    ends: Unplug,
    seed: u64,
    board: &'a str,
}

/// A program that ends with this one, and what it printed.
struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    fn start(line: &str) -> Result<Program, Fault> {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("exec {line}")]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let (said, lines) = channel();
        // Ends with the program's output.
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| said.send(line))
        });
        Ok(Program { child, lines })
    }

    /// The newest JSON that it has printed, if it is new.
    fn newest(&self) -> Option<Value> {
        self.lines.try_iter().filter_map(|line| serde_json::from_str(&line).ok()).last()
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Resident memory that belongs to no file: code that runs for the first time does not count.
    fn memory_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// Asks it to end, and takes its last words.
    fn finish(mut self) -> Result<Vec<Value>, Fault> {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(self.lines.iter().filter_map(|line| serde_json::from_str(&line).ok()).collect())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Numbers that arrive, each once and rising.
struct Numbers {
    subscriber: Subscriber,
    first: Option<u64>,
    next: u64,
    received: u64,
    missing: u64,
    garbled: u64,
}

impl Numbers {
    fn open(node: &Node, topic: &str, reliability: Reliability) -> Result<Numbers, Fault> {
        let subscriber = node.subscriber(topic).formats(&[Format::Cdr]).reliability(reliability).open()?;
        Ok(Numbers { subscriber, first: None, next: 0, received: 0, missing: 0, garbled: 0 })
    }

    fn take_all(&mut self) -> Result<(), Fault> {
        let mut bytes = [0; 256];
        while let Some(info) = self.subscriber.take_into(&mut bytes)? {
            let number = bytes[..info.length_bytes]
                .get(4..8)
                .and_then(|number| number.try_into().ok())
                .map(u32::from_le_bytes);
            let number = number.map(u64::from);
            match number.filter(|number| (self.next..self.next + JUMP_MAX).contains(number)) {
                None => self.garbled += 1,
                Some(number) => {
                    let first = *self.first.get_or_insert(number);
                    self.missing += number - self.next.max(first);
                    self.next = number + 1;
                    self.received += 1;
                }
            }
        }
        Ok(())
    }

    fn json(&self, sent: u64) -> Value {
        json!({
            "sent": sent, "before_the_reader_was_known": self.first, "received": self.received, "lost": self.missing,
            "garbled": self.garbled, "after_the_last": sent.saturating_sub(self.next),
            "missed_by_the_bus": self.subscriber.counters().missed,
        })
    }
}

/// The application.
struct Application {
    up: Numbers,
    up_fast: Numbers,
    tasks: Subscriber,
    reports: u64,
    down: [Publisher; 2],
    published: u64,
    _node: Node,
}

impl Application {
    fn open(domain: u32) -> Result<Application, Fault> {
        let node = Node::builder("application").domain(domain).open()?;
        let publisher = |topic: &str, reliability| {
            let builder = node.publisher(topic).type_name(UINT32, 0).format(Format::Cdr);
            builder.reliability(reliability).keep_last(64).open()
        };
        Ok(Application {
            up: Numbers::open(&node, "/board/up", Reliability::Reliable)?,
            up_fast: Numbers::open(&node, "/board/up_fast", Reliability::BestEffort)?,
            tasks: node.subscriber("/board/tasks").formats(&[Format::Cdr]).open()?,
            reports: 0,
            down: [
                publisher("/board/down", Reliability::Reliable)?,
                publisher("/board/down_fast", Reliability::BestEffort)?,
            ],
            published: 0,
            _node: node,
        })
    }

    fn take_all(&mut self) -> Result<(), Fault> {
        self.up.take_all()?;
        self.up_fast.take_all()?;
        while self.tasks.take()?.is_some() {
            self.reports += 1;
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), Fault> {
        let number = (self.published as u32).to_le_bytes();
        for publisher in &mut self.down {
            publisher.publish(&[CDR_LE, number].concat())?;
        }
        self.published += 1;
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        self.down.iter().all(|publisher| publisher.readers() > 0)
            && self.up.received > 0
            && self.up_fast.received > 0
    }
}

/// Unplugs, plugs in, and measures how long nothing came from the board after that.
struct Plug<'a> {
    line: &'a SerialPump,
    ends: Unplug,
    unplug_at_ns: Vec<i64>,
    plug_at_ns: Option<i64>,
    /// When it was plugged in, and what was known then.
    plugged: Option<(i64, u64)>,
    back_ns: Vec<i64>,
}

impl Plug<'_> {
    fn turn(&mut self, now_ns: i64, heard: u64) -> Result<(), Fault> {
        if self.plug_at_ns.take_if(|at_ns| *at_ns <= now_ns).is_some() {
            self.line.plug()?;
            self.plugged = Some((now_ns, heard));
        }
        if self.unplug_at_ns.last().is_some_and(|at_ns| *at_ns <= now_ns) {
            self.unplug_at_ns.pop();
            self.line.unplug(self.ends)?;
            self.plug_at_ns = Some(now_ns + UNPLUGGED_NS);
        }
        if let Some((at_ns, _)) = self.plugged.take_if(|(_, before)| heard > *before) {
            self.back_ns.push(now_ns - at_ns);
        }
        Ok(())
    }
}

/// Counts by name, as a program printed them.
struct Counts(Value);

impl Counts {
    fn of(&self, name: &str) -> Result<u64, Fault> {
        self.0.get(name).and_then(Value::as_u64).ok_or_else(|| format!("no count {name}").into())
    }
}

/// Observations from outside of the gateway and the boards.
struct Seen {
    /// Silence of the board after each plugging in, ns.
    back_ns: Vec<i64>,
    /// Resident memory of the gateway, once a second.
    memory_kib: Vec<u64>,
}

/// The result.
struct Outcome {
    application: Application,
    seen: Seen,
    board: Counts,
    gateway: Counts,
    line: SerialReport,
}

fn run(plan: &Plan<'_>) -> Result<Vec<String>, Fault> {
    let folder = tempfile::tempdir()?;
    let paths = ["gateway", "board"].map(|end| folder.path().join(end));
    let noise = parse_share("1%").map(Noise::of).ok_or("no share")?;
    let spec = SerialSpec { baud: BAUD, noise, ..SerialSpec::default() };
    let line = SerialPump::start(spec, plan.seed, paths.clone())?;
    let domain = 1000 + std::process::id() % 4000;
    let [gateway_end, board_end] = paths.map(|path| path.display().to_string());
    let serial = format!("{gateway_end}:{BAUD}");
    let gateway = format!("{} gateway --serial {serial} --domain {domain} --json --every 1", plan.noctule);
    let gateway = Program::start(&gateway)?;
    let mut application = Application::open(domain)?;
    let mut board = Program::start(&plan.board.replace("{}", &board_end))?;
    let timeout_ns = now_ns() + READY_NS;
    while !application.is_ready() {
        sleep_until(now_ns() + PERIOD_NS);
        application.take_all()?;
        if now_ns() > timeout_ns || board.has_ended() {
            return Err(
                format!("the board is not on the bus; the gateway says {:?}", gateway.newest()).into()
            );
        }
    }
    let seen = exchange(plan, &mut application, &line, (&gateway, &mut board))?;
    let counts = board.lines.iter().filter_map(|line| serde_json::from_str(&line).ok()).last();
    let board = Counts(counts.ok_or("the board said nothing")?);
    let reports = gateway.finish()?;
    let last = reports.iter().filter_map(|report| report.pointer("/lines/0")).next_back();
    let gateway = Counts(last.cloned().ok_or("the gateway said nothing")?);
    let outcome = Outcome { application, seen, board, gateway, line: line.stop()? };
    outcome.print(plan)?;
    outcome.judge(plan)
}

/// Publishes and takes until the board has ended.
fn exchange(
    plan: &Plan<'_>,
    application: &mut Application,
    line: &SerialPump,
    (gateway, board): (&Program, &mut Program),
) -> Result<Seen, Fault> {
    let begin_ns = now_ns();
    let end_ns = begin_ns + plan.seconds * SECOND_NS;
    let unplug = |time| begin_ns + plan.seconds * SECOND_NS * time / (plan.unplugs + 1);
    let mut plug = Plug {
        line,
        ends: plan.ends,
        unplug_at_ns: (1..=plan.unplugs).rev().map(unplug).collect(),
        plug_at_ns: None,
        plugged: None,
        back_ns: Vec::new(),
    };
    let mut memory_kib = Vec::new();
    let mut at_ns = begin_ns;
    while !board.has_ended() {
        at_ns += PERIOD_NS;
        sleep_until(at_ns);
        application.take_all()?;
        plug.turn(now_ns(), application.up.received + application.up_fast.received)?;
        if at_ns < end_ns {
            application.publish()?;
        }
        if at_ns / SECOND_NS != (at_ns - PERIOD_NS) / SECOND_NS {
            memory_kib.extend(gateway.memory_kib());
        }
        if at_ns > end_ns + READY_NS {
            return Err("the board does not end; give it a few seconds more than this program".into());
        }
    }
    // Samples on their way.
    sleep_until(now_ns() + SECOND_NS / 2);
    application.take_all()?;
    Ok(Seen { back_ns: plug.back_ns, memory_kib })
}

/// One stream to the board, by the numbers that it saw.
struct Downward {
    before: u64,
    received: u64,
    lost: u64,
    after: u64,
}

impl Outcome {
    fn downward(&self, name: &str) -> Result<Downward, Fault> {
        let count = |what: &str| self.board.of(&format!("{name}{what}"));
        let (received, lost, next) = (count("")?, count("_missing")?, count("_next")?);
        let before = next.saturating_sub(received + lost);
        Ok(Downward { before, received, lost, after: self.application.published.saturating_sub(next) })
    }

    /// Memory of the gateway when it had settled, and at its largest.
    fn memory(&self) -> (u64, u64) {
        let settled = (self.seen.memory_kib.len() as f64 * SETTLED) as usize;
        let largest = self.seen.memory_kib.iter().copied().max();
        (self.seen.memory_kib.get(settled).copied().unwrap_or(0), largest.unwrap_or(0))
    }

    fn print(&self, plan: &Plan<'_>) -> Result<(), Fault> {
        let Application { up, up_fast, published, .. } = &self.application;
        let downward = |name| {
            let Downward { before, received, lost, after } = self.downward(name)?;
            Ok::<_, Fault>(json!({
                "sent": published, "before_the_reader_was_known": before, "received": received, "lost": lost,
                "after_the_last": after,
            }))
        };
        let (settled, largest) = self.memory();
        let outcome = json!({
            "seconds": plan.seconds, "seed": plan.seed, "unplugged": plan.unplugs, "back_ns": self.seen.back_ns,
            "up": up.json(self.board.of("up")?), "up_fast": up_fast.json(self.board.of("up_fast")?),
            "down": downward("down")?, "down_fast": downward("down_fast")?,
            "reports": { "sent": self.board.of("reports")?, "received": self.application.reports },
            "gateway_memory_kib": { "settled": settled, "largest": largest, "last": self.seen.memory_kib.last() },
            "board": self.board.0, "gateway": self.gateway.0, "line": self.line,
        });
        println!("{outcome}");
        Ok(())
    }

    /// Contradictions between the counts of application, board and gateway.
    fn judge(&self, plan: &Plan<'_>) -> Result<Vec<String>, Fault> {
        let (board, gateway) = (|name| self.board.of(name), |name| self.gateway.of(name));
        let Application { up, up_fast, .. } = &self.application;
        let (unplugs, due) = (plan.unplugs.unsigned_abs(), plan.seconds.unsigned_abs() * 100);
        let mut faults = Vec::new();
        let mut require = |holds: bool, what: String| faults.extend((!holds).then_some(what));

        // On a busy machine a window of reliable samples turns over more slowly; the board refuses what finds it full, and counts it.
        let refused = board("refused")?;
        let few = up.received + refused < due * 9 / 10 || up.received.min(up_fast.received) < due / 2;
        require(
            !few,
            format!(
                "of {due} samples of each stream {} and {} came up, {refused} were refused",
                up.received, up_fast.received
            ),
        );
        require(up.missing == 0, format!("{} samples missing in the board's reliable stream", up.missing));
        let after = board("up")?.saturating_sub(up.next);
        require(
            after <= board("abandoned")?,
            format!("{after} reliable samples that the board takes for delivered"),
        );
        let missed = up.subscriber.counters().missed + up_fast.subscriber.counters().missed;
        require(missed == 0, format!("{missed} samples between gateway and application"));
        let lost = up_fast.missing + board("reports")?.saturating_sub(self.application.reports);
        let seen = gateway("lost")?;
        require(
            seen <= lost + GARBLED_MAX && lost <= 2 * seen + unplugs * SAMPLES_OF_A_MESSAGE_MAX,
            format!(
                "{lost} best-effort samples of the board lost, {seen} messages seen missing by the gateway"
            ),
        );

        let (down, fast) = (self.downward("down")?, self.downward("down_fast")?);
        // Samples that a line with noise, cut twice, does not carry in time are replaced by newer ones and counted; on a busy machine that was half.
        require(
            down.received >= due * 4 / 10,
            format!("of {due} reliable samples {} came down", down.received),
        );
        let lost = down.lost + down.after + fast.lost + fast.after;
        let counted =
            gateway("replaced")? + gateway("missed")? + gateway("undeliverable")? + board("lost_messages")?;
        require(
            lost.abs_diff(counted) <= GARBLED_MAX,
            format!("{lost} samples for the board lost, {counted} counted by gateway and board"),
        );

        let garbled = up.garbled + up_fast.garbled;
        require(garbled <= GARBLED_MAX, format!("{garbled} samples garbled and not noticed"));
        let worst_ms = self.seen.back_ns.iter().max().map_or(0, |back_ns| back_ns / 1_000_000);
        let back = self.seen.back_ns.len() as u64;
        require(
            back == unplugs && worst_ms < BACK_MS_MAX,
            format!("back on the bus {back} times of {unplugs}, at worst after {worst_ms} ms"),
        );
        require(board("sessions")? == 1, "more than one session".into());
        let (settled, largest) = self.memory();
        require(
            largest <= settled + GROWTH_KIB_MAX,
            format!("the gateway grew from {settled} to {largest} KiB"),
        );
        Ok(faults)
    }
}
