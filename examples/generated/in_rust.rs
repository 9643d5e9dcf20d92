//! Writes `/rust/pose` at 50 Hz until its input ends; prints the poses of the other programs, each with its age.
#![allow(clippy::print_stdout)] // that is what it is for

use std::error::Error;
use std::io::Read;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

include!(concat!(env!("OUT_DIR"), "/noctule.rs"));
use demo::demo_msgs::msg::Pose;
use demo::program_in_rust::InRust;

fn pose(number: u32) -> Pose {
    let at = f64::from(number);
    let joints = (0..number % 4).map(|joint| joint as f32 + number as f32 / 4.0).collect();
    Pose { from: "rust".try_into().unwrap_or_default(), number, position: [at, -at / 2.0, at / 4.0], joints }
}

fn main() -> Result<(), Box<dyn Error>> {
    let node = noctule::Node::new("in_rust")?;
    let mut topics = InRust::open(&node)?;
    let (ending, ended) = channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(ending);
    });
    for number in 0.. {
        topics.rust_pose.publish(&pose(number))?;
        for topic in [&mut topics.c_pose, &mut topics.cpp_pose, &mut topics.python_pose] {
            while let Some(pose) = topic.take()? {
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
        if ended.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Disconnected) {
            break;
        }
    }
    Ok(())
}
