//! Definition of an action in Rust: its three types.

use noctule_formats::Message;

/// The three types of an action: `(Goal, Result, Feedback)` is one.
pub trait Action {
    /// The goal: `package/action/Name_Goal`.
    type Goal: Message;
    /// The result: `package/action/Name_Result`. The default is sent where there is none.
    type Result: Message + Default;
    /// How far it is, `package/action/Name_Feedback`.
    type Feedback: Message;
}

impl<G: Message, R: Message + Default, F: Message> Action for (G, R, F) {
    type Goal = G;
    type Result = R;
    type Feedback = F;
}
