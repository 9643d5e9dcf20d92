//! Eclipse Cyclone DDS behind an interface without pointers: samples are bytes, types are names.
//!
//! Cyclone serializes by a description of the type. The crate `cyclors` registers a description that keeps each sample as the
//! bytes it came in, so one program can exchange types that it was not compiled with.
//!
//! Entities are numbers in Cyclone, checked at each call, so a stale one is an error and no dangling
//! pointer; calls may be made from any thread.
#![allow(unsafe_code)] // FFI to a C library.

mod announced;
mod reader;
mod settings;

use std::ffi::{CStr, CString, c_void};
use std::net::{Ipv4Addr, UdpSocket};
use std::ptr;

use cyclors as c;
use noctule::{Durability, EndpointKind, Qos, Reliability};
use noctule_timebase::Span;

use crate::plan::DdsEndpoint;
use announced::{client, is_of_this_host, type_hash};
pub use reader::{Reader, ReaderHandle, ReaderSet, Taken};
use settings::settings;

/// Longest sample from the network, in bytes; Cyclone drops longer ones before it has gathered them.
pub const SAMPLE_BYTES_MAX: usize = 16 << 20;
/// Endpoints of others that are looked at.
pub const ENDPOINTS_MAX: usize = 16_384;
/// How long a reliable writer may hold its caller while a reader does not keep up: as long as an acknowledgement takes on a
/// wire, for other topics wait meanwhile. The caller tries again.
const BLOCKING_MAX_NS: i64 = 1_000_000;

/// Why the engine refuses.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum DdsError {
    /// Cyclone returned an error code.
    #[error("Cyclone DDS refuses {what}: {why}")]
    Refused {
        /// The operation, e.g. "a writer".
        what: &'static str,
        /// Cyclone's reason.
        why: String,
    },
    /// An address that no interface has.
    #[error("no interface of this host has the address {0}; `ip address` lists those there are")]
    Interface(Ipv4Addr),
    /// Readers that do not keep up held the writer as long as it may wait.
    #[error("readers do not keep up")]
    Slow,
    /// Text with a zero in it.
    #[error("a name has a zero in it")]
    Name,
}

/// A reader or writer refused, or a number of an entity.
fn checked(what: &'static str, code: c::dds_entity_t) -> Result<c::dds_entity_t, DdsError> {
    match code {
        entity if entity >= 0 => Ok(entity),
        c::DDS_RETCODE_TIMEOUT => Err(DdsError::Slow),
        code => {
            // SAFETY: returns a static string for every number.
            let why = unsafe { CStr::from_ptr(c::dds_strretcode(code)) };
            Err(DdsError::Refused { what, why: why.to_string_lossy().into_owned() })
        }
    }
}

fn name(text: &str) -> Result<CString, DdsError> {
    CString::new(text).map_err(|_| DdsError::Name)
}

/// An entity and all it contains; deleted when dropped, which tells the others that it is gone.
#[derive(Debug)]
struct Entity(c::dds_entity_t);

impl Entity {
    fn new(what: &'static str, code: c::dds_entity_t) -> Result<Entity, DdsError> {
        checked(what, code).map(Entity)
    }
}

impl Entity {
    fn guid(&self) -> Result<[u8; 16], DdsError> {
        let mut guid = c::dds_guid_t { v: [0; 16] };
        // SAFETY: a number and a place for the answer.
        checked("its number", unsafe { c::dds_get_guid(self.0, &mut guid) })?;
        Ok(guid.v)
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        // SAFETY: a number; that it may be gone with its parent is an error code without a use.
        unsafe { c::dds_delete(self.0) };
    }
}

/// A QoS object of Cyclone's.
struct QosObject(*mut c::dds_qos_t);

impl QosObject {
    fn of(qos: &Qos) -> QosObject {
        // SAFETY: allocates an object that is ours until dropped; the setters take it and plain numbers.
        unsafe {
            let object = c::dds_create_qos();
            let kind = match qos.reliability {
                Reliability::Reliable => c::dds_reliability_kind_DDS_RELIABILITY_RELIABLE,
                _ => c::dds_reliability_kind_DDS_RELIABILITY_BEST_EFFORT,
            };
            c::dds_qset_reliability(object, kind, BLOCKING_MAX_NS);
            let kind = match qos.durability {
                Durability::TransientLocal => c::dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL,
                Durability::Volatile => c::dds_durability_kind_DDS_DURABILITY_VOLATILE,
            };
            c::dds_qset_durability(object, kind);
            let depth = i32::try_from(qos.depth).unwrap_or(i32::MAX);
            let keep_last = c::dds_history_kind_DDS_HISTORY_KEEP_LAST;
            c::dds_qset_history(object, keep_last, depth);
            // History for late readers; one sample unless it is configured.
            let (delay_ns, unlimited) = (0, -1);
            c::dds_qset_durability_service(
                object, delay_ns, keep_last, depth, unlimited, unlimited, unlimited,
            );
            if let Some(deadline) = qos.deadline {
                c::dds_qset_deadline(object, deadline.ns());
            }
            c::dds_qset_ignorelocal(object, c::dds_ignorelocal_kind_DDS_IGNORELOCAL_PARTICIPANT);
            QosObject(object)
        }
    }

    /// USER_DATA: what others read beside the endpoint's QoS.
    fn with_user_data(self, text: &str) -> QosObject {
        // SAFETY: the object is ours; Cyclone copies the bytes.
        unsafe { c::dds_qset_userdata(self.0, text.as_ptr().cast::<c_void>(), text.len()) };
        self
    }

    /// LIFESPAN is a writer's alone.
    fn with_lifespan(self, lifespan: Option<Span>) -> QosObject {
        if let Some(lifespan) = lifespan {
            // SAFETY: the object is ours.
            unsafe { c::dds_qset_lifespan(self.0, lifespan.ns()) };
        }
        self
    }
}

impl Drop for QosObject {
    fn drop(&mut self) {
        // SAFETY: ours, and deleted once.
        unsafe { c::dds_delete_qos(self.0) };
    }
}

/// This program in a DDS domain.
#[derive(Debug)]
pub struct Participant {
    // In the order in which they go.
    entity: Entity,
    _domain: Entity,
    publications: c::dds_entity_t,
    subscriptions: c::dds_entity_t,
    participants: c::dds_entity_t,
    /// Of the three: something that was not looked at yet.
    news: [c::dds_entity_t; 3],
    guid: [u8; 16],
}

impl Participant {
    /// Joins a domain, over all interfaces or the one with this address. A loopback address is for tests: discovery
    /// is unicast there. Where no interface is named `ros`, settings as XML, holds, and what `CYCLONEDDS_URI` says.
    ///
    /// # Errors
    /// Cyclone's reason: the process is already in this domain, no such interface, no socket.
    pub fn join(domain: u32, interface: Option<Ipv4Addr>, ros: &str) -> Result<Participant, DdsError> {
        // Cyclone would only say "error".
        if let Some(address) = interface.filter(|address| UdpSocket::bind((*address, 0)).is_err()) {
            return Err(DdsError::Interface(address));
        }
        let settings = name(&settings(interface, ros))?;
        // SAFETY: the string lives through the call; the rest are numbers and null for "default".
        unsafe {
            let domain_entity = c::dds_create_domain(domain, settings.as_ptr());
            let domain_entity = Entity::new("the domain", domain_entity)?;
            // ROS 2 looks for this in a participant that has nodes.
            let ros = QosObject(c::dds_create_qos()).with_user_data("enclave=/;");
            let entity = c::dds_create_participant(domain, ros.0, ptr::null());
            let entity = Entity::new("a participant", entity)?;
            let builtin = |topic| c::dds_create_reader(entity.0, topic, ptr::null(), ptr::null());
            let publications = checked("discovery", builtin(c::DDS_BUILTIN_TOPIC_DCPSPUBLICATION))?;
            let subscriptions = checked("discovery", builtin(c::DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION))?;
            let participants = checked("discovery", builtin(c::DDS_BUILTIN_TOPIC_DCPSPARTICIPANT))?;
            let unread = c::DDS_NOT_READ_SAMPLE_STATE | c::DDS_ANY_VIEW_STATE | c::DDS_ANY_INSTANCE_STATE;
            let of = |reader| checked("discovery", c::dds_create_readcondition(reader, unread));
            let news = [of(publications)?, of(subscriptions)?, of(participants)?];
            let guid = entity.guid()?;
            Ok(Participant {
                entity,
                _domain: domain_entity,
                publications,
                subscriptions,
                participants,
                news,
                guid,
            })
        }
    }

    /// Its number: 12 bytes that all its endpoints have.
    pub fn guid(&self) -> &[u8] {
        &self.guid[..12]
    }

    /// Its number as an endpoint would have it.
    pub fn whole_guid(&self) -> &[u8; 16] {
        &self.guid
    }

    /// Whether discovery has found anything since [`endpoints`](Self::endpoints) and [`neighbours`](Self::neighbours) were asked
    /// last.
    pub fn has_news(&self) -> bool {
        // SAFETY: numbers; an error is a negative one.
        self.news.iter().any(|condition| unsafe { c::dds_triggered(*condition) } > 0)
    }

    /// Endpoints of others, as far as discovery knows; at most [`ENDPOINTS_MAX`] of either kind.
    ///
    /// # Errors
    /// [`DdsError::Refused`] with Cyclone's reason.
    pub fn endpoints(&self) -> Result<Vec<DdsEndpoint>, DdsError> {
        let mut found = Vec::new();
        for (reader, kind) in
            [(self.publications, EndpointKind::Writer), (self.subscriptions, EndpointKind::Reader)]
        {
            alive(reader, |sample| {
                // SAFETY: samples of these topics are of this type, and Cyclone's until `alive` returns them.
                let endpoint = unsafe { &*sample.cast::<c::dds_builtintopic_endpoint_t>() };
                if endpoint.participant_key.v[..12] != self.guid[..12] {
                    found.push(describe(endpoint, kind));
                }
            })?;
        }
        Ok(found)
    }

    /// Other participants.
    ///
    /// # Errors
    /// [`DdsError::Refused`] with Cyclone's reason.
    pub fn neighbours(&self) -> Result<Vec<Neighbour>, DdsError> {
        let mut found = Vec::new();
        alive(self.participants, |sample| {
            // SAFETY: samples of this topic are of this type, and Cyclone's until `alive` returns them.
            let participant = unsafe { &*sample.cast::<c::dds_builtintopic_participant_t>() };
            let mut guid = [0; 12];
            guid.copy_from_slice(&participant.key.v[..12]);
            if guid != self.guid[..12] {
                found.push(Neighbour { participant: guid, is_here: is_of_this_host(participant.qos) });
            }
        })?;
        Ok(found)
    }

    /// A writer of samples of any type.
    ///
    /// # Errors
    /// [`DdsError::Name`], or [`DdsError::Refused`] with Cyclone's reason.
    pub fn writer(
        &self,
        (topic, type_name): (&str, &str),
        qos: &Qos,
        user_data: &str,
    ) -> Result<Writer, DdsError> {
        let topic = self.topic(topic, type_name)?;
        let qos = QosObject::of(qos).with_lifespan(qos.lifespan).with_user_data(user_data);
        // SAFETY: numbers, and a QoS object that lives through the call.
        let writer = unsafe { c::dds_create_writer(self.entity.0, topic.0, qos.0, ptr::null()) };
        Ok(Writer { entity: Entity::new("a writer", writer)?, _topic: topic })
    }

    fn topic(&self, topic: &str, type_name: &str) -> Result<Entity, DdsError> {
        let (topic, type_name) = (name(topic)?, name(type_name)?);
        // SAFETY: Cyclone copies both strings, which it takes as mutable and does not change.
        let made = unsafe {
            c::cdds_create_blob_topic(
                self.entity.0,
                topic.as_ptr().cast_mut(),
                type_name.as_ptr().cast_mut(),
                true,
            )
        };
        Entity::new("the topic", made)
    }
}

/// Another participant of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its number.
    pub participant: [u8; 12],
    /// Whether it is a process of this host by its own word, checked against this host's processes: its host's
    /// name is ours, and here runs a process of its number and name.
    pub is_here: bool,
}

/// Writes samples of one topic.
#[derive(Debug)]
pub struct Writer {
    entity: Entity,
    _topic: Entity,
}

impl Writer {
    /// Its number.
    ///
    /// # Errors
    /// [`DdsError::Refused`] with Cyclone's reason.
    pub fn guid(&self) -> Result<[u8; 16], DdsError> {
        self.entity.guid()
    }

    /// Writes a sample: CDR with its encapsulation header, as long as a multiple of 4 bytes, with the time of day
    /// at which it was true.
    ///
    /// # Errors
    /// [`DdsError::Slow`] if reliable readers do not keep up; else what Cyclone says.
    pub fn write(&self, bytes: &[u8], stamp_ns: i64) -> Result<(), DdsError> {
        debug_assert!(bytes.len() >= 4 && bytes.len().is_multiple_of(4));
        let part = c::ddsrt_iovec_t {
            iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(),
            iov_len: bytes.len() as c::ddsrt_iov_len_t,
        };
        // SAFETY: the writer's type outlives the call because the topic does; Cyclone copies the bytes, which it does not
        // change, into an object that `dds_forwardcdr` takes over.
        unsafe {
            let mut kind: *const c::ddsi_sertype = ptr::null();
            checked("the type", c::dds_get_entity_sertype(self.entity.0, &mut kind))?;
            let object =
                c::ddsi_serdata_from_ser_iov(kind, c::ddsi_serdata_kind_SDK_DATA, 1, &part, bytes.len());
            if object.is_null() {
                return Err(DdsError::Refused { what: "a sample", why: "no memory".into() });
            }
            (*object).timestamp.v = stamp_ns;
            (*object).statusinfo = 0;
            checked("a sample", c::dds_forwardcdr(self.entity.0, object)).map(|_| ())
        }
    }
}

/// Readers of one writer that are looked at.
const MATCHED_MAX: usize = 1024;

impl Writer {
    /// Whether it has a reader.
    pub fn has_readers(&self) -> bool {
        // SAFETY: a number; without a place for them the readers are counted. An error is a negative number.
        unsafe { c::dds_get_matched_subscriptions(self.entity.0, ptr::null_mut(), 0) > 0 }
    }

    /// Whether a participant's reader is found: that of this client of a service, if it names itself, else any.
    pub fn is_read_by(&self, participant: &[u8; 12], name: Option<&str>) -> bool {
        let mut handles = [0; MATCHED_MAX];
        // SAFETY: there is room for as many as are requested.
        let count =
            unsafe { c::dds_get_matched_subscriptions(self.entity.0, handles.as_mut_ptr(), handles.len()) };
        let count = usize::try_from(count).unwrap_or(0).min(handles.len());
        handles[..count].iter().any(|handle| {
            // SAFETY: numbers; the description is ours, and freed after it was read.
            unsafe {
                let description = c::dds_get_matched_subscription_data(self.entity.0, *handle);
                if description.is_null() {
                    return false;
                }
                let found = &*description;
                let is_its = found.key.v[..12] == participant[..];
                let is_it = is_its && name.is_none_or(|name| client(found.qos).as_deref() == Some(name));
                c::dds_builtintopic_free_endpoint(description);
                is_it
            }
        })
    }
}

/// Hands over each instance of a built-in topic that is alive.
fn alive(reader: c::dds_entity_t, mut each: impl FnMut(*const c_void)) -> Result<(), DdsError> {
    let mut samples = vec![ptr::null_mut::<c_void>(); ENDPOINTS_MAX];
    // SAFETY: plain numbers, for which zeros are valid.
    let zero: c::dds_sample_info_t = unsafe { std::mem::zeroed() };
    let mut infos = vec![zero; ENDPOINTS_MAX];
    // SAFETY: both have room for as many as are requested; a null first pointer asks for Cyclone's own samples, which are
    // returned below.
    unsafe {
        let (at, most) = (samples.as_mut_ptr(), ENDPOINTS_MAX);
        let read = c::dds_read(reader, at, infos.as_mut_ptr(), most, most as u32);
        let read = checked("to read discovery", read)?;
        for (sample, info) in samples.iter().zip(&infos).take(read as usize) {
            if info.valid_data && info.instance_state == c::dds_instance_state_DDS_IST_ALIVE {
                each(*sample);
            }
        }
        if read > 0 {
            c::dds_return_loan(reader, at, read);
        }
    }
    Ok(())
}

/// Text of Cyclone's; empty if there is none.
fn text(pointer: *const std::ffi::c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: Cyclone's strings end with a zero, and live while the sample does.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn describe(endpoint: &c::dds_builtintopic_endpoint_t, kind: EndpointKind) -> DdsEndpoint {
    let (mut reliability, mut blocking_ns) = (0, 0);
    let (mut durability, mut deadline_ns, mut lifespan_ns) =
        (0, c::dds_duration_t::MAX, c::dds_duration_t::MAX);
    if !endpoint.qos.is_null() {
        // SAFETY: the sample's own QoS object; what is not set there leaves the number as it is.
        unsafe {
            c::dds_qget_reliability(endpoint.qos, &mut reliability, &mut blocking_ns);
            c::dds_qget_durability(endpoint.qos, &mut durability);
            c::dds_qget_deadline(endpoint.qos, &mut deadline_ns);
            c::dds_qget_lifespan(endpoint.qos, &mut lifespan_ns);
        }
    }
    let limit = |ns: i64| (ns > 0 && ns != c::dds_duration_t::MAX).then(|| Span::from_ns(ns));
    let is_reliable = reliability == c::dds_reliability_kind_DDS_RELIABILITY_RELIABLE;
    let is_kept = durability != c::dds_durability_kind_DDS_DURABILITY_VOLATILE;
    DdsEndpoint {
        guid: endpoint.key.v,
        kind,
        topic: text(endpoint.topic_name),
        type_name: text(endpoint.type_name),
        rihs01: type_hash(endpoint.qos),
        qos: Qos {
            reliability: if is_reliable { Reliability::Reliable } else { Reliability::BestEffort },
            durability: if is_kept { Durability::TransientLocal } else { Durability::Volatile },
            deadline: limit(deadline_ns),
            lifespan: limit(lifespan_ns),
            ..Qos::default()
        },
    }
}

#[cfg(test)]
mod tests;
