//! Results of `offline::align` on the traces of `vectors/time-sync`, to the last bit.
//!
//! `vectors/time-sync/pieces/NAME.csv` holds one row per piece: from, to, offset (ns), the bits of the
//! drift in ppm, clearance (ns). The Python package reads the same files. After a deliberate change run
//! with `NOCTULE_BLESS=1` to write them anew, and review them as you would code.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use noctule_time_sync::offline::align;
use noctule_time_sync::{BoundedConfig, Exchange};

#[test]
fn align_reproduces_the_vectors() {
    let vectors = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/time-sync");
    for name in ["drawn", "hostile", "polling_timer", "step"] {
        let trace = fs::read_to_string(vectors.join(format!("{name}.csv"))).unwrap();
        let exchanges: Vec<Exchange> = trace
            .lines()
            .map(|line| {
                let stamps: Vec<i64> = line.split(',').take(4).map(|word| word.parse().unwrap()).collect();
                Exchange::from_ns(stamps[0], stamps[1], stamps[2], stamps[3])
            })
            .collect();
        let mut got = String::new();
        for piece in align(&exchanges, &BoundedConfig::default()) {
            let (from, to, offset) = (piece.from.ns(), piece.to.ns(), piece.offset.ns());
            let drift = piece.drift_ppm.to_bits();
            writeln!(got, "{from},{to},{offset},{drift:016x},{}", piece.clearance.ns()).unwrap();
        }
        let committed = vectors.join(format!("pieces/{name}.csv"));
        if std::env::var_os("NOCTULE_BLESS").is_some() {
            fs::create_dir_all(vectors.join("pieces")).unwrap();
            fs::write(&committed, &got).unwrap();
        }
        assert_eq!(got, fs::read_to_string(&committed).unwrap(), "{name}");
    }
}
