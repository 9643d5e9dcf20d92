//! Payload × rate as tables whose cells are coloured: they need no script and print as they are.
//!
//! Colours run along cividis, made to look alike with and without colour vision deficiency
//! (Nuñez, Anderton, Renslow 2018), here from light (fast) to dark (slow).

use serde::Serialize;

use crate::notation::{duration, rate, size};
use crate::report::series::HeatMap;

#[derive(Serialize)]
pub(super) struct Map {
    label: String,
    rates: Vec<String>,
    figures: Vec<Grid>,
}

#[derive(Serialize)]
struct Grid {
    name: &'static str,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    payload: String,
    cells: Vec<Painted>,
}

#[derive(Serialize)]
struct Painted {
    text: String,
    paper: Option<String>,
    ink: Option<&'static str>,
}

/// Five stops of cividis, slow to fast, red, green and blue.
const CIVIDIS: [[f64; 3]; 5] = [
    [0.0, 34.0, 78.0],
    [65.0, 77.0, 107.0],
    [124.0, 123.0, 120.0],
    [187.0, 175.0, 113.0],
    [254.0, 232.0, 56.0],
];

pub(super) fn maps(maps: &[HeatMap]) -> Vec<Map> {
    maps.iter()
        .map(|map| {
            let grids = [("p50", &map.p50_ns), ("p99", &map.p99_ns)];
            let with_figures = grids.into_iter().filter(|(_, grid)| figures(grid).count() > 0);
            Map {
                label: map.label.clone(),
                rates: map.rate_hz.iter().map(|hz| rate((hz * 1e3) as u64)).collect(),
                figures: with_figures
                    .map(|(name, grid)| Grid { name, rows: rows(&map.payload_bytes, grid) })
                    .collect(),
            }
        })
        .collect()
}

/// Table cells that get a colour.
pub(super) fn painted(maps: &[HeatMap]) -> usize {
    let count = |map: &HeatMap| figures(&map.p50_ns).count() + figures(&map.p99_ns).count();
    maps.iter().map(count).sum()
}

/// Red, green and blue, 0 … 255, for a share from 0 (slowest) to 1 (fastest).
pub(crate) fn colour(share: f64) -> [u8; 3] {
    let at = share.clamp(0.0, 1.0) * (CIVIDIS.len() - 1) as f64;
    let stop = (at as usize).min(CIVIDIS.len() - 2);
    let part = at - stop as f64;
    std::array::from_fn(|channel| {
        let (from, to) = (CIVIDIS[stop][channel], CIVIDIS[stop + 1][channel]);
        (from + (to - from) * part).round() as u8
    })
}

fn figures(grid: &[Vec<Option<i64>>]) -> impl Iterator<Item = i64> {
    grid.iter().flatten().filter_map(|figure| *figure)
}

fn rows(payloads: &[u64], grid: &[Vec<Option<i64>>]) -> Vec<Row> {
    let log = |ns: i64| (ns.max(1) as f64).ln();
    let (low, high) =
        figures(grid).map(log).fold((f64::MAX, f64::MIN), |range, ns| (range.0.min(ns), range.1.max(ns)));
    let paint = |ns: &Option<i64>| match ns {
        None => Painted { text: "–".to_owned(), paper: None, ink: None },
        Some(ns) => {
            let share = (high - log(*ns)) / (high - low).max(f64::MIN_POSITIVE);
            let [red, green, blue] = colour(share);
            Painted {
                text: duration(*ns as f64),
                paper: Some(format!("rgb({red},{green},{blue})")),
                ink: Some(if share > 0.45 { "#000" } else { "#fff" }),
            }
        }
    };
    payloads
        .iter()
        .zip(grid)
        .map(|(&payload, figures)| Row { payload: size(payload), cells: figures.iter().map(paint).collect() })
        .collect()
}
