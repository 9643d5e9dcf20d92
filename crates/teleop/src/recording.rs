//! Commands and states of the arm as MCAP, in JSON with a schema: Foxglove and PlotJuggler open it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use mcap::records::MessageHeader;
use serde::Serialize;

use crate::messages::{ArmState, POSE_TOPIC, PoseCommand, STATE_TOPIC};

/// JSON schema of a state, for viewers; fields are described in `messages`.
const STATE_SCHEMA: &str = r#"{"type":"object","properties":{"sequence":{"type":"integer"},"mode":{"type":"integer"},
"rule":{"type":"integer"},"joints_rad":{"type":"array","items":{"type":"number"}},
"velocity_rad_s":{"type":"array","items":{"type":"number"}},"voltage_v":{"type":"array","items":{"type":"number"}},
"position_m":{"type":"array","items":{"type":"number"}},"orientation":{"type":"array","items":{"type":"number"}},
"goal_m":{"type":"array","items":{"type":"number"}},"command_age_ns":{"type":"integer"},
"command_bound_ns":{"type":"integer"},"branch":{"type":"integer"},"sigma_min":{"type":"number"},
"rules":{"type":"array","items":{"type":"integer"}}}}"#;
/// JSON schema of a command, for viewers.
const COMMAND_SCHEMA: &str = r#"{"type":"object","properties":{"sequence":{"type":"integer"},"operator":{"type":"integer"},
"position_m":{"type":"array","items":{"type":"number"}},"orientation":{"type":"array","items":{"type":"number"}},
"linear_velocity_m_s":{"type":"array","items":{"type":"number"}},
"angular_velocity_rad_s":{"type":"array","items":{"type":"number"}},"clutch":{"type":"boolean"},
"scale":{"type":"number"},"bound_ns":{"type":"integer"}}}"#;

/// Why a recording cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be opened, read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// Path of the file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The contents are no recording of an arm.
    #[error("{path} is no recording of an arm: {source}")]
    Content {
        /// Path of the file.
        path: String,
        /// MCAP's error.
        source: mcap::McapError,
    },
    /// It contains no state.
    #[error("{path} contains no message of {STATE_TOPIC}; record one with `noctule teleop --record FILE`")]
    Empty {
        /// Path of the file.
        path: String,
    },
}

/// A file that is being written.
pub struct Recorder {
    path: String,
    writer: mcap::Writer<BufWriter<File>>,
    states: u16,
    commands: u16,
    counts: RecordedCounts,
}

/// Counts of a recording's samples, and of those it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedCounts {
    /// States in the file.
    pub states: u64,
    /// Commands in the file.
    pub commands: u64,
    /// Samples that the recorder's readers missed.
    pub missed: u64,
}

/// When a sample was true and when it arrived, ns of the recorder's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleTimes {
    /// The source time; of a sample without one, the arrival.
    pub source_ns: i64,
    /// The arrival.
    pub received_ns: i64,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Recorder").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Begins a file, over one that may be there.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> Result<Recorder, RecordingError> {
        let shown = path.display().to_string();
        let file =
            File::create(path).map_err(|source| RecordingError::File { path: shown.clone(), source })?;
        let content = |source| RecordingError::Content { path: shown.clone(), source };
        let mut writer = mcap::WriteOptions::new()
            .compression(Some(mcap::Compression::Lz4))
            .library(concat!("noctule-teleop ", env!("CARGO_PKG_VERSION")))
            .create(BufWriter::new(file))
            .map_err(content)?;
        let mut channel = |topic, name, schema: &str| {
            let schema = writer.add_schema(name, "jsonschema", schema.as_bytes())?;
            writer.add_channel(schema, topic, "json", &BTreeMap::new())
        };
        let states = channel(STATE_TOPIC, "teleop/ArmState", STATE_SCHEMA).map_err(content)?;
        let commands = channel(POSE_TOPIC, "teleop/PoseCommand", COMMAND_SCHEMA).map_err(content)?;
        Ok(Recorder { path: shown, writer, states, commands, counts: RecordedCounts::default() })
    }

    /// One state.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_state(&mut self, state: &ArmState, times: SampleTimes) -> Result<(), RecordingError> {
        self.counts.states += 1;
        self.write(self.states, state.sequence, times, state)
    }

    /// One command, as it arrived: one that the controller refused, too.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_command(&mut self, command: &PoseCommand, times: SampleTimes) -> Result<(), RecordingError> {
        self.counts.commands += 1;
        self.write(self.commands, command.sequence, times, command)
    }

    /// Counts samples that were missed before the one that was written last.
    pub fn record_missed(&mut self, missed: u64) {
        self.counts.missed += missed;
    }

    fn write(
        &mut self,
        channel_id: u16,
        sequence: u64,
        times: SampleTimes,
        value: &impl Serialize,
    ) -> Result<(), RecordingError> {
        let header = MessageHeader {
            channel_id,
            sequence: sequence as u32,
            log_time: times.received_ns.max(0) as u64,
            publish_time: times.source_ns.max(0) as u64,
        };
        // A NaN is written as null: a reader sees that there was no number.
        let text = serde_json::to_vec(value).unwrap_or_default();
        let content = |source| RecordingError::Content { path: self.path.clone(), source };
        self.writer.write_to_known_channel(&header, &text).map_err(content)
    }

    /// Ends the file; without it a reader must rebuild the index.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<RecordedCounts, RecordingError> {
        let path = self.path.clone();
        let finished = self.writer.finish().map_err(|source| RecordingError::Content { path, source });
        finished.map(|_| self.counts)
    }
}

/// A sample of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedSample {
    /// State of the arm.
    State(Box<ArmState>),
    /// Command of the operator.
    Command(PoseCommand),
}

/// A sample and its times.
pub type Recorded = (SampleTimes, RecordedSample);

/// Commands and states in the order of their arrival.
///
/// # Errors
/// The file cannot be read, or contains no state.
pub fn read(path: &Path) -> Result<Vec<Recorded>, RecordingError> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| RecordingError::File { path: shown.clone(), source })?;
    let content = |source| RecordingError::Content { path: shown.clone(), source };
    let mut samples = Vec::new();
    let mut has_states = false;
    for message in mcap::MessageStream::new(&bytes).map_err(content)? {
        let message = message.map_err(content)?;
        let times =
            SampleTimes { source_ns: message.publish_time as i64, received_ns: message.log_time as i64 };
        match message.channel.topic.as_str() {
            STATE_TOPIC => {
                if let Ok(state) = serde_json::from_slice(&message.data) {
                    has_states = true;
                    samples.push((times, RecordedSample::State(state)));
                }
            }
            POSE_TOPIC => {
                // One with a number that is none was refused by the controller; nothing of it can be drawn.
                if let Ok(command) = serde_json::from_slice(&message.data) {
                    samples.push((times, RecordedSample::Command(command)));
                }
            }
            _ => {}
        }
    }
    if !has_states {
        return Err(RecordingError::Empty { path: shown });
    }
    samples.sort_by_key(|(times, _)| times.received_ns);
    Ok(samples)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_was_recorded_is_read_in_the_order_of_arrival() {
        let path = std::env::temp_dir().join(format!("noctule-teleop-{}.mcap", std::process::id()));
        let mut recorder = Recorder::create(&path).unwrap();
        let times = |at_ns| SampleTimes { source_ns: at_ns, received_ns: at_ns + 5 };
        for index in 0..2_000_u64 {
            let at_ns = index as i64 * 1_000;
            let state = ArmState { sequence: index, sigma_min: index as f64 / 7.0, ..ArmState::default() };
            recorder.write_state(&state, times(at_ns)).unwrap();
            // Older than the state that was written before it.
            let command = PoseCommand { sequence: index, scale: 0.5, ..PoseCommand::default() };
            recorder.write_command(&command, times(at_ns - 500)).unwrap();
        }
        let bad = PoseCommand { scale: f64::NAN, ..PoseCommand::default() };
        recorder.write_command(&bad, times(0)).unwrap();
        recorder.record_missed(3);
        let counts = recorder.finish().unwrap();
        assert_eq!(counts, RecordedCounts { states: 2_000, commands: 2_001, missed: 3 });
        let samples = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(samples.len(), 4_000);
        let (at, RecordedSample::Command(command)) = &samples[2 * 1_234] else { panic!("no command") };
        assert_eq!((*at, command.sequence, command.scale), (times(1_234_000 - 500), 1_234, 0.5));
        let (at, RecordedSample::State(state)) = &samples[2 * 1_234 + 1] else { panic!("no state") };
        assert_eq!((*at, state.sigma_min), (times(1_234_000), 1_234.0 / 7.0));
        assert!(read(Path::new("/nonexistent")).is_err());
    }
}
