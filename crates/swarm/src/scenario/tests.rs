use super::*;

const LEAST: &str = "name = \"x\"\n[swarm]\nnodes = 100\n";

fn parse(more: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(&format!("{LEAST}{more}"))
}

#[test]
fn the_least_scenario_has_defaults() {
    let scenario = parse("").unwrap();
    assert_eq!((scenario.nodes, scenario.states.knowledge), (100, Knowledge::Bound));
    assert_eq!(scenario.plan_rate(), Ok(10.0));
    assert!((scenario.air_load(10.0) - 0.1735).abs() < 1e-9);
}

#[test]
fn what_is_wrong_is_named_in_one_line() {
    for (more, wanted) in [
        ("nodes = 3\n", "duplicate key"),
        ("mission = \"war\"\n", "swarm.mission is \"\"war\"\"; give crossing, formation or flock"),
        ("[air]\nband_ghz = 5\nmulticast_mbps = 1\n", "air.multicast_mbps is \"1\"; give 6, 9"),
        ("[air]\nloss = 1.5\n", "air.loss is 1.5; give 0 to 0.95"),
        ("[air]\nlos = 0.1\n", "line 5: unknown field `los`"),
        ("[state]\nrate_hz = nan\n", "state.rate_hz is NaN; give 0.1 to 100 Hz"),
        ("[state]\nrate_hz = \"fast\"\n", "invalid type"),
        ("neighbours = \"guess\"\n", "swarm.neighbours"),
        ("[kill]\nshare = 0.1\n", "missing field `at_s`"),
        ("[[obstacle]]\ncentre_m = [0, 0, 0]\nradius_m = 0\n", "obstacle.radius_m is 0; give 0.1 to 1000 m"),
        ("[[obstacle]]\ncentre_m = [0, 0]\nradius_m = 1\n", "line 5: invalid length 2"),
        ("[state]\nrate_rule = \"fair\"\n", "give planned or measured"),
    ] {
        let error = parse(more).unwrap_err().to_string();
        let wanted = wanted.replace("\"\"", "\"");
        assert!(error.contains(&wanted) && !error.contains('\n'), "{more}: {error}");
    }
    assert!(Scenario::parse("not toml").is_err() && Scenario::parse("").is_err());
}

#[test]
fn the_air_is_planned_and_refused_with_the_arithmetic() {
    let slow = parse("[air]\nband_ghz = 2.4\nmulticast_mbps = 1\n").unwrap();
    let text = slow.plan_rate().unwrap_err().to_string();
    assert!(
        text.contains("100 drones × 10 Hz × 1 frames × 1.70 ms at 1 Mb/s are 170 % of the air"),
        "{text}"
    );
    assert!(text.contains("set air.multicast_mbps to 6 or more"), "{text}");
    // A thousand drones: the rate falls for all, no further than allowed.
    let many = |more: &str| Scenario { nodes: 1000, ..parse(more).unwrap() };
    let rate_hz = many("[state]\nrate_min_hz = 2\n").plan_rate().unwrap();
    assert!((rate_hz - 0.6 / 0.1735).abs() < 1e-9, "{rate_hz}");
    let text = many("").plan_rate().unwrap_err().to_string();
    assert!(text.contains("1000 drones") && text.contains("ask for 3.4 Hz"), "{text}");
    let mesh = parse("[state]\ntransport = \"unicast_mesh\"\n").unwrap();
    assert!(mesh.plan_rate().unwrap_err().to_string().contains("× 99 frames"));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}", value in proptest::num::f64::ANY) {
        let _ = Scenario::parse(&text);
        let _ = parse(&format!("{text}\n"));
        if let Ok(scenario) = parse(&format!("spacing_m = {value:?}\n[state]\nrate_hz = {value:?}\n")) {
            let _ = scenario.plan_rate();
        }
    }
}
