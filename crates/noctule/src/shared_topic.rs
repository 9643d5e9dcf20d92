//! State of one topic that a publisher or a subscriber shares with the node's thread.
//!
//! Both sides use this room, and it uses neither: a publisher and a subscriber know their node, the node knows only this.

mod change_count;
mod deadline_watches;
mod progress;
mod published;
mod ring_owner;
mod source;
mod subscribed;

pub(crate) use change_count::ChangeCount;
pub(crate) use progress::Progress;
pub(crate) use published::{HELD_UP, PublishedTopic};
pub(crate) use ring_owner::{
    Granted, GrantedHere, Past, RingError, RingOwner, is_out_of_descriptors, map_granted, open_ring,
};
pub(crate) use source::{Change, Read, Source, Sources};
pub(crate) use subscribed::{History, SubscribedTopic};
