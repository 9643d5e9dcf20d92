//! The types of topics as tools need them: from the nodes that have the topics, or from definitions that the user names.

mod error;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use noctule::{Endpoint, Format, KnownEndpoint, Node, NodeId, TypeDescription};
use noctule_codegen::cdr::{Tree, WideStrings, decode_some, encode};
use noctule_codegen::described::{Described, ros2msg};
use noctule_codegen::generate::installed;
use noctule_codegen::given::Given;
use noctule_codegen::layout::Layouts;
use noctule_record::recorder::Definitions;
use serde_json::Value;

pub(crate) use error::TypeError;
use error::{Asked, Hashes};

/// A node that describes its types does so within this time.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// A recorder's samples wait in memory so long for a definition.
const DEFINED_WITHIN: Duration = Duration::from_millis(300);
/// Types that are kept; after that they are asked for again.
const KEPT_MAX: usize = 4096;

#[derive(clap::Args)]
pub(crate) struct TypesArguments {
    /// Definitions of types whose nodes do not describe them: a folder of packages, a package, a topics.toml, a file of IDL; repeatable
    #[arg(long = "types", value_name = "FOLDER|topics.toml")]
    pub(crate) paths: Vec<PathBuf>,
}

/// A topic's type.
#[derive(Debug)]
pub(crate) struct TopicType {
    /// As it travelled or was computed.
    pub(crate) description: TypeDescription,
    /// Ready to decode.
    pub(crate) described: Described,
}

/// A type, or why it is not known.
type Answer = Result<Arc<TopicType>, TypeError>;

/// Types of topics: those the user named, and those that nodes have described.
pub(crate) struct Types {
    given: Given,
    answered_within: Duration,
    kept: BTreeMap<(NodeId, String), Answer>,
}

impl TypesArguments {
    /// Reads what the user named.
    ///
    /// # Errors
    /// A path that holds no definitions, or wrong ones.
    pub(crate) fn load(&self) -> Result<Types, TypeError> {
        let given = Given::load(&self.paths, &installed())?;
        Ok(Types { given, kept: BTreeMap::new(), answered_within: ANSWERED_WITHIN })
    }

    /// Callback of a gateway: the definition of a client's topic in what the user named. One that is wrong is reported once, and not used.
    ///
    /// # Errors
    /// As [`load`](TypesArguments::load).
    pub(crate) fn of_clients(&self) -> Result<noctule_gateway::Definitions, TypeError> {
        let inside = Mutex::new((self.load()?.given, BTreeSet::new()));
        Ok(Arc::new(move |topic: &str, type_name: &str| {
            let mut inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
            let (given, printed) = &mut *inside;
            match given.find(topic, type_name) {
                Ok(found) => found,
                Err(fault) => {
                    if printed.len() < KEPT_MAX && printed.insert(type_name.to_owned()) {
                        anstream::eprintln!("noctule: {fault}");
                    }
                    None
                }
            }
        }))
    }

    /// Callback of a recorder: the definition of an endpoint's type in the language `ros2msg`, if ROS 2 can write it. A node that does not
    /// answer is not asked again.
    ///
    /// # Errors
    /// As [`load`](TypesArguments::load).
    pub(crate) fn definitions(&self) -> Result<Definitions, TypeError> {
        let mut types = Types { answered_within: DEFINED_WITHIN, ..self.load()? };
        let mut silent = BTreeSet::new();
        Ok(Box::new(move |node, owner, endpoint| {
            let has_type = endpoint.type_hash != 0 || !types.given.is_empty();
            if !has_type || silent.contains(&owner) {
                return None;
            }
            let started = Instant::now();
            match types.of_endpoint(node, owner, endpoint) {
                Ok(found) => {
                    let Described { library, name } = &found.described;
                    ros2msg(library, name).map(|text| ("ros2msg".to_owned(), text))
                }
                Err(_) => {
                    if started.elapsed() >= DEFINED_WITHIN && silent.len() < KEPT_MAX {
                        silent.insert(owner);
                    }
                    None
                }
            }
        }))
    }
}

impl Types {
    /// The type of a topic as one node has it, asked for once.
    ///
    /// # Errors
    /// Why it is not known, as a sentence with the way out.
    pub(crate) fn of(&mut self, node: &Node, owner: NodeId, topic: &str) -> Answer {
        let key = (owner, topic.to_owned());
        if let Some(known) = self.kept.get(&key) {
            return known.clone();
        }
        if self.kept.len() >= KEPT_MAX {
            self.kept.clear();
        }
        let endpoints = node.endpoints().into_iter();
        let endpoint = endpoints
            .map(|known| (known.node, known.endpoint))
            .find(|(id, of)| *id == owner && of.topic == topic);
        let found = match endpoint {
            Some((_, endpoint)) => self.of_endpoint(node, owner, &endpoint),
            None => Err(TypeError::Gone(owner)),
        };
        self.kept.insert(key, found.clone());
        found
    }

    /// The type of an endpoint of another node.
    ///
    /// # Errors
    /// As [`of`](Types::of).
    pub(crate) fn of_endpoint(&mut self, node: &Node, owner: NodeId, endpoint: &Endpoint) -> Answer {
        let asked = match endpoint.type_hash {
            0 => Err(Asked::NoHash(endpoint.type_name.clone())),
            hash => node
                .type_description(owner, hash, self.answered_within)
                .map_err(|error| Asked::Refused(Arc::new(error))),
        };
        let description = match asked {
            Ok(description) => TypeDescription::clone(&description),
            Err(asked) => self.given(endpoint, asked)?,
        };
        let described = Described::new(&description)?;
        Ok(Arc::new(TopicType { description, described }))
    }

    fn given(&mut self, endpoint: &Endpoint, asked: Asked) -> Result<TypeDescription, TypeError> {
        let found = self
            .given
            .find(&endpoint.topic, &endpoint.type_name)
            .map_err(|fault| TypeError::Definition(Box::new(fault)))?;
        match found {
            Some(found) if endpoint.type_hash != 0 && found.hash() != endpoint.type_hash => {
                let (name, given) = (found.name().to_string(), found.hash());
                Err(TypeError::OtherHash { hashes: Hashes { name, given, topic: endpoint.type_hash } })
            }
            Some(found) => Ok(found),
            None if self.given.is_empty() => Err(TypeError::NothingGiven(asked)),
            None => Err(TypeError::NotGiven { asked, type_name: endpoint.type_name.clone() }),
        }
    }

    /// The type of a topic of any node that has one; `None` if every endpoint there is takes plain bytes.
    ///
    /// # Errors
    /// Endpoints have a type, and none is known here.
    pub(crate) fn of_topic(&mut self, node: &Node, topic: &str) -> Result<Option<Arc<TopicType>>, TypeError> {
        let mut fault = None;
        for KnownEndpoint { node: owner, endpoint, .. } in node.endpoints() {
            let has_type = endpoint.type_hash != 0 || !self.given.is_empty() && endpoint.type_name != "bytes";
            if endpoint.topic != topic || !has_type {
                continue;
            }
            match self.of_endpoint(node, owner, &endpoint) {
                Ok(found) => return Ok(Some(found)),
                Err(why) => _ = fault.get_or_insert(why),
            }
        }
        fault.map_or(Ok(None), Err)
    }

    /// The type that a topic or a type's name has in what the user named.
    ///
    /// # Errors
    /// Its definition is wrong.
    pub(crate) fn of_name(
        &mut self,
        topic: &str,
        type_name: &str,
    ) -> Result<Option<Arc<TopicType>>, TypeError> {
        let found =
            self.given.find(topic, type_name).map_err(|fault| TypeError::Definition(Box::new(fault)))?;
        let Some(description) = found else { return Ok(None) };
        let described = Described::new(&description)?;
        Ok(Some(Arc::new(TopicType { description, described })))
    }
}

/// A value of YAML or JSON.
///
/// # Errors
/// Why it is none.
pub(crate) fn parsed(text: &[u8]) -> Result<Value, TypeError> {
    let text = std::str::from_utf8(text).map_err(|_| TypeError::NotUtf8)?;
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(_) => serde_saphyr::from_str(text).map_err(|error| TypeError::NotYaml(error.to_string())),
    }
}

impl TopicType {
    /// A value of YAML or JSON as the bytes of a sample, CDR.
    ///
    /// # Errors
    /// Why it is no value of this type.
    pub(crate) fn encoded(&self, text: &[u8]) -> Result<Vec<u8>, TypeError> {
        self.encoded_value(&parsed(text)?)
    }

    /// A value as the bytes of a sample, CDR.
    ///
    /// # Errors
    /// Why it is no value of this type.
    pub(crate) fn encoded_value(&self, value: &Value) -> Result<Vec<u8>, TypeError> {
        let Described { library, name } = &self.described;
        Ok(encode(library, name, value, WideStrings::Utf16)?)
    }

    /// The value of a sample's bytes, with so many elements of each list at most.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn value(
        &self,
        format: Option<Format>,
        bytes: &[u8],
        elements_max: usize,
    ) -> Result<Tree, TypeError> {
        let Described { library, name } = &self.described;
        let decode = |bytes: &[u8]| {
            decode_some((library, name), bytes, WideStrings::Utf16, elements_max).map_err(TypeError::from)
        };
        match format {
            // Boards write CDR without saying so.
            Some(Format::Cdr) | None => decode(bytes),
            Some(Format::Plain) => {
                let other = || TypeError::OwnLayout(self.description.name().to_string());
                decode(&Layouts::new(library).cdr(name, bytes).ok_or_else(other)?)
            }
            Some(other) => Err(TypeError::NotShown(other)),
        }
    }
}
