//! Round trips over a scenario, with the truth beside them.

use noctule_timebase::Span;

use crate::clock::Clock;
use crate::random::Random;
use crate::scenario::Scenario;

/// Four stamps of one exchange and the true offset at its end.
///
/// Stamps are nanoseconds of the clock that took them, counted from that clock's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Request leaves, local clock.
    pub t1_ns: i64,
    /// Request arrives, remote clock.
    pub t2_ns: i64,
    /// Reply leaves, remote clock.
    pub t3_ns: i64,
    /// Reply arrives, local clock.
    pub t4_ns: i64,
    /// Remote minus local at the moment of `t4`.
    pub offset_true_ns: i64,
    /// Whether the remote clock was stepped while this exchange was under way. Its stamps then
    /// belong to two different offsets, and it proves nothing about either.
    pub step_in_flight: bool,
}

/// All round trips of `scenario` under `seed`, in the order in which the replies arrive.
///
/// Lost exchanges are absent. Requests leave on a fixed schedule, whether or not the reply to the
/// one before has come.
pub fn round_trips(scenario: &Scenario, seed: u64) -> Vec<RoundTrip> {
    let clock = Clock::new(&scenario.clock, scenario.duration, &mut Random::for_part(seed, 1));
    let mut delays = Random::for_part(seed, 2);
    let mut losses = Random::for_part(seed, 3);
    let read_remote = |at: Span| at + clock.offset_at(at);

    let mut trips = Vec::new();
    let mut sent = scenario.interval;
    let mut index = 0;
    while sent < scenario.duration {
        let (forward, back) = scenario.path.draw(index, &mut delays);
        if !losses.chance(scenario.loss) {
            let received = sent + forward;
            let replied = received + scenario.turnaround;
            let arrived = replied + back;
            let stepped = scenario.clock.steps.iter().any(|step| sent < step.at && step.at <= arrived);
            trips.push(RoundTrip {
                step_in_flight: stepped,
                t1_ns: sent.ns(),
                t2_ns: read_remote(received).ns(),
                t3_ns: read_remote(replied).ns(),
                t4_ns: arrived.ns(),
                offset_true_ns: clock.offset_at(arrived).ns(),
            });
        }
        sent += scenario.interval;
        index += 1;
    }
    trips.sort_by_key(|trip| trip.t4_ns);
    trips
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SCENARIOS;

    #[test]
    fn the_same_seed_gives_the_same_round_trips_and_another_seed_others() {
        for name in SCENARIOS {
            let scenario = Scenario::named(name).unwrap();
            assert_eq!(round_trips(&scenario, 5), round_trips(&scenario, 5));
            assert_ne!(round_trips(&scenario, 5), round_trips(&scenario, 6));
        }
    }

    #[test]
    fn every_round_trip_obeys_causality_with_the_true_offset() {
        for name in SCENARIOS {
            let mut scenario = Scenario::named(name).unwrap();
            scenario.clock.steps.clear();
            for trip in round_trips(&scenario, 1) {
                // One nanosecond for rounding, and the clock's own movement within the exchange.
                let moved_ns = (trip.t4_ns - trip.t1_ns) / 900 + 1;
                assert!(trip.t3_ns - trip.t4_ns <= trip.offset_true_ns + moved_ns, "{name} {trip:?}");
                assert!(trip.offset_true_ns <= trip.t2_ns - trip.t1_ns + moved_ns, "{name} {trip:?}");
            }
        }
    }

    #[test]
    fn half_of_the_exchanges_are_missing_at_half_loss() {
        let count = round_trips(&Scenario::named("H").unwrap(), 1).len();
        assert!((2_800..3_200).contains(&count), "{count} of 6,000");
    }
}
