//! The swarm's map in a real browser: headless Chromium, driven by its DevTools protocol.
//!
//! Skipped by name where Chromium is absent. Screenshots are left in `target/browser`.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use noctule_devtools::{Browser, Page};
use serde_json::json;

/// A flock of 24 on a lossy air.
const SCENARIO: &str = "name = \"map\"\n[swarm]\nnodes = 24\nseconds = 600\nspacing_m = 12\nmission = \"flock\"\n\
                        [state]\ndelay_ms = 100\n[air]\nloss = 0.3\nburst_ms = 300\n";

/// States held for a second: drones collide.
const BAD_DAY: &str = "name = \"bad day\"\n[swarm]\nnodes = 24\nseconds = 600\nspacing_m = 8\nneighbours = \"hold\"\n\
                       [state]\ndelay_ms = 1000\n";

/// A running swarm; killed when dropped.
struct Swarm {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Swarm {
    fn start(words: &[&str], scenario: &str) -> Swarm {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.toml");
        std::fs::write(&file, scenario).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        command.arg("swarm").args(words).args(["--map", "--no-open"]);
        if words[0] == "run" {
            command.arg(&file);
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut url = String::new();
        errors.read_line(&mut url).unwrap();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        // Whatever is printed later must not block the process.
        std::thread::spawn(move || errors.lines().for_each(drop));
        Swarm { child, url: url.trim().to_owned(), _folder: folder }
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        // So that a live swarm takes its processes along.
        let process = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

fn pictures() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../browser");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn press(page: &mut Page<'_>, x: f64, y: f64) {
    page.mouse("mousePressed", x, y);
    page.mouse("mouseReleased", x, y);
}

fn press_button(page: &mut Page<'_>, id: &str) {
    let found = page.value(&format!(
        "(() => {{ const r = document.getElementById('{id}').getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
    ));
    press(page, found[0].as_f64().unwrap(), found[1].as_f64().unwrap());
}

/// Presses drones on the map until one is selected: they move on while the browser paints.
fn select_a_drone(page: &mut Page<'_>) -> u64 {
    for _ in 0..50 {
        let found = page.value(
            "(() => { const canvas = document.getElementById('top'), r = canvas.getBoundingClientRect(); \
             const { at } = camera(canvas.clientWidth, canvas.clientHeight, VIEWS.top); \
             const [x, y] = at(state.drones[living()[0]]); return [r.x + x, r.y + y]; })()",
        );
        press(page, found[0].as_f64().unwrap(), found[1].as_f64().unwrap());
        if let Some(number) = page.value("selected").as_u64() {
            return number;
        }
    }
    panic!("no press met a drone");
}

/// Colours of the map's dots that are neither background nor text: how many different ones a picture has.
fn distinct_colours(page: &mut Page<'_>) -> u64 {
    let script = "(() => { const canvas = document.getElementById('top'); \
                  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; \
                  const seen = new Set(); for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) \
                  seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]); return seen.size; })()";
    page.value(script).as_u64().unwrap()
}

#[test]
fn the_map_shows_ages_as_colours_and_its_button_kills_the_selected_drone() {
    let Some(browser) = Browser::start() else {
        eprintln!(
            "skipped: the_map_shows_ages_as_colours_and_its_button_kills_the_selected_drone: no chromium here"
        );
        return;
    };
    let swarm = Swarm::start(&["run", "--seed", "4"], SCENARIO);
    let mut page = browser.open(&swarm.url);
    page.until("connected && state && state.s > 4 && state.age_p50_ms > 100 && state.known_share > 0.9");
    assert_eq!(page.value("state.drones.length"), json!(24));
    assert!(distinct_colours(&mut page) > 20);
    // Fresh is another colour than old, and unknown than both.
    let colours = page.value("[ageColour(0), ageColour(500), ageColour(5000), ageColour(null)]");
    let colours: std::collections::HashSet<String> =
        colours.as_array().unwrap().iter().map(|colour| colour.to_string()).collect();
    assert_eq!(colours.len(), 4, "{colours:?}");

    let number = select_a_drone(&mut page);
    page.until(
        "view && view.drone === selected && view.known.length > 15 && view.known.every((one) => one[4] > 0)",
    );
    page.until(&format!("document.getElementById('kill').textContent === 'Kill drone {number}'"));
    page.screenshot(&pictures().join("swarm-selected.png"));
    press_button(&mut page, "kill");
    page.until(&format!("state.drones[{number}][6] === 'k' && state.killed === 1"));
    // It is silent: what others know of it grows old, and is dropped after its lifespan of 10 s.
    page.until(&format!("state.drones[{number}][7] > 3000"));
    press_button(&mut page, "everybody");
    page.until("selected === null");
    page.screenshot(&pictures().join("swarm-killed.png"));
    page.until(&format!("state.drones[{number}][7] === null"));
    // Without a selection the button kills one of the living.
    press_button(&mut page, "kill");
    page.until("state.killed === 2 && living().length === 22");
    let outside = page.value(
        "performance.getEntriesByType('resource').filter((one) => !one.name.startsWith(location.origin) && !one.name.startsWith('ws://' + location.host)).length",
    );
    assert_eq!(outside, json!(0));
    drop(swarm);
    page.until("document.body.dataset.alarm === 'red' && !document.getElementById('banner').hidden");
}

#[test]
fn near_misses_are_listed_and_a_collision_turns_the_map_red() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: near_misses_are_listed_and_a_collision_turns_the_map_red: no chromium here");
        return;
    };
    let swarm = Swarm::start(&["run", "--speed", "4"], BAD_DAY);
    let mut page = browser.open(&swarm.url);
    page.until("state && state.collisions > 0 && state.misses.length > 0 && document.getElementById('misses').rows.length === state.misses.length");
    page.until("document.body.dataset.alarm === 'red' && document.getElementById('banner').textContent.includes('collided')");
    page.until("document.querySelectorAll('#misses tr.broken').length > 0");
    page.screenshot(&pictures().join("swarm-collided.png"));
    page.value("document.documentElement.dataset.theme = 'dark'");
    page.until("getComputedStyle(document.documentElement).colorScheme === 'dark'");
    page.screenshot(&pictures().join("swarm-dark.png"));
    page.close();
}

#[test]
fn the_map_of_live_drones_shows_them_and_kills_one() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: the_map_of_live_drones_shows_them_and_kills_one: no chromium here");
        return;
    };
    let swarm = Swarm::start(&["fly", "--nodes", "4", "--seconds", "300"], SCENARIO);
    let mut page = browser.open(&swarm.url);
    page.until(
        "connected && state && living().length === 4 && state.known_share === 1 && state.age_p50_ms > 0",
    );
    let number = select_a_drone(&mut page);
    page.until("view && view.known.length === 3");
    page.screenshot(&pictures().join("swarm-live.png"));
    page.phone();
    page.until("!document.getElementById('scale-words').hidden");
    assert_eq!(page.value("document.documentElement.scrollWidth <= window.innerWidth"), json!(true));
    page.screenshot(&pictures().join("swarm-phone.png"));
    press_button(&mut page, "kill");
    page.until(&format!("state.drones[{number}][6] === 'k' && living().length === 3"));
    page.until(&format!("state.drones[{number}][7] > 1000"));
    page.close();
}
