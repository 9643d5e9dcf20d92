//! Clock estimators on recorded and simulated round trips, judged against a known truth.
//!
//! - [`trace`]: round trips from a CSV file, or from the simulator.
//! - [`replay`]: one estimator over one trace.
//! - [`accuracy`]: how well it did.
//! - [`panels`]: what it looks like, with the [`allan`] deviation; [`page`] makes files of it.
//! - [`sweep`]: every scenario against every estimator, as the committed table.
//! - [`live`]: the exchange between two processes over UDP, as committed evidence.

pub mod accuracy;
pub mod allan;
pub mod live;
pub mod page;
pub mod panels;
pub mod replay;
pub mod sweep;

pub use accuracy::{Accuracy, judge};
pub use noctule_lab::trace::{self, TraceError, TraceRow};
pub use replay::{Replayed, replay, write_estimates};
