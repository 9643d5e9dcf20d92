//! `noctule.Node`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use noctule::Qos;
use noctule::request::{ServiceTypes, TypeRef};
use noctule_timebase::Span;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::action::{self, ActionClient, ActionServer, Hashes, no_action};
use crate::argument::{self, NoctuleError, closed, not_opened};
use crate::known::{KnownEndpoint, KnownNode};
use crate::parameter::{ParameterClient, Parameters, not_there};
use crate::publisher::Publisher;
use crate::request::{Client, Server, not_served};
use crate::subscriber::Subscriber;

/// A participant of the swarm, with one thread of its own.
///
/// ``name`` is for people and need not be unique. Nodes of different ``domain`` (0 to 5000) do not see each other.
/// ``static_peers`` are announced to by unicast where multicast does not reach: ``"192.168.1.7"`` (all nodes there) or
/// ``"192.168.1.7:40123"`` (one). ``swarm_key`` is the file with the swarm's key. ``interface``: only the interface with this IPv4 address.
/// ``share_with_group``: members of this group (its number) may read through shared memory, too. ``shared_memory=False``: samples go by UDP
/// even to nodes of this host. ``unacknowledged_bytes_max``: kept in all for readers of other hosts, default 256 MiB. ``on_notice(kind,
/// sentence)`` gets what would go to standard error, on the node's thread.
///
/// Raises ``ValueError`` for what cannot be used, ``NoctuleError`` if the system gives no socket.
#[pyclass(module = "noctule", frozen)]
pub(crate) struct Node {
    /// Publishers and subscribers have a share: the last of them ends the node's thread.
    node: Mutex<Option<Arc<noctule::Node>>>,
}

#[pymethods]
impl Node {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python, named where they are given")]
    #[pyo3(signature = (name, *, domain=0, static_peers=Vec::new(), swarm_key=None, interface=None, share_with_group=None,
        shared_memory=true, unacknowledged_bytes_max=None, on_notice=None), text_signature = "(name, *, domain=0, static_peers=(), swarm_key=None, interface=None, share_with_group=None, shared_memory=True, unacknowledged_bytes_max=None, on_notice=None)")]
    fn new(
        py: Python<'_>,
        name: &str,
        domain: i64,
        static_peers: Vec<String>,
        swarm_key: Option<PathBuf>,
        interface: Option<&str>,
        share_with_group: Option<i64>,
        shared_memory: bool,
        unacknowledged_bytes_max: Option<usize>,
        on_notice: Option<Py<PyAny>>,
    ) -> PyResult<Node> {
        let mut builder = noctule::Node::builder(name).domain(argument::whole("domain", domain, 0..=5000)?);
        for peer in &static_peers {
            builder = builder.static_peer(peer);
        }
        if let Some(file) = swarm_key {
            builder = builder.swarm_key(file);
        }
        if let Some(address) = interface {
            let wrong = |_| {
                PyValueError::new_err(format!(
                    "{address} is no IPv4 address of an interface, and IPv6 is not supported here; write e.g. 192.168.1.7"
                ))
            };
            builder = builder.interface(address.parse().map_err(wrong)?);
        }
        if let Some(group) = share_with_group {
            builder = builder.share_with_group(argument::whole("share_with_group", group, 0..=u32::MAX)?);
        }
        if !shared_memory {
            builder = builder.without_shared_memory();
        }
        if let Some(bytes) = unacknowledged_bytes_max {
            builder = builder.unacknowledged_bytes_max(bytes);
        }
        if let Some(call) = on_notice {
            builder = builder.on_notice(move |notice| {
                // None while the interpreter ends.
                let _ = Python::try_attach(|py| {
                    if let Err(error) = call.call1(py, (notice.kind(), notice.to_string())) {
                        error.write_unraisable(py, None);
                    }
                });
            });
        }
        let node = py.detach(|| builder.open()).map_err(|error| not_opened(&error))?;
        Ok(Node { node: Mutex::new(Some(Arc::new(node))) })
    }

    /// Open a topic for writing.
    ///
    /// The settings are those of DDS and ROS 2. ``type_name`` and ``type_hash``: a reader that expects another type
    /// gets a notice. ``format``: what the bytes are, ``"cdr"``, ``"json"``, ``"msgpack"`` and so on, for typed readers. ``reliability``: ``"best_effort"`` (sent once), ``"deadline_bound"`` (repaired as long as it can still
    /// arrive by its deadline, but for the share ``tolerable_loss``) or ``"reliable"``. ``keep_last``: samples that a reader may lag behind, 1 to 65535.
    /// ``transient_local``: late joiners get the history first. ``deadline``: a sample at least this often, seconds.
    /// ``lifespan``: older samples are not delivered, seconds. ``payload_bytes_max``: longest sample. ``borrows``:
    /// samples that all readers of this host together may hold at once. ``multicast``: readers of other hosts are sent each
    /// datagram once, to a group; not for ``"reliable"``. ``keep_all``: no sample gives way to a newer one; while a reader has
    /// ``keep_last`` of them still to read, publishing raises ``BlockingIOError``, if both are ``"reliable"`` and the reader has no
    /// ``keep_last`` of its own. ``linger``: closing a ``"reliable"`` publisher waits so many
    /// seconds for readers of other hosts to acknowledge what was published.
    #[expect(clippy::too_many_arguments, reason = "keywords of Python, named where they are given")]
    #[pyo3(signature = (topic, *, type_name="bytes", type_hash=0, format=None, reliability="best_effort", keep_last=8,
        transient_local=false, deadline=None, tolerable_loss=0.0001, lifespan=None, payload_bytes_max=65536, borrows=7,
        multicast=false, keep_all=false, linger=1.0))]
    fn publisher(
        &self,
        topic: &str,
        type_name: &str,
        type_hash: u64,
        format: Option<&str>,
        reliability: &str,
        keep_last: i64,
        transient_local: bool,
        deadline: Option<f64>,
        tolerable_loss: f64,
        lifespan: Option<f64>,
        payload_bytes_max: i64,
        borrows: i64,
        multicast: bool,
        keep_all: bool,
        linger: f64,
    ) -> PyResult<Publisher> {
        let node = self.node()?;
        let mut builder = node
            .publisher(topic)
            .type_name(type_name, type_hash)
            .qos(argument::qos(
                reliability,
                Some(keep_last),
                transient_local,
                deadline,
                lifespan,
                tolerable_loss,
            )?)
            .payload_bytes_max(argument::whole("payload_bytes_max", payload_bytes_max, 0..=u32::MAX)?)
            .borrows(argument::whole("borrows", borrows, 0..=u32::MAX)?)
            .multicast(multicast)
            .linger(argument::timeout(Some(linger))?.unwrap_or_default());
        if keep_all {
            builder = builder.keep_all(argument::whole("keep_last", keep_last, 1..=65535)?);
        }
        if let Some(name) = format {
            builder = builder.format(argument::format(name)?);
        }
        let publisher = builder.open().map_err(|error| not_opened(&error))?;
        Ok(Publisher::new(publisher, node))
    }

    /// Open a topic for reading; publishers are found from now on.
    ///
    /// The settings are those of DDS and ROS 2. ``type_name`` and ``type_hash``: the type that is expected, default
    /// any. ``formats``: those that are understood, default any. ``reliability``, ``transient_local`` (the publisher's history first) and ``deadline`` (seconds) are
    /// requested: a publisher that offers less is reported on both sides. ``lifespan``: older samples are not
    /// taken, seconds. ``wait``: ``"block"`` (sleep in the kernel), ``"spin"`` (fastest, burns a core) or ``"hybrid"``
    /// (poll for 50 µs, then sleep). ``borrows``: samples of one publisher that may be held at once, 1 to 7. ``keep_last``:
    /// samples of each publisher that may wait to be received, default the publisher's own history. ``keep_all``: no sample gives way to a newer one;
    /// while ``keep_last`` of a ``"reliable"`` publisher of another host wait here, it keeps the others. ``ignore_local``: samples of the same node are not received.
    #[expect(clippy::too_many_arguments, reason = "keywords of Python, named where they are given")]
    #[pyo3(signature = (topic, *, type_name=None, type_hash=0, formats=None, reliability="best_effort", transient_local=false,
        deadline=None, tolerable_loss=0.0001, lifespan=None, wait="block", borrows=2, keep_last=None, keep_all=false,
        ignore_local=false))]
    fn subscriber(
        &self,
        topic: &str,
        type_name: Option<&str>,
        type_hash: u64,
        formats: Option<Vec<String>>,
        reliability: &str,
        transient_local: bool,
        deadline: Option<f64>,
        tolerable_loss: f64,
        lifespan: Option<f64>,
        wait: &str,
        borrows: i64,
        keep_last: Option<i64>,
        keep_all: bool,
        ignore_local: bool,
    ) -> PyResult<Subscriber> {
        let node = self.node()?;
        let mut builder = node
            .subscriber(topic)
            .qos(argument::qos(reliability, None, transient_local, deadline, lifespan, tolerable_loss)?)
            .wait(argument::wait(wait)?)
            .borrows(argument::whole("borrows", borrows, 1..=7)?)
            .ignore_local(ignore_local);
        if let Some(name) = type_name {
            builder = builder.type_name(name, type_hash);
        }
        let depth = keep_last.map(|depth| argument::whole("keep_last", depth, 1..=65535)).transpose()?;
        builder = match depth {
            depth if keep_all => builder.keep_all(depth.unwrap_or(Qos::default().depth)),
            Some(depth) => builder.keep_last(depth),
            None => builder,
        };
        if let Some(names) = formats {
            let formats = names.iter().map(|name| argument::format(name)).collect::<PyResult<Vec<_>>>()?;
            builder = builder.formats(&formats);
        }
        let subscriber = builder.open().map_err(|error| not_opened(&error))?;
        Ok(Subscriber::new(subscriber, node))
    }

    /// Call a service, with messages as bytes of CDR.
    ///
    /// ``request_type``, ``response_type``: name and hash, the same on both sides. ``deadline``: how long a call waits, seconds. ``idempotent``:
    /// another server is asked if the first one ends, so a request may be executed twice. ``payload_bytes_max``: of a request.
    #[expect(clippy::too_many_arguments, reason = "keywords of Python, named where they are given")]
    #[pyo3(signature = (service, *, request_type=("bytes".into(), 0), response_type=("bytes".into(), 0), deadline=5.0,
        idempotent=false, payload_bytes_max=65536))]
    fn client(
        &self,
        service: &str,
        request_type: (String, u64),
        response_type: (String, u64),
        deadline: f64,
        idempotent: bool,
        payload_bytes_max: i64,
    ) -> PyResult<Client> {
        let node = self.node()?;
        let client = node
            .raw_client(service, types(request_type, response_type))
            .deadline(argument::timeout(Some(deadline))?.unwrap_or_default())
            .idempotent(idempotent)
            .payload_bytes_max(argument::whole("payload_bytes_max", payload_bytes_max, 1..=u32::MAX)?)
            .open()
            .map_err(|error| not_served(&error))?;
        Ok(Client::new(client, node))
    }

    /// Serve a service, with messages as bytes of CDR; see ``client``. ``payload_bytes_max``: of a response.
    #[pyo3(signature = (service, *, request_type=("bytes".into(), 0), response_type=("bytes".into(), 0), payload_bytes_max=65536))]
    fn server(
        &self,
        service: &str,
        request_type: (String, u64),
        response_type: (String, u64),
        payload_bytes_max: i64,
    ) -> PyResult<Server> {
        let node = self.node()?;
        let server = node
            .raw_server(service, types(request_type, response_type))
            .payload_bytes_max(argument::whole("payload_bytes_max", payload_bytes_max, 1..=u32::MAX)?)
            .open()
            .map_err(|error| not_served(&error))?;
        Ok(Server::new(server, node))
    }

    /// Send goals of an action, with messages as bytes of CDR. ``type_name``: ``"package/action/Name"``; ``hashes``: of request and response of ``send_goal`` and of
    /// ``get_result``, and of feedback, 0: any definition. ``deadline``: how long a goal waits to be accepted, ``result_deadline``: how long it may take, seconds.
    #[expect(clippy::too_many_arguments, reason = "keywords of Python, named where they are given")]
    #[pyo3(signature = (action, *, type_name, hashes=(0, 0, 0, 0, 0), deadline=5.0, result_deadline=86400.0, payload_bytes_max=65536))]
    fn action_client(
        &self,
        action: &str,
        type_name: &str,
        hashes: Hashes,
        deadline: f64,
        result_deadline: f64,
        payload_bytes_max: i64,
    ) -> PyResult<ActionClient> {
        let node = self.node()?;
        let client = node
            .raw_action_client(action, action::types(type_name, hashes))
            .deadline(argument::timeout(Some(deadline))?.unwrap_or_default())
            .result_deadline(argument::timeout(Some(result_deadline))?.unwrap_or_default())
            .payload_bytes_max(argument::whole("payload_bytes_max", payload_bytes_max, 1..=u32::MAX)?)
            .open()
            .map_err(|error| no_action(&error))?;
        Ok(ActionClient::new(client, node))
    }

    /// Execute goals of an action, with messages as bytes of CDR; see ``action_client``. ``keep_results``: seconds from the end of a goal; ``empty_result``: a
    /// ``…_GetResult_Response`` for goals without a result; ``payload_bytes_max``: of results and feedback.
    #[expect(clippy::too_many_arguments, reason = "keywords of Python, named where they are given")]
    #[pyo3(signature = (action, *, type_name, hashes=(0, 0, 0, 0, 0), keep_results=10.0, empty_result=None, payload_bytes_max=65536))]
    fn action_server(
        &self,
        action: &str,
        type_name: &str,
        hashes: Hashes,
        keep_results: f64,
        empty_result: Option<&[u8]>,
        payload_bytes_max: i64,
    ) -> PyResult<ActionServer> {
        let node = self.node()?;
        let mut builder = node
            .raw_action_server(action, action::types(type_name, hashes))
            .keep_results(argument::timeout(Some(keep_results))?.unwrap_or_default())
            .payload_bytes_max(argument::whole("payload_bytes_max", payload_bytes_max, 1..=u32::MAX)?);
        if let Some(response) = empty_result {
            builder = builder.empty_result(response);
        }
        Ok(ActionServer::new(builder.open().map_err(|error| no_action(&error))?, node))
    }

    /// Have parameters that other programs read and set, under the name that ROS 2 knows a node by, such as ``"/arm"``: none at first.
    fn parameters(&self, name: &str) -> PyResult<Parameters> {
        let node = self.node()?;
        Ok(Parameters::new(node.parameters(name).map_err(|error| not_there(&error))?, node))
    }

    /// Read and set the parameters of another node. ``deadline``: how long each call waits, seconds.
    #[pyo3(signature = (name, *, deadline=5.0))]
    fn parameter_client(&self, name: &str, deadline: f64) -> PyResult<ParameterClient> {
        let node = self.node()?;
        let deadline = argument::timeout(Some(deadline))?.unwrap_or_default();
        let client = node.parameter_client(name, deadline).map_err(|error| not_served(&error))?;
        Ok(ParameterClient::new(client, node))
    }

    /// Describe a type to other nodes on their request, so that their tools show samples as fields; typed publishers and subscribers do it.
    ///
    /// Returns whether it was kept: not if ``description`` is longer than 64 KiB or the node describes thousands of types already. Raises ``ValueError`` for a
    /// text that is no description.
    fn describe(&self, description: &str) -> PyResult<bool> {
        if description.len() > noctule::formats::description::DESCRIPTION_BYTES_MAX {
            return Ok(false);
        }
        match self.node()?.describe(description) {
            Ok(_) => Ok(true),
            Err(noctule::DescribeError::Text(error)) => Err(PyValueError::new_err(error.to_string())),
            Err(_) => Ok(false),
        }
    }

    /// Now on the node's clock, in nanoseconds; source times are given in it.
    fn now_ns(&self) -> PyResult<i64> {
        Ok(self.node()?.now().ns())
    }

    /// A stamp of another clock of this machine on the node's, and how far it may be wrong, both in nanoseconds. ``clock``: ``"monotonic"`` (V4L2,
    /// most drivers), ``"realtime"`` (the wall clock) or ``"tai"`` (PTP). The bound holds unless that clock was stepped between the stamp and now.
    fn source_time_of(&self, clock: &str, stamp_ns: i64) -> PyResult<(i64, Option<i64>)> {
        let clock = match clock {
            "monotonic" => noctule::StampClock::Monotonic,
            "realtime" => noctule::StampClock::Realtime,
            "tai" => noctule::StampClock::Tai,
            other => {
                let why =
                    format!("no clock is called {other:?}; there are 'monotonic', 'realtime' and 'tai'");
                return Err(PyValueError::new_err(why));
            }
        };
        let time = self.node()?.source_time_of(clock, stamp_ns);
        let time = time.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((time.time.ns(), time.bound.map(Span::ns)))
    }

    /// The node's number, 32 hexadecimal digits.
    #[getter]
    fn id(&self) -> PyResult<String> {
        Ok(self.node()?.id().to_string())
    }

    /// Every other node.
    fn nodes(&self) -> PyResult<Vec<KnownNode>> {
        Ok(self.node()?.nodes().into_iter().map(KnownNode::from).collect())
    }

    /// Every endpoint of other nodes.
    fn endpoints(&self) -> PyResult<Vec<KnownEndpoint>> {
        Ok(self.node()?.endpoints().into_iter().map(KnownEndpoint::from).collect())
    }

    /// Counts of the node's sockets, by name: datagrams sent and received, and their faults.
    fn counters(&self) -> PyResult<BTreeMap<&'static str, u64>> {
        let node = self.node()?;
        let (received, sent) = (node.counters(), node.send_counters());
        Ok(BTreeMap::from([
            ("sent_datagrams", sent.datagrams),
            ("send_calls", sent.system_calls),
            ("send_would_block", sent.would_block),
            ("send_failed", sent.failed),
            ("unacknowledged_bytes", node.unacknowledged_bytes() as u64),
            ("malformed", received.discovery.malformed + received.malformed_group),
            ("strangers", received.strangers),
            ("impostors", received.impostors),
            ("refused_full", received.discovery.refused_full),
            ("refused_matches", received.discovery.refused_matches),
        ]))
    }

    /// Counts of the traffic with a node of another host, by name; ``None`` if there never was any. ``other``: its number.
    fn link_counters(&self, other: &str) -> PyResult<Option<BTreeMap<&'static str, u64>>> {
        let node = self.node()?;
        Ok(node.link_counters(number(&node, other)?).map(|link| {
            BTreeMap::from([
                ("sent_datagrams", link.sent_datagrams),
                ("sent_bytes", link.sent_bytes),
                ("lost_packets", link.lost_packets),
                ("repeated", link.repeated),
                ("given_up", link.given_up),
                ("received_datagrams", link.received_datagrams),
                ("duplicates", link.duplicates),
                ("delivered", link.delivered),
            ])
        }))
    }

    /// Ask another node for its time, and wait for the reply: when the request was sent, arrived, was replied to and the reply received, in
    /// nanoseconds, the second and third by the other's clock. ``other``: its number.
    fn ping(&self, py: Python<'_>, other: &str, timeout: f64) -> PyResult<(i64, i64, i64, i64)> {
        let node = self.node()?;
        let other = number(&node, other)?;
        let timeout = argument::timeout(Some(timeout))?.unwrap_or_default();
        let times = py.detach(|| node.ping(other, timeout));
        let times = times.map_err(|error| NoctuleError::new_err(error.to_string()))?;
        Ok((times.t1.ns(), times.t2.ns(), times.t3.ns(), times.t4.ns()))
    }

    /// Say goodbye, or leave that to the last of its publishers and subscribers. May be called twice.
    fn close(&self, py: Python<'_>) {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Its thread ends within.
        py.detach(|| drop(node));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

impl Node {
    fn node(&self) -> PyResult<Arc<noctule::Node>> {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        node.clone().ok_or_else(|| closed("node"))
    }
}

/// The node with this number.
fn number(node: &noctule::Node, other: &str) -> PyResult<noctule::NodeId> {
    let known = node.nodes().into_iter().find(|known| known.id.to_string() == other);
    let why = || PyValueError::new_err(format!("no node {other} is known; take an id from nodes()"));
    known.map(|known| known.id).ok_or_else(why)
}

fn types(request: (String, u64), response: (String, u64)) -> ServiceTypes {
    let type_ref = |(name, hash)| TypeRef { name, hash };
    ServiceTypes { request: type_ref(request), response: type_ref(response) }
}
