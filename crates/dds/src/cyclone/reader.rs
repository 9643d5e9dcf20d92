//! Readers, and waiting for many of them at once.
#![allow(unsafe_code)] // FFI to a C library.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cyclors as c;
use noctule::Qos;

use super::announced::client;
use super::{DdsError, Entity, Participant, QosObject, checked};

/// Samples taken from a reader at once.
const TAKE_AT_ONCE: usize = 16;
/// Samples that wait in a reader to be taken; older ones are overwritten. More than a burst of any history that ROS 2
/// programs use.
pub(super) const READER_DEPTH: u32 = 128;
/// Writers that a reader remembers where they are.
const ORIGINS_MAX: usize = 1024;
/// Number by which a waitset reports a wake-up from another thread; readers have numbers from 0.
const WOKEN: c::dds_attach_t = -1;
/// Number by which a waitset reports news of discovery.
const NEWS: c::dds_attach_t = -2;

impl Participant {
    /// A reader of samples of any type.
    ///
    /// # Errors
    /// [`DdsError::Name`], or [`DdsError::Refused`] with Cyclone's reason.
    pub fn reader(
        &self,
        (topic, type_name): (&str, &str),
        qos: &Qos,
        user_data: &str,
    ) -> Result<Reader, DdsError> {
        let topic = self.topic(topic, type_name)?;
        let arrived = Arc::<AtomicU64>::default();
        count_arrivals(&topic, &arrived)?;
        // The request need not be the offer on the bus: a deadline is watched there.
        let qos =
            QosObject::of(&Qos { deadline: None, depth: READER_DEPTH, ..*qos }).with_user_data(user_data);
        // SAFETY: numbers, and a QoS object that lives through the call; all but the reader's own entities
        // are contained in it and go with it.
        unsafe {
            let reader = c::dds_create_reader(self.entity.0, topic.0, qos.0, ptr::null());
            let entity = Entity::new("a reader", reader)?;
            let condition = checked("a condition", c::dds_create_readcondition(entity.0, c::DDS_ANY_STATE))?;
            let (taken, overwritten) = (0, 0);
            Ok(Reader {
                entity,
                condition,
                _topic: topic,
                origins: HashMap::new(),
                arrived,
                taken,
                overwritten,
            })
        }
    }

    /// A set of readers to wait for, without any yet.
    ///
    /// # Errors
    /// [`DdsError::Refused`] with Cyclone's reason.
    pub fn reader_set(&self) -> Result<ReaderSet, DdsError> {
        // SAFETY: numbers.
        unsafe {
            let wake = Entity::new("a condition", c::dds_create_guardcondition(self.entity.0))?;
            let set = Entity::new("a waitset", c::dds_create_waitset(self.entity.0))?;
            checked("a condition", c::dds_waitset_attach(set.0, wake.0, WOKEN))?;
            Ok(ReaderSet { set, wake })
        }
    }

    /// As [`reader_set`](Self::reader_set), which also waits for what makes [`has_news`](Self::has_news) true. That stays so until it
    /// was looked at.
    ///
    /// # Errors
    /// [`DdsError::Refused`] with Cyclone's reason.
    pub fn news_set(&self) -> Result<ReaderSet, DdsError> {
        let set = self.reader_set()?;
        for condition in self.news {
            // SAFETY: numbers.
            let code = unsafe { c::dds_waitset_attach(set.set.0, condition, NEWS) };
            checked("to wait for discovery", code)?;
        }
        Ok(set)
    }
}

/// Waits for many readers at once, and for a word from another thread.
#[derive(Debug)]
pub struct ReaderSet {
    set: Entity,
    wake: Entity,
}

impl ReaderSet {
    /// Waits for this reader, too, which is reported by `number`; until it is dropped.
    ///
    /// # Errors
    /// [`DdsError::Refused`] with Cyclone's reason.
    pub fn add(&self, reader: &Reader, number: u32) -> Result<(), DdsError> {
        // SAFETY: numbers.
        let code = unsafe { c::dds_waitset_attach(self.set.0, reader.condition, number as c::dds_attach_t) };
        checked("to wait for a reader", code).map(|_| ())
    }

    /// Ends a wait from another thread: the next one if none is under way.
    pub fn wake(&self) {
        // SAFETY: a number; it fails only if the set is gone, and then no thread waits.
        unsafe { c::dds_set_guardcondition(self.wake.0, true) };
    }

    /// Waits until a reader has something to take, or for the word, or until the time is over. Leaves the numbers of the readers
    /// that have something in `ready`, at most `readers` of them.
    pub fn wait(&self, readers: usize, timeout: Duration, ready: &mut Vec<u32>) {
        let timeout_ns = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        let mut found: Vec<c::dds_attach_t> = vec![WOKEN; readers + 1];
        // SAFETY: there is room for as many as are requested.
        let count = unsafe { c::dds_waitset_wait(self.set.0, found.as_mut_ptr(), found.len(), timeout_ns) };
        let count = usize::try_from(count).unwrap_or(0).min(found.len());
        ready.clear();
        ready.extend(found[..count].iter().filter_map(|number| u32::try_from(*number).ok()));
        if found[..count].contains(&WOKEN) {
            let mut was_set = false;
            // SAFETY: a number and a place for the answer.
            unsafe { c::dds_take_guardcondition(self.wake.0, &mut was_set) };
        }
    }
}

/// A sample that came.
#[derive(Debug)]
pub struct Taken<'a> {
    /// CDR with its encapsulation header, if it is at least that long.
    pub bytes: &'a [u8],
    /// The time of day at its writer.
    pub stamp_ns: i64,
    /// The participant that wrote it, unless it is gone already.
    pub participant: Option<[u8; 12]>,
    /// The client of a service that wrote it, by its own name, if it has one.
    pub client: Option<Arc<str>>,
}

/// The identity of a writer.
#[derive(Clone, Debug)]
struct Origin {
    participant: [u8; 12],
    client: Option<Arc<str>>,
}

/// Says whether a reader that another thread reads has writers.
#[derive(Clone, Copy, Debug)]
pub struct ReaderHandle(c::dds_entity_t);

impl ReaderHandle {
    /// Whether there is a writer; false once the reader is gone.
    pub fn has_writers(self) -> bool {
        // SAFETY: a number; without a place for them the writers are counted. An error is a negative number.
        unsafe { c::dds_get_matched_publications(self.0, ptr::null_mut(), 0) > 0 }
    }
}

/// Reads samples of one topic.
#[derive(Debug)]
pub struct Reader {
    // In the order in which they go: Cyclone counts in `arrived` as long as the reader is there.
    entity: Entity,
    /// Something can be taken; goes with the reader.
    condition: c::dds_entity_t,
    _topic: Entity,
    origins: HashMap<u64, Origin>,
    arrived: Arc<AtomicU64>,
    taken: u64,
    overwritten: u64,
}

impl Reader {
    /// Its number.
    ///
    /// # Errors
    /// [`DdsError::Refused`] with Cyclone's reason.
    pub fn guid(&self) -> Result<[u8; 16], DdsError> {
        self.entity.guid()
    }

    /// A handle by which another thread sees whether this reader has writers.
    pub fn handle(&self) -> ReaderHandle {
        ReaderHandle(self.entity.0)
    }

    /// Takes what is there, and hands each sample on.
    ///
    /// # Errors
    /// [`DdsError::Refused`] with Cyclone's reason.
    pub fn take(&mut self, mut each: impl FnMut(Taken<'_>)) -> Result<usize, DdsError> {
        let mut objects = [ptr::null_mut::<c::ddsi_serdata>(); TAKE_AT_ONCE];
        // SAFETY: an array of plain numbers, for which zeros are valid.
        let mut infos: [c::dds_sample_info_t; TAKE_AT_ONCE] = unsafe { std::mem::zeroed() };
        let most = TAKE_AT_ONCE as u32;
        // Before taking: what is counted by now has been stored by then, for Cyclone does both under one lock.
        let arrived = self.arrived.load(Ordering::Relaxed);
        // SAFETY: both arrays have room for as many as are requested.
        let taken = unsafe {
            c::dds_takecdr(self.entity.0, objects.as_mut_ptr(), most, infos.as_mut_ptr(), c::DDS_ANY_STATE)
        };
        let taken = checked("to take", taken)? as usize;
        let mut valid = 0;
        for (object, info) in objects.iter().zip(&infos).take(taken) {
            if info.valid_data {
                valid += 1;
                let origin = self.origin(info.publication_handle);
                let participant = origin.as_ref().map(|origin| origin.participant);
                let client = origin.and_then(|origin| origin.client);
                // SAFETY: the object is ours until released below. Its bytes are borrowed for the call alone.
                unsafe {
                    let size = c::ddsi_serdata_size(*object) as usize;
                    let mut part = c::ddsrt_iovec_t { iov_base: ptr::null_mut(), iov_len: 0 };
                    let held = c::ddsi_serdata_to_ser_ref(*object, 0, size, &mut part);
                    let bytes = match part.iov_base.is_null() {
                        true => &[][..],
                        false => {
                            std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len as usize)
                        }
                    };
                    each(Taken { bytes, stamp_ns: info.source_timestamp, participant, client });
                    c::ddsi_serdata_to_ser_unref(held, &part);
                }
            }
            // SAFETY: taken above, released once.
            unsafe { c::ddsi_serdata_unref(*object) };
        }
        self.taken += valid as u64;
        let waiting = if taken < TAKE_AT_ONCE { 0 } else { u64::from(READER_DEPTH) };
        // Samples that have arrived since may be among the taken: then a later call counts the rest.
        self.overwritten = self.overwritten.max(arrived.saturating_sub(self.taken + waiting));
        Ok(valid)
    }

    /// Samples that newer ones have replaced, or that have expired, before they were taken. Exact when all was taken.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// The writer behind a handle; asked once.
    fn origin(&mut self, handle: u64) -> Option<Origin> {
        if let Some(known) = self.origins.get(&handle) {
            return Some(known.clone());
        }
        // SAFETY: numbers; the description is ours, and freed after it was read.
        let origin = unsafe {
            let description = c::dds_get_matched_publication_data(self.entity.0, handle);
            if description.is_null() {
                return None;
            }
            let mut participant = [0; 12];
            let found = &*description;
            participant.copy_from_slice(&found.key.v[..12]);
            let client = client(found.qos).map(Arc::from);
            c::dds_builtintopic_free_endpoint(description);
            Origin { participant, client }
        };
        if self.origins.len() == ORIGINS_MAX {
            self.origins.clear();
        }
        self.origins.insert(handle, origin.clone());
        Some(origin)
    }
}

/// Counts in `arrived` each sample that is about to be stored for a reader of this topic, and lets it pass: Cyclone
/// itself does not report what KEEP_LAST overwrites. `arrived` must live as long as the topic has a reader.
fn count_arrivals(topic: &Entity, arrived: &Arc<AtomicU64>) -> Result<(), DdsError> {
    unsafe extern "C" fn count(_: *const c::dds_sample_info_t, arrived: *mut c_void) -> bool {
        // SAFETY: the counter that is given below, which outlives the reader.
        unsafe { &*arrived.cast::<AtomicU64>() }.fetch_add(1, Ordering::Relaxed);
        true
    }
    let filter = c::dds_topic_filter {
        mode: c::dds_topic_filter_mode_DDS_TOPIC_FILTER_SAMPLEINFO_ARG,
        f: c::dds_topic_filter_function_union { sampleinfo_arg: Some(count) },
        arg: Arc::as_ptr(arrived).cast_mut().cast::<c_void>(),
    };
    // SAFETY: a topic entity of our own that has no reader yet; Cyclone copies the filter.
    let code = unsafe { c::dds_set_topic_filter_extended(topic.0, &filter) };
    checked("to count arrivals", code).map(|_| ())
}
