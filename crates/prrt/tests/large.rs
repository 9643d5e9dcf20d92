//! Samples of a megabyte with a deadline that leaves hardly more than their time on the wire.

use noctule_timebase::Span;

mod lossy;

use lossy::{Cell, run};

/// 1 MB at 10 Hz over 100 Mbit/s that lose 1 %, 20 ms round trip, within 100 ms. Of the line's bytes, 28 of each 1,460 are
/// headers that the link does not see.
const IMAGES: Cell = Cell {
    loss: 0.01,
    burst: 1.0,
    round_trip: Span::from_ms(20),
    deadline: Span::from_ms(100),
    interval: Span::from_ms(100),
    payload_bytes: 1_000_000,
    loss_target: 0.01,
    bottleneck: Some((12_260_000, 1_226_000)),
    ..Cell::LOSSY
};

#[test]
fn an_image_that_fills_the_line_is_repaired_datagram_by_datagram() {
    // 85 ms on the wire and 10 ms on the way. What a host takes to copy an image is missing here: 1 ms must not matter.
    for (deadline_ms, least) in [(99, 190), (100, 194), (120, 195)] {
        for seed in 1..=2 {
            let cell = Cell { deadline: Span::from_ms(deadline_ms), ..IMAGES };
            let outcome = run(cell, 200, seed);
            let (on_time, redundancy) = (outcome.on_time, outcome.redundancy());
            // The line is not known before the first image.
            assert!(on_time >= least, "{deadline_ms} ms, seed {seed}: {on_time} of 200");
            assert!(redundancy < 0.03, "{deadline_ms} ms, seed {seed}: {redundancy}");
        }
    }
}

#[test]
fn images_of_more_than_the_line_bears_are_limited_to_it() {
    let outcome = run(Cell { bottleneck: Some((8_000_000, 800_000)), ..IMAGES }, 50, 1);
    let sent_bytes_per_s = outcome.settled_bytes as f64 / outcome.settled_for.as_s_f64();
    assert!(sent_bytes_per_s < 9_500_000.0, "{sent_bytes_per_s}");
}
