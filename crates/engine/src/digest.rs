//! Content digests (BLAKE3). Large values are stored once by digest, and approvals are bound to the digests of the files that
//! were shown.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;

/// A BLAKE3 digest: bytes in stored forms, hexadecimal in text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The predecessor of the first commit of a history.
    pub const ZERO: Self = Self([0; 32]);

    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Parses the hexadecimal form.
    pub fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(|hash| Self(*hash.as_bytes()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_bytes(&self.0) }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            Self::from_hex(&text).ok_or_else(|| D::Error::custom("a digest has 64 hexadecimal digits"))
        } else {
            struct Bytes;
            impl serde::de::Visitor<'_> for Bytes {
                type Value = Digest;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("32 bytes")
                }
                fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Digest, E> {
                    bytes.try_into().map(Digest).map_err(|_| E::invalid_length(bytes.len(), &self))
                }
            }
            deserializer.deserialize_bytes(Bytes)
        }
    }
}
