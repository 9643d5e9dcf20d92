//! `noctule key`: make a swarm key, and tell which one a file holds without showing it.

use std::error::Error;
use std::path::PathBuf;

use noctule::swarm_key::SwarmKey;
use serde_json::json;

use crate::Outcome;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Write a new random key to a file that only you can read
    New {
        /// The file; it must not exist yet
        #[arg(value_name = "FILE", default_value = "swarm.key")]
        file: PathBuf,
    },
    /// Say which key a file holds, by its fingerprint; the key itself is never shown
    Show {
        /// The file; by default that of NOCTULE_KEY_FILE or NOCTULE_KEY
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print JSON instead of the line
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(command: Command) -> Result<Outcome, Box<dyn Error>> {
    match command {
        Command::New { file } => {
            let key = SwarmKey::create(&file)?;
            let path = file.display();
            anstream::println!("{path}: new swarm key {}", key.fingerprint());
            anstream::println!(
                "copy it to every node of the swarm over a safe channel, and start them with NOCTULE_KEY_FILE={path}"
            );
        }
        Command::Show { file, json } => {
            let key = SwarmKey::choose(file.as_deref())?;
            let Some(key) = key else {
                return Err("no key is named; give a FILE, or set NOCTULE_KEY_FILE".into());
            };
            let fingerprint = key.fingerprint();
            match json {
                true => anstream::println!("{}", json!({ "fingerprint": fingerprint })),
                false => anstream::println!("swarm key {fingerprint}"),
            }
        }
    }
    Ok(Outcome::Done)
}
