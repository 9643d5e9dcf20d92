//! Events of what several places decide.

use noctule_qlog::Log;

use super::{Discovery, Locator};
use crate::event::{Event as Known, Reason};
use crate::neighbour::Neighbour;
use crate::trace::{Event, Refusal};
use crate::wire::NodeId;

impl Discovery {
    /// Trace of discovery: start it to keep events, and poll it. An event costs one branch until then.
    pub fn trace(&mut self) -> &mut Log<Event> {
        &mut self.log
    }

    pub(super) fn note_known(&mut self, known: &Known) {
        if self.log.is_on()
            && let Some(event) = Event::of(known)
        {
            self.log.note(|| event);
        }
    }

    pub(super) fn note_departure(&mut self, node: NodeId, neighbour: &Neighbour, reason: Reason) {
        let heard = neighbour.heard;
        self.log.note_at(|now| {
            let silent_ms = u64::try_from((now - heard).ns() / 1_000_000).unwrap_or(0);
            Event::Gone { node, silent_ms, trigger: reason.into() }
        });
    }

    pub(super) fn note_refusal(&mut self, node: NodeId, locator: Locator) {
        let has_share = self.shares.has_room_for_node(locator.ip());
        let trigger = if has_share { Refusal::TableFull } else { Refusal::AddressShare };
        self.log.note(|| Event::Refused { node, locator, trigger });
    }
}
