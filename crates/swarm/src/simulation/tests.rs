use super::*;

fn scenario(more: &str) -> Scenario {
    let text = format!("name = \"t\"\n{more}");
    Scenario::parse(&text).unwrap()
}

#[test]
fn perfect_knowledge_is_clean_and_all_arrive() {
    let measures = Simulation::new(scenario("[swarm]\nnodes = 30\nseconds = 40\n[air]\nperfect = true\n"), 1)
        .unwrap()
        .run();
    assert_eq!((measures.collisions, measures.finished), (0, Some(1.0)), "{measures:#?}");
}

/// Twenty through one point over an air that loses 30 % in bursts, as at the design point.
const CROSSING: &str = "[swarm]\nnodes = 20\nspacing_m = 21\nseconds = 60\n[avoid]\nhard_margin_m = 0.2\n\
                        soft_margin_m = 0.5\n[state]\ndelay_ms = 200\n[air]\nloss = 0.3\nburst_ms = 300\n";

fn fly(more: &str, knowledge: Knowledge, seed: u64) -> Measures {
    let mut scenario = scenario(&format!("{CROSSING}{more}"));
    scenario.states.knowledge = knowledge;
    Simulation::new(scenario, seed).unwrap().run()
}

#[test]
fn with_bounds_nobody_is_hit_and_with_held_states_many_are() {
    let mut held = 0;
    for seed in noctule_netsim::seeds(1, 6) {
        let bound = fly("", Knowledge::Bound, seed);
        assert_eq!((bound.collisions, bound.bound_violations), (0, 0), "seed {seed}: {bound:#?}");
        assert!(bound.bounds_checked > 100_000 && bound.finished == Some(1.0), "seed {seed}: {bound:#?}");
        held += fly("", Knowledge::Hold, seed).collisions;
    }
    assert!(held > 10, "{held} pairs");
}

#[test]
fn ages_follow_from_delay_rate_and_bursts() {
    let figures = fly("", Knowledge::Bound, 1);
    // 200 ms, up to 100 ms until the next, and half as much again for bursts.
    assert!((200.0..450.0).contains(&figures.age_p50_ms.unwrap()), "{figures:#?}");
    assert!(figures.age_p99_ms.unwrap() > 700.0 && figures.known_share > 0.9, "{figures:#?}");
    assert!((figures.loss - 0.3).abs() < 0.05, "{figures:#?}");
    assert!((figures.bytes_per_drone_s - 1440.0).abs() < 30.0, "{figures:#?}");
}

#[test]
fn equal_seeds_fly_equally() {
    assert_eq!(fly("", Knowledge::Bound, 5), fly("", Knowledge::Bound, 5));
    assert_ne!(fly("", Knowledge::Bound, 5), fly("", Knowledge::Bound, 6));
}

#[test]
fn when_a_tenth_falls_silent_the_rest_stays_apart() {
    for seed in noctule_netsim::seeds(1, 4) {
        let figures = fly("[kill]\nshare = 0.1\nat_s = 6\n", Knowledge::Bound, seed);
        assert_eq!((figures.collisions, figures.killed), (0, 2), "seed {seed}: {figures:#?}");
    }
}

#[test]
fn a_formation_is_kept_the_worse_the_older_its_states() {
    let error_m = |delay_ms: u32, knowledge: Knowledge| {
        let text = format!(
            "[swarm]\nnodes = 10\nmission = \"formation\"\nshape = \"grid\"\nspacing_m = 6\nseconds = 19\n[state]\ndelay_ms = \
             {delay_ms}\nlifespan_s = 5\n"
        );
        let mut scenario = scenario(&text);
        scenario.states.knowledge = knowledge;
        Simulation::new(scenario, 2).unwrap().run().formation_error_rms_m.unwrap()
    };
    let (fresh, old) = (error_m(20, Knowledge::Hold), error_m(800, Knowledge::Hold));
    let extrapolated = error_m(800, Knowledge::Age);
    assert!(old > 1.5 * fresh && extrapolated < old, "{fresh} m, {old} m, {extrapolated} m");
}

#[test]
fn transports_that_need_more_air_than_there_is_are_refused() {
    let mut mesh = scenario(CROSSING);
    (mesh.transport, mesh.nodes) = (Transport::UnicastMesh, 10);
    assert!(Simulation::new(mesh.clone(), 1).is_ok());
    mesh.nodes = 100;
    assert!(matches!(Simulation::new(mesh, 1), Err(ScenarioError::Air(_))));
}
