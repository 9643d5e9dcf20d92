//! The generator, for builds of Python packages.

use std::path::PathBuf;

use noctule_codegen::diagnostic::Faults;
use noctule_codegen::generate::{generate as files_of, installed};
use noctule_codegen::tree;
use pyo3::prelude::*;

use crate::argument::NoctuleError;

/// Files that are written, files that are removed, and warnings.
type Changes = (Vec<String>, Vec<String>, Vec<String>);

/// Generates what `topics` describes into the folder `out`, or with `check` says only what would change: the files that are
/// written, those that are removed, and the sentences of warnings.
///
/// Raises `NoctuleError` with every fault, as rustc shows it.
#[pyfunction]
#[pyo3(signature = (topics, out, *, templates = None, check = false))]
pub(crate) fn generate(
    topics: PathBuf,
    out: PathBuf,
    templates: Option<PathBuf>,
    check: bool,
) -> PyResult<Changes> {
    let refused = |faults: Faults| NoctuleError::new_err(faults.to_string());
    let generated = files_of(&topics, &installed(), templates.as_deref()).map_err(refused)?;
    let run = if check { tree::compare } else { tree::write };
    let difference = run(&out, &generated.files).map_err(|fault| refused(fault.into()))?;
    let warnings = generated.warnings.iter().map(ToString::to_string).collect();
    Ok((difference.write, difference.remove, warnings))
}
