//! When each recorded message is due: arithmetic alone, so that every play of a file is the same.

/// Which part of a recording is played, and how fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Times the recorded speed; more than 0.
    pub rate: f64,
    /// Log time of the first message of the file, ns.
    pub start_ns: u64,
    /// Play from here, ns after the start.
    pub from_ns: u64,
    /// Play up to here, ns after the start, this moment excluded; `None` plays to the end.
    pub to_ns: Option<u64>,
}

/// Time at which a message is due, or on which side of the played part it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It lies before the part that is played.
    Before,
    /// Publish it so many nanoseconds after the play began.
    At(u64),
    /// It lies behind the part that is played.
    Behind,
}

impl Schedule {
    /// When a message with this log time is due. A message that the file holds later than its log time says is due when its log
    /// time says; the player publishes it at once then, in the order of the file.
    pub fn due(&self, log_ns: u64) -> Due {
        let offset_ns = log_ns.saturating_sub(self.start_ns);
        if offset_ns < self.from_ns {
            return Due::Before;
        }
        if self.to_ns.is_some_and(|to_ns| offset_ns >= to_ns) {
            return Due::Behind;
        }
        // Saturates far beyond any recording.
        Due::At(((offset_ns - self.from_ns) as f64 / self.rate).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_from_and_to_move_what_is_due() {
        let schedule = Schedule { rate: 2.0, start_ns: 1_000, from_ns: 100, to_ns: Some(400) };
        assert_eq!(schedule.due(1_099), Due::Before);
        assert_eq!(schedule.due(900), Due::Before);
        assert_eq!(schedule.due(1_100), Due::At(0));
        assert_eq!(schedule.due(1_300), Due::At(100));
        assert_eq!(schedule.due(1_400), Due::Behind);
        let whole = Schedule { rate: 1.0, start_ns: 1_000, from_ns: 0, to_ns: None };
        assert_eq!((whole.due(900), whole.due(1_007)), (Due::At(0), Due::At(7)));
    }
}
