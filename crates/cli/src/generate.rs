//! `noctule gen …`

use std::error::Error;

use noctule_codegen::command;

use crate::Outcome;

pub(crate) use command::GenArguments;

pub(crate) fn run(arguments: &GenArguments) -> Result<Outcome, Box<dyn Error>> {
    Ok(match command::run(arguments)? {
        command::Outcome::Done => Outcome::Done,
        command::Outcome::NotValid => Outcome::NotValid,
    })
}
