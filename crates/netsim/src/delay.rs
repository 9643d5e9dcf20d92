//! How long one message takes from one side to the other.

use noctule_timebase::Span;

use crate::random::Random;

/// One direction of a path: a least delay, an everyday jitter, and what now and then comes on top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// No message is faster than this: wire time and fixed processing, in microseconds.
    pub least_us: f64,
    /// Everyday jitter on top: gamma distributed with shape 2 and this scale in microseconds, so its
    /// mean is twice the scale. Very small delays are rare, as in measured wake-up times.
    pub jitter_us: f64,
    /// Extra queueing delay of some messages.
    pub queue: Queue,
}

/// An extra wait that only some messages suffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Nothing.
    Empty,
    /// With a probability, an exponential wait of this mean in microseconds: other traffic ahead.
    Exponential {
        /// Share of messages that wait.
        probability: f64,
        /// Mean wait in microseconds.
        mean_us: f64,
    },
    /// With a probability, a uniform wait: a polling timer, or retransmission on a radio.
    Uniform {
        /// Share of messages that wait.
        probability: f64,
        /// Shortest wait in microseconds.
        from_us: f64,
        /// Longest wait in microseconds.
        to_us: f64,
    },
}

impl Delay {
    /// Draws the delay of one message, in whole nanoseconds.
    pub fn draw(&self, random: &mut Random) -> Span {
        let wait_us = match self.queue {
            Queue::Empty => 0.0,
            Queue::Exponential { probability, mean_us } => {
                let wait_us = random.exponential(mean_us);
                if random.chance(probability) { wait_us } else { 0.0 }
            }
            Queue::Uniform { probability, from_us, to_us } => {
                let wait_us = random.uniform(from_us, to_us);
                if random.chance(probability) { wait_us } else { 0.0 }
            }
        };
        let us = self.least_us + random.gamma2(self.jitter_us) + wait_us;
        Span::from_ns(libm::round(us * 1e3) as i64)
    }
}

/// Both directions between two clocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Path {
    /// Delays drawn from a model, each direction by itself.
    Modelled {
        /// From local to remote.
        forward: Delay,
        /// From remote to local.
        back: Delay,
    },
    /// Recorded round trips, played in order and again from the start.
    ///
    /// A recording on one clock holds round trips only: how each divides into its two directions is
    /// not in it. The least round trip is divided by `forward_share_of_least`, what exceeds it by
    /// `forward_share_of_excess` (0.5 is a symmetric queue, 0 or 1 a one-sided one).
    Recorded {
        /// Round trips, none negative.
        round_trips: Vec<Span>,
        /// Share of the least round trip spent on the way there, 0 to 1.
        forward_share_of_least: f64,
        /// Share of everything beyond it spent on the way there, 0 to 1.
        forward_share_of_excess: f64,
    },
}

impl Path {
    /// The delays there and back of exchange number `index`. A recording without a single round trip
    /// gives zero delays.
    pub fn draw(&self, index: usize, random: &mut Random) -> (Span, Span) {
        match self {
            Path::Modelled { forward, back } => (forward.draw(random), back.draw(random)),
            Path::Recorded { round_trips, forward_share_of_least, forward_share_of_excess } => {
                let Some(least) = round_trips.iter().min() else {
                    return (Span::ZERO, Span::ZERO);
                };
                let whole = round_trips[index % round_trips.len()];
                let forward_ns = least.ns() as f64 * forward_share_of_least
                    + (whole - *least).ns() as f64 * forward_share_of_excess;
                let forward = Span::from_ns(libm::round(forward_ns) as i64);
                (forward, whole - forward)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_is_faster_than_the_least_delay() {
        let delay = Delay {
            least_us: 600.0,
            jitter_us: 60.0,
            queue: Queue::Exponential { probability: 0.4, mean_us: 1500.0 },
        };
        let mut random = Random::new(3);
        let draws: Vec<Span> = (0..20_000).map(|_| delay.draw(&mut random)).collect();
        assert!(draws.iter().all(|draw| *draw >= Span::from_us(600)));
        let mean_us = draws.iter().copied().sum::<Span>().ns() as f64 / draws.len() as f64 / 1e3;
        assert!((mean_us - (600.0 + 120.0 + 600.0)).abs() < 30.0, "{mean_us}");
    }

    #[test]
    fn a_recorded_round_trip_is_played_whole_whatever_its_shares() {
        let round_trips = vec![Span::from_us(900), Span::from_us(400), Span::from_us(5_000)];
        let path = Path::Recorded {
            round_trips: round_trips.clone(),
            forward_share_of_least: 0.5,
            forward_share_of_excess: 0.0,
        };
        let mut random = Random::new(1);
        for index in 0..7 {
            let (forward, back) = path.draw(index, &mut random);
            assert_eq!(forward + back, round_trips[index % 3]);
            assert_eq!(forward, Span::from_us(200), "all excess is on the way back");
        }
    }

    #[test]
    fn an_empty_recording_gives_zero_delays() {
        let path =
            Path::Recorded { round_trips: vec![], forward_share_of_least: 0.5, forward_share_of_excess: 0.5 };
        assert_eq!(path.draw(0, &mut Random::new(1)), (Span::ZERO, Span::ZERO));
    }
}
