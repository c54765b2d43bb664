//! Detects missing logins from a program's output, and knows how to fix them.
//!
//! A false positive costs a person's time; a false negative costs one attempt. Therefore only failed commands are examined, a
//! tool's own messages count only if that tool was called, and generic authentication errors count only near the end of the
//! output and not in test logs.

mod known_tools;

use regex::{Regex, RegexBuilder};
use std::sync::LazyLock;

/// How to detect and fix a missing login of one program, from the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// Its name; without a pattern, a command must contain this word.
    pub name: String,
    /// A case-insensitive regular expression for its messages; generic patterns if absent.
    pub pattern: Option<String>,
    pub login: Option<String>,
    /// A command that succeeds once the user is logged in.
    pub probe: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The line that reports it.
    pub error: String,
    pub steps: Vec<String>,
    /// A command that succeeds once the user is logged in.
    pub probe: Option<String>,
}

/// How many of the last lines are searched for a tool's messages.
const LINES: usize = 40;

/// How many of the last lines are searched for generic patterns.
const LAST_LINES: usize = 10;

/// The maximum length of a line shown to people.
const MAX_LINE_LENGTH: usize = 300;

/// A pattern that is not a regular expression, or too large.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
// Only the last line states the error; the lines before it show the pattern.
#[error("{}", .0.to_string().lines().last().unwrap_or("invalid pattern").trim())]
pub struct PatternError(regex::Error);

pub fn check_pattern(pattern: &str) -> Result<(), PatternError> {
    compile(pattern).map(drop)
}

fn compile(pattern: &str) -> Result<Regex, PatternError> {
    RegexBuilder::new(pattern).case_insensitive(true).size_limit(1 << 20).build().map_err(PatternError)
}

/// Whether the output of a failed command indicates a missing login.
pub fn missing(command: &str, tail: &str, tools: &[Tool]) -> Option<Missing> {
    if let Some(missing) = missing_by_settings(command, tail, tools) {
        return Some(missing);
    }
    let lines = lines_of(tail);
    let last = |count: usize| lines.iter().rev().take(count).copied();
    for tool in known_tools::TOOLS.iter().filter(|tool| calls(command, tool.programs)) {
        if let Some(line) = last(LINES).find(|line| !of_test(line) && tool.shows(line)) {
            let probe = tool.probe.map(str::to_owned);
            return Some(Missing { error: shown(line), steps: steps(tool.login), probe });
        }
    }
    // Tests that print login errors are usually testing them.
    if runs_tests(command) || lines.iter().any(|line| is_total(line)) {
        return None;
    }
    let line = last(LAST_LINES).find(|line| is_sign(line))?;
    // The tool is known only if the command calls it.
    let tool = known_tools::TOOLS.iter().find(|tool| calls(command, tool.programs));
    Some(Missing {
        error: shown(line),
        steps: own_advice(line)
            .or_else(|| tool.map(|tool| steps(tool.login)))
            .unwrap_or_else(|| vec!["Log in to the service that it uses, or set the credentials that it needs".into()]),
        probe: tool.and_then(|tool| tool.probe).map(str::to_owned),
    })
}

/// Like [`missing`], but only with patterns from the settings.
pub fn missing_by_settings(command: &str, tail: &str, tools: &[Tool]) -> Option<Missing> {
    let lines = lines_of(tail);
    tools.iter().find_map(|tool| {
        let line = by_settings(tool, command, lines.iter().rev().take(LINES).copied())?;
        let login = tool.login.clone().unwrap_or_else(|| format!("{} login", tool.name));
        Some(Missing { error: shown(line), steps: steps(&login), probe: tool.probe.clone() })
    })
}

fn lines_of(tail: &str) -> Vec<&str> {
    tail.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

fn by_settings<'l>(tool: &Tool, command: &str, mut lines: impl Iterator<Item = &'l str>) -> Option<&'l str> {
    match &tool.pattern {
        Some(pattern) => {
            let pattern = compile(pattern).ok()?;
            lines.find(|line| pattern.is_match(line))
        }
        None if calls(command, &[&tool.name]) => lines.find(|line| is_sign(line)),
        None => None,
    }
}

/// Whether a command contains one of these program names.
fn calls(command: &str, programs: &[&str]) -> bool {
    let word = |part: &str| programs.contains(&part.rsplit('/').next().unwrap_or(part));
    command.split(|character: char| character.is_whitespace() || ";|&()\"'`$=".contains(character)).any(word)
}

/// The generic patterns of the protocol, in lines that report an error.
fn is_sign(line: &str) -> bool {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| {
        let words = [
            r"\bnot (authenticated|logged[ -]?in)\b",
            r"\byou (are|must be|need to be) (not )?logged in\b",
            r"\bauthentication (is )?(required|failed)\b",
            r"\binvalid (api[ -]?key|credentials|access token)\b",
            r"\bmissing (api[ -]?key|credentials)\b",
            r"\bplease (log ?in|sign ?in|authenticate)\b",
            r"\bplease run\b.*\b(log ?in|auth\w*)\b",
            r"\brun\b:? .{0,30}\blogin\b\W*$",
            r"\brun\b.{0,40}\blogin\b.{0,20}\bto (log in|authenticate|continue)\b",
            r"\b(set|export) (the )?[A-Z][A-Z0-9]*_[A-Z0-9_]+ (environment|env)\b",
        ];
        compile(&words.join("|")).expect("a built-in pattern")
    });
    static NUMBERS: LazyLock<Regex> = LazyLock::new(|| {
        let begins = r"^\W*([\w.-]+:? ){0,2}(\(\d+\) )?";
        let complains = r"(\w*error|err!|fatal|failed|http(/[\d.]+)?|status|response|api|request|the requested url|unauthorized|forbidden|40[13])\b";
        let says = r".*(\b40[13]\b|\bunauthorized\b|\bforbidden\b)";
        let alone = r"^\W*(error: )?(unauthorized|40[13] (unauthorized|forbidden))\W*$";
        compile(&format!("{begins}{complains}{says}|{alone}")).expect("a built-in pattern")
    });
    let line: String = line.chars().take(2_000).collect();
    !of_test(&line) && (WORDS.is_match(&line) || NUMBERS.is_match(&line))
}

/// Whether a line comes from a test: it mentions expectations or results, or names a test location.
fn of_test(line: &str) -> bool {
    static TESTS: LazyLock<Regex> = LazyLock::new(|| {
        let signs = [
            r"\b(expect(ed|s)?|assert\w*|should|panicked|passed|to(be|equal)|received)\b",
            r"^\s*(test|pass|fail(ed)?|ok|not ok|--- (pass|fail))\b.*([:/]|\.\.\.|\()",
            r"[✓✗✔✖×●]",
            r"\b\w+[_.](test|spec)\.\w+\b|\btest_\w+|::test",
        ];
        compile(&signs.join("|")).expect("a built-in pattern")
    });
    TESTS.is_match(line)
}

/// Whether a command runs tests: a test runner, or a tool called with `test`. The shell's own `test` does not count.
fn runs_tests(command: &str) -> bool {
    static RUNNERS: LazyLock<Regex> = LazyLock::new(|| {
        let named = r"\b(pytest|jest|vitest|mocha|rspec|phpunit|nextest|ctest|tox|playwright|cypress)\b";
        let called = r"(^|[\s;&|(])(\./)?[\w./-]*(npm|npx|pnpm|yarn|bun|deno|cargo|go|make|just|gradlew?|mvnw?|dotnet|mix|swift|rake|composer|task)( [\w:=./-]+)*? [\w:.-]*tests?\b";
        compile(&format!("{named}|{called}")).expect("a built-in pattern")
    });
    RUNNERS.is_match(command)
}

/// Whether a line is a summary of test results.
fn is_total(line: &str) -> bool {
    static TOTAL: LazyLock<Regex> = LazyLock::new(|| {
        compile(r"\b\d+ (tests? )?(passed|failed|failing|passing)\b|\btests?:\s+\d+|\btest result:").expect("a built-in pattern")
    });
    TOTAL.is_match(line)
}

/// The fix that the line itself suggests.
fn own_advice(line: &str) -> Option<Vec<String>> {
    static RUN: LazyLock<Regex> = LazyLock::new(|| {
        compile(r#"\brun:? [`'"]?([a-z][\w.-]*( [\w.-]+){0,3}? (login|auth login|configure))\b"#).expect("a built-in pattern")
    });
    static SET: LazyLock<Regex> = LazyLock::new(|| {
        RegexBuilder::new(r"\b(?i:set|export) (?i:the )?([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b").build().expect("a built-in pattern")
    });
    if let Some(found) = RUN.captures(line) {
        return Some(steps(&found[1]));
    }
    let found = SET.captures(line)?;
    Some(vec![format!("Set {} in the environment, and resume the run from there", &found[1])])
}

fn steps(login: &str) -> Vec<String> {
    vec![format!("Run: {login}"), "Complete the authentication".to_owned()]
}

/// A line cut to the length shown to people.
pub(crate) fn shown(line: &str) -> String {
    let rest = line.get(..6).filter(|begins| begins.eq_ignore_ascii_case("error:")).map_or(line, |_| line[6..].trim());
    rest.chars().take(MAX_LINE_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str, tail: &str) -> Option<Missing> {
        missing(command, tail, &[])
    }

    #[test]
    fn the_auth_patterns_of_the_protocol_are_detected() {
        for line in [
            "Error: Not authenticated",
            "Not logged in",
            "Unauthorized",
            "Error: 401",
            "HTTP 403",
            "error: request failed with status 401",
            "Authentication required",
            "Invalid API key",
            "Missing credentials",
            "Please run vercel login",
            "Set OPENAI_API_KEY environment variable",
            "401 Unauthorized",
            "npm error 403 Forbidden",
            "curl: (22) The requested URL returned error: 401",
            "AxiosError: Request failed with status code 401",
            "Please log in first",
            "token expired, run `acme login`",
        ] {
            assert!(found("deploy.sh", line).is_some(), "{line}");
        }
    }

    #[test]
    fn test_output_is_not_an_auth_error() {
        for line in [
            "expected status 401, got 200",
            "  ✓ returns 403 for strangers (4 ms)",
            "AssertionError: Unauthorized should be thrown",
            "test auth::rejects_401 ... FAILED",
            "thread 'main' panicked at 'status 403'",
            "listening on port 4013",
            "error: 4031 files differ",
            "user 403 was saved",
            "error[E0403]: the name `T` is already used",
            "  ✓ maps E401 to a login page",
            "FAILED tests/test_auth.py::test_login - AuthError: Authentication failed",
            "    auth_test.go:12: not authenticated",
            "Error: Unauthorized\n12 passed, 1 failed",
        ] {
            assert_eq!(found("npm test", line), None, "{line}");
        }
    }

    #[test]
    fn test_runner_output_is_not_an_auth_error_and_other_output_is() {
        for command in [
            "npm test",
            "cargo test -p api",
            "cd app && pnpm run test:unit",
            "python -m pytest",
            "go test ./...",
            "./gradlew test",
        ] {
            assert_eq!(found(command, "Error: 401 Unauthorized"), None, "{command}");
        }
        for command in ["test -f x && ./deploy.sh", "npm publish", "./contest.sh", "make release"] {
            assert!(found(command, "Error: 401 Unauthorized").is_some(), "{command}");
        }
    }

    #[test]
    fn an_auth_pattern_far_from_the_end_is_ignored() {
        let log = format!("Error: Unauthorized\n{}", "building\n".repeat(20));
        assert_eq!(found("./build.sh", &log), None);
    }

    #[test]
    fn a_known_tool_has_a_login_command_and_a_probe() {
        let missing = found("vercel --yes", "Error: No existing credentials found. Please run `vercel login`").unwrap();
        assert_eq!(missing.steps[0], "Run: vercel login");
        assert_eq!(missing.probe.as_deref(), Some("vercel whoami"));
        let missing = found("cd app && gh pr create", "To get started with GitHub CLI, please run:  gh auth login").unwrap();
        assert_eq!(missing.steps[0], "Run: gh auth login");
        assert_eq!(missing.probe.as_deref(), Some("gh auth status"));
    }

    #[test]
    fn the_error_line_may_name_the_login_command() {
        let missing = found("./x", "Please run acme login to continue").unwrap();
        assert_eq!((missing.steps[0].as_str(), missing.probe), ("Run: acme login", None));
        let missing = found("./x", "Error: set ACME_TOKEN environment variable").unwrap();
        assert!(missing.steps[0].contains("ACME_TOKEN"), "{missing:?}");
    }

    #[test]
    fn the_settings_override_the_built_in_tools() {
        let tool = Tool {
            name: "acme".into(),
            pattern: Some("session (has )?expired".into()),
            login: Some("acme sign-in".into()),
            probe: Some("acme me".into()),
        };
        let missing = missing("make ship", "acme: Session expired", std::slice::from_ref(&tool)).unwrap();
        assert_eq!((missing.steps[0].as_str(), missing.probe.as_deref()), ("Run: acme sign-in", Some("acme me")));
        assert!(check_pattern("(").is_err() && check_pattern("a{1000000}").is_err());
    }

    #[test]
    fn every_known_tool_recognizes_its_own_auth_errors() {
        for tool in known_tools::TOOLS {
            for sample in tool.samples {
                assert!(tool.shows(sample), "{}: {sample}", tool.name);
            }
        }
    }
}
