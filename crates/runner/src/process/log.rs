//! The log file of a job: its beginning and its end, however much it prints.

use super::ring_buffer::RingBuffer;
use lockgate_engine::plural::counted;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// How much of a job's output is kept in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// Bytes from the beginning, written immediately.
    pub head: u64,
    /// Bytes from the end, kept in memory and written when the job has ended.
    pub tail: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { head: 8 * 1024 * 1024, tail: 256 * 1024 }
    }
}

/// Writes a log within its limits. An error stops logging, never the job.
#[derive(Debug)]
pub(super) struct Log {
    file: Option<File>,
    room: u64,
    at_line_start: bool,
    beyond: u64,
    tail: RingBuffer,
    error: Option<String>,
}

impl Log {
    pub(super) fn open(path: &Path, limits: LogLimits) -> Self {
        let (file, error) = match open(path) {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(format!("cannot open the log {}: {error}", path.display()))),
        };
        Self { file, room: limits.head, at_line_start: true, beyond: 0, tail: RingBuffer::new(limits.tail), error }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        let now = usize::try_from(self.room).map_or(bytes.len(), |room| room.min(bytes.len()));
        let (now, later) = bytes.split_at(now);
        if !now.is_empty() {
            self.room -= now.len() as u64;
            self.put(now);
        }
        self.beyond += later.len() as u64;
        self.tail.push(later);
    }

    /// Writes the end. Returns whether something was omitted, and any error.
    pub(super) fn finish(mut self) -> (bool, Option<String>) {
        let tail = std::mem::replace(&mut self.tail, RingBuffer::new(0));
        let mut last = tail.last();
        let cut = self.beyond > last.len() as u64;
        if cut {
            // Start the end at the next line, if it comes soon.
            if let Some(line_end) = memchr::memchr(b'\n', &last[..last.len().min(4096)]) {
                last = &last[line_end + 1..];
            }
            let omitted = self.beyond - last.len() as u64;
            let line_break = if self.at_line_start { "" } else { "\n" };
            self.put(format!("{line_break}… {} left out …\n", counted(omitted, "byte")).as_bytes());
        }
        self.put(last);
        (cut, self.error)
    }

    fn put(&mut self, bytes: &[u8]) {
        let (Some(file), Some(last)) = (&mut self.file, bytes.last()) else { return };
        self.at_line_start = *last == b'\n';
        if let Err(error) = file.write_all(bytes) {
            self.error = Some(format!("cannot write to the log any more: {error}"));
            self.file = None;
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().append(true).create(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(limits: LogLimits, pieces: &[&[u8]]) -> (String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/log");
        let mut log = Log::open(&path, limits);
        pieces.iter().for_each(|piece| log.write(piece));
        let (cut, error) = log.finish();
        assert_eq!(error, None);
        (std::fs::read_to_string(path).unwrap(), cut)
    }

    #[test]
    fn output_within_the_limit_is_kept_unchanged() {
        let limits = LogLimits { head: 4, tail: 4 };
        assert_eq!(logged(limits, &[b"abc", b"defgh"]), ("abcdefgh".into(), false));
        assert_eq!(logged(limits, &[]), (String::new(), false));
    }

    #[test]
    fn the_middle_of_long_output_is_omitted_and_counted() {
        let limits = LogLimits { head: 4, tail: 4 };
        assert_eq!(logged(limits, &[b"ab", b"cdefghij", b"kl"]), ("abcd\n… 4 bytes left out …\nijkl".into(), true));
        assert_eq!(logged(limits, &[b"abc\n", b"defg\nij\n"]), ("abc\n… 5 bytes left out …\nij\n".into(), true));
    }

    #[test]
    fn an_existing_log_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        for text in ["one\n", "two\n"] {
            let mut log = Log::open(&path, LogLimits::default());
            log.write(text.as_bytes());
            log.finish();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
    }
}
