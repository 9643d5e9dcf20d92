//! Reads what a client wants an object to be: in binary, in XML, or by the name of a profile.

use crate::description::{Description, KEEP_ALL, NAME_BYTES_MAX, Qos, Topic, TopicReference, service};
use crate::wire::{Kind, ObjectId, Reader, Status, Truncated};
use crate::xml;

/// How representations are distinguished in CREATE.
mod format {
    pub(super) const REFERENCE: u8 = 1;
    pub(super) const XML: u8 = 2;
    pub(super) const BINARY: u8 = 3;
}

/// A CREATE as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Creation {
    pub(crate) kind: Kind,
    pub(crate) description: Description,
    /// Participant of a topic, publisher or service; group of an endpoint.
    pub(crate) parent: Option<ObjectId>,
    /// DDS domain of a participant.
    pub(crate) domain: u16,
}

/// Profiles by name, read from a file that clients refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    profiles: Vec<(Kind, String, Description)>,
}

impl References {
    /// Reads profiles: elements `participant`, `topic`, `data_writer`, `data_reader`, `requester`,
    /// `replier` with an attribute `profile_name`, inside `dds` and `profiles` or not.
    ///
    /// # Errors
    /// The error in the XML, in a sentence.
    pub fn from_xml(text: &str) -> Result<References, xml::XmlError> {
        let objects = xml::objects(text)?;
        let named = objects.into_iter().filter_map(|object| {
            let profile = object.profile.clone()?;
            Some((object.kind, profile, object.describe()?))
        });
        Ok(References { profiles: named.collect() })
    }

    /// Number of profiles.
    pub fn len(&self) -> usize {
        self.profiles.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.profiles.is_empty()
    }

    fn find(&self, kind: Kind, name: &str) -> Option<Description> {
        let found = self.profiles.iter().find(|(other, profile, _)| *other == kind && profile == name);
        found.map(|(_, _, description)| description.clone())
    }
}

/// Reads what follows request and object in a CREATE.
///
/// # Errors
/// The status to answer with.
pub(crate) fn read_creation(
    reader: &mut Reader<'_>,
    object: ObjectId,
    references: &References,
) -> Result<Creation, Status> {
    let kind = Kind::from_number(reader.u8()?).ok_or(Status::InvalidData)?;
    if object.kind() != Some(kind) {
        return Err(Status::InvalidData);
    }
    let description = match reader.u8()? {
        format::REFERENCE => {
            let name = reader.string()?;
            references.find(kind, name).ok_or(Status::UnknownReference)?
        }
        format::XML => described_by_xml(kind, reader.string()?)?,
        format::BINARY => {
            let little = reader.is_little();
            described_by_bytes(kind, Reader::new(reader.sequence()?, little))?
        }
        _ => return Err(Status::InvalidData),
    };
    check_names(&description)?;
    let mut creation = Creation { kind, description, parent: None, domain: 0 };
    match kind {
        Kind::Participant => creation.domain = read_domain(reader)?,
        _ => creation.parent = Some(ObjectId(reader.octets()?)),
    }
    Ok(creation)
}

/// A domain; a client that leaves it to the agent says −1, or 255 as eProsima's agent has it, and gets 0.
fn read_domain(reader: &mut Reader<'_>) -> Result<u16, Truncated> {
    const AGENTS_CHOICE: u16 = 255;
    let domain = reader.u16()?;
    Ok(if domain == AGENTS_CHOICE || domain > i16::MAX as u16 { 0 } else { domain })
}

fn described_by_xml(kind: Kind, text: &str) -> Result<Description, Status> {
    // Publishers and subscribers have nothing to say, and mostly do so.
    if matches!(kind, Kind::Publisher | Kind::Subscriber) {
        return Ok(Description::Group);
    }
    let objects = xml::objects(text).map_err(|_| Status::InvalidData)?;
    let object = objects.into_iter().find(|object| object.kind == kind).ok_or(Status::InvalidData)?;
    object.describe().ok_or(Status::InvalidData)
}

fn described_by_bytes(kind: Kind, mut reader: Reader<'_>) -> Result<Description, Truncated> {
    Ok(match kind {
        Kind::Participant => {
            reader.optional(|reader| reader.string())?;
            // What ROS 2 clients put here is the name of their node.
            let name = reader.optional(|reader| reader.string())?.unwrap_or_default().to_owned();
            Description::Participant { name }
        }
        Kind::Topic => {
            let name = reader.string()?.to_owned();
            let reference = reader.optional(|reader| reader.string())?;
            let type_name = reader.optional(|reader| reader.string())?.or(reference).unwrap_or_default();
            Description::Topic(Topic { name, type_name: type_name.to_owned() })
        }
        Kind::Publisher | Kind::Subscriber => Description::Group,
        Kind::Writer | Kind::Reader => {
            let topic = TopicReference::Object(ObjectId(reader.octets()?));
            let qos = reader.optional(read_qos)?;
            let qos = qos.unwrap_or_else(|| Qos::of_silence(kind == Kind::Writer));
            Description::Endpoint { topic, qos }
        }
        Kind::Requester | Kind::Replier => {
            let names = [reader.string()?, reader.string()?, reader.string()?];
            let request = reader.optional(|reader| reader.string())?;
            let reply = reader.optional(|reader| reader.string())?;
            Description::Service(service(names, request, reply))
        }
    })
}

fn read_qos(reader: &mut Reader<'_>) -> Result<Qos, Truncated> {
    const RELIABLE: u16 = 1;
    const KEEP_LAST: u16 = 2;
    /// Transient local, transient, persistent: all mean that late joiners get the history.
    const DURABLE: u16 = 0x08 | 0x10 | 0x20;
    let flags = reader.u16()?;
    let depth = reader.optional(Reader::u16)?;
    Ok(Qos {
        reliable: flags & RELIABLE != 0,
        transient_local: flags & DURABLE != 0,
        // A writer that keeps all may name a depth as well, for its own side.
        depth: if flags & KEEP_LAST != 0 { depth } else { Some(KEEP_ALL) },
        deadline_ms: reader.optional(Reader::u32)?,
        lifespan_ms: reader.optional(Reader::u32)?,
    })
}

fn check_names(description: &Description) -> Result<(), Status> {
    let fits = |topic: &Topic| {
        let short = |name: &str| name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
        !topic.name.is_empty() && short(&topic.name) && short(&topic.type_name)
    };
    let all_fit = match description {
        Description::Topic(topic) | Description::Endpoint { topic: TopicReference::Named(topic), .. } => {
            fits(topic)
        }
        Description::Service(service) => fits(&service.request) && fits(&service.reply),
        Description::Participant { name } => name.len() <= NAME_BYTES_MAX,
        Description::Group | Description::Endpoint { .. } => true,
    };
    if all_fit { Ok(()) } else { Err(Status::InvalidData) }
}

impl From<Truncated> for Status {
    fn from(Truncated: Truncated) -> Status {
        Status::InvalidData
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qos(bytes: &[u8]) -> Qos {
        read_qos(&mut Reader::new(bytes, true)).unwrap()
    }

    #[test]
    fn quality_of_service_is_read_from_its_flags() {
        const KEEP_LAST: u8 = 2;
        for (flags, reliable, transient_local) in [
            (0, false, false),
            (1, true, false),
            (0x08, false, true),
            (0x11, true, true),
            (0x20, false, true),
            (4, false, false),
        ] {
            let qos = qos(&[flags | KEEP_LAST, 0, 0, 0, 0]);
            assert_eq!((qos.reliable, qos.transient_local), (reliable, transient_local), "flags {flags:#x}");
            assert_eq!((qos.depth, qos.deadline_ms, qos.lifespan_ms), (None, None, None));
        }
        // Depth 5, a deadline of 16 ms, no lifespan.
        let limits = [1, 0, 5, 0, 1, 0, 16, 0, 0, 0, 0];
        let keep_last = qos(&[&[KEEP_LAST, 0][..], &limits].concat());
        assert_eq!(
            (keep_last.depth, keep_last.deadline_ms, keep_last.lifespan_ms),
            (Some(5), Some(16), None)
        );
        let keep_all = qos(&[&[0, 0][..], &limits].concat());
        assert_eq!((keep_all.depth, keep_all.deadline_ms), (Some(KEEP_ALL), Some(16)));
    }

    #[test]
    fn profiles_are_found_by_name_and_kind_and_those_without_a_name_are_not_kept() {
        let topic = "<name>t</name><dataType>T</dataType></topic>";
        let text = format!(
            "<dds><topic profile_name=\"a\">{topic}<topic>{topic}<topic profile_name=\"b\">{topic}</dds>"
        );
        let references = References::from_xml(&text).unwrap();
        assert_eq!((references.len(), references.is_empty()), (2, false));
        assert!(references.find(Kind::Topic, "b").is_some() && references.find(Kind::Writer, "b").is_none());
        let none = References::from_xml("<dds/>").unwrap();
        assert_eq!((none.len(), none.is_empty()), (0, true));
    }
}
