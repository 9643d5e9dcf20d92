//! Seeded values of generated types: Rust, C, C++, Python and Octave must make the same bytes of them, and rosbags and Cyclone DDS must read those
//! and write them again. A small set of types in `cargo xtask test`; whole sets of packages by `cargo xtask generated --sets DIR`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::simulink::{OCTAVE, has_octave, mex};
use crate::{c_library, shell};

const HARNESS: &str = "crates/codegen/harness";
/// So that constants may be of any kind, and generated code has no warnings.
const WARNINGS: &str = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -O1";
/// Of a small set of types, whose decoders read damaged samples under them.
const SANITIZERS: &str = "-fsanitize=address,undefined -fno-sanitize-recover=all";
/// As a program prints a sample that its decoder refuses.
const REFUSED: &str = " refused";

/// The types of the harness.
pub(super) fn of_the_harness() -> Result<(), String> {
    let root = shell::root();
    compare(&root.join(HARNESS).join("topics.toml"), &root.join(HARNESS).join("msg"), SANITIZERS)
}

/// All types of the packages below these folders.
pub(super) fn of_sets(folders: &[PathBuf]) -> Result<(), String> {
    let target = shell::root().join("target/generated");
    let search = target.join("search");
    let _ = fs::remove_dir_all(&search);
    fs::create_dir_all(&search).map_err(|e| format!("{}: {e}", search.display()))?;
    let mut packages = Vec::new();
    for folder in folders {
        packages_below(folder, 3, &mut packages)?;
    }
    packages.sort();
    packages.dedup_by(|one, other| one.0 == other.0);
    if packages.is_empty() {
        return Err(
            "no folder holds packages with msg, srv or action; name those of fetched repositories".into()
        );
    }
    for (name, folder) in &packages {
        let folder = fs::canonicalize(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        std::os::unix::fs::symlink(&folder, search.join(name)).map_err(|e| format!("{name}: {e}"))?;
    }
    let types: Vec<String> = packages.iter().map(|(name, _)| format!("\"{name}/*\"")).collect();
    let text = format!(
        "[project]\nname = \"sets\"\nsearch = [\"search\"]\ntypes = [{0}]\nplain = [{0}]\nlanguages = [\"rust\", \"c\", \"cpp\", \"python\", \"simulink\", \"idl\"]\n",
        types.join(", ")
    );
    let topics = target.join("topics.toml");
    fs::write(&topics, text).map_err(|e| format!("{}: {e}", topics.display()))?;
    // With sanitizers so many types take hours to compile.
    compare(&topics, &search, "")?;
    table(folders, &packages)
}

/// How many types of each set had equal bytes: what [`compare`] accepted, counted by the folder that a type came from.
fn table(folders: &[PathBuf], packages: &[(String, PathBuf)]) -> Result<(), String> {
    let values = shell::root().join("target/generated/values");
    let read = |name: &str| fs::read_to_string(values.join(name)).map_err(|e| format!("{name}: {e}"));
    let of_rust = read("rust.txt")?;
    let of_octave = if has_octave() { read("out/simulink/values.txt")? } else { String::new() };
    // `pkg/msg/T NUMBER BYTES`, and with `@plain` and `@damaged` behind the name.
    let types = |text: &str, kind: &str| -> BTreeSet<String> {
        let names = text.lines().filter_map(|line| line.split(' ').next());
        let split = names.map(|name| name.split_once('@').unwrap_or((name, "")));
        split.filter(|(_, of)| *of == kind).map(|(name, _)| name.to_owned()).collect()
    };
    let columns = [types(&of_rust, ""), types(&of_rust, "plain"), types(&of_octave, "")];
    println!("| set | types | of fixed size | in Octave |\n|---|--:|--:|--:|");
    let row = |name: &str, is_of: &dyn Fn(&str) -> bool| {
        let counts = columns.iter().map(|column| {
            let of = |name: &&String| is_of(name.split('/').next().unwrap_or_default());
            column.iter().filter(of).count().to_string()
        });
        println!("| {name} | {} |", counts.collect::<Vec<_>>().join(" | "));
    };
    for folder in folders {
        let of: BTreeSet<&str> =
            packages.iter().filter(|(_, at)| at.starts_with(folder)).map(|(name, _)| name.as_str()).collect();
        row(&folder.file_name().unwrap_or_default().to_string_lossy(), &|package| of.contains(package));
    }
    row("all", &|_| true);
    Ok(())
}

/// Folders that hold `msg`, `srv` or `action`, with their names.
fn packages_below(folder: &Path, depth: u32, found: &mut Vec<(String, PathBuf)>) -> Result<(), String> {
    if ["msg", "srv", "action"].iter().any(|kind| folder.join(kind).is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.push((name, folder.to_path_buf()));
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        packages_below(&entry.path(), depth - 1, found)?;
    }
    Ok(())
}

/// Generates, compiles and runs the program of each language, and compares what they print.
fn compare(topics: &Path, definitions: &Path, sanitizers: &str) -> Result<(), String> {
    let folder = shell::root().join("target/generated/values");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    // Old output of idlc for other types, of which the generator knows nothing.
    let _ = fs::remove_dir_all(folder.join("out/idl"));
    let (root, prefix) = (shell::root(), c_library::prefix());
    let (root, prefix, topics) = (root.display(), prefix.display(), topics.display());
    let step = |name: &str, line: &str| {
        let begin = Instant::now();
        shell::run_in(&folder, line)?;
        println!("{name}: {:.1} s", begin.elapsed().as_secs_f64());
        Ok::<(), String>(())
    };
    step(
        "generate",
        &format!("{prefix}/bin/noctule-gen {topics} --templates {root}/{HARNESS}/templates --out out"),
    )?;
    shell::run(&format!(
        "NOCTULE_HARNESS_TOPICS={topics} cargo build --release --locked --package noctule-codegen-harness"
    ))?;
    step("rust", &format!("{root}/target/release/generated_values > rust.txt"))?;
    step(
        "c",
        &format!(
            "gcc -std=c99 {WARNINGS} {sanitizers} -I{root}/c -Iout/c out/c/*.c -lm -o values_c && ./values_c > c.txt"
        ),
    )?;
    step(
        "cpp",
        &format!(
            "g++ -std=c++17 {WARNINGS} {sanitizers} -I{prefix}/include -Iout/cpp out/cpp/values_main.cpp -o values_cpp && ./values_cpp > cpp.txt"
        ),
    )?;
    let python = format!("{root}/.venv/bin/python");
    step("python", &format!("PYTHONPATH=out/python {python} out/python/values_main.py > python.txt"))?;
    let read = |language: &str| {
        fs::read_to_string(folder.join(format!("{language}.txt"))).map_err(|e| format!("{language}.txt: {e}"))
    };
    let expected = read("rust")?;
    for language in ["c", "cpp", "python"] {
        same(language, &expected, &read(language)?)?;
    }
    let (damaged, whole): (Vec<&str>, Vec<&str>) =
        expected.lines().partition(|line| line.contains("@damaged "));
    let (plain, cdr): (Vec<&str>, Vec<&str>) = whole.into_iter().partition(|line| line.contains("@plain "));
    let lines = cdr.len();
    println!("{} types, {lines} values: the same bytes in Rust, C, C++ and Python", lines / 20);
    println!("{} of them of fixed size: the same memory in Rust, C, C++ and Python", plain.len() / 20);
    let refused = damaged.iter().filter(|line| line.ends_with(REFUSED)).count();
    println!(
        "{} damaged samples: {refused} refused, and the others read as the same values, in Rust, C, C++ and Python",
        damaged.len()
    );
    in_octave(&folder, &cdr.join("\n"))?;
    in_cyclone(&folder, &cdr.join("\n"))?;
    let definitions = definitions.display();
    step("rosbags", &format!("{python} {root}/xtask/src/generated/read_by_rosbags.py {definitions} rust.txt"))
}

/// The same of Octave, where it is installed: of all types that a block of Simulink can have.
fn in_octave(folder: &Path, expected: &str) -> Result<(), String> {
    if !has_octave() {
        return Ok(());
    }
    let begin = Instant::now();
    let folder = folder.join("out/simulink");
    shell::run_in(&folder, &mex("values_mex.c *_ports.c", "values_mex"))?;
    shell::run_in(&folder, &format!("{OCTAVE} values_main.m > values.txt"))?;
    let printed = fs::read_to_string(folder.join("values.txt")).map_err(|e| format!("values.txt: {e}"))?;
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let known: BTreeSet<String> = printed.lines().map(name).collect();
    let of_blocks: Vec<&str> = expected.lines().filter(|line| known.contains(&name(line))).collect();
    same("octave", &of_blocks.join("\n"), &printed)?;
    let left_out = expected.lines().count() / 20 - known.len();
    println!("octave: {:.1} s", begin.elapsed().as_secs_f64());
    println!("{} types: the same bytes in Octave; {left_out} are more than a block can be", known.len());
    Ok(())
}

/// The same of Cyclone DDS, where it is installed, by what its `idlc` makes of the types written as IDL.
fn in_cyclone(folder: &Path, cdr: &str) -> Result<(), String> {
    if shell::output("command -v idlc").is_none() || !Path::new("/usr/include/dds/dds.h").exists() {
        println!("skipped: Cyclone DDS; apt-get install cyclonedds-dev cyclonedds-tools");
        return Ok(());
    }
    let begin = Instant::now();
    let folder = folder.join("out/idl");
    let path = folder.join("values.txt");
    fs::write(&path, cdr).map_err(|e| format!("{}: {e}", path.display()))?;
    // A name is no part of the bytes, and idlc writes one that is a keyword of C as it stands. With a letter behind it uuid would be UUID_, a type.
    let line = "sed -Ei '/^    const /! s/^(    [^;]* )_?([A-Za-z][A-Za-z0-9_]*)((\\[[0-9]+\\])?;)/\\1f_\\2\\3/' *.idl";
    shell::run_in(&folder, line)?;
    // Without information for discovery, which is most of what idlc writes.
    let line = "for file in *.idl; do idlc -t -l c $file || exit 1; done && gcc -std=gnu11 -O1 -Wall -Wextra -I. *.c -lddsc -o values_cyclone";
    shell::run_in(&folder, line)?;
    shell::run_in(&folder, "./values_cyclone < values.txt")?;
    println!("cyclone: {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The first line in which two programs differ.
fn same(language: &str, expected: &str, other: &str) -> Result<(), String> {
    let differing = expected.lines().zip(other.lines()).find(|(one, other)| one != other);
    match differing {
        Some((one, other)) => Err(format!("Rust prints {one}\nand {language} {other}")),
        None if expected.lines().count() == other.lines().count() && !expected.is_empty() => Ok(()),
        None => Err(format!("{language} does not print as many values as Rust")),
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn values_that_differ_or_are_missing_are_found() {
        assert_eq!(same("c", "a 0 00\na 1 01\n", "a 0 00\na 1 01\n"), Ok(()));
        assert!(same("c", "a 0 00\na 1 01\n", "a 0 00\na 1 02\n").unwrap_err().contains("a 1 02"));
        assert!(same("c", "a 0 00\na 1 01\n", "a 0 00\n").is_err());
        assert!(same("c", "", "").is_err());
    }
}
