//! Interface between the engine with its sessions and a machine: networks, nodes, and time that passes.
//!
//! The engine's tests have a machine of their own, on which a peer is a script and no time passes.

use std::fmt::Debug;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use noctule_peer::Line;
use noctule_sys::clock;
use noctule_sys::namespace::NetworkNamespace;
use noctule_timebase::Span;

use crate::network::{Emulation, Network, NetworkError};
use crate::node_process::{NodeFault, NodeProcess, Program};

/// Machine on which cells are measured.
pub(crate) trait Machine: Debug {
    /// `hosts` joined by the emulated link, or without one by veth.
    ///
    /// # Errors
    /// Why there is no such network.
    fn network(&self, hosts: u32, emulation: Option<Emulation<'_>>) -> Result<Network, NetworkError>;

    /// Starts one node of a peer on a host; `label` names it in faults.
    ///
    /// # Errors
    /// It cannot be started.
    fn start(
        &self,
        program: &Program,
        label: String,
        host: Option<&NetworkNamespace>,
    ) -> Result<Box<dyn Node>, NodeFault>;

    /// Returns after this long; at once if it is negative.
    fn sleep(&self, span: Span);
}

/// A node of a peer, driven line by line (docs/spec/peer-protocol.md).
pub(crate) trait Node {
    /// Sends one line.
    ///
    /// # Errors
    /// The node is gone.
    fn tell(&mut self, line: &Line) -> Result<(), NodeFault>;

    /// Waits for the answer with this verb. `doing` completes the sentence "… while {doing}".
    ///
    /// # Errors
    /// The node is gone, answers something else or nothing within `timeout`, or the user interrupted.
    fn expect(
        &mut self,
        verb: &str,
        doing: &str,
        timeout: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Line, NodeFault>;

    /// Asks the node to end and waits for it.
    ///
    /// # Errors
    /// It does not end in order.
    fn close(self: Box<Self>) -> Result<(), NodeFault>;
}

/// This machine: private networks, processes, its clock.
#[derive(Debug)]
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn network(&self, hosts: u32, emulation: Option<Emulation<'_>>) -> Result<Network, NetworkError> {
        match emulation {
            Some(emulation) => Network::emulated(hosts, emulation),
            None => Network::create(hosts),
        }
    }

    fn start(
        &self,
        program: &Program,
        label: String,
        host: Option<&NetworkNamespace>,
    ) -> Result<Box<dyn Node>, NodeFault> {
        Ok(Box::new(NodeProcess::start(program, label, host)?))
    }

    fn sleep(&self, span: Span) {
        clock::sleep_until(clock::now_ns() + span.ns());
    }
}

impl Node for NodeProcess {
    fn tell(&mut self, line: &Line) -> Result<(), NodeFault> {
        NodeProcess::tell(self, line)
    }

    fn expect(
        &mut self,
        verb: &str,
        doing: &str,
        timeout: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Line, NodeFault> {
        NodeProcess::expect(self, verb, doing, timeout, interrupted)
    }

    fn close(self: Box<Self>) -> Result<(), NodeFault> {
        NodeProcess::close(*self)
    }
}
