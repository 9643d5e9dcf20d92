//! The page's process: states to browsers, one operator's hand from them.
//!
//! A browser's clock is its own. It asks for the time as often as it likes; half of the best round trip is the bound of
//! what it then says of its pointer, and travels with each input. The operator is one browser; others watch. An
//! operator that goes leaves a released clutch behind, and one that falls silent is stopped by the age of its poses.

mod view;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use noctule::{
    Message, Node, NodeError, PublishError, ReceiveError, Reliability, SampleInfo, TypedPublisher,
    TypedSubscriber,
};
use noctule_arm::controller::ControllerConfig;
use noctule_timebase::{Instant, Span};
use noctule_web::{Asset, ClientId, Event, Server, ServerError, ServerOptions};
use serde::Deserialize;
use serde_json::json;

use crate::messages::{ArmState, INPUT_TOPIC, OperatorInput, POSE_TOPIC, PoseCommand, STATE_TOPIC};
use crate::recording::{
    Recorded, RecordedCounts, RecordedSample, Recorder, RecordingError, SampleTimes, read,
};

use self::view::{View, analysis};

/// Samples that the page may fall behind before it misses one.
const QUEUE: u32 = 2_048;
/// Pictures a second that browsers get.
const FRAME: Duration = Duration::from_millis(16);
/// A hand further from its beginning than this is a mistake of the page, m.
const HAND_MAX_M: f64 = 10.0;

/// The files of the page.
pub const ASSETS: [Asset; 6] = [
    Asset { path: "/", content_type: "text/html", body: include_str!("../../../web/teleop/page.html") },
    Asset {
        path: "/page.js",
        content_type: "text/javascript",
        body: include_str!("../../../web/teleop/page.js"),
    },
    Asset {
        path: "/scene.js",
        content_type: "text/javascript",
        body: include_str!("../../../web/teleop/scene.js"),
    },
    Asset { path: "/chart.js", content_type: "text/javascript", body: include_str!("../../../web/chart.js") },
    Asset {
        path: "/socket.js",
        content_type: "text/javascript",
        body: include_str!("../../../web/socket.js"),
    },
    Asset { path: "/shell.css", content_type: "text/css", body: include_str!("../../../web/shell.css") },
];

/// Configuration of a page.
#[derive(Clone, Debug)]
pub struct PageConfig {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Commands and states go there, too.
    pub record: Option<PathBuf>,
    /// A recording is shown instead of a live arm.
    pub replay: Option<PathBuf>,
    /// The text beside the page's name: how commands are used, and over which link.
    pub subtitle: String,
    /// A command older than this stops the arm: drawn beside the ages.
    pub deadline: Span,
}

/// Why a page ended.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// It could not join.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// It could not publish.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// It could not be served.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

/// Message of a browser.
#[derive(Debug, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
enum BrowserMessage {
    /// Asks for the time; `c` comes back.
    Ping { c: f64 },
    /// Wants to operate.
    Take,
    /// Does no longer.
    Leave,
    /// Where the hand is: `at` in ms of the page's process, `b` its bound in ms.
    Hand { at: f64, b: f64, p: [f64; 3], clutch: bool, scale: f64 },
}

/// Runs a page until `is_due`; `opened` gets its address. Returns what was recorded.
///
/// # Errors
/// It cannot listen, join or record.
pub fn run(
    node: &Node,
    config: &PageConfig,
    opened: &dyn Fn(&str),
    is_due: &dyn Fn() -> bool,
) -> Result<Option<RecordedCounts>, PageError> {
    let server = Server::start(ServerOptions { listen: config.listen, assets: ASSETS.to_vec() })?;
    let mut states = node.subscriber(STATE_TOPIC).keep_last(QUEUE).typed::<ArmState>().open()?;
    let poses = node.subscriber(POSE_TOPIC).keep_last(QUEUE).reliability(Reliability::BestEffort);
    let mut poses = poses.typed::<PoseCommand>().open()?;
    let inputs = node.publisher(INPUT_TOPIC).keep_last(16).typed::<OperatorInput>().open()?;
    let mut recorder = config.record.as_deref().map(Recorder::create).transpose()?;
    let mut replayed = match &config.replay {
        Some(path) => Some(Replay { samples: read(path)?, next: 0, start_ns: node.now().ns() }),
        None => None,
    };
    let mut desk = Desk {
        node,
        server: &server,
        inputs,
        operator: None,
        session: 0,
        view: View::default(),
        subtitle: config.subtitle.clone(),
        deadline: config.deadline,
        is_replay: config.replay.is_some(),
    };
    opened(&server.url());
    let mut frame_ns = node.now().ns();
    while !is_due() {
        while let Some(event) = server.poll_event(Duration::from_millis(2)) {
            desk.handle_event(event)?;
            if node.now().ns() - frame_ns > FRAME.as_nanos() as i64 {
                break;
            }
        }
        match &mut replayed {
            Some(replay) => replay.advance(node.now().ns(), &mut desk.view),
            None => {
                take_all(&mut poses, recorder.as_mut(), |recorder, times, command| {
                    recorder.map_or(Ok(()), |recorder| recorder.write_command(&command, times))?;
                    desk.view.handle_command(command);
                    Ok(())
                })?;
                take_all(&mut states, recorder.as_mut(), |recorder, times, state| {
                    recorder.map_or(Ok(()), |recorder| recorder.write_state(&state, times))?;
                    desk.view.handle_state(times.received_ns, state);
                    Ok(())
                })?;
            }
        }
        if node.now().ns() - frame_ns >= FRAME.as_nanos() as i64 {
            frame_ns = node.now().ns();
            let text = desk.view.frame(frame_ns, desk.operator.map(|client| client.0));
            server.broadcast(&text);
        }
    }
    Ok(recorder.map(Recorder::finish).transpose()?)
}

/// Hands on all samples that are there.
fn take_all<T: Message>(
    subscriber: &mut TypedSubscriber<T>,
    mut recorder: Option<&mut Recorder>,
    mut each: impl FnMut(Option<&mut Recorder>, SampleTimes, T) -> Result<(), RecordingError>,
) -> Result<(), PageError> {
    loop {
        match subscriber.take() {
            Ok(Some(sample)) => {
                let info: SampleInfo = *sample.info();
                let received_ns = info.receive_time.ns();
                let source_ns = info.source_time.map_or(received_ns, Instant::ns);
                if let Some(recorder) = recorder.as_mut() {
                    recorder.record_missed(info.missed);
                }
                each(recorder.as_deref_mut(), SampleTimes { source_ns, received_ns }, sample.into_value())?;
            }
            Ok(None) | Err(ReceiveError::Take(_)) => return Ok(()),
            Err(_) => {}
        }
    }
}

/// A recording that is shown at its own pace, over and over.
struct Replay {
    samples: Vec<Recorded>,
    next: usize,
    start_ns: i64,
}

impl Replay {
    fn advance(&mut self, now_ns: i64, view: &mut View) {
        let first_ns = self.samples[0].0.received_ns;
        while let Some((times, sample)) = self.samples.get(self.next) {
            if times.received_ns - first_ns > now_ns - self.start_ns {
                return;
            }
            match sample {
                RecordedSample::State(state) => view.handle_state(now_ns, (**state).clone()),
                RecordedSample::Command(command) => view.handle_command(command.clone()),
            }
            self.next += 1;
        }
        (self.next, self.start_ns) = (0, now_ns);
        // The counts begin anew with it.
        *view = View::default();
    }
}

/// The operators at the page, and what they see.
struct Desk<'a> {
    node: &'a Node,
    server: &'a Server,
    inputs: TypedPublisher<OperatorInput>,
    operator: Option<ClientId>,
    /// Counts operators: each is another one for the controller, a browser that came back, too.
    session: u64,
    view: View,
    subtitle: String,
    deadline: Span,
    /// A recording is shown: there is nothing to operate.
    is_replay: bool,
}

impl Desk<'_> {
    fn handle_event(&mut self, event: Event) -> Result<(), PublishError> {
        match event {
            Event::Opened(client) => {
                let rules: Vec<&str> =
                    noctule_arm::validate::Rule::ALL.iter().map(|rule| rule.sentence()).collect();
                let window = ControllerConfig::default().validator.window;
                let hello = json!({
                    "t": "hello",
                    "id": client.0,
                    "subtitle": self.subtitle,
                    "replay": self.is_replay,
                    "rules": rules,
                    "window": [window.lower_m.as_slice(), window.upper_m.as_slice()],
                    "limits": view::limits(self.deadline),
                });
                self.server.reply(client, &hello.to_string());
                self.server.reply(client, &analysis());
            }
            Event::Closed(client) if self.operator == Some(client) => self.let_go()?,
            Event::Closed(_) => {}
            // A text that is no message of ours is ignored.
            Event::Text(client, text) => {
                if let Ok(message) = serde_json::from_str(&text) {
                    self.handle_message(client, message)?;
                }
            }
        }
        Ok(())
    }

    fn handle_message(&mut self, client: ClientId, message: BrowserMessage) -> Result<(), PublishError> {
        let now_ns = self.node.now().ns();
        match message {
            BrowserMessage::Ping { c } => {
                let answer = json!({ "t": "pong", "c": c, "s": now_ns as f64 * 1e-6 });
                self.server.reply(client, &answer.to_string());
            }
            BrowserMessage::Take if self.is_replay => {
                let sentence = "this page shows a recording; start `noctule teleop` to operate an arm";
                self.server.reply(client, &json!({ "t": "refused", "why": sentence }).to_string());
            }
            BrowserMessage::Take if self.operator.is_none() || self.operator == Some(client) => {
                self.operator = Some(client);
                self.session += 1;
                self.server.reply(client, &json!({ "t": "taken" }).to_string());
            }
            BrowserMessage::Take => {
                let sentence = "another browser operates the arm; watch, or ask there to let go";
                self.server.reply(client, &json!({ "t": "refused", "why": sentence }).to_string());
            }
            BrowserMessage::Leave if self.operator == Some(client) => self.let_go()?,
            BrowserMessage::Hand { at, b, p, clutch, scale } if self.operator == Some(client) => {
                let is_sensible =
                    p.iter().all(|x| x.abs() < HAND_MAX_M) && at.is_finite() && (0.0..1e4).contains(&b);
                if is_sensible {
                    // A browser's guess of the present may be in the future by its bound; a pose may not.
                    let source_ns = ((at * 1e6) as i64).min(now_ns);
                    let input = OperatorInput {
                        operator: self.session,
                        position_m: p,
                        clutch,
                        scale,
                        bound_ns: (b * 1e6) as i64,
                    };
                    self.inputs.publish_at(&input, Instant::from_ns(source_ns))?;
                }
            }
            BrowserMessage::Leave | BrowserMessage::Hand { .. } => {}
        }
        Ok(())
    }

    /// The operator has gone: a released clutch remains.
    fn let_go(&mut self) -> Result<(), PublishError> {
        self.operator = None;
        let input = OperatorInput { operator: self.session, scale: 1.0, ..OperatorInput::default() };
        self.inputs.publish(&input)
    }
}
