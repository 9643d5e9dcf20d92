use super::*;
use crate::clock::{ClockModel, Step};
use crate::random::Random;

enum Own {}

type Arrival = (Instant<Own>, Address, u32);

/// Sends a numbered datagram every interval and notes what it gets, with its own time.
#[derive(Debug)]
struct Ticker {
    next: Option<Instant<Own>>,
    interval: Span,
    to: Destination,
    sent: u32,
    queued: Vec<Transmit>,
    got: Vec<Arrival>,
}

impl Ticker {
    fn new(interval: Option<Span>, to: Destination) -> Ticker {
        Ticker {
            next: interval.map(|interval| Instant::from_ns(interval.ns())),
            interval: interval.unwrap_or(Span::ZERO),
            to,
            sent: 0,
            queued: Vec::new(),
            got: Vec::new(),
        }
    }
}

impl Endpoint for Ticker {
    type Clock = Own;

    fn handle_datagram(&mut self, now: Instant<Own>, from: Address, bytes: &[u8]) {
        self.got.push((now, from, u32::from_le_bytes(bytes.try_into().unwrap())));
    }

    fn handle_timeout(&mut self, now: Instant<Own>) {
        let bytes = self.sent.to_le_bytes().to_vec();
        self.queued.push(Transmit { to: self.to, bytes });
        self.sent += 1;
        self.next = Some(now + self.interval);
    }

    fn poll_transmit(&mut self, _now: Instant<Own>) -> Option<Transmit> {
        self.queued.pop()
    }

    fn poll_timeout(&self) -> Option<Instant<Own>> {
        self.next
    }
}

fn ticking(ms: i64, to: Destination) -> Ticker {
    Ticker::new(Some(Span::from_ms(ms)), to)
}

fn silent() -> Ticker {
    Ticker::new(None, Destination::All)
}

fn spec(text: &str) -> LinkSpec {
    text.parse().unwrap()
}

fn pair(text: &str, seed: u64) -> Network<Ticker> {
    let endpoints =
        vec![ticking(10, Destination::One(Address(1))), ticking(15, Destination::One(Address(0)))];
    Network::new(endpoints, &spec(text), seed)
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let run = |seed| {
        let mut network = pair("delay=5ms jitter=1ms loss=10% burst=2 duplicate=1%", seed);
        network.run_for(Span::from_s(10)).unwrap();
        (network.endpoint(0).got.clone(), network.endpoint(1).got.clone())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn each_direction_has_its_own_delay_and_loss() {
    let mut network = pair("delay=5ms; b>a: delay=20ms loss=100%; @1s b>a: loss=0", 1);
    network.run_for(Span::from_s(2)).unwrap();
    let got = &network.endpoint(1).got;
    assert_eq!(got[0], (Instant::from_ns(15_000_000), Address(0), 0));
    assert_eq!(got.len(), 199);
    let back = &network.endpoint(0).got;
    // The first tick of 15 ms not before one second, and 20 ms.
    assert_eq!(back[0], (Instant::from_ns(1_005_000_000 + 20_000_000), Address(1), 66));
    assert_eq!(network.link(1).channel(0).lost, 66);
}

#[test]
fn a_multicast_reaches_all_others_and_each_loses_for_itself() {
    let mut endpoints = vec![ticking(1, Destination::All)];
    endpoints.resize_with(5, silent);
    let mut network = Network::new(endpoints, &spec("loss=10%"), 3);
    network.run_for(Span::from_s(20)).unwrap();
    let got: Vec<usize> = (0..5).map(|node| network.endpoint(node).got.len()).collect();
    assert_eq!(got[0], 0);
    // 20,000 sent: five standard deviations of √1800.
    assert!(got[1..].iter().all(|got| (17_788..18_212).contains(got)), "{got:?}");
    let first: Vec<u32> = network.endpoint(1).got.iter().map(|(_, _, number)| *number).collect();
    let second: Vec<u32> = network.endpoint(2).got.iter().map(|(_, _, number)| *number).collect();
    assert_ne!(first, second);
}

#[test]
fn nodes_live_by_their_own_clocks() {
    let mut network = pair("delay=5ms", 1);
    let model = ClockModel { offset: Span::from_s(3), drift_ppm: 100.0, ..ClockModel::default() };
    network.set_clock(0, Clock::new(&model, Span::from_s(100), &mut Random::new(1)));
    network.endpoint(0).next = Some(Instant::from_ns(3_010_000_000));
    network.run_for(Span::from_s(50)).unwrap();
    // Faster by 100 ppm: half a tick more in 50 s, at 10 ms the first.
    let sent = network.endpoint(0).sent;
    assert_eq!(sent, 5_000);
    let last = network.endpoint(1).got.last().copied().unwrap().0;
    let expected_ns = 4_999.0 * 1e7 / 1.0001 + 5e6;
    assert!((last.ns() as f64 - expected_ns).abs() < 5_000.0, "{last:?}, expected {expected_ns}");
}

#[test]
fn a_clock_that_steps_neither_stops_the_world_nor_a_timer() {
    let step = |at, by| Step { at: Span::from_ms(at), by: Span::from_ms(by) };
    let model = ClockModel { steps: vec![step(105, 300), step(505, -200)], ..ClockModel::default() };
    let mut network = pair("delay=5ms", 1);
    network.set_clock(0, Clock::new(&model, Span::from_s(2), &mut Random::new(1)));
    network.run_for(Span::from_s(1)).unwrap();
    // Forwards: one tick is due at once. Backwards: 200 ms without ticks.
    assert!((78..=82).contains(&network.endpoint(0).sent), "{}", network.endpoint(0).sent);
}

#[test]
fn a_node_can_move_and_restart() {
    let mut network = pair("delay=5ms", 1);
    network.run_for(Span::from_ms(104)).unwrap();
    network.set_address(1, Address(77));
    network.run_for(Span::from_ms(100)).unwrap();
    // The one under way at 104 ms still arrives; those sent from then on do not.
    assert_eq!(network.endpoint(1).got.len(), 10);
    assert_eq!(network.unroutable(), 10);
    assert_eq!(network.endpoint(0).got.last().unwrap().1, Address(77));
    network.set_address(1, Address(1));
    let old = network.replace(1, silent());
    assert!(old.sent > 10);
    network.run_for(Span::from_ms(100)).unwrap();
    assert_eq!(network.endpoint(1).got.len(), 9, "sent at 210 to 290 ms; the one of 300 ms is under way");
}

#[test]
fn a_run_ends_when_its_condition_holds() {
    let mut network = pair("delay=5ms", 1);
    let done = network.run_until(Instant::from_ns(i64::MAX), |network| network.endpoint(1).got.len() == 3);
    assert_eq!(done, Ok(true));
    assert_eq!(network.now(), Instant::from_ns(35_000_000));
    assert_eq!(network.run_until(Instant::from_ns(40_000_000), |_| false), Ok(false));
    assert_eq!(network.now(), Instant::from_ns(40_000_000));
}

#[test]
fn an_endpoint_that_keeps_time_from_passing_is_named() {
    let mut network = pair("delay=5ms", 1);
    network.endpoint(1).interval = Span::ZERO;
    let stuck = network.run_for(Span::from_s(1)).unwrap_err();
    assert_eq!(stuck, Stuck::Rounds { at: Instant::from_ns(15_000_000), node: 1 });
    assert!(stuck.to_string().contains("node 1 still wants to be called at once"));
}
