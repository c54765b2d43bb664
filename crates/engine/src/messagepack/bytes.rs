//! The encoding: markers, numbers, lengths.

use super::ReadError;

/// A value that is read completely, or the header of an array or a map.
pub(super) enum Item<'de> {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Text(&'de str),
    Binary(&'de [u8]),
    Array(usize),
    Map(usize),
}

impl Item<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a boolean",
            Self::Unsigned(_) | Self::Negative(_) => "an integer",
            Self::Float(_) => "a floating-point number",
            Self::Text(_) => "text",
            Self::Binary(_) => "bytes",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
        }
    }
}

/// The bytes that have not been read yet.
pub(super) struct Bytes<'de> {
    rest: &'de [u8],
    length: usize,
}

const NIL: u8 = 0xc0;

impl<'de> Bytes<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    pub(super) fn item(&mut self) -> Result<Item<'de>, ReadError> {
        let position = self.position();
        let marker = self.number::<1>()?[0];
        Ok(match marker {
            0x00..=0x7f => Item::Unsigned(u64::from(marker)),
            0x80..=0x8f => Item::Map(usize::from(marker & 0x0f)),
            0x90..=0x9f => Item::Array(usize::from(marker & 0x0f)),
            0xa0..=0xbf => Item::Text(self.utf8(usize::from(marker & 0x1f))?),
            NIL => Item::Nil,
            0xc2 => Item::Bool(false),
            0xc3 => Item::Bool(true),
            0xc4..=0xc6 => {
                let length = self.length(marker - 0xc4)?;
                Item::Binary(self.take(length)?)
            }
            0xca => Item::Float(f64::from(f32::from_be_bytes(self.number()?))),
            0xcb => Item::Float(f64::from_be_bytes(self.number()?)),
            0xcc => Item::Unsigned(u64::from(u8::from_be_bytes(self.number()?))),
            0xcd => Item::Unsigned(u64::from(u16::from_be_bytes(self.number()?))),
            0xce => Item::Unsigned(u64::from(u32::from_be_bytes(self.number()?))),
            0xcf => Item::Unsigned(u64::from_be_bytes(self.number()?)),
            0xd0 => integer(i64::from(i8::from_be_bytes(self.number()?))),
            0xd1 => integer(i64::from(i16::from_be_bytes(self.number()?))),
            0xd2 => integer(i64::from(i32::from_be_bytes(self.number()?))),
            0xd3 => integer(i64::from_be_bytes(self.number()?)),
            0xd9..=0xdb => {
                let length = self.length(marker - 0xd9)?;
                Item::Text(self.utf8(length)?)
            }
            0xdc..=0xdd => Item::Array(self.length(marker - 0xdc + 1)?),
            0xde..=0xdf => Item::Map(self.length(marker - 0xde + 1)?),
            0xe0..=0xff => Item::Negative(i64::from(marker.cast_signed())),
            0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => {
                return Err(ReadError::Unexpected { position, found: "an unknown marker", wanted: "a value" });
            }
        })
    }

    /// Reads a length of 1, 2 or 4 bytes (`size` 0, 1, 2).
    fn length(&mut self, size: u8) -> Result<usize, ReadError> {
        Ok(match size {
            0 => usize::from(u8::from_be_bytes(self.number()?)),
            1 => usize::from(u16::from_be_bytes(self.number()?)),
            _ => usize::try_from(u32::from_be_bytes(self.number()?)).map_err(|_| ReadError::Short)?,
        })
    }

    fn number<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], ReadError> {
        let (number, rest) = self.rest.split_first_chunk::<SIZE>().ok_or(ReadError::Short)?;
        self.rest = rest;
        Ok(*number)
    }

    fn take(&mut self, length: usize) -> Result<&'de [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ReadError::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn utf8(&mut self, length: usize) -> Result<&'de str, ReadError> {
        let position = self.position();
        std::str::from_utf8(self.take(length)?).map_err(|_| ReadError::NotUtf8 { position })
    }

    /// Reads an item and converts it; `convert` gives an item of another type back, for the error message.
    fn expect<T>(
        &mut self,
        description: &'static str,
        convert: impl FnOnce(Item<'de>) -> Result<T, Item<'de>>,
    ) -> Result<T, ReadError> {
        let position = self.position();
        convert(self.item()?).map_err(|item| ReadError::Unexpected { position, found: item.name(), wanted: description })
    }

    pub(super) fn nil(&mut self) -> Result<(), ReadError> {
        self.expect("nil", |item| if matches!(item, Item::Nil) { Ok(()) } else { Err(item) })
    }

    pub(super) fn boolean(&mut self) -> Result<bool, ReadError> {
        self.expect("a boolean", |item| if let Item::Bool(value) = item { Ok(value) } else { Err(item) })
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, ReadError> {
        self.expect("a non-negative integer", |item| if let Item::Unsigned(value) = item { Ok(value) } else { Err(item) })
    }

    pub(super) fn signed(&mut self) -> Result<i64, ReadError> {
        self.expect("an integer", |item| match item {
            Item::Negative(value) => Ok(value),
            Item::Unsigned(value) => i64::try_from(value).map_err(|_| item),
            other => Err(other),
        })
    }

    pub(super) fn float(&mut self) -> Result<f64, ReadError> {
        self.expect("a floating-point number", |item| if let Item::Float(value) = item { Ok(value) } else { Err(item) })
    }

    pub(super) fn text(&mut self) -> Result<&'de str, ReadError> {
        self.expect("text", |item| if let Item::Text(value) = item { Ok(value) } else { Err(item) })
    }

    pub(super) fn binary(&mut self) -> Result<&'de [u8], ReadError> {
        self.expect("bytes", |item| if let Item::Binary(value) = item { Ok(value) } else { Err(item) })
    }

    pub(super) fn array(&mut self) -> Result<usize, ReadError> {
        self.expect("an array", |item| if let Item::Array(count) = item { Ok(count) } else { Err(item) })
    }

    pub(super) fn map(&mut self) -> Result<usize, ReadError> {
        self.expect("a map", |item| if let Item::Map(count) = item { Ok(count) } else { Err(item) })
    }

    /// Reads nil if it comes next.
    pub(super) fn take_nil(&mut self) -> bool {
        let next = self.rest.first() == Some(&NIL);
        self.rest = &self.rest[usize::from(next)..];
        next
    }

    /// Reads what precedes the name of a variant: the header of a map with one entry, if the variant has content.
    pub(super) fn take_variant_header(&mut self) -> Result<bool, ReadError> {
        match self.rest.first() {
            Some(0xa0..=0xbf | 0xd9..=0xdb) => Ok(false),
            _ => self.expect("a variant", |item| if matches!(item, Item::Map(1)) { Ok(()) } else { Err(item) }).map(|()| true),
        }
    }

    /// Skips a value with everything in it.
    pub(super) fn skip(&mut self) -> Result<(), ReadError> {
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            left += match self.item()? {
                Item::Array(count) => count,
                Item::Map(count) => 2 * count,
                Item::Nil
                | Item::Bool(_)
                | Item::Unsigned(_)
                | Item::Negative(_)
                | Item::Float(_)
                | Item::Text(_)
                | Item::Binary(_) => 0,
            };
            if left > self.rest.len() {
                return Err(ReadError::Short);
            }
        }
        Ok(())
    }
}

fn integer<'de>(value: i64) -> Item<'de> {
    u64::try_from(value).map_or(Item::Negative(value), Item::Unsigned)
}
