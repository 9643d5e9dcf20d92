//! One page: what it looks at, where it is in a recording, and how many bytes it may get.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use noctule_web::{ClientId, Payload, Server};
use serde::Deserialize;
use serde_json::json;

use crate::content::{self, Kind};
use crate::sample::{ShownSample, ms};
use crate::system::System;
use crate::types::Types;

/// Bytes of points and pictures a second that a page gets, and that it may save up.
pub(crate) const BYTES_PER_S: f64 = 1_100_000.0;
/// Topics that a page looks at, and curves.
const TOPICS_MAX: usize = 16;
const CURVES_MAX: usize = 16;
/// Values of a topic are sent no more often than this.
const VALUES_EVERY_NS: i64 = 90_000_000;

/// Message of a page.
#[derive(Debug, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub(super) enum BrowserMessage {
    /// Asks for the time; `c` comes back.
    Ping {
        /// The page's own.
        c: f64,
    },
    /// All that it looks at from now on.
    Look(Look),
    /// Another moment of the recording, ms since 1970.
    Seek {
        /// The moment, ms since 1970.
        at: f64,
    },
    /// Lets the recording run, or not.
    Play {
        /// Whether it runs.
        on: bool,
        /// Times the recording's own speed.
        rate: f64,
    },
}

/// Topics and curves that a page shows.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Look {
    /// Topics whose newest sample it shows as values.
    #[serde(default)]
    values: Vec<String>,
    /// Topics whose newest sample it shows as a picture, or in space.
    #[serde(default)]
    pictures: Vec<String>,
    /// Topic and path of each curve.
    #[serde(default)]
    curves: Vec<(String, String)>,
}

/// A page.
#[derive(Debug, Default)]
pub(super) struct Viewer {
    values: BTreeSet<String>,
    pictures: BTreeSet<String>,
    /// Number of the next point of each curve.
    curves: BTreeMap<(String, String), u64>,
    /// Receive time of what was sent last of each topic, and when.
    sent: BTreeMap<(String, bool), i64>,
    budget_bytes: f64,
    /// Moment of a recording, ns.
    at_ns: i64,
    rate: f64,
    is_playing: bool,
}

impl Viewer {
    pub(super) fn at(at_ns: Option<i64>) -> Viewer {
        Viewer { at_ns: at_ns.unwrap_or(0), rate: 1.0, is_playing: true, ..Viewer::default() }
    }

    pub(super) fn handle_look(&mut self, look: Look) {
        let few = |names: Vec<String>| names.into_iter().take(TOPICS_MAX).collect();
        (self.values, self.pictures) = (few(look.values), few(look.pictures));
        let wanted: BTreeSet<(String, String)> = look.curves.into_iter().take(CURVES_MAX).collect();
        self.curves.retain(|curve, _| wanted.contains(curve));
        for curve in wanted {
            self.curves.entry(curve).or_insert(0);
        }
        let (values, pictures) = (&self.values, &self.pictures);
        self.sent.retain(
            |(topic, is_picture), _| {
                if *is_picture { pictures.contains(topic) } else { values.contains(topic) }
            },
        );
    }

    pub(super) fn topics(&self) -> impl Iterator<Item = &String> {
        self.values.iter().chain(&self.pictures)
    }

    pub(super) fn curves(&self) -> impl Iterator<Item = &(String, String)> {
        self.curves.keys()
    }

    pub(super) fn is_playing(&self) -> bool {
        self.is_playing
    }

    pub(super) fn seek(&mut self, at_ms: f64, system: &System) {
        if let System::Recorded(recorded) = system
            && at_ms.is_finite()
        {
            let (first, last) = recorded.range_ns();
            self.at_ns = ((at_ms * 1e6) as i64).clamp(first, last);
            self.sent.clear();
        }
    }

    pub(super) fn play(&mut self, is_playing: bool, rate: f64) {
        self.is_playing = is_playing;
        if rate.is_finite() {
            self.rate = rate.clamp(0.05, 20.0);
        }
    }

    /// The recording goes on; it begins again after its end.
    pub(super) fn advance(&mut self, by: Duration, (first_ns, last_ns): (i64, i64)) -> i64 {
        if self.is_playing {
            self.at_ns += (by.as_nanos() as f64 * self.rate) as i64;
            if self.at_ns > last_ns {
                self.at_ns = first_ns;
                self.sent.clear();
            }
        }
        self.at_ns
    }

    pub(super) fn refill(&mut self, elapsed: Duration) {
        self.budget_bytes = (self.budget_bytes + BYTES_PER_S * elapsed.as_secs_f64()).min(BYTES_PER_S);
    }

    /// Sends what is new. What still waits for a page is not made anew: a slow page gets less, and no other waits for it.
    pub(super) fn show(&mut self, client: ClientId, system: &System, types: &Types, server: &Server) {
        let types = match system {
            System::Live(_) => types,
            System::Recorded(recorded) => recorded.types(),
        };
        for (topic, path) in self.curves.keys().cloned().collect::<Vec<_>>() {
            self.show_points((client, server), system, (topic, path));
        }
        let wanted: Vec<(String, bool)> = self
            .values
            .iter()
            .map(|topic| (topic.clone(), false))
            .chain(self.pictures.iter().map(|topic| (topic.clone(), true)))
            .collect();
        for (topic, is_picture) in wanted {
            if self.budget_bytes <= 0.0 {
                return;
            }
            self.show_sample((client, server), (system, types), topic, is_picture);
        }
    }

    fn show_points(
        &mut self,
        (client, server): (ClientId, &Server),
        system: &System,
        curve: (String, String),
    ) {
        let channel = format!("points {} {}", curve.0, curve.1);
        if server.is_waiting(client, &channel) || self.budget_bytes <= 0.0 {
            return;
        }
        let from = self.curves.get(&curve).copied().unwrap_or(0);
        let (points, next, every) = match system {
            System::Live(live) => match live.curve_since(&curve.0, &curve.1, from) {
                Some(new) => (new.points, new.next, 1),
                None => return,
            },
            // All of it at once, once.
            System::Recorded(_) if from > 0 => return,
            System::Recorded(recorded) => {
                let (points, every) = recorded.curve(&curve.0, &curve.1);
                (points, 1, every)
            }
        };
        let is_whole = matches!(system, System::Recorded(_));
        if points.is_empty() && !is_whole {
            return;
        }
        let head = json!({ "t": "points", "topic": curve.0, "path": curve.1, "count": points.len(), "whole": is_whole, "every": every });
        let body = points.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        self.send((client, server), &channel, content::join(head, (json!({}), body)));
        self.curves.insert(curve, next);
    }

    fn show_sample(
        &mut self,
        (client, server): (ClientId, &Server),
        (system, types): (&System, &Types),
        topic: String,
        is_picture: bool,
    ) {
        let channel = format!("{} {topic}", if is_picture { "picture" } else { "values" });
        if server.is_waiting(client, &channel) {
            return;
        }
        let (newest, kind) = match system {
            System::Live(live) => (live.newest(&topic), live.topic(&topic).map(|(_, kind)| kind)),
            System::Recorded(recorded) => (recorded.newest(&topic, self.at_ns), recorded.kind(&topic)),
        };
        let (Some(sample), Some(kind)) = (newest, kind) else { return };
        let key = (topic, is_picture);
        let before = self.sent.get(&key).copied();
        let gap = before.map(|before| sample.receive_ns.saturating_sub(before));
        if gap == Some(0) || (!is_picture && gap.is_some_and(|gap| (0..VALUES_EVERY_NS).contains(&gap))) {
            return;
        }
        let payload = described(&sample, (&key.0, is_picture.then_some(kind)), types, system);
        self.sent.insert(key, sample.receive_ns);
        self.send((client, server), &channel, payload);
    }

    fn send(&mut self, (client, server): (ClientId, &Server), channel: &str, payload: Payload) {
        let bytes = match &payload {
            Payload::Text(text) => text.len(),
            Payload::Binary(bytes) => bytes.len(),
        };
        self.budget_bytes -= bytes as f64;
        server.show(client, channel, payload);
    }
}

/// A sample as a picture of this kind, or as values.
fn described(
    sample: &ShownSample,
    (topic, kind): (&str, Option<Kind>),
    types: &Types,
    system: &System,
) -> Payload {
    let sent_ms = match system {
        System::Live(live) => ms(live.now_ns()),
        System::Recorded(_) => ms(sample.receive_ns),
    };
    let mut head = sample.head(topic);
    head["sent_ms"] = json!(sent_ms);
    match kind {
        Some(kind @ (Kind::Image | Kind::Compressed | Kind::Cloud | Kind::Grid)) => {
            head["t"] = json!(kind.word());
            match content::message(kind, &sample.bytes, head.clone()) {
                Ok(payload) => payload,
                Err(why) => {
                    head["why"] = json!(why.to_string());
                    Payload::Text(head.to_string().into())
                }
            }
        }
        Some(_) => {
            head["t"] = json!("scene");
            head["type"] = json!(sample.type_name);
            Payload::Text(sample.described(head, types).into())
        }
        None => {
            head["t"] = json!("sample");
            Payload::Text(sample.described(head, types).into())
        }
    }
}
