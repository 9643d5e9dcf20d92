//! Bad days of the live loop: processes that are killed or stopped, and commands that are no good. Each ends at rest,
//! within the deadline, for a reason that has a name.
//!
//! Times are those of the arm's own states, and what the loop itself was late by is allowed for: no assertion reads the
//! clock of the test, so that a busy machine changes nothing.

use std::net::TcpStream;
use std::time::Duration;

use noctule::{Node, NodeId, Reliability, TypedPublisher, TypedSample, TypedSubscriber};
use noctule_arm::profile::ProfileLimits;
use noctule_arm::validate::Rule;
use noctule_teleop::messages::{ArmState, POSE_TOPIC, PoseCommand, STATE_TOPIC};
use noctule_timebase::Instant;
use serde_json::json;
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

use crate::processes::{Process, alone, kill};

const DEADLINE_NS: i64 = 300_000_000;
pub(crate) const IDLE: u8 = ArmState::MODE_IDLE;
pub(crate) const ENGAGED: u8 = ArmState::MODE_ENGAGED;
const STOPPING: u8 = ArmState::MODE_STOPPING;
pub(crate) const STOPPED: u8 = ArmState::MODE_STOPPED;
/// Time limit of every wait, on a machine that builds beside it.
const TIMEOUT_NS: i64 = 120_000_000_000;
/// A loop that began a period later than this does not make it up.
const STALL_NS: i64 = 50_000_000;

/// A controller in a process of its own, and the log of its states.
pub(crate) struct Arm {
    pub(crate) node: Node,
    controller: Process,
    states: TypedSubscriber<ArmState>,
    /// Source time in ns and state.
    log: Vec<(i64, ArmState)>,
    /// States that are missing in it.
    lost: u64,
    /// Which controller the newest state is of, and the only one whose states count, if there have been two.
    publisher: Option<NodeId>,
    only: Option<NodeId>,
}

impl Arm {
    pub(crate) fn start(domain: u32) -> Arm {
        let node = Node::builder("test").domain(domain).open().unwrap();
        let states = node.subscriber(STATE_TOPIC).keep_last(2_048).typed::<ArmState>().open().unwrap();
        let controller = Process::start("controller", domain, &["--deadline", "300ms"]);
        Arm { node, controller, states, log: Vec::new(), lost: 0, publisher: None, only: None }
    }

    /// The next state.
    pub(crate) fn next(&mut self) -> ArmState {
        let begin_ns = self.node.now().ns();
        loop {
            let sample = self.states.receive(Some(Duration::from_millis(100))).unwrap();
            let Some(sample) = sample else {
                assert!(self.node.now().ns() - begin_ns < TIMEOUT_NS, "the controller is silent");
                continue;
            };
            self.publisher = Some(sample.info().publisher);
            if self.only.is_none_or(|only| only == sample.info().publisher) {
                return self.keep(sample);
            }
        }
    }

    /// The newest state, of all that are there: a loop that acts on each state may be slower than they come.
    pub(crate) fn newest(&mut self) -> ArmState {
        let mut newest = self.next();
        while let Some(sample) = self.states.take().unwrap() {
            newest = self.keep(sample);
        }
        newest
    }

    fn keep(&mut self, sample: TypedSample<ArmState>) -> ArmState {
        let info = *sample.info();
        self.lost += info.missed;
        let state = sample.into_value();
        self.log.push((info.source_time.unwrap().ns(), state.clone()));
        state
    }

    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&ArmState) -> bool) -> ArmState {
        let begin_ns = self.node.now().ns();
        loop {
            let state = self.next();
            if is(&state) {
                return state;
            }
            let waited_ns = self.node.now().ns() - begin_ns;
            assert!(waited_ns < TIMEOUT_NS, "{what} was never true: mode {}, {:?}", state.mode, rule(&state));
        }
    }

    /// Waits for a state of another controller than `before`.
    fn until_another_publishes(&mut self, before: Option<NodeId>) {
        let begin_ns = self.node.now().ns();
        while self.publisher == before {
            self.next();
            assert!(self.node.now().ns() - begin_ns < TIMEOUT_NS, "no other controller publishes");
        }
    }

    /// Forgets what was: a stop on the way, by a busy machine, is not what is tested.
    pub(crate) fn forget(&mut self) {
        self.log.clear();
        self.lost = 0;
    }

    /// Starts a master with these arguments, and waits until `is_there` of the state before and the newest. A busy machine may stall the
    /// loop on the way, which stops the arm, and nobody presses again: another master begins anew.
    pub(crate) fn moved_by(
        &mut self,
        domain: u32,
        arguments: &[&str],
        is_there: impl Fn(&ArmState, &ArmState) -> bool,
    ) -> Process {
        let stalls = |state: &ArmState| state.rules[Rule::LoopStalled as usize];
        for _ in 0..20 {
            let begin = self.next();
            let master = Process::start("master", domain, arguments);
            let ended = self.until("moved, or stopped by a stall", |state| {
                state.mode == STOPPED && stalls(state) > stalls(&begin)
                    || state.mode == ENGAGED && is_there(&begin, state)
            });
            if ended.mode == ENGAGED {
                self.forget();
                return master;
            }
        }
        panic!("the loop stalled each time");
    }

    /// Starts a master whose operator draws a figure, and waits until the arm moves.
    fn moved_by_a_figure(&mut self, domain: u32) -> Process {
        self.moved_by(domain, &["--operator", "figure"], |_, state| speed(state) > 0.05)
    }

    /// Waits for the standstill and checks that it came in time and stays. A busy machine can stall the loop before `expected` is
    /// due: by the state's own lateness that is why it stops then, as fast.
    pub(crate) fn until_at_rest(&mut self, expected: Rule) {
        self.until("stopped", |state| state.mode == STOPPED);
        assert_eq!(self.lost, 0, "states were lost on the way to the standstill");
        // An arm that was at rest is stopped within one plan, and no state shows it stopping.
        let stopping = self.log.iter().position(|(_, state)| state.mode >= STOPPING).unwrap();
        let (began_ns, began) = self.log[stopping].clone();
        // Lateness counts from when the period was due, a stall from the one before.
        let is_stalled = rule(&began) == Some(Rule::LoopStalled) && began.lateness_ns > STALL_NS - 2_000_000;
        let expected = if is_stalled { Rule::LoopStalled } else { expected };
        assert_eq!(rule(&began), Some(expected));
        let (ended_ns, ended) = self.log.last().unwrap().clone();
        // Before a state counts how late the loop itself was.
        let lateness_ns =
            |log: &[(i64, ArmState)]| log.iter().map(|(_, state)| state.lateness_ns).max().unwrap();
        if expected == Rule::CommandTooOld {
            // Plans and states are made each millisecond; what the loop was late is its own.
            let longest_ns =
                DEADLINE_NS + 3_000_000 + lateness_ns(&self.log[stopping.saturating_sub(1)..=stopping]);
            assert!(
                (DEADLINE_NS..=longest_ns).contains(&began.command_age_ns),
                "{} of {longest_ns}",
                began.command_age_ns
            );
        }
        let stalled_ns: i64 = self.log[stopping..]
            .iter()
            .map(|(_, state)| state.lateness_ns)
            .filter(|late| *late > STALL_NS)
            .sum();
        let stop_ns = (ProfileLimits::default().stop_time_max_s() * 1e9) as i64;
        let longest_ns = stop_ns + 5_000_000 + stalled_ns + lateness_ns(&self.log[stopping..]);
        println!(
            "{expected:?}: age {:.1} ms when it began to stop, at rest {:.1} ms later",
            began.command_age_ns as f64 * 1e-6,
            (ended_ns - began_ns) as f64 * 1e-6
        );
        assert!(ended_ns - began_ns <= longest_ns, "{} of {longest_ns}", ended_ns - began_ns);
        assert!(ended.rules[expected as usize] > 0);
        for _ in 0..300 {
            let state = self.next();
            assert_eq!((state.mode, rule(&state)), (STOPPED, Some(expected)));
            let moved_m: f64 =
                (0..3).map(|axis| (state.position_m[axis] - ended.position_m[axis]).powi(2)).sum();
            // The profile is at rest; the joints' loops settle behind it.
            assert!(moved_m.sqrt() < 5e-3, "{} mm after the standstill", moved_m.sqrt() * 1e3);
        }
        assert!(speed(&self.next()) < 0.02, "0.3 s after the standstill the joints still move");
    }
}

fn rule(state: &ArmState) -> Option<Rule> {
    usize::try_from(state.rule).ok().map(|index| Rule::ALL[index])
}

fn speed(state: &ArmState) -> f64 {
    state.velocity_rad_s.iter().map(|part| part * part).sum::<f64>().sqrt()
}

#[test]
fn a_killed_master_stops_the_arm_within_the_deadline() {
    let _alone = alone();
    let mut arm = Arm::start(4_431);
    let master = arm.moved_by_a_figure(4_431);
    kill(master.pid());
    arm.until_at_rest(Rule::CommandTooOld);
}

#[test]
fn a_silent_master_that_comes_back_moves_nothing() {
    let _alone = alone();
    let mut arm = Arm::start(4_432);
    let master = arm.moved_by_a_figure(4_432);
    master.signal("STOP");
    arm.until_at_rest(Rule::CommandTooOld);
    master.signal("CONT");
    // Its clutch is still held: only one that was released and pressed again engages.
    let before = arm.next().commands;
    let state = arm.until("commands flow again", |state| state.commands > before + 300);
    assert_eq!(state.mode, STOPPED);
}

#[test]
fn a_controller_that_stalls_stops_and_names_it() {
    let _alone = alone();
    let mut arm = Arm::start(4_433);
    let _master = arm.moved_by_a_figure(4_433);
    arm.controller.signal("STOP");
    // The fault itself: 100 ms without a period.
    noctule_sys::clock::sleep_until(noctule_sys::clock::now_ns() + 100_000_000);
    arm.controller.signal("CONT");
    arm.until_at_rest(Rule::LoopStalled);
    assert!(
        arm.log.iter().any(|(_, state)| state.lateness_ns >= 90_000_000),
        "the state says how late it was"
    );
}

#[test]
fn a_killed_controller_comes_back_at_rest() {
    let _alone = alone();
    let mut arm = Arm::start(4_434);
    let _master = arm.moved_by_a_figure(4_434);
    let killed = arm.publisher;
    kill(arm.controller.pid());
    arm.controller = Process::start("controller", 4_434, &["--deadline", "300ms"]);
    // The last samples of the killed one may still be unread.
    arm.until_another_publishes(killed);
    // And still: two publishers' samples come in no order.
    arm.only = arm.publisher;
    arm.forget();
    // The operator's clutch was held all the time.
    arm.until("the new one hears commands", |state| state.commands > 300);
    let moved: Vec<_> = (arm.log.iter().filter(|(_, state)| state.mode != IDLE))
        .map(|(at_ns, state)| (at_ns, state.sequence, state.mode, state.periods, state.commands))
        .take(5)
        .collect();
    assert!(moved.is_empty(), "{} of {} states: {moved:?}", moved.len(), arm.log.len());
}

/// An operator in the test's own process.
struct Operator {
    poses: TypedPublisher<PoseCommand>,
    pose: PoseCommand,
}

impl Operator {
    fn new(arm: &Arm, operator: u64) -> Operator {
        let poses = arm.node.publisher(POSE_TOPIC).reliability(Reliability::DeadlineBound);
        let poses = poses.deadline(Duration::from_millis(300)).typed::<PoseCommand>().open().unwrap();
        let pose =
            PoseCommand { operator, scale: 1.0, orientation: [0.0, 0.0, 0.0, 1.0], ..PoseCommand::default() };
        Operator { poses, pose }
    }

    /// Where a slow hand is by now.
    fn publish(&mut self, arm: &Arm) {
        let now_ns = arm.node.now().ns();
        let turns = now_ns as f64 * 1e-9 * std::f64::consts::TAU;
        self.pose.sequence += 1;
        self.pose.position_m[0] = 0.03 * (turns * 0.5).sin();
        self.pose.linear_velocity_m_s[0] = 0.03 * 0.5 * std::f64::consts::TAU * (turns * 0.5).cos();
        self.poses.publish_at(&self.pose, Instant::from_ns(now_ns)).unwrap();
    }

    fn until(&mut self, arm: &mut Arm, is: impl Fn(&ArmState) -> bool) {
        for _ in 0..200_000 {
            self.publish(arm);
            if is(&arm.newest()) {
                return;
            }
        }
        panic!("never true: mode {}", arm.log.last().unwrap().1.mode);
    }

    fn engage(&mut self, arm: &mut Arm) {
        while arm.next().mode != ENGAGED {
            self.pose.clutch = false;
            let begin = arm.next().commands;
            self.until(arm, |state| state.commands > begin + 20 && state.mode != STOPPING);
            self.pose.clutch = true;
            self.until(arm, |state| state.mode != IDLE);
        }
        self.until(arm, |state| state.mode != ENGAGED || speed(state) > 0.01);
        arm.forget();
    }
}

/// Changes a command for the worse, and the rule that must name it.
type Fault = (Rule, fn(&mut PoseCommand));

#[test]
fn a_bad_command_stops_the_arm_and_is_named() {
    let _alone = alone();
    let faults: [Fault; 4] = [
        (Rule::CommandNotFinite, |pose| pose.position_m[1] = f64::NAN),
        (Rule::CommandNotFinite, |pose| pose.orientation = [0.0; 4]),
        (Rule::CommandLeap, |pose| pose.position_m[1] = 5.0),
        (Rule::AgeUnknown, |pose| pose.bound_ns = 2_000_000_000),
    ];
    let mut arm = Arm::start(4_435);
    for (operator, (rule, spoil)) in (1..).zip(faults) {
        let mut own = Operator::new(&arm, operator);
        own.engage(&mut arm);
        spoil(&mut own.pose);
        own.until(&mut arm, |state| state.mode == STOPPING || state.mode == STOPPED);
        arm.until_at_rest(rule);
    }
}

#[test]
fn a_second_operator_is_refused_and_counted_while_the_first_goes_on() {
    let _alone = alone();
    let mut arm = Arm::start(4_436);
    let (mut first, mut second) = (Operator::new(&arm, 1), Operator::new(&arm, 2));
    first.engage(&mut arm);
    second.pose.clutch = true;
    let before = arm.next().rules[Rule::OtherOperator as usize];
    for _ in 0..100 {
        first.publish(&arm);
        second.publish(&arm);
        arm.next();
    }
    first.until(&mut arm, |state| state.rules[Rule::OtherOperator as usize] >= before + 50);
    let stopped = arm.log.iter().find(|(_, state)| state.mode != ENGAGED);
    // A stop by the test's own lateness is possible on a busy machine, one by the other operator is not.
    assert!(stopped.is_none_or(|(_, state)| rule(state) == Some(Rule::CommandTooOld)), "{stopped:?}");
}

#[test]
fn a_killed_page_stops_the_arm_within_the_deadline() {
    let _alone = alone();
    let mut arm = Arm::start(4_437);
    let _master = Process::start("master", 4_437, &["--operator", "page", "--deadline", "300ms"]);
    let mut page = Process::start("page", 4_437, &["--no-open"]);
    let mut browser = Browser::open(&page.line());
    browser.send(json!({ "t": "take" }));
    // Released first, then pressed and moved slowly.
    let mut state = arm.next();
    for step in 0..100_000_u32 {
        let at_ms = arm.node.now().ns() as f64 * 1e-6;
        let x_m = 0.03 * f64::from(step) * 1e-3;
        let clutch = state.commands > 100;
        let hand = json!({ "t": "hand", "at": at_ms, "b": 1.0, "p": [x_m % 0.05, 0, 0], "clutch": clutch, "scale": 1.0 });
        browser.send(hand);
        state = arm.newest();
        if state.mode == ENGAGED && speed(&state) > 0.01 {
            break;
        }
    }
    assert_eq!(state.mode, ENGAGED, "{:?}", rule(&state));
    arm.forget();
    kill(page.pid());
    arm.until_at_rest(Rule::CommandTooOld);
}

/// A browser's WebSocket to the page's process.
pub(crate) struct Browser(WebSocket<TcpStream>);

impl Browser {
    pub(crate) fn open(url: &str) -> Browser {
        let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let mut request = format!("ws://{host}/socket?token={token}").into_client_request().unwrap();
        request.headers_mut().insert("Origin", format!("http://{host}").parse().unwrap());
        let (socket, _) = tungstenite::client(request, TcpStream::connect(host).unwrap()).unwrap();
        Browser(socket)
    }

    /// The next message of which this is true.
    pub(crate) fn until(&mut self, is: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                let value = serde_json::from_str(&text).unwrap();
                if is(&value) {
                    return value;
                }
            }
        }
    }

    pub(crate) fn send(&mut self, value: serde_json::Value) {
        self.0.send(Message::text(value.to_string())).unwrap();
    }
}
