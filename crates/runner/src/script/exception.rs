//! Describes what a script threw, with its position in the source.

use super::{ScriptError, sandbox::without_lone_surrogates};
use rquickjs::{Coerced, Ctx, Error, Object, Persistent, String as Text, Value};

pub(super) const FILE_NAME: &str = "script";
const MESSAGE_BYTES: usize = 2048;

/// Errors that the engine itself throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EngineError {
    OutOfMemory,
    StackOverflow,
    /// A value that contains itself cannot be written as JSON.
    Circular,
    /// A BigInt cannot be written as JSON.
    BigInt,
}

impl EngineError {
    /// Classifies an error by its class and message: the engine throws ordinary error objects without a code. This is the
    /// only function that knows these texts, and a test makes the real engine throw each of them.
    fn of(class: &str, message: &str) -> Option<Self> {
        match (class, message) {
            ("InternalError", "out of memory" | "out of memory in regexp execution") => Some(Self::OutOfMemory),
            ("RangeError", "Maximum call stack size exceeded") => Some(Self::StackOverflow),
            ("TypeError", "circular reference") => Some(Self::Circular),
            ("TypeError", "BigInt are forbidden in JSON.stringify") => Some(Self::BigInt),
            _ => None,
        }
    }
}

pub(super) fn describe(value: Value<'_>, prefix: &str, source: &str) -> ScriptError {
    if value.is_null() && !source.contains("null") {
        // With no memory left even for an error object, the engine throws null.
        return ScriptError::Memory;
    }
    let Some(object) = value.as_object().filter(|object| object.is_error()) else {
        return ScriptError::Thrown { message: shorten(show(value)), line: None, column: None };
    };
    let (name, message) = (text_of(object, "name"), text_of(object, "message"));
    match EngineError::of(&name, &message) {
        Some(EngineError::OutOfMemory) => return ScriptError::Memory,
        Some(EngineError::StackOverflow) => return ScriptError::Stack,
        Some(EngineError::Circular | EngineError::BigInt) | None => {}
    }
    let place = place(&text_of(object, "stack"), prefix, source);
    let message = match (name.is_empty(), message.is_empty()) {
        (false, false) => format!("{name}: {message}"),
        (false, true) => name,
        (true, false) => message,
        (true, true) => "an error without a message".into(),
    };
    ScriptError::Thrown { message: shorten(message), line: place.map(|place| place.0), column: place.map(|place| place.1) }
}

/// Why the engine cannot convert a value to JSON; `None` if the script's own code threw.
pub(super) fn engine_says_not_json(ctx: &Ctx<'_>, thrown: &Persistent<Value<'static>>) -> Option<String> {
    let value = thrown.clone().restore(ctx).ok()?;
    let object = value.as_object().filter(|object| object.is_error())?;
    match EngineError::of(&text_of(object, "name"), &text_of(object, "message"))? {
        EngineError::Circular => Some("it contains itself".into()),
        EngineError::BigInt => Some("it contains a BigInt; use Number(…) or String(…)".into()),
        EngineError::OutOfMemory | EngineError::StackOverflow => None,
    }
}

/// A value as text for the log. Exceptions thrown by the value's own code are dropped.
pub(super) fn show(value: Value<'_>) -> String {
    let ctx = value.ctx();
    if let Some(text) = value.as_string() {
        return plain(text);
    }
    let mut shown = None;
    if let Some(object) = value.as_object() {
        if object.is_error() {
            return format!("{}: {}", text_of(object, "name"), text_of(object, "message"));
        }
        if !object.is_function() {
            shown = or_dropped(ctx, ctx.json_stringify(value.clone())).flatten();
        }
    }
    let shown = shown.or_else(|| or_dropped(ctx, value.get::<Coerced<Text<'_>>>()).map(|text| text.0));
    shown.map_or_else(|| format!("[{}]", value.type_name()), |text| plain(&text))
}

/// The value, or `None`: a pending exception would be mistaken for the script's own.
fn or_dropped<T>(ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Option<T> {
    result.inspect_err(|_| drop(ctx.catch())).ok()
}

/// A string, with lone surrogates replaced.
pub(super) fn plain(text: &Text<'_>) -> String {
    let ctx = text.ctx();
    match text.to_string() {
        Ok(text) => text,
        Err(Error::Utf8(_)) => {
            let quoted = or_dropped(ctx, ctx.json_stringify(text.clone())).flatten();
            let quoted = quoted.and_then(|quoted| or_dropped(ctx, quoted.to_string()));
            quoted.and_then(|quoted| serde_json::from_str(&without_lone_surrogates(quoted)).ok()).unwrap_or_default()
        }
        Err(_) => {
            ctx.catch();
            String::new()
        }
    }
}

/// A member as text; empty if it is missing or cannot be read.
fn text_of(object: &Object<'_>, name: &str) -> String {
    let ctx = object.ctx();
    let value = or_dropped(ctx, object.get::<_, Value<'_>>(name)).filter(|value| !value.is_undefined());
    let text = value.and_then(|value| or_dropped(ctx, value.get::<Coerced<Text<'_>>>()));
    text.map_or_else(String::new, |text| plain(&text.0))
}

/// Truncates a text at a character boundary.
pub(super) fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8())));
        text.push('…');
    }
    text
}

fn shorten(text: String) -> String {
    cut(text, MESSAGE_BYTES)
}

/// Line and column of the first stack frame in the source.
fn place(stack: &str, prefix: &str, source: &str) -> Option<(u32, u32)> {
    let (line, column) = stack.lines().find_map(frame)?;
    let column = if line == 1 { column.saturating_sub(u32::try_from(prefix.len()).ok()?).max(1) } else { column };
    // An incomplete source is only detected in the suffix added after it, so the position is then its end.
    let last = u32::try_from(source.lines().count().max(1)).ok()?;
    if line > last {
        let length = source.lines().last().map_or(0, |line| line.chars().count());
        return Some((last, u32::try_from(length).ok()?.saturating_add(1)));
    }
    Some((line, column))
}

/// Parses `at name (script:3:14)` and `at script:3:14`.
fn frame(line: &str) -> Option<(u32, u32)> {
    let inner = match line.trim_end().strip_suffix(')') {
        Some(line) => &line[line.rfind('(')? + 1..],
        None => line.trim().strip_prefix("at ")?,
    };
    let (line, column) = inner.strip_prefix(FILE_NAME)?.strip_prefix(':')?.split_once(':')?;
    Some((line.parse().ok().filter(|line| *line > 0)?, column.parse().ok().filter(|column| *column > 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thrown_by(source: &str) -> Option<EngineError> {
        let runtime = rquickjs::Runtime::new().unwrap();
        runtime.set_memory_limit(4 << 20);
        runtime.set_max_stack_size(64 << 10);
        let context = rquickjs::Context::full(&runtime).unwrap();
        context.with(|ctx| {
            assert!(ctx.eval::<Value<'_>, _>(source).is_err(), "{source}");
            let thrown = ctx.catch();
            let object = thrown.as_object().filter(|object| object.is_error())?;
            EngineError::of(&text_of(object, "name"), &text_of(object, "message"))
        })
    }

    #[test]
    fn errors_of_the_real_engine_are_recognized() {
        let cases = [
            ("(() => { const parts = []; while (true) parts.push(new Uint8Array(100000)) })()", EngineError::OutOfMemory),
            ("const deep = () => 1 + deep(); deep()", EngineError::StackOverflow),
            ("const ring = {}; ring.ring = ring; JSON.stringify(ring)", EngineError::Circular),
            ("JSON.stringify({ big: 1n })", EngineError::BigInt),
        ];
        for (source, expected) in cases {
            assert_eq!(thrown_by(source), Some(expected), "{source}");
        }
        assert_eq!(thrown_by("throw new Error('no')"), None);
    }

    #[test]
    fn the_first_stack_frame_in_the_script_is_the_position() {
        let stack = "    at readFile (native)\n    at f (other:9:9)\n    at g (script:2:5)\n    at <eval> (script:4:1)\n";
        assert_eq!(place(stack, "(", "a\nb\nc"), Some((2, 5)));
        assert_eq!(place("    at script:1:8\n", "1234", "abcdef"), Some((1, 4)));
        assert_eq!(place("    at script:9:1\n", "(", "a\nbcd\n"), Some((2, 4)));
        assert_eq!(place("", "(", "a"), None);
    }

    #[test]
    fn a_misleading_function_name_does_not_break_stack_parsing() {
        assert_eq!(frame("    at ) (script:1:1 (script:7:3)"), Some((7, 3)));
        assert_eq!(frame("    at x (script:-1:3)"), None);
        assert_eq!(frame("    at x (script:99999999999:3)"), None);
    }

    #[test]
    fn truncation_keeps_characters_whole() {
        assert_eq!(cut("ééééé".into(), 6), "é…");
        assert_eq!(cut("abc".into(), 3), "abc");
    }
}
