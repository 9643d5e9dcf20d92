//! The parameters of another node, by requests.

use std::time::Duration;

use noctule_formats::Message;

use super::refusal::Refusal;
use super::store::ParameterNames;
use super::value::{ParameterDescriptor, ParameterType, ParameterValue};
use super::{MESSAGE_BYTES_MAX, service};
use crate::generated::rcl_interfaces::{msg, srv};
use crate::node::Node;
use crate::request::{CallError, Client, ServiceError};

/// Why a node's parameters were not read or set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterCallError {
    /// The call.
    #[error(transparent)]
    Call(#[from] CallError),
    /// An answer with another number of entries than was requested.
    #[error(
        "node {node}: {asked} parameters were asked for, and the answer has {came}; one of them may not be declared there"
    )]
    Count {
        /// Whose.
        node: String,
        /// Asked for.
        asked: usize,
        /// In the answer.
        came: usize,
    },
    /// A value of no kind that there is.
    #[error("node {node}: parameter {name} has a value of kind {kind}, which rcl_interfaces does not know")]
    Kind {
        /// Whose.
        node: String,
        /// Which.
        name: String,
        /// Its number.
        kind: u8,
    },
}

/// The description of a parameter and the kind of its value.
pub type Described = (ParameterType, ParameterDescriptor);

/// Whether a parameter was set: if not, the sentence of the node that refused.
pub type ParameterSet = Result<(), Refusal>;

/// Reads and sets the parameters of one node. Each call ends within its deadline; a node without parameters is
/// [`CallError::NoServer`].
#[derive(Debug)]
pub struct ParameterClient {
    node: String,
    describe: Client<srv::DescribeParameters_Request, srv::DescribeParameters_Response>,
    types: Client<srv::GetParameterTypes_Request, srv::GetParameterTypes_Response>,
    get: Client<srv::GetParameters_Request, srv::GetParameters_Response>,
    list: Client<srv::ListParameters_Request, srv::ListParameters_Response>,
    set: Client<srv::SetParameters_Request, srv::SetParameters_Response>,
    set_all: Client<srv::SetParametersAtomically_Request, srv::SetParametersAtomically_Response>,
}

impl Node {
    /// The parameters of the node that ROS 2 knows by this name, such as `/arm`; a call waits up to `deadline`.
    ///
    /// # Errors
    /// A name that cannot travel, or no room for their endpoints.
    pub fn parameter_client(&self, name: &str, deadline: Duration) -> Result<ParameterClient, ServiceError> {
        let at = |last| service(name, last);
        Ok(ParameterClient {
            node: format!("/{}", name.trim_matches('/')),
            // What only reads may be asked twice.
            describe: open(self, &at("describe_parameters"), (deadline, true))?,
            types: open(self, &at("get_parameter_types"), (deadline, true))?,
            get: open(self, &at("get_parameters"), (deadline, true))?,
            list: open(self, &at("list_parameters"), (deadline, true))?,
            set: open(self, &at("set_parameters"), (deadline, false))?,
            set_all: open(self, &at("set_parameters_atomically"), (deadline, false))?,
        })
    }
}

fn open<Q: Message, R: Message>(
    node: &Node,
    name: &str,
    (deadline, is_idempotent): (Duration, bool),
) -> Result<Client<Q, R>, ServiceError> {
    let client = node.client(name).deadline(deadline).idempotent(is_idempotent);
    client.payload_bytes_max(MESSAGE_BYTES_MAX).open()
}

impl ParameterClient {
    /// Names of its parameters below these prefixes, all if there is none, with at most `depth` parts behind the prefix; 0: however many.
    ///
    /// # Errors
    /// No answer.
    pub fn list(&mut self, prefixes: &[&str], depth: u64) -> Result<ParameterNames, ParameterCallError> {
        let prefixes = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        let request = srv::ListParameters_Request { prefixes, depth };
        let msg::ListParametersResult { names, prefixes } = self.list.call(&request)?.into_value().result;
        Ok(ParameterNames { names, prefixes })
    }

    /// Values, in the order of their names; [`ParameterValue::NotSet`] of what is not declared.
    ///
    /// # Errors
    /// No answer, or one that does not fit.
    pub fn get(&mut self, names: &[&str]) -> Result<Vec<ParameterValue>, ParameterCallError> {
        let request = srv::GetParameters_Request { names: owned(names) };
        let values = self.get.call(&request)?.into_value().values;
        self.check(names.len(), values.len())?;
        let kind = |(name, value): (&&str, msg::ParameterValue)| {
            let number = value.r#type;
            ParameterValue::of_message(value).ok_or_else(|| self.unknown(name, number))
        };
        names.iter().zip(values).map(kind).collect()
    }

    /// Kinds, in the order of their names; [`ParameterType::NotSet`] of what is not declared.
    ///
    /// # Errors
    /// No answer, or one that does not fit.
    pub fn types(&mut self, names: &[&str]) -> Result<Vec<ParameterType>, ParameterCallError> {
        let request = srv::GetParameterTypes_Request { names: owned(names) };
        let types = self.types.call(&request)?.into_value().types;
        self.check(names.len(), types.len())?;
        let kind = |(name, number): (&&str, u8)| {
            ParameterType::of_number(number).ok_or_else(|| self.unknown(name, number))
        };
        names.iter().zip(types).map(kind).collect()
    }

    /// Descriptions of parameters, with the kinds of their values, in the order of their names.
    ///
    /// # Errors
    /// No answer, or one that does not fit.
    pub fn describe(&mut self, names: &[&str]) -> Result<Vec<Described>, ParameterCallError> {
        let request = srv::DescribeParameters_Request { names: owned(names) };
        let descriptors = self.describe.call(&request)?.into_value().descriptors;
        self.check(names.len(), descriptors.len())?;
        let known = |message: msg::ParameterDescriptor| {
            let kind = ParameterType::of_number(message.r#type)
                .ok_or_else(|| self.unknown(&message.name, message.r#type))?;
            Ok((kind, ParameterDescriptor::of_message(message)))
        };
        descriptors.into_iter().map(known).collect()
    }

    /// Sets each of these that the node lets be set.
    ///
    /// # Errors
    /// No answer, or one that does not fit.
    pub fn set(
        &mut self,
        values: &[(&str, ParameterValue)],
    ) -> Result<Vec<ParameterSet>, ParameterCallError> {
        let request = srv::SetParameters_Request { parameters: parameters(values) };
        let results = self.set.call(&request)?.into_value().results;
        self.check(values.len(), results.len())?;
        Ok(results.into_iter().map(outcome).collect())
    }

    /// Sets all of these or none.
    ///
    /// # Errors
    /// No answer.
    pub fn set_atomically(
        &mut self,
        values: &[(&str, ParameterValue)],
    ) -> Result<ParameterSet, ParameterCallError> {
        let request = srv::SetParametersAtomically_Request { parameters: parameters(values) };
        Ok(outcome(self.set_all.call(&request)?.into_value().result))
    }

    fn check(&self, asked: usize, came: usize) -> Result<(), ParameterCallError> {
        match asked == came {
            true => Ok(()),
            false => Err(ParameterCallError::Count { node: self.node.clone(), asked, came }),
        }
    }

    fn unknown(&self, name: &str, kind: u8) -> ParameterCallError {
        ParameterCallError::Kind { node: self.node.clone(), name: name.to_owned(), kind }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn parameters(values: &[(&str, ParameterValue)]) -> Vec<msg::Parameter> {
    let one = |(name, value): &(&str, ParameterValue)| msg::Parameter {
        name: (*name).to_owned(),
        value: value.to_message(),
    };
    values.iter().map(one).collect()
}

fn outcome(result: msg::SetParametersResult) -> ParameterSet {
    match result.successful {
        true => Ok(()),
        false => Err(result.reason.into()),
    }
}
