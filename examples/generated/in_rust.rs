//! Writes `/rust/pose` and the plain `/rust/state` at 50 Hz until its input ends; prints what the other programs write, each with its age.
#![allow(clippy::print_stdout)] // that is what it is for

use std::error::Error;
use std::io::Read;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

include!(concat!(env!("OUT_DIR"), "/noctule.rs"));
use demo::demo_msgs::action::{Go_Feedback, Go_Goal, Go_Result};
use demo::demo_msgs::msg::{Pose, plain::State};
use demo::demo_msgs::srv::Where_Response;
use demo::program_in_rust::InRust;
use noctule::action::{ActionClient, ActionServer, GoalError, TypedGoalEvent};
use noctule::{FieldsInPlace, Format, set_field};

fn pose(number: u32) -> Pose {
    let at = f64::from(number);
    let joints = (0..number % 4).map(|joint| joint as f32 + number as f32 / 4.0).collect();
    Pose { from: "rust".try_into().unwrap_or_default(), number, position: [at, -at / 2.0, at / 4.0], joints }
}

/// Sets the fields where they will be read.
fn state(number: u32, place: &mut FieldsInPlace<'_, '_, State>) {
    let at = f64::from(number);
    let mut joint = [0.0; 3];
    for (which, joint) in joint.iter_mut().enumerate().take((number % 4) as usize) {
        *joint = which as f32 + number as f32 / 4.0;
    }
    set_field!(place, State, is_even, u8::from(number.is_multiple_of(2)));
    set_field!(place, State, number, number);
    set_field!(place, State, position, [at, -at / 2.0, at / 4.0]);
    set_field!(place, State, joints, (number % 4) as u8);
    set_field!(place, State, joint, joint);
}

type Go = (Go_Goal, Go_Result, Go_Feedback);

/// Sends a goal to the program once it is there, and prints its result.
fn go(program: &str, client: &mut ActionClient<Go>, sends: bool) -> Result<(), GoalError> {
    if sends {
        client.start(&Go_Goal { number: 4 }, None)?;
    }
    while let Some((_, event)) = client.next(Some(Duration::ZERO))? {
        match event {
            TypedGoalEvent::Result(result) => {
                let [x, y, z] = result.position;
                println!("acted_{program} 4 {x:.3} {y:.3} {z:.3}");
            }
            TypedGoalEvent::Failed(why) => return Err(why),
            _ => {}
        }
    }
    Ok(())
}

/// Executes the goals of the others.
fn execute(server: &ActionServer<Go>) -> Result<(), GoalError> {
    while let Some(goal) = server.next(Some(Duration::ZERO)) {
        let mut goal = goal.accept()?;
        goal.feedback(&Go_Feedback { at: goal.number })?;
        let position = pose(goal.number).position;
        goal.succeed(&Go_Result { position })?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let node = noctule::Node::new("in_rust")?;
    let mut topics = InRust::open(&node)?;
    let (ending, ended) = channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(ending);
    });
    let (mut is_there, mut has_sent) = ([false; 3], [false; 3]);
    for number in 0.. {
        topics.rust_pose.publish(&pose(number))?;
        topics.rust_state.publish_in_place(|place| state(number, place))?;
        let others = [&mut topics.c_pose, &mut topics.cpp_pose, &mut topics.python_pose];
        for (topic, is_there) in others.into_iter().zip(&mut is_there) {
            while let Some(pose) = topic.take()? {
                *is_there = true;
                let Some(age) = pose.age() else { continue };
                let [x, y, z] = pose.position;
                let joints: String = pose.joints.iter().map(|joint| format!(" {joint:.3}")).collect();
                println!(
                    "{} {} {x:.3} {y:.3} {z:.3}{joints}: {} ns old",
                    &*pose.from,
                    pose.number,
                    age.span.ns()
                );
            }
        }
        // The client may have gone before the answer: that is no fault of this program.
        let _ = topics.rust_where_server.serve(Some(Duration::ZERO), |request| {
            Ok(Where_Response { position: pose(request.number).position })
        });
        let actions = [
            ("c", &mut topics.c_go_client),
            ("cpp", &mut topics.cpp_go_client),
            ("python", &mut topics.python_go_client),
        ];
        for ((program, client), (is_there, has_sent)) in
            actions.into_iter().zip(is_there.iter().zip(&mut has_sent))
        {
            let sends = *is_there && !*has_sent;
            *has_sent |= sends;
            go(program, client, sends)?;
        }
        // The client may have gone before its goal's end: that is no fault of this program.
        let _ = execute(&topics.rust_go_server);
        let states = [
            ("c", &mut topics.c_state),
            ("cpp", &mut topics.cpp_state),
            ("python", &mut topics.python_state),
        ];
        for (writer, topic) in states {
            while let Some(sample) = topic.receive_in_place(Some(Duration::ZERO))? {
                let Some(age) = sample.age() else { continue };
                let state = sample.value();
                // Of the number, what the reader of these lines expects, or else nothing of it.
                let is_right = sample.info().format == Some(Format::Plain)
                    && state.is_even == u8::from(state.number.is_multiple_of(2));
                let [x, y, z] = state.position;
                let joints = state.joint.iter().take(usize::from(state.joints));
                let joints: String = joints.map(|joint| format!(" {joint:.3}")).collect();
                println!(
                    "{}_{writer} {} {x:.3} {y:.3} {z:.3}{joints}: {} ns old",
                    if is_right { "plain" } else { "wrong" },
                    state.number,
                    age.span.ns()
                );
            }
        }
        if ended.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Disconnected) {
            break;
        }
    }
    Ok(())
}
