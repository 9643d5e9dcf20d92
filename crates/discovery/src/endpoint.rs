//! One endpoint of a node: topic, type and QoS, and the rules by which two endpoints match.

use std::fmt;
use std::str::FromStr;

use noctule_timebase::Span;

/// Longest topic or type name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 255;

/// Number of an endpoint within its node; never reused while the node lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(pub u32);

/// Which way the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointKind {
    /// Publishes.
    Writer,
    /// Subscribes.
    Reader,
}

/// How hard the transport tries (DDS RELIABILITY, and one kind more). In rising order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reliability {
    /// Sent once.
    #[default]
    BestEffort,
    /// Repaired as long as it can still arrive by its deadline.
    DeadlineBound,
    /// Repaired until it arrives.
    Reliable,
}

impl fmt::Display for Reliability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reliability::BestEffort => "best_effort",
            Reliability::DeadlineBound => "deadline_bound",
            Reliability::Reliable => "reliable",
        })
    }
}

impl FromStr for Reliability {
    type Err = UnknownQosWord;

    fn from_str(word: &str) -> Result<Reliability, UnknownQosWord> {
        match word {
            "best_effort" => Ok(Reliability::BestEffort),
            "deadline_bound" => Ok(Reliability::DeadlineBound),
            "reliable" => Ok(Reliability::Reliable),
            other => Err(UnknownQosWord::Reliability(other.to_owned())),
        }
    }
}

/// Whether late joiners get what was published before (DDS DURABILITY). In rising order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Only what is published from now on.
    #[default]
    Volatile,
    /// The writer's history too.
    TransientLocal,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Durability::Volatile => "volatile",
            Durability::TransientLocal => "transient_local",
        })
    }
}

impl FromStr for Durability {
    type Err = UnknownQosWord;

    fn from_str(word: &str) -> Result<Durability, UnknownQosWord> {
        match word {
            "volatile" => Ok(Durability::Volatile),
            "transient_local" => Ok(Durability::TransientLocal),
            other => Err(UnknownQosWord::Durability(other.to_owned())),
        }
    }
}

/// A word that names no reliability or durability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownQosWord {
    /// Of RELIABILITY.
    #[error("no reliability is called {0:?}; there are \"best_effort\", \"deadline_bound\" and \"reliable\"")]
    Reliability(String),
    /// Of DURABILITY.
    #[error("no durability is called {0:?}; there are \"volatile\" and \"transient_local\"")]
    Durability(String),
}

/// Quality of service, in the words of DDS and ROS 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    /// RELIABILITY. Default best effort.
    pub reliability: Reliability,
    /// DURABILITY. Default volatile.
    pub durability: Durability,
    /// HISTORY: samples kept, at least 1. Default 8.
    pub depth: u32,
    /// HISTORY keep all: no sample is replaced by a newer one, and with `depth` of them the writer waits. Default no: keep last.
    pub keep_all: bool,
    /// DEADLINE: longest time between two samples of the topic, which is also by when a sample must
    /// have arrived if reliability is deadline bound. `None`: no such promise.
    pub deadline: Option<Span>,
    /// Samples that may miss the deadline if reliability is deadline bound, in a million; not 0. Default 100.
    pub loss_ppm: u32,
    /// LIFESPAN: a sample older than this is not delivered. `None`: samples do not expire.
    pub lifespan: Option<Span>,
    /// Of a writer, best effort or deadline bound: readers on other hosts are served together, by multicast, as far as
    /// that reaches them. Default no.
    pub multicast: bool,
}

impl Default for Qos {
    fn default() -> Qos {
        Qos {
            reliability: Reliability::default(),
            durability: Durability::default(),
            depth: 8,
            keep_all: false,
            deadline: None,
            loss_ppm: 100,
            lifespan: None,
            multicast: false,
        }
    }
}

/// One writer or reader of a topic, as its node describes it to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its number within its node.
    pub id: EndpointId,
    /// Writer or reader.
    pub kind: EndpointKind,
    /// Topic name, 1 to [`NAME_BYTES_MAX`] bytes.
    pub topic: String,
    /// Type name, up to [`NAME_BYTES_MAX`] bytes. Empty in a reader that takes any type.
    pub type_name: String,
    /// Hash of the type's layout; 0 in a reader that takes any type.
    pub type_hash: u64,
    /// Bit per serialization format: those a writer uses, one for each way to a reader; those a reader
    /// understands, which must be all that the writer uses.
    pub formats: u32,
    /// Largest sample in bytes.
    pub payload_bytes_max: u32,
    /// Offered or requested.
    pub qos: Qos,
    /// Of a reader: another process of its host hands it the samples of other hosts
    /// (`crate::relay`). Of a writer: never.
    pub relayed: bool,
}

/// Why a name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// A topic without a name.
    #[error("the topic has no name; give it one of 1 to 255 bytes")]
    Empty,
    /// Longer than [`NAME_BYTES_MAX`].
    #[error("the {what} name is {bytes} bytes long; 255 is the most")]
    TooLong {
        /// `topic` or `type`.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// Contains a control character, which would garble every listing.
    #[error("the {what} name contains a control character; use letters, digits, '_' and '/'")]
    Control {
        /// `topic` or `type`.
        what: &'static str,
    },
}

impl Endpoint {
    /// Whether the names can travel.
    ///
    /// # Errors
    /// The first rule that a name breaks.
    pub fn check_names(&self) -> Result<(), NameError> {
        if self.topic.is_empty() {
            return Err(NameError::Empty);
        }
        for (what, name) in [("topic", &self.topic), ("type", &self.type_name)] {
            if name.len() > NAME_BYTES_MAX {
                return Err(NameError::TooLong { what, bytes: name.len() });
            }
            if name.chars().any(char::is_control) {
                return Err(NameError::Control { what });
            }
        }
        Ok(())
    }
}

/// Why a writer and a reader of one topic do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// Types of different names.
    #[error("the writer publishes {writer}, the reader expects {reader}; use one type on both sides")]
    TypeName {
        /// The writer's.
        writer: String,
        /// The reader's.
        reader: String,
    },
    /// One name, two layouts.
    #[error("both call the type {name} but its definitions differ; rebuild the older side")]
    TypeHash {
        /// Of both.
        name: String,
    },
    /// The reader cannot read what the writer writes. The layer that knows the formats names them.
    #[error("the reader does not understand the writer's serialization format; choose one both have")]
    Format {
        /// A bit per format that the writer uses.
        writer: u32,
        /// A bit per format that the reader understands.
        reader: u32,
    },
    /// RELIABILITY.
    #[error("the writer offers {offered}, the reader requests {requested}; offer more or request less")]
    Reliability {
        /// The writer's.
        offered: Reliability,
        /// The reader's.
        requested: Reliability,
    },
    /// DURABILITY.
    #[error("the writer offers {offered}, the reader requests {requested}; offer more or request less")]
    Durability {
        /// The writer's.
        offered: Durability,
        /// The reader's.
        requested: Durability,
    },
    /// Both are deadline bound.
    #[error(
        "the writer lets {offered} samples in a million miss the deadline, the reader at most {requested}; tolerate less or more loss"
    )]
    Loss {
        /// The writer's, in a million.
        offered: u32,
        /// The reader's, in a million.
        requested: u32,
    },
    /// DEADLINE.
    #[error(
        "the writer offers {}, the reader requests a sample every {} ms; offer a shorter deadline or request a longer one",
        match offered { Some(span) => format!("one every {} ms", millis(*span)), None => "no deadline".to_owned() },
        millis(*requested)
    )]
    Deadline {
        /// The writer's.
        offered: Option<Span>,
        /// The reader's.
        requested: Span,
    },
}

fn millis(span: Span) -> f64 {
    span.ns() as f64 / 1e6
}

/// Whether a reader can be served by a writer of the same topic; `None` if it can. The rules are
/// those of DDS 1.4, section 2.2.3 ("requested versus offered"), in that order of mention, and one for the loss
/// that deadline-bound samples may suffer.
pub fn incompatible(writer: &Endpoint, reader: &Endpoint) -> Option<Incompatible> {
    let any_type = reader.type_name.is_empty();
    if !any_type && writer.type_name != reader.type_name {
        return Some(Incompatible::TypeName {
            writer: writer.type_name.clone(),
            reader: reader.type_name.clone(),
        });
    }
    // 0: its definition is not known to the program that opened it.
    let is_known = reader.type_hash != 0 && writer.type_hash != 0;
    if !any_type && is_known && writer.type_hash != reader.type_hash {
        return Some(Incompatible::TypeHash { name: writer.type_name.clone() });
    }
    if writer.formats == 0 || writer.formats & !reader.formats != 0 {
        return Some(Incompatible::Format { writer: writer.formats, reader: reader.formats });
    }
    let (offered, requested) = (&writer.qos, &reader.qos);
    if offered.reliability < requested.reliability {
        let (offered, requested) = (offered.reliability, requested.reliability);
        return Some(Incompatible::Reliability { offered, requested });
    }
    if offered.durability < requested.durability {
        let (offered, requested) = (offered.durability, requested.durability);
        return Some(Incompatible::Durability { offered, requested });
    }
    let both_bound = [offered, requested].iter().all(|qos| qos.reliability == Reliability::DeadlineBound);
    if both_bound && offered.loss_ppm > requested.loss_ppm {
        let (offered, requested) = (offered.loss_ppm, requested.loss_ppm);
        return Some(Incompatible::Loss { offered, requested });
    }
    match (offered.deadline, requested.deadline) {
        (_, None) => None,
        (Some(offered), Some(requested)) if offered <= requested => None,
        (offered, Some(requested)) => Some(Incompatible::Deadline { offered, requested }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Endpoint, Endpoint) {
        let writer = Endpoint {
            id: EndpointId(1),
            kind: EndpointKind::Writer,
            topic: "imu".into(),
            type_name: "sensor/Imu".into(),
            type_hash: 7,
            formats: 1,
            payload_bytes_max: 64,
            qos: Qos::default(),
            relayed: false,
        };
        let reader = Endpoint { kind: EndpointKind::Reader, formats: 3, ..writer.clone() };
        (writer, reader)
    }

    #[test]
    fn every_word_of_qos_comes_out_as_it_went_in_and_another_is_named_with_those_that_there_are() {
        for one in [Reliability::BestEffort, Reliability::DeadlineBound, Reliability::Reliable] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        for one in [Durability::Volatile, Durability::TransientLocal] {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        let said = "sure".parse::<Reliability>().unwrap_err().to_string();
        assert_eq!(
            said,
            "no reliability is called \"sure\"; there are \"best_effort\", \"deadline_bound\" and \"reliable\""
        );
        let said = "forever".parse::<Durability>().unwrap_err().to_string();
        assert_eq!(
            said,
            "no durability is called \"forever\"; there are \"volatile\" and \"transient_local\""
        );
    }

    #[test]
    fn equal_descriptions_fit() {
        let (writer, reader) = pair();
        assert_eq!(incompatible(&writer, &reader), None);
    }

    #[test]
    fn a_reader_of_any_type_takes_every_type() {
        let (writer, mut reader) = pair();
        reader.type_name.clear();
        reader.type_hash = 0;
        assert_eq!(incompatible(&writer, &reader), None);
    }

    #[test]
    fn a_definition_that_is_not_known_fits_every_one_of_its_name_in_both_directions() {
        for of_writer in [false, true] {
            let (mut writer, mut reader) = pair();
            let unknown = if of_writer { &mut writer } else { &mut reader };
            unknown.type_hash = 0;
            assert_eq!(incompatible(&writer, &reader), None);
            reader.type_name = "Other".into();
            assert!(matches!(incompatible(&writer, &reader), Some(Incompatible::TypeName { .. })));
        }
    }

    #[test]
    fn each_rule_is_named() {
        type Change = fn(&mut Endpoint, &mut Endpoint);
        let cases: [(Change, &str); 7] = [
            (|_, reader| reader.type_name = "Other".into(), "expects Other"),
            (|_, reader| reader.type_hash = 8, "definitions differ"),
            (|_, reader| reader.formats = 2, "format"),
            (|_, reader| reader.qos.reliability = Reliability::Reliable, "requests reliable"),
            (|_, reader| reader.qos.durability = Durability::TransientLocal, "requests transient_local"),
            (
                |writer, reader| {
                    writer.qos.reliability = Reliability::DeadlineBound;
                    reader.qos = Qos { loss_ppm: 10, ..writer.qos };
                },
                "100 samples in a million miss the deadline, the reader at most 10",
            ),
            (
                |writer, reader| {
                    writer.qos.deadline = Some(Span::from_ms(20));
                    reader.qos.deadline = Some(Span::from_ms(10));
                },
                "offers one every 20 ms, the reader requests a sample every 10 ms",
            ),
        ];
        for (change, words) in cases {
            let (mut writer, mut reader) = pair();
            change(&mut writer, &mut reader);
            let sentence =
                incompatible(&writer, &reader).map(|reason| reason.to_string()).unwrap_or_default();
            assert!(sentence.contains(words), "{sentence:?} lacks {words:?}");
        }
    }

    #[test]
    fn a_reader_must_understand_every_format_of_the_writer() {
        let (mut writer, mut reader) = pair();
        (writer.formats, reader.formats) = (6, 2);
        let partly = incompatible(&writer, &reader);
        assert_eq!(partly, Some(Incompatible::Format { writer: 6, reader: 2 }));
        reader.formats = 14;
        assert_eq!(incompatible(&writer, &reader), None);
        writer.formats = 0;
        assert!(incompatible(&writer, &reader).is_some(), "a writer without a format has nothing to read");
    }

    #[test]
    fn a_writer_that_offers_more_fits() {
        let (mut writer, reader) = pair();
        writer.qos.reliability = Reliability::Reliable;
        writer.qos.durability = Durability::TransientLocal;
        writer.qos.deadline = Some(Span::from_ms(1));
        assert_eq!(incompatible(&writer, &reader), None);
    }

    #[test]
    fn names_that_would_garble_a_listing_are_refused() {
        let (mut writer, _) = pair();
        writer.topic = "a\nb".into();
        assert_eq!(writer.check_names(), Err(NameError::Control { what: "topic" }));
        writer.topic = "x".repeat(256);
        assert_eq!(writer.check_names(), Err(NameError::TooLong { what: "topic", bytes: 256 }));
        writer.topic.clear();
        assert_eq!(writer.check_names(), Err(NameError::Empty));
    }
}
