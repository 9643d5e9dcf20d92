//! The clock exchange between two processes.
//!
//! A [`Server`] answers, a [`Prober`] asks and estimates the server's clock, [`wire`] has the bytes.
//! Both are drivers: a socket, a clock, and a loop around cores that have neither. They run on the
//! thread that calls them.

pub(crate) mod arrival;
mod prober;
mod server;
mod warm_up;
pub mod wire;

use std::io;
use std::net::UdpSocket;

pub use arrival::{ArrivalCounters, Arrivals, SLEW_LIMIT_PPM};
pub use prober::{Measured, Prober, ProberCounters};
pub use server::{Server, ServerCounters};

/// The UDP port of the clock exchange unless another is named: below those of DDS, which begin at 7400.
pub const PORT: u16 = 7398;

/// The source of a datagram's receive time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StampSource {
    /// The kernel, before it wakes a thread; this process where the kernel's stamp is invalid.
    #[default]
    Kernel,
    /// This process, after it was woken.
    Process,
}

impl StampSource {
    fn apply(self, socket: &UdpSocket) -> io::Result<()> {
        match self {
            StampSource::Kernel => noctule_sys::datagram::stamp_arrivals(socket),
            StampSource::Process => Ok(()),
        }
    }
}
