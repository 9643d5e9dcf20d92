//! The three processes of the tele-operation, and the one that starts them.

use std::error::Error;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use noctule::Node;
use noctule_arm::controller::{CommandMode, ControllerConfig};
use noctule_arm::hand::Hand;
use noctule_netsim::link::{LinkSpec, parse_time};
use noctule_teleop::master::{MasterConfig, Source};
use noctule_teleop::page::PageConfig;
use noctule_teleop::{drive, master as master_process, page as page_process};
use noctule_timebase::Span;
use serde_json::json;

use crate::Outcome;
use crate::page_window::open_browser;
use crate::stop::Stop;
use crate::swarm::seconds;

/// Domain of a loop of its own, so that it meets nobody else.
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

/// What all processes share.
#[derive(Clone, clap::Args)]
struct Common {
    /// Nodes of different domains do not see each other: 0 to 5000
    #[arg(long, value_name = "N", default_value_t = LOOP_DOMAIN)]
    domain: u32,
    /// A command older than this stops the arm
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "100ms")]
    deadline: Span,
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
    /// A link that poses pass before they are published, e.g. "delay=20ms loss=2%"
    #[arg(long, value_name = "SPEC")]
    link: Option<String>,
    /// Of the link
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

/// Of the page.
#[derive(Clone, clap::Args)]
struct Window {
    /// Where the page listens; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Print the page's address and open no browser
    #[arg(long)]
    no_open: bool,
    /// Record the arm's states as MCAP
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
    /// A link between operator and arm, e.g. "delay=20ms loss=2%"
    #[arg(long, value_name = "SPEC")]
    link: Option<String>,
}

fn time(text: &str) -> Result<Span, String> {
    parse_time(text).ok_or_else(|| format!("\"{text}\" is no time; write e.g. 20ms"))
}

/// When a process ends: Ctrl-C, its time, or the end of its standard input.
struct End {
    stop: Stop,
    input_ended: Arc<AtomicBool>,
}

impl End {
    fn new(common: &Common) -> Result<End, Box<dyn Error>> {
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

    fn is_due(&self) -> bool {
        self.stop.is_due() || self.input_ended.load(Ordering::Relaxed)
    }
}

fn node(common: &Common, name: &str) -> Result<Node, Box<dyn Error>> {
    Ok(Node::builder(name).domain(common.domain).open()?)
}

pub(crate) fn controller(arguments: &ControllerArguments) -> Result<Outcome, Box<dyn Error>> {
    let end = End::new(&arguments.common)?;
    let node = node(&arguments.common, "controller")?;
    // Without it the kernel may wake a sleeper 50 µs late; refused, the lateness is larger and is counted.
    let _ = noctule_sys::scheduling::set_exact_timers();
    let config = ControllerConfig {
        mode: arguments.command,
        deadline: arguments.common.deadline,
        ..ControllerConfig::default()
    };
    let lateness = drive::run(&node, config, &|| end.is_due())?;
    anstream::eprintln!(
        "noctule: {} periods, {} of them late, the latest by {:.2} ms; `noctule doctor` says what may be the cause",
        lateness.periods,
        lateness.late_periods,
        lateness.worst_ns as f64 * 1e-6
    );
    Ok(if lateness.is_valid() { Outcome::Done } else { Outcome::NotValid })
}

pub(crate) fn master(arguments: &MasterArguments) -> Result<Outcome, Box<dyn Error>> {
    let end = End::new(&arguments.common)?;
    let link: Option<LinkSpec> = arguments.link.as_deref().map(str::parse).transpose()?;
    let node = node(&arguments.common, "master")?;
    let config = MasterConfig {
        source: arguments.operator.source(),
        link: link.map(|link| link.a_to_b),
        deadline: Duration::from_nanos(arguments.common.deadline.ns().max(0) as u64),
        seed: arguments.seed,
    };
    master_process::run(&node, &config, &|| end.is_due())?;
    Ok(Outcome::Done)
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
    let config = PageConfig { listen: window.listen, record: window.record.clone(), replay, subtitle };
    let opened = |url: &str| {
        anstream::println!("{url}");
        if !window.no_open && !open_browser(url) {
            anstream::eprintln!("noctule: no browser could be started; open the address above in one");
        }
    };
    page_process::run(&node, &config, &opened, is_due)?;
    Ok(Outcome::Done)
}

pub(crate) fn whole(arguments: &WholeArguments) -> Result<Outcome, Box<dyn Error>> {
    let WholeArguments { controller, window, operator, link } = arguments;
    if let Some(link) = link {
        // Refused here, with its sentence, rather than by a process that ends behind the page.
        link.parse::<LinkSpec>()?;
    }
    let common = &controller.common;
    let mode = match controller.command {
        CommandMode::Hold => "hold",
        CommandMode::Age => "age",
    };
    let shared = [
        "--domain".to_owned(),
        common.domain.to_string(),
        "--deadline".to_owned(),
        format!("{}ns", common.deadline.ns()),
        "--until-input-ends".to_owned(),
    ];
    let mut of_master = vec!["master".to_owned(), "--operator".to_owned(), operator.word().to_owned()];
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
    let subtitle = format!("commands: {mode}; link: {link}; operator: {}", operator.word());
    let shown = show(common, window, None, subtitle, &|| end.is_due());
    drop(children);
    shown
}

/// A process of the loop; ends with its standard input.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn start(own: &[String], shared: &[String]) -> Result<Started, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.arg("teleop").args(own).args(shared).stdin(Stdio::piped()).stdout(Stdio::null());
    Ok(Started(command.spawn()?))
}
