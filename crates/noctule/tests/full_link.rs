//! One topic fills the line; what becomes of the others of its node.
//!
//! `NOCTULE_FULL_LINK_SECONDS=55` makes each best-effort case so long: figures of a quiet machine, with `--release -- --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // tests and what they share

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use noctule::clock::{self, LocalClock};
use noctule::{Node, Publisher, Reliability, Subscriber};
use noctule_sys::clock::sleep_until;

mod hosts;

const DOMAIN: u32 = 41;
const IMU_INTERVAL_NS: i64 = 5_000_000;
const CAMERA_INTERVAL_NS: i64 = 100_000_000;
/// By then a sample is to be on its way.
const ON_ITS_WAY_NS: i64 = 2 * IMU_INTERVAL_NS;

fn join(publisher: &Publisher, subscriber: &mut Subscriber) {
    while publisher.readers() == 0 || subscriber.publishers() == 0 {
        subscriber.wait(Some(Duration::from_millis(5)));
    }
}

/// Processor time of this thread, which other programs do not lengthen, ns.
fn processor_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Sorted.
fn show(name: &str, times_ns: &mut [i64]) {
    times_ns.sort_unstable();
    // None with fewer than ten beyond it.
    let at = |share: f64| {
        let beyond = (times_ns.len() as f64 * (1.0 - share)).round() as usize;
        (beyond >= 10).then(|| times_ns[times_ns.len() - beyond] as f64 / 1e6)
    };
    let text = |ms: Option<f64>| ms.map_or("–".to_owned(), |ms| format!("{ms:.3} ms"));
    let [median, high, higher] = [0.5, 0.99, 0.999].map(|share| text(at(share)));
    let worst = text(times_ns.last().map(|ns| *ns as f64 / 1e6));
    let count = times_ns.len();
    eprintln!("  {name}: p50 {median}, p99 {high}, p99.9 {higher}, worst {worst}, {count} in all");
}

struct Outcome {
    imu_received: u64,
    pictures: usize,
    gone: Vec<String>,
}

/// A camera of 1 MB at 10 Hz and an inertial sensor of 64 B at 200 Hz in one node.
fn camera_and_imu((far, near): &(Node, Node), reliability: Reliability, imu_samples: u64) -> Outcome {
    let builder = far.publisher("camera").payload_bytes_max(1 << 20).keep_last(1);
    let mut camera = builder.reliability(reliability).open().unwrap();
    // Deep enough for a machine that does nothing for a while: then seconds of samples are published, or taken, at once.
    let mut imu = far.publisher("imu").payload_bytes_max(64).keep_last(1024).open().unwrap();
    let mut pictures = near.subscriber("camera").reliability(reliability).open().unwrap();
    let mut samples = near.subscriber("imu").keep_last(1024).open().unwrap();
    join(&camera, &mut pictures);
    join(&imu, &mut samples);
    let is_over = AtomicBool::new(false);
    let (mut imu_calls, mut imu_processor, mut camera_calls, mut delays) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut received = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let picture = vec![7; 1_000_000];
            let mut at = clock::now().ns();
            while !is_over.load(Ordering::Relaxed) {
                let begin = clock::now().ns();
                camera.publish(&picture).unwrap();
                camera_calls.push(clock::now().ns() - begin);
                at += CAMERA_INTERVAL_NS;
                sleep_until(at);
            }
        });
        scope.spawn(|| {
            loop {
                // What has arrived by the end is taken however late this thread runs.
                let was_over = is_over.load(Ordering::Relaxed);
                while let Some(sample) = samples.take().unwrap() {
                    let sent_ns = i64::from_le_bytes(sample.to_vec()[..8].try_into().unwrap());
                    delays.push(sample.info().receive_time.ns() - sent_ns);
                    received += 1;
                }
                if was_over {
                    break;
                }
                samples.wait(Some(Duration::from_millis(20)));
            }
        });
        let mut at = clock::now().ns();
        for _ in 0..imu_samples {
            let begin = clock::now().ns();
            let mut bytes = [0; 64];
            bytes[..8].copy_from_slice(&begin.to_le_bytes());
            let begin_processor = processor_ns();
            imu.publish(&bytes).unwrap();
            imu_processor.push(processor_ns() - begin_processor);
            imu_calls.push(clock::now().ns() - begin);
            at += IMU_INTERVAL_NS;
            sleep_until(at);
        }
        // What is on its way arrives by then on a busy machine, too.
        sleep_until(at + 100 * IMU_INTERVAL_NS);
        is_over.store(true, Ordering::Relaxed);
    });
    show("imu publish", &mut imu_calls);
    show("imu publish, processor time", &mut imu_processor);
    show("camera publish", &mut camera_calls);
    show("imu from publish to arrival", &mut delays);
    let late = delays.iter().filter(|delay| **delay > ON_ITS_WAY_NS).count();
    eprintln!("  {late} of them later than two periods, {} ms", ON_ITS_WAY_NS / 1_000_000);
    let notices = |node: &Node| std::iter::from_fn(|| node.poll_notice()).collect::<Vec<_>>();
    let all = notices(far).into_iter().chain(notices(near));
    let gone = all.filter(|notice| matches!(notice, noctule::Notice::Gone { .. }));
    let gone = gone.map(|notice| notice.to_string()).collect();
    let pictures = std::iter::from_fn(|| pictures.take().unwrap()).count();
    let given_up = imu.given_up();
    eprintln!("  subscriber {:?}\n  link {:?}", samples.counters(), near.link_counters(far.id()));
    eprintln!("  {received} of {imu_samples} samples, {given_up} given up; {:?}", far.send_counters());
    Outcome { imu_received: received, pictures, gone }
}

#[test]
fn an_inertial_sensor_gets_through_beside_a_camera_that_fills_the_line() {
    let Some(hosts) = hosts::pair() else { return };
    let seconds = std::env::var("NOCTULE_FULL_LINK_SECONDS");
    let seconds: u64 = seconds.map_or(3, |text| text.parse().expect("seconds"));
    for (mbit_per_s, reliability) in [
        (50, Reliability::BestEffort),
        (10, Reliability::BestEffort),
        (2, Reliability::BestEffort),
        (50, Reliability::Reliable),
        (2, Reliability::Reliable),
    ] {
        eprintln!("{mbit_per_s} Mbit/s, camera {reliability:?}");
        hosts.0.limit(mbit_per_s);
        let clock: LocalClock = "offset=5s".parse().unwrap();
        let far = hosts.0.node("far", |builder| builder.domain(DOMAIN).clock(clock));
        let near = hosts.1.node("near", |builder| builder.domain(DOMAIN));
        let seconds = if reliability == Reliability::BestEffort { seconds } else { 3 };
        let imu_samples = seconds * 1_000_000_000 / IMU_INTERVAL_NS as u64;
        let outcome = camera_and_imu(&(far, near), reliability, imu_samples);
        eprintln!("  {} departures", outcome.gone.len());
        // On a line that drops nothing, what reached the kernel arrives. No stream waits seconds for another.
        let least = imu_samples - imu_samples / 20;
        assert!(outcome.imu_received >= least, "{mbit_per_s} Mbit/s: {}", outcome.imu_received);
        assert_eq!(outcome.gone, [""; 0], "{mbit_per_s} Mbit/s");
        assert!(mbit_per_s < 50 || outcome.pictures >= 1, "{mbit_per_s} Mbit/s: no picture");
    }
}
