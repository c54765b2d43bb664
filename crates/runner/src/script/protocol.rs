//! The wire format: length-prefixed frames of numbers and length-prefixed texts.
//!
//! It is hand-written because large JSON texts pass through unchanged: copied once, neither escaped nor parsed.

use lockgate_engine::digest::Digest;

/// The size of the length prefix of each frame.
pub(super) const PREFIX: usize = 4;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The length of the frame that starts these bytes, once its prefix is complete.
pub(super) fn frame_length(bytes: &[u8]) -> Option<usize> {
    bytes.first_chunk::<PREFIX>().map(|prefix| u32::from_le_bytes(*prefix) as usize)
}

pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        let mut frame = Vec::with_capacity(bytes + PREFIX);
        frame.extend_from_slice(&[0; PREFIX]);
        Self(frame)
    }

    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn count(&mut self, value: usize) {
        // A count that does not fit also means a frame that is too long, which `finish` detects.
        self.0.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    }

    pub(super) fn long(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.count(value.len());
        self.0.extend_from_slice(value);
    }

    pub(super) fn digest(&mut self, value: &Digest) {
        self.0.extend_from_slice(&value.0);
    }

    /// The frame with its length; `None` if it is too long.
    pub(super) fn finish(mut self, limit: usize) -> Option<Vec<u8>> {
        let length = self.0.len() - PREFIX;
        if length > limit {
            return None;
        }
        let prefix = u32::try_from(length).ok()?.to_le_bytes();
        self.0[..PREFIX].copy_from_slice(&prefix);
        Some(self.0)
    }
}

/// Reads the contents of one frame.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    pub(super) fn long(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    pub(super) fn digest(&mut self) -> Result<Digest, Malformed> {
        Ok(Digest(self.array()?))
    }

    /// A list: its length, then each item.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.count()?;
        // Do not trust the count before the items have been read.
        let mut items = Vec::with_capacity(count.min(1024));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip() {
        let mut writer = Writer::with_capacity(0);
        writer.byte(1);
        writer.long(u64::MAX);
        writer.count(2);
        writer.bytes("é".as_bytes());
        writer.bytes(b"");
        writer.digest(&Digest::ZERO);
        let frame = writer.finish(100).unwrap();
        assert_eq!(frame_length(&frame), Some(frame.len() - PREFIX));
        let mut reader = Reader(&frame[PREFIX..]);
        assert_eq!(reader.flag(), Ok(true));
        assert_eq!(reader.long(), Ok(u64::MAX));
        assert_eq!(reader.list(|r| r.text()), Ok(vec!["é", ""]));
        assert_eq!(reader.digest(), Ok(Digest::ZERO));
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn a_truncated_or_invalid_frame_is_malformed_and_never_panics() {
        let mut writer = Writer::with_capacity(0);
        writer.count(3);
        writer.bytes(b"text");
        let frame = writer.finish(100).unwrap();
        for end in PREFIX..frame.len() {
            assert_eq!(Reader(&frame[PREFIX..end]).list(|r| r.text()), Err(Malformed));
        }
        assert_eq!(Reader(&[2]).flag(), Err(Malformed));
        assert_eq!(Reader(&[1, 0, 0, 0, 0xff]).text(), Err(Malformed));
        assert_eq!(Reader(&[0xff; 4]).list(|r| r.byte()), Err(Malformed));
        assert_eq!(Reader(&[0]).end(), Err(Malformed));
    }

    #[test]
    fn an_oversized_frame_is_refused() {
        let mut writer = Writer::with_capacity(0);
        writer.bytes(&[0; 100]);
        assert_eq!(writer.finish(100), None);
    }
}
