//! Options of a scenario that several peers have, each parsed once.

use noctule_lab::dimensions::{Reliability, UnknownWord};
use noctule_peer::{Open, PeerError};

/// Reliability of the transport; best effort by default.
pub(crate) fn reliability(open: &Open) -> Result<Reliability, PeerError> {
    let word = open.options.get(Reliability::OPTION);
    let parsed = word.map(|word| word.parse()).transpose();
    parsed.map(Option::unwrap_or_default).map_err(|error: UnknownWord| PeerError(error.to_string()))
}
