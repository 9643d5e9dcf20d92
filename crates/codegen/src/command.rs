//! `noctule gen …` and `noctule-gen …`: words to calls, results to text.
//!
//! A library, so that the generator alone is a small program: what builds of users install.

// To print is its work.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::io::Read;
use std::path::PathBuf;

use crate::cdr::{self, WideStrings};
use crate::diagnostic::Faults;
use crate::generate::{generate, installed};
use crate::hash::{Hashes, rihs01};
use crate::library::Library;
use crate::model::TypeName;
use crate::tree;
use clap::Subcommand;

/// Longest value that is read from standard input, in bytes.
const INPUT_BYTES_MAX: u64 = 256 << 20;

/// How a command ended that was not wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done: exit code 0.
    Done,
    /// With `--check`: the folder is not what would be generated. Exit code 1.
    NotValid,
}

/// Arguments of `gen`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct GenArguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The programs of a system, and what flows between them
    #[arg(value_name = "topics.toml", required = true)]
    topics: Option<PathBuf>,
    /// Where the generated files go; only what has changed is written
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write nothing: exit code 1 if a file of DIR is not what would be generated
    #[arg(long)]
    check: bool,
    /// A folder of templates that take the place of those of the same name
    #[arg(long, value_name = "DIR")]
    templates: Option<PathBuf>,
    /// Print the checked system as templates receive it, as JSON
    #[arg(long)]
    dump_model: bool,
    /// Print the files that were read, one a line: if one changes, generate again
    #[arg(long)]
    print_inputs: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Print the hashes of all types that packages define: ROS 2's RIHS01 and Noctule's, as JSON
    Hash(PackageArguments),
    /// Read a JSON value on standard input, write its CDR as hexadecimal digits; missing fields have their defaults
    Encode(ValueArguments),
    /// Read CDR as hexadecimal digits on standard input, write its value as JSON
    Decode(ValueArguments),
}

#[derive(clap::Args)]
struct PackageArguments {
    /// Folders of packages, which hold msg, srv or action
    #[arg(value_name = "PACKAGE_DIR")]
    packages: Vec<PathBuf>,
    /// A folder to look in for other packages, before those of AMENT_PREFIX_PATH
    #[arg(long, value_name = "DIR")]
    search: Vec<PathBuf>,
}

#[derive(clap::Args)]
struct ValueArguments {
    #[command(flatten)]
    packages: PackageArguments,
    /// The type, e.g. geometry_msgs/msg/Pose
    #[arg(long = "type", value_name = "PKG/msg/T")]
    type_name: String,
    /// Let wstring travel, as UTF-16 without a NUL; other middlewares may write other bytes
    #[arg(long)]
    wstring_utf16: bool,
}

/// Does what the words say.
///
/// # Errors
/// One sentence about wrong usage or input; a program then ends with exit code 2.
pub fn run(arguments: &GenArguments) -> Result<Outcome, Box<dyn Error>> {
    match &arguments.command {
        Some(Command::Hash(arguments)) => hash(arguments),
        Some(Command::Encode(arguments)) => encode(arguments),
        Some(Command::Decode(arguments)) => decode(arguments),
        None => system(arguments),
    }
}

fn system(arguments: &GenArguments) -> Result<Outcome, Box<dyn Error>> {
    let topics = arguments
        .topics
        .as_deref()
        .ok_or("no topics.toml is named; write noctule gen topics.toml --out DIR")?;
    let generated = generate(topics, &installed(), arguments.templates.as_deref())?;
    for warning in &generated.warnings {
        anstream::eprintln!("{warning}");
    }
    if arguments.dump_model {
        anstream::println!("{}", serde_json::to_string_pretty(&generated.model)?);
    }
    if arguments.print_inputs {
        generated.inputs.iter().for_each(|path| anstream::println!("{}", path.display()));
    }
    let Some(out) = &arguments.out else {
        if arguments.dump_model || arguments.check || arguments.print_inputs {
            return Ok(Outcome::Done);
        }
        return Err("no folder is named for the generated files; write --out DIR".into());
    };
    if arguments.check {
        let difference = tree::compare(out, &generated.files)?;
        for path in &difference.write {
            anstream::eprintln!("{} is not what would be generated", out.join(path).display());
        }
        for path in &difference.remove {
            anstream::eprintln!("{} would no longer be generated", out.join(path).display());
        }
        return Ok(if difference.is_empty() { Outcome::Done } else { Outcome::NotValid });
    }
    let difference = tree::write(out, &generated.files)?;
    for path in &difference.remove {
        anstream::eprintln!("removed {}, which is no longer generated", out.join(path).display());
    }
    let (written, all) = (difference.write.len(), generated.files.len() + 1);
    anstream::eprintln!("{written} of {all} files written to {}", out.display());
    Ok(Outcome::Done)
}

/// A library that looks where the user said and where ROS 2 is installed, and the types of the packages that were named.
fn load(arguments: &PackageArguments) -> Result<(Library, Vec<TypeName>), Faults> {
    let mut library = Library::new(arguments.search.iter().cloned().chain(installed()));
    let (mut names, mut faults) = (Vec::new(), Faults::default());
    for package in &arguments.packages {
        match library.add_package(package) {
            Ok(found) => names.extend(found),
            Err(found) => faults.0.extend(found.0),
        }
    }
    faults.warnings()?;
    Ok((library, names))
}

fn hash(arguments: &PackageArguments) -> Result<Outcome, Box<dyn Error>> {
    if arguments.packages.is_empty() {
        return Err("no package is named; name the folders of packages, which hold msg, srv or action".into());
    }
    let (mut library, names) = load(arguments)?;
    library.resolve(&names)?;
    let mut hashes = Hashes::new(&library);
    let entry = |name: &TypeName| {
        let hash = format!("{:016x}", hashes.noctule(name));
        (name.to_string(), serde_json::json!({ "rihs01": rihs01(&library, name), "hash": hash }))
    };
    let table: serde_json::Map<String, serde_json::Value> = names.iter().map(entry).collect();
    anstream::println!("{}", serde_json::to_string_pretty(&table)?);
    Ok(Outcome::Done)
}

/// One type with all that it refers to.
struct Loaded {
    library: Library,
    name: TypeName,
    wide: WideStrings,
}

/// Resolves the type, by its full name or without `msg`.
fn load_type(arguments: &ValueArguments) -> Result<Loaded, Box<dyn Error>> {
    let (mut library, _) = load(&arguments.packages)?;
    let name = match arguments.type_name.split('/').collect::<Vec<_>>().as_slice() {
        [package, name] => TypeName::ros(package, "msg", name),
        [_, _, _] => TypeName::new(arguments.type_name.as_str()),
        _ => return Err(format!("\"{}\" is no type; write package/msg/Name", arguments.type_name).into()),
    };
    library.resolve([&name])?;
    let wide = if arguments.wstring_utf16 { WideStrings::Utf16 } else { WideStrings::Refused };
    Ok(Loaded { library, name, wide })
}

fn input() -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("standard input cannot be read: {error}; give text in UTF-8"))?;
    if text.len() as u64 > INPUT_BYTES_MAX {
        return Err(
            format!("standard input has more than {INPUT_BYTES_MAX} bytes; give a smaller value").into()
        );
    }
    Ok(text)
}

fn encode(arguments: &ValueArguments) -> Result<Outcome, Box<dyn Error>> {
    let Loaded { library, name, wide } = load_type(arguments)?;
    let value: serde_json::Value = serde_json::from_str(&input()?)
        .map_err(|error| format!("standard input is no JSON value: {error}"))?;
    let bytes = cdr::encode(&library, &name, &value, wide)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    anstream::println!("{digits}");
    Ok(Outcome::Done)
}

fn decode(arguments: &ValueArguments) -> Result<Outcome, Box<dyn Error>> {
    let Loaded { library, name, wide } = load_type(arguments)?;
    let digits: Vec<u8> = input()?.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(pair).collect();
    let bytes =
        bytes.ok_or("standard input is not hexadecimal; give an even number of digits 0 to 9, a to f")?;
    let tree = cdr::decode(&library, &name, &bytes, wide)?;
    anstream::println!("{}", serde_json::to_string_pretty(&tree)?);
    Ok(Outcome::Done)
}
