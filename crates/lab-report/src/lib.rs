//! Reports of a run, for people and other programs.
//!
//! [`write_all`] puts everything into one directory: `run.json` (the contract), `samples.mcap` (every
//! arrival), `latency.hlog`, `report.html`, and each chart as
//! SVG and PNG in `charts/`; [`text_table`] is the same for a terminal. [`regenerate`] makes the derived files again from the first two.

pub mod columns;
pub mod fact_table;
pub mod hdr;
pub mod html;
pub mod markdown;
pub mod mcap;
pub mod page;
pub mod palette;
pub mod panel;
pub mod pictures;
pub mod series;
pub mod text_table;

use std::io;
use std::path::{Path, PathBuf};

use self::series::Charts;
use noctule_lab::merge::merge;
use noctule_lab::run::{Run, RunFileError};
use noctule_lab::samples::CellSamples;

/// Name of the machine-readable result in an output directory.
pub const RUN_FILE: &str = "run.json";
/// Name of the raw samples in an output directory.
pub const SAMPLES_FILE: &str = "samples.mcap";
/// Name of the page in an output directory.
pub const PAGE_FILE: &str = "report.html";
/// Name of the directory of pictures in an output directory.
pub const PICTURES_DIRECTORY: &str = "charts";
/// Name of the histogram log in an output directory.
pub const HISTOGRAM_FILE: &str = "latency.hlog";

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or directory could not be written.
    #[error("cannot write {path}: {source}; choose another directory with --out")]
    Write {
        /// Path tried.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {source}; name a directory made by `noctule lab run --out`")]
    Read {
        /// Path tried.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path} is damaged or of another run: {reason}")]
    Malformed {
        /// Path tried.
        path: PathBuf,
        /// The fact.
        reason: String,
    },
    /// `run.json` could not be used.
    #[error(transparent)]
    Run(#[from] RunFileError),
}

impl ReportError {
    fn write(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Write { path, source }
    }

    fn read(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Read { path, source }
    }

    fn malformed(path: &Path, reason: String) -> Self {
        let path = path.to_owned();
        Self::Malformed { path, reason }
    }
}

/// Writes everything a run leaves behind into `directory`, which is created if missing.
/// `samples[i]` belongs to `run.cells[i]`.
///
/// # Errors
/// If a file cannot be written. What was written before stays: samples first, then `run.json`, so
/// that a full disk cannot leave a `run.json` without its samples.
pub fn write_all(directory: &Path, run: &Run, samples: &[CellSamples]) -> Result<(), ReportError> {
    std::fs::create_dir_all(directory).map_err(|source| ReportError::write(directory, source))?;
    mcap::write(&directory.join(SAMPLES_FILE), run, samples)?;
    run.write(&directory.join(RUN_FILE))?;
    write_derived(directory, run, samples)
}

/// Makes the derived files again from `run.json` and `samples.mcap` in `directory`.
///
/// # Errors
/// If either is missing, damaged or of another run, or a file cannot be written.
pub fn regenerate(directory: &Path) -> Result<(Run, Vec<CellSamples>), ReportError> {
    let run = Run::read(&directory.join(RUN_FILE))?;
    let samples = mcap::read(&directory.join(SAMPLES_FILE), run.cells.len())?;
    write_derived(directory, &run, &samples)?;
    Ok((run, samples))
}

fn write_derived(directory: &Path, run: &Run, samples: &[CellSamples]) -> Result<(), ReportError> {
    let merged = merge(run, samples);
    let charts = Charts::of(run, &merged, samples);
    hdr::write(&directory.join(HISTOGRAM_FILE), run, samples)?;
    html::write(&directory.join(PAGE_FILE), run, &merged, &charts)?;
    pictures::write(&directory.join(PICTURES_DIRECTORY), &charts, &run.host.cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use noctule_lab::fixture;

    #[test]
    fn derived_files_come_back_from_the_run_and_its_samples_alone() {
        let (run, samples) = fixture::chain_and_round_trips();
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("made/if/missing");
        write_all(&output, &run, &samples).unwrap();
        let page = std::fs::read(output.join(PAGE_FILE)).unwrap();
        let log = std::fs::read(output.join(HISTOGRAM_FILE)).unwrap();
        for derived in [PAGE_FILE, HISTOGRAM_FILE] {
            std::fs::remove_file(output.join(derived)).unwrap();
        }
        std::fs::remove_dir_all(output.join(PICTURES_DIRECTORY)).unwrap();
        assert_eq!(regenerate(&output).unwrap(), (run, samples));
        assert_eq!(std::fs::read(output.join(PAGE_FILE)).unwrap(), page);
        assert_eq!(std::fs::read(output.join(HISTOGRAM_FILE)).unwrap(), log);
        assert!(output.join(PICTURES_DIRECTORY).is_dir());
    }

    #[test]
    fn what_cannot_be_written_or_read_is_said_in_one_sentence() {
        let (run, samples) = fixture::chain_and_round_trips();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = write_all(&file.join("out"), &run, &samples).unwrap_err().to_string();
        assert!(error.starts_with("cannot write") && error.ends_with("with --out"), "{error}");
        let error = regenerate(directory.path()).unwrap_err().to_string();
        assert!(error.contains("run.json") && error.contains("name a directory"), "{error}");
        run.write(&directory.path().join(RUN_FILE)).unwrap();
        let error = regenerate(directory.path()).unwrap_err().to_string();
        assert!(error.contains("samples.mcap"), "{error}");
    }
}
