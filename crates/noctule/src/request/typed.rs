//! Clients and servers with values of Rust types instead of bytes.

use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use noctule_discovery::NodeId;
use noctule_formats::{FormatError, Message, decode_message_cdr, encode_message_cdr};

use super::client::{CallId, ClientBuilder, EndedCall, NextCall, RawClient, RawReply};
use super::error::{CallError, ReplyError, ServiceError};
use super::server::{RawRequest, RawServer, ServerBuilder};
use super::wire::RequestId;
use super::{ServiceTypes, TypeRef};
use crate::error::TakeError;
use crate::node::Node;
use crate::sample::{Age, SampleInfo};

/// A client's or a server's types; it holds no values of them.
type Values<Q, R> = PhantomData<fn(Q) -> R>;

/// Settings of a client of a service whose request is a `Q` and whose response an `R`.
#[derive(Debug)]
#[must_use = "call open"]
pub struct TypedClientBuilder<'a, Q, R> {
    builder: ClientBuilder<'a>,
    node: &'a Node,
    values: Values<Q, R>,
}

/// Settings of a server of a service whose request is a `Q` and whose response an `R`.
#[derive(Debug)]
#[must_use = "call open"]
pub struct TypedServerBuilder<'a, Q, R> {
    builder: ServerBuilder<'a>,
    node: &'a Node,
    values: Values<Q, R>,
}

/// Calls one service.
#[derive(Debug)]
pub struct Client<Q, R> {
    raw: RawClient,
    buffer: Vec<u8>,
    values: Values<Q, R>,
}

/// Serves one service.
#[derive(Debug)]
pub struct Server<Q, R> {
    raw: RawServer,
    buffer: Vec<u8>,
    values: Values<Q, R>,
}

/// A response, and what is known of it. Dereferences to the response.
#[derive(Clone, Debug)]
pub struct Reply<R> {
    value: R,
    info: SampleInfo,
}

/// A request, and what is known of it. Dereferences to the request.
#[derive(Clone, Debug)]
pub struct Request<Q> {
    value: Q,
    /// Without its bytes.
    raw: RawRequest,
}

/// Why a server has no response, for people: the caller gets it as [`CallError::Failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

/// Why a request was not served. The next call goes on with the next one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeError {
    /// Requests cannot be read.
    #[error(transparent)]
    Take(#[from] TakeError),
    /// It was executed, and the reply did not go out.
    #[error(transparent)]
    Reply(#[from] ReplyError),
}

impl Node {
    /// Settings of a client of `/service`, as both sides must define it: its request is a `Q`, its response an `R`.
    ///
    /// ```no_run
    /// # use serde::{Deserialize, Serialize};
    /// # noctule::message! { #[derive(Debug, Serialize, Deserialize)] pub struct Add: "demo/srv/Add_Request" { pub a: i64, pub b: i64 } }
    /// # noctule::message! { #[derive(Debug, Serialize, Deserialize)] pub struct Sum: "demo/srv/Add_Response" { pub sum: i64 } }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = noctule::Node::new("calculator")?;
    /// let mut client = node.client::<Add, Sum>("/add").open()?;
    /// let sum = client.call(&Add { a: 2, b: 3 })?;
    /// println!("{}, {:?} old", sum.sum, sum.age());
    /// # Ok(())
    /// # }
    /// ```
    pub fn client<Q: Message, R: Message>(&self, service: &str) -> TypedClientBuilder<'_, Q, R> {
        let builder = ClientBuilder::new(self, service, types::<Q, R>());
        TypedClientBuilder { builder, node: self, values: PhantomData }
    }

    /// Settings of a server of `/service`, see [`client`](Node::client).
    pub fn server<Q: Message, R: Message>(&self, service: &str) -> TypedServerBuilder<'_, Q, R> {
        let builder = ServerBuilder::new(self, service, types::<Q, R>());
        TypedServerBuilder { builder, node: self, values: PhantomData }
    }

    /// Settings of a client with messages as bytes of CDR.
    pub fn raw_client(&self, service: &str, types: ServiceTypes) -> ClientBuilder<'_> {
        ClientBuilder::new(self, service, types)
    }

    /// Settings of a server with messages as bytes of CDR.
    pub fn raw_server(&self, service: &str, types: ServiceTypes) -> ServerBuilder<'_> {
        ServerBuilder::new(self, service, types)
    }
}

fn types<Q: Message, R: Message>() -> ServiceTypes {
    let request = TypeRef { name: Q::TYPE_NAME.to_owned(), hash: Q::type_hash() };
    let response = TypeRef { name: R::TYPE_NAME.to_owned(), hash: R::type_hash() };
    ServiceTypes { request, response }
}

impl<Q: Message, R: Message> TypedClientBuilder<'_, Q, R> {
    /// How long a call waits for its reply. Default 5 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.builder = self.builder.deadline(deadline);
        self
    }

    /// A request may be executed more than once: if its server ends before it answers, another one is asked. Default no.
    pub fn idempotent(mut self, is_idempotent: bool) -> Self {
        self.builder = self.builder.idempotent(is_idempotent);
        self
    }

    /// Longest request in bytes. Default 64 KiB.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.builder = self.builder.payload_bytes_max(bytes);
        self
    }

    /// Opens the client. Servers are found from now on.
    ///
    /// # Errors
    /// A name that cannot travel, or no room for two more endpoints.
    pub fn open(self) -> Result<Client<Q, R>, ServiceError> {
        self.node.describe_type::<Q>();
        self.node.describe_type::<R>();
        Ok(Client { raw: self.builder.open()?, buffer: Vec::new(), values: PhantomData })
    }
}

impl<Q: Message, R: Message> TypedServerBuilder<'_, Q, R> {
    /// Longest response in bytes. Default 64 KiB.
    pub fn payload_bytes_max(mut self, bytes: u32) -> Self {
        self.builder = self.builder.payload_bytes_max(bytes);
        self
    }

    /// Opens the server.
    ///
    /// # Errors
    /// A name that cannot travel, or no room for two more endpoints.
    pub fn open(self) -> Result<Server<Q, R>, ServiceError> {
        self.node.describe_type::<Q>();
        self.node.describe_type::<R>();
        Ok(Server { raw: self.builder.open()?, buffer: Vec::new(), values: PhantomData })
    }
}

impl<Q: Message, R: Message> Client<Q, R> {
    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// There is none within the deadline, or will be none; each with its reason.
    pub fn call(&mut self, request: &Q) -> Result<Reply<R>, CallError> {
        let call = self.start(request, None)?;
        self.wait_for(call)
    }

    /// Begins a call with this deadline, or the client's; see [`RawClient::start`].
    ///
    /// # Errors
    /// As there, or the request cannot be expressed.
    pub fn start(&mut self, request: &Q, deadline: Option<Duration>) -> Result<CallId, CallError> {
        self.buffer.clear();
        encode_message_cdr(request, &mut self.buffer).map_err(|cause| self.error(cause))?;
        self.raw.start(&self.buffer, deadline)
    }

    /// Waits until a call has ended.
    ///
    /// # Errors
    /// There is no response; or the result of this call was taken before.
    pub fn wait_for(&mut self, call: CallId) -> Result<Reply<R>, CallError> {
        let reply = self.raw.wait_for(call)?;
        self.value(&reply)
    }

    /// The next call that has ended; see [`RawClient::next`].
    ///
    /// # Errors
    /// As there.
    pub fn next(&mut self, timeout: Option<Duration>) -> NextCall<Reply<R>> {
        let next = self.raw.next(timeout)?;
        Ok(next.map(|EndedCall { call, result }| {
            let result = result.and_then(|reply| self.value(&reply));
            EndedCall { call, result }
        }))
    }

    /// The client, for what is the same with bytes: cancellation, servers, counters.
    pub fn raw(&mut self) -> &mut RawClient {
        &mut self.raw
    }

    fn value(&self, reply: &RawReply) -> Result<Reply<R>, CallError> {
        let value = decode_message_cdr(reply.bytes()).map_err(|cause| self.error(cause))?;
        Ok(Reply { value, info: *reply.info() })
    }

    fn error(&self, cause: FormatError) -> CallError {
        CallError::Format { service: self.raw.service().to_owned(), cause }
    }
}

impl<Q: Message, R: Message> Server<Q, R> {
    /// The next request; waits up to `timeout`, or for ever. It may be [answered](Server::reply) later, after other requests. One that is no `Q` is answered as
    /// failed and counted.
    ///
    /// # Errors
    /// Requests cannot be read; the next call goes on with the next one.
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Request<Q>>, TakeError> {
        let end = timeout.and_then(|timeout| std::time::Instant::now().checked_add(timeout));
        loop {
            let left = end.map(|end| end.saturating_duration_since(std::time::Instant::now()));
            let Some(raw) = self.raw.receive(left)? else { return Ok(None) };
            match decode_message_cdr(raw.bytes()) {
                Ok(value) => return Ok(Some(Request { value, raw: raw.without_bytes() })),
                Err(cause) => {
                    self.raw.count_malformed();
                    // The client may have gone; then there is no reply.
                    let _ = self.raw.fail(raw.id(), &format!("the request cannot be read: {cause}"));
                }
            }
        }
    }

    /// Waits up to `timeout`, or for ever, for a request, and answers it with what `handler` gives. False if the time is over.
    ///
    /// # Errors
    /// Requests cannot be read, or the reply did not go out: it is too late, or cancelled.
    pub fn serve(
        &mut self,
        timeout: Option<Duration>,
        handler: impl FnOnce(&Request<Q>) -> Result<R, Failure>,
    ) -> Result<bool, ServeError> {
        let Some(request) = self.receive(timeout)? else { return Ok(false) };
        match handler(&request) {
            Ok(response) => self.reply(request.id(), &response)?,
            Err(Failure(why)) => self.raw.fail(request.id(), &why)?,
        }
        Ok(true)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// No client waits for it any more, or it cannot be expressed or published.
    pub fn reply(&mut self, id: RequestId, response: &R) -> Result<(), ReplyError> {
        self.buffer.clear();
        encode_message_cdr(response, &mut self.buffer)
            .map_err(|cause| ReplyError::Format { service: self.raw.service().to_owned(), cause })?;
        self.raw.reply(id, &self.buffer)
    }

    /// The server, for what is the same with bytes: failures, cancellation, counters.
    pub fn raw(&mut self) -> &mut RawServer {
        &mut self.raw
    }
}

impl<R> Reply<R> {
    /// Metadata of the reply: source time, age, writer.
    pub fn info(&self) -> &SampleInfo {
        &self.info
    }

    /// Its age when it was taken: since the server answered.
    pub fn age(&self) -> Option<Age> {
        self.info.age()
    }

    /// The server that answered.
    pub fn server(&self) -> NodeId {
        self.info.publisher
    }

    /// The response alone.
    pub fn into_value(self) -> R {
        self.value
    }
}

impl<R> Deref for Reply<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.value
    }
}

impl<Q> Request<Q> {
    /// Its identity, to answer it with.
    pub fn id(&self) -> RequestId {
        self.raw.id()
    }

    /// The request as it arrived: caller, deadline, age.
    pub fn raw(&self) -> &RawRequest {
        &self.raw
    }

    /// Its age when it was taken: since the call began.
    pub fn age(&self) -> Option<Age> {
        self.raw.age()
    }

    /// The node that asks.
    pub fn caller(&self) -> NodeId {
        self.raw.caller()
    }

    /// The request alone.
    pub fn into_value(self) -> Q {
        self.value
    }
}

impl<Q> Deref for Request<Q> {
    type Target = Q;

    fn deref(&self) -> &Q {
        &self.value
    }
}

impl<T: Into<String>> From<T> for Failure {
    fn from(why: T) -> Failure {
        Failure(why.into())
    }
}
