//! A hand that was recorded: a table of times and positions, or the commands of a recorded run.

use std::path::Path;

use crate::recording::{RecordedSample, RecordingError, read};

/// Rows of a table.
const ROWS_MAX: usize = 2_000_000;
/// Header line of a table.
const HEAD: &str = "seconds,x_m,y_m,z_m,clutch";

/// Why there is no trajectory.
#[derive(Debug, thiserror::Error)]
pub enum TrajectoryError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// Path of the file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The first line is not the header of a table.
    #[error("the first line of a trajectory is \"{HEAD}\", not \"{0}\"")]
    Head(String),
    /// A line is no row of a table.
    #[error("line {line}: \"{text}\" is not four finite numbers and a 0 or 1 with commas between them")]
    Row {
        /// Line number, from 1.
        line: usize,
        /// Its text.
        text: String,
    },
    /// The lines are not in order of time.
    #[error("line {0} is not later than the line before it; sort the lines by their seconds")]
    Order(usize),
    /// The table has no rows, or too many.
    #[error("a trajectory has 1 to {ROWS_MAX} lines below the first, not {0}")]
    Length(usize),
}

/// Position of the hand at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Time after the beginning, ns.
    pub at_ns: i64,
    /// m.
    pub position_m: [f64; 3],
    /// The clutch was held.
    pub clutch: bool,
}

/// Rows by their time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    rows: Vec<Row>,
}

impl Trajectory {
    /// Reads a table, or, of a file that ends in `.mcap`, the commands of a recorded run.
    ///
    /// # Errors
    /// The file is none.
    pub fn read(path: &Path) -> Result<Trajectory, TrajectoryError> {
        if path.extension().is_some_and(|ending| ending == "mcap") {
            return Trajectory::of_recording(path);
        }
        let text = std::fs::read_to_string(path)
            .map_err(|source| TrajectoryError::File { path: path.display().to_string(), source })?;
        text.parse()
    }

    fn of_recording(path: &Path) -> Result<Trajectory, TrajectoryError> {
        let mut rows: Vec<Row> = Vec::new();
        let mut first_ns = None;
        for (times, sample) in read(path)? {
            let RecordedSample::Command(command) = sample else { continue };
            let at_ns = times.source_ns - *first_ns.get_or_insert(times.source_ns);
            if rows.last().is_none_or(|last| at_ns > last.at_ns) {
                rows.push(Row { at_ns, position_m: command.position_m, clutch: command.clutch });
            }
        }
        Trajectory::of_rows(rows)
    }

    fn of_rows(rows: Vec<Row>) -> Result<Trajectory, TrajectoryError> {
        match rows.len() {
            1..=ROWS_MAX => Ok(Trajectory { rows }),
            length => Err(TrajectoryError::Length(length)),
        }
    }

    /// All rows, oldest first.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

impl std::str::FromStr for Trajectory {
    type Err = TrajectoryError;

    fn from_str(text: &str) -> Result<Trajectory, TrajectoryError> {
        let mut lines = text.lines().enumerate();
        let head = lines.next().map_or("", |(_, line)| line.trim());
        if head != HEAD {
            return Err(TrajectoryError::Head(head.chars().take(80).collect()));
        }
        let mut rows: Vec<Row> = Vec::new();
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let row = row(line).ok_or_else(|| TrajectoryError::Row {
                line: index + 1,
                text: line.chars().take(80).collect(),
            })?;
            if rows.last().is_some_and(|last| row.at_ns <= last.at_ns) {
                return Err(TrajectoryError::Order(index + 1));
            }
            if rows.len() == ROWS_MAX {
                return Err(TrajectoryError::Length(ROWS_MAX + 1));
            }
            rows.push(row);
        }
        Trajectory::of_rows(rows)
    }
}

fn row(line: &str) -> Option<Row> {
    let mut parts = line.split(',').map(str::trim);
    let mut number = || parts.next()?.parse().ok().filter(|number: &f64| number.is_finite());
    let (seconds, position_m) = (number()?, [number()?, number()?, number()?]);
    let clutch = match parts.next()? {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let is_sensible = (0.0..1e6).contains(&seconds) && position_m.iter().all(|part| part.abs() < 1e3);
    (is_sensible && parts.next().is_none()).then_some(Row {
        at_ns: (seconds * 1e9).round() as i64,
        position_m,
        clutch,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_table_is_read() {
        let text = "seconds,x_m,y_m,z_m,clutch\n0,0,0,0,0\n0.008, 0.01,-0.02,0,1\n\n";
        let trajectory: Trajectory = text.parse().unwrap();
        let wanted = Row { at_ns: 8_000_000, position_m: [0.01, -0.02, 0.0], clutch: true };
        assert_eq!(trajectory.rows()[1..], [wanted]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let head = HEAD;
        for (text, wanted) in [
            (String::new(), "first line"),
            (format!("{head}\n"), "not 0"),
            (format!("{head}\n0,0,0,0\n"), "line 2"),
            (format!("{head}\n0,0,nan,0,1\n"), "line 2"),
            (format!("{head}\n0,0,0,0,2\n"), "line 2"),
            (format!("{head}\n0,0,0,0,1,1\n"), "line 2"),
            (format!("{head}\n1,0,0,0,1\n1,0,0,0,1\n"), "line 3"),
        ] {
            let refused = text.parse::<Trajectory>().unwrap_err().to_string();
            assert!(refused.contains(wanted), "{refused}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut text = format!("{HEAD}\n");
            for _ in 0..30 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push(b"0123456789,.-e\nN "[(state >> 33) as usize % 17].into());
            }
            let _ = text.parse::<Trajectory>();
        }
    }
}
