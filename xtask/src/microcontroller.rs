//! The microcontroller client: its tests on this machine, plain and with the sanitizers, its size on
//! Cortex-M3, M4 and M7 against its budget, its cost in instructions, and the board example on a pty
//! and in QEMU, against the scripted agent and through the gateway.

use std::collections::HashMap;
use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{programs, setup, shell};

/// A Debian package and a file that shows whether it is installed.
const PACKAGES: [(&str, &str); 3] = [
    ("gcc-arm-none-eabi", "/usr/bin/arm-none-eabi-gcc"),
    ("libnewlib-arm-none-eabi", "/usr/share/doc/libnewlib-arm-none-eabi"),
    ("qemu-system-arm", "/usr/bin/qemu-system-arm"),
];
const FOLDER: &str = "target/microcontroller";
const WARNINGS: &str = "-Wall -Wextra -Wpedantic -Wconversion -Werror -g";
const CORES: [(&str, &str); 3] = [
    ("cortex-m3", "-mcpu=cortex-m3 -mthumb"),
    ("cortex-m4", "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard"),
    ("cortex-m7", "-mcpu=cortex-m7 -mthumb -mfpu=fpv5-d16 -mfloat-abi=hard"),
];
const CROSS: &str = "arm-none-eabi-gcc -Os -ffp-contract=off -ffunction-sections -fdata-sections";
const LINK: &str = "--specs=nano.specs -nostartfiles -Wl,--gc-sections";
const BARE: &str = "-std=gnu99 -mcpu=cortex-m3 -mthumb -Wall -Wextra -Werror -T c/ports/mps2_an385/mps2.ld c/ports/mps2_an385/*.c";
/// The application of the examples, its report, and the client.
const BOARD: &str = "c/examples/board.c c/generated/c/noctule_msgs.c c/noctule_client.c -Ic";
const QEMU: &str = "qemu-system-arm -M mps2-an385 -display none -monitor none";

/// Everything, in the order of the module's head.
pub fn test() -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, file)| !std::path::Path::new(file).exists())
        .map(|(package, _)| *package)
        .collect();
    setup::install(&missing)?;
    let folder = shell::root().join(FOLDER);
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    on_host()?;
    sizes()?;
    instructions()?;
    board_on_pty()?;
    board_in_qemu()?;
    board_on_gateway()?;
    soak(12, 2, false)
}

/// True if the compiler for Cortex-M and QEMU are there; says so if they are not.
pub fn has_qemu() -> bool {
    let is_there = PACKAGES.iter().all(|(_, file)| std::path::Path::new(file).exists());
    if !is_there {
        println!(
            "skipped: a board in QEMU; apt-get install {}",
            PACKAGES.map(|(package, _)| package).join(" ")
        );
    }
    is_there
}

/// Builds a program for the bare Cortex-M3 that QEMU has.
pub fn build_bare(sources: &str, program: &str) -> Result<(), String> {
    shell::run(&format!("{CROSS} {BARE} {LINK} -Ic -Ic/ports/mps2_an385 {sources} -o {program}"))
}

/// A line that runs such a program, its UART on a pseudo-terminal whose name QEMU prints first; what the program prints follows.
pub fn qemu_on_pty(program: &str) -> String {
    format!(
        "{QEMU} -chardev pty,id=line -serial chardev:line -chardev file,id=said,path=/dev/stdout -semihosting-config enable=on,target=native,chardev=said -kernel {program}"
    )
}

fn on_host() -> Result<(), String> {
    let seed = std::process::id();
    for (flags, name) in
        [("-O2", "plain"), ("-O1 -fsanitize=address,undefined -fno-sanitize-recover=all", "sanitized")]
    {
        let build = |test: &str, sources: &str| {
            let program = format!("{FOLDER}/{test}_{name}");
            shell::run(&format!(
                "gcc -std=c99 {WARNINGS} {flags} c/tests/{test}.c {sources} c/noctule_client.c -lm -o {program}"
            ))?;
            Ok::<String, String>(program)
        };
        let client = build("client", "")?;
        let link = build("client_link", "c/tests/scripted_agent.c")?;
        let vectors = build("client_vectors", "")?;
        shell::run(&format!("{vectors} vectors/xrce/*.txt"))?;
        shell::run(&format!("{client} {seed} && {link} 1 10 | tail -1 && {link} {seed} 5 | tail -6"))?;
    }
    Ok(())
}

fn sizes() -> Result<(), String> {
    let path = shell::root().join("c/size_budget.toml");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let budget: toml::Table = text.parse().map_err(|e| format!("{}: {e}", path.display()))?;
    let mut over = Vec::new();
    for (core, flags) in CORES {
        let strict = format!("{CROSS} {flags} -std=c99 {WARNINGS}");
        shell::run(&format!(
            "{strict} -fcallgraph-info=su -c c/noctule_client.c -o {FOLDER}/client.o && {strict} -Ic -Ic/tests/freertos -c c/ports/freertos/noctule_freertos.c -o {FOLDER}/freertos.o"
        ))?;
        let code = |more: &str| {
            let line = format!(
                "{CROSS} {flags} -std=c99 {LINK},--entry=main,--unresolved-symbols=ignore-all c/tests/size.c c/noctule_client.c {more} -o {FOLDER}/size.elf && arm-none-eabi-size {FOLDER}/size.elf | awk 'NR == 2 {{ print $1 }}'"
            );
            number(&line)
        };
        let state = |name: &str| {
            number(&format!(
                "printf '$((16#%s))' $(arm-none-eabi-nm -S {FOLDER}/size.elf | awk '$4 == \"{name}\" {{ print $2 }}') | sed 's/.*/echo &/' | bash"
            ))
        };
        let generated = format!(
            "{strict} -Ic -c c/generated/c/noctule_msgs.c -o {FOLDER}/generated.o && arm-none-eabi-size -A {FOLDER}/generated.o | awk '/^.text.noctule_msgs_TaskStatistics_(write|read|encode|decode) / {{ sum += $2 }} END {{ print sum }}'"
        );
        let client_code = code("")?;
        let graph = fs::read_to_string(shell::root().join(FOLDER).join("client.ci"))
            .map_err(|e| format!("{FOLDER}/client.ci: {e}"))?;
        let measured = [
            ("client_code", client_code),
            ("client_and_bounded_code", code("-DBOUNDED c/noctule_sync.c")?),
            ("client_state", state("client")?),
            ("bounded_state", state("bounded")?),
            ("stack", deepest_stack(&graph)?),
            ("generated_code", number(&generated)?),
        ];
        for (what, bytes) in measured {
            let limit = budget
                .get(core)
                .and_then(|table| table.get(what))
                .and_then(|value| value.as_integer())
                .ok_or_else(|| format!("c/size_budget.toml has no {what} for {core}"))?;
            println!("{core}: {what} {bytes} of {limit} bytes");
            if i64::try_from(bytes).is_ok_and(|bytes| bytes > limit) {
                over.push(format!("{core}: {what} is {bytes} bytes, {limit} are allowed"));
            }
        }
    }
    if over.is_empty() { Ok(()) } else { Err(format!("over c/size_budget.toml: {}", over.join("; "))) }
}

fn number(line: &str) -> Result<u64, String> {
    let said = shell::output(line).ok_or_else(|| format!("`{line}` failed"))?;
    said.parse().map_err(|_| format!("`{line}` said {said:?}, which is no number"))
}

/// The deepest chain of calls in a graph of GCC's `-fcallgraph-info=su`. A cycle is an error: the client
/// promises that it never recurses, and a chain in a cycle has no depth.
fn deepest_stack(graph: &str) -> Result<u64, String> {
    let quoted = |line: &str, key: &str| {
        let at = line.find(key)? + key.len();
        line.get(at..)?.split('"').next().map(str::to_owned)
    };
    let mut own: HashMap<String, u64> = HashMap::new();
    let mut calls: HashMap<String, Vec<String>> = HashMap::new();
    for line in graph.lines() {
        if line.starts_with("node:") {
            let (Some(title), Some(label)) = (quoted(line, "title: \""), quoted(line, "label: \"")) else {
                continue;
            };
            if label.contains("(dynamic)") {
                return Err(format!("{title} has a stack of no fixed size"));
            }
            let bytes = label.split("\\n").find_map(|part| part.strip_suffix(" bytes (static)"));
            own.insert(title, bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0));
        } else if line.starts_with("edge:")
            && let (Some(from), Some(to)) = (quoted(line, "sourcename: \""), quoted(line, "targetname: \""))
        {
            calls.entry(from).or_default().push(to);
        }
    }
    // As many rounds as there are functions reach the end of every chain, unless there is a cycle.
    let mut depth = own.clone();
    for _ in 0..=own.len() {
        let mut changed = false;
        for (name, bytes) in &own {
            let below = calls.get(name).into_iter().flatten().filter_map(|callee| depth.get(callee)).max();
            let total = bytes + below.copied().unwrap_or(0);
            changed |= depth.insert(name.clone(), total) != Some(total);
        }
        if !changed {
            return depth.values().max().copied().ok_or_else(|| "the call graph is empty".to_owned());
        }
    }
    Err("noctule_client.c recurses".to_owned())
}

fn instructions() -> Result<(), String> {
    let program = format!("{FOLDER}/instructions.elf");
    shell::run(&format!(
        "{CROSS} {BARE} {LINK} c/tests/instructions_mps2.c c/noctule_client.c c/noctule_sync.c -o {program}"
    ))?;
    println!("instructions on a Cortex-M3:");
    shell::run(&format!(
        "timeout 120 {QEMU} -serial null -icount shift=0,sleep=off -semihosting-config enable=on,target=native -kernel {program}"
    ))
}

/// A process that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(line: &str) -> Result<Running, String> {
    println!("$ {line} &");
    let mut command = Command::new("bash");
    command.args(["-c", &format!("exec {line}")]).current_dir(shell::root());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command.spawn().map(Running).map_err(|e| format!("cannot start `{line}`: {e}"))
}

/// Starts the scripted agent on a pty and waits until it listens.
fn start_agent(arguments: &str) -> Result<(Running, std::io::BufReader<std::process::ChildStdout>), String> {
    use std::io::BufRead;
    shell::run(&format!(
        "gcc -std=c99 {WARNINGS} -O2 c/tests/agent_line.c c/tests/scripted_agent.c -o {FOLDER}/agent_line"
    ))?;
    let mut agent = start(&format!("{FOLDER}/agent_line {arguments}"))?;
    let mut lines = std::io::BufReader::new(agent.0.stdout.take().ok_or("no standard output")?);
    let mut ready = String::new();
    lines.read_line(&mut ready).map_err(|e| format!("agent_line: {e}"))?;
    if ready.trim() == "ready" { Ok((agent, lines)) } else { Err("agent_line did not start".to_owned()) }
}

fn counts(mut from: impl std::io::Read, program: &str) -> Result<Value, String> {
    let mut text = String::new();
    from.read_to_string(&mut text).map_err(|e| format!("{program}: {e}"))?;
    println!("{program}: {}", text.trim());
    serde_json::from_str(&text).map_err(|e| format!("{program} said no counts: {e}"))
}

fn count(counts: &Value, name: &str) -> Result<u64, String> {
    counts.get(name).and_then(Value::as_u64).ok_or_else(|| format!("no count {name}"))
}

fn require(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("not so: {what}")) }
}

/// The board on this machine, on a line with noise that is cut twice.
fn board_on_pty() -> Result<(), String> {
    let sources = format!("c/examples/board_posix.c {BOARD} c/ports/posix/noctule_posix.c");
    let sanitize = "-fsanitize=address,undefined -fno-sanitize-recover=all";
    shell::run(&format!("gcc -std=c99 {WARNINGS} -O1 {sanitize} {sources} -o {FOLDER}/board"))?;
    board_on_noisy_line(10, 1000, 2)
}

/// The board through `noctule gateway` at 100 Hz for so many seconds, on a line that garbles one byte in a hundred and is
/// unplugged now and then; on this machine and in QEMU, at the same time. Every sample is accounted for by
/// `crates/lab-peers/examples/soak_boards.rs`, whose line of JSON each leaves in the folder.
pub fn soak(seconds: u32, unplugs: u32, is_release: bool) -> Result<(), String> {
    fs::create_dir_all(shell::root().join(FOLDER)).map_err(|e| format!("cannot make {FOLDER}: {e}"))?;
    // So long after this program's last sample the board goes on.
    let board_seconds = seconds + 6;
    let sources = format!("c/examples/board_posix.c {BOARD} c/ports/posix/noctule_posix.c");
    shell::run(&format!("gcc -std=c99 {WARNINGS} -O2 {sources} -o {FOLDER}/board_line"))?;
    let sources = format!("c/examples/board_mps2.c {BOARD}");
    let program = format!("{FOLDER}/board_line.elf");
    shell::run(&format!("{CROSS} {BARE} {LINK} -DSECONDS={board_seconds} {sources} -o {program}"))?;
    let heap =
        shell::output(&format!("arm-none-eabi-nm {program} | grep -cwE 'malloc|_malloc_r|_sbrk' || true"));
    require(heap.as_deref() == Some("0"), "the board in QEMU has no heap")?;
    let folder = if is_release { "release" } else { "debug" };
    if is_release {
        shell::run(
            "cargo build --quiet --release -p noctule-cli -p noctule-lab-peers --bin noctule --example soak_boards",
        )?;
    } else {
        programs::build()?;
    }
    let soak = format!("target/{folder}/examples/soak_boards target/{folder}/noctule {seconds} {unplugs}");
    let seed = std::process::id();
    let on_host = format!("{FOLDER}/board_line serial {{}} 921600 100 {board_seconds}");
    let in_qemu = format!(
        "{QEMU} -chardev serial,id=line,path=$(readlink {{}}) -serial chardev:line -chardev file,id=said,path=/dev/stdout -semihosting-config enable=on,target=native,chardev=said -kernel {program}"
    );
    // A cable pulled at the host takes its device away; the board's own UART stays.
    let lines = [("pty", "both", on_host), ("qemu", "first", in_qemu)];
    let runs = lines.map(|(name, ends, board)| {
        println!("board on a bad line, {name}: {seconds} s, unplugged {unplugs} times, seed {seed}");
        start(&format!("{soak} {ends} {seed} '{board}' > {FOLDER}/soak_{name}.json")).map(|run| (name, run))
    });
    for run in runs {
        let (name, mut run) = run?;
        let status = run.0.wait().map_err(|e| format!("soak_boards: {e}"))?;
        println!("{name}: {}", shell::output(&format!("cat {FOLDER}/soak_{name}.json")).unwrap_or_default());
        require(status.success(), &format!("every sample of the board is accounted for ({name})"))?;
    }
    Ok(())
}

/// `noise` in bytes of a million. Every sample is accounted for: what the agent misses of a reliable
/// stream the board has counted as abandoned.
fn board_on_noisy_line(seconds: u32, noise: u32, unplugs: u32) -> Result<(), String> {
    let line = format!("{FOLDER}/tty_{}", std::process::id());
    let (_agent, agent_says) = start_agent(&format!("serial {line} {seconds} 100 {noise} {unplugs} close"))?;
    let mut board = start(&format!("{FOLDER}/board serial {line} 921600 100 {}", seconds.saturating_sub(3)))?;
    let board_says = counts(board.0.stdout.take().ok_or("no standard output")?, "board")?;
    let agent_says = counts(agent_says, "agent")?;
    let of_board = |name| count(&board_says, name);
    let of_agent = |name| count(&agent_says, name);
    require(of_agent("up")? > 0 && of_agent("up")? <= of_board("up")?, "reliable samples arrive")?;
    require(
        of_agent("up_missing")? <= of_board("abandoned")?,
        "what is missing was in flight when its session ended; but one garbled frame in 65536 passes its checksum",
    )?;
    let fast = of_agent("up_fast")? + of_agent("up_fast_missing")?;
    require(fast <= of_board("up_fast")?, "best-effort samples arrive once")?;
    require(of_board("down")? > 0 && of_board("exchanges")? > 0, "both ways, and the clock")?;
    require(of_board("opened")? == u64::from(unplugs) + 1, "the device was opened again after each cut")?;
    let back_ms = agent_says.get("worst_back_ms").and_then(Value::as_f64).unwrap_or(f64::MAX);
    let kibibytes = of_board("memory_growth_kib")?;
    println!("longest way back after a cut: {back_ms:.0} ms; memory grew by {kibibytes} KiB");
    require(kibibytes == 0, "the board's memory is constant")
}

/// The board on a Cortex-M3 in QEMU, its UART on a pty.
fn board_in_qemu() -> Result<(), String> {
    let program = format!("{FOLDER}/board.elf");
    let sources = format!("c/examples/board_mps2.c {BOARD}");
    shell::run(&format!("{CROSS} {BARE} {LINK} {sources} -o {program}"))?;
    let line = format!("{FOLDER}/qemu_tty_{}", std::process::id());
    let (_agent, agent_says) = start_agent(&format!("serial {line} 8 50 100 1 deaf"))?;
    // Without `timeout` between: it would be killed at the end, and the emulator live on.
    let qemu = format!(
        "{QEMU} -chardev serial,id=line,path=$(readlink {line}) -serial chardev:line -kernel {program}"
    );
    let _qemu = start(&qemu)?;
    let says = counts(agent_says, "agent")?;
    require(
        count(&says, "up")? > 0 && count(&says, "up_missing")? == 0,
        "reliable samples arrive, each of them",
    )?;
    require(
        count(&says, "pongs")? > 0 && count(&says, "fourths")? > 0,
        "pings come back, and the fourth stamp",
    )?;
    require(count(&says, "reports")? > 0, "the board reports on itself")?;
    let unused = count(&says, "stack_unused_bytes")?;
    require(unused >= 512, "a quarter of its 2 KiB of stack is never used")?;
    let idle = says.get("idle_share").and_then(Value::as_f64).unwrap_or(0.0);
    require(idle > 0.0 && idle <= 1.0, "it sleeps")?;
    println!("board in QEMU: idle {:.1} %, stack used at most {} bytes", idle * 100.0, 2048 - unused);
    Ok(())
}

/// The board through `noctule gateway`, both ways, with a proven bound of the age of a stamped sample.
fn board_on_gateway() -> Result<(), String> {
    use std::io::BufRead;
    programs::build()?;
    let noctule = programs::NOCTULE;
    let domain = 1000 + std::process::id() % 4000;
    let mut gateway = start(&format!("{noctule} gateway --udp 0 --domain {domain} --json --seconds 40"))?;
    let mut lines = std::io::BufReader::new(gateway.0.stdout.take().ok_or("no standard output")?);
    let mut first = String::new();
    lines.read_line(&mut first).map_err(|e| format!("gateway: {e}"))?;
    let first: Value = serde_json::from_str(&first).map_err(|e| format!("gateway said {first:?}: {e}"))?;
    let port = first.pointer("/listening/0/port").and_then(Value::as_u64).ok_or("no port")?;
    let mut echo =
        start(&format!("{noctule} echo /board/up_fast --domain {domain} --count 200 --seconds 30 --json"))?;
    let _down = start(&format!(
        "{noctule} pub /board/down --domain {domain} --reliable --type std_msgs/msg/UInt32 --format cdr --hex 0001000005000000 --rate 50 --count 1500 --json"
    ))?;
    let mut board = start(&format!("{FOLDER}/board udp 127.0.0.1 {port} 100 8"))?;
    let board_says = counts(board.0.stdout.take().ok_or("no standard output")?, "board")?;
    let (up, acknowledged) = (count(&board_says, "up")?, count(&board_says, "acknowledged")?);
    require(up > 0 && up == acknowledged, "the gateway has every reliable sample")?;
    require(count(&board_says, "sessions")? == 1, "one session was enough")?;
    require(count(&board_says, "down")? > 0, "samples of the bus reach the board")?;
    let samples = std::io::BufReader::new(echo.0.stdout.take().ok_or("no standard output")?);
    let (mut heard, mut bound) = (0, 0);
    for line in samples.lines() {
        let line = line.map_err(|e| format!("echo: {e}"))?;
        let sample: Value = serde_json::from_str(&line).map_err(|e| format!("echo said {line:?}: {e}"))?;
        heard += 1;
        bound += u32::from(sample.get("bound_ns").is_some_and(Value::is_u64));
    }
    println!("bus: {heard} samples of the board, {bound} with a proven bound of their age");
    require(heard == 200 && bound > 100, "samples of the board reach the bus, their ages with a bound")
}
