//! A headless Chromium for tests of pages: as much of its DevTools protocol as they need.
//!
//! For tests only: whatever fails here fails the test, with its reason. Where Chromium is absent, [`Browser::start`]
//! gives `None` and the test is skipped by name; `cargo xtask setup` installs it. Reference: Chrome DevTools Protocol 1.3.
#![forbid(unsafe_code)]
// A tool of tests: a panic is how it reports.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// Nothing of a test takes longer, on a machine that builds beside it.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Time that a page has to fulfil a condition, ms.
const CONDITION_MS: u32 = 60_000;

/// A headless Chromium with a profile of its own; killed when dropped.
pub struct Browser {
    child: Child,
    _profile: tempfile::TempDir,
    connection: RefCell<Connection>,
}

struct Connection {
    socket: WebSocket<TcpStream>,
    number: u64,
}

impl Connection {
    fn call(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Value {
        self.tried(session, method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn tried(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Result<Value, Value> {
        self.number += 1;
        let mut call = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = session {
            call["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(call.to_string())).unwrap();
        loop {
            let text = match self.socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(_) => continue,
                // A read with a time limit is interrupted when the process was stopped and goes on.
                Err(tungstenite::Error::Io(error)) if error.kind() == std::io::ErrorKind::Interrupted => {
                    continue;
                }
                Err(error) => panic!("{method}: {error}"),
            };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.number {
                return match answer["error"].is_null() {
                    true => Ok(answer["result"].clone()),
                    false => Err(answer["error"].clone()),
                };
            }
        }
    }
}

/// Chromium without a window, without errands of its own, for the program that starts it.
pub const FLAGS: [&str; 8] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--window-size=1280,1000",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

impl Browser {
    /// Starts one; `None` where there is none.
    pub fn start() -> Option<Browser> {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("chromium")
            .args(FLAGS)
            .args(["--disable-background-timer-throttling", "--disable-renderer-backgrounding"])
            .args(["--disable-backgrounding-occluded-windows", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut errors = BufReader::new(child.stderr.take()?);
        let mut line = String::new();
        let endpoint = loop {
            line.clear();
            assert_ne!(errors.read_line(&mut line).unwrap(), 0, "chromium ended");
            if let Some(endpoint) = line.trim().strip_prefix("DevTools listening on ") {
                break endpoint.to_owned();
            }
        };
        std::thread::spawn(move || errors.lines().for_each(drop));
        let address = endpoint.strip_prefix("ws://")?.split('/').next()?;
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (socket, _) = tungstenite::client(&endpoint, stream).unwrap();
        let connection = RefCell::new(Connection { socket, number: 0 });
        Some(Browser { child, _profile: profile, connection })
    }

    /// Opens an address in a tab of its own.
    pub fn open(&self, url: &str) -> Page<'_> {
        let mut connection = self.connection.borrow_mut();
        let target = connection.call(None, "Target.createTarget", json!({ "url": url, "newWindow": true }));
        let target = target["targetId"].as_str().unwrap().to_owned();
        let attached =
            connection.call(None, "Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        drop(connection);
        let mut page = Page { browser: self, target, session };
        page.call("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        page.loaded();
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A tab.
pub struct Page<'a> {
    browser: &'a Browser,
    target: String,
    session: String,
}

impl Page<'_> {
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.browser.connection.borrow_mut().call(Some(&self.session), method, parameters)
    }

    /// Waits for the page's own scripts. While it navigates, what is asked of it fails with the page before.
    fn loaded(&mut self) {
        let ready = "new Promise((done) => setTimeout(() => done(document.readyState === 'complete' && typeof socket !== 'undefined'), 20))";
        let parameters = json!({ "expression": ready, "returnByValue": true, "awaitPromise": true });
        for _ in 0..3_000 {
            let mut connection = self.browser.connection.borrow_mut();
            let answer = connection.tried(Some(&self.session), "Runtime.evaluate", parameters.clone());
            if answer.is_ok_and(|answer| answer["result"]["value"] == json!(true)) {
                return;
            }
        }
        panic!("the page did not load");
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits, in the page, until an expression is true.
    pub fn until(&mut self, condition: &str) {
        let script = format!(
            "new Promise((done) => {{ const begin = performance.now(); const look = () => {{ let is = false; \
             try {{ is = Boolean({condition}); }} catch {{ is = false; }} \
             if (is || performance.now() - begin > {CONDITION_MS}) done(is); else setTimeout(look, 10); }}; look(); }})"
        );
        if self.value(&script) != json!(true) {
            // A page may offer what helps to understand it.
            let seen = self.value(
                "({ text: document.body.innerText.slice(0, 2000), own: typeof forTests === 'function' ? forTests() : null })",
            );
            panic!("never true: {condition}\n{seen}");
        }
    }

    /// Presses and releases a key, by its name in `KeyboardEvent.key`, e.g. `ArrowDown` or `/`.
    pub fn key(&mut self, key: &str) {
        let text = if key.chars().count() == 1 { key } else { "" };
        let down = json!({ "type": "keyDown", "key": key, "text": text });
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
    }

    /// A window of this size, CSS pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let screen = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", screen);
    }

    /// A mouse with its left button.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let buttons = u8::from(kind != "mouseReleased");
        let event =
            json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1 });
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Sets a screen as large as a phone's, with touch.
    pub fn phone(&mut self) {
        let screen = json!({ "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true });
        self.call("Emulation.setDeviceMetricsOverride", screen);
    }

    /// Writes the visible part of the page as a picture.
    pub fn picture(&mut self, path: &Path) {
        let answer = self.call("Page.captureScreenshot", json!({}));
        std::fs::write(path, base64(answer["data"].as_str().unwrap())).unwrap();
    }

    /// The whole page as a picture.
    pub fn screenshot(&mut self, path: &Path) {
        let answer = self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true }));
        std::fs::write(path, base64(answer["data"].as_str().unwrap())).unwrap();
    }

    /// Closes the tab.
    pub fn close(self) {
        self.browser.connection.borrow_mut().call(
            None,
            "Target.closeTarget",
            json!({ "targetId": self.target }),
        );
    }
}

fn base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
