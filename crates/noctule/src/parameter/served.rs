//! A node's parameters, served.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use noctule_discovery::Reliability;
use noctule_formats::Message;
use noctule_sys::clock::three_clocks;

use super::refusal::Refusal;
use super::store::{ParameterChanges, ParameterError, ParameterNames, Store};
use super::value::{ParameterDescriptor, ParameterType, ParameterValue};
use super::{MESSAGE_BYTES_MAX, PARAMETER_EVENTS, service};
use crate::error::NodeError;
use crate::generated::builtin_interfaces::msg::Time;
use crate::generated::rcl_interfaces::{msg, srv};
use crate::node::Node;
use crate::publisher::CdrPublisher;
use crate::request::{Server, ServiceError};
use crate::subscriber::{Ready, Subscriber, Wait, WaitSet, Waker};

/// Events that a reader may lag behind.
const EVENTS_DEPTH: u32 = 64;
/// Content of one event; more is sent as several.
const EVENT_BYTES: usize = 96 << 10;
/// A server whose samples are all held elsewhere is asked again after this.
const HELD_PAUSE: Duration = Duration::from_millis(1);

/// Why a node's parameters cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ParametersError {
    /// A service of theirs.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The topic of events.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// No thread.
    #[error("the system gives no more threads: {0}")]
    System(io::Error),
}

type Callback = Arc<dyn Fn(&[(String, ParameterValue)]) -> Result<(), Refusal> + Send + Sync>;

/// The parameters of a node, which other programs read and set while this lives. A thread of its own answers them.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let node = noctule::Node::new("arm")?;
/// let parameters = node.parameters("/arm")?;
/// parameters.declare("speed", 0.5)?;
/// parameters.on_set(|values| match values.iter().any(|(name, _)| name == "speed") {
///     true => Err("the arm moves; stop it first".into()),
///     false => Ok(()),
/// });
/// println!("{:?}", parameters.get("speed"));
/// # Ok(())
/// # }
/// ```
pub struct Parameters {
    shared: Arc<Served>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// State that the thread and the program share.
struct Served {
    name: String,
    is_over: AtomicBool,
    state: Mutex<State>,
    /// One sets at a time, while the callback runs without the state being locked.
    setting: Mutex<()>,
}

struct State {
    store: Store,
    events: CdrPublisher<msg::ParameterEvent>,
    callback: Option<Callback>,
}

/// One of the six.
enum Service {
    Describe(Server<srv::DescribeParameters_Request, srv::DescribeParameters_Response>),
    Types(Server<srv::GetParameterTypes_Request, srv::GetParameterTypes_Response>),
    Get(Server<srv::GetParameters_Request, srv::GetParameters_Response>),
    List(Server<srv::ListParameters_Request, srv::ListParameters_Response>),
    Set(Server<srv::SetParameters_Request, srv::SetParameters_Response>),
    SetAll(Server<srv::SetParametersAtomically_Request, srv::SetParametersAtomically_Response>),
}

impl Node {
    /// The parameters of this node, under the name that ROS 2 knows a node by, such as `/arm`: they are empty at first.
    ///
    /// # Errors
    /// A name that cannot travel, no room for their endpoints, no thread.
    pub fn parameters(&self, name: &str) -> Result<Parameters, ParametersError> {
        let events = self
            .publisher(PARAMETER_EVENTS)
            .reliability(Reliability::Reliable)
            .keep_last(EVENTS_DEPTH)
            .payload_bytes_max(MESSAGE_BYTES_MAX)
            .open_cdr()?;
        let mut services = [
            Service::Describe(open(self, &service(name, "describe_parameters"))?),
            Service::Types(open(self, &service(name, "get_parameter_types"))?),
            Service::Get(open(self, &service(name, "get_parameters"))?),
            Service::List(open(self, &service(name, "list_parameters"))?),
            Service::Set(open(self, &service(name, "set_parameters"))?),
            Service::SetAll(open(self, &service(name, "set_parameters_atomically"))?),
        ];
        let state = State { store: Store::default(), events, callback: None };
        let shared = Arc::new(Served {
            name: format!("/{}", name.trim_matches('/')),
            is_over: AtomicBool::new(false),
            state: Mutex::new(state),
            setting: Mutex::new(()),
        });
        let (mut set, theirs) = (WaitSet::new(Wait::Block), Arc::clone(&shared));
        let waker = set.waker();
        let thread = std::thread::Builder::new().name("noctule-param".into());
        let thread = thread.spawn(move || {
            while !theirs.is_over.load(Ordering::Acquire) {
                if let Ready::Sample(at) = set.wait(&mut services, None)
                    && services[at].serve(&theirs).is_err()
                {
                    // Its samples are held elsewhere, and would be found again at once.
                    set.wait::<&mut Subscriber>(&mut [], Some(HELD_PAUSE));
                }
            }
        });
        let thread = Some(thread.map_err(ParametersError::System)?);
        Ok(Parameters { shared, waker, thread })
    }
}

fn open<Q: Message, R: Message>(node: &Node, name: &str) -> Result<Server<Q, R>, ServiceError> {
    node.server(name).payload_bytes_max(MESSAGE_BYTES_MAX).open()
}

impl Parameters {
    /// Declares a parameter of the kind of this value.
    ///
    /// # Errors
    /// A name that parameters do not have or that is declared already, a value that is too long, [`PARAMETERS_MAX`](super::PARAMETERS_MAX) of them.
    pub fn declare(&self, name: &str, value: impl Into<ParameterValue>) -> Result<(), ParameterError> {
        self.declare_as(name, value, ParameterDescriptor::default())
    }

    /// Declares a parameter that is more than its value: described, in a range, read-only.
    ///
    /// # Errors
    /// As [`declare`](Parameters::declare), or the value is not in its range.
    pub fn declare_as(
        &self,
        name: &str,
        value: impl Into<ParameterValue>,
        descriptor: ParameterDescriptor,
    ) -> Result<(), ParameterError> {
        let mut state = self.shared.lock();
        let changes = state.store.handle_declaration(name, value.into(), descriptor)?;
        state.publish(&self.shared.name, changes);
        Ok(())
    }

    /// The value of a parameter; `None` if it is not declared.
    pub fn get(&self, name: &str) -> Option<ParameterValue> {
        self.shared.lock().store.value(name).cloned()
    }

    /// Sets a parameter as others do: by its kind, its range and the callback's word.
    ///
    /// # Errors
    /// Why not.
    pub fn set(&self, name: &str, value: impl Into<ParameterValue>) -> Result<(), ParameterError> {
        self.set_all(vec![(name.to_owned(), value.into())])
    }

    /// Sets all of these or none.
    ///
    /// # Errors
    /// Why none.
    pub fn set_all(&self, values: Vec<(String, ParameterValue)>) -> Result<(), ParameterError> {
        self.shared.set(values)
    }

    /// From now on `callback` is asked before any parameter is set, here or by others, with all that are set together; the
    /// sentence with which it refuses is what the caller gets. It may read the parameters, but not set them.
    pub fn on_set(
        &self,
        callback: impl Fn(&[(String, ParameterValue)]) -> Result<(), Refusal> + Send + Sync + 'static,
    ) {
        self.shared.lock().callback = Some(Arc::new(callback));
    }

    /// Names of all parameters.
    pub fn names(&self) -> Vec<String> {
        self.shared.lock().store.names(&[], 0).names
    }

    /// The name of the node, as ROS 2 has it.
    pub fn node(&self) -> &str {
        &self.shared.name
    }
}

impl Drop for Parameters {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take()
            // The callback may hold the last handle.
            && thread.thread().id() != std::thread::current().id()
        {
            // It panics only if the callback does, which has been printed then.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters").field("node", &self.shared.name).finish_non_exhaustive()
    }
}

impl Served {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, values: Vec<(String, ParameterValue)>) -> Result<(), ParameterError> {
        let _one_at_a_time = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.lock();
        state.store.check(&values)?;
        let callback = state.callback.clone();
        drop(state);
        if let Some(callback) = callback {
            callback(&values).map_err(|why| ParameterError::Refused { why })?;
        }
        let mut state = self.lock();
        let changes = state.store.handle_values(values);
        state.publish(&self.name, changes);
        Ok(())
    }

    fn result(&self, parameters: Vec<msg::Parameter>) -> msg::SetParametersResult {
        let mut values = Vec::new();
        for msg::Parameter { name, value } in parameters {
            let Some(value) = ParameterValue::of_message(value) else {
                let reason = format!("parameter {name} is set to a value of no kind that there is");
                return msg::SetParametersResult { successful: false, reason };
            };
            values.push((name, value));
        }
        match self.set(values) {
            Ok(()) => msg::SetParametersResult { successful: true, reason: String::new() },
            Err(why) => msg::SetParametersResult { successful: false, reason: why.to_string() },
        }
    }

    fn describe(&self, names: &[String]) -> Vec<msg::ParameterDescriptor> {
        let state = self.lock();
        let describe = |name: &String| match state.store.descriptor(name) {
            Some((descriptor, kind)) => descriptor.to_message(name, kind),
            None => ParameterDescriptor::default().to_message(name, ParameterType::NotSet),
        };
        names.iter().map(describe).collect()
    }

    fn values(&self, names: &[String]) -> Vec<ParameterValue> {
        let state = self.lock();
        names.iter().map(|name| state.store.value(name).cloned().unwrap_or_default()).collect()
    }
}

impl State {
    /// Says what has changed, in as many events as it takes.
    fn publish(&mut self, node: &str, changes: ParameterChanges) {
        let ParameterChanges { new, changed, deleted } = changes;
        let new = new.into_iter().map(|(name, value)| (0, name, value));
        let changed = changed.into_iter().map(|(name, value)| (1, name, value));
        let deleted = deleted.into_iter().map(|name| (2, name, ParameterValue::NotSet));
        let mut event = event(node);
        let mut bytes = 0;
        for (list, name, value) in new.chain(changed).chain(deleted) {
            if bytes > EVENT_BYTES {
                self.send(&event);
                (event, bytes) = (self::event(node), 0);
            }
            bytes += name.len() + value.content_bytes();
            let parameter = msg::Parameter { name, value: value.to_message() };
            [&mut event.new_parameters, &mut event.changed_parameters, &mut event.deleted_parameters][list]
                .push(parameter);
        }
        if bytes > 0 {
            self.send(&event);
        }
    }

    fn send(&mut self, event: &msg::ParameterEvent) {
        // It fits, and a fork's child that cannot publish has no readers to miss it.
        let _ = self.events.publish(event);
    }
}

fn event(node: &str) -> msg::ParameterEvent {
    let now_ns = three_clocks().realtime_ns;
    let sec = i32::try_from(now_ns.div_euclid(1_000_000_000)).unwrap_or(i32::MAX);
    let nanosec = now_ns.rem_euclid(1_000_000_000) as u32;
    msg::ParameterEvent { stamp: Time { sec, nanosec }, node: node.to_owned(), ..Default::default() }
}

impl AsMut<Subscriber> for Service {
    fn as_mut(&mut self) -> &mut Subscriber {
        match self {
            Service::Describe(server) => server.raw().subscriber(),
            Service::Types(server) => server.raw().subscriber(),
            Service::Get(server) => server.raw().subscriber(),
            Service::List(server) => server.raw().subscriber(),
            Service::Set(server) => server.raw().subscriber(),
            Service::SetAll(server) => server.raw().subscriber(),
        }
    }
}

impl Service {
    /// Answers what is there.
    fn serve(&mut self, shared: &Served) -> Result<(), crate::error::TakeError> {
        match self {
            Service::Describe(server) => answer(server, |request| srv::DescribeParameters_Response {
                descriptors: shared.describe(&request.names),
            }),
            Service::Types(server) => answer(server, |request| srv::GetParameterTypes_Response {
                types: shared.values(&request.names).iter().map(|value| value.kind() as u8).collect(),
            }),
            Service::Get(server) => answer(server, |request| srv::GetParameters_Response {
                values: shared.values(&request.names).iter().map(ParameterValue::to_message).collect(),
            }),
            Service::List(server) => answer(server, |request| {
                let ParameterNames { names, prefixes } =
                    shared.lock().store.names(&request.prefixes, request.depth);
                srv::ListParameters_Response { result: msg::ListParametersResult { names, prefixes } }
            }),
            Service::Set(server) => answer(server, |request| srv::SetParameters_Response {
                results: request.parameters.into_iter().map(|one| shared.result(vec![one])).collect(),
            }),
            Service::SetAll(server) => answer(server, |request| srv::SetParametersAtomically_Response {
                result: shared.result(request.parameters),
            }),
        }
    }
}

fn answer<Q: Message, R: Message>(
    server: &mut Server<Q, R>,
    mut handler: impl FnMut(Q) -> R,
) -> Result<(), crate::error::TakeError> {
    while let Some(request) = server.receive(Some(Duration::ZERO))? {
        let id = request.id();
        let response = handler(request.into_value());
        if let Err(why) = server.reply(id, &response) {
            // Too long; or no client waits any more, and then this has no effect either.
            let _ = server.raw().fail(id, &why.to_string());
        }
    }
    Ok(())
}
