//! State of the arm for browsers, as JSON.

use std::collections::VecDeque;

use noctule_arm::Joints;
use noctule_arm::analysis::{OpenLoop, View as LoopView, margins, step_metrics, step_response};
use noctule_arm::capsules::capsules;
use noctule_arm::controller::ControllerConfig;
use noctule_arm::inverse::Branch;
use noctule_arm::joint_loop::LoopConfig;
use noctule_timebase::Span;
use serde_json::{Value, json};

use crate::messages::{ArmState, PoseCommand};

/// Points of the trail in one frame; more are thinned out.
const TRAIL_MAX: usize = 64;
const MODES: [&str; 5] = ["idle", "engaged", "releasing", "stopping", "stopped"];

/// Collects states between frames.
#[derive(Debug, Default)]
pub(super) struct View {
    newest: Option<(i64, ArmState)>,
    command: Option<PoseCommand>,
    /// Flange and goal since the last frame.
    trail: VecDeque<[f64; 6]>,
    worst_lateness_ns: i64,
    /// Time and count of commands, about a second ago.
    before: Option<(i64, u64)>,
    command_rate_hz: f64,
}

impl View {
    pub(super) fn handle_state(&mut self, received_ns: i64, state: ArmState) {
        if self.trail.len() == TRAIL_MAX {
            self.trail.pop_front();
        }
        let ([x, y, z], [gx, gy, gz]) = (state.position_m, state.goal_m);
        self.trail.push_back([x, y, z, gx, gy, gz]);
        self.worst_lateness_ns = self.worst_lateness_ns.max(state.lateness_ns);
        let (since_ns, count) = *self.before.get_or_insert((received_ns, state.commands));
        if received_ns - since_ns >= 1_000_000_000 {
            let more = state.commands.saturating_sub(count) as f64;
            self.command_rate_hz = more / ((received_ns - since_ns) as f64 * 1e-9);
            self.before = Some((received_ns, state.commands));
        }
        self.newest = Some((received_ns, state));
    }

    pub(super) fn handle_command(&mut self, command: PoseCommand) {
        self.command = Some(command);
    }

    /// The frame of this moment.
    pub(super) fn frame(&mut self, now_ns: i64, operator: Option<u64>) -> String {
        let Some((received_ns, state)) = &self.newest else {
            return json!({ "t": "state", "silent_ms": null, "operator": operator }).to_string();
        };
        let joints = Joints::from(state.joints_rad);
        let body: Vec<Value> = capsules(&ControllerConfig::default().geometry, &joints)
            .iter()
            .map(|capsule| json!([capsule.from_m.as_slice(), capsule.to_m.as_slice(), capsule.radius_m]))
            .collect();
        let ms = |ns: i64| (ns >= 0).then_some(ns as f64 * 1e-6);
        let branch = usize::try_from(state.branch).ok().and_then(|index| Branch::ALL.get(index));
        let hand = self.command.as_ref().map(|command| {
            json!({
                "position": command.position_m,
                "velocity": command.linear_velocity_m_s,
                "clutch": command.clutch,
                "operator": command.operator,
            })
        });
        let frame = json!({
            "t": "state",
            "now_ms": now_ns as f64 * 1e-6,
            "hand": hand,
            "silent_ms": (now_ns - received_ns) as f64 * 1e-6,
            "operator": operator,
            "mode": MODES.get(usize::from(state.mode)).copied().unwrap_or("unknown"),
            "rule": state.rule,
            "joints": state.joints_rad,
            "velocity": state.velocity_rad_s,
            "voltage": state.voltage_v,
            "position": state.position_m,
            "orientation": state.orientation,
            "goal": state.goal_m,
            "body": body,
            "age_ms": ms(state.command_age_ns),
            "bound_ms": ms(state.command_bound_ns),
            "rate_hz": self.command_rate_hz,
            "branch": branch.map(ToString::to_string),
            "sigma": state.sigma_min,
            "flips": state.flips,
            "commands": state.commands,
            "missed": state.missed,
            "outdated": state.outdated,
            "periods": state.periods,
            "late_periods": state.late_periods,
            "lateness_ms": self.worst_lateness_ns as f64 * 1e-6,
            "rules": state.rules,
            "trail": self.trail,
        });
        self.trail.clear();
        self.worst_lateness_ns = 0;
        frame.to_string()
    }
}

/// Limits that the page draws beside the joints' values.
pub(super) fn limits(deadline: Span) -> Value {
    let validator = ControllerConfig::default().validator;
    json!({
        "position_rad": validator.position_rad.as_slice(),
        "velocity_rad_s": validator.velocity_rad_s,
        "voltage_v": validator.voltage_v,
        "deadline_ms": deadline.as_s_f64() * 1e3,
        "sigma_min": validator.sigma_min,
    })
}

/// The panels of the control analysis: step, Bode, Nyquist and Nichols of the continuous and the sampled loop.
pub(super) fn analysis() -> String {
    let config = LoopConfig::seed();
    let sampled = LoopView::Sampled { delay_samples: 1 };
    let views = [("continuous", LoopView::Continuous), ("sampled", sampled)];
    let series: Vec<Value> = views.into_iter().map(|(name, view)| series(name, &config, view)).collect();
    json!({ "t": "analysis", "series": series }).to_string()
}

fn series(name: &str, config: &LoopConfig, view: LoopView) -> Value {
    let open_loop = OpenLoop::new(config, view);
    let highest = open_loop.highest_rad_s().min(12_000.0);
    let points: Vec<[f64; 4]> = (0..240)
        .map(|index| 2.0 * (highest / 2.0_f64).powf(f64::from(index) / 239.0))
        .map(|omega| {
            let value = open_loop.at(omega);
            [omega, value.re, value.im, 20.0 * value.norm().log10()]
        })
        .collect();
    let found = margins(&|omega| open_loop.at(omega), open_loop.highest_rad_s());
    let step = step_response(config, view, 0.2);
    let stride = (step.len() / 200).max(1);
    let drawn: Vec<[f64; 2]> =
        step.iter().step_by(stride).map(|point| [point.time_ms, point.value]).collect();
    json!({
        "name": name,
        "points": points,
        "step": drawn,
        "metrics": step_metrics(&step),
        "phase_margin_deg": found.phase().map(|crossing| crossing.margin),
        "delay_margin_ms": found.delay_margin_ms,
        "ms": found.ms,
    })
}
