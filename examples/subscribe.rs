//! Prints the samples of the topic `hello`, and how old each was when it came.
#![allow(clippy::print_stdout)] // that is what it is for

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = noctule::Node::new("listener")?;
    let mut subscriber = node.subscriber("hello").open()?;
    while let Some(sample) = subscriber.receive(None)? {
        if let Some(age) = sample.age() {
            println!("{}: {} old", String::from_utf8_lossy(&sample.to_vec()), age.span);
        }
    }
    Ok(())
}
