//! The controller's process: the joint loop at 4 kHz on this machine's clock, commands in, states out.

use std::time::Duration;

use noctule::{Node, NodeError, PublishError, ReceiveError, Reliability, TypedSample};
use noctule_arm::controller::{Command, Controller, ControllerConfig, Controlling, Mode, State};
use noctule_arm::validate::Rule;
use noctule_arm::{HOME_RAD, Rotation, Vector};
use noctule_sys::clock::{now_ns, sleep_until};
use noctule_timebase::{Instant, Span};

use crate::lateness::Lateness;
use crate::messages::{ArmState, POSE_TOPIC, PoseCommand, STATE_TOPIC};

/// Periods that are caught up after the loop was late; more, and it counts as stalled.
const CATCH_UP_MAX: i64 = 200;
/// Periods from state to state: 1 kHz at 4 kHz.
const PERIODS_PER_STATE: u64 = 4;
/// States that a reader may fall behind before it misses one: two seconds, 1.2 MB.
const STATES_KEPT: u32 = 2_048;

/// Why a controller ended.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// It could not join.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// It could not publish.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

/// Runs a controller until `is_due`.
///
/// # Errors
/// The topics cannot be opened, or a state cannot be published.
pub fn run(node: &Node, config: ControllerConfig, is_due: &dyn Fn() -> bool) -> Result<Lateness, DriveError> {
    let deadline = Duration::from_nanos(config.deadline.ns().max(0) as u64);
    let poses = node.subscriber(POSE_TOPIC).reliability(Reliability::DeadlineBound).deadline(deadline);
    let mut poses = poses.typed::<PoseCommand>().open()?;
    let mut states = node.publisher(STATE_TOPIC).keep_last(STATES_KEPT).typed::<ArmState>().open()?;
    let period_ns = (1e9 / config.joint_loop.rate_hz) as i64;
    let mut controller = Controller::new(config, HOME_RAD);
    let (mut lateness, mut missed, mut latest_ns, mut sequence) = (Lateness::default(), 0, 0, 0);
    let mut next_ns = now_ns();
    while !is_due() {
        next_ns += period_ns;
        sleep_until(next_ns);
        let late_ns = now_ns() - next_ns;
        let behind = lateness.record(late_ns, period_ns);
        latest_ns = latest_ns.max(late_ns);
        take_commands(&mut poses, &mut controller, node, &mut missed);
        let now = node.now();
        next_ns += behind * period_ns;
        // The motor ran on meanwhile: its periods are made up, each with its own time. After a stall they are not: the controller
        // sees the gap and stops the arm.
        let made_up = if behind > CATCH_UP_MAX { 0 } else { behind };
        for step in 0..made_up {
            controller.step(Instant::from_ns(now.ns() - (made_up - step) * period_ns));
        }
        controller.step(Instant::from_ns(now.ns()));
        if lateness.periods % PERIODS_PER_STATE < 1 + behind as u64 {
            sequence += 1;
            let mut state = arm_state(controller.state(), sequence);
            (state.late_periods, state.lateness_ns, state.missed) =
                (lateness.late_periods, latest_ns, missed);
            states.publish(&state)?;
            latest_ns = 0;
        }
    }
    Ok(lateness)
}

fn take_commands(
    poses: &mut noctule::TypedSubscriber<PoseCommand>,
    controller: &mut Controller,
    node: &Node,
    missed: &mut u64,
) {
    loop {
        match poses.take() {
            Ok(Some(sample)) => {
                *missed += sample.info().missed;
                if let Some(command) = command_of(sample) {
                    controller.handle_command(Instant::from_ns(node.now().ns()), command);
                }
            }
            Ok(None) | Err(ReceiveError::Take(_)) => return,
            // Counted by the library as undecodable; no command is no danger: the age goes on.
            Err(_) => {}
        }
    }
}

/// A command with its time in this process's clock; `None` while the sender's clock is not known.
fn command_of(sample: TypedSample<PoseCommand>) -> Option<Command> {
    let info = *sample.info();
    let source_time: Instant<Controlling> = Instant::from_ns(info.source_time?.ns());
    let pose = sample.into_value();
    let [x, y, z, w] = pose.orientation;
    let quaternion = nalgebra::Quaternion::new(w, x, y, z);
    let rotation = match (quaternion.norm() - 1.0).abs() < 0.01 {
        true => nalgebra::UnitQuaternion::from_quaternion(quaternion).to_rotation_matrix(),
        // Refused by the controller, with its name.
        false => Rotation::from_matrix_unchecked(nalgebra::Matrix3::from_element(f64::NAN)),
    };
    let own = Span::from_ns(pose.bound_ns.max(0));
    Some(Command {
        operator: pose.operator,
        position_m: Vector::from(pose.position_m),
        rotation,
        linear_m_s: Vector::from(pose.linear_velocity_m_s),
        angular_rad_s: Vector::from(pose.angular_velocity_rad_s),
        clutch: pose.clutch,
        scale: pose.scale,
        source_time,
        bound: info.bound.map(|bound| bound.checked_add(own).unwrap_or(Span::MAX)),
    })
}

fn arm_state(state: &State, sequence: u64) -> ArmState {
    let index =
        |rule: Rule| Rule::ALL.iter().position(|other| *other == rule).map_or(-1, |index| index as i8);
    let (mode, rule) = match state.mode {
        Mode::Idle => (ArmState::MODE_IDLE, -1),
        Mode::Engaged => (ArmState::MODE_ENGAGED, -1),
        Mode::Releasing => (ArmState::MODE_RELEASING, -1),
        Mode::Stopping(rule) => (ArmState::MODE_STOPPING, index(rule)),
        Mode::Stopped(rule) => (ArmState::MODE_STOPPED, index(rule)),
    };
    let rotation = nalgebra::UnitQuaternion::from_rotation_matrix(&state.flange.rotation);
    ArmState {
        sequence,
        mode,
        rule,
        joints_rad: state.joints_rad.into(),
        velocity_rad_s: state.velocity_rad_s.into(),
        voltage_v: state.voltage_v.into(),
        position_m: state.flange.translation.vector.into(),
        orientation: rotation.coords.into(),
        goal_m: state.goal.translation.vector.into(),
        command_age_ns: state.command_age.map_or(-1, Span::ns),
        command_bound_ns: state.command_bound.map_or(-1, Span::ns),
        branch: state.branch.map_or(-1, |branch| branch.index() as i8),
        sigma_min: state.sigma_min,
        flips: state.flips,
        commands: state.commands,
        outdated: state.outdated,
        periods: state.periods,
        rules: state.rules.all(),
        ..ArmState::default()
    }
}
