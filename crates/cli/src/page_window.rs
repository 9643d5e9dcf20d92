//! The browser window of a live page.

use std::process::{Command, Stdio};

/// Opens an address in the user's browser; false if none could be started.
pub(crate) fn open_browser(url: &str) -> bool {
    let started = Command::new("xdg-open").arg(url).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.is_ok()
}
