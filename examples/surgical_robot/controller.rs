//! The controller: 24 joints and the operator's hands in, commands out. `templates/program.rs.j2` has its text.
#![allow(clippy::print_stdout)] // that is what it is for

include!(concat!(env!("OUT_DIR"), "/noctule.rs"));
include!(concat!(env!("OUT_DIR"), "/rust/main_controller.rs"));
