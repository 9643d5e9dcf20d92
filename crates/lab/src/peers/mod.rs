//! The foreign peers of `peers/`: what is there, what is built, what is missing.

pub mod manifest;

use std::path::Path;

use crate::directory::Directory;
use manifest::State;

/// Adds every peer of the folder to the directory: those that are built say themselves who they are,
/// the others are named with what is missing.
///
/// # Errors
/// The folder cannot be read.
pub fn add_all(directory: &mut Directory, folder: &Path) -> Result<(), manifest::FolderError> {
    for peer in manifest::list(folder)? {
        match peer.state {
            State::Built { program } => directory.add(&peer.name, program),
            State::NotBuilt { .. } | State::Broken { .. } => {
                directory.add_missing(&peer.name, peer.state.to_string());
            }
        }
    }
    Ok(())
}
