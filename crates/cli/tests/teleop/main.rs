//! The tele-operation's page in a real browser: headless Chromium, driven by its DevTools protocol.
//!
//! Skipped by name where Chromium is absent. Screenshots are left in `target/browser`.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use noctule_devtools::{Browser, Page};

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
        command.args(["teleop", "--no-open", "--domain", &domain.to_string()]).args(more);
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
        // Whatever is said later must not block anybody.
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

fn kill(process: u32) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
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
    let Some(browser) = Browser::start() else {
        eprintln!(
            "skipped: dragging_a_square_moves_the_arm_and_bad_days_turn_the_page_red: no chromium here"
        );
        return;
    };
    let running = Loop::start(4_410, &["--deadline", "500ms"]);
    let mut page = browser.open(&running.url);
    operate(&mut page);
    let (x, y) = middle(&mut page, "top");
    let scale = page.value("views.find((view) => view.name === 'top').scale").as_f64().unwrap();
    let begin = position(&mut page);
    page.mouse("mousePressed", x, y);
    page.until("state.mode === 'engaged'");
    let side_px = (0.06 * scale).round();
    let corners = [(1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
    let mut at = (x, y);
    for (right, up) in corners {
        let corner = (x + right * side_px, y - up * side_px);
        for step in 1..=40 {
            let share = f64::from(step) / 40.0;
            page.mouse("mouseMoved", at.0 + (corner.0 - at.0) * share, at.1 + (corner.1 - at.1) * share);
        }
        at = corner;
        let goal = [begin[0] + right * side_px / scale, begin[1] + up * side_px / scale];
        page.until(&format!(
            "Math.hypot(state.position[0] - {}, state.position[1] - {}) < 0.003",
            goal[0], goal[1]
        ));
    }
    assert_eq!(page.value("state.mode"), "engaged");
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

    // Opening a page and painting it may hold the operator's up, too: pressed anew.
    page.mouse("mouseReleased", x, y);
    page.until("state.mode === 'idle' || state.mode === 'stopped'");
    page.mouse("mousePressed", x, y);
    page.until("state.mode === 'engaged'");
    // The master dies in the middle of a motion: the arm stops by the age of its commands, with a name.
    kill(running.master);
    page.until("state.mode === 'stopped' && document.body.dataset.alarm === 'red'");
    let banner = page.value("document.getElementById('banner').textContent");
    assert!(banner.as_str().unwrap().contains("no command arrived within the deadline"), "{banner}");
    page.screenshot(&pictures().join("teleop-stopped.png"));
    kill(running.controller);
    page.until("document.getElementById('banner').textContent.includes('silent')");
    assert_eq!(page.value("document.body.dataset.alarm"), "red");
}

#[test]
fn an_operator_that_goes_stops_the_arm_and_a_phone_shows_it() {
    let Some(browser) = Browser::start() else {
        eprintln!("skipped: an_operator_that_goes_stops_the_arm_and_a_phone_shows_it: no chromium here");
        return;
    };
    let running = Loop::start(4_420, &[]);
    let mut watcher = browser.open(&running.url);
    watcher.phone();
    {
        let mut operator = browser.open(&running.url);
        operate(&mut operator);
        let (x, y) = middle(&mut operator, "top");
        operator.mouse("mousePressed", x, y);
        operator.until("state.mode === 'engaged'");
        operator.close();
    }
    watcher.until("state.mode !== 'engaged' && state.operator === null");
    // Whoever comes next must press anew.
    watcher.until("state.mode === 'idle' || state.mode === 'stopped'");
    watcher.value("document.documentElement.dataset.theme = 'dark'");
    watcher.screenshot(&pictures().join("teleop-phone.png"));
    assert_eq!(watcher.value("document.documentElement.scrollWidth <= window.innerWidth"), true);
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
