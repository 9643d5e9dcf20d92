//! The subset of OMG IDL 4.2 that users of ROS 2 and DDS write: modules, structs, enums, typedefs and constants.
//!
//! `module pkg { module msg { struct T …` is `pkg/msg/T`; with one module the second is `msg`. An enum is a `uint32` whose
//! variants are constants of each struct that has it. What is not supported is refused by its name and line.

mod parser;
mod tokens;

use crate::diagnostic::{Fault, Faults, Source};
use crate::model::Struct;

/// All structs of a file, and what somebody should look at.
#[derive(Debug)]
pub struct Parsed {
    /// In the order of the file.
    pub structs: Vec<Struct>,
    /// Unknown annotations.
    pub warnings: Vec<Fault>,
}

/// Reads a file of IDL.
///
/// # Errors
/// The first thing that is wrong or not supported, with its place.
pub fn parse(source: &Source) -> Result<Parsed, Faults> {
    let tokens = tokens::read(source)?;
    let mut parser = parser::Parser::new(source, tokens);
    parser.file()?;
    Ok(parser.finish())
}

#[cfg(test)]
mod tests;
