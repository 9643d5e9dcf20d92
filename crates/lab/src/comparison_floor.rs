//! Which floor a cell is compared with: the least its link and wait can cost, measured in the same
//! run with the same mode, nodes, placement and, where the floor moves data, payload.

use std::collections::BTreeMap;

use crate::dimensions::{Link, Wait};
use crate::run::{Cell, CellKey, Floor};
use crate::statistics::median;

/// Sets `floor` and `ratio_to_floor` of every cell that is not a floor itself.
pub fn assign(cells: &mut [Cell]) {
    let floors = floor_medians(cells);
    for cell in cells.iter_mut().filter(|cell| !cell.is_floor) {
        let key = cell.key();
        let found = candidates(&key).iter().find_map(|&name| closest(&floors, &key, name));
        cell.ratio_to_floor = match (&found, cell.latency_ns.and_then(|latency| latency.p50)) {
            (Some(floor), Some(p50_ns)) if floor.p50_ns > 0 => Some(p50_ns as f64 / floor.p50_ns as f64),
            _ => None,
        };
        cell.floor = found;
    }
}

/// Median over the trials of each floor's p50.
fn floor_medians(cells: &[Cell]) -> BTreeMap<CellKey, i64> {
    let mut trials: BTreeMap<CellKey, Vec<f64>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.is_floor) {
        if let Some(p50_ns) = cell.latency_ns.and_then(|latency| latency.p50) {
            trials.entry(cell.key()).or_default().push(p50_ns as f64);
        }
    }
    trials.into_iter().filter_map(|(key, p50_ns)| Some((key, median(p50_ns)?.round() as i64))).collect()
}

/// Options that a floor must share, where a cell has them: they make the link another one, or the machine.
const LINE_OPTIONS: [&str; 5] = ["baud", "ftdi", "fifo", "noise", "load"];

/// Names of the floors of a link, the right one first, then what stands in for it.
fn candidates(key: &CellKey) -> &'static [&'static str] {
    match (&key.link, key.wait) {
        (Link::SharedMemory, Wait::Block) => &["futex", "eventfd"],
        (Link::SharedMemory, _) => &["cache_line"],
        (Link::Tcp, _) => &["tcp"],
        (Link::Unix, _) => &["unix"],
        (Link::Pty, _) => &["pty"],
        (Link::Serial, _) => &["serial_pump"],
        (Link::Memory, _) => &["memcpy"],
        // Beyond the largest datagram, TCP is the least that moves the same bytes through the kernel.
        (Link::Udp, _) if key.payload_bytes > 65_507 => &["tcp"],
        _ => &["udp"],
    }
}

fn closest(floors: &BTreeMap<CellKey, i64>, key: &CellKey, name: &str) -> Option<Floor> {
    let carries_no_body = matches!(name, "cache_line" | "futex" | "eventfd");
    let fits = |floor: &CellKey| {
        floor.peer == name
            && floor.mode == key.mode
            && floor.nodes == key.nodes
            && floor.placement == key.placement
            && (floor.link == key.link || !key.link.is_between_hosts())
            && (floor.wait == key.wait || key.wait == Wait::Hybrid || key.link == Link::SharedMemory)
            && (floor.payload_bytes == key.payload_bytes || carries_no_body)
            && LINE_OPTIONS.iter().all(|name| option(floor, name) == option(key, name))
    };
    // The same rate if it was measured; an idle machine is slower to wake, and so is its floor.
    let (floor, &p50_ns) = floors.iter().filter(|(floor, _)| fits(floor)).min_by_key(|(floor, _)| {
        let other = (floor.rate_mhz != key.rate_mhz, floor.wait != key.wait, floor.beside != key.beside);
        (other, floor.options.len())
    })?;
    Some(Floor { name: floor.peer.clone(), p50_ns })
}

/// `none` is as good as nothing.
fn option<'a>(key: &'a CellKey, name: &str) -> Option<&'a String> {
    key.options.get(name).filter(|value| *value != "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(peer: &str, link: &str, wait: &str, payload_bytes: u64, p50: i64) -> Cell {
        let (mut cell, _) = crate::fixture::round_trip(peer, 0, &[p50; 100]);
        cell.floor = None;
        cell.link = link.into();
        cell.wait = wait.parse().unwrap();
        cell.payload_bytes = payload_bytes;
        cell.is_floor = ["udp", "tcp", "cache_line", "futex"].contains(&peer);
        cell
    }

    #[test]
    fn a_cell_is_compared_with_its_own_link_wait_and_payload() {
        let mut cells = vec![
            cell("udp", "udp", "spin", 64, 10),
            cell("udp", "udp", "block", 64, 20),
            cell("udp", "udp", "block", 1024, 30),
            cell("futex", "shm", "block", 16, 5),
            cell("cache_line", "shm", "spin", 16, 1),
            cell("dds", "udp", "block", 64, 100),
            cell("dds", "shm", "spin", 1024, 7),
            cell("dds", "shm", "block", 64, 50),
            cell("dds", "udp", "block", 4096, 100),
        ];
        assign(&mut cells);
        let floor =
            |index: usize| cells[index].floor.as_ref().map(|floor| (floor.name.as_str(), floor.p50_ns));
        assert_eq!(floor(5), Some(("udp", 20)));
        assert_eq!(cells[5].ratio_to_floor, Some(5.0));
        assert_eq!(floor(6), Some(("cache_line", 1)));
        assert_eq!(floor(7), Some(("futex", 5)));
        assert_eq!(floor(8), None, "4096 B were not measured on raw UDP");
        assert_eq!(floor(0), None, "a floor has none");
    }

    #[test]
    fn a_line_is_compared_with_a_pump_of_its_own_speed() {
        let line = |peer: &str, baud: &str, p50: i64| {
            let mut cell = cell(peer, "serial", "block", 16, p50);
            cell.is_floor = peer == "serial_pump";
            cell.options.insert("baud".into(), baud.into());
            cell
        };
        let mut cells = vec![
            line("serial_pump", "9600", 40),
            line("serial_pump", "115200", 4),
            line("xrce", "9600", 60),
            line("xrce", "460800", 3),
            line("xrce", "9600", 80),
        ];
        cells[4].options.insert("ftdi".into(), "none".into());
        assign(&mut cells);
        assert_eq!(cells[2].ratio_to_floor, Some(1.5));
        assert_eq!(cells[4].ratio_to_floor, Some(2.0));
        assert_eq!(cells[3].floor, None, "no pump ran at 460800 baud");
    }

    #[test]
    fn several_trials_of_a_floor_count_by_their_median() {
        let mut cells = vec![
            cell("udp", "udp", "block", 64, 10),
            cell("udp", "udp", "block", 64, 90),
            cell("udp", "udp", "block", 64, 20),
            cell("dds", "udp", "block", 64, 40),
        ];
        assign(&mut cells);
        assert_eq!(cells[3].ratio_to_floor, Some(2.0));
    }

    #[test]
    fn beyond_the_largest_datagram_tcp_stands_in() {
        let mut cells =
            vec![cell("tcp", "tcp", "block", 100_000, 10), cell("dds", "udp", "block", 100_000, 40)];
        assign(&mut cells);
        assert_eq!(cells[1].floor.as_ref().map(|floor| floor.name.as_str()), Some("tcp"));
    }
}
