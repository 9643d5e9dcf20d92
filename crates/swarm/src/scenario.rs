//! A swarm's experiment as TOML: which drones fly, what they know, over which air.

mod text;

use noctule_netsim::air::{
    AirSpec, Band, Bursts, HEADERS_BYTES, RadioSpec, Rate, STATIONS_MAX, broadcast_load,
};
use noctule_timebase::Span;

use crate::Vector;
use crate::avoid::Margins;
use crate::formation::Shape;
use crate::mission::Obstacle;
use crate::neighbours::{Knowledge, RangeLimits};
use crate::rate::RateLimits;
use crate::state::STATE_BYTES;
use crate::takeoff::TakeOffLimits;
use crate::vehicle::Limits;

use text::{AirText, AvoidText, KillText, ObstacleText, StateText, SwarmText, Text};

/// Most obstacles of a scenario.
pub const OBSTACLES_MAX: usize = 64;
/// Most drones of a scenario.
pub const NODES_MAX: usize = STATIONS_MAX;

/// A checked experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// Number of drones.
    pub nodes: usize,
    /// Mission of the drones.
    pub mission: Mission,
    /// Virtual time, s.
    pub seconds: f64,
    /// They hover this long first and receive each other's states, s.
    pub hover_s: f64,
    /// Then they wait until they know their neighbours ([`crate::takeoff`]).
    pub takeoff: TakeOffLimits,
    /// Gusts: standard deviation per axis, m/s²; each drone has its own.
    pub wind_m_s2: f64,
    /// Limits of the vehicles.
    pub limits: Limits,
    /// Distances that drones keep.
    pub margins: Margins,
    /// Decisions per second.
    pub decision_hz: f64,
    /// Settings of the states that drones send.
    pub states: States,
    /// Transport of the states.
    pub transport: Transport,
    /// The medium; `None`: perfect knowledge without any radio.
    pub air: Option<AirSpec>,
    /// Share of the air all states may take together, 0 to 1.
    pub air_budget: f64,
    /// How drones keep within it.
    pub rate_rule: RateRule,
    /// Payload that drone 0 sends to drone 1 by unicast besides, Mb/s.
    pub background_mbps: f64,
    /// The drones that are killed.
    pub kill: Option<Kill>,
    /// Obstacles; every drone knows them.
    pub obstacles: Vec<Obstacle>,
}

/// Mission of the drones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mission {
    /// All start on a sphere and cross to the opposite point, all through the middle; the mean distance of neighbours at
    /// the start, m.
    Crossing {
        /// m.
        spacing_m: f64,
    },
    /// A leader flies a circle; the others keep their slots.
    Formation {
        /// Distance between slots, m.
        spacing_m: f64,
        /// The first shape.
        shape: Shape,
        /// Time of a shape before the next, s.
        shape_s: f64,
        /// Speed of the leader, m/s.
        speed_m_s: f64,
    },
    /// All fly together in a cube.
    Flock {
        /// Mean distance at the start, m.
        spacing_m: f64,
    },
}

/// Settings of the states that drones send: rate, delay, errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct States {
    /// Asked for, Hz.
    pub rate_hz: f64,
    /// The rate is not lowered below this to stay within the air's budget, Hz.
    pub rate_min_hz: f64,
    /// Delay from the moment a state is true until it is handed to the radio.
    pub delay: Span,
    /// Error of the own position, m.
    pub position_bound_m: f64,
    /// Error of the own velocity, m/s.
    pub velocity_bound_m_s: f64,
    /// Clocks of two drones are known to each other within this.
    pub clock_bound: Span,
    /// States are dropped after this.
    pub lifespan: Span,
    /// Or before, if they are of drones that were far away.
    pub range: Option<RangeLimits>,
    /// Use of the states.
    pub knowledge: Knowledge,
}

/// How drones keep within the air's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateRule {
    /// All know how many they are: the rate is computed before the start.
    Planned,
    /// Each measures how busy its channel is ([`crate::rate`]).
    Measured,
}

/// How a state travels: models of transports, not the transports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// One frame to all, never repeated.
    Multicast,
    /// Copies of a state, spread evenly over its deadline: one period.
    Repeated {
        /// Frames per state, 2 to 4.
        copies: u32,
    },
    /// A frame to each other drone, acknowledged and retried by the MAC.
    UnicastMesh,
}

/// Drones that fall silent and hover.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kill {
    /// Share of all drones, drawn by the seed.
    pub share: f64,
    /// Virtual time of the kill, s.
    pub at_s: f64,
}

/// Why a text is no scenario.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, or with an unknown field.
    #[error("the scenario cannot be read: {0}; compare with scenarios/swarm_design_point.toml")]
    Syntax(String),
    /// A number that makes no sense.
    #[error("{field} is {value}; give {range}")]
    Range {
        /// Name of the field.
        field: &'static str,
        /// The value.
        value: String,
        /// Its range.
        range: &'static str,
    },
    /// A drone would begin or end in it.
    #[error(
        "drone {drone} begins or ends in obstacle {obstacle}; move it, make it smaller, or change swarm.spacing_m"
    )]
    Obstacle {
        /// Number of the drone.
        drone: usize,
        /// Number of the obstacle, from 1.
        obstacle: usize,
    },
    /// More than the air can carry.
    #[error("{0}")]
    Air(String),
}

impl Scenario {
    /// Reads and checks a scenario. What it asks of the air is checked by [`Self::plan_rate`].
    ///
    /// # Errors
    /// [`ScenarioError`]: no TOML, an unknown field, or a number out of its range.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let text: Text = toml::from_str(text).map_err(|error: toml::de::Error| {
            ScenarioError::Syntax(on_one_line(error.message(), &error, text))
        })?;
        let (swarm, state) = (&text.swarm, &text.state);
        let copies = range("state.copies", f64::from(state.copies), 2.0..=4.0, "2 to 4")? as u32;
        let scenario = Scenario {
            name: text.name.clone(),
            nodes: range("swarm.nodes", swarm.nodes as f64, 2.0..=NODES_MAX as f64, "2 to 4096")? as usize,
            mission: mission(swarm)?,
            seconds: range("swarm.seconds", swarm.seconds, 1.0..=3600.0, "1 to 3600 s")?,
            hover_s: range("swarm.hover_s", swarm.hover_s, 0.0..=60.0, "0 to 60 s")?,
            takeoff: takeoff(swarm)?,
            wind_m_s2: range("swarm.wind_m_s2", swarm.wind_m_s2, 0.0..=3.0, "0 to 3 m/s²")?,
            limits: limits(&text)?,
            margins: margins(&text.avoid, text.vehicle.response_s)?,
            decision_hz: range("avoid.decision_hz", text.avoid.decision_hz, 1.0..=100.0, "1 to 100 Hz")?,
            states: states(state, &swarm.neighbours)?,
            transport: match state.transport.as_str() {
                "multicast" => Transport::Multicast,
                "repeated" => Transport::Repeated { copies },
                "unicast_mesh" => Transport::UnicastMesh,
                other => return Err(choice("state.transport", other, "multicast, repeated or unicast_mesh")),
            },
            air: if text.air.perfect { None } else { Some(air(&text.air)?) },
            air_budget: range("air.budget", text.air.budget, 0.01..=1.0, "0.01 to 1")?,
            rate_rule: match state.rate_rule.as_str() {
                "planned" => RateRule::Planned,
                "measured" => RateRule::Measured,
                other => return Err(choice("state.rate_rule", other, "planned or measured")),
            },
            background_mbps: range(
                "air.background_mbps",
                text.air.background_mbps,
                0.0..=50.0,
                "0 to 50 Mb/s",
            )?,
            kill: text.kill.as_ref().map(kill).transpose()?,
            obstacles: obstacles(&text.obstacles)?,
        };
        Ok(scenario)
    }

    /// Share of the air that all states take together at `rate_hz`, if no two frames collide.
    pub fn air_load(&self, rate_hz: f64) -> f64 {
        let Some(air) = &self.air else { return 0.0 };
        let once = broadcast_load(air, self.nodes, STATE_BYTES as u32, rate_hz);
        match self.transport {
            Transport::Multicast => once,
            Transport::Repeated { copies } => once * f64::from(copies),
            Transport::UnicastMesh => {
                let frame = AirSpec { multicast_rate: air.unicast_rate, ..*air };
                let data = broadcast_load(&frame, self.nodes, STATE_BYTES as u32, rate_hz);
                let acknowledged =
                    air.band.sifs() + air.unicast_rate.control().airtime(noctule_netsim::air::ACK_BYTES);
                let all = self.nodes as f64 * rate_hz;
                (data + all * acknowledged.as_s_f64()) * (self.nodes as f64 - 1.0)
            }
        }
    }

    /// Limits by which drones that measure their channel set their rate, and the airtime of a state; `None` if they do not measure.
    pub fn rate_limits(&self) -> Option<(RateLimits, Span)> {
        let air = self.air.as_ref().filter(|_| self.rate_rule == RateRule::Measured)?;
        let frame_bytes = STATE_BYTES as u32 + HEADERS_BYTES;
        let once = air.multicast_rate.airtime(frame_bytes);
        let frames = match self.transport {
            Transport::Multicast => 1,
            Transport::Repeated { copies } => i64::from(copies),
            Transport::UnicastMesh => self.nodes as i64 - 1,
        };
        // The budget counts access times; a channel that is full of those is busy for the airtimes in them.
        let access = air.multicast_rate.access_time(air.band, STATE_BYTES as u32);
        let target = self.air_budget * once.as_s_f64() / access.as_s_f64();
        let limits = RateLimits { wanted_hz: self.states.rate_hz, least_hz: self.states.rate_min_hz, target };
        Some((limits, Span::from_ns(once.ns() * frames)))
    }

    /// The rate at which all states fit into the air's budget, Hz: the one requested, or less, the same for all.
    ///
    /// # Errors
    /// [`ScenarioError::Air`] with the arithmetic: the rate would fall below the least one, or the modulation is one of
    /// 802.11b and does not carry what was requested.
    pub fn plan_rate(&self) -> Result<f64, ScenarioError> {
        let Some(air) = &self.air else { return Ok(self.states.rate_hz) };
        let (rate_hz, budget) = (self.states.rate_hz, self.air_budget);
        let load = self.air_load(rate_hz);
        if load <= budget {
            return Ok(rate_hz);
        }
        let fitting_hz = rate_hz * budget / load;
        let slow = air.multicast_rate.is_dsss() && self.transport != Transport::UnicastMesh;
        // Measured rates fall by themselves, and where drones are far apart less than the plan would have it.
        let falls = self.rate_rule == RateRule::Measured || fitting_hz >= self.states.rate_min_hz;
        if !slow && falls {
            return Ok(fitting_hz.max(self.states.rate_min_hz));
        }
        Err(ScenarioError::Air(self.arithmetic(air, load, fitting_hz)))
    }

    fn arithmetic(&self, air: &AirSpec, load: f64, fitting_hz: f64) -> String {
        let per_second = self.nodes as f64 * self.states.rate_hz;
        let frames = match self.transport {
            Transport::Multicast => 1.0,
            Transport::Repeated { copies } => f64::from(copies),
            Transport::UnicastMesh => self.nodes as f64 - 1.0,
        };
        let mbps = match self.transport {
            Transport::UnicastMesh => air.unicast_rate.mbps(),
            _ => air.multicast_rate.mbps(),
        };
        let each_ms = 1000.0 * load / (per_second * frames);
        let way_out = match air.multicast_rate.is_dsss() {
            true => "set air.multicast_mbps to 6 or more (`iw dev IF set mcast_rate 24`)".to_owned(),
            false => format!("set state.rate_min_hz below {fitting_hz:.1} or fly fewer drones"),
        };
        format!(
            "the air cannot carry this: {} drones × {} Hz × {frames} frames × {each_ms:.2} ms at {mbps} Mb/s are {:.0} % of \
             the air, and the budget is {:.0} %; {way_out}, or ask for {:.1} Hz or less",
            self.nodes,
            self.states.rate_hz,
            100.0 * load,
            100.0 * self.air_budget,
            libm::floor(10.0 * fitting_hz) / 10.0,
        )
    }
}

fn mission(swarm: &SwarmText) -> Result<Mission, ScenarioError> {
    let spacing_m = range("swarm.spacing_m", swarm.spacing_m, 1.0..=1000.0, "1 to 1000 m")?;
    let speed_m_s = range("swarm.speed_m_s", swarm.speed_m_s, 0.0..=50.0, "0 to 50 m/s")?;
    match swarm.mission.as_str() {
        "crossing" => Ok(Mission::Crossing { spacing_m }),
        "flock" => Ok(Mission::Flock { spacing_m }),
        "formation" => {
            let shape = match swarm.shape.as_str() {
                "line" => Shape::Line,
                "wedge" => Shape::Wedge,
                "ring" => Shape::Ring,
                "grid" => Shape::Grid,
                other => return Err(choice("swarm.shape", other, "line, wedge, ring or grid")),
            };
            let shape_s = range("swarm.shape_s", swarm.shape_s, 1.0..=3600.0, "1 to 3600 s")?;
            Ok(Mission::Formation { spacing_m, shape, shape_s, speed_m_s })
        }
        other => Err(choice("swarm.mission", other, "crossing, formation or flock")),
    }
}

fn takeoff(swarm: &SwarmText) -> Result<TakeOffLimits, ScenarioError> {
    let seconds = |seconds: f64| Span::from_ns((seconds * 1e9) as i64);
    let quiet_s = range("swarm.takeoff_quiet_s", swarm.takeoff_quiet_s, 0.0..=60.0, "0 to 60 s")?;
    let longest_s = range("swarm.takeoff_longest_s", swarm.takeoff_longest_s, 0.0..=600.0, "0 to 600 s")?;
    Ok(TakeOffLimits { quiet: seconds(quiet_s), longest: seconds(longest_s) })
}

fn limits(text: &Text) -> Result<Limits, ScenarioError> {
    let vehicle = &text.vehicle;
    Ok(Limits {
        speed_m_s: range("vehicle.speed_m_s", vehicle.speed_m_s, 0.1..=50.0, "0.1 to 50 m/s")?,
        acceleration_m_s2: range(
            "vehicle.acceleration_m_s2",
            vehicle.acceleration_m_s2,
            0.1..=50.0,
            "0.1 to 50 m/s²",
        )?,
        response_s: range("vehicle.response_s", vehicle.response_s, 0.02..=2.0, "0.02 to 2 s")?,
        // Gusts are cut where only one of a thousand is stronger.
        gust_m_s2: 3.3 * text.swarm.wind_m_s2,
        radius_m: range("vehicle.radius_m", vehicle.radius_m, 0.05..=5.0, "0.05 to 5 m")?,
    })
}

fn margins(avoid: &AvoidText, response_s: f64) -> Result<Margins, ScenarioError> {
    Ok(Margins {
        hard_m: range("avoid.hard_margin_m", avoid.hard_margin_m, 0.0..=20.0, "0 to 20 m")?,
        soft_m: range("avoid.soft_margin_m", avoid.soft_margin_m, 0.0..=20.0, "0 to 20 m")?,
        horizon_s: range("avoid.horizon_s", avoid.horizon_s, 0.5..=20.0, "0.5 to 20 s")?,
        reaction_s: 1.0 / avoid.decision_hz.max(1.0) + response_s,
        braking_share: range("avoid.braking_share", avoid.braking_share, 0.1..=1.0, "0.1 to 1")?,
    })
}

fn states(state: &StateText, neighbours: &str) -> Result<States, ScenarioError> {
    let rate_hz = range("state.rate_hz", state.rate_hz, 0.1..=100.0, "0.1 to 100 Hz")?;
    let rate_min_hz = state.rate_min_hz.unwrap_or(rate_hz);
    let milliseconds = |ms: f64| Span::from_ns((ms * 1e6) as i64);
    Ok(States {
        rate_hz,
        rate_min_hz: range("state.rate_min_hz", rate_min_hz, 0.1..=rate_hz, "0.1 Hz to state.rate_hz")?,
        delay: milliseconds(range("state.delay_ms", state.delay_ms, 0.0..=5000.0, "0 to 5000 ms")?),
        position_bound_m: range("state.position_bound_m", state.position_bound_m, 0.0..=50.0, "0 to 50 m")?,
        velocity_bound_m_s: range(
            "state.velocity_bound_m_s",
            state.velocity_bound_m_s,
            0.0..=5.0,
            "0 to 5 m/s",
        )?,
        clock_bound: milliseconds(range(
            "state.clock_bound_ms",
            state.clock_bound_ms,
            0.0..=1000.0,
            "0 to 1000 ms",
        )?),
        lifespan: milliseconds(
            1000.0 * range("state.lifespan_s", state.lifespan_s, 0.1..=3600.0, "0.1 to 3600 s")?,
        ),
        range: state.in_range_m.map(|in_range_m| range_limits(in_range_m, state.near_m)).transpose()?,
        knowledge: knowledge(neighbours)
            .ok_or_else(|| choice("swarm.neighbours", neighbours, "hold, age or bound"))?,
    })
}

fn range_limits(in_range_m: f64, near_m: f64) -> Result<RangeLimits, ScenarioError> {
    Ok(RangeLimits {
        in_range_m: range("state.in_range_m", in_range_m, 1.0..=10_000.0, "1 to 10000 m")?,
        near_m: range("state.near_m", near_m, 0.0..=in_range_m, "0 m to state.in_range_m")?,
    })
}

/// The word of a scenario or a command line.
pub fn knowledge(word: &str) -> Option<Knowledge> {
    match word {
        "hold" => Some(Knowledge::Hold),
        "age" => Some(Knowledge::Age),
        "bound" => Some(Knowledge::Bound),
        _ => None,
    }
}

fn air(air: &AirText) -> Result<AirSpec, ScenarioError> {
    let band = match air.band_ghz {
        2.4 => Band::Ghz2,
        5.0 => Band::Ghz5,
        other => return Err(choice("air.band_ghz", &other.to_string(), "2.4 or 5")),
    };
    let rate = |field, mbps: f64| {
        let rate = Rate::from_mbps(mbps).filter(|rate| band == Band::Ghz2 || !rate.is_dsss());
        let range = "6, 9, 12, 18, 24, 36, 48 or 54, and at 2.4 GHz also 1, 2, 5.5 or 11";
        rate.ok_or_else(|| choice(field, &mbps.to_string(), range))
    };
    let loss = range("air.loss", air.loss, 0.0..=0.95, "0 to 0.95")?;
    let burst_ms = range("air.burst_ms", air.burst_ms, 1.0..=60_000.0, "1 to 60000 ms")?;
    let bursts = (loss > 0.0).then(|| Bursts { loss, mean: Span::from_ns((burst_ms * 1e6) as i64) });
    let rice_k = range("air.rice_k", air.rice_k, 0.0..=1000.0, "0 (Rayleigh) to 1000")?;
    let radio = RadioSpec {
        power_dbm: range("air.power_dbm", air.power_dbm, -20.0..=40.0, "-20 to 40 dBm")?,
        exponent: range("air.exponent", air.exponent, 1.5..=6.0, "1.5 to 6")?,
        shadowing_db: range("air.shadowing_db", air.shadowing_db, 0.0..=20.0, "0 to 20 dB")?,
        rice_k: Some(rice_k),
        bursts,
        ..RadioSpec::default()
    };
    Ok(AirSpec {
        band,
        multicast_rate: rate("air.multicast_mbps", air.multicast_mbps)?,
        unicast_rate: rate("air.unicast_mbps", air.unicast_mbps)?,
        radio,
        newest_wins: true,
        ..AirSpec::default()
    })
}

fn kill(kill: &KillText) -> Result<Kill, ScenarioError> {
    let share = range("kill.share", kill.share, 0.0..=0.9, "0 to 0.9")?;
    Ok(Kill { share, at_s: range("kill.at_s", kill.at_s, 0.0..=3600.0, "0 to 3600 s")? })
}

fn obstacles(texts: &[ObstacleText]) -> Result<Vec<Obstacle>, ScenarioError> {
    range("the number of [[obstacle]]", texts.len() as f64, 0.0..=OBSTACLES_MAX as f64, "0 to 64")?;
    let obstacle = |text: &ObstacleText| {
        for place in text.centre_m {
            range("obstacle.centre_m", place, -1e5..=1e5, "-100000 to 100000 m")?;
        }
        let radius_m = range("obstacle.radius_m", text.radius_m, 0.1..=1000.0, "0.1 to 1000 m")?;
        Ok(Obstacle { centre_m: Vector::from(text.centre_m), radius_m })
    };
    texts.iter().map(obstacle).collect()
}

fn range(
    field: &'static str,
    value: f64,
    allowed: core::ops::RangeInclusive<f64>,
    range: &'static str,
) -> Result<f64, ScenarioError> {
    match allowed.contains(&value) {
        true => Ok(value),
        false => Err(ScenarioError::Range { field, value: value.to_string(), range }),
    }
}

fn choice(field: &'static str, value: &str, range: &'static str) -> ScenarioError {
    ScenarioError::Range { field, value: format!("\"{value}\""), range }
}

fn on_one_line(message: &str, error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let message = message.lines().next().unwrap_or_default();
    line.map_or_else(|| message.to_owned(), |line| format!("line {line}: {message}"))
}

#[cfg(test)]
mod tests;
