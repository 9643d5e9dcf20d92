//! Joint offer of several writers of a topic.

use noctule::{Durability, Qos, Reliability};
use noctule_timebase::Span;

/// The weakest QoS of all offers; `None` of none.
pub fn weakest(offers: &[Qos]) -> Option<Qos> {
    let all = |limit: fn(&Qos) -> Option<Span>| {
        offers.iter().map(limit).collect::<Option<Vec<_>>>().and_then(|limits| limits.into_iter().max())
    };
    Some(Qos {
        // A deadline-bound writer gives up, which DDS's reliable ones do not.
        reliability: match offers.iter().map(|qos| qos.reliability).min()? {
            Reliability::Reliable => Reliability::Reliable,
            _ => Reliability::BestEffort,
        },
        durability: offers.iter().map(|qos| qos.durability).min().unwrap_or(Durability::Volatile),
        depth: offers.iter().map(|qos| qos.depth).max().unwrap_or(1),
        deadline: all(|qos| qos.deadline),
        lifespan: all(|qos| qos.lifespan),
        ..Qos::default()
    })
}
