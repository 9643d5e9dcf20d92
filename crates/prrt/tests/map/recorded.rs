//! The recorded Wi-Fi of `vectors/pingpong`: round trips, taken as two equal ways.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use noctule_netsim::link::{Entry, Recording};
use noctule_timebase::Span;

use super::Fault;

/// In a folder above the package that this is part of.
const FOLDER: &str = "vectors/pingpong";

/// Reads the recording `name`; what has no answer is lost.
pub fn read(name: &str) -> Result<Recording, Fault> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|above| above.join(FOLDER).join(name))
        .find(|folder| folder.is_dir())
        .ok_or_else(|| format!("there is no {FOLDER}/{name}"))?;
    let rows = |file: &str| -> Result<Vec<_>, Fault> {
        let path = format!("{}/{file}", folder.display());
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let row = |line: &str| {
            let mut columns = line.split(',').skip(1).map(str::trim);
            let mut number = || columns.next()?.parse::<i64>().ok();
            Some((number()?, number()?))
        };
        text.lines().map(|line| row(line).ok_or_else(|| format!("{path}: {line}").into())).collect()
    };
    let answered: HashMap<i64, i64> =
        rows("sub.csv")?.into_iter().rev().map(|(at_ns, index)| (index, at_ns)).collect();
    let entries = rows("pub.csv")?.into_iter().map(|(at_ns, index)| Entry {
        at: Span::from_ns(at_ns),
        delay: answered.get(&index).map(|ns| Span::from_ns(ns - at_ns)),
    });
    Ok(Recording::new(entries.collect())?.halved())
}
