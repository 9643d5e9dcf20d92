//! Joins pages with what they look at.

mod assets;
mod viewer;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use noctule_web::{ClientId, Event, Payload, Server, ServerError, ServerOptions};
use serde_json::{Value, json};

use crate::sample::ms;
use crate::system::System;
use crate::types::Types;

use self::viewer::{BrowserMessage, Viewer};

pub use self::assets::ASSETS;

/// Figures go to pages this often.
pub const FRAME: Duration = Duration::from_millis(250);
/// Points and pictures are looked for this often.
const TICK: Duration = Duration::from_millis(40);
/// Clocks and links go to pages every so many frames, and so does the list of topics, if it has changed.
const FRAMES_PER_LOOK: u64 = 4;

/// Configuration of a page.
#[derive(Clone, Debug)]
pub struct PageConfig {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Text beside the page's name: the domain, or the file.
    pub subtitle: String,
}

/// Serves pages until `is_due`; `opened` gets the address.
///
/// # Errors
/// It cannot listen.
pub fn run(
    system: System,
    types: &Types,
    config: &PageConfig,
    opened: &dyn Fn(&str),
    is_due: &dyn Fn() -> bool,
) -> Result<(), ServerError> {
    let server = Server::start(ServerOptions { listen: config.listen, assets: ASSETS.to_vec() })?;
    opened(&server.url());
    let clock = std::time::Instant::now();
    let mut desk =
        Desk { system, types, server: &server, viewers: BTreeMap::new(), catalog: String::new(), frames: 0 };
    let (mut frame_at, mut tick_at) = (Duration::ZERO, Duration::ZERO);
    while !is_due() {
        let now = clock.elapsed();
        if now >= frame_at {
            // Missed frames are not made up for.
            frame_at = (frame_at + FRAME).max(now);
            desk.frame();
        }
        if now >= tick_at {
            desk.tick(now - (tick_at.saturating_sub(TICK)));
            tick_at = now + TICK;
        }
        let wait = frame_at.min(tick_at).saturating_sub(clock.elapsed());
        if let Some(event) = server.poll_event(wait) {
            desk.handle_event(event, &config.subtitle);
        }
    }
    Ok(())
}

struct Desk<'a> {
    system: System,
    types: &'a Types,
    server: &'a Server,
    viewers: BTreeMap<ClientId, Viewer>,
    /// Catalogue of topics, as it was last sent.
    catalog: String,
    frames: u64,
}

impl Desk<'_> {
    fn handle_event(&mut self, event: Event, subtitle: &str) {
        match event {
            Event::Opened(client) => {
                let (mode, range) = match &self.system {
                    System::Live(_) => ("live", None),
                    System::Recorded(recorded) => ("file", Some(recorded.range_ns())),
                };
                let hello = json!({
                    "t": "hello", "mode": mode, "subtitle": subtitle,
                    "range_ms": range.map(|(first, last)| [ms(first), ms(last)]),
                });
                self.server.reply(client, &hello.to_string());
                self.viewers.insert(client, Viewer::at(range.map(|(first, _)| first)));
                if self.catalog.is_empty() {
                    self.look();
                }
                self.server.show(client, "catalog", text(&self.catalog));
            }
            Event::Closed(client) => {
                self.viewers.remove(&client);
                self.want();
            }
            // A text that is no message of ours is ignored.
            Event::Text(client, text) => {
                if let Ok(message) = serde_json::from_str(&text) {
                    self.handle_message(client, message);
                }
            }
        }
    }

    fn handle_message(&mut self, client: ClientId, message: BrowserMessage) {
        if let BrowserMessage::Ping { c } = message {
            let answer = json!({ "t": "pong", "c": c, "s": self.server_ms() });
            self.server.reply(client, &answer.to_string());
            return;
        }
        let Some(viewer) = self.viewers.get_mut(&client) else { return };
        match message {
            BrowserMessage::Ping { .. } => {}
            BrowserMessage::Look(look) => {
                viewer.handle_look(look);
                self.want();
            }
            BrowserMessage::Seek { at } => viewer.seek(at, &self.system),
            BrowserMessage::Play { on, rate } => viewer.play(on, rate),
        }
    }

    /// Now of the clock that live samples are stamped with.
    fn server_ms(&self) -> f64 {
        match &self.system {
            System::Live(live) => ms(live.now_ns()),
            System::Recorded(_) => wall_ms(),
        }
    }

    /// Tells the readers what pages look at.
    fn want(&self) {
        let System::Live(live) = &self.system else { return };
        let mut bytes = BTreeSet::new();
        let mut fields = BTreeMap::<String, Vec<String>>::new();
        for viewer in self.viewers.values() {
            bytes.extend(viewer.topics().cloned());
            for (topic, path) in viewer.curves() {
                let paths = fields.entry(topic.clone()).or_default();
                if !paths.contains(path) {
                    paths.push(path.clone());
                }
            }
        }
        live.want(&bytes, &fields);
    }

    fn look(&mut self) {
        let catalog = match &mut self.system {
            System::Live(live) => {
                live.look();
                live.catalog()
            }
            System::Recorded(recorded) => recorded.catalog(),
        };
        let catalog = catalog.to_string();
        if catalog != self.catalog {
            self.catalog = catalog;
            let catalog = text(&self.catalog);
            self.viewers.keys().for_each(|client| self.server.show(*client, "catalog", catalog.clone()));
            // A new topic may be one that a page waits for.
            self.want();
        }
    }

    fn frame(&mut self) {
        self.frames += 1;
        match &self.system {
            System::Live(_) => {
                if self.frames % FRAMES_PER_LOOK == 1 {
                    self.look();
                    self.show_nodes();
                }
                self.show_live();
            }
            System::Recorded(recorded) => {
                let is_look = self.frames % FRAMES_PER_LOOK == 1;
                for (client, viewer) in &mut self.viewers {
                    let at_ns = viewer.advance(FRAME, recorded.range_ns());
                    let rows = rows(recorded.figures(at_ns));
                    let state = json!({ "t": "state", "at": ms(at_ns), "wall": ms(at_ns), "playing": viewer.is_playing(), "topics": rows });
                    self.server.show(*client, "state", text(&state.to_string()));
                    if is_look {
                        self.server.show(*client, "nodes", text(&recorded.nodes(at_ns).to_string()));
                    }
                }
            }
        }
    }

    fn show_live(&mut self) {
        let System::Live(live) = &self.system else { return };
        if self.viewers.is_empty() {
            return;
        }
        let rows = rows(live.figures());
        let state = json!({ "t": "state", "at": ms(live.now_ns()), "wall": wall_ms(), "playing": true, "topics": rows });
        let state = text(&state.to_string());
        self.viewers.keys().for_each(|client| self.server.show(*client, "state", state.clone()));
    }

    fn show_nodes(&self) {
        let System::Live(live) = &self.system else { return };
        if self.viewers.is_empty() {
            return;
        }
        let nodes = text(&live.nodes().to_string());
        self.viewers.keys().for_each(|client| self.server.show(*client, "nodes", nodes.clone()));
    }

    /// Points and pictures, as far as each page's budget goes.
    fn tick(&mut self, elapsed: Duration) {
        for (client, viewer) in &mut self.viewers {
            viewer.refill(elapsed);
            viewer.show(*client, &self.system, self.types, self.server);
        }
    }
}

fn rows(figures: Vec<(usize, crate::figures::Figures)>) -> Vec<Value> {
    figures.iter().map(|(id, figures)| figures.row(*id)).collect()
}

fn text(text: &str) -> Payload {
    Payload::Text(text.into())
}

/// Time of day, ms since 1970.
fn wall_ms() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64() * 1e3)
}
