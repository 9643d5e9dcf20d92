//! Lines put together.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use mavlink::dialects::dynamic::DynamicDialect;
use noctule::{Node, NodeError};
use noctule_xrce::{AgentConfig, References};

use crate::bus::{Definitions, Nodes, Place};
use crate::line::{Line, LineStatus};
use crate::mavlink::bridge::{Bridge, MavlinkError, MavlinkLine, MavlinkStatus};
use crate::serial::{Device, SerialDriver, SerialPort, hold};
use crate::tcp::{SharedTcpPort, TcpDriver};
use crate::udp::UdpDriver;

/// Why a gateway cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Nothing to listen on.
    #[error("a gateway without lines serves nobody; give it --udp, --tcp, --serial or --mavlink")]
    NoLines,
    /// A port that cannot be had.
    #[error("{kind} port {port} cannot be had ({cause}); stop the agent that has it, or choose another")]
    Port {
        /// `UDP` or `TCP`.
        kind: &'static str,
        /// Its number.
        port: u16,
        /// The operating system's error.
        cause: io::Error,
    },
    /// A speed of zero.
    #[error("{path} cannot run at 0 baud; write e.g. {path}:921600")]
    Baud {
        /// The device.
        path: String,
    },
    /// An autopilot cannot be put on the bus.
    #[error(transparent)]
    Mavlink(#[from] MavlinkError),
    /// No node for autopilots.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// No thread or descriptor is left.
    #[error("the system gives no more threads or descriptors: {0}")]
    System(#[from] io::Error),
}

/// A running gateway. Dropping it ends its threads and takes its clients off the bus.
#[derive(Debug)]
pub struct Gateway {
    lines: Vec<Arc<Line>>,
    threads: Vec<JoinHandle<()>>,
    ports: Vec<(&'static str, u16)>,
    autopilots: Vec<(MavlinkLine, Bridge)>,
}

/// Settings of a gateway that is to be opened.
#[derive(Clone, Default)]
#[must_use = "call attach or open"]
pub struct GatewayBuilder {
    udp: Vec<u16>,
    tcp: Vec<u16>,
    serial: Vec<Device>,
    mavlink: Vec<MavlinkLine>,
    dialect: Option<DynamicDialect>,
    references: References,
    config: AgentConfig,
    definitions: Option<Definitions>,
}

impl Gateway {
    /// Settings of a gateway.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::default()
    }

    /// Ports in the order in which they were named, `udp` ones first: those that were given as 0 have
    /// numbers now.
    pub fn ports(&self) -> &[(&'static str, u16)] {
        &self.ports
    }

    /// Every line with its clients.
    pub fn status(&self) -> Vec<LineStatus> {
        self.lines.iter().map(|line| line.status()).collect()
    }

    /// Every autopilot.
    pub fn autopilots(&self) -> Vec<(MavlinkLine, MavlinkStatus)> {
        self.autopilots.iter().map(|(line, bridge)| (line.clone(), bridge.status())).collect()
    }

    /// The next notice, each once.
    pub fn poll_notice(&self) -> Option<String> {
        self.lines.iter().find_map(|line| line.poll_notice())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.lines.iter().for_each(|line| line.stop());
        for thread in self.threads.drain(..) {
            // It panics only by a bug, which has been printed then.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for GatewayBuilder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let GatewayBuilder { udp, tcp, serial, mavlink, .. } = self;
        out.debug_struct("GatewayBuilder")
            .field("udp", udp)
            .field("tcp", tcp)
            .field("serial", serial)
            .field("mavlink", mavlink)
            .finish_non_exhaustive()
    }
}

impl GatewayBuilder {
    /// Listens on a UDP port, of all interfaces; also for clients that look for agents. 8888 is usual.
    pub fn udp(mut self, port: u16) -> Self {
        self.udp.push(port);
        self
    }

    /// Listens on a TCP port, of all interfaces.
    pub fn tcp(mut self, port: u16) -> Self {
        self.tcp.push(port);
        self
    }

    /// Serves a serial device, whenever it is there.
    pub fn serial(mut self, path: impl Into<PathBuf>, baud: u32) -> Self {
        self.serial.push(Device { path: path.into(), baud });
        self
    }

    /// Puts the autopilot at this line on the bus, whenever it is there.
    pub fn mavlink(mut self, line: MavlinkLine) -> Self {
        self.mavlink.push(line);
        self
    }

    /// A dialect of the user's own, besides MAVLink's common one.
    pub fn dialect(mut self, dialect: DynamicDialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets the names that clients may refer to.
    pub fn references(mut self, references: References) -> Self {
        self.references = references;
        self
    }

    /// Where definitions of clients' types are found: their topics have hashes and descriptions then, as typed ones have.
    pub fn definitions(mut self, definitions: Definitions) -> Self {
        self.definitions = Some(definitions);
        self
    }

    /// Sets the limits of each line's agent.
    pub fn limits(mut self, config: AgentConfig) -> Self {
        self.config = config;
        self
    }

    /// Starts, with all clients at this node, whatever DDS domain they name.
    ///
    /// # Errors
    /// A port that cannot be had. A serial device that is not there is waited for.
    pub fn attach(self, node: &Arc<Node>) -> Result<Gateway, GatewayError> {
        self.start(Place::One(Arc::clone(node)))
    }

    /// Starts, with a node of its own for each DDS domain that clients name.
    ///
    /// # Errors
    /// As [`attach`](GatewayBuilder::attach).
    pub fn open(self) -> Result<Gateway, GatewayError> {
        self.start(Place::EachDomain(Mutex::default()))
    }

    fn start(self, place: Place) -> Result<Gateway, GatewayError> {
        if self.udp.is_empty() && self.tcp.is_empty() && self.serial.is_empty() && self.mavlink.is_empty() {
            return Err(GatewayError::NoLines);
        }
        let nodes = Arc::new(Nodes { place, definitions: self.definitions.clone() });
        let mut gateway =
            Gateway { lines: Vec::new(), threads: Vec::new(), ports: Vec::new(), autopilots: Vec::new() };
        for line in &self.mavlink {
            let bridge = Bridge::open(line.clone(), &nodes.of_domain(0)?, self.dialect.clone())?;
            gateway.autopilots.push((line.clone(), bridge));
        }
        let line =
            |name, config, port| Line::new(name, config, self.references.clone(), Arc::clone(&nodes), port);
        for port in &self.udp {
            let kind = "UDP";
            let driver =
                UdpDriver::open(*port).map_err(|cause| GatewayError::Port { kind, port: *port, cause })?;
            let name = format!("udp {}", driver.port());
            gateway.ports.push(("udp", driver.port()));
            let line = line(name, self.config, driver.sender())?;
            gateway.run(line, move |line| driver.run(line))?;
        }
        for port in &self.tcp {
            let kind = "TCP";
            let driver =
                TcpDriver::open(*port).map_err(|cause| GatewayError::Port { kind, port: *port, cause })?;
            let name = format!("tcp {}", driver.port());
            gateway.ports.push(("tcp", driver.port()));
            let sender = SharedTcpPort::default();
            let line = line(name, self.config, Box::new(sender.clone()))?;
            gateway.run(line, move |line| driver.run(line, &sender))?;
        }
        for device in &self.serial {
            let name = device.path.display().to_string();
            if device.baud == 0 {
                return Err(GatewayError::Baud { path: name });
            }
            let sender = SerialPort::new();
            let config = AgentConfig { hold: hold(device.baud), ..self.config };
            let line = line(name, config, Box::new(sender.clone()))?;
            let driver = SerialDriver::new(device.clone(), sender);
            gateway.run(line, move |line| driver.run(line))?;
        }
        Ok(gateway)
    }
}

impl Gateway {
    fn run(&mut self, line: Arc<Line>, work: impl FnOnce(&Arc<Line>) + Send + 'static) -> io::Result<()> {
        self.lines.push(Arc::clone(&line));
        let thread = thread::Builder::new().name("noctule-line".to_owned()).spawn(move || work(&line))?;
        self.threads.push(thread);
        Ok(())
    }
}
