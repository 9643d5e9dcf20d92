//! A sample as a page shows it: its bytes or values, and the way that it came.

use std::sync::Arc;

pub use noctule_record::state::ms;

use serde_json::{Value, json};

use noctule_codegen::cdr::Tree;

use crate::types::{NotDecoded, Types, json_tree};

/// Bytes shown of what is not decoded.
const RAW_BYTES_MAX: usize = 256;

/// A sample with what is known of it. Times are ns of one clock: the view's own, or the recorder's.
#[derive(Clone, Debug)]
pub struct ShownSample {
    /// When its content was true; `None` if the publisher's clock is not known.
    pub source_ns: Option<i64>,
    /// Receive time, ns.
    pub receive_ns: i64,
    /// Error of `source_ns`; `None` if nothing is proven.
    pub bound_ns: Option<i64>,
    /// The publisher, by name if it is known.
    pub publisher: String,
    /// `shm`, `udp` or `file`.
    pub route: &'static str,
    /// The publisher's count.
    pub sequence: u64,
    /// Samples lost before it.
    pub missed: u64,
    /// `cdr`, `plain`, `json`, or another word.
    pub format: String,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Its type and what the publisher announces of it.
    pub type_name: String,
    /// Hash of the type, 0 if there is none.
    pub type_hash: u64,
}

impl ShownSample {
    /// Its values.
    ///
    /// # Errors
    /// Why there are none.
    pub fn tree(&self, types: &Types) -> Result<Tree, NotDecoded> {
        if self.format == "json" {
            return json_tree(&self.bytes);
        }
        types.decoder(&self.type_name, self.type_hash)?.decode(&self.format, &self.bytes)
    }

    /// As JSON: where and when, without values.
    pub fn head(&self, topic: &str) -> Value {
        let age_ns = self.source_ns.map(|source_ns| self.receive_ns.saturating_sub(source_ns));
        json!({
            "topic": topic,
            "source_ms": self.source_ns.map(ms),
            "receive_ms": ms(self.receive_ns),
            "age_ms": age_ns.map(ms),
            "bound_ms": self.bound_ns.map(ms),
            "publisher": self.publisher,
            "route": self.route,
            "sequence": self.sequence,
            "missed": self.missed,
            "format": self.format,
            "bytes": self.bytes.len(),
        })
    }

    /// As JSON with its values in the order of their definition, or its first bytes and why they are not decoded. `head` is that of
    /// [`head`](ShownSample::head), with what the caller adds.
    pub fn described(&self, mut head: Value, types: &Types) -> String {
        match self.tree(types) {
            Ok(tree) => {
                // Appended as text: a JSON value of serde_json would sort its members.
                let mut text = head.to_string();
                text.pop();
                let tree = serde_json::to_string(&tree).unwrap_or_else(|_| "null".to_owned());
                text + ",\"tree\":" + &tree + "}"
            }
            Err(why) => {
                let shown = &self.bytes[..self.bytes.len().min(RAW_BYTES_MAX)];
                let digits: String = shown.iter().map(|byte| format!("{byte:02x} ")).collect();
                head["raw"] = json!(digits.trim_end());
                head["text"] = json!(std::str::from_utf8(shown).ok());
                head["why"] = json!(why.to_string());
                head.to_string()
            }
        }
    }
}
