//! The controller: 24 joints and the operator's hands in, commands out. `templates/program.rs.j2` has its text.
// Its text is generated, and it prints.
#![allow(clippy::all, clippy::print_stdout)]

include!(concat!(env!("OUT_DIR"), "/noctule.rs"));
include!(concat!(env!("OUT_DIR"), "/rust/main_controller.rs"));
