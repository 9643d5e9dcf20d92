#[path = "../tests/map/mod.rs"]
mod map;
use map::{Form, Service, cells, run};
fn main() {
    let w: Vec<String> = std::env::args().skip(1).collect();
    let seed: u64 = w[0].parse().unwrap();
    let class = match w[2].as_str() { "d" => Service::DeadlineBound, "r" => Service::Reliable, _ => Service::BestEffort };
    let cell = match w[1].parse::<u64>() { Ok(n) => cells::drawn(Form::Full, seed, n), Err(_) => cells::cells(Form::Full, 0, seed).into_iter().find(|c| format!("{} {}", c.name, c.load.name()).contains(&w[1])).unwrap() };
    println!("{} {} {} beside {} dl {:?}\n  {}", cell.axis, cell.name, cell.load.name(), cell.beside.name(), cell.deadline, cell.link);
    let o = run(&cell, class, seed).unwrap();
    println!("on time {:.2} % late {} wire {:.3} red {:?} p50 {} p99 {} beside {}\n{:?}\n{:?}", 100.0 * o.on_time as f64 / o.samples as f64, o.late, o.wire_ratio, o.redundancy, o.p50_ms, o.p99_ms, o.beside_mbps, o.on_time_by_part, o.counters);
}
