//! A JSON value of a run: inline if it is small, stored once by digest if it is large.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// JSON of up to this many bytes is kept in the event itself.
pub const INLINE_LIMIT: usize = 1024;

/// A JSON value, or a reference to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredValue {
    /// The value as JSON text.
    Inline(String),
    /// The digest and length of the JSON text, which is a stored value.
    Stored {
        digest: Digest,
        /// The length of the JSON text in bytes.
        bytes: u64,
    },
}

impl StoredValue {
    /// Converts a value: inline, or by digest together with the bytes to store.
    pub fn keep(value: &Value) -> (Self, Option<(Digest, Vec<u8>)>) {
        Self::keep_text(value.to_string())
    }

    /// Converts JSON text: inline, or by digest together with the bytes to store.
    pub fn keep_text(text: String) -> (Self, Option<(Digest, Vec<u8>)>) {
        if text.len() <= INLINE_LIMIT {
            return (Self::Inline(text), None);
        }
        let bytes = text.into_bytes();
        let digest = Digest::of(&bytes);
        (Self::Stored { digest, bytes: bytes.len() as u64 }, Some((digest, bytes)))
    }

    /// The digest, if the value is stored.
    pub fn stored(&self) -> Option<Digest> {
        match self {
            Self::Inline(_) => None,
            Self::Stored { digest, .. } => Some(*digest),
        }
    }
}
