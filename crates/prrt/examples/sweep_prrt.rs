//! The map of links: what each class delivers in time on each, and what it costs, as CSV on standard output.
//!
//! `cargo xtask sweep prrt` makes the committed map of it; `-- SEED DRAWN [full|short|drawn] [THREADS [FROM TO [RUNS]]]` runs the axes and so
//! many drawn cells, or these alone; of all of them those from the place FROM to before TO. Of several RUNS each has
//! another seed of the links.

#[path = "../tests/map/mod.rs"]
mod map;

use map::Service;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let run = |cell: &map::Cell, class: usize, seed| map::run(cell, Service::ALL[class], seed);
    map::sweep::sweep(&words, &Service::ALL.map(Service::name), run);
}
