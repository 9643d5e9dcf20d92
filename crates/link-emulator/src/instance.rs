//! Links with names: brought up by one command, entered, listed and taken down by others.
//!
//! A link is a process. It holds the namespaces and listens on an abstract socket, whose name only
//! one process can have and which vanishes with it. The state directory says which links there are:
//! one small file each, with process number and start time, so that a file whose process was killed is
//! recognised, and removed by the next process that looks.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use noctule_sys::local_socket::{LocalListener, LocalSocket, own_user};
use noctule_sys::namespace::NetworkNamespace;
use noctule_sys::process::start_time_ticks;
use rustix::event::{PollFd, PollFlags, poll};
use serde::{Deserialize, Serialize};

use crate::forwarder::{Forwarder, ForwarderError, ForwarderSettings};
use crate::report::Report;
use crate::star::node_name;

/// Where links leave their state: gone with a reboot, as they are.
pub const STATE_DIRECTORY: &str = "/run/noctule/links";
/// Longest name.
pub const NAME_BYTES_MAX: usize = 32;
/// How long a link may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer: 26 nodes with 25 channels each.
const ANSWER_BYTES_MAX: usize = 200 << 10;
const QUESTION_BYTES_MAX: usize = 16;

/// Errors of a named link.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// A name that could be mistaken.
    #[error("\"{0}\" is no name of a link; take 1 to {NAME_BYTES_MAX} letters, digits, - or _")]
    Name(String),
    /// There is one.
    #[error("the link {0} is up already; take it down with `noctule link down {0}`, or choose another name")]
    Exists(String),
    /// There is none.
    #[error("there is no link {0}; `noctule link list` shows those that are up")]
    Missing(String),
    /// A node it does not have.
    #[error("the link {link} has no node \"{node}\"; it has {nodes}")]
    Node {
        /// The link.
        link: String,
        /// The name of the node requested.
        node: String,
        /// The nodes that it has.
        nodes: String,
    },
    /// No namespace.
    #[error("cannot create a network namespace ({0}); run as root")]
    Namespace(io::Error),
    /// The state directory.
    #[error("cannot write {path}: {error}; run as root, or make the folder writable", path = .path.display())]
    State {
        /// Which file or folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The link does not answer.
    #[error("the link {name} does not answer ({error}); end process {process} and bring it up again")]
    Silent {
        /// The link.
        name: String,
        /// Its process.
        process: u32,
        /// The system's reason.
        error: io::Error,
    },
    /// The forwarder.
    #[error(transparent)]
    Forwarder(#[from] ForwarderError),
}

/// Record of a link in the state directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Number of its process.
    pub process: u32,
    /// When that started, in clock ticks since boot.
    pub start_time_ticks: u64,
    /// Its specification as text.
    pub spec: String,
    /// Of its random numbers.
    pub seed: u64,
    /// Name and address of each node.
    pub nodes: Vec<(String, String)>,
}

/// A link held by this process.
#[derive(Debug)]
pub struct Instance {
    state: State,
    namespaces: Vec<NetworkNamespace>,
    forwarder: Forwarder,
    listener: LocalListener,
}

impl Instance {
    /// Brings a link up. It lasts as long as this value, and serves others in [`Self::serve`].
    pub fn up(name: &str, nodes: usize, settings: &ForwarderSettings) -> Result<Instance, InstanceError> {
        let name = checked(name)?;
        reclaim()?;
        // The name is ours from here on, or another process's.
        let listener = LocalListener::bind(&socket_name(name)).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => InstanceError::Exists(name.to_owned()),
            _ => InstanceError::Namespace(error),
        })?;
        let namespaces = (0..nodes).map(|_| NetworkNamespace::create()).collect::<io::Result<Vec<_>>>();
        let namespaces = namespaces.map_err(InstanceError::Namespace)?;
        let forwarder = Forwarder::start(&namespaces.iter().collect::<Vec<_>>(), settings)?;
        let process = std::process::id();
        let addresses = forwarder.addresses().iter().enumerate();
        let state = State {
            name: name.to_owned(),
            process,
            start_time_ticks: start_time_ticks(process).unwrap_or(0),
            spec: settings.spec.to_string(),
            seed: settings.seed,
            nodes: addresses.map(|(node, address)| (node_name(node), address.to_string())).collect(),
        };
        write(&state)?;
        Ok(Instance { state, namespaces, forwarder, listener })
    }

    /// Its record in the state directory.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Answers other processes of this user until one asks to stop or `stop` becomes readable;
    /// then takes the link down. The report is the last.
    pub fn serve(self, stop: &impl AsFd) -> Result<Report, InstanceError> {
        loop {
            let mut descriptors =
                [PollFd::new(&self.listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
            // A signal interrupts; what it means, `stop` says.
            let _ = poll(&mut descriptors, None);
            if !descriptors[1].revents().is_empty() {
                return self.down(None);
            }
            while let Ok(Some(socket)) = self.listener.accept() {
                let own = socket.credentials().is_ok_and(|peer| peer.uid == own_user());
                if own && let Some(waiting) = self.answer(socket) {
                    return self.down(Some(&waiting));
                }
            }
        }
    }

    /// Answers one question; returns the socket of the process that asked to stop.
    fn answer(&self, socket: LocalSocket) -> Option<LocalSocket> {
        let mut wait = [PollFd::new(&socket, PollFlags::IN)];
        // The question follows the connection at once; a process that does not ask, does not stop the others.
        let asked = poll(&mut wait, Some(&noctule_sys::clock::timespec(100_000_000))).unwrap_or(0) > 0;
        let mut question = [0; QUESTION_BYTES_MAX];
        let length = if asked { socket.receive(&mut question).ok()?.length_bytes } else { return None };
        let question = &question[..length.min(QUESTION_BYTES_MAX)];
        // The requester may be gone, which is no error.
        match question {
            b"report" => {
                let report = self.forwarder.report().ok()?;
                let _ = socket.send(&serde_json::to_vec(&report).unwrap_or_default(), &[]);
            }
            b"stop" => return Some(socket),
            [b'n', number] => {
                if let Some(namespace) = self.namespaces.get(usize::from(*number)) {
                    let _ = socket.send(b"n", &[namespace.descriptor().as_fd()]);
                }
            }
            _ => {}
        }
        None
    }

    fn down(self, waiting: Option<&LocalSocket>) -> Result<Report, InstanceError> {
        let Instance { state, namespaces, forwarder, listener } = self;
        let report = forwarder.stop()?;
        // The file before the name: the next link of this name must not lose its file to us.
        let path = path_of(&state.name);
        fs::remove_file(&path).map_err(|error| InstanceError::State { path, error })?;
        drop((namespaces, listener));
        if let Some(waiting) = waiting {
            let _ = waiting.send(&serde_json::to_vec(&report).unwrap_or_default(), &[]);
        }
        Ok(report)
    }
}

/// The links that are up, by name. Files of those that were killed are removed.
pub fn list() -> Result<Vec<State>, InstanceError> {
    reclaim()
}

/// Counters of a link since its start.
pub fn report(name: &str) -> Result<Report, InstanceError> {
    let state = state(name)?;
    let answer = ask(&state, b"report")?;
    serde_json::from_slice(&answer.bytes).map_err(|error| silent(&state, error.into()))
}

/// Takes a link down; gives what it did.
pub fn down(name: &str) -> Result<Report, InstanceError> {
    let state = state(name)?;
    let answer = ask(&state, b"stop")?;
    serde_json::from_slice(&answer.bytes).map_err(|error| silent(&state, error.into()))
}

/// The namespace of a node of a link.
pub fn namespace(name: &str, node: &str) -> Result<NetworkNamespace, InstanceError> {
    let state = state(name)?;
    let Some(number) = state.nodes.iter().position(|(known, _)| known == node) else {
        let nodes: Vec<&str> = state.nodes.iter().map(|(name, _)| name.as_str()).collect();
        let nodes = nodes.join(", ");
        return Err(InstanceError::Node { link: name.to_owned(), node: node.to_owned(), nodes });
    };
    let descriptor = ask(&state, &[b'n', number as u8])?.descriptors.pop();
    let descriptor = descriptor.ok_or_else(|| silent(&state, io::ErrorKind::InvalidData.into()))?;
    Ok(NetworkNamespace::from_descriptor(descriptor))
}

fn checked(name: &str) -> Result<&str, InstanceError> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if fits { Ok(name) } else { Err(InstanceError::Name(name.chars().take(40).collect())) }
}

fn socket_name(name: &str) -> Vec<u8> {
    format!("noctule/link/{name}").into_bytes()
}

fn path_of(name: &str) -> PathBuf {
    Path::new(STATE_DIRECTORY).join(format!("{name}.json"))
}

fn state(name: &str) -> Result<State, InstanceError> {
    let name = checked(name)?;
    let found = reclaim()?.into_iter().find(|state| state.name == name);
    found.ok_or_else(|| InstanceError::Missing(name.to_owned()))
}

fn silent(state: &State, error: io::Error) -> InstanceError {
    InstanceError::Silent { name: state.name.clone(), process: state.process, error }
}

struct Answer {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

fn ask(state: &State, question: &[u8]) -> Result<Answer, InstanceError> {
    let exchange = || {
        let socket = LocalSocket::connect(&socket_name(&state.name), ANSWER_TIMEOUT)?;
        socket.send(question, &[])?;
        let mut bytes = vec![0; ANSWER_BYTES_MAX];
        let packet = socket.receive(&mut bytes)?;
        if packet.truncated || packet.length_bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(packet.length_bytes);
        Ok(Answer { bytes, descriptors: packet.descriptors })
    };
    exchange().map_err(|error| silent(state, error))
}

fn write(state: &State) -> Result<(), InstanceError> {
    let path = path_of(&state.name);
    let unfinished = path.with_extension("new");
    let text = serde_json::to_string(state).unwrap_or_default();
    let written = fs::create_dir_all(STATE_DIRECTORY)
        .and_then(|()| fs::write(&unfinished, text))
        .and_then(|()| fs::rename(&unfinished, &path));
    written.map_err(|error| InstanceError::State { path, error })
}

/// Reads the state directory and removes what no living process stands behind.
fn reclaim() -> Result<Vec<State>, InstanceError> {
    let cannot = |path: &Path| {
        let path = path.to_owned();
        move |error| InstanceError::State { path, error }
    };
    let directory = Path::new(STATE_DIRECTORY);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(directory)(error)),
    };
    let mut states = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        // Gone meanwhile: its link went down while we looked.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let state = serde_json::from_str::<State>(&text).ok();
        let alive = state.filter(|state| start_time_ticks(state.process) == Some(state.start_time_ticks));
        match alive {
            Some(state) => states.push(state),
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(&path)(error)),
                _ => {}
            },
        }
    }
    states.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(states)
}
