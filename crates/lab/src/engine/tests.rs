//! The engine on a machine whose peers are scripts and whose time is a number: nothing is started, nothing waits.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use noctule_peer::{Line, Slot, Table, Touch};
use noctule_sys::namespace::NetworkNamespace;

use super::*;
use crate::dimensions::{Mode, Wait};
use crate::machine::Node;
use crate::node_process::Program;
use crate::peer_registry::{Entry, Offer};

const PERIOD_NS: i64 = 1_000_000;
const LATENCY_NS: i64 = 5_000;

/// Log of the test: events in order, each with its time in milliseconds.
#[derive(Debug, Default)]
struct Story {
    now_ns: i64,
    lines: Vec<(i64, String)>,
}

impl Story {
    fn add(&mut self, what: String) {
        self.lines.push((self.now_ns / 1_000_000, what));
    }

    /// Those that contain a word, without their times.
    fn of(&self, word: &str) -> Vec<&str> {
        self.lines.iter().map(|(_, line)| line.as_str()).filter(|line| line.contains(word)).collect()
    }
}

/// A machine of scripts. One of its nodes may be silent where an answer is expected: the label of the node, the answer.
#[derive(Debug, Clone, Default)]
struct Stage {
    story: Rc<RefCell<Story>>,
    silent: Option<(&'static str, &'static str)>,
}

impl Machine for Stage {
    fn network(&self, _: u32, _: Option<Emulation<'_>>) -> Result<Network, NetworkError> {
        Ok(Network::here())
    }

    fn start(
        &self,
        _: &Program,
        label: String,
        _: Option<&NetworkNamespace>,
    ) -> Result<Box<dyn Node>, NodeFault> {
        Ok(Box::new(Script { stage: self.clone(), label, replies: VecDeque::new(), sends: false, run: None }))
    }

    fn sleep(&self, span: Span) {
        self.story.borrow_mut().now_ns += span.ns().max(0);
    }
}

/// A node that does all it is asked for: every message arrives.
struct Script {
    stage: Stage,
    label: String,
    replies: VecDeque<Line>,
    sends: bool,
    run: Option<Line>,
}

impl Script {
    /// Writes the record of a whole run; returns what a node says at its end.
    fn done(&self, receives: bool) -> Line {
        let run = self.run.as_ref().unwrap();
        let messages: i64 = run.require("messages", "a number").unwrap();
        let slot = |index: i64| {
            let sent_ns = 1_000_000_000 + index * PERIOD_NS;
            Slot {
                scheduled_ns: sent_ns,
                sent_ns: if self.sends { sent_ns } else { 0 },
                received_ns: if receives { sent_ns + LATENCY_NS } else { 0 },
                arrivals: receives.into(),
            }
        };
        let table = Table::from_slots((0..messages).map(slot).collect());
        table.write(Path::new(run.word("record").unwrap())).unwrap();
        Line::new("done")
            .with("sent", table.sent())
            .with("received", table.received())
            .with("duplicated", 0)
            .with("unexpected", 0)
            .with("overrun", 0)
    }
}

impl Node for Script {
    fn tell(&mut self, line: &Line) -> Result<(), NodeFault> {
        let warm_up = line.word("warmup_messages").zip(line.word("warmup_ms"));
        let warm_up = warm_up.map_or(String::new(), |(messages, ms)| format!(" warm-up {messages} {ms} ms"));
        self.stage.story.borrow_mut().add(format!("{} {}{warm_up}", self.label, line.verb()));
        match line.verb() {
            "hello" => self.replies.push_back(Line::new("hello")),
            "open" => {
                self.sends = line.word("publish").is_some();
                self.replies.push_back(Line::new("opened"));
            }
            "connect" => self.replies.push_back(Line::new("ready")),
            "run" => {
                self.run = Some(line.clone());
                self.replies.push_back(Line::new("running"));
                if self.label.starts_with("node 0 ") {
                    self.replies.push_back(self.done(false));
                }
            }
            "stop" => self.replies.push_back(self.done(true)),
            other => panic!("{other} is no line for a node"),
        }
        Ok(())
    }

    fn expect(
        &mut self,
        verb: &str,
        doing: &str,
        timeout: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Line, NodeFault> {
        if interrupted.load(Ordering::Relaxed) {
            return Err(NodeFault::Interrupted);
        }
        if self.stage.silent == Some((self.label.as_str(), verb)) {
            self.stage.sleep(Span::from_ns(timeout.as_nanos() as i64));
            return Err(NodeFault::Failed(format!("{} is silent while {doing}", self.label)));
        }
        let reply = self.replies.pop_front().unwrap();
        assert_eq!(reply.verb(), verb, "{} while {doing}", self.label);
        Ok(reply)
    }

    fn close(self: Box<Self>) -> Result<(), NodeFault> {
        self.stage.story.borrow_mut().add(format!("{} close", self.label));
        Ok(())
    }
}

/// Notes what begins, and interrupts after so many trials.
#[derive(Default)]
struct Watching {
    begun: Vec<String>,
    interrupt: Option<(usize, Arc<AtomicBool>)>,
}

impl Observer for Watching {
    fn begin(&mut self, number: usize, total: usize, cell: &CellPlan) {
        assert_eq!(number, self.begun.len());
        assert!(number < total);
        self.begun.push(cell.peer.clone());
    }

    fn end(&mut self, result: &Cell) {
        assert_eq!(self.begun.last(), Some(&result.peer));
        if let Some((after, flag)) = &self.interrupt {
            flag.store(self.begun.len() >= *after, Ordering::Relaxed);
        }
    }
}

fn registry() -> PeerRegistry {
    let mut registry = PeerRegistry::new(Path::new("noctule"));
    for peer in ["a", "b", "c"] {
        let description = Offer {
            version: "1".into(),
            links: vec![Link::Udp],
            waits: vec![],
            modes: vec![],
            formats: vec![],
            payload_bytes_max: 64,
            artificial_clock: false,
            options: BTreeMap::new(),
            needs: vec![],
            is_alone: false,
        };
        let program = Program { path: peer.into(), arguments: vec![] };
        registry.entries.insert(peer.into(), Entry { program, description, is_floor: false });
    }
    registry
}

/// 20 messages at 1 kHz after 7 to warm up.
fn cell(peer: &str, nodes: u32, trials: u32) -> CellPlan {
    CellPlan {
        peer: peer.into(),
        link: Link::Udp,
        mode: if nodes == 2 { Mode::OneWay } else { Mode::Chain },
        nodes,
        payload_bytes: 64,
        rate_hz: Some(1e9 / PERIOD_NS as f64),
        wait: Wait::Block,
        cores: vec![],
        format: "raw".into(),
        touch: Touch::Header,
        hosts: 1,
        clocks: vec![],
        beside: None,
        across: None,
        deadline_ns: None,
        expect: None,
        options: BTreeMap::new(),
        seconds: 1.0,
        messages: 20,
        trials,
        warm_up_messages: 7,
        warm_up_ms: 100,
        window: 1,
        is_floor: false,
    }
}

fn measure(stage: &Stage, cells: &[Vec<CellPlan>], watching: &mut Watching) -> Vec<Measured> {
    let plans: Vec<Plan> = cells.iter().map(|cells| Plan { cells: cells.clone(), skipped: vec![] }).collect();
    let flag = watching.interrupt.as_ref().map(|(_, flag)| Arc::clone(flag)).unwrap_or_default();
    let settings = Settings { reply_timeout_ms: 1_000, ..Settings::default() };
    let registry = registry();
    let mut engine = Engine::on(Box::new(stage.clone()), &registry, settings, flag).unwrap();
    engine.measure(&plans, watching).unwrap()
}

#[test]
fn trials_of_all_cells_of_all_plans_take_turns_forwards_and_backwards() {
    let plans = [vec![cell("a", 2, 3), cell("b", 2, 2)], vec![cell("c", 2, 2)]];
    let mut watching = Watching::default();
    let measured = measure(&Stage::default(), &plans, &mut watching);
    assert_eq!(watching.begun.join(" "), "a c b b c a a");
    let trials = |measured: &Measured| -> Vec<String> {
        measured.cells.iter().map(|cell| format!("{}{}", cell.peer, cell.trial)).collect()
    };
    assert_eq!(trials(&measured[0]), ["a0", "b0", "b1", "a1", "a2"]);
    assert_eq!(trials(&measured[1]), ["c0", "c1"]);
    for cell in measured.iter().flat_map(|measured| &measured.cells) {
        assert!(cell.valid, "{:?}", cell.why_invalid);
        assert_eq!((cell.sent, cell.received), (20, 20));
        assert_eq!(cell.latency_ns.unwrap().max, LATENCY_NS);
    }
}

#[test]
fn between_two_hosts_without_clocks_of_their_own_one_way_is_measured_at_the_receiver() {
    let two_hosts = |nodes| CellPlan { hosts: 2, ..cell("a", nodes, 1) };
    let mut watching = Watching::default();
    let measured = measure(&Stage::default(), &[vec![two_hosts(2), two_hosts(3)]], &mut watching);
    let [one_way, chain] = &measured[0].cells[..] else { panic!("two cells") };
    assert!(one_way.valid && chain.valid, "{:?} {:?}", one_way.why_invalid, chain.why_invalid);
    assert_eq!((one_way.received, chain.received), (20, 20));
    assert_eq!(one_way.latency_ns.unwrap().max, LATENCY_NS);
}

#[test]
fn receivers_run_before_the_sender_and_stop_after_it() {
    let stage = Stage::default();
    measure(&stage, &[vec![cell("a", 3, 1)]], &mut Watching::default());
    let story = stage.story.borrow();
    let phase = |word| -> Vec<u32> {
        let numbers = story.of(word).into_iter().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap());
        numbers.collect()
    };
    for (word, nodes) in
        [("hello", vec![0, 1, 2]), (" run", vec![1, 2, 0]), ("stop", vec![1, 2]), ("close", vec![0, 1, 2])]
    {
        assert_eq!(phase(word), nodes, "{word}");
    }
}

#[test]
fn every_node_is_given_the_warm_up_and_what_flows_beside_begins_before_it() {
    let stage = Stage::default();
    let mut loaded = cell("a", 2, 1);
    loaded.beside = Some(Box::new(CellPlan { warm_up_messages: 0, ..cell("b", 2, 1) }));
    let measured = measure(&stage, &[vec![loaded]], &mut Watching::default());
    assert!(measured[0].cells[0].valid, "{:?}", measured[0].cells[0].why_invalid);
    assert_eq!(measured[0].cells[0].beside.as_ref().map(|beside| beside.received), Some(20));
    let story = stage.story.borrow();
    let runs: Vec<(i64, &str)> = story
        .lines
        .iter()
        .map(|(ms, line)| (*ms, line.as_str()))
        .filter(|run| run.1.contains(" run"))
        .collect();
    assert_eq!(
        runs,
        [
            (0, "node 1 (b) run warm-up 0 100 ms"),
            (0, "node 0 (b) run warm-up 0 100 ms"),
            (300, "node 1 (a) run warm-up 7 100 ms"),
            (300, "node 0 (a) run warm-up 7 100 ms"),
        ]
    );
}

#[test]
fn a_silent_node_costs_its_trial_and_no_more_than_the_limit_of_what_it_was_doing() {
    // Of the sender: 20 ms and 5 %, 2 s, twice the reply time-out, and 10 s to write its record.
    for (node, answer, doing, limit_ms) in [
        ("node 1 (a)", "hello", "saying hello", 20_000),
        ("node 0 (a)", "opened", "opening", 20_000),
        ("node 1 (a)", "ready", "connecting", 30_000),
        ("node 1 (a)", "running", "starting to run", 20_000),
        ("node 0 (a)", "done", "sending", 14_021),
        ("node 1 (a)", "done", "receiving", 10_000),
    ] {
        let stage = Stage { silent: Some((node, answer)), ..Stage::default() };
        let measured = measure(&stage, &[vec![cell("a", 2, 1), cell("b", 2, 1)]], &mut Watching::default());
        let [silent, next] = measured[0].cells.as_slice() else { panic!("two cells were planned") };
        assert_eq!(silent.why_invalid, [Invalid::Failed(format!("{node} is silent while {doing}"))]);
        assert_eq!((silent.valid, silent.latency_ns, next.valid), (false, None, true));
        assert_eq!(stage.story.borrow().now_ns / 1_000_000, limit_ms, "{doing}");
    }
}

#[test]
fn an_interrupt_keeps_what_was_measured_before() {
    let mut watching = Watching { interrupt: Some((2, Arc::default())), ..Watching::default() };
    let plans = [vec![cell("a", 2, 2)], vec![cell("b", 2, 2)]];
    let measured = measure(&Stage::default(), &plans, &mut watching);
    assert_eq!(watching.begun, ["a", "b", "b"]);
    assert!(measured.iter().all(|measured| measured.interrupted && measured.cells.len() == 1));
}
