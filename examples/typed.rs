//! Publishes values of a type on the topic `pose`, and is called back with the first that comes.
#![allow(clippy::print_stdout)] // that is what it is for

use std::time::Duration;

noctule::message! {
    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct Pose: "demo/Pose" {
        position_m: [f64; 3],
        frame: String,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = noctule::Node::new("localisation")?;
    let mut publisher = node.publisher("pose").typed::<Pose>().open()?;
    let mut dispatcher = noctule::Dispatcher::new(noctule::Wait::Block);
    let stopper = dispatcher.stopper();
    dispatcher.on_sample(node.subscriber("pose").typed::<Pose>().open()?, move |pose| {
        println!("{:?} in {}, age {:?}", pose.position_m, pose.frame, pose.age());
        stopper.stop();
    });
    while dispatcher.spin_once(Some(Duration::from_millis(10))) != noctule::SpinResult::Stopped {
        publisher.publish(&Pose { position_m: [1.0, 2.0, 0.5], frame: "map".into() })?;
    }
    Ok(())
}
