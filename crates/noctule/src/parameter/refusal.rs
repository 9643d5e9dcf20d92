//! Why a program does not let its parameters be set.

use std::fmt;

/// The sentence with which a program refuses values of its parameters; it travels to the node that set them.
///
/// ```
/// use noctule::parameter::Refusal;
///
/// let refused: Result<(), Refusal> = Err("the arm moves; stop it first".into());
/// assert_eq!(refused.unwrap_err().to_string(), "the arm moves; stop it first");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl From<String> for Refusal {
    fn from(sentence: String) -> Refusal {
        Refusal(sentence)
    }
}

impl From<&str> for Refusal {
    fn from(sentence: &str) -> Refusal {
        Refusal(sentence.to_owned())
    }
}
