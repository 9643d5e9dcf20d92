//! Prints the table of clock estimators; `cargo xtask sweep time-sync` commits it.

#![allow(clippy::print_stdout)]

fn main() {
    print!("{}", noctule_lab::sync::sweep::table());
}
