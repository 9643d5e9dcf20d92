//! The transport on any link: what of a stream is in time, and what it costs, in virtual time.
#![allow(missing_docs, unreachable_pub, dead_code, clippy::unwrap_used)]

use std::error::Error;

use noctule_netsim::link::{LinkSpec, ReplayError};
use noctule_netsim::{Network, Random};
use noctule_prrt::{Bound, Class, Local, Order};
use noctule_timebase::{Instant, Span};

use arrived::Arrived;
use host::{Host, Offer};

pub mod arrived;
mod bbr;
pub mod cells;
#[path = "../bottleneck/cubic.rs"]
mod cubic;
pub mod flow;
mod host;
mod recorded;
pub mod sweep;

/// Equal parts of a run, whose differences give the interval of a comparison.
pub const PARTS: usize = 20;
const LOSS_TARGET: f64 = 1e-4;

/// Load of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// 115 B at 200 Hz: a state.
    State,
    /// 1,200 B at 1 kHz: sensors.
    Sensors,
    /// 1 MB at 10 Hz: images.
    Images,
}

/// Cross traffic beside the stream, in the same direction, from the end of the first of the [`PARTS`] on: the path is known by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    Cubic,
    Bbr,
    /// A reliable stream of ours that never ends, of another pair of programs.
    Ours,
}

/// With which class the stream is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    DeadlineBound,
    Reliable,
    BestEffort,
}

/// How long each load runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Full,
    Short,
}

/// One link with what is on it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Name of the parameter that is varied.
    pub axis: &'static str,
    pub name: String,
    pub load: Load,
    pub deadline: Span,
    /// As in docs/spec/link-text.md.
    pub link: String,
    pub beside: Beside,
    pub form: Form,
}

/// Results of a cell with one class.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub samples: u64,
    pub on_time: u64,
    pub late: u64,
    pub on_time_by_part: [u64; PARTS],
    /// Datagrams beyond those that carry each sample once, per one of those; of the deadline-bound class.
    pub redundancy: Option<f64>,
    /// All datagrams of the stream, both directions, with 28 bytes each for IPv4 and UDP, per byte published.
    pub wire_ratio: f64,
    /// Of the samples that arrived, in ms.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Payload of the flow beside, Mbit/s.
    pub beside_mbps: f64,
}

impl Load {
    pub const ALL: [Load; 3] = [Load::State, Load::Sensors, Load::Images];

    pub fn bytes(self) -> usize {
        match self {
            Load::State => 115,
            Load::Sensors => 1_200,
            Load::Images => 1_000_000,
        }
    }

    pub fn interval(self) -> Span {
        match self {
            Load::State => Span::from_ms(5),
            Load::Sensors => Span::from_ms(1),
            Load::Images => Span::from_ms(100),
        }
    }

    /// Length of a run.
    pub fn span(self, form: Form) -> Span {
        match (self, form) {
            (Load::State, Form::Full) => Span::from_s(200),
            (Load::Sensors, Form::Full) => Span::from_s(20),
            (Load::Images, Form::Full) => Span::from_s(10),
            (Load::State, Form::Short) => Span::from_s(20),
            (Load::Sensors, Form::Short) => Span::from_s(4),
            (Load::Images, Form::Short) => Span::from_s(2),
        }
    }

    /// Offered rate with headers of `per_datagram` bytes on each, bits a second.
    pub fn offered_bps(self) -> f64 {
        let datagrams = self.bytes().div_ceil(1_344);
        (self.bytes() + datagrams * 84) as f64 * 8.0 / self.interval().as_s_f64()
    }

    pub fn name(self) -> &'static str {
        match self {
            Load::State => "115 B at 200 Hz",
            Load::Sensors => "1200 B at 1 kHz",
            Load::Images => "1 MB at 10 Hz",
        }
    }
}

impl Service {
    pub const ALL: [Service; 3] = [Service::DeadlineBound, Service::Reliable, Service::BestEffort];

    pub fn name(self) -> &'static str {
        match self {
            Service::DeadlineBound => "deadline bound",
            Service::Reliable => "reliable",
            Service::BestEffort => "best effort",
        }
    }
}

impl Beside {
    pub fn name(self) -> &'static str {
        match self {
            Beside::Nothing => "",
            Beside::Cubic => "CUBIC",
            Beside::Bbr => "BBR",
            Beside::Ours => "ours",
        }
    }
}

impl Cell {
    fn class(&self, service: Service) -> Class {
        match service {
            Service::DeadlineBound => Class::DeadlineBound(Bound {
                deadline: self.deadline,
                loss_target: LOSS_TARGET,
                order: Order::Asap,
            }),
            Service::Reliable => Class::Reliable,
            Service::BestEffort => Class::BestEffort,
        }
    }

    /// The seed of this cell's link, the same for every class and whatever other cells there are.
    pub fn seed(&self, seed: u64) -> u64 {
        let text = format!("{:?} {} {:?}", self.load, self.link, self.beside);
        // FNV-1a.
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Random::for_part(seed, text.bytes().fold(0xcbf2_9ce4_8422_2325, hash)).bits()
    }

    /// The link itself.
    pub fn spec(&self) -> Result<LinkSpec, Fault> {
        let recording = &mut |name: &str| recorded::read(name).map_err(ReplayError::unreadable);
        Ok(LinkSpec::parse(&self.link, recording)?)
    }

    /// When the flow beside begins.
    pub fn beside_from(&self) -> Instant<Local> {
        Instant::from_ns(0) + self.load.span(self.form) / PARTS as i64
    }

    /// Samples published in a run.
    pub fn samples(&self) -> u64 {
        (self.load.span(self.form).ns() / self.load.interval().ns()) as u64
    }
}

impl Outcome {
    /// Results of what arrived: datagrams of so many bytes were sent for the stream, both ways, and so many bytes delivered of the flow beside.
    pub fn of(cell: &Cell, arrived: &mut Arrived, wire_bytes: u64, beside_bytes: u64) -> Outcome {
        let samples = cell.samples();
        Outcome {
            samples,
            on_time: arrived.on_time,
            late: arrived.late,
            on_time_by_part: arrived.on_time_by_part,
            redundancy: None,
            wire_ratio: wire_bytes as f64 / (samples * cell.load.bytes() as u64) as f64,
            p50_ms: arrived.latency_ms(0.5),
            p99_ms: arrived.latency_ms(0.99),
            beside_mbps: beside_bytes as f64 * 8e-6 / cell.load.span(cell.form).as_s_f64(),
        }
    }
}

/// Error that prevents the run of a cell.
pub type Fault = Box<dyn Error + Send + Sync>;

/// Sends the cell's samples by `service`, and lets all deadlines pass. An error is a link that does not rest.
pub fn run(cell: &Cell, service: Service, seed: u64) -> Result<Outcome, Fault> {
    let offer = Offer { load: cell.load, class: cell.class(service), samples: cell.samples() };
    let hosts = Host::pair(offer, cell.deadline, (cell.beside, cell.beside_from()));
    let mut network = Network::new(hosts, &cell.spec()?, cell.seed(seed));
    let span = cell.load.span(cell.form);
    network.run_for(span)?;
    let beside_bytes = network.endpoint(1).flow.delivered_bytes();
    network.run_for(cell.deadline + Span::from_ms(100))?;
    let wire_bytes = network.endpoint(0).wire_bytes + network.endpoint(1).wire_bytes;
    let counters = network.endpoint(0).link.counters();
    let extras = counters.bound_repeats + counters.bound_parity;
    let mut outcome = Outcome::of(cell, &mut network.endpoint(1).arrived, wire_bytes, beside_bytes);
    outcome.redundancy = (counters.bound_data > 0).then(|| extras as f64 / counters.bound_data as f64);
    Ok(outcome)
}
