//! The private native module of the Python package `noctule`: the library's handles as Python classes,
//! and the estimators on NumPy arrays. It translates and decides nothing.

mod action;
mod argument;
mod generate;
mod known;
mod loan;
mod node;
mod parameter;
mod publisher;
mod request;
mod sample;
mod statistics;
mod subscriber;
mod sync;
mod wait_set;
mod waiting;

use pyo3::prelude::*;

/// `noctule._native`.
#[pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use super::action::{ActionClient, ActionServer, Goal, GoalEvent};
    #[pymodule_export]
    use super::argument::NoctuleError;
    #[pymodule_export]
    use super::generate::generate;
    #[pymodule_export]
    use super::known::{KnownEndpoint, KnownNode};
    #[pymodule_export]
    use super::loan::Loan;
    #[pymodule_export]
    use super::node::Node;
    #[pymodule_export]
    use super::parameter::{ParameterClient, Parameters};
    #[pymodule_export]
    use super::publisher::Publisher;
    #[pymodule_export]
    use super::request::{Client, NoReplyError, Reply, Request, Server};
    #[pymodule_export]
    use super::sample::{Age, Sample, SampleInfo};
    #[pymodule_export]
    use super::statistics::Statistics;
    #[pymodule_export]
    use super::subscriber::Subscriber;
    #[pymodule_export]
    use super::sync::{align, replay};
    #[pymodule_export]
    use super::wait_set::WaitSet;
}
