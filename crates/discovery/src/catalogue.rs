//! Catalogue of this node's endpoints, divided into pages.
//!
//! An endpoint keeps its page for life, so a change touches one page, and a page that did not change
//! need not travel again.

use std::collections::BTreeMap;

use noctule_proto_kit::mix;

use crate::endpoint::{Endpoint, EndpointId};

use crate::wire::{DATAGRAM_BYTES_MAX, PAGE_PREFIX_BYTES, PAGES_LIMIT, Page, endpoint_bytes};

/// This node's endpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    revision: u32,
    next_id: u32,
    pages: Vec<LocalPage>,
    by_id: BTreeMap<EndpointId, (usize, Endpoint)>,
}

#[derive(Clone, Debug, Default)]
struct LocalPage {
    revision: u32,
    bytes: usize,
    endpoints: Vec<EndpointId>,
}

impl Catalogue {
    /// Gives the endpoint a number and a place; `None` if every page is full.
    pub(crate) fn add(&mut self, mut endpoint: Endpoint) -> Option<EndpointId> {
        let bytes = endpoint_bytes(&endpoint);
        let room = DATAGRAM_BYTES_MAX - PAGE_PREFIX_BYTES;
        let place = match self.pages.iter().rposition(|page| page.bytes + bytes <= room) {
            Some(place) => place,
            None if self.pages.len() < PAGES_LIMIT => {
                self.pages.push(LocalPage::default());
                self.pages.len() - 1
            }
            None => return None,
        };
        self.next_id += 1;
        endpoint.id = EndpointId(self.next_id);
        let id = endpoint.id;
        self.by_id.insert(id, (place, endpoint));
        self.pages[place].endpoints.push(id);
        self.pages[place].bytes += bytes;
        self.touch(place);
        Some(id)
    }

    /// Takes an endpoint out, if it is there.
    pub(crate) fn remove(&mut self, id: EndpointId) -> Option<Endpoint> {
        let (place, endpoint) = self.by_id.remove(&id)?;
        let page = &mut self.pages[place];
        page.endpoints.retain(|other| *other != id);
        page.bytes -= endpoint_bytes(&endpoint);
        self.touch(place);
        Some(endpoint)
    }

    /// Sets whether a reader is relayed; whether that is new.
    pub(crate) fn set_relayed(&mut self, id: EndpointId, relayed: bool) -> bool {
        let Some((place, endpoint)) = self.by_id.get_mut(&id) else { return false };
        let is_new = std::mem::replace(&mut endpoint.relayed, relayed) != relayed;
        let place = *place;
        if is_new {
            self.touch(place);
        }
        is_new
    }

    pub(crate) fn endpoint(&self, id: EndpointId) -> Option<&Endpoint> {
        self.by_id.get(&id).map(|(_, endpoint)| endpoint)
    }

    /// Counts changes.
    pub(crate) fn revision(&self) -> u32 {
        self.revision
    }

    pub(crate) fn pages(&self) -> u16 {
        self.pages.len() as u16
    }

    pub(crate) fn digest(&self) -> u64 {
        digest(self.pages.iter().map(|page| page.revision))
    }

    /// Numbers of the pages that changed after `revision`.
    pub(crate) fn changed_since(&self, revision: u32) -> impl Iterator<Item = u16> + '_ {
        (0u16..).zip(&self.pages).filter(move |(_, page)| page.revision > revision).map(|(number, _)| number)
    }

    /// A page as it travels.
    pub(crate) fn page(&self, number: u16) -> Option<Page> {
        let page = self.pages.get(usize::from(number))?;
        let endpoints = page.endpoints.iter().filter_map(|id| self.endpoint(*id).cloned()).collect();
        Some(Page { number, revision: page.revision, endpoints })
    }

    /// Bytes of the page's datagram.
    pub(crate) fn page_bytes(&self, number: u16) -> usize {
        PAGE_PREFIX_BYTES + self.pages.get(usize::from(number)).map_or(0, |page| page.bytes)
    }

    fn touch(&mut self, place: usize) {
        self.revision += 1;
        self.pages[place].revision = self.revision;
    }
}

/// The digest of a set of pages: two sets are equal exactly if number and revision of every page
/// are. A page never seen counts with revision 0, which no page has.
pub(crate) fn digest(revisions: impl Iterator<Item = u32>) -> u64 {
    (0u64..).zip(revisions).fold(0, |digest, (number, revision)| {
        // The first mixing keeps page 1 of revision 2 from cancelling page 2 of revision 1.
        digest ^ mix(mix(number << 32 | u64::from(revision)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{EndpointKind, Qos};

    fn endpoint(topic: String) -> Endpoint {
        Endpoint {
            id: EndpointId(0),
            kind: EndpointKind::Writer,
            topic,
            type_name: String::new(),
            type_hash: 0,
            formats: 1,
            payload_bytes_max: 0,
            qos: Qos::default(),
            relayed: false,
        }
    }

    #[test]
    fn adding_touches_one_page_only() {
        let mut catalogue = Catalogue::default();
        (0..100).for_each(|i| assert!(catalogue.add(endpoint(format!("topic_{i}"))).is_some()));
        let before = catalogue.revision();
        catalogue.add(endpoint("one_more".into()));
        assert!(catalogue.pages() > 3);
        assert_eq!(catalogue.changed_since(before).count(), 1);
        assert_eq!(catalogue.changed_since(0).count(), usize::from(catalogue.pages()));
    }

    #[test]
    fn no_page_is_longer_than_a_datagram() {
        let mut catalogue = Catalogue::default();
        (0..300).for_each(|i| assert!(catalogue.add(endpoint("n".repeat(1 + i % 255))).is_some()));
        assert!((0..catalogue.pages()).all(|page| catalogue.page_bytes(page) <= DATAGRAM_BYTES_MAX));
    }

    #[test]
    fn removing_leaves_room_for_another() {
        let mut catalogue = Catalogue::default();
        let ids: Vec<_> = (0..50).filter_map(|i| catalogue.add(endpoint(format!("{i:04}")))).collect();
        let (pages, digest) = (catalogue.pages(), catalogue.digest());
        assert!(catalogue.remove(ids[3]).is_some() && catalogue.remove(ids[3]).is_none());
        assert_ne!(catalogue.digest(), digest);
        assert!(catalogue.add(endpoint("back".into())).is_some());
        assert_eq!(catalogue.pages(), pages);
    }

    #[test]
    fn a_full_catalogue_refuses_and_stays_whole() {
        let mut catalogue = Catalogue::default();
        let added = (0..100_000).find(|_| catalogue.add(endpoint("n".repeat(255))).is_none());
        assert_eq!(added, Some(PAGES_LIMIT * 3), "three endpoints of 299 bytes fit on a page");
        assert_eq!(usize::from(catalogue.pages()), PAGES_LIMIT);
    }
}
