//! Reads what an agent prints, whatever it prints, in a bounded amount of memory.

use super::facts::{Facts, Told, cut, show};
use super::preset::{Preset, Rule};
use crate::process::Lines;
use serde_json::Value;
use std::sync::Arc;

/// The longest line of machine-readable output that is read, in bytes.
const LONGEST_LINE: usize = 8 * 1024 * 1024;
/// The longest text of a plain program that is kept, in bytes.
const LONGEST_TEXT: usize = 4 * 1024 * 1024;
/// A line with more commas than this is not read: its many values would take far more memory than the line itself.
const MOST_COMMAS: usize = 500_000;
/// So much of a line that was not understood is told, in bytes.
const LONGEST_GARBAGE: usize = 500;

/// Reads the output of an agent piece by piece.
#[derive(Debug)]
pub struct Reader {
    form: Form,
}

#[derive(Debug)]
enum Form {
    Plain(Plain),
    Objects(Objects),
}

impl Reader {
    /// A reader for the output of this preset's program; without one, for that of a plain program, whose output is its text.
    pub fn new(preset: Option<&Preset>) -> Self {
        let form = match preset {
            None => Form::Plain(Plain::default()),
            Some(preset) => Form::Objects(Objects {
                rules: preset.rules.clone(),
                line: Vec::new(),
                skipping: false,
                facts: Facts::default(),
                understood: false,
                last_garbage: None,
            }),
        };
        Self { form }
    }

    /// Takes the next piece, and gives people the lines that it holds for them. An empty piece says that nothing more comes.
    pub fn feed(&mut self, bytes: &[u8], on_progress: &mut dyn FnMut(&str)) {
        match &mut self.form {
            Form::Plain(plain) => plain.feed(bytes, on_progress),
            Form::Objects(objects) => objects.feed(bytes, on_progress),
        }
    }

    /// What was told.
    pub fn finish(mut self) -> Told {
        self.feed(&[], &mut |_| {});
        match self.form {
            Form::Plain(plain) => plain.finish(),
            Form::Objects(objects) => objects.finish(),
        }
    }
}

/// The output of a plain program.
#[derive(Debug, Default)]
struct Plain {
    text: Vec<u8>,
    truncated: bool,
    lines: Lines,
}

impl Plain {
    fn feed(&mut self, bytes: &[u8], on_progress: &mut dyn FnMut(&str)) {
        let kept = bytes.len().min(LONGEST_TEXT - self.text.len());
        self.text.extend_from_slice(&bytes[..kept]);
        self.truncated |= kept < bytes.len();
        let mut on_line = |line: &str| show(line, on_progress);
        match bytes {
            [] => self.lines.finish(&mut on_line),
            bytes => self.lines.feed(bytes, &mut on_line),
        }
    }

    fn finish(mut self) -> Told {
        self.text.retain(|byte| *byte != 0);
        let text = String::from_utf8_lossy(&self.text).into_owned();
        Told { text: Some(text).filter(|text| !text.trim().is_empty()), truncated: self.truncated, ..Told::default() }
    }
}

/// The output of a program that prints JSON objects, one a line.
#[derive(Debug)]
struct Objects {
    rules: Arc<[Rule]>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The line is too long; what comes is left out until it ends.
    skipping: bool,
    facts: Facts,
    /// Whether any line was an object.
    understood: bool,
    /// The last line that was none.
    last_garbage: Option<String>,
}

impl Objects {
    fn feed(&mut self, mut bytes: &[u8], on_progress: &mut dyn FnMut(&str)) {
        if bytes.is_empty() {
            return self.end(on_progress);
        }
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.part(&bytes[..end]);
            self.end(on_progress);
            bytes = &bytes[end + 1..];
        }
        self.part(bytes);
    }

    fn part(&mut self, bytes: &[u8]) {
        if !self.skipping && self.line.len() + bytes.len() > LONGEST_LINE {
            self.skipping = true;
            self.facts.told.truncated = true;
            // The memory is given back: such a line may be the only one.
            self.line = Vec::new();
        }
        if !self.skipping {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, on_progress: &mut dyn FnMut(&str)) {
        if std::mem::take(&mut self.skipping) {
            self.facts.told.garbage_lines += 1;
            return;
        }
        let line = std::mem::take(&mut self.line);
        let content = line.trim_ascii();
        if !content.is_empty() {
            match object(content) {
                Some(object) => {
                    self.understood = true;
                    self.facts.take(&self.rules, &object, on_progress);
                }
                None => {
                    self.facts.told.garbage_lines += 1;
                    let start = &content[..content.len().min(4 * LONGEST_GARBAGE)];
                    let garbage = cut(&String::from_utf8_lossy(start), LONGEST_GARBAGE);
                    show(&garbage, on_progress);
                    self.last_garbage = Some(garbage);
                }
            }
        }
        if line.capacity() <= 1024 * 1024 {
            self.line = line;
            self.line.clear();
        }
    }

    fn finish(self) -> Told {
        let mut told = self.facts.finish();
        if let Some(garbage) = self.last_garbage.filter(|_| !self.understood) {
            told.error = Some(format!("it printed nothing in the form that its preset expects; its last line was: {garbage}"));
        }
        told
    }
}

/// The object that a line is, or that it ends with: some programs print control sequences or labels before it.
fn object(line: &[u8]) -> Option<Value> {
    let start = memchr::memchr(b'{', line)?;
    let text = String::from_utf8_lossy(&line[start..]);
    if text.len() > MOST_COMMAS && memchr::memchr_iter(b',', text.as_bytes()).count() > MOST_COMMAS {
        return None;
    }
    serde_json::from_str(&text).ok()
}
