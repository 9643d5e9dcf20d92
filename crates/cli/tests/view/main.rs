//! `noctule view` in a real browser, on a running system of 240 topics and on a recording of it.
//!
//! Skipped by name where Chromium is absent. Screenshots are left in `target/browser`.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

mod board;
mod looks;
mod robot;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use noctule::Node;
use noctule_devtools::{Browser, Page};
use noctule_record::file::{Record, read_path};
use noctule_record::state;
use serde_json::json;

use board::Board;
use robot::{FAR, PICTURE, Robot, TOPICS_IN_ALL, pixel};

/// One robot of 240 topics at a time: two cores are enough for one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A view; killed when dropped.
struct View {
    child: Child,
    url: String,
}

impl View {
    fn start(arguments: &[&str]) -> View {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
        command.args(["view", "--no-open"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        View { child, url: url.trim().to_owned() }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn picture(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../browser");
    std::fs::create_dir_all(&directory).unwrap();
    directory.join(format!("view-{name}.png"))
}

fn browser(test: &str) -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        eprintln!("skipped: {test}: no chromium here");
    }
    browser
}

/// Waits for so many coloured pixels of a canvas: axes and grids are grey.
fn until_coloured(page: &mut Page<'_>, canvas: &str, least: u64) {
    page.until(&format!(
        "(() => {{ const canvas = document.querySelector('{canvas}'); \
         const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; let count = 0; \
         for (let i = 0; i < data.length; i += 4) count += data[i + 3] > 60 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 40; \
         return count > {least}; }})()"
    ));
}

#[test]
fn every_view_shows_what_the_robot_publishes() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(browser) = browser("every_view_shows_what_the_robot_publishes") else { return };
    let robot = Robot::start(4_510);
    let view = View::start(&["--domain", "4510"]);
    let mut page = browser.open(&view.url);
    page.resize(1440, 860);
    page.until(&format!("catalog.topics.filter((topic) => topic.live).length === {}", TOPICS_IN_ALL));
    topics(&mut page);
    samples_and_curves(&mut page, &robot);
    graph_and_nodes(&mut page);
    camera(&mut page);
    space(&mut page);
    board(&mut page);
    time(&mut page);
    let fetched = page.value("performance.getEntriesByType('resource').every((entry) => new URL(entry.name).host === location.host)");
    assert_eq!(fetched, true, "something was fetched from elsewhere");
    phone(&mut page);
}

fn topics(page: &mut Page<'_>) {
    page.until("timeline.frames.length > 20 && catalog.topics.every((topic) => timeline.value(topic.id, COLUMN.samples) > 5)");
    // Only rows that are seen exist.
    let rows = page.value("document.querySelectorAll('#body tr:not(.space)').length").as_u64().unwrap();
    assert!((10..60).contains(&rows), "{rows}");
    page.until("Number(document.querySelector('#body canvas').dataset.points) > 10");
    until_coloured(page, "#body canvas", 20);
    page.picture(&picture("topics"));
    // One clock: ages are exact, and the page says so.
    let bound =
        page.value("timeline.value(catalog.topics.find((topic) => topic.name === '/imu').id, COLUMN.bound)");
    assert_eq!(bound, 0.0);
    page.key("/");
    page.until("document.activeElement.id === 'filter'");
    page.value("element('filter').value = 'camera'; element('filter').dispatchEvent(new Event('input'))");
    page.until("topicsView.listed.length === 3");
    page.value("element('filter').value = ''; element('filter').dispatchEvent(new Event('input')); element('filter').blur()");
    // By keyboard alone, and a screen reader hears which row it is.
    page.value("element('table').focus()");
    page.key("ArrowDown");
    page.until("inspector.topic && inspector.topic === topicsView.listed[0].name");
    page.until("document.getElementById(element('table').getAttribute('aria-activedescendant')).textContent.startsWith(inspector.topic)");
    page.key("Escape");
    page.until("inspector.topic === null");
    page.value("document.querySelector('[data-export=\"topics-csv\"]').click()");
    page.until("document.body.dataset.exported.startsWith('topics.csv')");
    let bytes = page.value("Number(document.body.dataset.bytesPerSecond)");
    let draw = "(() => { const begin = performance.now(); for (let i = 0; i < 20; i += 1) topicsView.draw(); return (performance.now() - begin) / 20; })()";
    println!("drawing the table takes {} ms", page.value(draw));
    println!("bytes a second to a page with {} topics: {bytes}", TOPICS_IN_ALL);
    assert!(bytes.as_f64().unwrap() < 1_250_000.0, "10 Mbit/s: {bytes}");
}

/// Values on the page are those that were published, at their source times, none missing.
fn samples_and_curves(page: &mut Page<'_>, robot: &Robot) {
    page.value("topicsView.choose('/imu')");
    page.until("inspector.sample && inspector.sample.tree.linear_acceleration.z > 9");
    page.until("document.querySelectorAll('#inspector .way i').length === 4");
    page.picture(&picture("sample"));
    // Of a type that its node described when it was asked.
    page.value("topicsView.choose('/battery')");
    page.until("inspector.sample && inspector.sample.tree.voltage === 24.5 && inspector.sample.tree.cells.length === 2");
    page.value("topicsView.choose('/imu')");
    page.until("inspector.sample && inspector.sample.tree.linear_acceleration");
    page.value("document.querySelector('#inspector [data-path=\"linear_acceleration.z\"]').click()");
    page.value("plotsView.add('/imu', 'linear_acceleration.x', 0); plotsView.add('/sensors/s000', 'data'); plotsView.add('/imu', '@age_ms')");
    page.key("4");
    page.until("plotsView.points.get('/sensors/s000 data').xs.length > 20");
    page.until("Number(document.querySelector('.chart').dataset.points) > 60");
    until_coloured(page, ".chart canvas", 300);
    page.picture(&picture("plots"));
    let shown = page.value("(() => { const { xs, ys } = plotsView.points.get('/sensors/s000 data'); return xs.map((x, at) => [x, ys[at]]); })()");
    let shown: Vec<(f64, f64)> = serde_json::from_value(shown).unwrap();
    let published = robot.published.lock().unwrap().clone();
    let ms = |ns: i64| (ns as f64 * 1e-2).round() * 1e-4;
    let begin = published.iter().position(|(at, _)| ms(*at) == shown[0].0).unwrap();
    for ((at, value), (source_ns, truth)) in shown.iter().zip(&published[begin..]) {
        assert_eq!((*at, *value), (ms(*source_ns), *truth));
    }
    for kind in ["PNG", "SVG", "CSV"] {
        page.value(&format!("document.querySelector('.chart [data-kind=\"{kind}\"]').click()"));
        page.until(&format!("document.body.dataset.exported.includes('.{}')", kind.to_lowercase()));
    }
}

fn graph_and_nodes(page: &mut Page<'_>) {
    page.key("2");
    page.until("document.querySelectorAll('#graph .edge').length >= 7");
    page.until(
        "[...document.querySelectorAll('#graph .edge path')].every((path) => Number(path.dataset.age) >= 0)",
    );
    page.picture(&picture("graph"));
    page.value("document.querySelector('[data-export=\"graph-png\"]').click()");
    page.until("document.body.dataset.exported.startsWith('graph.png')");
    page.key("3");
    page.until("document.querySelectorAll('#nodes tbody tr').length === 9");
    page.until("nodes.every((node) => node.rtt_ms > 0 && node.answers > 0)");
    // Another host's clock.
    page.until(&format!("nodes.find((node) => node.name === '{FAR}').clock.bound_ms > 0"));
    assert_clock(page);
    let problem = page.value("document.querySelector('#problems .problem').textContent");
    let problem = problem.as_str().unwrap();
    assert!(problem.contains("/scan") && problem.contains("reliable"), "{problem}");
    links(page);
    page.picture(&picture("nodes"));
}

/// 5 s ahead, within the bound that the page shows.
fn assert_clock(page: &mut Page<'_>) {
    let clock = page.value(&format!("nodes.find((node) => node.name === '{FAR}').clock"));
    let (offset_ms, bound_ms) = (clock["offset_ms"].as_f64().unwrap(), clock["bound_ms"].as_f64().unwrap());
    assert!((offset_ms - 5_000.0).abs() <= bound_ms, "{clock}");
}

/// The page shows a link that it has no part in as the node that it leaves from reports it to another one.
fn links(page: &mut Page<'_>) {
    let link = format!("links.find((link) => link.from === '{FAR}' && link.to === 'localization')");
    page.until(&format!("({link} || {{ sent: 0 }}).sent > 0"));
    let node = Node::builder("other").domain(4_510).keep_notices().open().unwrap();
    let mut of = |key: &str| page.value(&format!("{link}.{key}")).as_str().unwrap().to_owned();
    let (from, to) = (of("from_id"), of("to_id"));
    let end = Instant::now() + Duration::from_secs(60);
    let sent = || loop {
        assert!(Instant::now() < end, "no report of {from}");
        let known = node.nodes().into_iter().find(|known| known.id.to_string() == from);
        let reported = known.and_then(|known| node.links_of(known.id, Duration::from_secs(1)).ok());
        let links = reported.unwrap_or_default();
        if let Some(link) = links.iter().find(|link| link.to.to_string() == to) {
            return link.sent_datagrams;
        }
    };
    let before = sent();
    page.until(&format!("{link}.sent >= {before}"));
    let shown = page.value(&format!("{link}.sent")).as_u64().unwrap();
    let after = sent();
    assert!((before..=after).contains(&shown), "{shown} on the page, {before} before and {after} after it");
    let row = format!(
        "[...document.querySelectorAll('#links tbody tr')].some((row) => row.textContent.startsWith('{FAR}localization'))"
    );
    page.until(&row);
}

/// Samples of a board are on the page as another reader receives them, at source times within their bound of the board's own.
fn board(page: &mut Page<'_>) {
    let node = Node::builder("judge").domain(4_510).keep_notices().open().unwrap();
    let mut subscriber = node.subscriber(board::TOPIC).open().unwrap();
    let board = Board::start("4510");
    page.value(&format!("plotsView.add('{}', 'data')", board::TOPIC));
    page.key("4");
    let curve = format!("plotsView.points.get('{} data')", board::TOPIC);
    let mut seen = BTreeMap::new();
    let ms = |ns: i64| (ns as f64 * 1e-2).round() * 1e-4;
    let end = Instant::now() + Duration::from_secs(60);
    // Positive numbers are in the order of their bits.
    let both = loop {
        while let Some(sample) = subscriber.receive(Some(Duration::from_millis(100))).unwrap() {
            let (bytes, info) = (sample.to_vec(), *sample.info());
            let value = f64::from_le_bytes(*bytes.last_chunk().unwrap());
            seen.insert(value.to_bits(), (info.source_time.unwrap().ns(), info.bound));
            if seen.len() % 10 == 0 {
                break;
            }
        }
        let shown = page.value(&format!("{curve} ? {curve}.xs.map((x, at) => [x, {curve}.ys[at]]) : []"));
        let shown: Vec<(f64, f64)> = serde_json::from_value(shown).unwrap();
        let both: Vec<_> = shown
            .iter()
            .filter_map(|(at, value)| Some((*at, *value, *seen.get(&value.to_bits())?)))
            .collect();
        assert!(Instant::now() < end, "{} shown, {} read, {} of both", shown.len(), seen.len(), both.len());
        if both.len() > 20 {
            break both;
        }
    };
    let published = board.published.lock().unwrap().clone();
    for (at, value, (source_ns, bound)) in both {
        assert_eq!(at, ms(source_ns));
        let (own_ns, _) = published.iter().find(|(_, own)| *own == value).unwrap();
        if let Some(bound) = bound {
            assert!((source_ns - own_ns).abs() <= bound.ns(), "{source_ns} of {own_ns}, bound {bound:?}");
        }
    }
    page.picture(&picture("board"));
}

fn camera(page: &mut Page<'_>) {
    page.key("5");
    page.value(
        "picturesView.topics().forEach((topic) => picturesView.chosen.add(topic.name)); look(); refresh()",
    );
    let (width, height) = PICTURE;
    for topic in ["/camera/image_raw", "/camera/compressed"] {
        let canvas = format!("document.querySelector('figure canvas[data-topic=\"{topic}\"]')");
        page.until(&format!("Number({canvas}.dataset.sequence) > 0"));
        let script = format!(
            "(() => {{ const canvas = {canvas}; \
             const at = (x, y) => [...canvas.getContext('2d').getImageData(x, y, 1, 1).data.slice(0, 3)]; \
             return {{ size: [canvas.width, canvas.height], pixels: [at(3, 5), at(60, 40)] }}; }})()"
        );
        let seen = page.value(&script);
        assert_eq!(seen["size"], json!([width, height]), "{topic}");
        let shade = seen["pixels"][0][2].as_u64().unwrap() as u8;
        assert_eq!(seen["pixels"], json!([pixel(3, 5, shade), pixel(60, 40, shade)]), "{topic}");
    }
    page.picture(&picture("pictures"));
}

fn space(page: &mut Page<'_>) {
    page.key("6");
    page.until("['/map', '/camera/points', '/odom', '/scan', '/plan'].every((name) => sceneView.things.has(name)) && sceneView.frames.size >= 3");
    page.until("sceneView.things.get('/camera/points').message.of === 40000");
    // All of them hang together by transforms.
    page.until("[...sceneView.things.values()].every((thing) => sceneView.toShown(thing.frame) !== null)");
    page.value("sceneView.fit(); sceneView.paint()");
    until_coloured(page, "#space", 2_000);
    // The scan lies where the robot is: 0.6 m up, within its reach.
    let lidar = page.value("apply(sceneView.toShown('lidar'), [0, 0, 0])");
    assert!((lidar[2].as_f64().unwrap() - 0.6).abs() < 1e-6, "{lidar}");
    page.until("sceneView.trails.get('/odom').length > 5");
    page.picture(&picture("scene"));
}

fn time(page: &mut Page<'_>) {
    page.key("1");
    page.value("document.activeElement.blur()");
    page.key(" ");
    page.until("!timeline.isFollowing()");
    let before = page.value("timeline.now()").as_f64().unwrap();
    page.key("m");
    page.key("ArrowLeft");
    page.until(&format!("timeline.now() < {before} - 500"));
    page.value("document.querySelector('#marks button').click()");
    page.until(&format!("Math.abs(timeline.now() - {before}) < 400"));
    assert_eq!(page.value("timeline.hold(timeline.frames.at(-1).at); timeline.isFollowing()"), false);
    page.value("element('live').click()");
    page.until("timeline.isFollowing()");
}

fn phone(page: &mut Page<'_>) {
    page.value("topicsView.choose(null)");
    page.phone();
    page.key("d");
    page.until("document.querySelectorAll('#body tr:not(.space)').length > 5");
    assert_eq!(page.value("document.documentElement.scrollWidth <= window.innerWidth"), true);
    page.picture(&picture("phone"));
    let unnamed = page.value(
        "[...document.querySelectorAll('button, input, select, canvas, svg')].filter((one) => \
         !(one.getAttribute('aria-label') || one.textContent.trim() || one.closest('label, [role=\"img\"]') || one.querySelector('title'))).map((one) => one.outerHTML)",
    );
    assert_eq!(unnamed, json!([]), "without a name for screen readers");
}

/// Records the robot of domain 4520, in place of what the file had.
fn record(file: &Path, seconds: u32) {
    let _ = std::fs::remove_file(file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_noctule"));
    command.args(["record", "--domain", "4520", "--seconds"]).arg(seconds.to_string());
    let recorded = command.arg("--out").arg(file).output().unwrap();
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
}

/// Whether the recorder had a bound of the other host's clock at the end.
fn ends_with_the_far_clock(file: &Path) -> bool {
    let mut has_bound = false;
    let mut take = |record: Record<'_>| {
        if let Record::State(bytes) = record {
            let (_, state) = state::decode(bytes).unwrap();
            let mut far = state.nodes.iter().filter(|node| node.name == FAR);
            has_bound = far.any(|node| node.clock.as_ref().is_some_and(|clock| clock.bound_ms.is_some()));
        }
        Ok(())
    };
    read_path(file, &mut take).unwrap();
    has_bound
}

#[test]
fn a_recording_is_shown_at_any_moment() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(browser) = browser("a_recording_is_shown_at_any_moment") else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("robot.mcap");
    let published = {
        let robot = Robot::start(4_520);
        // On a busy machine the recorder meets the other host's node later.
        let is_recorded = [8, 24, 72].into_iter().any(|seconds| {
            record(&file, seconds);
            ends_with_the_far_clock(&file)
        });
        assert!(is_recorded, "the clock of {FAR} is in no recording");
        robot.published.lock().unwrap().clone()
    };
    let view = View::start(&[file.to_str().unwrap()]);
    let mut page = browser.open(&view.url);
    page.resize(1440, 860);
    page.until("timeline.mode === 'file' && catalog.topics.length > 200 && timeline.frames.length > 2");
    page.value("document.activeElement.blur()");
    page.key(" ");
    page.until("!timeline.playing");
    page.value("timeline.seek(timeline.range[1])");
    page.until("Math.abs(timeline.now() - timeline.range[1]) < 1");
    // The whole curve, whatever the moment: every value that was recorded, in order.
    page.value("plotsView.add('/sensors/s000', 'data'); element('plot-window').value = '0'; select('plots')");
    page.until("plotsView.points.has('/sensors/s000 data') && plotsView.points.get('/sensors/s000 data').xs.length > 20");
    let shown: Vec<f64> =
        serde_json::from_value(page.value("plotsView.points.get('/sensors/s000 data').ys")).unwrap();
    let truth: Vec<f64> = published.iter().map(|(_, value)| *value).collect();
    let begin = truth.iter().position(|value| *value == shown[0]).unwrap();
    assert_eq!(shown, truth[begin..begin + shown.len()]);
    page.until("Number(document.querySelector('.chart').dataset.points) > 10");
    until_coloured(&mut page, ".chart canvas", 100);
    page.picture(&picture("recording"));
    // Nodes are named, as they were when they were recorded.
    page.key("2");
    page.until("['imu_driver', 'sensors'].every((name) => [...document.querySelectorAll('#graph .node text')].some((text) => text.textContent === name))");
    // Another host's clock, what does not match, and deadlines, as the recorder saw them.
    page.key("3");
    page.until(&format!(
        "(nodes.find((node) => node.name === '{FAR}' && node.clock) || {{ clock: {{}} }}).clock.bound_ms > 0"
    ));
    assert_clock(&mut page);
    page.until("document.querySelector('#problems .problem') !== null");
    let problem = page.value("document.querySelector('#problems .problem').textContent");
    assert!(problem.as_str().unwrap().contains("/scan"), "{problem}");
    page.until("document.querySelectorAll('#nodes tbody tr').length >= 8");
    let of = |topic: &str| {
        format!(
            "timeline.value(catalog.topics.find((topic) => topic.name === '{topic}').id, COLUMN.deadline)"
        )
    };
    assert!(page.value(&of("/imu")).is_number());
    assert!(!page.value(&of("/scan")).is_number());
    // Another moment, another picture.
    page.key("5");
    page.until("Number((document.querySelector('figure canvas') || { dataset: {} }).dataset.sequence) > 0");
    let late =
        page.value("Number(document.querySelector('figure canvas').dataset.sequence)").as_f64().unwrap();
    page.value("timeline.seek(timeline.range[0] + 2500)");
    page.until(&format!("Number(document.querySelector('figure canvas').dataset.sequence) < {late}"));
    address(&browser, &mut page);
}

/// An address that is opened again restores the view, each chart as wide as its place.
fn address(browser: &Browser, page: &mut Page<'_>) {
    page.value("plotsView.add('/imu', '@age_ms'); plotsView.add('/imu', '@bound_ms', 1); topicsView.choose('/imu'); select('plots')");
    let looked = "JSON.stringify([current, inspector.topic, plotsView.charts.map((chart) => chart.curves)])";
    let before = page.value(looked);
    page.until("decodeURIComponent(location.href).includes('@bound_ms')");
    let address = page.value("location.href");
    let mut page = browser.open(address.as_str().unwrap());
    page.resize(1440, 860);
    page.until("typeof plotsView === 'object' && plotsView.charts.length === 2");
    assert_eq!(page.value(looked), before);
    let fits = "[...document.querySelectorAll('.chart')].every((chart) => chart.scrollWidth <= element('charts').clientWidth)";
    page.until(fits);
    page.value("[...document.querySelectorAll('#inspector button')].find((button) => button.textContent === 'Close').click()");
    page.until("plotsView.charts.every((chart) => chart.plot.width > element('charts').clientWidth * 0.9)");
}

#[test]
fn what_cannot_be_shown_is_said_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("no.mcap");
    std::fs::write(&file, b"this is no recording").unwrap();
    let path = file.to_str().unwrap();
    for (arguments, part) in [
        (vec![path], "does not begin as an MCAP file"),
        (vec!["/nowhere.mcap"], "cannot be opened"),
        (vec![path, "/imu"], "not both"),
        (vec!["--types", "/nowhere"], "no folder"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_noctule")).arg("view").args(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{arguments:?}: {said}");
        assert!(said.contains(part), "{said}");
    }
}

/// A page that reads nothing costs the robot's other readers nothing.
#[test]
fn a_page_that_does_not_read_is_left_behind_and_nobody_waits() {
    use tungstenite::client::IntoClientRequest;
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let _robot = Robot::start(4_530);
    let view = View::start(&["--domain", "4530"]);
    let (host, token) = view.url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    let open = || {
        let mut request = format!("ws://{host}/socket?token={token}").into_client_request().unwrap();
        request.headers_mut().insert("Origin", format!("http://{host}").parse().unwrap());
        let stream = std::net::TcpStream::connect(host).unwrap();
        tungstenite::client(request, stream).unwrap().0
    };
    let wants =
        json!({ "t": "look", "pictures": ["/camera/points", "/camera/image_raw"], "values": ["/scan"] })
            .to_string();
    let mut stuck = open();
    stuck.send(tungstenite::Message::text(&wants)).unwrap();
    let mut reading = open();
    reading.send(tungstenite::Message::text(&wants)).unwrap();
    let node = Node::builder("judge").domain(4_530).keep_notices().open().unwrap();
    let mut subscriber = node.subscriber("/sensors/s000").open().unwrap();
    let (mut states, mut points) = (0, 0);
    let (mut missed, mut taken) = (0, 0);
    // Far more than the buffers of a socket that is not read.
    while points < 20 || states < 20 || taken < 20 {
        match reading.read().unwrap() {
            tungstenite::Message::Text(text) => states += u32::from(text.contains("\"t\":\"state\"")),
            tungstenite::Message::Binary(bytes) => points += u32::from(bytes.len() > 100_000),
            _ => {}
        }
        while let Some(sample) = subscriber.take().unwrap() {
            missed += sample.info().missed;
            taken += 1;
        }
    }
    assert_eq!(missed, 0, "of {taken} samples");
}
