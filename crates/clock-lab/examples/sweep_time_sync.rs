//! Prints the table of clock estimators; `cargo xtask sweep time-sync` commits it.

#![allow(clippy::print_stdout)]

fn main() {
    print!("{}", noctule_clock_lab::sweep::table());
}
