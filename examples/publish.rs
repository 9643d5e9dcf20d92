//! Publishes each line of standard input on the topic `hello`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = noctule::Node::new("talker")?;
    let mut publisher = node.publisher("hello").open()?;
    for line in std::io::stdin().lines() {
        publisher.publish(line?.as_bytes())?;
    }
    Ok(())
}
