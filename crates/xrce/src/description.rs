//! Descriptions of the objects that a client creates.

use crate::wire::ObjectId;

/// Longest topic, type or service name, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// Most samples kept for a reader, whatever its history.
pub const SAMPLES_MAX: usize = 32;

/// Samples kept for a reader that wants all of them: as many as a reader may have.
pub const KEEP_ALL: u16 = SAMPLES_MAX as u16;

/// Requests or replies kept for a replier or requester: as many clients may ask at once as an agent has. A request that a newer one
/// replaced would never be answered.
pub const SERVICE_SAMPLES_MAX: u16 = 256;

/// Quality of service of a writer or reader, in the words of DDS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    /// RELIABILITY reliable; otherwise best effort.
    pub reliable: bool,
    /// DURABILITY transient local or more; otherwise volatile.
    pub transient_local: bool,
    /// HISTORY: samples kept; `None` if the client leaves it open, [`KEEP_ALL`] if it wants all.
    pub depth: Option<u16>,
    /// DEADLINE in milliseconds.
    pub deadline_ms: Option<u32>,
    /// LIFESPAN in milliseconds.
    pub lifespan_ms: Option<u32>,
}

impl Qos {
    /// Default QoS in DDS of a writer (true) or a reader (false).
    pub(crate) fn of_silence(writer: bool) -> Qos {
        Qos { reliable: writer, transient_local: writer, depth: None, deadline_ms: None, lifespan_ms: None }
    }

    const SERVICE: Qos = Qos {
        reliable: true,
        transient_local: false,
        depth: Some(SERVICE_SAMPLES_MAX),
        deadline_ms: None,
        lifespan_ms: None,
    };
}

/// A topic by its DDS names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic {
    /// As DDS writes it; ROS 2 prefixes `rt/`, `rq/` or `rr/`.
    pub name: String,
    /// As DDS writes it, such as `std_msgs::msg::dds_::String_`.
    pub type_name: String,
}

/// A service: two topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Requests.
    pub request: Topic,
    /// Replies.
    pub reply: Topic,
}

/// Description of an object to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Description {
    Participant {
        name: String,
    },
    Topic(Topic),
    /// A publisher or subscriber: nothing is made of its partitions.
    Group,
    Endpoint {
        topic: TopicReference,
        qos: Qos,
    },
    Service(Service),
}

/// How an endpoint names its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TopicReference {
    /// An object made before.
    Object(ObjectId),
    /// By name, in XML.
    Named(Topic),
}

/// The topic that a service's requests or replies go by, if it is not named.
pub(crate) fn service(names: [&str; 3], request_topic: Option<&str>, reply_topic: Option<&str>) -> Service {
    let [service_name, request_type, reply_type] = names;
    let topic = |given: Option<&str>, suffix: &str, type_name: &str| Topic {
        name: given.map_or_else(|| format!("{service_name}{suffix}"), str::to_owned),
        type_name: type_name.to_owned(),
    };
    Service {
        request: topic(request_topic, "_Request", request_type),
        reply: topic(reply_topic, "_Reply", reply_type),
    }
}

impl Service {
    /// Services are reliable and have no history.
    pub(crate) const QOS: Qos = Qos::SERVICE;
}
