//! What a visitor sees of arrays, maps and enum variants.

use super::{ReadError, Reader};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

/// The rest of an array or of a map.
pub(super) struct Elements<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
    pub(super) left: usize,
}

impl Elements<'_, '_> {
    fn take(&mut self) -> bool {
        let any = self.left > 0;
        self.left -= usize::from(any);
        any
    }

    pub(super) fn end(&self, what: &'static str) -> Result<(), ReadError> {
        if self.left == 0 { Ok(()) } else { Err(ReadError::Elements(what)) }
    }

    /// The number of remaining elements, as far as the remaining bytes allow: a damaged header must not reserve memory.
    fn plausible(&self) -> usize {
        self.left.min(self.reader.bytes.left())
    }
}

impl<'de> SeqAccess<'de> for &mut Elements<'_, 'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        if self.take() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.plausible())
    }
}

impl<'de> MapAccess<'de> for &mut Elements<'_, 'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        if self.take() { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.plausible())
    }
}

/// A variant of an enum; its name comes next.
pub(super) struct Variant<'r, 'de> {
    pub(super) reader: &'r mut Reader<'de>,
    pub(super) has_content: bool,
}

impl Variant<'_, '_> {
    fn with_content(&self) -> Result<(), ReadError> {
        if self.has_content { Ok(()) } else { Err(ReadError::Custom("a variant has no content".into())) }
    }
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ReadError> {
        let name = seed.deserialize(&mut *self.reader)?;
        Ok((name, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        // The writer never adds nil to the name of such a variant; `rmp_serde`'s reader accepts it too.
        if self.has_content { self.reader.bytes.nil() } else { Ok(()) }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        self.with_content()?;
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _count: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.with_content()?;
        self.reader.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _fields: &'static [&'static str], visitor: V) -> Result<V::Value, ReadError> {
        self.with_content()?;
        self.reader.deserialize_seq(visitor)
    }
}
