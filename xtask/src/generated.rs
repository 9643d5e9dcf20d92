//! `examples/generated`: programs in four languages whose endpoints are generated of one `topics.toml`, built as users build
//! them, each of which reads the values of all others.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::{ahead, c_library, python, shell};

mod page;
pub mod robot;
pub mod simulink;
mod values;

/// As they sign their samples.
const PROGRAMS: [&str; 4] = ["rust", "c", "cpp", "python"];
/// As their readers sign those that were read where they lie in shared memory.
const IN_PLACE: [&str; 4] = ["plain_rust", "plain_c", "plain_cpp", "plain_python"];
/// As their callers sign the answers to their requests.
const SERVED: &str = "served_rust";
/// As those who send a goal sign its result.
const ACTED: [&str; 4] = ["acted_rust", "acted_c", "acted_cpp", "acted_python"];
/// Both examples whose build scripts generate: built together, so that what they are made of is compiled once.
pub const BUILD_EXAMPLES: &str =
    "cargo build --release --locked --package noctule-generated-example --package noctule-surgical-robot";
/// Samples that each must have of each other.
const SAMPLES: usize = 8;
/// Time limit of a meeting; discovery takes a fraction of it.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Builds the programs by cargo, CMake and `python -m noctule.gen`, and lets them meet in a network namespace of their own.
pub fn run() -> Result<(), String> {
    ahead::build(BUILD_EXAMPLES)?;
    python::install()?;
    c_library::install(&c_library::prefix())?;
    values::of_the_harness()?;
    build_others()?;
    shell::run(&shell::myself_in_network_namespace("generated --meet")?)
}

/// Compares the bytes of every type of the packages below these folders.
pub fn sets(folders: &[PathBuf]) -> Result<(), String> {
    python::install()?;
    c_library::install(&c_library::prefix())?;
    values::of_sets(folders)
}

/// The programs in C, C++ and Python, outside the checkout.
fn build_others() -> Result<(), String> {
    let (project, example) = (project(), shell::root().join("examples/generated"));
    // Of the last run.
    let _ = fs::remove_dir_all(&project);
    fs::create_dir_all(&project).map_err(|e| format!("{}: {e}", project.display()))?;
    shell::run(&format!(
        "cp -r {0}/CMakeLists.txt {0}/topics.toml {0}/msg {0}/*.c {0}/*.cpp {0}/*.py {1}",
        example.display(),
        project.display()
    ))?;
    let flags = "-DCMAKE_C_FLAGS='-Wall -Wextra -Wpedantic -Wconversion -Werror' -DCMAKE_CXX_FLAGS='-Wall -Wextra -Wpedantic -Wconversion -Werror'";
    let prefix = c_library::prefix();
    let run = |line: &str| shell::run_in(&project, line);
    run(&format!("cmake -S . -B build -DCMAKE_PREFIX_PATH={} {flags}", prefix.display()))?;
    run("cmake --build build")?;
    rebuilds(&project)?;
    let python = shell::root().join(".venv/bin/python");
    run(&format!("{} -m noctule.gen topics.toml --out build/generated", python.display()))?;
    run(&format!("{} -m noctule.gen topics.toml --out build/generated --check", python.display()))?;
    run(&format!(
        "MYPYPATH=build/generated/python {} -m mypy --strict --cache-dir=build/mypy in_python.py",
        python.display()
    ))
}

/// A build of what has not changed does nothing; a changed definition is generated and compiled again.
fn rebuilds(project: &Path) -> Result<(), String> {
    let run = |line: &str| shell::run_in(project, line);
    let compiles = "cmake --build build | grep -c Building";
    run(&format!("test \"$({compiles} || true)\" = 0"))?;
    run(
        "sed -i 's/the joints/all joints/; s/its joints/all joints/' msg/demo_msgs/msg/Pose.msg && sed -i 's/keep_last = 64/keep_last = 63/' topics.toml",
    )?;
    run(&format!("test \"$({compiles})\" -ge 2"))
}

/// Where the programs are built: outside the checkout, as a user's would be, and one for each checkout.
fn project() -> PathBuf {
    let root = shell::root();
    let checkout = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::env::temp_dir().join(format!("{checkout}-generated"))
}

/// Starts all programs and waits until each has read every other.
pub fn meet() -> Result<(), String> {
    let (printed, lines) = channel();
    let mut running = Running(Vec::new());
    for program in PROGRAMS {
        running.start(program, printed.clone())?;
    }
    drop(printed);
    let begin = Instant::now();
    let mut numbers = Numbers::new();
    while begin.elapsed() < TIME_LIMIT {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok((reader, line)) => note(reader, &line, &mut numbers)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("all programs have ended".into()),
        }
        let pairs = numbers.values().filter(|list| list.len() >= SAMPLES).count();
        let answers = numbers.keys().filter(|(_, writer)| *writer == SERVED).count();
        let results = numbers.keys().filter(|(_, writer)| ACTED.contains(writer)).count();
        let all = PROGRAMS.len() * (PROGRAMS.len() - 1);
        if pairs == 2 * all && answers == PROGRAMS.len() - 1 && results == all {
            running.end(&lines)?;
            println!(
                "{pairs} pairs of generated endpoints have met in {:.1} s, half of them in place in shared memory; \
                 {answers} requests were answered, {results} goals executed",
                begin.elapsed().as_secs_f64()
            );
            return Ok(());
        }
    }
    Err(missing(&numbers))
}

/// Reader and writer → numbers of the samples.
type Numbers = BTreeMap<(&'static str, &'static str), Vec<u32>>;
type Line = (&'static str, String);

/// Takes a line that a program printed; every value in it must be what the writer's rule says of its number.
fn note(reader: &'static str, line: &str, numbers: &mut Numbers) -> Result<(), String> {
    let wrong = || format!("the program in {reader} printed {line:?}, which is no sample of another");
    let is_other = |writer: &str| signed_by(writer) != reader;
    let (writer, number) = parse(line).filter(|(writer, _)| is_other(writer)).ok_or_else(wrong)?;
    let list = numbers.entry((reader, writer)).or_default();
    if list.last().is_some_and(|last| *last >= number) {
        return Err(format!("{}, but has had a later one", wrong()));
    }
    list.push(number);
    Ok(())
}

/// The program behind a signature.
fn signed_by(writer: &str) -> &str {
    writer.rsplit('_').next().unwrap_or(writer)
}

/// `WRITER NUMBER X Y Z JOINTS…: AGE ns old`, an answer and a result without its age. All programs compute the same values of a number.
fn parse(line: &str) -> Option<(&'static str, u32)> {
    let sample = match line.split_once(": ") {
        Some((sample, age)) => {
            let _age_ns: u64 = age.strip_suffix(" ns old")?.parse().ok()?;
            sample
        }
        None => ACTED.iter().chain([&SERVED]).any(|signature| line.starts_with(signature)).then_some(line)?,
    };
    let mut words = sample.split(' ');
    let writer = words.next()?;
    let writer =
        PROGRAMS.into_iter().chain(IN_PLACE).chain(ACTED).chain([SERVED]).find(|known| *known == writer)?;
    let number: u32 = words.next()?.parse().ok()?;
    let at = f64::from(number);
    let joints = (0..number % 4).map(|joint| f64::from(joint) + at / 4.0);
    let expected = [at, -at / 2.0, at / 4.0].into_iter().chain(joints);
    let values: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
    // 0 and -0 are equal here, and the same number.
    (values? == expected.collect::<Vec<f64>>()).then_some((writer, number))
}

fn missing(numbers: &Numbers) -> String {
    let mut text = format!("within {TIME_LIMIT:?} not all have met:");
    for reader in PROGRAMS {
        let is_other = |writer: &&str| signed_by(writer) != reader;
        for writer in PROGRAMS.into_iter().chain(IN_PLACE).filter(is_other) {
            let samples = numbers.get(&(reader, writer)).map_or(0, Vec::len);
            if samples < SAMPLES {
                text += &format!(" the program in {reader} has {samples} samples of the one in {writer};");
            }
        }
    }
    for reader in PROGRAMS {
        for writer in ACTED.into_iter().filter(|writer| signed_by(writer) != reader) {
            if !numbers.contains_key(&(reader, writer)) {
                text +=
                    &format!(" the program in {reader} has no result of the one in {};", signed_by(writer));
            }
        }
    }
    text
}

/// Programs that end with this.
struct Running(Vec<(&'static str, Child)>);

impl Running {
    fn start(&mut self, program: &'static str, printed: Sender<Line>) -> Result<(), String> {
        let (root, project) = (shell::root(), project());
        let mut command = match program {
            "rust" => Command::new(root.join("target/release/in_rust")),
            "python" => {
                let mut command = Command::new(root.join(".venv/bin/python"));
                command.arg("in_python.py").env("PYTHONPATH", "build/generated/python");
                command
            }
            _ => Command::new(project.join(format!("build/in_{program}"))),
        };
        let child = command.current_dir(&project).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|e| format!("cannot start the program in {program}: {e}"))?;
        let output = BufReader::new(child.stdout.take().ok_or("a program has no standard output")?);
        self.0.push((program, child));
        thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            // Ends when its reader has gone.
            lines.map(|line| printed.send((program, line))).take_while(Result::is_ok).for_each(drop);
        });
        Ok(())
    }

    /// Ends their input, whereupon they end by themselves, and without a fault.
    fn end(&mut self, lines: &Receiver<Line>) -> Result<(), String> {
        self.0.iter_mut().for_each(|(_, child)| drop(child.stdin.take()));
        // So that none waits until its output is read.
        lines.iter().for_each(drop);
        for (program, child) in &mut self.0 {
            let status = child.wait().map_err(|e| format!("a program cannot be waited for: {e}"))?;
            if !status.success() {
                return Err(format!("the program in {program} ended with {status}"));
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_of_its_number_is_no_sample() {
        assert_eq!(parse("cpp 2 2.000 -1.000 0.500 0.500 1.500: 17 ns old"), Some(("cpp", 2)));
        assert_eq!(parse("served_rust 4 4.000 -2.000 1.000"), Some(("served_rust", 4)));
        assert_eq!(parse("acted_c 4 4.000 -2.000 1.000"), Some(("acted_c", 4)));
        assert_eq!(parse("rust 4 4.000 -2.000 1.000"), None);
        assert_eq!(parse("plain_cpp 0 0.000 -0.000 0.000: 17 ns old"), Some(("plain_cpp", 0)));
        for line in [
            "cpp 2 2.000 -1.000 0.500 0.500 1.501: 17 ns old",
            "cpp 2 2.000 -1.000 0.500 0.500: 17 ns old",
            "cpp 2 2.000 -1.000 0.500 0.500 1.500: -1 ns old",
            "wrong_cpp 0 0.000 -0.000 0.000: 17 ns old",
            "go 2 2.000 -1.000 0.500 0.500 1.500: 17 ns old",
            "cpp",
            "",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
        let mut numbers = Numbers::new();
        note("c", "cpp 0 0.000 -0.000 0.000: 17 ns old", &mut numbers).unwrap();
        assert!(note("c", "cpp 0 0.000 -0.000 0.000: 17 ns old", &mut numbers).is_err());
        assert!(note("cpp", "cpp 1 1.000 -0.500 0.250 0.250: 17 ns old", &mut numbers).is_err());
    }
}
