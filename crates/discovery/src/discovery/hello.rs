//! Hellos: when this node sends them, and what follows from those of others.

use std::collections::BTreeSet;

use noctule_timebase::{Instant, Span};

use super::{
    CHANGE_SPACING, Discovery, FEW_NODES, HELLO_COST, HELLO_SPACING, LIFETIME_MAX, LIFETIME_PART, Local,
    Locator, NODES_LIMIT, SAME_HELLO, SPREAD_LIMITS, SPREAD_PER_NODE, START_MS, count,
};
use crate::event::{Event, Reason, Via};
use crate::neighbour::{ALIASES_LIMIT, Neighbour};
use crate::path::is_proven_by_itself;
use crate::trace;
use crate::wire::{Body, Hello, NodeId};

impl Discovery {
    /// An interface or an address of this host has come or gone: sends hellos as at the start, so that both sides find each
    /// other on the new network at once. A change within `CHANGE_SPACING` of the last is announced by the same hellos.
    pub fn handle_network_change(&mut self, now: Instant<Local>) {
        self.log.at(now);
        if now - self.started >= CHANGE_SPACING {
            self.started = now;
            self.next_hello = now;
        } else {
            // The regular hello of the second start, which is not over.
            self.next_hello = self.next_hello.min(self.started + CHANGE_SPACING);
        }
        self.start_hellos = 0;
        self.early = false;
    }

    pub(super) fn handle_hello(
        &mut self,
        (from, hello): (NodeId, Hello),
        locator: Locator,
        via: Via,
        now: Instant<Local>,
    ) {
        self.log.note(|| trace::Event::HelloReceived { node: from, locator });
        match self.neighbours.get(&from) {
            Some(known) if known.locator == locator => {
                let is_new_here = hello.new_here;
                self.refresh(from, hello, via, now);
                if is_new_here {
                    self.answer_newcomer(now);
                }
            }
            _ if is_proven_by_itself(locator) => self.admit((from, hello), locator, via, now),
            // A copy over another network, from an address that has been proven.
            Some(known) if now - known.heard < SAME_HELLO && known.aliases.contains(&locator) => {}
            _ => {
                let number = self.path.number(from, locator, via, now);
                self.log.note(|| trace::Event::AddressChallenged { node: from, locator });
                self.post(locator, Body::PathChallenge { to: from, number });
            }
        }
    }

    /// A node has shown that it receives at the address that it announces.
    pub(super) fn handle_path_response(
        &mut self,
        (from, number, hello): (NodeId, u64, Hello),
        source: Locator,
        now: Instant<Local>,
    ) {
        let Some(via) = self.path.check(from, source, number, now).filter(|_| hello.port == source.port())
        else {
            count(&mut self.counters.refused_responses);
            self.log.note(|| trace::Event::ResponseRefused { node: from, locator: source });
            return;
        };
        self.log.note(|| trace::Event::AddressProved { node: from, locator: source });
        // Each hello comes once over each network, in any order: while hellos come from the known locator, too, nothing has moved.
        match self.neighbours.get_mut(&from) {
            Some(known) if known.locator != source && now - known.heard < SAME_HELLO => {
                if !known.aliases.contains(&source) {
                    if known.aliases.len() == ALIASES_LIMIT {
                        known.aliases.remove(0);
                    }
                    known.aliases.push(source);
                    self.report(Event::AlsoAt { node: from, locator: source });
                }
            }
            _ => self.admit((from, hello), source, via, now),
        }
    }

    /// A node is at an address: a new one, or one that has moved.
    fn admit(&mut self, (from, hello): (NodeId, Hello), locator: Locator, via: Via, now: Instant<Local>) {
        let is_known = self.neighbours.contains_key(&from);
        let is_newcomer = hello.new_here || !is_known;
        if !is_known {
            self.forget_predecessor(locator);
            if !self.make_room(locator) {
                count(&mut self.counters.refused_full);
                self.note_refusal(from, locator);
                return;
            }
            let (name, same_host) = (hello.name.clone(), hello.host == self.me.host);
            self.neighbours.insert(from, Neighbour::new(hello.clone(), locator, now));
            self.generation += 1;
            self.shares.add(locator.ip(), 0);
            self.report(Event::Joined { node: from, locator, same_host, name });
        } else if let Some(neighbour) =
            self.neighbours.get_mut(&from).filter(|known| known.locator != locator)
        {
            let before = std::mem::replace(&mut neighbour.locator, locator);
            let pages = neighbour.pages_held();
            self.shares.remove(before.ip(), pages);
            self.shares.add(locator.ip(), pages);
            self.report(Event::Moved { node: from, locator });
        }
        self.refresh(from, hello, via, now);
        if is_newcomer {
            self.answer_newcomer(now);
        }
    }

    /// A hello of a node from where it is.
    fn refresh(&mut self, from: NodeId, hello: Hello, via: Via, now: Instant<Local>) {
        let expires = now + self.extended_lifetime(hello.lifetime);
        let Some(neighbour) = self.neighbours.get_mut(&from) else { return };
        // One that overtook a later one says nothing new; but it is a sign of life.
        if hello.revision >= neighbour.hello.revision {
            neighbour.hello = hello;
        }
        neighbour.unicast |= via == Via::Unicast;
        (neighbour.expires, neighbour.heard) = (expires, now);
        self.plan_query(from, now);
    }

    /// Room for another node; if there is none, a node of another host that matches nothing is displaced, one of the address that has most nodes.
    fn make_room(&mut self, locator: Locator) -> bool {
        if !self.shares.has_room_for_node(locator.ip()) {
            return false;
        }
        if self.neighbours.len() < NODES_LIMIT {
            return true;
        }
        let matched: BTreeSet<NodeId> = self.matched.iter().map(|(_, node, _)| *node).collect();
        let may_go = |(node, known): &(&NodeId, &Neighbour)| {
            known.hello.host != self.me.host && !matched.contains(*node)
        };
        let candidates = self.neighbours.iter().filter(may_go);
        let most = candidates.max_by_key(|(_, known)| self.shares.nodes(known.locator.ip()));
        let Some((&node, _)) = most else { return false };
        count(&mut self.counters.displaced);
        self.forget(node, Reason::Displaced);
        true
    }

    /// How long a node counts as present. The more nodes, the likelier one of them misses several hellos of
    /// another in a row; with a constant lifetime the questions of each would grow with their number.
    pub(super) fn extended_lifetime(&self, lifetime: Span) -> Span {
        let doublings = (self.neighbours.len() / FEW_NODES).max(1).ilog2();
        let lifetime = lifetime.min(LIFETIME_MAX);
        lifetime + lifetime / LIFETIME_PART * i64::from(doublings)
    }

    /// A node that now answers at the address of another has replaced it.
    pub(super) fn forget_predecessor(&mut self, locator: Locator) {
        let replaced = self.neighbours.iter().find(|(_, neighbour)| neighbour.locator == locator);
        if let Some((&node, _)) = replaced {
            self.forget(node, Reason::Restarted);
        }
    }

    pub(super) fn answer_newcomer(&mut self, now: Instant<Local>) {
        // One that is planned serves all newcomers; drawing again for each would bring it ever nearer.
        if !self.early {
            let wait = self.jitter.up_to(self.spread());
            self.say_hello_early(now + wait);
        }
    }

    pub(super) fn spread(&self) -> Span {
        let spread = SPREAD_PER_NODE * self.neighbours.len() as i64;
        spread.clamp(SPREAD_LIMITS.0, SPREAD_LIMITS.1)
    }

    pub(super) fn say_hello_early(&mut self, at: Instant<Local>) {
        let spacing = self.spread().max(HELLO_SPACING);
        let at = self.last_hello.map_or(at, |last| at.max(last + spacing));
        if at < self.next_hello {
            self.next_hello = at;
            self.early = true;
        }
    }

    /// The next hello, but not before it can be paid.
    pub(super) fn hello_at(&self) -> Instant<Local> {
        if self.early { self.next_hello.max(self.budget.ready_at(HELLO_COST)) } else { self.next_hello }
    }

    pub(super) fn hello(&mut self, now: Instant<Local>) -> Body {
        let new_here = self.start_hellos < START_MS.len();
        let is_early = self.early;
        self.log.note(|| trace::Event::HelloSent {
            trigger: match (new_here, is_early) {
                (true, _) => trace::Greeting::Start,
                (false, true) => trace::Greeting::Early,
                (false, false) => trace::Greeting::Regular,
            },
        });
        self.last_hello = Some(now);
        self.early = false;
        while START_MS.get(self.start_hellos).is_some_and(|ms| self.started + Span::from_ms(*ms) <= now) {
            self.start_hellos += 1;
        }
        self.next_hello = match START_MS.get(self.start_hellos) {
            Some(ms) => self.started + Span::from_ms(*ms),
            // Shifted at random, or nodes started together would send together for ever.
            None => now + self.config.interval - self.jitter.up_to(self.config.interval / 10),
        };
        Body::Hello(self.current_hello(new_here))
    }

    /// The hello of this node now.
    pub(super) fn current_hello(&self, new_here: bool) -> Hello {
        Hello {
            revision: self.catalogue.revision(),
            pages: self.catalogue.pages(),
            lifetime: self.config.lifetime,
            port: self.me.port,
            new_here,
            host: self.me.host,
            digest: self.catalogue.digest(),
            name: self.me.name.clone(),
        }
    }
}
