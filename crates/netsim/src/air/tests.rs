//! The medium against published formulas, and its corners.

use super::*;

fn quiet(band: Band) -> AirSpec {
    let radio = RadioSpec { shadowing_db: 0.0, rice_k: None, ..RadioSpec::default() };
    AirSpec { band, radio, queue_frames: 1 << 20, ..AirSpec::default() }
}

fn payload(bytes: usize) -> Arc<[u8]> {
    vec![0; bytes].into()
}

/// Share of slots in which a saturated station begins to send, and the throughput that follows, by Bianchi, "Performance
/// analysis of the IEEE 802.11 distributed coordination function", JSAC 2000, equations 7, 9 and 13. `stages` is the number
/// of doublings; 0 is a broadcast.
fn bianchi(stations: f64, window: f64, stages: i32, times_s: (f64, f64, f64, f64)) -> (f64, f64) {
    let (payload_s, success_s, collision_s, slot_s) = times_s;
    let tau_of = |p: f64| {
        let doubled: f64 = (0..stages).map(|stage| libm::pow(2.0 * p, f64::from(stage))).sum();
        2.0 / (1.0 + window + p * window * doubled)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let p = (low + high) / 2.0;
        let implied = 1.0 - libm::pow(1.0 - tau_of(p), stations - 1.0);
        if implied > p { low = p } else { high = p }
    }
    let p = low;
    let tau = tau_of(p);
    let some = 1.0 - libm::pow(1.0 - tau, stations);
    let success = stations * tau * libm::pow(1.0 - tau, stations - 1.0);
    let mean_s = (1.0 - some) * slot_s + success * success_s + (some - success) * collision_s;
    (p, success * payload_s / mean_s)
}

fn saturate(spec: AirSpec, stations: usize, to: impl Fn(usize) -> Receivers, bytes: usize) -> AirCounters {
    let mut air = Air::new(spec, stations, 11);
    let start = Instant::from_ns(0);
    for number in 0..stations {
        // On a circle of 5 m: everybody hears everybody equally well.
        let angle = core::f64::consts::TAU * number as f64 / stations as f64;
        air.set_position(number, [5.0 * libm::cos(angle), 5.0 * libm::sin(angle), 0.0]);
        for _ in 0..20_000 {
            air.handle_frame(start, number, Frame::of_payload(to(number), payload(bytes)));
        }
    }
    let end = start + Span::from_s(10);
    air.handle_timeout(end);
    assert!((0..stations).all(|number| air.waiting(number) > 0), "not saturated");
    air.counters()
}

#[test]
fn unicast_in_saturation_has_bianchis_throughput_and_collisions() {
    let mut spec = quiet(Band::Ghz5);
    // Without a limit, as in the formula; the window is doubled six times.
    (spec.retries_max, spec.unicast_rate) = (u32::MAX, Rate::Mbps54);
    for stations in [5_usize, 10, 20, 50] {
        let counters = saturate(spec, stations, |number| Receivers::One((number + 1) % stations), 1000);
        let rate = spec.unicast_rate;
        let frame_s = rate.airtime(1000 + HEADERS_BYTES).as_s_f64();
        let (difs_s, sifs_s) = (spec.band.difs().as_s_f64(), spec.band.sifs().as_s_f64());
        let ack_s = rate.control().airtime(ACK_BYTES).as_s_f64();
        let times = (1.0, frame_s + sifs_s + ack_s + difs_s, frame_s + difs_s, spec.band.slot().as_s_f64());
        let (p, per_s) = bianchi(stations as f64, 16.0, 6, times);
        let collided = counters.retried as f64 / counters.sent as f64;
        let received = (counters.sent - counters.retried) as f64 / 10.0;
        assert!((received / per_s - 1.0).abs() < 0.05, "{stations}: {received} frames/s, formula {per_s}");
        assert!((collided - p).abs() < 0.03, "{stations}: {collided} collide, formula {p}");
    }
}

#[test]
fn broadcast_in_saturation_has_the_formulas_collisions() {
    let spec = quiet(Band::Ghz5);
    // Beyond, the slot after a busy one matters, which the formula takes for like any other and which only the last senders
    // may use (Tinnirello, Bianchi and Xiao, IEEE Trans. Vehicular Technology 2010).
    for stations in [2_usize, 5, 10] {
        let counters = saturate(spec, stations, |_| Receivers::All, 500);
        let frame_s = spec.multicast_rate.airtime(500 + HEADERS_BYTES).as_s_f64();
        let busy_s = frame_s + spec.band.difs().as_s_f64();
        let (p, per_s) =
            bianchi(stations as f64, 16.0, 0, (1.0, busy_s, busy_s, spec.band.slot().as_s_f64()));
        let sent = counters.sent as f64 / 10.0 * (1.0 - p);
        assert!((sent / per_s - 1.0).abs() < 0.05, "{stations}: {sent} frames/s alone, formula {per_s}");
        let arrived = counters.received as f64 / (counters.sent * (stations as u64 - 1)) as f64;
        // No station is much stronger than another, so nothing is captured.
        assert!((1.0 - arrived - p).abs() < 0.06, "{stations}: {} lost, formula {p}", 1.0 - arrived);
    }
}

#[test]
fn a_station_that_does_not_hear_the_other_destroys_its_frames_and_capture_saves_the_near_one() {
    let mut spec = quiet(Band::Ghz5);
    // Frames are received from 55 m, sensed from 40 m.
    (spec.radio.exponent, spec.radio.carrier_sense_dbm) = (2.7, -70.0);
    let lost = |positions_m: [f64; 3]| {
        let mut air = Air::new(spec, 3, 5);
        for (number, x) in positions_m.into_iter().enumerate() {
            air.set_position(number, [x, 0.0, 0.0]);
        }
        for number in [0, 2] {
            for _ in 0..2_000 {
                air.handle_frame(
                    Instant::from_ns(0),
                    number,
                    Frame::of_payload(Receivers::All, payload(500)),
                );
            }
        }
        let end = Instant::from_ns(400_000_000);
        let receptions = std::iter::from_fn(|| air.poll_reception(end)).filter(|r| r.to == 1);
        let from_first = receptions.filter(|r| r.from == 0).count();
        (from_first, air.counters())
    };
    // All hear each other; the outer two hear only the middle one; the same with the first very near.
    let (heard, open) = lost([0.0, 15.0, 30.0]);
    let (_, hidden) = lost([-30.0, 0.0, 30.0]);
    let (captured, _) = lost([-5.0, 0.0, 60.0]);
    assert!(heard > 600 && open.collided * 5 < open.received, "{heard} {open:?}");
    assert!(hidden.collided > hidden.received, "{hidden:?}");
    assert!(captured > 1_000, "{captured}");
}

#[test]
fn one_frame_is_on_the_air_for_its_airtime_and_arrives_at_its_end() {
    let mut air = Air::new(quiet(Band::Ghz5), 3, 1);
    let now = Instant::from_ns(1_000_000_000);
    air.handle_frame(now, 0, Frame::of_payload(Receivers::All, payload(80)));
    let mut receptions = Vec::new();
    while let Some(due) = air.poll_timeout() {
        receptions.extend(std::iter::from_fn(|| air.poll_reception(due)));
    }
    assert_eq!(receptions.len(), 2);
    let waited = receptions[0].at - now - Rate::Mbps24.airtime(144);
    assert!(waited >= Span::ZERO && waited < Span::from_us(9 * 16), "{waited:?}");
    assert_eq!(air.counters().airtime_ns, 72_000);
    assert_eq!(air.counters().busy_ns, 72_000);
}

#[test]
fn the_newest_state_takes_the_place_of_one_that_waits_and_a_full_queue_is_counted() {
    let spec = AirSpec { newest_wins: true, queue_frames: 2, ..quiet(Band::Ghz5) };
    let mut air = Air::new(spec, 2, 1);
    let now = Instant::from_ns(0);
    for number in 0..5 {
        air.handle_frame(now, 0, Frame::of_payload(Receivers::All, vec![number; 80].into()));
    }
    for _ in 0..3 {
        air.handle_frame(now, 0, Frame::of_payload(Receivers::One(1), payload(80)));
    }
    let end = Instant::from_ns(1_000_000_000);
    let contents: Vec<u8> = std::iter::from_fn(|| air.poll_reception(end)).map(|r| r.bytes[0]).collect();
    assert_eq!(contents, [4, 0]);
    let counters = air.counters();
    assert_eq!((counters.superseded, counters.queue_full), (4, 2), "{counters:?}");
}

#[test]
fn a_frame_to_one_is_repeated_until_it_is_acknowledged_and_then_given_up() {
    let mut spec = quiet(Band::Ghz5);
    spec.radio.bursts = Some(Bursts { loss: 0.5, mean: Span::from_us(200) });
    let mut air = Air::new(spec, 2, 3);
    for number in 0..1_000 {
        air.handle_frame(
            Instant::from_ns(0),
            0,
            Frame::of_payload(Receivers::One(1), vec![(number % 251) as u8].into()),
        );
    }
    let end = Instant::from_ns(i64::MAX / 2);
    let arrived = std::iter::from_fn(|| air.poll_reception(end)).count() as u64;
    let counters = air.counters();
    assert!(counters.retried > 500 && arrived > 950 && arrived <= 1_000, "{arrived} {counters:?}");
    // No station has that number: every attempt fails.
    air.handle_frame(end, 0, Frame::of_payload(Receivers::One(9), payload(80)));
    air.handle_timeout(end + Span::from_s(1));
    assert_eq!((air.counters().given_up - counters.given_up, air.waiting(0)), (1, 0));
}

#[test]
fn equal_seeds_give_equal_receptions() {
    let run = |seed| {
        let mut spec = AirSpec::default();
        spec.radio.bursts = Some(Bursts { loss: 0.3, mean: Span::from_ms(100) });
        let mut air = Air::new(spec, 20, seed);
        let mut seen = Vec::new();
        for step in 0..500_i64 {
            let now = Instant::from_ns(step * 1_000_000);
            let from = (step % 20) as usize;
            air.set_position(from, [step as f64, 0.0, 0.0]);
            air.handle_frame(now, from, Frame::of_payload(Receivers::All, payload(80)));
            seen.extend(std::iter::from_fn(|| air.poll_reception(now)).map(|r| (r.at.ns(), r.from, r.to)));
        }
        seen
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn the_arithmetic_of_the_air_is_that_of_the_reference() {
    let spec = |band, rate| AirSpec { band, multicast_rate: rate, ..AirSpec::default() };
    let load = |band, rate| broadcast_load(&spec(band, rate), 100, 80, 10.0);
    assert!((load(Band::Ghz2, Rate::Mbps1) - 1.704).abs() < 1e-9);
    assert!((load(Band::Ghz5, Rate::Mbps24) - 0.1735).abs() < 1e-9);
}

#[test]
fn a_station_senses_what_reaches_it_and_nothing_of_what_is_far_away() {
    let mut air = Air::new(quiet(Band::Ghz5), 3, 1);
    air.set_position(1, [10.0, 0.0, 0.0]);
    air.set_position(2, [5_000.0, 0.0, 0.0]);
    for number in 0..20 {
        air.handle_frame(
            Instant::from_ns(number * 1_000_000),
            0,
            Frame::of_payload(Receivers::All, payload(80)),
        );
    }
    let end = Instant::from_ns(100_000_000);
    while air.poll_reception(end).is_some() {}
    air.handle_timeout(end);
    let frame = Rate::Mbps24.airtime(80 + HEADERS_BYTES);
    let all = Span::from_ns(20 * frame.ns());
    assert_eq!([0, 1, 2].map(|station| air.sensed_busy(end, station)), [all, all, Span::ZERO]);
    // In the middle of a frame, too.
    air.handle_frame(end, 0, Frame::of_payload(Receivers::All, payload(80)));
    let started = air.poll_timeout().unwrap();
    air.handle_timeout(started);
    assert_eq!(air.sensed_busy(started + Span::from_us(3), 1), all + Span::from_us(3));
}
