//! The peers that need no other program: `noctule` runs them when called as `noctule lab node NAME`.

use noctule_peer::Peer;

use crate::{board_peers, floors, formats_peer, library_peer};

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
