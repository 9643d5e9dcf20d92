//! A scenario as it is written: tables and fields of the TOML, with their defaults.

use noctule_netsim::air::RadioSpec;
use serde::Deserialize;

use crate::avoid::Margins;
use crate::vehicle::Limits;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    pub(super) name: String,
    #[serde(default, rename = "description")]
    pub(super) _description: String,
    pub(super) swarm: SwarmText,
    #[serde(default)]
    pub(super) vehicle: VehicleText,
    #[serde(default)]
    pub(super) avoid: AvoidText,
    #[serde(default)]
    pub(super) state: StateText,
    #[serde(default)]
    pub(super) air: AirText,
    pub(super) kill: Option<KillText>,
    #[serde(default, rename = "obstacle")]
    pub(super) obstacles: Vec<ObstacleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SwarmText {
    pub(super) nodes: usize,
    pub(super) mission: String,
    pub(super) shape: String,
    pub(super) shape_s: f64,
    pub(super) spacing_m: f64,
    pub(super) speed_m_s: f64,
    pub(super) seconds: f64,
    pub(super) hover_s: f64,
    pub(super) takeoff_quiet_s: f64,
    pub(super) takeoff_longest_s: f64,
    pub(super) wind_m_s2: f64,
    pub(super) neighbours: String,
}

impl Default for SwarmText {
    fn default() -> SwarmText {
        SwarmText {
            nodes: 100,
            mission: "crossing".into(),
            shape: "wedge".into(),
            shape_s: 20.0,
            spacing_m: 20.0,
            speed_m_s: 5.0,
            seconds: 60.0,
            hover_s: 2.0,
            takeoff_quiet_s: 3.0,
            takeoff_longest_s: 20.0,
            wind_m_s2: 0.0,
            neighbours: "bound".into(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct VehicleText {
    pub(super) speed_m_s: f64,
    pub(super) acceleration_m_s2: f64,
    pub(super) response_s: f64,
    pub(super) radius_m: f64,
}

impl Default for VehicleText {
    fn default() -> VehicleText {
        let Limits { speed_m_s, acceleration_m_s2, response_s, radius_m, .. } = Limits::default();
        VehicleText { speed_m_s, acceleration_m_s2, response_s, radius_m }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AvoidText {
    pub(super) hard_margin_m: f64,
    pub(super) soft_margin_m: f64,
    pub(super) horizon_s: f64,
    pub(super) decision_hz: f64,
    pub(super) braking_share: f64,
}

impl Default for AvoidText {
    fn default() -> AvoidText {
        let margins = Margins::default();
        AvoidText {
            hard_margin_m: margins.hard_m,
            soft_margin_m: margins.soft_m,
            horizon_s: margins.horizon_s,
            decision_hz: 20.0,
            braking_share: margins.braking_share,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StateText {
    pub(super) rate_hz: f64,
    pub(super) rate_min_hz: Option<f64>,
    pub(super) delay_ms: f64,
    pub(super) position_bound_m: f64,
    pub(super) velocity_bound_m_s: f64,
    pub(super) clock_bound_ms: f64,
    pub(super) lifespan_s: f64,
    pub(super) in_range_m: Option<f64>,
    pub(super) near_m: f64,
    pub(super) transport: String,
    pub(super) copies: u32,
    pub(super) rate_rule: String,
}

impl Default for StateText {
    fn default() -> StateText {
        StateText {
            rate_hz: 10.0,
            rate_min_hz: None,
            delay_ms: 50.0,
            position_bound_m: 0.1,
            velocity_bound_m_s: 0.05,
            clock_bound_ms: 1.0,
            lifespan_s: 10.0,
            in_range_m: None,
            near_m: 30.0,
            transport: "multicast".into(),
            copies: 2,
            rate_rule: "planned".into(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AirText {
    pub(super) perfect: bool,
    pub(super) band_ghz: f64,
    pub(super) multicast_mbps: f64,
    pub(super) unicast_mbps: f64,
    pub(super) power_dbm: f64,
    pub(super) exponent: f64,
    pub(super) shadowing_db: f64,
    pub(super) rice_k: f64,
    pub(super) loss: f64,
    pub(super) burst_ms: f64,
    pub(super) budget: f64,
    pub(super) background_mbps: f64,
}

impl Default for AirText {
    fn default() -> AirText {
        let radio = RadioSpec::default();
        AirText {
            perfect: false,
            band_ghz: 5.0,
            multicast_mbps: 24.0,
            unicast_mbps: 54.0,
            power_dbm: radio.power_dbm,
            exponent: radio.exponent,
            shadowing_db: radio.shadowing_db,
            rice_k: 6.0,
            loss: 0.0,
            burst_ms: 100.0,
            budget: 0.6,
            background_mbps: 0.0,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KillText {
    pub(super) share: f64,
    pub(super) at_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObstacleText {
    pub(super) centre_m: [f64; 3],
    pub(super) radius_m: f64,
}
