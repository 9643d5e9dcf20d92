//! Cost of topics in the bridge: `many_topics DDS_DOMAIN BUS_DOMAIN COUNT [read]`, beside `noctule-dds DDS_DOMAIN --bus-domain BUS_DOMAIN --interface
//! 127.0.0.1`. Half of the topics have a writer in DDS, half on the bus; with `read` each has a reader on the other side. Then, for a line of input each,
//! threads, resident memory and processor time of the bridge, whose process number the line is, over ten seconds without a sample.
#![allow(clippy::print_stdout)]

use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use noctule::{Format, Node};
use noctule_dds::cyclone::Participant;

const TYPE: (&str, &str) = ("std_msgs/msg/String", "std_msgs::msg::dds_::String_");
/// Processor time is taken over this long.
const WATCHED: Duration = Duration::from_secs(10);

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dds, bus, count, rest @ ..] = arguments.as_slice() else {
        return Err("three arguments: DDS's domain, the bus's and a number of topics".into());
    };
    let (dds, bus, count): (u32, u32, usize) = (dds.parse()?, bus.parse()?, count.parse()?);
    let is_read = rest.first().is_some_and(|word| word == "read");
    let node = Node::builder("many topics").domain(bus).open()?;
    let participant = Participant::join(dds, Some(Ipv4Addr::LOCALHOST), "")?;
    let qos = noctule::Qos::default();
    let (mut writers, mut readers, mut publishers, mut subscribers) = (vec![], vec![], vec![], vec![]);
    for number in 0..count.div_ceil(2) {
        let (topic, here) = (format!("/there/{number}"), format!("/here/{number}"));
        writers.push(participant.writer((&format!("rt{topic}"), TYPE.1), &qos, "")?);
        publishers.push(node.publisher(&here).type_name(TYPE.0, 0).format(Format::Cdr).open()?);
        if is_read {
            subscribers.push(node.subscriber(&topic).formats(&[Format::Cdr]).open()?);
            readers.push(participant.reader((&format!("rt{here}"), TYPE.1), &qos, "")?);
        }
    }
    println!("{count} topics are there");
    for line in io::stdin().lines() {
        let process: u32 = line?.trim().parse()?;
        let before = ticks(process)?;
        let end = Instant::now() + WATCHED;
        while Instant::now() < end {
            std::thread::park_timeout(end - Instant::now());
        }
        let spent_ms = (ticks(process)? - before) * 10;
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        let of = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
        };
        println!(
            "threads {}, resident {}, processor {:.1} ms a second",
            of("Threads:"),
            of("VmRSS:"),
            spent_ms as f64 / WATCHED.as_secs_f64()
        );
    }
    Ok(())
}

/// Processor time of a process in hundredths of a second (proc_pid_stat(5), fields 14 and 15).
fn ticks(process: u32) -> Result<u64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, rest) = stat.rsplit_once(')').ok_or("no stat")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Ok(fields[11].parse::<u64>()? + fields[12].parse::<u64>()?)
}
