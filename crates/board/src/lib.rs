//! The microcontroller client, compiled for this machine.
//!
//! A simulated flight controller and the lab's boards run `c/noctule_client.c` itself, not a second
//! client in Rust that might behave otherwise. This is the glue, and decides nothing: [`Client`] has the
//! functions of `c/noctule_client.h` under their names; what C hands to callbacks is queued and polled.
//!
//! All memory is allocated by [`Client::new`]; samples that arrive are copied into a queue of
//! [`SAMPLES_MAX`], where the newest win.

#![allow(unsafe_code)]

mod raw;

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr::NonNull;

use noctule_time_sync::Exchange;

/// Samples that wait to be polled; a newer one replaces the oldest.
pub const SAMPLES_MAX: usize = 1024;
/// Exchanges of clocks that wait to be polled.
pub const EXCHANGES_MAX: usize = 16;

/// Largest sample in fragments that is taken in.
const LARGE_BYTES: u32 = 64 << 10;
/// Slots for reliable messages, each way.
const SLOTS: u8 = 8;

/// Transport between client and agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A serial line: frames with a checksum.
    Serial,
    /// Datagrams.
    Datagram,
}

/// One topic, as publisher or subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name in DDS, for instance `rt/imu`.
    pub topic: String,
    /// Name of the type in DDS, for instance `sensor_msgs::msg::dds_::Imu_`.
    pub type_name: String,
    /// Reads instead of writing.
    pub subscribes: bool,
    /// Lost messages are retransmitted.
    pub reliable: bool,
    /// Publishers: the time of each sample travels with it, to Noctule's agent only.
    pub stamped: bool,
}

/// Configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Names the client to the agent; not zero.
    pub key: u32,
    /// Transport of its messages.
    pub line: Line,
    /// DDS domain.
    pub domain: u16,
    /// Its topics.
    pub endpoints: Vec<Endpoint>,
    /// Longest message of the protocol, a multiple of 4 from 64 to 16,384.
    pub message_bytes: u16,
    /// An exchange of clocks this often; 0 is never.
    pub sync_interval_ns: i64,
}

/// Why the client would not; its text is the C client's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refusal(core::ffi::c_int);

impl Refusal {
    /// No session yet, or no room: it can succeed later.
    pub fn is_passing(self) -> bool {
        const NOT_READY: core::ffi::c_int = -1;
        const FULL: core::ffi::c_int = -2;
        self.0 == NOT_READY || self.0 == FULL
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the function returns a static text that ends with NUL for every number.
        let text = unsafe { CStr::from_ptr(raw::noctule_client_error_text(self.0)) };
        f.write_str(&text.to_string_lossy())
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({self})", self.0)
    }
}

impl std::error::Error for Refusal {}

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No agent answers.
    Connecting,
    /// The agent is making the endpoints.
    Creating,
    /// All endpoints can be used.
    Ready,
    /// The client ends its session.
    Closing,
    /// The session has ended.
    Closed,
}

/// `noctule_client_counts_t`; every field is described there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Counts {
    pub sessions: u32,
    pub published: u32,
    pub acknowledged: u32,
    pub abandoned: u32,
    pub refused_samples: u32,
    pub received: u32,
    pub lost_messages: u32,
    pub repeated_messages: u32,
    pub resent_messages: u32,
    pub unstorable_messages: u32,
    pub too_large_samples: u32,
    pub malformed: u32,
    pub frame_errors: u32,
    pub exchanges: u32,
    pub stale_answers: u32,
    pub refused_objects: u32,
    pub bytes_in: u32,
    pub bytes_out: u32,
}

/// A sample that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which of [`ClientConfig::endpoints`].
    pub endpoint: usize,
    /// CDR without an encapsulation header.
    pub bytes: Vec<u8>,
    /// When its last byte was there, on the client's clock.
    pub arrived_ns: i64,
}

/// Data that the callbacks of the C client leave.
#[derive(Debug, Default)]
struct Inbox {
    samples: VecDeque<Sample>,
    exchanges: VecDeque<Exchange>,
    dropped: u64,
}

/// Memory that C points to as well. Not a box: to move a box asserts that no other pointer to it exists.
struct Shared<T: ?Sized>(NonNull<T>);

impl<T: ?Sized> Shared<T> {
    fn new(value: Box<T>) -> Shared<T> {
        Shared(NonNull::from(Box::leak(value)))
    }
}

impl<T: ?Sized> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: it was a box, and it is freed only here.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A client of `c/noctule_client.h` and the memory it works in.
pub struct Client {
    /// `noctule_client_t`; words, so that it is aligned.
    state: Box<[u64]>,
    inbox: Shared<Inbox>,
    out: Box<[u8]>,
    /// Memory that the C client's configuration points to.
    _memory: Shared<[u8]>,
    _endpoints: Shared<[raw::Endpoint]>,
    _names: Vec<CString>,
}

// SAFETY: the pointers inside lead to memory that this value owns, and the C client keeps no state of a
// thread.
unsafe impl Send for Client {}

impl Client {
    /// A client that is about to connect.
    ///
    /// # Errors
    ///
    /// A configuration that `noctule_client_init` refuses; names with a NUL in them count as "too long".
    pub fn new(config: &ClientConfig) -> Result<Client, Refusal> {
        const NAME_TOO_LONG: core::ffi::c_int = -11;
        const TOO_MANY_ENDPOINTS: core::ffi::c_int = -10;
        let mut names = Vec::new();
        let mut endpoints = Vec::new();
        for endpoint in &config.endpoints {
            let name = |text: &str| CString::new(text).map_err(|_| Refusal(NAME_TOO_LONG));
            let (topic, kind) = (name(&endpoint.topic)?, name(&endpoint.type_name)?);
            endpoints.push(raw::Endpoint {
                topic: topic.as_ptr(),
                kind: kind.as_ptr(),
                flags: flags(endpoint),
                history_depth: 0,
            });
            // The text lies on the heap and stays where it is.
            names.extend([topic, kind]);
        }
        let endpoints = Shared::new(endpoints.into_boxed_slice());
        let message_bytes = usize::from(config.message_bytes);
        let memory_bytes = message_bytes * (2 + 2 * usize::from(SLOTS)) + LARGE_BYTES as usize;
        let memory = Shared::new(vec![0_u8; memory_bytes].into_boxed_slice());
        let inbox = Shared::new(Box::<Inbox>::default());
        let configuration = raw::Config {
            key: config.key,
            line: match config.line {
                Line::Serial => 0,
                Line::Datagram => 1,
            },
            address: 0,
            domain: config.domain,
            participant: core::ptr::null(),
            endpoints: endpoints.0.as_ptr().cast(),
            endpoint_count: u16::try_from(config.endpoints.len()).map_err(|_| Refusal(TOO_MANY_ENDPOINTS))?,
            message_bytes: config.message_bytes,
            slots_out: SLOTS,
            slots_in: SLOTS,
            large_bytes: LARGE_BYTES,
            memory: memory.0.as_ptr().cast(),
            memory_bytes,
            sync_interval_ns: config.sync_interval_ns,
            context: inbox.0.as_ptr().cast(),
            on_sample: Some(on_sample),
            on_exchange: Some(on_exchange),
        };
        // SAFETY: takes nothing, returns a number.
        let words = unsafe { raw::noctule_board_client_bytes() }.div_ceil(8);
        let mut state = vec![0_u64; words].into_boxed_slice();
        // SAFETY: `state` is as long as the client and aligned to 8; everything that the configuration points
        // to is on the heap and lives in the value returned here, as long as the client.
        let verdict = unsafe { raw::noctule_client_init(state.as_mut_ptr().cast(), &configuration) };
        if verdict != 0 {
            return Err(Refusal(verdict));
        }
        let out = vec![0; 2 * message_bytes + 13].into_boxed_slice();
        Ok(Client { state, inbox, out, _memory: memory, _endpoints: endpoints, _names: names })
    }

    /// Bytes came off the line ([`Line::Serial`]), or a datagram came; `now_ns` is when the last of
    /// them was there, on the client's clock, which must not go back nor be negative. False: they
    /// completed no message, and there is nothing new to poll for.
    pub fn handle_bytes(&mut self, bytes: &[u8], now_ns: i64) -> bool {
        // SAFETY: the client was made by `new`; the slice lives as long as the call.
        unsafe { raw::noctule_client_handle_bytes(self.client(), bytes.as_ptr(), bytes.len(), now_ns) }
    }

    /// A datagram came ([`Line::Datagram`]).
    pub fn handle_datagram(&mut self, bytes: &[u8], now_ns: i64) {
        // SAFETY: as in `handle_bytes`.
        unsafe { raw::noctule_client_handle_datagram(self.client(), bytes.as_ptr(), bytes.len(), now_ns) }
    }

    /// The next frame or datagram to send, if there is one now.
    pub fn poll_transmit(&mut self, now_ns: i64) -> Option<&[u8]> {
        let (client, room) = (self.client(), self.out.len());
        // SAFETY: `out` is `room` bytes long.
        let length =
            unsafe { raw::noctule_client_poll_transmit(client, now_ns, self.out.as_mut_ptr(), room) };
        let length = usize::try_from(length).ok().filter(|length| *length > 0)?;
        self.out.get(..length)
    }

    /// When to poll next if nothing arrives before; `i64::MAX` is never.
    pub fn next_timeout_ns(&self, now_ns: i64) -> i64 {
        // SAFETY: the client was made by `new`.
        unsafe { raw::noctule_client_next_timeout(self.client_const(), now_ns) }
    }

    /// Publishes a sample of CDR bytes without an encapsulation header, measured at `source_ns`.
    ///
    /// # Errors
    ///
    /// Not ready, full, too large, or no such endpoint.
    pub fn publish(&mut self, endpoint: usize, bytes: &[u8], source_ns: i64) -> Result<(), Refusal> {
        const TOO_LARGE: core::ffi::c_int = -3;
        const WRONG_ENDPOINT: core::ffi::c_int = -4;
        let endpoint = u16::try_from(endpoint).map_err(|_| Refusal(WRONG_ENDPOINT))?;
        let length = u32::try_from(bytes.len()).map_err(|_| Refusal(TOO_LARGE))?;
        let (client, bytes) = (self.client(), bytes.as_ptr());
        // SAFETY: the slice lives as long as the call, which copies it.
        match unsafe { raw::noctule_client_publish(client, endpoint, bytes, length, source_ns) } {
            0 => Ok(()),
            verdict => Err(Refusal(verdict)),
        }
    }

    /// Whether an endpoint can be used.
    pub fn is_ready(&self, endpoint: usize) -> bool {
        // SAFETY: the client was made by `new`; a number out of range is answered with false.
        u16::try_from(endpoint)
            .is_ok_and(|endpoint| unsafe { raw::noctule_client_is_ready(self.client_const(), endpoint) })
    }

    /// Reliable messages not yet acknowledged.
    pub fn unacknowledged(&self) -> u16 {
        // SAFETY: the client was made by `new`.
        unsafe { raw::noctule_client_unacknowledged(self.client_const()) }
    }

    /// Takes leave of the agent; poll until [`State::Closed`].
    pub fn close(&mut self, now_ns: i64) {
        // SAFETY: the client was made by `new`.
        unsafe { raw::noctule_client_close(self.client(), now_ns) }
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        // SAFETY: the client was made by `new`.
        match unsafe { raw::noctule_client_state(self.client_const()) } {
            1 => State::Creating,
            2 => State::Ready,
            3 => State::Closing,
            4 => State::Closed,
            _ => State::Connecting,
        }
    }

    /// Counts of messages sent, received and lost.
    pub fn counts(&self) -> Counts {
        // SAFETY: the pointer leads into the client, which lives; `Counts` has the layout of what is there.
        unsafe { *raw::noctule_client_counts(self.client_const()) }
    }

    /// Whether the agent is Noctule's, which understands stamps.
    pub fn agent_is_noctule(&self) -> bool {
        // SAFETY: the client was made by `new`.
        unsafe { raw::noctule_client_agent_is_noctule(self.client_const()) }
    }

    /// The next sample that arrived.
    pub fn poll_sample(&mut self) -> Option<Sample> {
        self.inbox().samples.pop_front()
    }

    /// The next exchange of clocks: local is the client's, remote the agent's.
    pub fn poll_exchange(&mut self) -> Option<Exchange> {
        self.inbox().exchanges.pop_front()
    }

    /// Samples and exchanges dropped because they were not polled.
    pub fn dropped(&self) -> u64 {
        // SAFETY: as in `inbox`, only read.
        unsafe { self.inbox.0.as_ref() }.dropped
    }

    fn inbox(&mut self) -> &mut Inbox {
        // SAFETY: the callbacks use it during calls of the client alone, and each of those borrows `self`.
        unsafe { self.inbox.0.as_mut() }
    }

    fn client(&mut self) -> *mut raw::Client {
        self.state.as_mut_ptr().cast()
    }

    fn client_const(&self) -> *const raw::Client {
        self.state.as_ptr().cast()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("state", &self.state()).field("counts", &self.counts()).finish()
    }
}

fn flags(endpoint: &Endpoint) -> u8 {
    const SUBSCRIBE: u8 = 1;
    const RELIABLE: u8 = 2;
    const STAMPED: u8 = 8;
    [(endpoint.subscribes, SUBSCRIBE), (endpoint.reliable, RELIABLE), (endpoint.stamped, STAMPED)]
        .iter()
        .filter(|(wanted, _)| *wanted)
        .fold(0, |flags, (_, flag)| flags | flag)
}

extern "C" fn on_sample(context: *mut c_void, endpoint: u16, bytes: *const u8, length: u32, arrived_ns: i64) {
    // SAFETY: the context is the inbox that `Client::new` named; nothing else uses it during a call of the
    // client, because every such call borrows the whole `Client`.
    let inbox = unsafe { &mut *context.cast::<Inbox>() };
    let bytes = match length {
        0 => Vec::new(),
        // SAFETY: the C client says that so many bytes hold until this function returns.
        length => unsafe { core::slice::from_raw_parts(bytes, length as usize) }.to_vec(),
    };
    let sample = Sample { endpoint: usize::from(endpoint), bytes, arrived_ns };
    inbox.dropped += u64::from(push(&mut inbox.samples, sample, SAMPLES_MAX));
}

extern "C" fn on_exchange(context: *mut c_void, exchange: *const raw::Exchange) {
    // SAFETY: as in `on_sample`; the exchange holds until this function returns.
    let (inbox, exchange) = unsafe { (&mut *context.cast::<Inbox>(), &*exchange) };
    let exchange = Exchange::from_ns(exchange.t1_ns, exchange.t2_ns, exchange.t3_ns, exchange.t4_ns);
    inbox.dropped += u64::from(push(&mut inbox.exchanges, exchange, EXCHANGES_MAX));
}

/// Appends; true if the oldest was dropped.
fn push<T>(queue: &mut VecDeque<T>, value: T, most: usize) -> bool {
    let full = queue.len() == most;
    if full {
        queue.pop_front();
    }
    queue.push_back(value);
    full
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn config() -> ClientConfig {
        let endpoint = Endpoint {
            topic: "rt/imu".into(),
            type_name: "t".into(),
            subscribes: false,
            reliable: false,
            stamped: true,
        };
        ClientConfig {
            key: 7,
            line: Line::Datagram,
            domain: 0,
            endpoints: vec![endpoint],
            message_bytes: 512,
            sync_interval_ns: 0,
        }
    }

    #[test]
    fn structures_are_as_long_as_in_c() {
        // SAFETY: functions without arguments that return a number.
        unsafe {
            assert_eq!(raw::noctule_board_config_bytes(), size_of::<raw::Config>());
            assert_eq!(raw::noctule_board_counts_bytes(), size_of::<Counts>());
        }
    }

    #[test]
    fn a_new_client_asks_for_a_session_and_says_what_it_cannot_do() {
        let mut client = Client::new(&config()).unwrap();
        assert_eq!(client.state(), State::Connecting);
        let first = client.poll_transmit(1_000_000).unwrap();
        // CREATE_CLIENT: session 0x80, no stream, then the cookie.
        assert_eq!((first[0], &first[8..12]), (0x80, b"XRCE".as_slice()));
        let refusal = client.publish(0, &[0; 8], 0).unwrap_err();
        assert!(refusal.is_passing(), "{refusal}");
        assert_eq!(client.counts().refused_samples, 1);
        assert!(!client.publish(9, &[0; 8], 0).unwrap_err().is_passing());
    }

    #[test]
    fn wrong_configurations_are_refused_in_words() {
        let zero = Client::new(&ClientConfig { key: 0, ..config() }).unwrap_err();
        assert!(zero.to_string().to_lowercase().contains("key"), "{zero}");
        assert!(Client::new(&ClientConfig { message_bytes: 30, ..config() }).is_err());
    }
}
