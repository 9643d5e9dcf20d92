//! The part of Fast DDS's XML that clients send.
//!
//! Objects are elements `participant`, `topic`, `data_writer`, `data_reader`, `requester` and `replier`,
//! wherever they stand; of their content only names and quality of service are looked at, and all else is
//! passed over. Entities other than the five of XML are not known, and nothing outside is ever read.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::description::{Description, KEEP_ALL, Qos, Topic, TopicReference, service};
use crate::wire::Kind;

/// Elements inside of elements.
pub const DEPTH_MAX: usize = 16;
/// Objects in one text.
pub const OBJECTS_MAX: usize = 1024;

/// Why XML says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// No XML.
    #[error("this is no XML: {0}")]
    Syntax(String),
    /// More than [`DEPTH_MAX`] levels.
    #[error("elements are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// More than [`OBJECTS_MAX`] objects.
    #[error("there are more than {OBJECTS_MAX} objects; split the file")]
    TooMany,
}

/// One object as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct XmlObject {
    pub(crate) kind: Kind,
    pub(crate) profile: Option<String>,
    name: String,
    type_name: String,
    service: [String; 3],
    service_topics: [Option<String>; 2],
    qos: Qos,
}

impl XmlObject {
    fn new(kind: Kind) -> XmlObject {
        XmlObject {
            kind,
            profile: None,
            name: String::new(),
            type_name: String::new(),
            service: Default::default(),
            service_topics: Default::default(),
            qos: Qos::of_silence(kind == Kind::Writer),
        }
    }

    /// Its description; `None` if an endpoint names no topic.
    pub(crate) fn describe(self) -> Option<Description> {
        let topic = Topic { name: self.name, type_name: self.type_name };
        Some(match self.kind {
            Kind::Participant => Description::Participant { name: topic.name },
            Kind::Publisher | Kind::Subscriber => Description::Group,
            _ if topic.name.is_empty() && self.service[0].is_empty() => return None,
            Kind::Topic => Description::Topic(topic),
            Kind::Writer | Kind::Reader => {
                Description::Endpoint { topic: TopicReference::Named(topic), qos: self.qos }
            }
            Kind::Requester | Kind::Replier => {
                let [request, reply] = &self.service_topics;
                let names = self.service.each_ref().map(String::as_str);
                Description::Service(service(names, request.as_deref(), reply.as_deref()))
            }
        })
    }

    fn take_attributes(&mut self, start: &BytesStart<'_>) {
        for attribute in start.attributes().flatten() {
            let Ok(value) = attribute.normalized_value(XmlVersion::Implicit1_0) else { continue };
            let place = match attribute.key.as_ref() {
                "profile_name" => self.profile.insert(String::new()),
                "service_name" => &mut self.service[0],
                "request_type" => &mut self.service[1],
                "reply_type" => &mut self.service[2],
                _ => continue,
            };
            *place = value.into_owned();
        }
    }

    /// Takes the text of the element at the end of `path`, which begins with this object's own.
    fn take_text(&mut self, path: &[String], text: &str) {
        let inner: Vec<&str> = path.iter().map(String::as_str).collect();
        match inner[..] {
            [_, "name"] | [_, "rtps", "name"] | [_, .., "topic", "name"] => self.name = text.to_owned(),
            [_, "dataType"] | [_, .., "topic", "dataType"] => self.type_name = text.to_owned(),
            [_, "request_topic_name"] => self.service_topics[0] = Some(text.to_owned()),
            [_, "reply_topic_name"] => self.service_topics[1] = Some(text.to_owned()),
            [.., "reliability", "kind"] => self.qos.reliable = text == "RELIABLE",
            [.., "durability", "kind"] => self.qos.transient_local = text != "VOLATILE",
            [.., "historyQos" | "history", "kind"] if text == "KEEP_ALL" => self.qos.depth = Some(KEEP_ALL),
            [.., "historyQos" | "history", "depth"] => self.qos.depth = text.parse().ok(),
            [.., "deadline", "period", unit] => add(&mut self.qos.deadline_ms, unit, text),
            [.., "lifespan", "duration", unit] => add(&mut self.qos.lifespan_ms, unit, text),
            _ => {}
        }
    }
}

/// Adds seconds or nanoseconds to milliseconds; what is no number (`DURATION_INFINITY`) adds nothing.
fn add(place: &mut Option<u32>, unit: &str, text: &str) {
    let Ok(number) = text.parse::<u32>() else { return };
    let ms = match unit {
        "sec" => number.saturating_mul(1000),
        "nanosec" => number / 1_000_000,
        _ => return,
    };
    *place = Some(place.unwrap_or(0).saturating_add(ms));
}

fn kind_of(element: &str) -> Option<Kind> {
    Some(match element {
        "participant" => Kind::Participant,
        "topic" => Kind::Topic,
        "publisher" => Kind::Publisher,
        "subscriber" => Kind::Subscriber,
        "data_writer" => Kind::Writer,
        "data_reader" => Kind::Reader,
        "requester" => Kind::Requester,
        "replier" => Kind::Replier,
        _ => return None,
    })
}

/// Every object in a text.
///
/// # Errors
/// No XML, or more of it than the limits allow.
pub(crate) fn objects(text: &str) -> Result<Vec<XmlObject>, XmlError> {
    let mut walk = Walk::default();
    let mut reader = Reader::from_str(text);
    loop {
        let event = reader.read_event().map_err(|error| XmlError::Syntax(error.to_string()))?;
        match event {
            Event::Start(start) => walk.enter(&start)?,
            Event::Empty(start) => {
                walk.enter(&start)?;
                walk.leave();
            }
            Event::End(_) => walk.leave(),
            Event::Text(text) => {
                walk.text.push_str(&text);
            }
            Event::GeneralRef(reference) => {
                let entity = format!("&{};", &*reference);
                let known = quick_xml::escape::unescape(&entity);
                walk.text.push_str(&known.map_err(|error| XmlError::Syntax(error.to_string()))?);
            }
            Event::Eof => return Ok(walk.objects),
            _ => {}
        }
    }
}

/// Where the reading stands.
#[derive(Default)]
struct Walk {
    objects: Vec<XmlObject>,
    path: Vec<String>,
    /// The object that is open, and where in the path it begins.
    open: Option<(XmlObject, usize)>,
    text: String,
}

impl Walk {
    fn enter(&mut self, start: &BytesStart<'_>) -> Result<(), XmlError> {
        if self.path.len() == DEPTH_MAX {
            return Err(XmlError::TooDeep);
        }
        let name = start.local_name().as_ref().to_owned();
        if let (None, Some(kind)) = (&self.open, kind_of(&name)) {
            if self.objects.len() == OBJECTS_MAX {
                return Err(XmlError::TooMany);
            }
            let mut object = XmlObject::new(kind);
            object.take_attributes(start);
            self.open = Some((object, self.path.len()));
        }
        self.path.push(name);
        self.text.clear();
        Ok(())
    }

    fn leave(&mut self) {
        if let Some((object, begin)) = &mut self.open {
            object.take_text(&self.path[*begin..], self.text.trim());
        }
        self.text.clear();
        self.path.pop();
        if let Some((object, _)) = self.open.take_if(|(_, begin)| *begin == self.path.len()) {
            self.objects.push(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Description {
        objects(text).unwrap().swap_remove(0).describe().unwrap()
    }

    #[test]
    fn a_writer_names_its_topic_type_and_qos() {
        let text = "<dds><data_writer><historyMemoryPolicy>DYNAMIC</historyMemoryPolicy>\
            <qos><reliability><kind>BEST_EFFORT</kind></reliability>\
            <deadline><period><sec>1</sec><nanosec>500000000</nanosec></period></deadline></qos>\
            <topic><kind>NO_KEY</kind><name>a&amp;b</name><dataType>T</dataType>\
            <historyQos><kind>KEEP_LAST</kind><depth>5</depth></historyQos></topic></data_writer></dds>";
        let Description::Endpoint { topic: TopicReference::Named(topic), qos } = one(text) else { panic!() };
        assert_eq!((topic.name.as_str(), topic.type_name.as_str()), ("a&b", "T"));
        assert_eq!((qos.reliable, qos.depth, qos.deadline_ms), (false, Some(5), Some(1500)));
    }

    #[test]
    fn a_reader_that_keeps_all_says_so() {
        let text = "<data_reader><topic><name>x</name><historyQos><kind>KEEP_ALL</kind></historyQos></topic>\
            </data_reader>";
        let Description::Endpoint { qos, .. } = one(text) else { panic!() };
        assert_eq!(qos.depth, Some(KEEP_ALL));
    }

    #[test]
    fn what_is_said_about_nothing_is_what_dds_says() {
        let text = |element: &str| format!("<dds><{element}><topic><name>x</name></topic></{element}></dds>");
        for (element, writes) in [("data_writer", true), ("data_reader", false)] {
            let Description::Endpoint { qos, .. } = one(&text(element)) else { panic!() };
            assert_eq!((qos.reliable, qos.transient_local, qos.depth), (writes, writes, None));
        }
    }

    #[test]
    fn every_kind_of_object_that_a_client_can_create_can_be_described() {
        for (number, element) in (1..).zip([
            "participant",
            "topic",
            "publisher",
            "subscriber",
            "data_writer",
            "data_reader",
            "requester",
            "replier",
        ]) {
            let found = objects(&format!("<dds><{element}></{element}></dds>")).unwrap();
            let kinds: Vec<Kind> = found.into_iter().map(|object| object.kind).collect();
            assert_eq!(kinds, [Kind::from_number(number).unwrap()], "{element}");
        }
        assert_eq!(objects("<dds><domain></domain></dds>"), Ok(vec![]));
    }

    #[test]
    fn a_participant_is_found_among_profiles() {
        let text = "<dds><profiles><transport_descriptors><transport_descriptor>\
            <transport_id>udp</transport_id></transport_descriptor></transport_descriptors></profiles>\
            <participant><rtps><name>ns/px4</name><useBuiltinTransports>false</useBuiltinTransports></rtps>\
            </participant></dds>";
        assert_eq!(one(text), Description::Participant { name: "ns/px4".into() });
    }

    #[test]
    fn a_requester_has_its_names_in_attributes_and_topics_in_elements() {
        let text = "<dds><requester profile_name=\"p\" service_name=\"s\" request_type=\"A\" reply_type=\"B\">\
            <request_topic_name>rq/s</request_topic_name></requester></dds>";
        let Description::Service(service) = one(text) else { panic!() };
        assert_eq!((service.request.name.as_str(), service.request.type_name.as_str()), ("rq/s", "A"));
        assert_eq!((service.reply.name.as_str(), service.reply.type_name.as_str()), ("s_Reply", "B"));
    }

    #[test]
    fn what_is_no_xml_or_too_deep_or_too_much_is_refused() {
        assert!(matches!(objects("<dds><topic>"), Ok(found) if found.is_empty()));
        assert!(matches!(objects("<dds></x>"), Err(XmlError::Syntax(_))));
        assert!(matches!(objects("<a>&bomb;</a>"), Err(XmlError::Syntax(_))));
        assert_eq!(objects(&"<a>".repeat(17)), Err(XmlError::TooDeep));
        assert_eq!(objects(&"<topic/>".repeat(1025)), Err(XmlError::TooMany));
    }
}
