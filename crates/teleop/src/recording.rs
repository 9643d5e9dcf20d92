//! States of the arm as MCAP, in JSON with a schema: Foxglove and PlotJuggler open it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use mcap::records::MessageHeader;

use crate::messages::{ArmState, STATE_TOPIC};

/// What a viewer needs to know of a state; fields are described in `messages`.
const SCHEMA: &str = r#"{"type":"object","properties":{"sequence":{"type":"integer"},"mode":{"type":"integer"},
"rule":{"type":"integer"},"joints_rad":{"type":"array","items":{"type":"number"}},
"velocity_rad_s":{"type":"array","items":{"type":"number"}},"voltage_v":{"type":"array","items":{"type":"number"}},
"position_m":{"type":"array","items":{"type":"number"}},"orientation":{"type":"array","items":{"type":"number"}},
"goal_m":{"type":"array","items":{"type":"number"}},"command_age_ns":{"type":"integer"},
"command_bound_ns":{"type":"integer"},"branch":{"type":"integer"},"sigma_min":{"type":"number"},
"rules":{"type":"array","items":{"type":"integer"}}}}"#;

/// Why a recording cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file.
    #[error("cannot use {path}: {source}")]
    File {
        /// It.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Its content.
    #[error("{path} is no recording of an arm: {source}")]
    Content {
        /// It.
        path: String,
        /// Why.
        source: mcap::McapError,
    },
    /// It contains no state.
    #[error("{path} contains no message of {STATE_TOPIC}; record one with `noctule teleop --record FILE`")]
    Empty {
        /// It.
        path: String,
    },
}

/// A file that is being written.
pub struct Recorder {
    path: String,
    writer: mcap::Writer<BufWriter<File>>,
    channel: u16,
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
        let schema =
            writer.add_schema("teleop/ArmState", "jsonschema", SCHEMA.as_bytes()).map_err(content)?;
        let channel = writer.add_channel(schema, STATE_TOPIC, "json", &BTreeMap::new()).map_err(content)?;
        Ok(Recorder { path: shown, writer, channel })
    }

    /// One state: when it was true and when it came, ns of the recorder's clock.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(
        &mut self,
        state: &ArmState,
        source_ns: i64,
        received_ns: i64,
    ) -> Result<(), RecordingError> {
        let header = MessageHeader {
            channel_id: self.channel,
            sequence: state.sequence as u32,
            log_time: received_ns.max(0) as u64,
            publish_time: source_ns.max(0) as u64,
        };
        let text = serde_json::to_vec(state).unwrap_or_default();
        let content = |source| RecordingError::Content { path: self.path.clone(), source };
        self.writer.write_to_known_channel(&header, &text).map_err(content)
    }

    /// Ends the file; without it a reader must rebuild the index.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<(), RecordingError> {
        let path = self.path.clone();
        self.writer.finish().map(|_| ()).map_err(|source| RecordingError::Content { path, source })
    }
}

/// A state and when it was true, ns.
pub type Recorded = (i64, ArmState);

/// States with the time at which they were true, ns.
///
/// # Errors
/// The file cannot be read, or contains no state.
pub fn read(path: &Path) -> Result<Vec<Recorded>, RecordingError> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| RecordingError::File { path: shown.clone(), source })?;
    let content = |source| RecordingError::Content { path: shown.clone(), source };
    let mut states = Vec::new();
    for message in mcap::MessageStream::new(&bytes).map_err(content)? {
        let message = message.map_err(content)?;
        if message.channel.topic == STATE_TOPIC
            && let Ok(state) = serde_json::from_slice(&message.data)
        {
            states.push((message.publish_time as i64, state));
        }
    }
    if states.is_empty() {
        return Err(RecordingError::Empty { path: shown });
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_was_recorded_is_read() {
        let path = std::env::temp_dir().join(format!("noctule-teleop-{}.mcap", std::process::id()));
        let mut recorder = Recorder::create(&path).unwrap();
        for index in 0..2_000_u64 {
            let state = ArmState { sequence: index, sigma_min: index as f64 / 7.0, ..ArmState::default() };
            recorder.write(&state, index as i64 * 1_000, index as i64 * 1_000 + 5).unwrap();
        }
        recorder.finish().unwrap();
        let states = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(states.len(), 2_000);
        assert_eq!(states[1_234].0, 1_234_000);
        assert_eq!(states[1_234].1.sigma_min, 1_234.0 / 7.0);
        assert!(read(Path::new("/nonexistent")).is_err());
    }
}
