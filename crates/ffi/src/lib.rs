//! The library from C and C++. What each function does, and what a caller promises, stands in
//! `c/include/noctule/noctule.h`; here is only the translation.
//!
//! Three rules hold for every function. Null pointers, text that is not UTF-8 and impossible numbers
//! are errors with a sentence, never undefined. No panic leaves ([`failure::guard`]). A handle is a box
//! of ours whose address the caller keeps; publishers and subscribers hold their node, so handles
//! may be closed in any order.
//!
//! Every pointer is checked for null and otherwise trusted: that it points to what the header states is
//! the caller's promise and the premise of each `SAFETY` comment.
#![allow(unsafe_code)] // glue: each block names the promise of the caller that it rests on

pub mod action;
mod argument;
pub mod dispatcher;
pub mod failure;
pub mod known;
pub mod node;
pub mod parameter;
pub mod publisher;
pub mod request;
pub mod source_time;
pub mod subscriber;
pub mod wait_set;
