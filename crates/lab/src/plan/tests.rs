use std::path::Path;

use noctule_peer::{Description, Need, Open, Peer, PeerError, Support, Transport, Wait};

use super::*;

/// A peer that says what it supports and is never started.
struct Offering(Description, Support);

impl Peer for Offering {
    fn describe(&self) -> Description {
        self.0.clone()
    }

    fn support(&self) -> Support {
        self.1.clone()
    }

    fn open(&self, _: &Open) -> Result<Box<dyn Transport>, PeerError> {
        Err(PeerError("this peer only offers".into()))
    }
}

fn offering(name: &str, links: &[&str], payload_bytes_max: u64) -> Offering {
    let description = Description {
        name: name.into(),
        version: "1".into(),
        links: links.iter().copied().map(String::from).collect(),
        waits: vec![Wait::Spin, Wait::Block, Wait::Hybrid],
        modes: ["round_trip", "one_way", "chain", "fan_out"].map(String::from).to_vec(),
        formats: vec!["raw".into()],
        payload_bytes_max,
    };
    Offering(description, Support::default())
}

fn registry() -> PeerRegistry {
    let mut registry = PeerRegistry::new(Path::new("noctule"));
    for (name, link, payload_bytes_max) in [
        ("cache_line", "shm", 16),
        ("udp", "udp", 65_507),
        ("tcp", "tcp", 64 << 20),
        ("serial_pump", "serial", 4096),
    ] {
        registry.add_built_in(&offering(name, &[link], payload_bytes_max), true);
    }
    let mut noctule = offering("noctule", &["shm", "udp"], 64 << 20);
    let reliabilities = ["best_effort", "reliable"].map(String::from).to_vec();
    noctule.1.options = BTreeMap::from([("reliability".into(), reliabilities)]);
    registry.add_built_in(&noctule, false);
    let mut memcpy = offering("memcpy", &["memory"], 64 << 20);
    memcpy.1.is_alone = true;
    registry.add_built_in(&memcpy, true);
    let mut xrce = offering("xrce", &["serial", "udp"], 4096);
    let (option, value) = ("gateway".into(), "dds".into());
    xrce.1.needs = vec![Need { option, value, peer: "cyclonedds".into(), program: "noctule-dds".into() }];
    registry.add_built_in(&xrce, false);
    registry
}

fn expand(cells: &str, cores: &[u32], choice: &Choice) -> Result<Plan, ScenarioError> {
    let text = format!("name = \"x\"\n{cells}");
    let file = ScenarioFile::parse("s.toml", text)?;
    let mut registry = registry();
    registry.add_missing("lcm", "lcm is not built; build it with `cargo xtask peers lcm`".into());
    Plan::expand(&file, &registry, cores, choice)
}

#[test]
fn lists_stand_for_all_combinations() {
    let cells = "[[cells]]\npeer = [\"udp\", \"tcp\"]\npayload_bytes = [64, 1024, 4096]\nwait = [\"spin\", \"block\"]\n";
    let plan = expand(cells, &[0, 1], &Choice::default()).unwrap();
    assert_eq!(plan.cells.len(), 12);
    assert_eq!(plan.cells[0].placement(), "0,1");
    assert_eq!(plan.skipped, []);
}

#[test]
fn a_choice_of_peers_and_the_short_form_leave_cells_out() {
    let cells = "[[cells]]\npeer = [\"udp\", \"tcp\"]\npayload_bytes = [64, 1024]\n[smoke]\npayload_bytes = [1024]\ntrials = 1\n";
    let choice = Choice { peers: vec!["tcp".into()], smoke: true };
    let plan = expand(cells, &[0, 1], &choice).unwrap();
    assert_eq!(plan.cells.len(), 1);
    let cell = &plan.cells[0];
    assert_eq!((cell.peer.as_str(), cell.payload_bytes, cell.trials), ("tcp", 1024, 1));
}

#[test]
fn what_cannot_be_measured_is_skipped_by_name_and_once() {
    let cells = "[[cells]]\npeer = [\"lcm\", \"udp\", \"cache_line\"]\npayload_bytes = [64, 100000]\nwait = \"spin\"\nplacement = \"same\"\n";
    let plan = expand(cells, &[0, 1], &Choice::default()).unwrap();
    assert_eq!(plan.cells, []);
    let reasons: Vec<String> = plan.skipped.iter().map(|s| format!("{}: {}", s.peer, s.why)).collect();
    assert_eq!(
        reasons,
        [
            "lcm: lcm is not built; build it with `cargo xtask peers lcm`",
            "udp: spinning nodes that share a core would measure the scheduler's time slice; use block or hybrid",
            "udp: carries at most 65507 B, not 100000 B",
            "cache_line: carries at most 16 B, not 64 B",
            "cache_line: carries at most 16 B, not 100000 B",
        ]
    );
}

#[test]
fn an_option_may_be_a_list_of_texts_and_numbers_of_which_the_short_form_keeps_some() {
    let cells = "[[cells]]\npeer = \"serial_pump\"\noptions = { baud = [9600, \"19200\"], load = [\"none\", \"all\"] }\n\
                 [smoke]\noptions = { baud = 9600 }\n";
    let plan = expand(cells, &[0, 1], &Choice::default()).unwrap();
    let said = |cell: &CellPlan| format!("{} {}", cell.options["baud"], cell.options["load"]);
    let all: Vec<String> = plan.cells.iter().map(said).collect();
    assert_eq!(all, ["9600 none", "9600 all", "19200 none", "19200 all"]);
    let short = expand(cells, &[0, 1], &Choice { smoke: true, ..Choice::default() }).unwrap();
    assert_eq!(short.cells.iter().map(said).collect::<Vec<_>>(), ["9600 none", "9600 all"]);
}

#[test]
fn a_wrong_option_of_a_line_is_a_fault_of_its_group_and_not_a_cell_less() {
    let fault = |options: &str| {
        let cells = format!("[[cells]]\npeer = \"xrce\"\noptions = {{ {options} }}\n");
        expand(&cells, &[0, 1], &Choice::default()).unwrap_err().to_string()
    };
    assert!(fault("board = 1").starts_with("s.toml:2:1: a serial line needs a speed"));
    assert!(fault("baud = [9600, 1]").contains("baud = \"1\" is not between 50 and 12000000"));
    assert!(fault("baud = 9600, load = \"7\"").contains("load: core 7 is not one this process may use"));
    assert!(fault("baud = 9600, priority = \"30,100\"").contains("no list of numbers from 0 to 99"));
}

#[test]
fn unknown_peer_is_an_error_that_points_to_its_group() {
    let error = expand("\n[[cells]]\npeer = \"ucp\"\n", &[0], &Choice::default()).unwrap_err();
    assert!(error.to_string().starts_with("s.toml:3:1: no peer is called \"ucp\"; there are cache_line, "));
}

#[test]
fn an_open_loop_sends_what_fits_its_time_and_is_late_after_a_period() {
    let cells = "[[cells]]\npeer = \"udp\"\nrate_hz = [1, 1000]\nseconds = 2.5\n";
    let plan = expand(cells, &[0, 1], &Choice::default()).unwrap();
    assert_eq!((plan.cells[0].messages, plan.cells[0].deadline_ns), (3, Some(1_000_000_000)));
    assert_eq!((plan.cells[1].messages, plan.cells[1].deadline_ns), (2500, Some(1_000_000)));
    assert_eq!(plan.cells[0].warm_up_messages, 1);
}

#[test]
fn what_flows_beside_lasts_longer_than_the_cell_and_may_be_another_peers() {
    let cells = "[[cells]]\npeer = \"udp\"\nmode = \"one_way\"\nrate_hz = 1000\nseconds = 2\n\
                 beside = { peer = \"tcp\", payload_bytes = 1000, rate_hz = 50, options = { y = \"2\" } }\noptions = { x = \"1\" }\n";
    let plan = expand(cells, &[0, 1], &Choice::default()).unwrap();
    let cell = &plan.cells[0];
    let beside = cell.beside.as_deref().unwrap();
    assert_eq!((beside.peer.as_str(), beside.link.as_str(), beside.payload_bytes), ("tcp", "tcp", 1000));
    assert!(beside.sending_seconds() > cell.sending_seconds() + 0.9, "{beside:?}");
    assert_eq!(beside.options, BTreeMap::from([("y".to_owned(), "2".to_owned())]));
    assert!(beside.beside.is_none());
    let crowded =
        cells.replace("payload_bytes = 1000", "payload_bytes = 70000").replace("\"tcp\"", "\"udp\"");
    let plan = expand(&crowded, &[0, 1], &Choice::default()).unwrap();
    assert_eq!(plan.skipped[0].why, "beside: carries at most 65507 B, not 70000 B");
}

#[test]
fn an_emulated_link_joins_every_node_of_a_fan_out_up_to_its_limit() {
    let cells =
        "[[cells]]\npeer = \"noctule\"\nlink = \"link:delay=2ms\"\nmode = \"fan_out\"\nnodes = [5, 27]\n";
    let plan = expand(cells, &[0, 1], &Choice::default()).unwrap();
    let cell = &plan.cells[0];
    assert_eq!((cell.link.as_str(), cell.hosts, cell.link_word().as_str()), ("udp", 5, "link:delay=2ms"));
    assert_eq!(plan.skipped[0].why, "an emulated link joins at most 26 nodes, not 27");
}

#[test]
fn a_value_of_an_option_that_a_peer_does_not_list_is_skipped_by_name() {
    let cells = "[[cells]]\npeer = [\"noctule\", \"udp\"]\nlink = \"udp\"\noptions = { reliability = \"telepathic\" }\n";
    let plan = expand(cells, &[0, 1], &Choice::default()).unwrap();
    let why = "does not offer reliability telepathic; it offers best_effort, reliable".to_owned();
    assert_eq!(plan.skipped, [Skipped { peer: "noctule".into(), why }]);
    assert_eq!(plan.cells.len(), 1, "others give the word a meaning of their own");
}

#[test]
fn the_warm_up_ends_by_number_or_by_time() {
    let cells = "[[cells]]\npeer = \"udp\"\nrate_hz = [200, 100_000, 0]\n";
    let text = format!("name = \"x\"\nwarm_up_seconds = 0.5\n{cells}");
    let file = ScenarioFile::parse("s.toml", text).unwrap();
    let plan = Plan::expand(&file, &registry(), &[0, 1], &Choice::default()).unwrap();
    let sent: Vec<Option<u64>> = plan.cells.iter().map(CellPlan::warm_up_sent).collect();
    assert_eq!(sent, [Some(100), Some(WARM_UP_MESSAGES), None]);
}

#[test]
fn a_core_this_process_may_not_use_is_named() {
    let plan =
        expand("[[cells]]\npeer = \"udp\"\nplacement = \"0,7\"\n", &[0, 1], &Choice::default()).unwrap();
    assert_eq!(plan.skipped[0].why, "core 7 is not one this process may use ([0, 1])");
}

#[test]
fn what_a_value_of_an_option_needs_beside_the_peer_is_missed_by_name() {
    let cells = "[[cells]]\npeer = \"xrce\"\noptions = { baud = 9600, gateway = [\"inside\", \"dds\"] }\n";
    let text = format!("name = \"x\"\n{cells}");
    let file = ScenarioFile::parse("s.toml", text).unwrap();
    let skipped = |registry: &PeerRegistry| {
        let plan = Plan::expand(&file, registry, &[0, 1], &Choice::default()).unwrap();
        assert_eq!(plan.cells.len() + plan.skipped.len(), 2);
        plan.skipped.first().map(|skipped| skipped.why.clone())
    };
    let mut registry = registry();
    let why = "gateway = \"dds\": no peer is called cyclonedds; set NOCTULE_PEERS to a folder that has it";
    assert_eq!(skipped(&registry).as_deref(), Some(why));
    registry.add_built_in(&offering("cyclonedds", &["udp"], 4096), false);
    assert_eq!(skipped(&registry), None);
    registry.add_missing("noctule-dds", "is not there: no compiler".into());
    let why = "gateway = \"dds\": noctule-dds is not there: no compiler";
    assert_eq!(skipped(&registry).as_deref(), Some(why));
}

#[test]
fn a_peer_that_sends_to_itself_has_one_node_in_every_mode() {
    let plan = expand(
        "[[cells]]\npeer = \"memcpy\"\nmode = [\"one_way\", \"chain\"]\nnodes = 4\n",
        &[0, 1],
        &Choice::default(),
    );
    let plan = plan.unwrap();
    assert_eq!(
        plan.cells.iter().map(|cell| (cell.nodes, cell.cores.len())).collect::<Vec<_>>(),
        [(1, 1), (1, 1)]
    );
}
