use super::*;
use noctule_lab::fixture;
use noctule_lab::merge::merge;

fn with(peer: &str, payload_bytes: u64, rate_hz: Option<f64>) -> (noctule_lab::run::Cell, CellSamples) {
    let latencies: Vec<i64> = (0..100).map(|i| 1000 + i + payload_bytes as i64).collect();
    let mut cell = fixture::round_trip(peer, 0, &latencies);
    cell.0.payload_bytes = payload_bytes;
    cell.0.rate_hz = rate_hz;
    cell
}

fn charts(cells: Vec<(noctule_lab::run::Cell, CellSamples)>) -> Charts {
    let (run, samples) = fixture::run(cells);
    Charts::of(&run, &merge(&run, &samples), &samples)
}

#[test]
fn a_curve_stops_ten_samples_before_the_end_and_passes_through_the_percentiles() {
    let sorted: Vec<i64> = (0..10_000).collect();
    let curve = curve(&sorted);
    let at = |nines: f64| curve.iter().find(|p| (p.0 - nines).abs() < 1e-9).unwrap().1;
    assert_eq!(at(std::f64::consts::LOG10_2), 5_000);
    assert_eq!((at(1.0), at(2.0)), (9_000, 9_900));
    assert!(curve.iter().all(|&(_, ns)| ns < 10_000 - 10));
    assert!(curve.is_sorted_by_key(|p| p.1));
    assert!(super::curve(&sorted[..10]).is_empty());
}

#[test]
fn a_histogram_counts_every_sample_in_its_bin() {
    let found = histogram(&[-3, 0, 1, 10, 10, 99, 1_000_000_000]);
    assert_eq!(found.first_bin, 0);
    assert_eq!(found.counts.iter().sum::<u64>(), 7);
    assert_eq!((found.counts[0], found.counts[40], found.counts[360]), (3, 2, 1));
    assert_eq!(histogram(&[]), Histogram::default());
}

#[test]
fn thinning_keeps_the_largest_of_every_interval_and_the_limit() {
    let latencies: Vec<i64> =
        (0..100_000).map(|i| if i % 10_000 == 1_234 { 9_000_000 } else { 5_000 + i % 13 }).collect();
    let charts = charts(vec![fixture::round_trip("a", 0, &latencies)]);
    let dots = &charts.cells[0].trials[0];
    assert!(dots.latency_ns.len() <= DOTS_MAX);
    assert!(dots.latency_ns.len() > DOTS_MAX / 2);
    let spikes = dots.latency_ns.iter().filter(|&&ns| ns == 9_000_000).count();
    assert_eq!(spikes, 10, "no spike is thinned away");
    assert!(dots.time_us.is_sorted());
    assert_eq!(dots.samples, 100_000);
}

#[test]
fn an_invalid_experiment_is_not_drawn() {
    let mut bad = with("a", 64, None);
    bad.0.valid = false;
    let charts = charts(vec![bad]);
    assert!(charts.cells[0].curve.is_empty());
    assert!(charts.cells[0].trials.is_empty());
    assert!(charts.cells[0].histogram.counts.is_empty());
}

#[test]
fn a_chain_accumulates_from_the_schedule_to_each_node() {
    let (run, samples) = fixture::chain_and_round_trips();
    let charts = Charts::of(&run, &merge(&run, &samples), &samples);
    let chain = &charts.cells[1].cumulative;
    assert_eq!(chain.iter().map(|hop| hop.node).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(chain[2].p50_ns - chain[0].p50_ns, 60_000);
    assert!(charts.cells[0].cumulative.is_empty());
}

#[test]
fn three_payloads_make_a_sweep_and_two_by_two_a_heat_map() {
    let mut cells = Vec::new();
    for payload in [1024, 64, 512] {
        for rate in [10.0, 1000.0] {
            cells.push(with("a", payload, Some(rate)));
        }
    }
    cells.push(with("b", 64, Some(10.0)));
    let charts = charts(cells);
    assert_eq!(charts.sweeps.len(), 2, "one per rate; two rates are no sweep");
    assert_eq!(charts.sweeps[0].parameter, "payload_bytes");
    let payloads: Vec<f64> = charts.sweeps[0].points.iter().map(|p| p.x).collect();
    assert_eq!(payloads, [64.0, 512.0, 1024.0]);
    assert_eq!(charts.heat_maps.len(), 1);
    let map = &charts.heat_maps[0];
    assert_eq!((map.payload_bytes.len(), map.rate_hz.len()), (3, 2));
    assert_eq!(map.p50_ns[0][1], Some(1000 + 64 + 50));
}

#[test]
fn peers_keep_their_colour_and_floors_choose_last() {
    let mut floor = with("floor", 64, None);
    floor.0.is_floor = true;
    let charts = charts(vec![floor, with("a", 64, None), with("a", 512, None)]);
    let colours: Vec<_> = charts.cells.iter().map(|c| c.colour).collect();
    assert_eq!(colours, [1, 0, 0]);
}

#[test]
fn many_experiments_share_the_dots_of_a_page() {
    let latencies: Vec<i64> = (1..=1_000).collect();
    let cells = (0..150).map(|peer| fixture::round_trip(&peer.to_string(), 0, &latencies)).collect();
    let charts = charts(cells);
    let dots = |cell: &CellSeries| cell.trials.iter().map(|trial| trial.latency_ns.len()).sum::<usize>();
    let drawn: usize = charts.cells.iter().map(dots).sum();
    assert!(drawn <= DOTS_TOTAL_MAX && drawn > DOTS_TOTAL_MAX / 2, "{drawn}");
    assert!(
        charts.cells.iter().all(|cell| cell.trials[0].latency_ns.contains(&1_000)),
        "each keeps its worst"
    );
}
