//! Result of a call: a code, and a sentence that its thread can get.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use noctule::action::{ActionError, GoalError};
use noctule::parameter::{ParameterCallError, ParametersError};
use noctule::request::{ReplyError, ServiceError};
use noctule::{CallError, NodeError, PublishError, ReadError, TakeError};

/// Done.
pub(crate) const OK: c_int = 0;
/// There is no sample; no error.
pub(crate) const NOTHING: c_int = 1;
/// Another thread ended the wait; no error.
pub(crate) const WOKEN: c_int = 2;
const ARGUMENT: c_int = -1;
const SYSTEM: c_int = -2;
const TOO_LONG: c_int = -3;
const BORROWED: c_int = -4;
const BUFFER: c_int = -5;
const BROKEN: c_int = -6;
const BUG: c_int = -7;
/// Keep all, and a reader is behind: nothing was published.
const WOULD_BLOCK: c_int = -8;
/// Another thread uses the handle.
const BUSY: c_int = -9;

/// A call has no response.
const NO_REPLY: c_int = -10;

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Why a call failed.
pub(crate) struct Failure {
    code: c_int,
    sentence: String,
}

/// Result of a call without a failure: [`OK`], [`NOTHING`] or a count.
pub(crate) type Outcome = Result<c_int, Failure>;

impl Failure {
    /// The caller gave something that cannot be used.
    pub(crate) fn argument(sentence: impl Into<String>) -> Failure {
        Failure { code: ARGUMENT, sentence: sentence.into() }
    }

    /// Another thread is in a call with the same handle.
    pub(crate) fn busy(sentence: impl Into<String>) -> Failure {
        Failure { code: BUSY, sentence: sentence.into() }
    }

    /// Nobody answered in time.
    pub(crate) fn no_reply(sentence: impl Into<String>) -> Failure {
        Failure { code: NO_REPLY, sentence: sentence.into() }
    }

    /// The system, or this library's limits, have no more of it.
    pub(crate) fn system(sentence: impl Into<String>) -> Failure {
        Failure { code: SYSTEM, sentence: sentence.into() }
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Failure {
        let code = match error {
            NodeError::System { .. } | NodeError::File { .. } | NodeError::Full => SYSTEM,
            _ => ARGUMENT,
        };
        Failure { code, sentence: error.to_string() }
    }
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Failure {
        let code = match error {
            PublishError::TooLong { .. } | PublishError::TooLongForNetwork { .. } => TOO_LONG,
            PublishError::WouldBlock { .. } => WOULD_BLOCK,
            PublishError::Format { .. } | PublishError::Forked { .. } | PublishError::NotLent { .. } => {
                ARGUMENT
            }
        };
        Failure { code, sentence: error.to_string() }
    }
}

impl From<TakeError> for Failure {
    fn from(error: TakeError) -> Failure {
        let code = match error.cause {
            ReadError::Pins { .. } => BORROWED,
            ReadError::BufferTooSmall { .. } => BUFFER,
            ReadError::Corrupt { .. } => BROKEN,
            ReadError::Forked => ARGUMENT,
        };
        Failure { code, sentence: error.to_string() }
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Failure {
        match error {
            ServiceError::Node(error) => error.into(),
            ServiceError::Name { .. } => Failure::argument(error.to_string()),
        }
    }
}

impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Failure {
        match error {
            ActionError::Service(error) => error.into(),
            ActionError::Node(error) => error.into(),
            ActionError::System(_) => Failure::system(error.to_string()),
            ActionError::TypeNames { .. } | ActionError::Format(_) => Failure::argument(error.to_string()),
        }
    }
}

impl From<GoalError> for Failure {
    fn from(error: GoalError) -> Failure {
        match error {
            GoalError::Call(error) => error.into(),
            GoalError::Reply(error) => error.into(),
            GoalError::Publish(error) => error.into(),
            GoalError::Take(error) => error.into(),
            GoalError::Full { .. } | GoalError::Random { .. } => Failure::system(error.to_string()),
            GoalError::TooLong { .. } => Failure { code: TOO_LONG, sentence: error.to_string() },
            GoalError::Rejected { .. } | GoalError::Unknown { .. } => {
                Failure { code: NO_REPLY, sentence: error.to_string() }
            }
            _ => Failure::argument(error.to_string()),
        }
    }
}

impl From<ParametersError> for Failure {
    fn from(error: ParametersError) -> Failure {
        match error {
            ParametersError::Service(error) => error.into(),
            ParametersError::Node(error) => error.into(),
            ParametersError::System(_) => Failure::system(error.to_string()),
        }
    }
}

impl From<ParameterCallError> for Failure {
    fn from(error: ParameterCallError) -> Failure {
        match error {
            ParameterCallError::Call(error) => error.into(),
            _ => Failure { code: NO_REPLY, sentence: error.to_string() },
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        match error {
            CallError::Publish(error) => error.into(),
            CallError::Take(error) => error.into(),
            CallError::Full { .. } => Failure::system(error.to_string()),
            CallError::NoTime { .. } | CallError::Unknown { .. } => Failure::argument(error.to_string()),
            _ => Failure { code: NO_REPLY, sentence: error.to_string() },
        }
    }
}

impl From<ReplyError> for Failure {
    fn from(error: ReplyError) -> Failure {
        match error {
            ReplyError::Publish(error) => error.into(),
            ReplyError::Twice { .. } => Failure::argument(error.to_string()),
            _ => Failure { code: NO_REPLY, sentence: error.to_string() },
        }
    }
}

/// Runs one call: keeps the sentence of a failure for its thread, and turns a panic into a code.
pub(crate) fn guard(call: impl FnOnce() -> Outcome) -> c_int {
    // A handle that a panic has left half changed is still safe to close, which the header requires.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(code)) => code,
        Ok(Err(Failure { code, sentence })) => {
            remember(sentence);
            code
        }
        Err(_) => {
            remember("a bug in noctule, which standard error describes; close this handle".to_owned());
            BUG
        }
    }
}

fn remember(sentence: String) {
    let text = CString::new(sentence.replace('\0', "")).unwrap_or_default();
    // Fails only while the thread ends, and then nobody gets it.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// The sentence of the calling thread's last failure.
#[unsafe(no_mangle)]
pub extern "C" fn noctule_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last() -> String {
        // SAFETY: the text is ours and nothing fails on this thread before it is copied.
        unsafe { CStr::from_ptr(noctule_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_code_and_a_sentence() {
        assert_eq!(guard(|| panic!("on purpose")), BUG);
        assert!(last().contains("a bug in noctule"), "{}", last());
    }

    #[test]
    fn a_sentence_stays_with_its_thread_until_the_next_failure() {
        assert_eq!(guard(|| Err(Failure::argument("no\0 zero"))), ARGUMENT);
        assert_eq!(guard(|| Ok(OK)), OK);
        assert_eq!(last(), "no zero");
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
    }
}
