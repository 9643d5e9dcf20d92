//! `noctule top`
//!
//! Subscribes, best effort and to any type, to every topic it sees; so it is one more reader of each, and of
//! topics on other hosts it doubles the traffic to this one. A thread per topic takes the samples where they
//! lie, without copying them. What this process is too slow to read it counts as missed, too.

mod recorded;
mod screen;
mod watch;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use noctule::{EndpointKind, Node, WindowStatistics};
use noctule_record::file::is_recording;
use noctule_timebase::Span;
use serde_json::{Value, json};

use crate::Outcome;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds};
use crate::units;
use screen::{Key, Screen};
use watch::Watch;

/// Topics watched at once, 60 kB and a thread each.
const TOPICS_LIMIT: usize = 256;
/// Notices kept for the end.
const NOTICES_LIMIT: usize = 64;
/// Without a terminal, and on one, the figures are shown this often.
const LINES_EVERY: Duration = Duration::from_secs(1);
const REDRAW_EVERY: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub(crate) struct TopArguments {
    /// Only these topics; a name that ends in .mcap, .bag or .ulg is a file, and the topics are those recorded in it
    topics: Vec<String>,
    /// Stop after this many seconds; 5 with --json
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Figures are of the last so many seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "30")]
    window: Duration,
    /// Column to sort by; on a terminal the first letter of each changes it
    #[arg(long, value_enum, default_value_t = Order::Name)]
    sort: Order,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    swarm: SwarmArguments,
}

/// Column that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    Name,
    Rate,
    Age,
    Loss,
    Bytes,
}

pub(crate) fn run(arguments: &TopArguments) -> Result<Outcome, Box<dyn Error>> {
    let mut files = arguments.topics.iter().filter(|name| is_recording(name));
    match (files.next(), files.next()) {
        (None, _) => {}
        (Some(file), None) => return recorded::run(Path::new(file), arguments),
        (Some(_), Some(_)) => return Err("one file at a time".into()),
    }
    let at_most = arguments.seconds.or(arguments.json.then_some(Duration::from_secs(5)));
    let stop = Stop::after(at_most)?;
    let node = arguments.swarm.join_quietly("top")?;
    let mut top =
        Top { node, arguments, watches: BTreeMap::new(), notices: Vec::new(), order: arguments.sort };
    let ended = match (arguments.json, std::io::stdout().is_terminal()) {
        (true, _) => top.follow(&stop, &mut |_, _| Ok(false)),
        (false, false) => top.print(&stop),
        (false, true) => top.draw(&stop),
    };
    top.notices.iter().for_each(|notice| anstream::eprintln!("noctule: {notice}"));
    ended?;
    let rows = top.rows();
    let is_empty = rows.is_empty();
    if arguments.json {
        let topics: Vec<Value> = rows.iter().map(Row::as_json).collect();
        let window_s = arguments.window.as_secs_f64();
        anstream::println!(
            "{}",
            serde_json::to_string_pretty(&json!({ "window_s": window_s, "topics": topics }))?
        );
    }
    if is_empty {
        let what = match arguments.topics.as_slice() {
            [] => "no topic was seen".to_owned(),
            names => format!("nobody published {}", units::printable(&names.join(" or "))),
        };
        anstream::eprintln!("noctule: {}", arguments.swarm.nothing_seen(&what, stop.elapsed(), &top.node));
        return Ok(Outcome::NotValid);
    }
    Ok(Outcome::Done)
}

/// All that is watched.
struct Top<'a> {
    node: Node,
    arguments: &'a TopArguments,
    watches: BTreeMap<String, Watch>,
    /// Each once.
    notices: Vec<String>,
    order: Order,
}

/// Shows the state and says whether to stop.
type Show<'s> = &'s mut dyn FnMut(&mut Top<'_>, &Stop) -> Result<bool, Box<dyn Error>>;

impl Top<'_> {
    /// Watches what comes until it is time to stop.
    fn follow(&mut self, stop: &Stop, show: Show<'_>) -> Result<(), Box<dyn Error>> {
        let every = if self.arguments.json { REDRAW_EVERY / 5 } else { Duration::ZERO };
        while !stop.is_due() {
            self.look()?;
            if show(self, stop)? {
                break;
            }
            stop.wait_until(Instant::now() + every);
        }
        self.look()
    }

    fn print(&mut self, stop: &Stop) -> Result<(), Box<dyn Error>> {
        let mut due = Instant::now() + LINES_EVERY;
        self.follow(stop, &mut |top, stop| {
            stop.wait_until((Instant::now() + REDRAW_EVERY / 5).min(due));
            if Instant::now() >= due || stop.is_due() {
                due += LINES_EVERY;
                let rows = top.rows();
                if !rows.is_empty() {
                    anstream::println!("{}", plain(&rows));
                }
            }
            Ok(false)
        })
    }

    fn draw(&mut self, stop: &Stop) -> Result<(), Box<dyn Error>> {
        let mut screen = Screen::open()?;
        self.follow(stop, &mut |top, _| {
            let (order, notice) = (top.order, top.notices.last().cloned().unwrap_or_default());
            screen.show(&top.rows(), order, &notice)?;
            match screen.key(REDRAW_EVERY)? {
                Some(Key::Quit) => return Ok(true),
                Some(Key::Sort(order)) => top.order = order,
                None => {}
            }
            Ok(false)
        })
    }

    /// Topics that came, topics that went, and notices.
    fn look(&mut self) -> Result<(), Box<dyn Error>> {
        let mut seen = BTreeMap::<String, Ends>::new();
        for known in self.node.endpoints() {
            let wanted = &self.arguments.topics;
            if !wanted.is_empty() && !wanted.contains(&known.endpoint.topic) {
                continue;
            }
            let ends = seen.entry(known.endpoint.topic).or_default();
            match known.endpoint.kind {
                EndpointKind::Writer => {
                    ends.writers += 1;
                    ends.type_name = known.endpoint.type_name;
                }
                EndpointKind::Reader => ends.readers += 1,
            }
        }
        for (topic, ends) in seen.iter().filter(|(_, ends)| ends.writers > 0) {
            if self.watches.contains_key(topic) {
                continue;
            }
            if self.watches.len() >= TOPICS_LIMIT {
                self.note(format!(
                    "{TOPICS_LIMIT} topics are watched, and there are more; name those that matter"
                ));
                break;
            }
            let watch = Watch::start(&self.node, topic, &ends.type_name, self.arguments.window)?;
            self.watches.insert(topic.clone(), watch);
        }
        self.watches.values_mut().for_each(|watch| watch.ends.writers = 0);
        for (topic, ends) in seen {
            if let Some(watch) = self.watches.get_mut(&topic) {
                watch.ends = ends;
            }
        }
        let broken: Vec<String> = self.watches.values().filter_map(Watch::trouble).collect();
        broken.into_iter().for_each(|trouble| self.note(trouble));
        while let Some(notice) = self.node.poll_notice() {
            self.note(units::printable(&notice.to_string()));
        }
        Ok(())
    }

    /// Draws up the windows, and forgets topics of which nothing is left.
    fn refresh(&mut self) {
        let now = self.node.now();
        self.watches.retain(|_, watch| {
            watch.refresh(now);
            watch.ends.writers > 0 || watch.window.samples > 0
        });
    }

    fn note(&mut self, notice: String) {
        if self.notices.len() < NOTICES_LIMIT && !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    fn rows(&mut self) -> Vec<Row<'_>> {
        self.refresh();
        let mut rows: Vec<Row<'_>> = self
            .watches
            .iter()
            .map(|(topic, watch)| Row { topic, ends: &watch.ends, window: &watch.window })
            .collect();
        let descending =
            |figure: fn(&Row<'_>) -> f64| move |a: &Row<'_>, b: &Row<'_>| figure(b).total_cmp(&figure(a));
        match self.order {
            // As the map has them.
            Order::Name => {}
            Order::Rate => rows.sort_by(descending(|row| row.window.rate_hz())),
            Order::Age => rows.sort_by(descending(|row| row.age_ns())),
            Order::Loss => rows.sort_by(descending(|row| row.window.loss().unwrap_or(-1.0))),
            Order::Bytes => rows.sort_by(descending(|row| row.window.bytes_per_s())),
        }
        rows
    }
}

/// Writers and readers of a topic in other nodes.
#[derive(Clone, Debug, Default)]
struct Ends {
    writers: usize,
    readers: usize,
    type_name: String,
}

/// Row of the table: one topic.
struct Row<'a> {
    topic: &'a str,
    ends: &'a Ends,
    window: &'a WindowStatistics,
}

/// Names of the columns; figures are flush right.
const HEADINGS: [&str; 8] =
    ["topic", "rate", "age p50", "age p99", "oldest", "loss", "bytes/s", "pub/sub by"];
const IS_FIGURE: [bool; 8] = [false, true, true, true, true, true, true, false];

impl Row<'_> {
    fn cells(&self) -> [String; 8] {
        let window = self.window;
        let age = |age: Option<Span>| age.map_or("–".into(), |age| units::with_bound(age, window.bound));
        [
            units::printable(self.topic),
            format!("{:.1} Hz", window.rate_hz()),
            age(window.age_p50),
            age(window.age_p99),
            age(window.age_max),
            window.loss().map_or("–".into(), |loss| format!("{:.2} %", loss * 100.0)),
            units::bytes(window.bytes_per_s()),
            format!("{}/{} {}", self.ends.writers, self.ends.readers, self.routes()),
        ]
    }

    fn routes(&self) -> String {
        self.window.routes.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
    }

    /// The median, or if there are too few samples for one, the largest.
    fn age_ns(&self) -> f64 {
        self.window.age_p50.or(self.window.age_max).map_or(-1.0, |age| age.ns() as f64)
    }

    fn as_json(&self) -> Value {
        let window = self.window;
        let ns = |span: Option<Span>| span.map(Span::ns);
        json!({
            "topic": self.topic,
            "type": self.ends.type_name,
            "publishers": self.ends.writers,
            "readers": self.ends.readers,
            "path": window.routes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "duration_s": window.duration.as_s_f64(),
            "received": window.samples,
            "missed": window.missed,
            "loss": window.loss(),
            "rate_hz": window.rate_hz(),
            "bytes_per_s": window.bytes_per_s(),
            "age_ns": { "p50": ns(window.age_p50), "p99": ns(window.age_p99), "max": ns(window.age_max) },
            "bound_ns": ns(window.bound),
        })
    }
}

/// The table as text.
fn plain(rows: &[Row<'_>]) -> String {
    let heading = HEADINGS.map(str::to_owned).to_vec();
    let cells = rows.iter().map(|row| row.cells().to_vec());
    units::columns(&std::iter::once(heading).chain(cells).collect::<Vec<_>>(), &IS_FIGURE)
}
