//! Hellos: when this node says them, and what it learns from those of others.

use noctule_timebase::{Instant, Span};

use super::{
    CHANGE_SPACING, Discovery, FEW_NODES, HELLO_COST, HELLO_SPACING, LIFETIME_MAX, LIFETIME_PART, Local,
    Locator, NODES_LIMIT, SPREAD_LIMITS, SPREAD_PER_NODE, START_MS, count,
};
use crate::event::{Event, Reason, Via};
use crate::neighbour::Neighbour;
use crate::wire::{Body, Hello, NodeId};

impl Discovery {
    /// An interface or an address of this host has come or gone: says hello as at the start, so that both sides find each
    /// other on the new network at once. A change within [`CHANGE_SPACING`] of the last is announced by the same hellos.
    pub fn handle_network_change(&mut self, now: Instant<Local>) {
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
        let expires = now + self.believed(hello.lifetime);
        let (new_here, same_host) = (hello.new_here, hello.host == self.me.host);
        let known = self.neighbours.contains_key(&from);
        if !known {
            self.forget_predecessor(locator);
            if self.neighbours.len() >= NODES_LIMIT {
                count(&mut self.counters.refused_full);
                return;
            }
            let name = hello.name.clone();
            self.neighbours.insert(from, Neighbour::new(hello.clone(), locator, expires));
            self.report(Event::Joined { node: from, locator, same_host, name });
        }
        let Some(neighbour) = self.neighbours.get_mut(&from) else { return };
        // One that overtook a later one says nothing new; but it is a sign of life.
        if hello.revision >= neighbour.hello.revision {
            neighbour.hello = hello;
        }
        neighbour.locator = locator;
        neighbour.unicast |= via == Via::Unicast;
        neighbour.expires = expires;
        self.plan_query(from, now);
        if new_here || !known {
            self.answer_newcomer(now);
        }
    }

    /// How long a node counts as present. The more nodes, the likelier one of them misses several hellos of
    /// another in a row; with a constant lifetime the questions of each would grow with their number.
    pub(super) fn believed(&self, lifetime: Span) -> Span {
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
        self.last_hello = Some(now);
        self.early = false;
        while START_MS.get(self.start_hellos).is_some_and(|ms| self.started + Span::from_ms(*ms) <= now) {
            self.start_hellos += 1;
        }
        self.next_hello = match START_MS.get(self.start_hellos) {
            Some(ms) => self.started + Span::from_ms(*ms),
            // Shifted at random, or nodes started together would speak together for ever.
            None => now + self.config.interval - self.jitter.up_to(self.config.interval / 10),
        };
        Body::Hello(Hello {
            revision: self.catalogue.revision(),
            pages: self.catalogue.pages(),
            lifetime: self.config.lifetime,
            port: self.me.port,
            new_here,
            host: self.me.host,
            digest: self.catalogue.digest(),
            name: self.me.name.clone(),
        })
    }
}
