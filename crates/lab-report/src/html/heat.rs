//! Payload × rate as tables whose cells are coloured: they need no script and print as they are.

use serde::Serialize;

use crate::columns::WITHHELD;
use crate::palette::{magnitude, shares};
use crate::series::HeatMap;
use noctule_lab::notation::{count, duration, rate, size};

#[derive(Serialize)]
pub(super) struct Map {
    label: String,
    samples: String,
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

pub(super) fn maps(maps: &[HeatMap]) -> Vec<Map> {
    maps.iter()
        .map(|map| {
            let grids = [("p50", &map.p50_ns), ("p99", &map.p99_ns)];
            let with_figures = grids.into_iter().filter(|(_, grid)| figures(grid).count() > 0);
            Map {
                label: map.label.clone(),
                samples: count(map.samples),
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

fn figures(grid: &[Vec<Option<i64>>]) -> impl Iterator<Item = i64> {
    grid.iter().flatten().filter_map(|figure| *figure)
}

fn rows(payloads: &[u64], grid: &[Vec<Option<i64>>]) -> Vec<Row> {
    let paint = |(ns, share): (&Option<i64>, Option<f64>)| match (ns, share) {
        (Some(ns), Some(share)) => {
            let ([red, green, blue], dark_ink) = magnitude(share);
            Painted {
                text: duration(*ns as f64),
                paper: Some(format!("rgb({red},{green},{blue})")),
                ink: Some(if dark_ink { "#000" } else { "#fff" }),
            }
        }
        _ => Painted { text: WITHHELD.to_owned(), paper: None, ink: None },
    };
    let rows = payloads.iter().zip(grid).zip(shares(grid));
    rows.map(|((&payload, figures), shares)| Row {
        payload: size(payload),
        cells: figures.iter().zip(shares).map(paint).collect(),
    })
    .collect()
}
