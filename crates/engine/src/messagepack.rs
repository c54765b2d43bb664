//! Reads the stored form of events and states, which `rmp_serde` writes: MessagePack, with structs as arrays.
//!
//! `rmp_serde`'s reader accepts any representation of any type, and its code is compiled again for each of several hundred types. It was two
//! fifths of the engine's machine code. This reader accepts what the writer writes, and everything that is not generic is compiled once.

mod access;
mod bytes;

use access::{Elements, Variant};
use bytes::{Bytes, Item};
use serde::de::{Deserialize, Deserializer, Visitor};
use std::fmt;

/// How deeply values may be nested: each level takes part of the stack.
const DEPTH: u16 = 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it ends in the middle of a value")]
    Short,
    #[error("it continues after its end")]
    Long,
    #[error("at byte {position} there is {found} instead of {wanted}")]
    Unexpected { position: usize, found: &'static str, wanted: &'static str },
    #[error("text at byte {position} is not UTF-8")]
    NotUtf8 { position: usize },
    #[error("{0} has more elements than expected")]
    Elements(&'static str),
    #[error("its values are nested more than {DEPTH} levels deep")]
    Depth,
    #[error("{0}")]
    Custom(String),
}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }
}

/// Reads a value that fills `bytes`.
pub(crate) fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, ReadError> {
    let mut reader = Reader { bytes: Bytes::new(bytes), depth: DEPTH };
    let value = T::deserialize(&mut reader)?;
    if reader.bytes.at_end() { Ok(value) } else { Err(ReadError::Long) }
}

struct Reader<'de> {
    bytes: Bytes<'de>,
    depth: u16,
}

impl<'de> Reader<'de> {
    fn enter(&mut self) -> Result<(), ReadError> {
        self.depth = self.depth.checked_sub(1).ok_or(ReadError::Depth)?;
        Ok(())
    }

    /// Reads the elements of an array whose header has been read.
    fn elements<V: Visitor<'de>>(&mut self, count: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.enter()?;
        let mut elements = Elements { reader: self, left: count };
        let value = visitor.visit_seq(&mut elements)?;
        elements.end("an array")?;
        self.depth += 1;
        Ok(value)
    }

    /// Reads the entries of a map whose header has been read.
    fn entries<V: Visitor<'de>>(&mut self, count: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.enter()?;
        let mut entries = Elements { reader: self, left: count };
        let value = visitor.visit_map(&mut entries)?;
        entries.end("a map")?;
        self.depth += 1;
        Ok(value)
    }
}

macro_rules! unsigned {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            visitor.visit_u64(self.bytes.unsigned()?)
        }
    )*};
}

macro_rules! signed {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            visitor.visit_i64(self.bytes.signed()?)
        }
    )*};
}

macro_rules! text {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            visitor.visit_borrowed_str(self.bytes.text()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = ReadError;

    unsigned! { deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }
    signed! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 }
    text! { deserialize_str deserialize_string deserialize_char deserialize_identifier }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.bytes.item()? {
            Item::Nil => visitor.visit_unit(),
            Item::Bool(value) => visitor.visit_bool(value),
            Item::Unsigned(value) => visitor.visit_u64(value),
            Item::Negative(value) => visitor.visit_i64(value),
            Item::Float(value) => visitor.visit_f64(value),
            Item::Text(value) => visitor.visit_borrowed_str(value),
            Item::Binary(value) => visitor.visit_borrowed_bytes(value),
            Item::Array(count) => self.elements(count, visitor),
            Item::Map(count) => self.entries(count, visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_bool(self.bytes.boolean()?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_f64(self.bytes.float()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_f64(self.bytes.float()?)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_bytes(self.bytes.binary()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_bytes(self.bytes.binary()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.bytes.take_nil() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.bytes.nil()?;
        visitor.visit_unit()
    }

    /// A unit struct is written as an array without elements.
    fn deserialize_unit_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        match self.bytes.array()? {
            0 => visitor.visit_unit(),
            _ => Err(ReadError::Elements("a unit struct")),
        }
    }

    /// Counts as a level: a type can contain itself by nothing but newtype structs.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        self.enter()?;
        let value = visitor.visit_newtype_struct(&mut *self)?;
        self.depth += 1;
        Ok(value)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let count = self.bytes.array()?;
        self.elements(count, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _count: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _count: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let count = self.bytes.map()?;
        self.entries(count, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    /// A variant without content is written as its name, any other as a map of its name to its content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.enter()?;
        let has_content = self.bytes.take_variant_header()?;
        let value = visitor.visit_enum(Variant { reader: &mut *self, has_content })?;
        self.depth += 1;
        Ok(value)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.bytes.skip()?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
