//! Writes one file per format into a folder: the state of seed 1 at 1,024 bytes, which tests of other languages read.
//!
//! `cargo run -p noctule-formats --example uav_state_vectors -- vectors/formats`

use std::error::Error;
use std::path::PathBuf;

use noctule_formats::uav_state::UavState;
use noctule_formats::{Format, encode};

fn main() -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("name the folder to write to")?.into();
    let state = UavState::realistic(1024, 1);
    for format in Format::ALL {
        let mut bytes = Vec::new();
        encode(format, &state, &mut bytes)?;
        std::fs::write(folder.join(format!("uav_state.{format}")), bytes)?;
    }
    Ok(())
}
