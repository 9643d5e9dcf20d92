//! The foreign peers of `peers/`: what is there, what is built, what is missing.

pub use crate::peer_manifest as manifest;

use std::path::Path;

use crate::peer_registry::PeerRegistry;
use manifest::State;

/// Adds every peer of the folder to the registry: those that are built say themselves what they are,
/// the others are named with what is missing.
///
/// # Errors
/// The folder cannot be read.
pub fn add_all(registry: &mut PeerRegistry, folder: &Path) -> Result<(), manifest::FolderError> {
    for peer in manifest::list(folder)? {
        match peer.state {
            State::Built { program } => registry.add(&peer.name, program),
            State::NotBuilt { .. } | State::Broken { .. } => {
                registry.add_missing(&peer.name, peer.state.to_string());
            }
        }
    }
    Ok(())
}
