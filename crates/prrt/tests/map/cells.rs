//! The map: each axis swept around base cells, and cells drawn from the whole space.
//!
//! A base cell has a round trip of 20 ms and is `clean`, or `lossy`: 5 % both ways in bursts of three packets. Events (a route that
//! changes, an outage) come after a third of the run.

use noctule_netsim::Random;
use noctule_netsim::link::PRESETS;
use noctule_timebase::Span;

use super::{Beside, Cell, Form, Load};

const LOSSY: &str = "loss=5% burst=3";
const DEADLINE: Span = Span::from_ms(60);

/// Every axis, then `draws` cells drawn by `seed`.
pub fn cells(form: Form, draws: u64, seed: u64) -> Vec<Cell> {
    let mut axes = Axes { form, cells: Vec::new() };
    axes.delay();
    axes.jitter();
    axes.loss();
    axes.ways();
    axes.routes();
    axes.outages();
    axes.order();
    axes.rates();
    axes.traffic();
    axes.presets();
    let mut cells = axes.cells;
    cells.extend((0..draws).map(|number| drawn(form, seed, number)));
    cells
}

struct Axes {
    form: Form,
    cells: Vec<Cell>,
}

fn us(ms: f64) -> String {
    format!("{}us", (ms * 1e3).round())
}

impl Axes {
    fn add(&mut self, axis: &'static str, name: String, link: String) {
        self.add_with(axis, name, link, (Load::State, DEADLINE, Beside::Nothing));
    }

    fn add_with(
        &mut self,
        axis: &'static str,
        name: String,
        link: String,
        (load, deadline, beside): (Load, Span, Beside),
    ) {
        self.cells.push(Cell { axis, name, load, deadline, link, beside, form: self.form });
    }

    /// The same link for larger loads. Images go through a line that they fill to two fifths.
    fn add_larger(&mut self, axis: &'static str, name: &str, link: &str) {
        self.add_with(axis, name.into(), link.into(), (Load::Sensors, DEADLINE, Beside::Nothing));
        let (before, after) = link.split_once(';').unwrap_or((link, ""));
        let link = format!("{before} rate=200mbit queue=50ms; {after}");
        self.add_with(axis, name.into(), link, (Load::Images, Span::from_ms(100), Beside::Nothing));
    }

    /// When an event comes, as text.
    fn event(&self, load: Load, after: Span) -> String {
        format!("@{}us", (load.span(self.form) / 3 + after).ns() / 1_000)
    }

    fn delay(&mut self) {
        for ms in [2, 5, 10, 25, 50, 100, 200] {
            let deadline = Span::from_ms(6 * ms);
            for (kind, more) in [("", ""), (" + lossy", LOSSY)] {
                let (name, link) = (format!("{ms} ms{kind}"), format!("delay={ms}ms {more}"));
                self.add_with("delay", name, link, (Load::State, deadline, Beside::Nothing));
            }
        }
        for tenths in [15, 20, 50] {
            let deadline = Span::from_ms(2 * tenths);
            let name = format!("deadline {}.{} round trips + lossy", tenths / 10, tenths % 10);
            let link = format!("delay=10ms {LOSSY}");
            self.add_with("delay", name, link, (Load::State, deadline, Beside::Nothing));
        }
        for ms in [2, 10, 50] {
            self.add_larger(
                "delay",
                &format!("{ms} ms + 1 % in bursts"),
                &format!("delay={ms}ms loss=1% burst=3"),
            );
        }
    }

    fn jitter(&mut self) {
        for ms in [4.0, 8.0, 30.0] {
            for shape in ["normal", "lognormal"] {
                for percent in [5.0, 10.0, 20.0, 30.0] {
                    let jitter = us(ms * percent / 100.0);
                    let name = format!("{ms} ms ± {percent} % {shape}");
                    let link = format!("delay={} jitter={jitter} distribution={shape} loss=0.1%", us(ms));
                    // As long as the tail of the slowest way asks for, and two repeats.
                    let deadline = Span::from_ms(8 * ms as i64 + 20);
                    self.add_with("jitter", name, link, (Load::State, deadline, Beside::Nothing));
                }
            }
        }
        for jitter_ms in [0.5, 1.0, 2.0, 3.0] {
            let link = format!("delay=10ms jitter={} {LOSSY}", us(jitter_ms));
            self.add("jitter", format!("10 ms ± {jitter_ms} ms normal + lossy"), link);
            let link = format!("delay=10ms jitter={} reorder=jitter loss=0.1%", us(jitter_ms));
            self.add("jitter", format!("10 ms ± {jitter_ms} ms out of order"), link);
        }
        for jitter_ms in [1.0, 2.0] {
            let link = format!("delay=10ms jitter={} distribution=lognormal loss=0.1%", us(jitter_ms));
            self.add_larger("jitter", &format!("10 ms ± {jitter_ms} ms lognormal"), &link);
        }
    }

    fn loss(&mut self) {
        for loss in ["0.1", "1", "2", "5", "10", "20"] {
            self.add("loss", format!("{loss} % independent"), format!("delay=10ms loss={loss}%"));
        }
        for loss in ["1", "5", "10"] {
            for burst in ["3", "10", "5ms", "10ms", "15ms", "30ms", "60ms"] {
                let unit = if burst.ends_with("ms") { "" } else { " packets" };
                let link = format!("delay=10ms loss={loss}% burst={burst}");
                self.add("loss", format!("{loss} % in bursts of {burst}{unit}"), link);
            }
        }
        for (name, loss) in [("2 % independent", "2%"), ("2 % in bursts of 15 ms", "2% burst=15ms")] {
            self.add_larger("loss", name, &format!("delay=10ms loss={loss}"));
        }
    }

    fn ways(&mut self) {
        for back in [0, 5, 20, 40] {
            let link = format!("delay=10ms; a>b: {LOSSY}; b>a: loss={back}%");
            self.add("ways", format!("lossy there and {back} % back"), link);
        }
        for (there, back) in [(5, 15), (15, 5), (5, 45), (45, 5)] {
            for (kind, more) in [("", ""), (" + lossy", LOSSY)] {
                let link = format!("a>b: delay={there}ms {more}; b>a: delay={back}ms {more}");
                let (name, deadline) =
                    (format!("{there} ms there and {back} ms back{kind}"), Span::from_ms(3 * (there + back)));
                self.add_with("ways", name, link, (Load::State, deadline, Beside::Nothing));
            }
        }
    }

    fn routes(&mut self) {
        for (before, after, more, deadline_ms) in [
            (10, 20, "", 100),
            (10, 20, LOSSY, 100),
            (10, 50, "", 200),
            (10, 100, "", 400),
            (10, 100, LOSSY, 600),
            (100, 10, LOSSY, 600),
            (2, 5, "", 40),
            (1, 4, "loss=1%", 40),
        ] {
            let (name, start) =
                (format!("{before} to {after} ms at once {more}"), format!("delay={before}ms {more}"));
            let link = format!("{start}; {}: delay={after}ms", self.event(Load::State, Span::ZERO));
            let setting = (Load::State, Span::from_ms(deadline_ms), Beside::Nothing);
            self.add_with("routes", name.trim().into(), link, setting);
        }
        for (to, seconds) in [(50, 4), (100, 2), (20, 1)] {
            let steps = (1..=40_i64).map(|step| {
                let at = self.event(Load::State, Span::from_ms(1_000 * seconds * step / 40));
                format!("; {at}: delay={}", us(10.0 + (to - 10) as f64 * step as f64 / 40.0))
            });
            let link = format!("delay=10ms{}", steps.collect::<String>());
            let setting = (Load::State, Span::from_ms(i64::from(to) * 4), Beside::Nothing);
            self.add_with("routes", format!("10 to {to} ms within {seconds} s"), link, setting);
        }
        let (at, back) = (self.event(Load::Sensors, Span::ZERO), self.event(Load::Sensors, Span::from_s(2)));
        let link = format!("delay=10ms; {at}: delay=25ms; {back}: delay=10ms");
        let setting = (Load::Sensors, Span::from_ms(100), Beside::Nothing);
        self.add_with("routes", "10 to 25 ms and back after 2 s".into(), link, setting);
    }

    fn outages(&mut self) {
        for ms in [50, 100, 300, 1_000, 3_000] {
            for (kind, more) in [("", ""), (" + lossy", LOSSY)] {
                let (at, up) =
                    (self.event(Load::State, Span::ZERO), self.event(Load::State, Span::from_ms(ms)));
                let link = format!("delay=10ms {more}; {at}: down; {up}: up");
                self.add("outages", format!("{ms} ms{kind}"), link);
            }
        }
        let (at, up) = (self.event(Load::Sensors, Span::ZERO), self.event(Load::Sensors, Span::from_ms(300)));
        let link = format!("delay=10ms; {at}: down; {up}: up");
        self.add_with("outages", "300 ms".into(), link, (Load::Sensors, DEADLINE, Beside::Nothing));
    }

    fn order(&mut self) {
        for (kind, more) in [("", ""), (" + lossy", LOSSY)] {
            for (name, what) in [
                ("1 % held back by 5 ms", "reorder=1%/5ms"),
                ("5 % held back by 8 ms", "reorder=5%/8ms"),
                ("5 % twice", "duplicate=5%"),
            ] {
                self.add("order", format!("{name}{kind}"), format!("delay=10ms {what} {more}"));
            }
        }
    }

    /// Rates in parts of what the load offers, headers counted.
    fn rates(&mut self) {
        for share in [0.5, 0.9, 1.3, 2.0, 5.0] {
            for load in Load::ALL {
                let deadline = if load == Load::Images { Span::from_ms(200) } else { DEADLINE };
                let rate = (load.offered_bps() * share).round();
                for queue in ["20ms", "200ms"] {
                    let queue = if load == Load::Images {
                        format!("{}ms", 5 * queue[..queue.len() - 2].parse::<u32>().unwrap())
                    } else {
                        queue.into()
                    };
                    let link = format!("delay=10ms; a>b: rate={rate}bit queue={queue}");
                    let name = format!("{share} of the offer with a queue of {queue}");
                    self.add_with("rate", name, link, (load, deadline, Beside::Nothing));
                }
                if load != Load::Images {
                    let burst = (rate / 8.0 * 0.02).max(3_000.0).round();
                    let link = format!("delay=10ms; a>b: police={rate}bit/{burst}B");
                    let name = format!("{share} of the offer with a policer");
                    self.add_with("rate", name, link, (load, deadline, Beside::Nothing));
                }
            }
        }
    }

    fn traffic(&mut self) {
        for beside in [Beside::Cubic, Beside::Bbr, Beside::Ours] {
            for (rate, queue, deadline_ms) in [
                ("6mbit", "15kB", 60),
                ("20mbit", "50kB", 60),
                ("6mbit", "60kB", 150),
                ("20mbit", "200kB", 150),
            ] {
                let link = format!("delay=10ms; a>b: rate={rate} queue={queue}");
                let name = format!("{} on {rate} with a queue of {queue}", beside.name());
                let setting = (Load::State, Span::from_ms(deadline_ms), beside);
                self.add_with("traffic", name.clone(), link.clone(), setting);
                if rate == "20mbit" {
                    let setting = (Load::Sensors, Span::from_ms(deadline_ms), beside);
                    self.add_with("traffic", name, link, setting);
                }
            }
        }
    }

    fn presets(&mut self) {
        for (name, link) in PRESETS {
            let (state, sensors) = match name {
                "satellite" => (900, 900),
                "radio_telemetry" => (400, 0),
                "lte" => (150, 150),
                _ => (60, 60),
            };
            for (load, deadline_ms) in [(Load::State, state), (Load::Sensors, sensors)] {
                if deadline_ms > 0 && !(name == "satellite" && load == Load::Sensors) {
                    let setting = (load, Span::from_ms(deadline_ms), Beside::Nothing);
                    self.add_with("presets", name.into(), link.into(), setting);
                }
            }
        }
        for (kind, more) in [("", ""), (" + 1 % in bursts of 15 ms", "loss=1% burst=15ms")] {
            for load in [Load::State, Load::Sensors] {
                let link = format!("replay=m5atom_udp_wifi {more}");
                let setting = (load, Span::from_ms(60), Beside::Nothing);
                self.add_with("presets", format!("recorded Wi-Fi{kind}"), link, setting);
            }
        }
    }
}

/// A cell of the whole space.
pub fn drawn(form: Form, seed: u64, number: u64) -> Cell {
    let mut random = Random::for_part(seed, 0xce11 + number);
    let mut pick = |count: usize| (random.bits() % count as u64) as usize;
    let load = [Load::State, Load::State, Load::State, Load::Sensors, Load::Images][pick(5)];
    let jitter_percent = [0, 0, 5, 10, 20, 30][pick(6)];
    let shape = ["normal", "lognormal"][pick(2)];
    let loss = ["0", "0", "0.1", "0.5", "1", "2", "5", "10", "20"][pick(9)];
    let burst = ["none", "3", "10", "5ms", "15ms", "30ms", "60ms"][pick(7)];
    let extra = ["", "", "", "reorder=1%/5ms", "duplicate=2%", "reorder=jitter"][pick(6)];
    let rate = [0.0, 0.0, 0.7, 1.2, 1.6, 3.0, 10.0][pick(7)];
    let queue_ms = [5, 20, 100, 300][pick(4)];
    let beside =
        [Beside::Nothing, Beside::Nothing, Beside::Nothing, Beside::Cubic, Beside::Bbr, Beside::Ours]
            [pick(6)];
    let event = ["", "", "", "longer", "shorter", "outage"][pick(6)];
    let feedback_alike = pick(4) > 0;
    let round_trips = [1.5, 2.0, 3.0, 3.0, 5.0][pick(5)];
    let there = 2.0 * 100.0_f64.powf(random.unit());
    let back = if random.chance(0.2) { there * random.uniform(0.3, 3.0) } else { there };
    let way = |ms: f64| {
        let jitter = us(ms * f64::from(jitter_percent) / 100.0);
        format!("delay={} jitter={jitter} distribution={shape} {extra}", us(ms))
    };
    let losses = if loss == "0" { String::new() } else { format!("loss={loss}% burst={burst}") };
    // Traffic beside needs a line that it can fill.
    let rate = if rate == 0.0 && beside != Beside::Nothing { 3.0 } else { rate };
    let bps = (load.offered_bps() * rate).max(if beside == Beside::Nothing { 0.0 } else { 4e6 });
    let line = if rate > 0.0 { format!("rate={}bit queue={queue_ms}ms", bps.round()) } else { String::new() };
    let returning = if feedback_alike { losses.as_str() } else { "" };
    let mut link = format!("a>b: {} {losses} {line}; b>a: {} {returning}", way(there), way(back));
    let third = load.span(form) / 3;
    let at = |after: Span| format!("@{}us", (third + after).ns() / 1_000);
    let slowest = match event {
        "longer" => 2.0,
        _ => 1.0,
    };
    match event {
        "longer" => link += &format!("; {}: delay={}", at(Span::ZERO), us(there.max(back) * 2.0)),
        "shorter" => link += &format!("; {}: delay={}", at(Span::ZERO), us(there.min(back) / 2.0)),
        "outage" => link += &format!("; {}: down; {}: up", at(Span::ZERO), at(Span::from_ms(200))),
        _ => {}
    }
    let tail = there.max(back) * slowest * (1.0 + f64::from(jitter_percent) / 50.0);
    // An image needs the time to leave.
    let leaves_ms = if load == Load::Images && rate > 0.0 { 100.0 / rate } else { 0.0 };
    let deadline = Span::from_us(((2.0 * tail * round_trips + leaves_ms + 5.0) * 10.0) as i64 * 100);
    Cell { axis: "drawn", name: format!("{number}"), load, deadline, link, beside, form }
}
