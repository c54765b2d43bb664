//! What a job prints, on its way: masked, then to the log, the listener and the tail.

use super::lines::Lines;
use super::log::{Log, LogLimits};
use super::ring::Ring;
use crate::secret::{Masker, Masks};
use std::path::Path;
use std::sync::Arc;

/// How much of the end is told with the result.
const TAIL_BYTES: usize = 4096;
const TAIL_LINES: usize = 40;

/// Takes what a job prints.
pub(super) struct Output<'a> {
    masker: Masker,
    log: Log,
    lines: Lines,
    tail: Ring,
    bytes: u64,
    on_line: &'a mut (dyn FnMut(&str) + Send),
}

/// What became of the output.
pub(super) struct Printed {
    pub(super) tail: String,
    pub(super) bytes: u64,
    pub(super) truncated: bool,
    pub(super) log_error: Option<String>,
}

impl<'a> Output<'a> {
    pub(super) fn new(masks: Arc<Masks>, log: &Path, limits: LogLimits, on_line: &'a mut (dyn FnMut(&str) + Send)) -> Self {
        let (log, tail) = (Log::open(log, limits), Ring::new(TAIL_BYTES));
        Self { masker: Masker::new(masks), log, lines: Lines::default(), tail, bytes: 0, on_line }
    }

    pub(super) fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let masked = self.masker.feed(piece);
        self.log.write(&masked);
        self.tail.push(&masked);
        self.lines.feed(&masked, self.on_line);
    }

    pub(super) fn finish(mut self) -> Printed {
        let held = self.masker.finish();
        self.log.write(&held);
        self.tail.push(&held);
        self.lines.feed(&held, self.on_line);
        self.lines.finish(self.on_line);
        let (truncated, log_error) = self.log.finish();
        Printed { tail: last_lines(self.tail.last()), bytes: self.bytes, truncated, log_error }
    }
}

fn last_lines(bytes: &[u8]) -> String {
    let mut lines = Vec::new();
    let mut cut = Lines::default();
    cut.feed(bytes, &mut |line| lines.push(line.to_owned()));
    cut.finish(&mut |line| lines.push(line.to_owned()));
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
