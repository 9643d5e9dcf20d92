//! The types of an action's services and topics, derived from those of its goal, its result and its feedback.

use noctule_formats::{Definition, Describer, Message, struct_hash};

use super::definition::Action;
use super::error::ActionError;
use crate::generated::action_msgs::{msg, srv};
use crate::generated::builtin_interfaces::msg::Time;
use crate::generated::unique_identifier_msgs::msg::UUID;
use crate::node::Node;
use crate::request::{ServiceTypes, TypeRef};

/// Bytes of a number and what stands before it, in requests and in feedback.
pub(super) const GOAL_BYTES: usize = 20;
/// Where the number begins, and where the status stands in a response with a result.
pub(super) const STATUS_AT: usize = 4;

/// The types of what an action exchanges, beside those that every action has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionTypes {
    /// Of `send_goal`: `package/action/Name_SendGoal_Request` and `…_Response`.
    pub send_goal: ServiceTypes,
    /// Of `get_result`: `package/action/Name_GetResult_Request` and `…_Response`.
    pub get_result: ServiceTypes,
    /// `package/action/Name_FeedbackMessage`
    pub feedback: TypeRef,
}

/// Name, hash and word of a member.
type Member = (&'static str, u64, fn(&mut Describer) -> String);

/// A type that is made of others.
struct Derived {
    name: String,
    members: Vec<Member>,
}

impl Derived {
    fn hash(&self) -> u64 {
        let members: Vec<(&str, u64)> = self.members.iter().map(|(name, hash, _)| (*name, *hash)).collect();
        struct_hash(&self.name, &members)
    }

    fn type_ref(&self) -> TypeRef {
        TypeRef { name: self.name.clone(), hash: self.hash() }
    }

    fn description(&self) -> String {
        let mut types = Describer::default();
        types.structure(&self.name, |types| {
            self.members.iter().map(|(name, _, describe)| (*name, describe(types))).collect()
        });
        types.finish()
    }
}

fn member<T: Definition>(name: &'static str) -> Member {
    (name, T::HASH, T::describe)
}

/// Send goal, its response, get result, its response, feedback: in this order.
fn derived<A: Action>() -> Result<[Derived; 5], ActionError> {
    let [goal, result, feedback] = [A::Goal::TYPE_NAME, A::Result::TYPE_NAME, A::Feedback::TYPE_NAME];
    let name = goal.strip_suffix("_Goal");
    let others = (result.strip_suffix("_Result"), feedback.strip_suffix("_Feedback"));
    let Some(name) = name.filter(|name| others == (Some(*name), Some(*name))) else {
        return Err(ActionError::TypeNames { goal, result, feedback });
    };
    let of = |suffix: &str, members| Derived { name: format!("{name}_{suffix}"), members };
    let goal_id = || member::<UUID>("goal_id");
    Ok([
        of("SendGoal_Request", vec![goal_id(), member::<A::Goal>("goal")]),
        of("SendGoal_Response", vec![member::<bool>("accepted"), member::<Time>("stamp")]),
        of("GetResult_Request", vec![goal_id()]),
        of("GetResult_Response", vec![member::<i8>("status"), member::<A::Result>("result")]),
        of("FeedbackMessage", vec![goal_id(), member::<A::Feedback>("feedback")]),
    ])
}

impl ActionTypes {
    /// Those of an action of Rust.
    ///
    /// # Errors
    /// Goal, result and feedback are not named as those of one action.
    pub fn of<A: Action>() -> Result<ActionTypes, ActionError> {
        let [send, sent, get, got, feedback] = derived::<A>()?;
        Ok(ActionTypes {
            send_goal: ServiceTypes { request: send.type_ref(), response: sent.type_ref() },
            get_result: ServiceTypes { request: get.type_ref(), response: got.type_ref() },
            feedback: feedback.type_ref(),
        })
    }

    /// Those of the action `package/action/Name`, for any definition of it.
    pub fn named(name: &str) -> ActionTypes {
        let of = |suffix: &str| TypeRef { name: format!("{name}_{suffix}"), hash: 0 };
        ActionTypes {
            send_goal: ServiceTypes { request: of("SendGoal_Request"), response: of("SendGoal_Response") },
            get_result: ServiceTypes { request: of("GetResult_Request"), response: of("GetResult_Response") },
            feedback: of("FeedbackMessage"),
        }
    }
}

/// Lets other nodes request the definitions of the types. A node that describes as many as it may goes without.
pub(super) fn describe<A: Action>(node: &Node) -> Result<(), ActionError> {
    for derived in derived::<A>()? {
        let _ = node.describe(&derived.description());
    }
    Ok(())
}

/// Lets other nodes request the types that every action has.
pub(super) fn describe_shared(node: &Node) {
    node.describe_type::<srv::CancelGoal_Request>();
    node.describe_type::<srv::CancelGoal_Response>();
    node.describe_type::<msg::GoalStatusArray>();
}

/// Of `cancel_goal`.
pub(super) fn cancel_types() -> ServiceTypes {
    fn of<T: Message>() -> TypeRef {
        TypeRef { name: T::TYPE_NAME.to_owned(), hash: T::type_hash() }
    }
    ServiceTypes { request: of::<srv::CancelGoal_Request>(), response: of::<srv::CancelGoal_Response>() }
}
