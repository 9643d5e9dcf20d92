//! Specifications as text.

use noctule_timebase::Span;
use proptest::prelude::*;

use super::super::spec::*;
use super::super::{Distribution, Entry, Recording};

fn refused(text: &str) -> String {
    text.parse::<LinkSpec>().unwrap_err().to_string()
}

fn recorded(_: &str) -> Result<Recording, ReplayError> {
    Ok(Recording::new(vec![Entry { at: Span::ZERO, delay: None }]).unwrap())
}

#[test]
fn a_line_says_both_directions_and_a_script() {
    let text = "delay=10ms jitter=2ms loss=5% burst=3 rate=100mbit queue=100ms; b>a: loss=0 delay=1.5s; \
                @10s: loss=20%; @12.5s b>a: down";
    let spec: LinkSpec = text.parse().unwrap();
    let forward = &spec.a_to_b;
    assert_eq!(forward.initial.delay, Span::from_ms(10));
    assert_eq!(forward.initial.loss, Share::from_billionths(50_000_000));
    assert_eq!(forward.initial.burst, Burst::Packets { mean_thousandths: 3_000 });
    assert_eq!(forward.initial.rate_bps, Some(100_000_000));
    assert_eq!(forward.initial.queue_limit_bytes(), Some(1_250_000));
    assert_eq!(forward.script.len(), 1);
    assert_eq!(forward.script[0].impairments.delay, Span::from_ms(10), "the rest stays");
    let back = &spec.b_to_a;
    assert_eq!((back.initial.delay, back.initial.loss), (Span::from_ms(1_500), Share::ZERO));
    assert_eq!(
        back.script.iter().map(|step| step.at).collect::<Vec<_>>(),
        [Span::from_s(10), Span::from_ms(12_500)]
    );
    assert!(back.script[1].impairments.down && !back.script[0].impairments.down);
}

#[test]
fn every_setting_can_be_said_and_taken_back() {
    let text = "delay=1ns jitter=0 distribution=pareto replay=x replay_by=packet loss=0.0000001% burst=30ms \
                burst_loss=90% gap_loss=0% rate=1bit queue=64MiB queue_packets=1 mark=5ms police=2mbit/16kB overhead=38B preamble=1us \
                stall=1ms/1s reorder=1%/5ms duplicate=100% corrupt=1% mtu=68B down; \
                @1s: replay=none burst=none burst_loss=100% rate=none queue_packets=none mark=none police=none stall=none \
                reorder=none mtu=none up";
    let spec = LinkSpec::parse(text, &mut recorded).unwrap();
    let first = &spec.a_to_b.initial;
    assert_eq!(first.replay.as_ref().map(|replay| replay.advance), Some(Advance::Packet));
    assert_eq!(
        first.reorder,
        Reorder::Held { share: Share::from_billionths(10_000_000), by: Span::from_ms(5) }
    );
    assert_eq!((first.mtu_bytes, first.overhead_bytes, first.queue_packets), (Some(68), 38, Some(1)));
    assert_eq!(first.police, Some(Policer { rate_bps: 2_000_000, burst_bytes: 16_000 }));
    let second = &spec.a_to_b.script[0].impairments;
    assert_eq!((first.mark, second.mark), (Some(Span::from_ms(5)), None));
    assert_eq!((second.rate_bps, second.mtu_bytes, &second.replay, second.down), (None, None, &None, false));
    assert_eq!(LinkSpec::parse(&spec.to_string(), &mut recorded).unwrap(), spec);
}

#[test]
fn toml_says_the_same_as_a_line() {
    let toml = r#"
        delay = "10ms"
        loss = "5%"
        burst = 2.5
        [b_to_a]
        loss = "0%"
        [[step]]
        at = "10s"
        down = true
        [[step]]
        at = "12s"
        down = false
        [step.a_to_b]
        delay = "20ms"
    "#;
    let line = "delay=10ms loss=5% burst=2.5; b>a: loss=0; @10s: down; @12s: up; @12s a>b: delay=20ms";
    assert_eq!(LinkSpec::parse_toml(toml, &mut recorded).unwrap(), line.parse().unwrap());
    let refused = |toml: &str| LinkSpec::parse_toml(toml, &mut recorded).unwrap_err().to_string();
    assert!(refused("delay=").starts_with("not TOML"));
    assert!(refused("delay = [1]").contains("write a string"));
    assert!(refused("[[step]]\ndown = true").contains("each step needs a time"));
    assert!(refused("step = 1").contains("[[step]]"));
    assert!(refused("a_to_b = 1").contains("table"));
    assert!(refused("[a_to_b]\nat = \"1s\"").contains("no setting"));
}

#[test]
fn what_cannot_be_read_is_refused_with_the_way_out() {
    assert!(refused("delai=10ms").starts_with("\"delai\" is no setting of a link; there are delay, jitter"));
    assert!(refused("delay=10").contains("such as 10ms"));
    assert!(refused("delay=-1ms").contains("delay=-1ms: write a number"));
    assert!(refused("delay=3601s").contains("up to one hour"));
    assert!(refused("delay=1.5ns").contains("delay=1.5ns"), "nothing is rounded");
    assert!(refused("delay=1ms delay=2ms").contains("twice"));
    assert!(refused("loss=5").contains("percentage"));
    assert!(refused("loss=101%").contains("100%"));
    assert!(refused("loss=1e1%").contains("percentage"));
    assert!(refused("loss=5% burst=0.5").contains("from 1 to 1000000"));
    assert!(refused("burst_loss=50%").contains("need bursts"));
    assert!(refused("loss=100% burst=3").contains("must be less than burst_loss"));
    assert!(refused("loss=60% burst=1").contains("at least one packet between"));
    assert!(refused("jitter=1ms distribution=pareto").contains("needs a delay above zero"));
    assert!(refused("rate=0bit").contains("2.5mbit"));
    assert!(refused("queue=65MiB").contains("64MiB"));
    assert!(refused("mtu=67B").contains("68B"));
    assert!(refused("down=1").contains("stands alone"));
    assert!(refused("c>d: delay=1ms").contains("does not begin a section"));
    assert!(refused("@10s loss=1%").contains("does not begin a section"));
    assert!(refused("@10s: loss=1%; @9s: loss=2%").contains("order of time"));
    assert!(refused("@10s: loss=1%; loss=2%").contains("order of time"));
    assert!(refused("replay=x").contains("replay=x: recordings cannot be played here"));
    assert!(refused("replay_by=packet").contains("there is no replay"));
    let many: String = (0..=SCRIPT_STEPS_MAX).map(|ms| format!("@{ms}ms: up;")).collect();
    assert!(refused(&many).contains("1000 steps"));
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let time = (0i64..4)
        .prop_flat_map(|unit| (1i64..1000).prop_map(move |n| Span::from_ns(n * 1000_i64.pow(unit as u32))));
    let shapes = prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::Normal),
        Just(Distribution::LogNormal),
        Just(Distribution::Pareto)
    ];
    let bursts = prop_oneof![
        Just(Burst::Independent),
        (10_000u32..1_000_000).prop_map(|mean_thousandths| Burst::Packets { mean_thousandths }),
        time.clone().prop_map(|mean| Burst::Time { mean }),
    ];
    let delays = (time.clone(), time.clone(), shapes, 0u32..500_000_000, bursts);
    let rates = (
        proptest::option::of(1u64..1_000_000_000_000),
        0u64..(64 << 20),
        proptest::option::of(1u32..65_536),
        any::<u16>(),
    );
    let rest = (time.clone(), 0u32..1_000_000_000, proptest::option::of(68u16..), any::<bool>());
    (delays, rates, rest).prop_map(|((delay, jitter, distribution, loss, burst), rates, rest)| Impairments {
        delay,
        jitter,
        distribution,
        loss: Share::from_billionths(loss),
        burst,
        rate_bps: rates.0,
        queue: if rates.1 % 2 == 0 { QueueLimit::Bytes(rates.1) } else { QueueLimit::Time(rest.0) },
        queue_packets: rates.2,
        mark: rest.3.then_some(rest.0),
        police: rates.0.filter(|_| rest.3).map(|rate_bps| Policer { rate_bps, burst_bytes: rates.1 + 1 }),
        overhead_bytes: rates.3,
        preamble: rest.0,
        stall: rest.3.then_some(Stall { interval: jitter, duration: rest.0 }),
        reorder: if rest.3 {
            Reorder::ByJitter
        } else {
            Reorder::Held { share: Share::from_billionths(rest.1), by: delay }
        },
        duplicate: Share::from_billionths(rest.1),
        corrupt: Share::from_billionths(rest.1 / 3),
        mtu_bytes: rest.2,
        down: rest.3,
        ..Impairments::default()
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_as_itself(a in impairments(), b in impairments(), later in impairments(), both: bool) {
        let step = ScriptStep { at: Span::from_ms(1500), impairments: later };
        let spec = LinkSpec {
            a_to_b: Direction { initial: a.clone(), script: vec![step.clone()] },
            b_to_a: Direction { initial: if both { a } else { b }, script: vec![step] },
        };
        prop_assert_eq!(spec.to_string().parse::<LinkSpec>().unwrap(), spec);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[@a-z>:;=%0-9. é]{0,60}") {
        if let Ok(spec) = text.parse::<LinkSpec>() {
            prop_assert_eq!(spec.to_string().parse::<LinkSpec>().unwrap(), spec);
        }
    }
}
