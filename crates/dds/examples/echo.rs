//! Answers on `/pong` what comes on `/ping`, and says how old it was: the bus's end of a measurement across DDS.
//!
//! ```sh
//! noctule gateway --dds 7 --domain 7 &
//! cargo run --release -p noctule-dds --example echo -- 7 3000
//! crates/dds/tests/foreign/cyclone.c, built: cyclone ping 7 rt/ reliable volatile 3000
//! ```
//!
//! Arguments: the bus's domain, and how many samples. The ages are one way: from the foreign writer's stamp to this program.
#![allow(clippy::print_stdout)]

use noctule::{Format, Node, Reliability};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(domain), Some(count)) = (arguments.next(), arguments.next()) else {
        return Err("two arguments: the bus's domain and a number of samples".into());
    };
    let (domain, count): (u32, usize) = (domain.parse()?, count.parse()?);
    let node = Node::builder("echo").domain(domain).open()?;
    let mut ping =
        node.subscriber("/ping").formats(&[Format::Cdr]).reliability(Reliability::Reliable).open()?;
    let pong = node.publisher("/pong").type_name("std_msgs/msg/String", 0).format(Format::Cdr);
    let mut pong = pong.reliability(Reliability::Reliable).open()?;
    let (mut ages_ns, mut bound_ns) = (Vec::with_capacity(count), Some(0));
    while ages_ns.len() < count {
        let Some(sample) = ping.receive(None)? else { continue };
        pong.publish(&sample.to_vec())?;
        let Some(age) = sample.age() else { continue };
        ages_ns.push(age.span.ns());
        bound_ns = bound_ns.zip(age.bound).map(|(most, bound)| most.max(bound.ns()));
    }
    ages_ns.sort_unstable();
    let at = |share: f64| ages_ns.get((share * count as f64) as usize).copied().unwrap_or_default();
    println!("age_ns p50 {} p99 {} largest bound {bound_ns:?}", at(0.5), at(0.99));
    Ok(())
}
