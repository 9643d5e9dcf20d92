//! The peers that need no other program: `noctule` runs them when called as `noctule lab node NAME`.

use noctule_peer::Peer;

use crate::{floors, formats_peer};

/// All built-in peers; true beside the floors.
pub fn all() -> Vec<(Box<dyn Peer>, bool)> {
    let floors = floors::all().into_iter().map(|floor| (floor, true));
    floors.chain([(Box::new(formats_peer::Formats) as Box<dyn Peer>, false)]).collect()
}

/// The built-in peer of that name.
pub fn by_name(name: &str) -> Option<Box<dyn Peer>> {
    all().into_iter().map(|(peer, _)| peer).find(|peer| peer.describe().name == name)
}
