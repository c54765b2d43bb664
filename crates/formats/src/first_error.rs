//! Finds the first error in a tool's output: file, line and message, in the formats that common tools print.

/// The number of lines that are searched, and of bytes in each.
const LINES: usize = 5_000;
const LINE_BYTES: usize = 2_000;

/// The first error that a tool reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPosition {
    /// The file, as the tool names it.
    pub file: String,
    /// The line, counted from 1; `None` if the tool does not name one.
    pub line: Option<u64>,
    /// The error in the tool's words.
    pub message: String,
}

/// Finds the first error in the output of tsc, rustc, eslint, pytest or a similar tool.
pub fn output_position(output: &str) -> Option<OutputPosition> {
    let lines: Vec<String> = output.lines().take(LINES).map(plain).collect();
    let mut heading: Option<&str> = None;
    let mut rust: Option<&str> = None;
    let mut raised: Option<&str> = None;
    let mut summary = None;
    let mut fallback = None;
    for line in &lines {
        let text = line.trim();
        if let Some(found) = tsc(text).or_else(|| unix(text)) {
            return Some(found);
        }
        if let Some(message) = rust_heading(text) {
            rust = Some(message);
        } else if let Some(position) = text.strip_prefix("--> ")
            && let (Some(message), Some((file, line))) = (rust, file_and_line(position))
        {
            return Some(OutputPosition { file: file.to_owned(), line: Some(line), message: message.to_owned() });
        }
        if let Some((line, message)) = eslint(text)
            && let Some(file) = heading
        {
            return Some(OutputPosition { file: file.to_owned(), line: Some(line), message });
        }
        if let Some(message) = line.strip_prefix("E  ") {
            raised = raised.or(Some(message.trim())).filter(|message| !message.is_empty());
        } else if let Some(found) = pytest(text, raised) {
            return Some(found);
        }
        summary = summary.or_else(|| pytest_summary(text));
        fallback = fallback.or_else(|| simple(text));
        if is_path(text) {
            heading = Some(text);
        }
    }
    summary.or(fallback)
}

/// Removes colors from a line and cuts it to a readable length.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if text.len() >= LINE_BYTES {
            break;
        }
        if character == '\u{1b}' {
            // An escape sequence ends at its first letter.
            let _ = characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            text.push(character);
        }
    }
    text
}

/// `src/a.ts(45,7): error TS2339: …` and `src/a.ts:45:7 - error TS2339: …`.
fn tsc(text: &str) -> Option<OutputPosition> {
    let (position, rest) = text.split_once(": error TS").or_else(|| text.split_once(" - error TS"))?;
    let (_, message) = rest.split_once(": ")?;
    let (file, line) = match position.strip_suffix(')').and_then(|position| position.rsplit_once('(')) {
        Some((file, position)) => (file, position.split(',').next()?.parse().ok()?),
        None => file_and_line(position)?,
    };
    is_file(file).then(|| OutputPosition { file: file.to_owned(), line: Some(line), message: message.trim().to_owned() })
}

/// `src/a.js:45:7: … [Error/no-undef]`, and the format of most compilers: `src/a.c:4:2: error: …`.
fn unix(text: &str) -> Option<OutputPosition> {
    let (file, rest) = text.split_once(':')?;
    let (line, rest) = rest.split_once(':')?;
    let (column, message) = rest.split_once(": ")?;
    let (line, _): (u64, u64) = (line.parse().ok()?, column.parse().ok()?);
    let error = message.strip_prefix("error: ").or_else(|| message.contains("[Error/").then_some(message))?;
    is_file(file).then(|| OutputPosition { file: file.to_owned(), line: Some(line), message: error.trim().to_owned() })
}

/// `error[E0425]: cannot find value …` and `error: …`; a line below names the position.
fn rust_heading(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("error")?;
    let rest = match rest.strip_prefix('[') {
        Some(code) => code.split_once(']')?.1,
        None => rest,
    };
    rest.strip_prefix(": ").map(str::trim).filter(|message| !message.is_empty())
}

/// `45:7  error  'x' is not defined  no-undef`, below the name of its file.
fn eslint(text: &str) -> Option<(u64, String)> {
    let mut words = text.split_whitespace();
    let (line, column) = words.next()?.split_once(':')?;
    let (line, _): (u64, u64) = (line.parse().ok()?, column.parse().ok()?);
    words.next().filter(|word| *word == "error")?;
    let said = text.split_once("error")?.1.trim();
    // The name of the rule is at the end, separated by two spaces.
    let message = said.rsplit_once("  ").map_or(said, |(message, _)| message.trim());
    Some((line, message.to_owned())).filter(|(_, message)| !message.is_empty())
}

/// `tests/test_a.py:12: AssertionError`; the message is on the preceding lines that start with `E`.
fn pytest(text: &str, raised: Option<&str>) -> Option<OutputPosition> {
    let (position, kind) = text.split_once(": ")?;
    let (file, line) = file_and_line(position)?;
    let is_kind = !kind.is_empty() && kind.chars().all(|character| character.is_ascii_alphanumeric() || "._".contains(character));
    let message = raised.unwrap_or(kind);
    (file.ends_with(".py") && is_kind).then(|| OutputPosition {
        file: file.to_owned(),
        line: Some(line),
        message: message.to_owned(),
    })
}

/// `FAILED tests/test_a.py::test_x - assert 1 == 2`.
fn pytest_summary(text: &str) -> Option<OutputPosition> {
    let rest = text.strip_prefix("FAILED ").or_else(|| text.strip_prefix("ERROR "))?;
    let (test, message) = rest.split_once(" - ").unwrap_or((rest, "test failed"));
    let file = test.split("::").next()?;
    file.ends_with(".py").then(|| OutputPosition { file: file.to_owned(), line: None, message: message.trim().to_owned() })
}

/// `data/a.tsv:3: not a date`, as many small tools print it; used only if no other format matches.
fn simple(text: &str) -> Option<OutputPosition> {
    let (position, message) = text.split_once(": ")?;
    let (file, line) = file_and_line(position)?;
    let is_name = !file.contains(char::is_whitespace) && !message.trim().is_empty();
    is_name.then(|| OutputPosition { file: file.to_owned(), line: Some(line), message: message.trim().to_owned() })
}

/// `src/a.rs:2:5` or `src/a.rs:2`.
fn file_and_line(position: &str) -> Option<(&str, u64)> {
    let mut parts = position.splitn(3, ':');
    let (file, line) = (parts.next()?, parts.next()?.trim().parse().ok()?);
    if parts.next().is_some_and(|column| column.trim().parse::<u64>().is_err()) {
        return None;
    }
    is_file(file).then_some((file, line))
}

/// Whether a text has the form of a file name.
fn is_file(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    name.split_once('.').is_some_and(|(_, extension)| !extension.is_empty()) && !text.contains(char::is_control)
}

/// Whether a line consists only of a file path.
fn is_path(text: &str) -> bool {
    text.contains('/') && is_file(text) && !text.contains(": ") && !text.ends_with(['.', ':', ','])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(output: &str) -> (String, Option<u64>, String) {
        let position = output_position(output).expect("a position is found");
        (position.file, position.line, position.message)
    }

    fn at(file: &str, line: u64, message: &str) -> (String, Option<u64>, String) {
        (file.to_owned(), Some(line), message.to_owned())
    }

    #[test]
    fn both_tsc_formats_are_parsed() {
        let expected = at("services/player/index.ts", 45, "Property 'player_id' does not exist on type 'PlayerDTO'");
        let plain = "services/player/index.ts(45,7): error TS2339: Property 'player_id' does not exist on type 'PlayerDTO'";
        assert_eq!(found(plain), expected);
        let pretty = "\u{1b}[96mservices/player/index.ts\u{1b}[0m:\u{1b}[93m45\u{1b}[0m:\u{1b}[93m7\u{1b}[0m - \u{1b}[91merror\u{1b}[0m\u{1b}[90m TS2339: \u{1b}[0mProperty 'player_id' does not exist on type 'PlayerDTO'\n\n45   x.player_id\n";
        assert_eq!(found(pretty), expected);
    }

    #[test]
    fn rustc_names_the_position_below_the_message() {
        let output = "   Compiling x v0.1.0\nerror[E0425]: cannot find value `y` in this scope\n --> src/main.rs:2:5\n  |\n2 |     y\n\nerror: could not compile `x`";
        assert_eq!(found(output), at("src/main.rs", 2, "cannot find value `y` in this scope"));
    }

    #[test]
    fn eslint_names_the_file_above_the_problem_or_on_its_line() {
        let stylish = "\n/repo/src/a.ts\n  3:1  warning  Unexpected console  no-console\n  7:10  error  'x' is not defined  no-undef\n\n✖ 2 problems";
        assert_eq!(found(stylish), at("/repo/src/a.ts", 7, "'x' is not defined"));
        let unix = "src/a.js:7:10: 'x' is not defined. [Error/no-undef]";
        assert_eq!(found(unix), at("src/a.js", 7, "'x' is not defined. [Error/no-undef]"));
    }

    #[test]
    fn pytest_names_the_position_below_the_exception_or_in_its_summary() {
        let output = "    def test_x():\n>       assert 1 == 2\nE       assert 1 == 2\n\ntests/test_a.py:12: AssertionError\nFAILED tests/test_a.py::test_x - assert 1 == 2";
        assert_eq!(found(output), at("tests/test_a.py", 12, "assert 1 == 2"));
        let summary = "=== short test summary info ===\nFAILED tests/test_a.py::test_x - KeyError: 'a'\n1 failed";
        assert_eq!(found(summary), ("tests/test_a.py".into(), None, "KeyError: 'a'".into()));
    }

    #[test]
    fn a_generic_position_is_used_as_a_fallback() {
        assert_eq!(found("looking\ndata/a.tsv:3: not a date\n"), at("data/a.tsv", 3, "not a date"));
        let both = "data/a.tsv:3: not a date\nsrc/b.ts(1,2): error TS1: real";
        assert_eq!(found(both), at("src/b.ts", 1, "real"));
    }

    #[test]
    fn ordinary_output_has_no_position() {
        for output in [
            "",
            "all good\n12:30 done",
            "error: it broke",
            "see https://example.com/a.html",
            "time: 12:30:45: late",
            "::",
            "a.b:1",
        ] {
            assert_eq!(output_position(output), None, "{output:?}");
        }
    }

    proptest! {
        #[test]
        fn any_output_is_searched_without_panicking(output in "(\\PC|\\n|:|\\(|\\)|error|E  |\\x1b\\[3|--> |a\\.ts|[0-9]){0,80}") {
            if let Some(position) = output_position(&output) {
                prop_assert!(!position.file.is_empty() && !position.message.contains('\n'));
            }
        }
    }
}
