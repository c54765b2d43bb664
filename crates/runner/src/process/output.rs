//! Routes a job's output: masks it, then passes it to the log, the listener and the tail.

use super::lines::Lines;
use super::log::{Log, LogLimits};
use super::ring_buffer::RingBuffer;
use crate::secret::{Masker, Masks};
use std::path::Path;
use std::sync::Arc;

/// How much of the end is included in the result.
const TAIL_BYTES: usize = 4096;
const TAIL_LINES: usize = 40;

/// Receives a job's stdout incrementally, masked, and emits the lines that people see instead. An empty piece marks the end.
pub type OnOutput<'a> = dyn FnMut(&[u8], &mut dyn FnMut(&str)) + Send + 'a;

pub(super) struct Output<'a> {
    masks: Arc<Masks>,
    masker: Masker,
    log: Log,
    lines: Lines,
    tail: RingBuffer,
    bytes: u64,
    on_line: &'a mut (dyn FnMut(&str) + Send),
    apart: Option<SeparateOutput<'a>>,
}

/// Stdout that is read separately.
struct SeparateOutput<'a> {
    masker: Masker,
    on_output: &'a mut OnOutput<'a>,
}

pub(super) struct Printed {
    pub(super) tail: String,
    pub(super) bytes: u64,
    pub(super) truncated: bool,
    pub(super) log_error: Option<String>,
}

impl<'a> Output<'a> {
    pub(super) fn new(
        masks: Arc<Masks>,
        log: &Path,
        limits: LogLimits,
        on_line: &'a mut (dyn FnMut(&str) + Send),
        on_output: Option<&'a mut OnOutput<'a>>,
    ) -> Self {
        let (log, tail) = (Log::open(log, limits), RingBuffer::new(TAIL_BYTES));
        let masker = || Masker::new(masks.clone());
        let apart = on_output.map(|on_output| SeparateOutput { masker: masker(), on_output });
        Self { masker: masker(), masks, log, lines: Lines::default(), tail, bytes: 0, on_line, apart }
    }

    pub(super) fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let masked = self.masker.feed(piece);
        self.log.write(&masked);
        self.tail.push(&masked);
        self.lines.feed(&masked, self.on_line);
    }

    /// Handles separately read stdout. The log gets it unchanged; people get the lines that its reader emits.
    pub(super) fn take_separate(&mut self, piece: &[u8]) {
        let Some(apart) = &mut self.apart else { return self.take(piece) };
        self.bytes += piece.len() as u64;
        let masked = apart.masker.feed(piece);
        if !masked.is_empty() {
            self.log.write(&masked);
            (apart.on_output)(&masked, &mut reader_line(&self.masks, &mut self.tail, self.on_line));
        }
    }

    pub(super) fn finish(mut self) -> Printed {
        if let Some(apart) = &mut self.apart {
            let held = apart.masker.finish();
            self.log.write(&held);
            let mut on_line = reader_line(&self.masks, &mut self.tail, self.on_line);
            if !held.is_empty() {
                (apart.on_output)(&held, &mut on_line);
            }
            (apart.on_output)(&[], &mut on_line);
        }
        let held = self.masker.finish();
        self.log.write(&held);
        self.tail.push(&held);
        self.lines.feed(&held, self.on_line);
        self.lines.finish(self.on_line);
        let (truncated, log_error) = self.log.finish();
        Printed { tail: last_lines(self.tail.last()), bytes: self.bytes, truncated, log_error }
    }
}

/// Handles lines emitted by a reader. They are masked again, because a secret that was escaped in the output may be unescaped
/// in them.
fn reader_line<'a>(
    masks: &'a Masks,
    tail: &'a mut RingBuffer,
    on_line: &'a mut (dyn FnMut(&str) + Send),
) -> impl FnMut(&str) + use<'a> {
    move |line| {
        let line = masks.mask_text(line);
        tail.push(line.as_bytes());
        tail.push(b"\n");
        on_line(&line);
    }
}

fn last_lines(bytes: &[u8]) -> String {
    let mut lines = Vec::new();
    let mut cut = Lines::default();
    cut.feed(bytes, &mut |line| lines.push(line.to_owned()));
    cut.finish(&mut |line| lines.push(line.to_owned()));
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
