//! Gives the shared library the name by which programs find it, which changes when its interface does.

#![allow(clippy::print_stdout)] // so are answers given to cargo

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnoctule.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
