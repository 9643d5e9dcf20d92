//! The grid on which plans are compared: loss, bursts, round trip, deadline, and two message streams.

use noctule_prrt::plan::{Demand, LossModel, Path};
use noctule_timebase::Span;

/// One cell of the grid.
pub(crate) struct Cell {
    pub(crate) bytes: u32,
    pub(crate) rate_hz: i64,
    pub(crate) loss: f64,
    pub(crate) bursts: bool,
    pub(crate) round_trip_ms: i64,
    /// Deadline in round trips.
    pub(crate) deadline_round_trips: f64,
    pub(crate) demand: Demand,
    pub(crate) path: Path,
}

/// All cells, both directions losing alike; 100 Mbit/s, and an hundredth of the round trip as jitter.
pub(crate) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (bytes, rate_hz) in [(115, 200), (1200, 1000)] {
        for round_trip_ms in [2, 20, 100] {
            for deadline_tenths in [15, 30, 60] {
                for bursts in [false, true] {
                    for percent in [0, 1, 5, 10, 20] {
                        cells.push(cell([bytes, rate_hz, round_trip_ms, deadline_tenths, percent], bursts));
                    }
                }
            }
        }
    }
    cells
}

fn cell([bytes, rate_hz, round_trip_ms, deadline_tenths, percent]: [i64; 5], bursts: bool) -> Cell {
    let p = percent as f64 / 100.0;
    let loss = if bursts { LossModel::Bursts { p, mean_burst: 3.0 } } else { LossModel::Independent { p } };
    let round_trip = Span::from_ms(round_trip_ms);
    let demand = Demand {
        deadline: Span::from_us(round_trip_ms * deadline_tenths * 100),
        loss_target: 1e-4,
        interval: Span::from_ns(1_000_000_000 / rate_hz),
        datagrams_per_message: 1,
        redundancy_max: 4.0,
        steady: true,
    };
    let path = Path {
        one_way: Span::from_ns(round_trip.ns() / 2),
        round_trip,
        round_trip_jitter: Span::from_ns(round_trip.ns() / 100),
        loss,
        feedback_loss: loss,
        transmit: Span::from_ns(bytes * 80),
        reaction: Span::from_us(100),
    };
    let deadline_round_trips = deadline_tenths as f64 / 10.0;
    Cell { bytes: bytes as u32, rate_hz, loss: p, bursts, round_trip_ms, deadline_round_trips, demand, path }
}
