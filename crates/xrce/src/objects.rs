//! Objects that one client has created.

use std::collections::BTreeMap;

use crate::creation::Creation;
use crate::data_reader::DataReader;
use crate::description::{Description, Qos, Service, Topic, TopicReference};
use crate::event::{Direction, Endpoint, EndpointId};
use crate::wire::{ClientKey, Kind, ObjectId, REPLACE, REUSE, Status};

/// Most objects of one client.
pub const OBJECTS_MAX: usize = 1024;

/// A client's objects.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    client: ClientKey,
    by_id: BTreeMap<ObjectId, Object>,
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    creation: Creation,
    /// The domain of its participant.
    domain: u16,
    serial: u32,
    /// Its topics, if it is an endpoint or two.
    writes: Option<(Topic, Qos)>,
    reads: Option<(Topic, Qos)>,
    pub(crate) reading: Option<DataReader>,
}

/// Endpoints that a change opened and closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) closed: Vec<(EndpointId, Direction)>,
    pub(crate) opened: Vec<Endpoint>,
    /// A participant's name.
    pub(crate) name: Option<String>,
}

impl Objects {
    pub(crate) fn new(client: ClientKey) -> Objects {
        Objects { client, by_id: BTreeMap::new() }
    }

    /// Makes an object, as far as `flags` let it replace or reuse what is there. `last_serial`: of all clients, so that
    /// an endpoint of a session before is not taken for one of this.
    ///
    /// # Errors
    /// The status to answer with; nothing was changed then.
    pub(crate) fn create(
        &mut self,
        id: ObjectId,
        creation: Creation,
        flags: u8,
        last_serial: &mut u32,
    ) -> Result<(Status, Difference), Status> {
        let mut object = self.resolve(creation)?;
        if let Some(old) = self.by_id.get(&id) {
            let is_alike = old.is_like(&object);
            match (flags & REUSE != 0, flags & REPLACE != 0) {
                (true, _) if is_alike => return Ok((Status::Matched, Difference::default())),
                // What is alike needs no replacing, and its readers need not find it again.
                (false, true) if is_alike => return Ok((Status::Ok, Difference::default())),
                (_, true) => {}
                (true, false) => return Err(Status::Mismatch),
                (false, false) => return Err(Status::AlreadyExists),
            }
        } else if self.by_id.len() >= OBJECTS_MAX {
            return Err(Status::Resources);
        }
        let mut difference = self.delete(id).unwrap_or_default();
        *last_serial = last_serial.wrapping_add(1);
        object.serial = *last_serial;
        difference.opened = object.endpoints(self.client, id).collect();
        if let Description::Participant { name } = &object.creation.description {
            difference.name = Some(name.clone());
        }
        self.by_id.insert(id, object);
        Ok((Status::Ok, difference))
    }

    /// Deletes an object and what was made in it; `None` if it is not there.
    pub(crate) fn delete(&mut self, id: ObjectId) -> Option<Difference> {
        let mut difference = Difference::default();
        let mut doomed = vec![id];
        self.by_id.get(&id)?;
        while let Some(id) = doomed.pop() {
            let Some(object) = self.by_id.remove(&id) else { continue };
            let endpoints = object.endpoints(self.client, id);
            difference.closed.extend(endpoints.map(|endpoint| (endpoint.id, endpoint.direction)));
            let children = self.by_id.iter().filter(|(_, child)| child.creation.parent == Some(id));
            doomed.extend(children.map(|(id, _)| *id));
        }
        Some(difference)
    }

    /// Every endpoint.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = Endpoint> + '_ {
        self.by_id.iter().flat_map(|(id, object)| object.endpoints(self.client, *id))
    }

    /// The number of the endpoint that samples of this object go by.
    pub(crate) fn writer(&self, id: ObjectId) -> Option<EndpointId> {
        let object = self.by_id.get(&id).filter(|object| object.writes.is_some())?;
        Some(EndpointId { client: self.client, object: id, serial: object.serial })
    }

    /// Whether the object asks a service.
    pub(crate) fn is_requester(&self, id: ObjectId) -> bool {
        self.by_id.get(&id).is_some_and(|object| object.creation.kind == Kind::Requester)
    }

    /// The reader of this number.
    pub(crate) fn reading(&mut self, id: ObjectId) -> Option<&mut DataReader> {
        self.by_id.get_mut(&id)?.reading.as_mut()
    }

    /// The reader of an endpoint that is still there.
    pub(crate) fn reading_of(&mut self, endpoint: EndpointId) -> Option<&mut DataReader> {
        let object = self.by_id.get_mut(&endpoint.object)?;
        object.reading.as_mut().filter(|_| object.serial == endpoint.serial)
    }

    /// All readers, from the one behind `after` on and agent.
    pub(crate) fn readings(&mut self, after: ObjectId) -> impl Iterator<Item = (ObjectId, &mut DataReader)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let mut wrapped = Vec::new();
        let mut rest = Vec::new();
        for (id, object) in self.by_id.range_mut((Unbounded, Unbounded::<ObjectId>)) {
            let Some(reading) = &mut object.reading else { continue };
            let is_behind = std::ops::RangeBounds::contains(&(Excluded(after), Unbounded), id);
            if is_behind { rest.push((*id, reading)) } else { wrapped.push((*id, reading)) }
        }
        rest.into_iter().chain(wrapped)
    }

    /// Number of objects.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Looks up what a creation refers to.
    fn resolve(&self, creation: Creation) -> Result<Object, Status> {
        let parent = match (creation.kind, creation.parent) {
            (Kind::Participant, _) => None,
            (_, None) => return Err(Status::UnknownReference),
            (_, Some(id)) => Some(self.by_id.get(&id).ok_or(Status::UnknownReference)?),
        };
        let fitting = match creation.kind {
            Kind::Participant => None,
            Kind::Writer => Some(Kind::Publisher),
            Kind::Reader => Some(Kind::Subscriber),
            _ => Some(Kind::Participant),
        };
        if parent.map(|parent| parent.creation.kind) != fitting {
            return Err(Status::UnknownReference);
        }
        let domain = parent.map_or(creation.domain, |parent| parent.domain);
        let (mut writes, mut reads) = (None, None);
        match &creation.description {
            Description::Endpoint { topic, qos } => {
                let topic = match topic {
                    TopicReference::Named(topic) => topic.clone(),
                    TopicReference::Object(id) => self.topic(*id).ok_or(Status::UnknownReference)?.clone(),
                };
                let side = if creation.kind == Kind::Writer { &mut writes } else { &mut reads };
                *side = Some((topic, *qos));
            }
            Description::Service(Service { request, reply }) => {
                let (written, read) = match creation.kind {
                    Kind::Requester => (request, reply),
                    _ => (reply, request),
                };
                writes = Some((written.clone(), Service::QOS));
                reads = Some((read.clone(), Service::QOS));
            }
            Description::Participant { .. } | Description::Topic(_) | Description::Group => {}
        }
        let reading = reads.as_ref().map(|(_, qos)| match creation.description {
            Description::Service(_) => DataReader::of_service(),
            _ => DataReader::new(qos.depth),
        });
        Ok(Object { creation, domain, serial: 0, writes, reads, reading })
    }

    fn topic(&self, id: ObjectId) -> Option<&Topic> {
        match &self.by_id.get(&id)?.creation.description {
            Description::Topic(topic) => Some(topic),
            _ => None,
        }
    }
}

impl Object {
    fn is_like(&self, other: &Object) -> bool {
        let Object { creation, domain, writes, reads, .. } = self;
        (creation, domain, writes, reads) == (&other.creation, &other.domain, &other.writes, &other.reads)
    }

    fn endpoints(&self, client: ClientKey, object: ObjectId) -> impl Iterator<Item = Endpoint> {
        let id = EndpointId { client, object, serial: self.serial };
        let is_service = matches!(self.creation.description, Description::Service(_));
        let domain = self.domain;
        let sides = [(Direction::Write, self.writes.clone()), (Direction::Read, self.reads.clone())];
        sides.into_iter().filter_map(move |(direction, side)| {
            let (topic, qos) = side?;
            Some(Endpoint { id, direction, domain, topic, qos, is_service })
        })
    }
}
