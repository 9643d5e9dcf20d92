//! The steps behind `check`, `test` and `ci`, counted, so that the last line says what was done.

use std::path::Path;

use crate::step_limit::Failure;
use crate::{
    ahead, arm64, autopilot, browser, c_library, dds, examples, fuzz, generated, lanes, microcontroller,
    peers, programs, python, readers, readme, rmw, setup, shell, step_limit, tidy, workspace_tests, zenoh,
};

/// The run that repeats a step which failed, since nobody stands beside it to do so.
const CI: &str = "ci";

type Step = (&'static str, fn() -> Result<(), String>);

const CHECK: &[Step] = &[
    ("format", || shell::run("cargo fmt --all --check")),
    ("clippy", || shell::run("cargo clippy --workspace --all-targets --quiet -- -D warnings")),
    ("default features", default_features),
    ("documentation", || shell::run("RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet")),
    ("tidy", tidy::run),
    ("fast tests", || shell::run("cargo test --workspace --quiet")),
];

/// Those that need nothing optimised come first, so that compiling ahead has their time.
const TEST: &[Step] = &[
    // Beside downloads: what it compiles first takes the compilers that are there.
    ("compile ahead", ahead::start),
    ("setup", setup::run),
    ("tests", workspace_tests::run),
    ("loom", loom),
    ("arm64", arm64::test),
    ("microcontroller", microcontroller::test),
    ("browser", browser::run),
    ("foreign readers", readers::run),
    ("dds", dds::test),
    ("foreign peers", peers::smoke),
    ("compile ahead, now with the priority of the steps", ahead::raise),
    ("c library", c_library::test),
    ("python", python::test),
    ("examples", examples::run),
    ("second implementation", python::second_implementation),
    ("generated endpoints", generated::run),
    ("simulink", generated::simulink::run),
    ("release build", || ahead::build(programs::BUILD_RELEASE)),
    // It waits half its time; from here on nothing is compiled that it would wait for.
    ("README begins", readme::begin),
    ("240 topics", generated::robot::run),
    ("peers speak the protocol", conformance),
    ("peers in the lab", || {
        shell::run("target/release/noctule lab run scenarios/quick.toml --smoke --out target/smoke")
    }),
    ("foreign autopilot", autopilot::run),
    ("zenoh", zenoh::test),
    ("rmw", rmw::test),
    ("README", readme::finish),
    ("report of README", browser::of_readme),
];

/// Checks the library as a user who names no format compiles it. In builds of the workspace the lab's features are
/// everybody's, which hides what only they bring.
fn default_features() -> Result<(), String> {
    shell::run("cargo clippy --quiet -p noctule -- -D warnings")?;
    shell::run("cargo test --quiet -p noctule-formats --no-default-features")?;
    shell::run("cargo test --quiet -p noctule --features stream --test typed --test event_loop")
}

const NODE: &str = "target/release/noctule -- lab node";

/// The programs of this house against the specification of the protocol.
fn conformance() -> Result<(), String> {
    let nodes =
        ["udp", "tcp", "unix", "pty"].map(|floor| format!("--payload 16 --payload 4096 {NODE} {floor}"));
    let nodes = [nodes.as_slice(), &[format!("--payload 4096 {NODE} formats_rust")]].concat();
    lanes::side_by_side(&nodes, |node| peers::conform(node))?;
    peers::of_the_library_in_c()?;
    shell::run(".venv/bin/python -m pytest -q peers/formats_python")
}

/// The inner loop.
pub fn check() -> Result<(), String> {
    run("check", &[CHECK])
}

/// Everything, or one step of it by its name.
pub fn test(only: Option<&str>) -> Result<(), String> {
    let Some(only) = only else { return run("test", &[TEST]) };
    let names: Vec<&str> = TEST.iter().map(|(name, _)| *name).collect();
    let at = names.iter().position(|name| *name == only);
    let at = at.ok_or_else(|| format!("no step is called \"{only}\"; there are {}", names.join(", ")))?;
    run("test", &[&TEST[at..=at]])
}

/// The steps of CI.
pub fn ci() -> Result<(), String> {
    // The fast tests are part of all tests.
    run(CI, &[&CHECK[..CHECK.len() - 1], TEST])
}

/// Runs a core's random simulation from `count` seeds, `first` the first.
pub fn sim(core: &str, first: u64, count: u64, trace: Option<&Path>) -> Result<(), String> {
    let trace = match trace {
        None => String::new(),
        Some(_) if !matches!(core, "discovery" | "group" | "prrt" | "relay") => {
            return Err(format!(
                "the simulation \"{core}\" writes no trace; leave --trace out, or name discovery, group, prrt or relay"
            ));
        }
        Some(file) => {
            let file = std::path::absolute(file).map_err(|error| format!("{}: {error}", file.display()))?;
            format!("NOCTULE_TRACE='{}' ", file.display())
        }
    };
    let test = match core {
        "arm" => "-p noctule-arm --test random_day",
        "discovery" => "-p noctule-discovery --test random_swarms",
        "prrt" => "-p noctule-prrt --test deadline random_sessions",
        // One of its tests, or whichever begins first has the file.
        "relay" if !trace.is_empty() => "-p noctule --lib node::state::relay::tests::when_nodes_join",
        "relay" => "-p noctule --lib node::state::relay",
        "group" => "-p noctule-prrt --test group random_groups",
        "xrce" => "-p noctule-xrce --test simulation",
        "time-sync" => {
            return shell::run(&format!(
                "cargo run --release --quiet -p noctule-clock-lab --example soak_time_sync {first} {count}"
            ));
        }
        other => {
            return Err(format!(
                "no simulation is called \"{other}\"; there are arm, discovery, group, prrt, relay, time-sync and xrce"
            ));
        }
    };
    shell::run(&format!(
        "{trace}NOCTULE_SEED={first} NOCTULE_SEEDS={count} cargo test --quiet {test} -- --nocapture"
    ))
}

/// Rewrites the committed table of a core's simulation.
pub fn sweep(core: &str) -> Result<(), String> {
    match core {
        "time-sync" => shell::run(
            "cargo run --release --quiet -p noctule-clock-lab --example sweep_time_sync > target/sweep.md \
             && mv target/sweep.md crates/time-sync/sweep.md",
        ),
        "discovery" => shell::run(
            "cargo run --release --quiet -p noctule-discovery --example sweep_discovery > target/sweep.md \
             && mv target/sweep.md crates/discovery/sweep.md",
        ),
        "swarm" => shell::run(
            "cargo run --release --quiet -p noctule-swarm --example sweep_swarm > target/sweep.md \
             && mv target/sweep.md crates/swarm/sweep.md",
        ),
        other => {
            Err(format!("no sweep is called \"{other}\"; there are time-sync, discovery, prrt and swarm"))
        }
    }
}

/// A robot's day, shortened to so many minutes; needs root.
pub fn soak_robot(minutes: u32, seed: u64) -> Result<(), String> {
    shell::run("cargo build --release --quiet -p noctule-cli")?;
    shell::run(&format!(
        "cargo run --release --quiet -p noctule --example soak_robot {minutes} {seed} target/release/noctule"
    ))
}

/// The long runs; what they found last stands in benchmarks/soak.md.
pub fn soak() -> Result<(), String> {
    shell::run("cargo run --release --quiet -p noctule-clock-lab --example soak_time_sync")?;
    shell::run("NOCTULE_SEEDS=10000 cargo test --release -p noctule-discovery --test random_swarms")?;
    shell::run("NOCTULE_SEEDS=1000 cargo test --release -p noctule-prrt --test group random_groups")?;
    shell::run(
        "NOCTULE_XRCE_MESSAGES=10000000 cargo test --release -p noctule-xrce --test simulation -- --nocapture",
    )?;
    shell::run(
        "NOCTULE_SEEDS=10000 cargo test --release -p noctule-prrt --test deadline random -- --nocapture",
    )?;
    shell::run(
        "cargo run --release --quiet -p noctule-swarm --example soak_swarm scenarios/swarm_design_point.toml 1 1000 bound",
    )?;
    shell::run("NOCTULE_SEEDS=1440 cargo test --release -p noctule-arm --test random_day -- --nocapture")?;
    loom()?;
    shell::run("NOCTULE_KILLS=1000 cargo test --release -p noctule --test killed")?;
    sanitizers(None)?;
    fuzz::run(None, 600)
}

/// Every interleaving of the ring's models, in a target directory of its own because of the flag.
pub fn loom() -> Result<(), String> {
    // With what it takes here and not what CI takes elsewhere: it runs for longer than it compiles.
    shell::run(
        "RUSTFLAGS='--cfg loom' CARGO_PROFILE_RELEASE_OPT_LEVEL=3 CARGO_TARGET_DIR=target/loom \
         cargo test --release --quiet -p noctule-shm-ring --lib",
    )
}

/// Both sanitizers, or the one that is named.
pub fn sanitizers(only: Option<&str>) -> Result<(), String> {
    match only {
        None => sanitizer("thread").and_then(|()| sanitizer("address")),
        Some(name @ ("thread" | "address")) => sanitizer(name),
        Some(other) => Err(format!("no sanitizer is called \"{other}\"; there are address and thread")),
    }
}

/// Real threads under a sanitizer of the nightly compiler. The standard library is built along:
/// the thread sanitizer takes one that is not instrumented for a race. Simulations have ten seeds, because everything takes
/// many times as long; a test that leaves a process little address space is left out, because a sanitizer takes all of it.
fn sanitizer(name: &str) -> Result<(), String> {
    shell::run("rustup component add rust-src --toolchain nightly")?;
    shell::run(&format!(
        "NOCTULE_SEEDS=10 RUSTFLAGS='-Zsanitizer={name} -Cunsafe-allow-abi-mismatch=sanitizer' CARGO_TARGET_DIR=target/{name} \
         cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu -p noctule-shm-ring -p noctule --lib --tests --no-fail-fast -- --skip without_memory"
    ))
}

/// How long a step took, and how many processors its commands had in the mean.
struct Length {
    step: &'static str,
    seconds: f64,
    processors: f64,
}

/// Processor time of all commands that have ended, from proc_pid_stat(5): cutime and cstime, in hundredths of a second.
fn processor_seconds() -> f64 {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, a name in brackets, may have spaces.
    let fields = line.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>()
        / 100.0
}

/// Runs a step and notes how long it took.
fn run_step((step, work): &Step, lengths: &mut Vec<Length>) -> Result<(), Failure> {
    println!("── {step} ──");
    let start = std::time::Instant::now();
    let processor_start_s = processor_seconds();
    let result = step_limit::run(step, step_limit::LIMIT, work);
    let seconds = start.elapsed().as_secs_f64();
    let processors = (processor_seconds() - processor_start_s) / seconds.max(0.001);
    match &result {
        Ok(()) => println!("── {step}: ok in {seconds:.0} s"),
        Err(Failure { why, .. }) => println!("── {step}: FAILED: {}", why.lines().next().unwrap_or_default()),
    }
    lengths.push(Length { step, seconds, processors });
    result
}

/// Runs all steps even if one fails, so that one CI run shows all that is wrong.
fn run(name: &str, lists: &[&[Step]]) -> Result<(), String> {
    let mut failures: Vec<(&Step, Failure)> = Vec::new();
    let mut passed = 0;
    let mut lengths = Vec::new();
    for step in lists.iter().copied().flatten() {
        match run_step(step, &mut lengths) {
            Ok(()) => passed += 1,
            Err(failure) => failures.push((step, failure)),
        }
    }
    // A step that failed for want of the processor passes a second time. It is named all the same.
    let mut unsteady = Vec::new();
    failures.retain(|(step, Failure { why, is_over_limit })| {
        if name != CI || *is_over_limit {
            return true;
        }
        println!("── {} failed, and runs once more: {why}", step.0);
        let is_unsteady = run_step(step, &mut lengths).is_ok();
        if is_unsteady {
            unsteady.push(format!("{}: {why}", step.0));
        }
        !is_unsteady
    });
    passed += unsteady.len();
    if !unsteady.is_empty() {
        println!("{name}: unsteady, passed the second time only:\n{}", unsteady.join("\n"));
    }
    lengths.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let longest: Vec<String> = lengths
        .iter()
        .map(|Length { step, seconds, processors }| format!("{step} {seconds:.0} s × {processors:.1}"))
        .collect();
    let all_s: f64 = lengths.iter().map(|length| length.seconds).sum();
    println!("{name}: {:.0} minutes, by length and processors: {}", all_s / 60.0, longest.join(", "));
    println!("{name}: {passed} passed, {} failed", failures.len());
    // Once more at the end, where a reader of a long log begins.
    let failures: Vec<String> =
        failures.iter().map(|(step, failure)| format!("{}: {}", step.0, failure.why)).collect();
    if failures.is_empty() { Ok(()) } else { Err(format!("failed:\n{}", failures.join("\n"))) }
}
