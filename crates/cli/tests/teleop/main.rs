//! The tele-operation's page in a real browser: headless Chromium, driven by its DevTools protocol.
//!
//! Skipped by name where Chromium is absent. Screenshots are left in `target/browser`.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

mod bad_days;
mod inputs;
mod processes;
mod replay;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use noctule_devtools::{Browser, Page};
use processes::{alone, kill, priority};

/// A command older than this stops the arm; a browser on a busy machine is held up for longer than the default.
const DEADLINE_MS: f64 = 500.0;

/// A running loop; killed when dropped.
struct Loop {
    child: Child,
    url: String,
    controller: u32,
    master: u32,
}

impl Loop {
    fn start(domain: u32, more: &[&str]) -> Loop {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        command.args(["teleop", "--no-open", "--domain", &domain.to_string()]).args(priority()).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut pids = [0; 2];
        for pid in &mut pids {
            let mut line = String::new();
            while !line.starts_with('{') {
                line.clear();
                assert_ne!(errors.read_line(&mut line).unwrap(), 0, "it ended before its processes ran");
            }
            let said: serde_json::Value = serde_json::from_str(&line).unwrap();
            *pid = said["pid"].as_u64().unwrap() as u32;
        }
        // Whatever is printed later must not block the process.
        std::thread::spawn(move || errors.lines().for_each(drop));
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Loop { child, url: url.trim().to_owned(), controller: pids[0], master: pids[1] }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Its children end with their input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pictures() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../browser");
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Middle of an element, CSS pixels.
fn middle(page: &mut Page<'_>, id: &str) -> (f64, f64) {
    let script = format!(
        "(() => {{ const e = document.getElementById('{id}'); e.scrollIntoView({{ block: 'center' }}); \
         const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
    );
    let found = page.value(&script);
    (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
}

fn position(page: &mut Page<'_>) -> [f64; 3] {
    let found = page.value("state.position");
    std::array::from_fn(|axis| found[axis].as_f64().unwrap())
}

fn operate(page: &mut Page<'_>) {
    page.until("connected && state && state.mode === 'idle' && socket.exchanges.length > 3");
    let (x, y) = middle(page, "operate");
    page.mouse("mousePressed", x, y);
    page.mouse("mouseReleased", x, y);
    page.until("operating");
}

#[test]
fn dragging_a_square_moves_the_arm_and_bad_days_turn_the_page_red() {
    let _alone = alone();
    let Some(browser) = Browser::start() else {
        eprintln!(
            "skipped: dragging_a_square_moves_the_arm_and_bad_days_turn_the_page_red: no chromium here"
        );
        return;
    };
    let running = Loop::start(4_410, &["--deadline", &format!("{DEADLINE_MS}ms")]);
    let mut page = browser.open(&running.url);
    page.until("hello && state && state.body");
    assert_eq!(page.value("hello.limits.deadline_ms"), DEADLINE_MS, "the line beside the ages");
    arrows_scroll_what_nobody_operates(&mut page);
    operate(&mut page);
    let mut pointer = Pointer::press(&mut page);
    let side_m = 0.06;
    for (right, up) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
        pointer.drag(&mut page, [right * side_m, up * side_m]);
    }
    println!("pressed {} times for a square", pointer.presses);
    pointer.press_anew(&mut page);
    page.until("/^\\d+\\.\\d+ ms ± \\d+\\.\\d+$/.test(document.getElementById('age').textContent)");
    println!("age shown: {}", page.value("document.getElementById('age').textContent"));
    // A picture of the whole page holds the browser up for longer than the deadline: the arm stops, as it should.
    page.screenshot(&pictures().join("teleop-engaged.png"));
    nothing_from_outside(&mut page);
    pixels(&mut page);

    let mut other = browser.open(&running.url);
    other.until("connected && state && state.operator !== null");
    let (ox, oy) = middle(&mut other, "operate");
    other.mouse("mousePressed", ox, oy);
    other.mouse("mouseReleased", ox, oy);
    other.until("!document.getElementById('banner').hidden && document.getElementById('banner').textContent.includes('another browser')");
    assert_eq!(other.value("operating"), false);

    red_within_the_deadline(&mut page, &mut pointer, &running);
    let banner = page.value("document.getElementById('banner').textContent");
    // On a busy machine the loop itself may stall first.
    let reasons = ["no command arrived within the deadline", "the control loop stalled"];
    assert!(reasons.iter().any(|reason| banner.as_str().unwrap().contains(reason)), "{banner}");
    page.screenshot(&pictures().join("teleop-stopped.png"));
    kill(running.controller);
    page.until("document.getElementById('banner').textContent.includes('silent')");
    assert_eq!(page.value("document.body.dataset.alarm"), "red");
    // Old values are not shown as present ones.
    page.until("document.getElementById('age').textContent === 'not known'");
    page.until("document.getElementById('joints').classList.contains('stale')");
    page.screenshot(&pictures().join("teleop-silent.png"));
}

#[test]
fn an_operator_that_goes_stops_the_arm_and_a_phone_shows_it() {
    let _alone = alone();
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: an_operator_that_goes_stops_the_arm_and_a_phone_shows_it: no chromium here");
        return;
    };
    let running = Loop::start(4_420, &["--deadline", &format!("{DEADLINE_MS}ms")]);
    let mut watcher = browser.open(&running.url);
    watcher.phone();
    {
        let mut operator = browser.open(&running.url);
        operate(&mut operator);
        Pointer::press(&mut operator);
        operator.close();
    }
    watcher.until("state.mode !== 'engaged' && state.operator === null");
    // The next operator must press anew.
    watcher.until("state.mode === 'idle' || state.mode === 'stopped'");
    watcher.value("document.documentElement.dataset.theme = 'dark'");
    watcher.screenshot(&pictures().join("teleop-phone.png"));
    assert_eq!(watcher.value("document.documentElement.scrollWidth <= window.innerWidth"), true);
}

/// The keys that move an arm are those that scroll a page.
fn arrows_scroll_what_nobody_operates(page: &mut Page<'_>) {
    let is_left_to_the_browser = "(() => { const event = new KeyboardEvent('keydown', { code: 'PageDown', bubbles: true, cancelable: true }); \
         dispatchEvent(event); return !event.defaultPrevented && hand.keys.size === 0; })()";
    assert_eq!(page.value(is_left_to_the_browser), true);
}

/// A mouse that drags in the top view.
struct Pointer {
    at: (f64, f64),
    scale_px_m: f64,
    presses: u32,
}

impl Pointer {
    fn press(page: &mut Page<'_>) -> Pointer {
        let at = middle(page, "top");
        let scale = page.value("views.find((view) => view.name === 'top').scale");
        let mut pointer = Pointer { at, scale_px_m: scale.as_f64().unwrap(), presses: 0 };
        pointer.press_anew(page);
        pointer
    }

    /// Until the arm follows. Where the browser was held up for longer than the deadline it stopped, as it should.
    fn press_anew(&mut self, page: &mut Page<'_>) {
        while page.value("state.mode") != "engaged" {
            assert!(self.presses < 100, "the arm does not stay engaged");
            self.presses += 1;
            page.mouse("mouseReleased", self.at.0, self.at.1);
            page.until(
                "state.hand && !state.hand.clutch && (state.mode === 'idle' || state.mode === 'stopped')",
            );
            self.at = middle(page, "top");
            page.mouse("mousePressed", self.at.0, self.at.1);
            page.value("window.pressedAt = performance.now()");
            page.until("state.mode === 'engaged' || performance.now() - pressedAt > 3000");
        }
    }

    /// Moves the tool by this; after a stop, or where the arm lagged behind when it was looked at, by what is left of it.
    fn drag(&mut self, page: &mut Page<'_>, by_m: [f64; 2]) {
        let begin = position(page);
        let goal = [begin[0] + by_m[0], begin[1] + by_m[1]];
        let away = format!("Math.hypot(state.position[0] - {}, state.position[1] - {})", goal[0], goal[1]);
        let at_rest = "Math.hypot(state.hand.position[0] - hand.p[0], state.hand.position[1] - hand.p[1]) < 1e-6 \
             && Math.hypot(state.position[0] - state.goal[0], state.position[1] - state.goal[1]) < 1e-4";
        for _ in 0..50 {
            self.press_anew(page);
            let here = position(page);
            let to = (
                self.at.0 + (goal[0] - here[0]) * self.scale_px_m,
                self.at.1 - (goal[1] - here[1]) * self.scale_px_m,
            );
            for step in 1..=40 {
                let share = f64::from(step) / 40.0;
                let at = (self.at.0 + (to.0 - self.at.0) * share, self.at.1 + (to.1 - self.at.1) * share);
                page.mouse("mouseMoved", at.0, at.1);
            }
            self.at = to;
            page.until(&format!("{away} < 0.003 || state.mode !== 'engaged' || {at_rest}"));
            if page.value(&format!("{away} < 0.003")) == true {
                return;
            }
        }
        panic!("the arm does not come to {goal:?}");
    }
}

/// The master dies in the middle of a motion: the arm stops by the age of its commands, with a name, and the page is red
/// within the deadline, what the page and the loop were late by themselves excepted.
fn red_within_the_deadline(page: &mut Page<'_>, pointer: &mut Pointer, running: &Loop) {
    let clock = "socket.clock(performance.now()).at";
    // In one step: a page that is held up between two may be red by itself.
    let begin = format!(
        "state.mode !== 'engaged' ? null \
         : (Object.assign(kept, {{ frameGap: 0, drawGap: 0, lateness: 0, redAt: null }}), {clock})"
    );
    let before_ms = loop {
        // Opening a page and painting it may hold the operator's up, too: pressed anew.
        pointer.press_anew(page);
        if let Some(before_ms) = page.value(&begin).as_f64() {
            break before_ms;
        }
    };
    kill(running.master);
    let after_ms = page.value(clock).as_f64().unwrap();
    page.until("state.mode === 'stopped' && document.body.dataset.alarm === 'red'");
    let kept = page.value("kept");
    let number = |name: &str| kept[name].as_f64().unwrap();
    // A frame, a plan, and a pose that the master sent ahead of its source time by the browser's bound.
    let own_ms = number("frameGap") + number("drawGap") + number("lateness") + 50.0;
    let red_ms = number("redAt");
    println!(
        "red {:.0} to {:.0} ms after the kill; the deadline is {DEADLINE_MS} ms, and up to {own_ms:.0} ms are the page's own: {kept}",
        red_ms - after_ms,
        red_ms - before_ms
    );
    assert!(
        red_ms >= before_ms && red_ms - after_ms <= DEADLINE_MS + own_ms,
        "{red_ms} {before_ms} {after_ms}"
    );
}

fn nothing_from_outside(page: &mut Page<'_>) {
    let fetched =
        page.value("performance.getEntriesByType('resource').map((entry) => new URL(entry.name).host)");
    let own = page.value("location.host");
    for host in fetched.as_array().unwrap() {
        assert_eq!(host, &own);
    }
}

/// Each canvas has pixels of its own.
fn pixels(page: &mut Page<'_>) {
    let blank = page.value(
        "[...document.querySelectorAll('canvas')].filter((canvas) => { \
         const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; \
         let count = 0; for (let i = 3; i < data.length; i += 4) count += data[i] > 0; return count < 200; \
         }).map((canvas) => canvas.id)",
    );
    assert_eq!(blank, serde_json::json!([]), "blank canvases");
}
