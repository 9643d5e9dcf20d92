//! The publisher and the subscriber of `examples/`, which are the same in Rust, C, C++ and Python: built as a
//! user builds them, and each receives from every other.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::{c_library, programs, python, shell};

const LANGUAGES: [&str; 4] = ["rs", "c", "cpp", "py"];
/// Samples that each subscriber must have of each publisher.
const SAMPLES: usize = 3;
/// Interval between two samples of each publisher.
const PERIOD: Duration = Duration::from_millis(20);
/// Time limit of a meeting; discovery takes a fraction of it, on a machine that compiles a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Builds the programs, those in C and C++ as a new CMake project outside the checkout, and lets all
/// eight of them meet in a network namespace of their own.
pub fn run() -> Result<(), String> {
    programs::build()?;
    python::install()?;
    c_library::install(&c_library::prefix())?;
    let (project, examples) = (project(), shell::root().join("examples"));
    // Of the last run.
    let _ = fs::remove_dir_all(&project);
    fs::create_dir_all(&project).map_err(|e| format!("{}: {e}", project.display()))?;
    shell::run(&format!(
        "cp {0}/CMakeLists.txt {0}/*.c {0}/*.cpp {1}",
        examples.display(),
        project.display()
    ))?;
    let flags = "-DCMAKE_C_FLAGS='-Wall -Wextra -Werror' -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror'";
    let prefix = c_library::prefix();
    shell::run_in(
        &project,
        &format!("cmake -S . -B build -DCMAKE_PREFIX_PATH={} {flags}", prefix.display()),
    )?;
    shell::run_in(&project, "cmake --build build")?;
    shell::run(&shell::myself_in_network_namespace("examples --meet")?)
}

/// Where the CMake project is built: outside the checkout, as a user's would be, and one for each checkout.
fn project() -> PathBuf {
    let root = shell::root();
    let checkout = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::env::temp_dir().join(format!("{checkout}-examples"))
}

/// Starts all programs and feeds the publishers until every subscriber has received from every publisher.
pub fn meet() -> Result<(), String> {
    let (said, heard) = channel();
    let mut running = Running(Vec::new());
    for language in LANGUAGES {
        running.subscriber(language, said.clone())?;
    }
    drop(said);
    let mut publishers = Vec::new();
    for language in LANGUAGES {
        let mut child = start("publish", language, Stdio::piped(), Stdio::inherit())?;
        publishers.push((language, child.stdin.take().ok_or("a publisher has no standard input")?));
        running.0.push(child);
    }
    let start = Instant::now();
    let mut numbers = BTreeMap::new();
    for number in 0u32.. {
        for (language, input) in &mut publishers {
            writeln!(input, "{language} {number}")
                .map_err(|e| format!("publish.{language} has ended: {e}"))?;
        }
        listen(&heard, &mut numbers)?;
        let pairs = numbers.values().filter(|list: &&Vec<u32>| list.len() >= SAMPLES).count();
        if pairs == LANGUAGES.len() * LANGUAGES.len() {
            break;
        }
        if start.elapsed() > TIME_LIMIT {
            return Err(missing(&numbers));
        }
    }
    // At the end of their input the publishers end by themselves.
    drop(publishers);
    for child in &mut running.0[LANGUAGES.len()..] {
        let status = child.wait().map_err(|e| format!("a publisher cannot be waited for: {e}"))?;
        if !status.success() {
            return Err(format!("a publisher ended with {status}"));
        }
    }
    println!("{} pairs have met in {:.1} s", numbers.len(), start.elapsed().as_secs_f64());
    Ok(())
}

/// Language of a subscriber, and a line that it has printed.
type Line = (&'static str, String);
/// Subscriber and publisher → numbers of the samples.
type Numbers = BTreeMap<(&'static str, &'static str), Vec<u32>>;

/// Takes what the subscribers print during one period.
fn listen(heard: &Receiver<Line>, numbers: &mut Numbers) -> Result<(), String> {
    let end = Instant::now() + PERIOD;
    loop {
        match heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((subscriber, line)) => {
                let wrong = || format!("subscribe.{subscriber} printed {line:?}");
                let (publisher, number) = parse(&line).ok_or_else(wrong)?;
                let list = numbers.entry((subscriber, publisher)).or_default();
                if list.last().is_some_and(|last| *last >= number) {
                    return Err(format!("{}, but has had a later one", wrong()));
                }
                list.push(number);
            }
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err("all subscribers have ended".into()),
        }
    }
}

/// `LANGUAGE NUMBER: AGE ns old`, of which the age cannot be negative on one host.
fn parse(line: &str) -> Option<(&'static str, u32)> {
    let (sample, age) = line.split_once(": ")?;
    let _age_ns: u64 = age.strip_suffix(" ns old")?.parse().ok()?;
    let (language, number) = sample.split_once(' ')?;
    let language = LANGUAGES.into_iter().find(|known| *known == language)?;
    Some((language, number.parse().ok()?))
}

fn missing(numbers: &Numbers) -> String {
    let has = |subscriber, publisher| numbers.get(&(subscriber, publisher)).map_or(0, Vec::len);
    let mut text = format!("within {TIME_LIMIT:?} not all have met:");
    for subscriber in LANGUAGES {
        for publisher in LANGUAGES.into_iter().filter(|publisher| has(subscriber, publisher) < SAMPLES) {
            let samples = has(subscriber, publisher);
            text += &format!(" subscribe.{subscriber} has {samples} samples of publish.{publisher};");
        }
    }
    text
}

/// Programs that end with this.
struct Running(Vec<Child>);

impl Running {
    fn subscriber(&mut self, language: &'static str, said: Sender<Line>) -> Result<(), String> {
        let mut child = start("subscribe", language, Stdio::null(), Stdio::piped())?;
        let output = BufReader::new(child.stdout.take().ok_or("a subscriber has no standard output")?);
        self.0.push(child);
        thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            // Ends when its reader has gone.
            lines.map(|line| said.send((language, line))).take_while(Result::is_ok).for_each(drop);
        });
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(example: &str, language: &str, input: Stdio, output: Stdio) -> Result<Child, String> {
    let (root, project) = (shell::root(), project());
    // C and C++ keep what they print until a buffer is full, unless they are configured not to.
    let line = match language {
        "rs" => format!("{}/target/debug/examples/{example}", root.display()),
        "py" => format!("{0}/.venv/bin/python -u {0}/examples/{example}.py", root.display()),
        _ => format!("stdbuf -oL {}/build/{example}_{language}", project.display()),
    };
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).stdin(input).stdout(output);
    command.spawn().map_err(|e| format!("cannot start `{line}`: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_true_age_is_no_sample() {
        assert_eq!(parse("cpp 17: 21400 ns old"), Some(("cpp", 17)));
        for line in ["cpp 17: -1 ns old", "cpp 17", "cpp: 5 ns old", "go 1: 5 ns old", "cpp 17: 5 s old", ""]
        {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
