//! State of one other node.

use std::collections::BTreeMap;
use std::sync::Arc;

use noctule_timebase::Instant;

use crate::catalogue::digest;
use crate::endpoint::Endpoint;
use crate::types::{Local, Locator};
use crate::wire::{Hello, Page, PageSet};

/// One other node.
#[derive(Clone, Debug)]
pub(crate) struct Neighbour {
    /// Its last hello.
    pub(crate) hello: Hello,
    /// Where its data socket is.
    pub(crate) locator: Locator,
    /// Other addresses at which it has shown that it receives, the oldest first; at most [`ALIASES_LIMIT`].
    pub(crate) aliases: Vec<Locator>,
    /// Its hellos come by unicast, so ours must go there by unicast too.
    pub(crate) unicast: bool,
    /// Without a hello until then it is gone.
    pub(crate) expires: Instant<Local>,
    /// The next question to it.
    pub(crate) query: Option<Query>,
    /// When to look whether it is to be probed or given up: not after either.
    pub(crate) timer: Instant<Local>,
    /// Its last hello from its locator came then.
    pub(crate) heard: Instant<Local>,
    pages: BTreeMap<u16, HeldPage>,
    /// The newest revision held completely.
    complete: u32,
}

/// Addresses of a node beside its locator: a host with two networks and both versions of IP has three.
pub(crate) const ALIASES_LIMIT: usize = 4;

/// A question that is planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    pub(crate) at: Instant<Local>,
    /// Probes without an answer.
    pub(crate) asked: u32,
    pub(crate) about: About,
}

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// Pages are missing.
    Pages,
    /// It has been silent for long.
    Presence,
}

#[derive(Clone, Debug, Default)]
struct HeldPage {
    revision: u32,
    endpoints: Vec<Arc<Endpoint>>,
}

/// Endpoints that a page took away and brought.
#[derive(Default)]
pub(crate) struct Difference {
    pub(crate) gone: Vec<Arc<Endpoint>>,
    pub(crate) new: Vec<Arc<Endpoint>>,
    /// Readers that are relayed now, or no longer; as they are now.
    pub(crate) changed: Vec<Arc<Endpoint>>,
}

impl Neighbour {
    pub(crate) fn new(hello: Hello, locator: Locator, now: Instant<Local>) -> Neighbour {
        Neighbour {
            hello,
            locator,
            aliases: Vec::new(),
            unicast: false,
            expires: now,
            query: None,
            timer: Instant::MAX,
            heard: now,
            pages: BTreeMap::new(),
            complete: 0,
        }
    }

    /// When it is to be probed or given up.
    pub(crate) fn due(&self) -> Instant<Local> {
        self.query.map_or(self.expires, |query| query.at.min(self.expires))
    }

    /// All its pages are held; if so, stores the revision.
    pub(crate) fn check_complete(&mut self) -> bool {
        let revision = |number: u16| self.pages.get(&number).map_or(0, |page| page.revision);
        let whole = digest((0..self.hello.pages).map(revision)) == self.hello.digest;
        if whole {
            self.complete = self.hello.revision;
        }
        whole
    }

    /// The newest revision held completely.
    pub(crate) fn complete(&self) -> u32 {
        self.complete
    }

    /// Pages received since the last complete revision, for the sender to leave out, as long as others
    /// are missing. If none is missing, one of those received is outdated, and nothing is left out.
    pub(crate) fn received_since_complete(&self) -> PageSet {
        let mut received = PageSet::EMPTY;
        let missing = (0..self.hello.pages).any(|number| !self.pages.contains_key(&number));
        if missing {
            let new = self.pages.iter().filter(|(_, page)| page.revision > self.complete);
            new.for_each(|(number, _)| received.insert(*number));
        }
        received
    }

    /// Pages held.
    pub(crate) fn pages_held(&self) -> usize {
        self.pages.len()
    }

    /// Whether a page of this number is held.
    pub(crate) fn holds(&self, number: u16) -> bool {
        self.pages.contains_key(&number)
    }

    /// Replaces a page, unless it is older than the one held.
    pub(crate) fn apply(&mut self, page: Page) -> Difference {
        let held = self.pages.entry(page.number).or_default();
        if page.revision <= held.revision {
            return Difference::default();
        }
        let old = std::mem::take(&mut held.endpoints);
        let new: Vec<_> = page.endpoints.into_iter().map(Arc::new).collect();
        *held = HeldPage { revision: page.revision, endpoints: new.clone() };
        let only_relayed_differs = |endpoint: &Arc<Endpoint>| {
            let before = Endpoint { relayed: !endpoint.relayed, ..Endpoint::clone(endpoint) };
            old.iter().any(|known| **known == before)
        };
        let (changed, new): (Vec<_>, Vec<_>) =
            new.into_iter().filter(|endpoint| !old.contains(endpoint)).partition(only_relayed_differs);
        let is_left = |endpoint: &Arc<Endpoint>| held.endpoints.iter().any(|now| now.id == endpoint.id);
        let is_other = |endpoint: &Arc<Endpoint>| new.iter().any(|now| now.id == endpoint.id);
        let gone = old.iter().filter(|endpoint| !is_left(endpoint) || is_other(endpoint));
        Difference { gone: gone.cloned().collect(), new, changed }
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.pages.values().flat_map(|page| &page.endpoints)
    }
}

#[cfg(test)]
mod tests {
    use noctule_timebase::Span;

    use super::*;
    use crate::endpoint::{EndpointId, EndpointKind, Qos};

    fn endpoint(id: u32) -> Endpoint {
        Endpoint {
            id: EndpointId(id),
            kind: EndpointKind::Reader,
            topic: "imu".into(),
            type_name: String::new(),
            type_hash: 0,
            formats: 1,
            payload_bytes_max: 64,
            qos: Qos::default(),
            relayed: false,
        }
    }

    #[test]
    fn a_page_takes_away_what_it_no_longer_has_and_leaves_what_it_still_has() {
        let (lifetime, name) = (Span::from_s(5), String::new());
        let hello =
            Hello { revision: 1, pages: 1, lifetime, port: 9, new_here: true, host: 0, digest: 0, name };
        let mut node = Neighbour::new(hello, ([127, 0, 0, 1], 9).into(), Instant::from_ns(0));
        let other = Endpoint { qos: Qos { depth: 9, ..Qos::default() }, ..endpoint(1) };
        let relayed = Endpoint { relayed: true, ..endpoint(2) };
        // What the page has then; what has gone, what is new, what has changed.
        let (one, two, three) = (endpoint(1), endpoint(2), endpoint(3));
        for (revision, (has, [gone, new, changed])) in (1..).zip([
            (vec![&one, &two], [vec![], vec![&one, &two], vec![]]),
            (vec![&one, &two, &three], [vec![], vec![&three], vec![]]),
            (vec![&one, &two], [vec![&three], vec![], vec![]]),
            (vec![&other, &two], [vec![&one], vec![&other], vec![]]),
            (vec![&other, &relayed], [vec![], vec![], vec![&relayed]]),
            (vec![], [vec![&other, &relayed], vec![], vec![]]),
        ]) {
            let endpoints: Vec<Endpoint> = has.into_iter().cloned().collect();
            let difference = node.apply(Page { number: 0, revision, endpoints: endpoints.clone() });
            let found = [&difference.gone, &difference.new, &difference.changed];
            for (found, expected) in found.into_iter().zip([gone, new, changed]) {
                let found: Vec<&Endpoint> = found.iter().map(Arc::as_ref).collect();
                assert_eq!(found, expected, "revision {revision}");
            }
            assert!(node.endpoints().map(Arc::as_ref).eq(&endpoints));
            let late = node.apply(Page { number: 0, revision, endpoints: vec![endpoint(4)] });
            assert!(late.gone.is_empty() && late.new.is_empty() && late.changed.is_empty());
        }
    }
}
