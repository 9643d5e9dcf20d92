//! Pictures of every view, light, dark and on a phone, of a running robot and of its recording, for people to look at:
//! `cargo test -p noctule-cli --test view -- --ignored`. They and the recording are left in `target/browser`.

use std::process::Command;

use noctule_devtools::{Browser, Page};

use super::board::{self, Board};
use super::robot::{Robot, TOPICS_IN_ALL};
use super::{View, browser, picture};

const DOMAIN: &str = "4540";
/// Key, name, and what is there before the picture is taken.
const VIEWS: [(&str, &str, &str); 6] = [
    ("1", "topics", "document.querySelectorAll('#body tr:not(.space)').length > 5"),
    ("2", "graph", "document.querySelectorAll('#graph .node').length > 5"),
    ("3", "nodes", "document.querySelectorAll('#nodes tbody tr').length > 8"),
    (
        "4",
        "plots",
        "[...document.querySelectorAll('.chart')].every((one) => Number(one.dataset.points) > 10)",
    ),
    ("5", "pictures", "document.querySelectorAll('figure canvas[data-sequence]').length === 2"),
    ("6", "scene", "sceneView.things.size >= 5 && Number(element('space').dataset.points) > 1000"),
];

#[test]
#[ignore = "for people: some fifty pictures"]
fn pictures_of_every_view() {
    let Some(browser) = browser("pictures_of_every_view") else { return };
    let file = picture("flight").with_extension("mcap");
    let _ = std::fs::remove_file(&file);
    let path = file.to_str().unwrap();
    {
        let _robot = Robot::start(DOMAIN.parse().unwrap());
        let _board = Board::start(DOMAIN);
        let record = ["record", "--out", path, "--domain", DOMAIN, "--seconds", "20"];
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_noctule")).args(record).spawn().unwrap();
        look(&browser, "live", &["--domain", DOMAIN]);
        assert!(recorder.wait().unwrap().success());
    }
    look(&browser, "file", &[path]);
}

fn look(browser: &Browser, name: &str, arguments: &[&str]) {
    let view = View::start(arguments);
    let mut page = browser.open(&view.url);
    page.resize(1440, 860);
    page.until(&format!("catalog.topics.length >= {TOPICS_IN_ALL} && timeline.frames.length > 30"));
    page.value(&format!(
        "plotsView.add('/imu', 'linear_acceleration.z'); plotsView.add('/imu', 'linear_acceleration.x', 0); \
         plotsView.add('/sensors/s000', 'data'); plotsView.add('{}', '@age_ms'); plotsView.add('{}', '@bound_ms', 2); \
         picturesView.topics().forEach((topic) => picturesView.chosen.add(topic.name))",
        board::TOPIC,
        board::TOPIC
    ));
    page.value("document.activeElement.blur()");
    all(&mut page, &format!("{name}-light"));
    page.key("d");
    all(&mut page, &format!("{name}-dark"));
    page.phone();
    all(&mut page, &format!("{name}-phone"));
    page.close();
}

fn all(page: &mut Page<'_>, look: &str) {
    page.value("topicsView.choose(null)");
    for (key, view, there) in VIEWS {
        page.key(key);
        page.until(there);
        if view == "scene" {
            page.value("sceneView.fit()");
        }
        two_frames(page);
        page.picture(&picture(&format!("{look}-{view}")));
    }
    page.key("1");
    page.value("topicsView.choose('/odom')");
    page.until("inspector.sample && inspector.sample.tree");
    two_frames(page);
    page.picture(&picture(&format!("{look}-sample")));
    page.value("element('help').click()");
    two_frames(page);
    page.picture(&picture(&format!("{look}-help")));
    page.value("element('help-dialog').close(); topicsView.choose(null)");
}

/// Waits until changes have been drawn.
fn two_frames(page: &mut Page<'_>) {
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
}
