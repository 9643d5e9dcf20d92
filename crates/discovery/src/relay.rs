//! Which readers of one host can be served by one node of it that receives from the network.

use crate::endpoint::{Endpoint, Reliability};

/// Whether `other` gets every sample that `reader` would, so that its node can hand on to `reader` what it
/// receives: it matches every writer that `reader` matches ([`incompatible`](crate::incompatible)), and takes
/// samples as long. Durability must be the same, since history comes only at the beginning.
///
/// A reader that requests reliability has no substitute: what it gets must not depend on whether another process lives.
pub fn stands_for(other: &Endpoint, reader: &Endpoint) -> bool {
    let takes_any_type = other.type_name.is_empty();
    let takes_type =
        other.type_name == reader.type_name && (other.type_hash == 0 || other.type_hash == reader.type_hash);
    let deadline = match (other.qos.deadline, reader.qos.deadline) {
        (None, _) => true,
        (Some(other), Some(reader)) => other >= reader,
        (Some(_), None) => false,
    };
    let is_best_effort = |endpoint: &Endpoint| endpoint.qos.reliability == Reliability::BestEffort;
    (takes_any_type || takes_type)
        && reader.formats & !other.formats == 0
        && other.payload_bytes_max >= reader.payload_bytes_max
        && is_best_effort(other)
        && is_best_effort(reader)
        && other.qos.durability == reader.qos.durability
        && deadline
}

/// Whether what `writer` writes can reach readers through another process of their host. Not if it is deadline
/// bound: its repair is planned for each known node.
pub fn can_be_handed_on(writer: &Endpoint) -> bool {
    writer.qos.reliability != Reliability::DeadlineBound
}

#[cfg(test)]
mod tests {
    use noctule_timebase::Span;

    use super::*;
    use crate::endpoint::{Durability, EndpointId, EndpointKind, Qos, incompatible};

    fn reader() -> Endpoint {
        Endpoint {
            id: EndpointId(1),
            kind: EndpointKind::Reader,
            topic: "imu".into(),
            type_name: "Imu".into(),
            type_hash: 7,
            formats: 1,
            payload_bytes_max: 64,
            qos: Qos::default(),
            relayed: false,
        }
    }

    #[test]
    fn a_reader_that_stands_for_another_matches_every_writer_that_the_other_matches() {
        let mut kinds = Vec::new();
        for bits in 0..1u32 << 6 {
            let is = |bit: u32| bits >> bit & 1 == 1;
            let mut endpoint = reader();
            endpoint.qos.reliability = if is(0) { Reliability::Reliable } else { Reliability::BestEffort };
            endpoint.qos.durability = if is(1) { Durability::TransientLocal } else { Durability::Volatile };
            endpoint.qos.deadline = is(2).then(|| Span::from_ms(if is(3) { 10 } else { 20 }));
            endpoint.type_hash = if is(4) { 7 } else { 0 };
            endpoint.formats = if is(5) { 3 } else { 1 };
            kinds.push(endpoint);
        }
        let writer = |kind: &Endpoint| Endpoint { kind: EndpointKind::Writer, ..kind.clone() };
        let mut pairs = 0;
        for (other, one) in kinds.iter().flat_map(|other| kinds.iter().map(move |one| (other, one))) {
            if stands_for(other, one) {
                pairs += 1;
                for writer in kinds.iter().map(writer) {
                    let (wanted, got) = (incompatible(&writer, one), incompatible(&writer, other));
                    assert!(wanted.is_some() || got.is_none(), "{other:?} for {one:?} of {writer:?}");
                }
            }
        }
        assert!(pairs > 100, "{pairs}");
    }

    #[test]
    fn a_reader_of_more_types_stands_for_one_of_fewer_and_not_the_other_way_round() {
        let of = |name: &str, hash: u64| Endpoint { type_name: name.into(), type_hash: hash, ..reader() };
        let (any, named, exact) = (of("", 0), of("Imu", 0), of("Imu", 7));
        for (other, one, stands) in [
            (&any, &named, true),
            (&any, &exact, true),
            (&named, &exact, true),
            (&exact, &exact, true),
            (&exact, &named, false),
            (&named, &any, false),
            (&exact, &of("Imu", 8), false),
            (&named, &of("Scan", 0), false),
        ] {
            assert_eq!(stands_for(other, one), stands, "{other:?} for {one:?}");
        }
    }

    #[test]
    fn only_what_a_deadline_bounds_is_not_handed_on() {
        for (reliability, handed_on) in [
            (Reliability::BestEffort, true),
            (Reliability::Reliable, true),
            (Reliability::DeadlineBound, false),
        ] {
            let mut writer = Endpoint { kind: EndpointKind::Writer, ..reader() };
            writer.qos.reliability = reliability;
            assert_eq!(can_be_handed_on(&writer), handed_on, "{reliability:?}");
        }
    }

    #[test]
    fn nobody_stands_for_a_reader_that_requests_reliability() {
        let (best_effort, mut reliable) = (reader(), reader());
        reliable.qos.reliability = Reliability::Reliable;
        assert!(stands_for(&best_effort, &best_effort));
        assert!(!stands_for(&best_effort, &reliable));
        assert!(!stands_for(&reliable, &reliable));
        assert!(!stands_for(&reliable, &best_effort));
    }
}
