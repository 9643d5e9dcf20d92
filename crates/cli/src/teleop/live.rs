//! The three processes of the tele-operation, and the one that starts them.

use std::error::Error;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use noctule_arm::controller::{CommandMode, ControllerConfig};
use noctule_arm::hand::Hand;
use noctule_netsim::link::{LinkSpec, parse_time};
use noctule_teleop::master::device::DeviceKind;
use noctule_teleop::master::trajectory::Trajectory;
use noctule_teleop::master::{DeviceError, MasterConfig, Source};
use noctule_teleop::page::PageConfig;
use noctule_teleop::{drive, master as master_process, page as page_process};
use noctule_timebase::Span;
use serde_json::json;

use super::time_keeping::{TimeKeeping, open};
use crate::Outcome;
use crate::argument::ArgumentError;
use crate::page_window::open_browser;
use crate::stop::Stop;
use crate::swarm::seconds;

/// A command's age must be known this much better than its deadline: what is less certain cannot be judged by it.
const BOUNDS_IN_DEADLINE: i64 = 5;
/// Domain of a loop of its own, so that it meets no other node.
const LOOP_DOMAIN: u32 = 4_322;

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Operator {
    /// The browser that operates
    Page,
    /// A hand that draws a figure of ±100 mm
    Figure,
    /// A hand that goes around a square of 100 mm
    Square,
    /// A hand that reaches for targets on a circle
    Targets,
}

impl Operator {
    fn source(self) -> Source {
        match self {
            Operator::Page => Source::Page,
            Operator::Figure => Source::Synthetic(Hand::FIGURE),
            Operator::Square => Source::Synthetic(Hand::Square { side_m: 0.1, reach_s: 0.8, rest_s: 0.2 }),
            Operator::Targets => {
                Source::Synthetic(Hand::Targets { count: 9, diameter_m: 0.12, reach_s: 0.8, rest_s: 0.2 })
            }
        }
    }

    fn word(self) -> &'static str {
        match self {
            Operator::Page => "page",
            Operator::Figure => "figure",
            Operator::Square => "square",
            Operator::Targets => "targets",
        }
    }
}

/// Arguments that all processes share.
#[derive(Clone, clap::Args)]
pub(super) struct Common {
    /// Nodes of different domains do not see each other: 0 to 5000
    #[arg(long, value_name = "N", default_value_t = LOOP_DOMAIN, value_parser = clap::value_parser!(u32).range(0..=5_000))]
    pub(super) domain: u32,
    /// Use only the network interface with this address; 127.0.0.1 by default if all processes are started together: what moves the arm
    /// is then not reachable from other machines
    #[arg(long, value_name = "ADDRESS")]
    pub(super) interface: Option<Ipv4Addr>,
    /// A command older than this stops the arm
    #[arg(long, value_name = "TIME", value_parser = command_deadline, default_value = "100ms")]
    deadline: Span,
    /// SCHED_FIFO priority of the loop, 1 to 99, with memory locked and cores kept awake where that is allowed; needs CAP_SYS_NICE
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(super) priority: Option<u32>,
    /// Reach processes of this host by the network, too, as an emulated link needs it
    #[arg(long)]
    pub(super) no_shared_memory: bool,
    /// How long; until Ctrl-C by default
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    /// End when standard input ends: the process that started this one has gone
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

#[derive(Clone, clap::Args)]
pub(crate) struct ControllerArguments {
    #[command(flatten)]
    common: Common,
    /// Use a command as it is, or extrapolate it by its age
    #[arg(long, value_name = "hold|age", default_value = "age")]
    command: CommandMode,
}

#[derive(Clone, clap::Args)]
pub(crate) struct MasterArguments {
    #[command(flatten)]
    common: Common,
    /// Whose hand
    #[arg(long, value_enum, default_value = "page")]
    operator: Operator,
    /// A device or a recorded hand instead: mouse:/dev/input/event3, touchpad:…, gamepad:…, file:HAND.csv, file:RUN.mcap
    #[arg(long, value_name = "KIND:PATH", value_parser = input, conflicts_with = "operator")]
    input: Option<Input>,
    /// Resolution of a touchpad, counts per mm; by default what its driver states
    #[arg(long, value_name = "COUNTS", value_parser = counts_per_mm)]
    counts_per_mm: Option<f64>,
    /// A link that poses pass before they are published, e.g. "delay=20ms loss=2%"
    #[arg(long, value_name = "SPEC")]
    link: Option<String>,
    /// Seed of the link
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, clap::Args)]
pub(crate) struct PageArguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    window: Window,
    /// Show a recording instead of a live arm
    #[arg(long, value_name = "FILE.mcap")]
    replay: Option<PathBuf>,
}

/// Settings of the page.
#[derive(Clone, clap::Args)]
struct Window {
    /// Where the page listens; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Print the page's address and open no browser
    #[arg(long)]
    no_open: bool,
    /// Record commands and states as MCAP
    #[arg(long, value_name = "FILE.mcap")]
    record: Option<PathBuf>,
}

#[derive(Clone, clap::Args)]
pub(crate) struct WholeArguments {
    #[command(flatten)]
    controller: ControllerArguments,
    #[command(flatten)]
    window: Window,
    /// Whose hand
    #[arg(long, value_enum, default_value = "page")]
    operator: Operator,
    /// A device or a recorded hand instead: mouse:/dev/input/event3, touchpad:…, gamepad:…, file:HAND.csv, file:RUN.mcap
    #[arg(long, value_name = "KIND:PATH", value_parser = input, conflicts_with = "operator")]
    input: Option<Input>,
    /// Resolution of a touchpad, counts per mm; by default what its driver states
    #[arg(long, value_name = "COUNTS", value_parser = counts_per_mm)]
    counts_per_mm: Option<f64>,
    /// A link between operator and arm, e.g. "delay=20ms loss=2%"
    #[arg(long, value_name = "SPEC")]
    link: Option<String>,
}

/// Input device that `--input` names.
#[derive(Clone)]
struct Input {
    kind: InputKind,
    path: PathBuf,
    text: String,
}

#[derive(Clone, Copy)]
enum InputKind {
    Mouse,
    Touchpad,
    Gamepad,
    File,
}

fn input(text: &str) -> Result<Input, ArgumentError> {
    let fault = || ArgumentError::Input(text.to_owned());
    let (kind, path) = text.split_once(':').filter(|(_, path)| !path.is_empty()).ok_or_else(fault)?;
    let kind = match kind {
        "mouse" => InputKind::Mouse,
        "touchpad" => InputKind::Touchpad,
        "gamepad" => InputKind::Gamepad,
        "file" => InputKind::File,
        _ => return Err(fault()),
    };
    Ok(Input { kind, path: path.into(), text: text.to_owned() })
}

impl Input {
    fn source(&self, counts_per_mm: Option<f64>) -> Result<Source, Box<dyn Error>> {
        let kind = match self.kind {
            InputKind::Mouse => DeviceKind::Mouse,
            InputKind::Touchpad => DeviceKind::Touchpad { counts_per_mm },
            InputKind::Gamepad => DeviceKind::Gamepad,
            InputKind::File => return Ok(Source::Trajectory(Trajectory::read(&self.path)?)),
        };
        Ok(Source::Device(kind, self.path.clone()))
    }

    /// Refuses what a master would refuse as soon as it begins. A device is not opened: a pipe's writer would see it go.
    fn check(&self, counts_per_mm: Option<f64>) -> Result<(), Box<dyn Error>> {
        if let Source::Device(_, path) = self.source(counts_per_mm)? {
            rustix::fs::access(&path, rustix::fs::Access::READ_OK)
                .map_err(|error| DeviceError::Open { path, source: error.into() })?;
        }
        Ok(())
    }
}

fn counts_per_mm(text: &str) -> Result<f64, ArgumentError> {
    let number = text.parse().ok().filter(|number| (0.1..=1_000.0).contains(number));
    number.ok_or_else(|| ArgumentError::CountsPerMm(text.to_owned()))
}

pub(super) fn time(text: &str) -> Result<Span, ArgumentError> {
    parse_time(text).ok_or_else(|| ArgumentError::Time(text.to_owned()))
}

fn command_deadline(text: &str) -> Result<Span, ArgumentError> {
    let deadline =
        parse_time(text).filter(|deadline| (Span::from_ms(1)..=Span::from_s(10)).contains(deadline));
    deadline.ok_or_else(|| ArgumentError::CommandDeadline(text.to_owned()))
}

/// When a process ends: Ctrl-C, its time, or the end of its standard input.
pub(super) struct End {
    stop: Stop,
    input_ended: Arc<AtomicBool>,
}

impl End {
    pub(super) fn new(common: &Common) -> Result<End, Box<dyn Error>> {
        let input_ended = Arc::new(AtomicBool::new(false));
        if common.until_input_ends {
            let ended = Arc::clone(&input_ended);
            let work = move || {
                let mut byte = [0];
                while matches!(std::io::stdin().read(&mut byte), Ok(1..)) {}
                ended.store(true, Ordering::Relaxed);
            };
            std::thread::Builder::new().name("end-of-input".into()).spawn(work)?;
        }
        Ok(End { stop: Stop::after(common.seconds)?, input_ended })
    }

    pub(super) fn is_due(&self) -> bool {
        self.stop.is_due() || self.input_ended.load(Ordering::Relaxed)
    }
}

/// Joins, as the arguments say.
pub(super) fn node(common: &Common, name: &str) -> Result<noctule::Node, Box<dyn Error>> {
    let mut builder = noctule::Node::builder(name).domain(common.domain);
    if let Some(address) = common.interface {
        builder = builder.interface(address);
    }
    open(if common.no_shared_memory { builder.without_shared_memory() } else { builder }, common.priority)
}

pub(crate) fn controller(arguments: &ControllerArguments) -> Result<Outcome, Box<dyn Error>> {
    let end = End::new(&arguments.common)?;
    let node = node(&arguments.common, "controller")?;
    let kept = TimeKeeping::begin(arguments.common.priority)?;
    let deadline = arguments.common.deadline;
    let mut config = ControllerConfig { mode: arguments.command, deadline, ..ControllerConfig::default() };
    config.validator.age_bound_max = deadline / BOUNDS_IN_DEADLINE;
    let lateness = drive::run(&node, config, &|| end.is_due())?;
    Ok(kept.judged("controller", &lateness))
}

pub(crate) fn master(arguments: &MasterArguments) -> Result<Outcome, Box<dyn Error>> {
    let end = End::new(&arguments.common)?;
    let link: Option<LinkSpec> = arguments.link.as_deref().map(str::parse).transpose()?;
    let source = match &arguments.input {
        Some(input) => input.source(arguments.counts_per_mm)?,
        None => arguments.operator.source(),
    };
    let node = node(&arguments.common, "master")?;
    let kept = TimeKeeping::begin(arguments.common.priority)?;
    let config = MasterConfig {
        source,
        link: link.map(|link| link.a_to_b),
        deadline: Duration::from_nanos(arguments.common.deadline.ns().max(0) as u64),
        seed: arguments.seed,
    };
    let lateness = master_process::run(&node, &config, &|| end.is_due())?;
    Ok(kept.judged("master", &lateness))
}

pub(crate) fn page(arguments: &PageArguments) -> Result<Outcome, Box<dyn Error>> {
    let subtitle = match &arguments.replay {
        Some(path) => format!("recording {}", path.display()),
        None => String::new(),
    };
    let end = End::new(&arguments.common)?;
    show(&arguments.common, &arguments.window, arguments.replay.clone(), subtitle, &|| end.is_due())
}

fn show(
    common: &Common,
    window: &Window,
    replay: Option<PathBuf>,
    subtitle: String,
    is_due: &dyn Fn() -> bool,
) -> Result<Outcome, Box<dyn Error>> {
    let node = node(common, "page")?;
    let (listen, record, deadline) = (window.listen, window.record.clone(), common.deadline);
    let config = PageConfig { listen, record, replay, subtitle, deadline };
    let opened = |url: &str| {
        anstream::println!("{url}");
        if !window.no_open && !open_browser(url) {
            anstream::eprintln!("noctule: no browser could be started; open the address above in one");
        }
    };
    if let Some(counts) = page_process::run(&node, &config, &opened, is_due)? {
        anstream::eprintln!(
            "noctule: {} states and {} commands recorded, {} samples missed",
            counts.states,
            counts.commands,
            counts.missed
        );
    }
    Ok(Outcome::Done)
}

pub(crate) fn whole(arguments: &WholeArguments) -> Result<Outcome, Box<dyn Error>> {
    let WholeArguments { controller, window, operator, input, counts_per_mm, link } = arguments;
    if let Some(link) = link {
        // Refused here, with its sentence, rather than by a process that ends behind the page.
        link.parse::<LinkSpec>()?;
    }
    if let Some(input) = input {
        input.check(*counts_per_mm)?;
    }
    let interface = controller.common.interface.unwrap_or(Ipv4Addr::LOCALHOST);
    let common = &Common { interface: Some(interface), ..controller.common.clone() };
    let mode = match controller.command {
        CommandMode::Hold => "hold",
        CommandMode::Age => "age",
    };
    let mut shared = vec![
        "--domain".to_owned(),
        common.domain.to_string(),
        "--interface".to_owned(),
        interface.to_string(),
        "--deadline".to_owned(),
        format!("{}ns", common.deadline.ns()),
        "--until-input-ends".to_owned(),
    ];
    if let Some(priority) = common.priority {
        shared.extend(["--priority".to_owned(), priority.to_string()]);
    }
    let (option, hand) = match input {
        Some(input) => ("--input", input.text.clone()),
        None => ("--operator", operator.word().to_owned()),
    };
    let mut of_master = vec!["master".to_owned(), option.to_owned(), hand.clone()];
    if let Some(counts) = counts_per_mm {
        of_master.extend(["--counts-per-mm".to_owned(), counts.to_string()]);
    }
    if let Some(link) = link {
        of_master.extend(["--link".to_owned(), link.clone()]);
    }
    let of_controller = vec!["controller".to_owned(), "--command".to_owned(), mode.to_owned()];
    let mut children = Vec::new();
    for (name, own) in [("controller", of_controller), ("master", of_master)] {
        let child = start(&own, &shared)?;
        anstream::eprintln!("{}", json!({ "process": name, "pid": child.0.id() }));
        children.push(child);
    }
    let end = End::new(common)?;
    let link = link.as_deref().unwrap_or("none");
    let subtitle = format!("commands: {mode}; link: {link}; operator: {hand}");
    // The page itself needs no priority: it moves nothing.
    let of_page = Common { priority: None, ..common.clone() };
    let shown = show(&of_page, window, None, subtitle, &|| end.is_due())?;
    // One that was late, and one that had ended with a fault before; each has printed which.
    let are_valid = children.iter_mut().all(|child| child.end() == Some(0));
    Ok(if are_valid { shown } else { Outcome::NotValid })
}

/// A process of the loop; ends with its standard input.
struct Started(Child);

impl Started {
    /// Ends it; returns its exit code, `None` if a signal ended it.
    fn end(&mut self) -> Option<i32> {
        drop(self.0.stdin.take());
        self.0.wait().ok().and_then(|status| status.code())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end();
    }
}

fn start(own: &[String], shared: &[String]) -> Result<Started, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.arg("teleop").args(own).args(shared).stdin(Stdio::piped()).stdout(Stdio::null());
    Ok(Started(command.spawn()?))
}
