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
