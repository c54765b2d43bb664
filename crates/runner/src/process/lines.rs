//! Splits a byte stream into lines.

use std::borrow::Cow;

/// The maximum length of a line, in bytes; the rest of a longer one is dropped.
const LONGEST: usize = 4096;

/// Splits a stream at line feeds, carriage returns, and both together.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// An incomplete line.
    begun: Vec<u8>,
    /// The line was already emitted up to the limit; skip the rest of it.
    skipping: bool,
    /// The last byte was a carriage return, so a following line feed belongs to it.
    after_return: bool,
}

impl Lines {
    pub(crate) fn feed(&mut self, mut bytes: &[u8], on_line: &mut dyn FnMut(&str)) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
            bytes = &bytes[1..];
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.part(&bytes[..end], on_line);
            self.end(on_line);
            let both = bytes[end..].starts_with(b"\r\n");
            self.after_return = bytes[end..] == *b"\r";
            bytes = &bytes[end + 1 + usize::from(both)..];
        }
        if !bytes.is_empty() {
            self.part(bytes, on_line);
        }
    }

    /// Emits the last line if it has no line break.
    pub(crate) fn finish(&mut self, on_line: &mut dyn FnMut(&str)) {
        if !self.begun.is_empty() {
            self.end(on_line);
        }
    }

    fn part(&mut self, bytes: &[u8], on_line: &mut dyn FnMut(&str)) {
        if self.skipping {
            return;
        }
        let room = LONGEST - self.begun.len();
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            let mut line = text(&self.begun).into_owned();
            line.push('…');
            on_line(&line);
            self.begun.clear();
            self.skipping = true;
        }
    }

    fn end(&mut self, on_line: &mut dyn FnMut(&str)) {
        if !std::mem::take(&mut self.skipping) {
            on_line(&text(&self.begun));
        }
        self.begun.clear();
    }
}

/// Bytes as text; invalid UTF-8 is replaced.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], size: usize) -> Vec<String> {
        let mut given = Vec::new();
        let mut lines = Lines::default();
        bytes.chunks(size).for_each(|piece| lines.feed(piece, &mut |line| given.push(line.to_owned())));
        lines.finish(&mut |line| given.push(line.to_owned()));
        given
    }

    #[test]
    fn lines_end_at_line_feeds_and_carriage_returns_across_chunk_boundaries() {
        for size in 1..12 {
            assert_eq!(lines(b"a\nb\r\n\n10%\r20%\r\r\nend", size), ["a", "b", "", "10%", "20%", "", "end"], "pieces of {size}");
        }
    }

    #[test]
    fn a_long_line_is_emitted_once_up_to_the_limit() {
        for size in [1, 100, 4096, 10_000] {
            let given = lines(&[&[b'x'; 9000][..], b"\nnext\n"].concat(), size);
            assert_eq!(given, [format!("{}…", "x".repeat(4096)), "next".into()], "pieces of {size}");
        }
        assert_eq!(lines(&[b'x'; 4096], 5000), ["x".repeat(4096)]);
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        assert_eq!(lines(b"a\xffb\n", 2), ["a\u{fffd}b"]);
    }
}
