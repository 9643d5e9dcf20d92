//! The peers that need no other program: what the lab measures, and the floors that it measures them against.
//!
//! `noctule` runs them when called as `noctule lab node NAME`. The instrument, `noctule-lab`, links none of them: it learns
//! from a [`PeerRegistry`] what each supports and starts them as processes.

mod board_peers;
pub mod floors;
mod formats_peer;
mod library_peer;
mod options;

use std::path::Path;

use noctule_lab::peer_registry::PeerRegistry;
use noctule_peer::{Need, Peer};

pub use board_peers::DDS_BRIDGE;

/// All built-in peers but the [`floors`].
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(library_peer::Noctule),
        Box::new(formats_peer::Formats),
        Box::new(board_peers::Xrce),
        Box::new(board_peers::Mavlink),
    ]
}

/// The floor or built-in peer of that name.
pub fn by_name(name: &str) -> Option<Box<dyn Peer>> {
    floors::all().into_iter().chain(all()).find(|peer| peer.describe().name == name)
}

/// The floors and the other built-in peers, for the lab; `noctule` is the command that they are inside of.
pub fn registry(noctule: &Path) -> PeerRegistry {
    let mut registry = PeerRegistry::new(noctule);
    floors::all().iter().for_each(|floor| registry.add_built_in(floor.as_ref(), true));
    all().iter().for_each(|peer| registry.add_built_in(peer.as_ref(), false));
    registry
}

/// Peer and program that a board's gateway needs to join the bus and DDS.
pub fn dds_need() -> Need {
    board_peers::dds_need()
}
