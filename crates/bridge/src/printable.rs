//! Text from a network on a terminal.

/// A line without what would steer a terminal: names come from a network.
pub fn printable(line: &str) -> String {
    line.replace(char::is_control, "\u{fffd}")
}
