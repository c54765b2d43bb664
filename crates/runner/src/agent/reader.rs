//! Reads an agent's output in bounded memory, whatever it contains.

use super::output::{AgentOutput, OutputCollector, cut, show};
use super::preset::{Preset, Rule};
use crate::process::Lines;
use serde_json::{Value, json};
use std::sync::Arc;

const LONGEST_LINE: usize = 8 * 1024 * 1024;
const LONGEST_TEXT: usize = 4 * 1024 * 1024;
/// A line with more commas than this is skipped: its values would take far more memory than the line itself.
const MAX_COMMAS: usize = 500_000;
/// The maximum length of an unparsed line that is shown, in bytes.
const LONGEST_GARBAGE: usize = 500;
/// The maximum length of a stderr line, in bytes.
const LONGEST_ERROR_LINE: usize = 4096;

/// Reads the output of an agent incrementally.
#[derive(Debug)]
pub struct Reader {
    form: Form,
}

#[derive(Debug)]
enum Form {
    Plain(Plain),
    Objects(Box<Objects>),
}

impl Reader {
    /// A reader for a preset's program or, without a preset, for a plain program whose output is its text.
    pub fn new(preset: Option<&Preset>) -> Self {
        let form = match preset {
            None => Form::Plain(Plain::default()),
            Some(preset) => Form::Objects(Box::new(Objects {
                rules: preset.rules.clone(),
                line: Vec::new(),
                skipping: false,
                // A program that prints a final result has not succeeded before it does.
                facts: OutputCollector::new(preset.rules.iter().any(|rule| rule.success)),
                understood: false,
                last_garbage: None,
                last_error_line: None,
            })),
        };
        Self { form }
    }

    /// Reads the next piece and emits its progress lines. An empty piece marks the end.
    pub fn feed(&mut self, bytes: &[u8], on_progress: &mut dyn FnMut(&str)) {
        match &mut self.form {
            Form::Plain(plain) => plain.feed(bytes, on_progress),
            Form::Objects(objects) => objects.feed(bytes, on_progress),
        }
    }

    /// Reads a stderr line, which people see anyway.
    pub fn error_line(&mut self, line: &str) {
        if let Form::Objects(objects) = &mut self.form {
            let line = cut(line, LONGEST_ERROR_LINE);
            objects.facts.take(&objects.rules, &json!({"stderr": line}), &mut |_| {});
            objects.last_error_line = Some(line).filter(|line| !line.trim().is_empty()).or(objects.last_error_line.take());
        }
    }

    /// The program has ended with this code.
    pub fn exited(&mut self, code: i32) {
        if let Form::Objects(objects) = &mut self.form {
            let last = objects.last_error_line.take().unwrap_or_else(|| format!("it ended with exit code {code}"));
            objects.facts.take(&objects.rules, &json!({"exit": code, "stderr": last}), &mut |_| {});
        }
    }

    /// The session id, once it was reported.
    pub fn session(&self) -> Option<&str> {
        match &self.form {
            Form::Plain(_) => None,
            Form::Objects(objects) => objects.facts.output.session.as_deref(),
        }
    }

    pub fn finish(mut self) -> AgentOutput {
        self.feed(&[], &mut |_| {});
        match self.form {
            Form::Plain(plain) => plain.finish(),
            Form::Objects(objects) => objects.finish(),
        }
    }
}

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

    fn finish(mut self) -> AgentOutput {
        self.text.retain(|byte| *byte != 0);
        let text = String::from_utf8_lossy(&self.text).into_owned();
        AgentOutput {
            text: Some(text).filter(|text| !text.trim().is_empty()),
            truncated: self.truncated,
            ..AgentOutput::default()
        }
    }
}

/// The output of a program that prints one JSON object per line.
#[derive(Debug)]
struct Objects {
    rules: Arc<[Rule]>,
    /// An incomplete line.
    line: Vec<u8>,
    /// The line is too long; skip the rest of it.
    skipping: bool,
    facts: OutputCollector,
    /// Whether any line was an object.
    understood: bool,
    /// The last line that was not an object.
    last_garbage: Option<String>,
    /// The last line on stderr.
    last_error_line: Option<String>,
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
            self.facts.output.truncated = true;
            // Free the memory: no other line may be this long.
            self.line = Vec::new();
        }
        if !self.skipping {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, on_progress: &mut dyn FnMut(&str)) {
        if std::mem::take(&mut self.skipping) {
            self.facts.output.garbage_lines += 1;
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
                    self.facts.output.garbage_lines += 1;
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

    fn finish(self) -> AgentOutput {
        let mut output = self.facts.finish();
        if let Some(garbage) = self.last_garbage.filter(|_| !self.understood) {
            output.error =
                Some(format!("its output does not have the format that its preset expects; its last line was: {garbage}"));
        }
        output
    }
}

/// The object in a line. Some programs print control sequences or labels before it.
fn object(line: &[u8]) -> Option<Value> {
    let start = memchr::memchr(b'{', line)?;
    let text = String::from_utf8_lossy(&line[start..]);
    if text.len() > MAX_COMMAS && memchr::memchr_iter(b',', text.as_bytes()).count() > MAX_COMMAS {
        return None;
    }
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::super::preset;
    use super::*;

    fn read(name: Option<&str>, pieces: &[&[u8]]) -> (AgentOutput, Vec<String>) {
        let mut reader = Reader::new(name.map(|name| preset(name).unwrap()));
        let mut lines = Vec::new();
        pieces.iter().for_each(|piece| reader.feed(piece, &mut |line| lines.push(line.to_owned())));
        reader.feed(&[], &mut |line| lines.push(line.to_owned()));
        (reader.finish(), lines)
    }

    #[test]
    fn garbage_between_the_lines_is_counted_and_skipped() {
        let (output, lines) = read(
            Some("claude"),
            &[b"npm warn old\n\xff\xfe\x00\n\n{\"type\":\n[1,2]\n\"text\"\n\x1b[?25l{\"type\":\"result\",\"result\":\"fine\"}\r\n{\"type\":\"res"],
        );
        assert_eq!((output.text.as_deref(), output.garbage_lines, output.error), (Some("fine"), 6, None));
        assert_eq!(lines[0], "npm warn old");
        assert!(lines.iter().all(|line| !line.contains('\0')), "{lines:?}");
    }

    #[test]
    fn output_in_an_unknown_format_is_reported_with_its_last_line() {
        let (output, _) = read(Some("codex"), &[b"error: unexpected argument '--json' found\nFor more, try --help\n"]);
        let error = output.error.unwrap();
        assert!(error.ends_with("its last line was: For more, try --help"), "{error}");
        assert_eq!((output.text, output.garbage_lines), (None, 2));
        assert_eq!(read(Some("codex"), &[]).0, AgentOutput::default());
    }

    #[test]
    fn unknown_objects_are_not_counted_as_garbage() {
        let (output, lines) = read(Some("gemini"), &[b"{\"type\":\"telemetry\",\"x\":[{}]}\n{}\n{\"type\":5}\n"]);
        assert_eq!((output, lines), (AgentOutput::default(), vec![]));
    }

    #[test]
    fn an_overlong_line_is_skipped_and_later_lines_are_parsed() {
        let mut reader = Reader::new(Some(preset("claude").unwrap()));
        reader.feed(b"{\"type\":\"result\",\"result\":\"", &mut |_| {});
        for _ in 0..200 {
            reader.feed(&[b'x'; 100_000], &mut |_| {});
            let Form::Objects(objects) = &reader.form else { unreachable!() };
            assert!(objects.line.capacity() <= 2 * LONGEST_LINE);
        }
        reader.feed(b"\"}\n{\"type\":\"result\",\"result\":\"short\"}\n", &mut |_| {});
        let output = reader.finish();
        assert_eq!((output.text.as_deref(), output.garbage_lines, output.truncated), (Some("short"), 1, true));
    }

    #[test]
    fn a_line_with_too_many_values_or_too_deep_is_skipped() {
        let many = format!("{{\"type\":\"result\",\"result\":\"x\",\"list\":[0{}]}}", ",0".repeat(MAX_COMMAS));
        let deep = format!("{{\"type\":\"result\",\"result\":\"x\",\"list\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let (output, _) = read(Some("claude"), &[many.as_bytes(), b"\n", deep.as_bytes()]);
        assert_eq!((output.text, output.garbage_lines), (None, 2));
    }

    #[test]
    fn an_overlong_text_is_truncated_and_reported() {
        let long = "ä".repeat(3 * 1024 * 1024);
        let line = format!("{{\"type\":\"result\",\"result\":\"a\\u0000b{long}\"}}\n");
        let (output, _) = read(Some("claude"), &[line.as_bytes()]);
        let text = output.text.unwrap();
        assert!(text.starts_with("abä") && text.len() <= LONGEST_TEXT && text.len() > LONGEST_TEXT - 8, "{}", text.len());
        assert!(output.truncated);
        // It is also bounded when it arrives in many pieces.
        let mut reader = Reader::new(Some(preset("opencode").unwrap()));
        let piece = format!("{{\"type\":\"text\",\"part\":{{\"text\":\"{}\"}}}}\n", "x".repeat(1000));
        (0..5000).for_each(|_| reader.feed(piece.as_bytes(), &mut |_| {}));
        let output = reader.finish();
        assert_eq!((output.text.map(|text| text.len()), output.truncated), (Some(LONGEST_TEXT), true));
    }

    #[test]
    fn displayed_text_is_truncated() {
        let text = format!("{}\\n{}", "y".repeat(5000), "line\\n".repeat(1000));
        let line = format!("{{\"type\":\"assistant\",\"message\":{{\"content\":\"{text}\"}}}}\n");
        let (_, lines) = read(Some("claude"), &[line.as_bytes()]);
        assert_eq!((lines.len(), lines[0].len()), (40, 500 + "…".len()));
    }

    #[test]
    fn a_session_id_that_looks_like_an_option_is_refused() {
        let (output, _) =
            read(Some("claude"), &[b"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"--dangerously\"}\n"]);
        assert_eq!(output.session, None);
    }

    #[test]
    fn the_output_of_a_plain_program_is_its_text() {
        let (output, lines) = read(None, &[b"one\ntw", b"o\0\xff\n\nthree"]);
        assert_eq!(output, AgentOutput { text: Some("one\ntwo\u{fffd}\n\nthree".into()), ..AgentOutput::default() });
        assert_eq!(lines, ["one", "two\u{fffd}", "three"]);
        assert_eq!(read(None, &[b" \n"]).0, AgentOutput::default());
        let flood = [b'z'; 1_000_000];
        let (output, _) = read(None, &[&flood, &flood, &flood, &flood, &flood]);
        assert_eq!((output.text.map(|text| text.len()), output.truncated), (Some(LONGEST_TEXT), true));
    }
}
