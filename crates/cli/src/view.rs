//! `noctule view`

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use noctule_record::file::is_recording;
use noctule_view::live::Live;
use noctule_view::page::{self, PageConfig};
use noctule_view::recorded::Recorded;
use noctule_view::system::System;
use noctule_view::types::Types;

use crate::Outcome;
use crate::page_window::open_browser;
use crate::stop::Stop;
use crate::swarm::{SwarmArguments, seconds};

#[derive(clap::Args)]
pub(crate) struct ViewArguments {
    /// Only these topics, or one recording, which is shown instead of the running system: .mcap, .db3, .ulg, .bag, or the folder of a bag of rosbag2
    topics: Vec<String>,
    /// Where to listen; port 0 takes a free one. Another address than 127.0.0.1 opens the page to the network
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Folder of a package, or of packages, whose definitions decode topics; repeatable
    #[arg(long, value_name = "DIR")]
    types: Vec<PathBuf>,
    /// Print the address and start no browser
    #[arg(long)]
    no_open: bool,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    #[command(flatten)]
    swarm: SwarmArguments,
}

pub(crate) fn run(arguments: &ViewArguments) -> Result<Outcome, Box<dyn Error>> {
    if let Some(missing) = arguments.types.iter().find(|folder| !folder.is_dir()) {
        return Err(
            format!("--types {} is no folder; name the folder of a package", missing.display()).into()
        );
    }
    let stop = Stop::after(arguments.seconds)?;
    let types = Types::new(arguments.types.clone());
    let files: Vec<&String> = arguments.topics.iter().filter(|name| is_recording(name)).collect();
    let (system, types, subtitle) = match files.as_slice() {
        [] => {
            let types = Arc::new(types);
            let node = arguments.swarm.join_quietly("view")?;
            let subtitle = arguments.swarm.described();
            let live = Live::new(node, arguments.topics.clone(), Arc::clone(&types));
            (System::Live(Box::new(live)), types, subtitle)
        }
        [file] if arguments.topics.len() == 1 => {
            let recorded = Recorded::open(file.as_ref(), types)?;
            // The page has little room, and a file's name tells more than its folders.
            let name = Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
            (System::Recorded(Box::new(recorded)), Arc::default(), name.unwrap_or_else(|| (*file).clone()))
        }
        _ => return Err("name one recording, or topics of the running system; not both".into()),
    };
    let opened = |url: &str| {
        anstream::println!("{url}");
        if !arguments.no_open && !open_browser(url) {
            anstream::eprintln!("noctule: no browser could be started; open the address above in one");
        }
    };
    let config = PageConfig { listen: arguments.listen, subtitle };
    page::run(system, &types, &config, &opened, &|| stop.is_due())?;
    Ok(Outcome::Done)
}
