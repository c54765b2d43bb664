//! A JSON value of a run: in place when it is small, stored once by digest when it is large.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// JSON texts up to this many bytes stand in the event itself.
pub const INLINE_LIMIT: usize = 1024;

/// A JSON value, or where to find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredValue {
    /// The value's JSON text.
    Inline(String),
    /// The digest of the value's JSON text, which is a stored value, and its length.
    Stored {
        digest: Digest,
        /// Length of the JSON text in bytes.
        bytes: u64,
    },
}

impl StoredValue {
    /// Keeps a value: in place, or by digest with the bytes that must be stored with it.
    pub fn keep(value: &Value) -> (Self, Option<(Digest, Vec<u8>)>) {
        Self::keep_text(value.to_string())
    }

    /// Keeps a JSON text: in place, or by digest with the bytes that must be stored with it.
    pub fn keep_text(text: String) -> (Self, Option<(Digest, Vec<u8>)>) {
        if text.len() <= INLINE_LIMIT {
            return (Self::Inline(text), None);
        }
        let bytes = text.into_bytes();
        let digest = Digest::of(&bytes);
        (Self::Stored { digest, bytes: bytes.len() as u64 }, Some((digest, bytes)))
    }

    /// The digest of the stored value that this datum refers to.
    pub fn stored(&self) -> Option<Digest> {
        match self {
            Self::Inline(_) => None,
            Self::Stored { digest, .. } => Some(*digest),
        }
    }
}
