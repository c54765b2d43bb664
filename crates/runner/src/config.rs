//! The settings in `.lockgate/config.yaml`. Without the file, everything has its default.

use lockgate_engine::time::parse_duration;
use serde::{Deserialize, Deserializer, de::Error as _};
use std::fmt;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Larger than any settings that somebody wrote.
const MOST_BYTES: u64 = 1_000_000;

/// The settings of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Who may answer, and how.
    pub people: People,
    /// How many tasks of a run may run at once, where its workflow does not say; no limit when absent.
    pub max_parallel: Option<NonZeroU32>,
    /// What scripts and conditions may use.
    pub script: Script,
    /// How much is kept.
    pub limits: Limits,
}

/// Who may answer, and how.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct People {
    /// Whether answers need a controlling terminal. An agent that starts Lockgate usually has none; nor has CI.
    pub require_terminal: bool,
}

impl Default for People {
    fn default() -> Self {
        Self { require_terminal: true }
    }
}

/// What scripts and conditions may use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// How long a script may compute.
    #[serde(deserialize_with = "positive_duration")]
    pub time: Duration,
    /// How long a condition may compute.
    #[serde(deserialize_with = "positive_duration")]
    pub condition_time: Duration,
    /// How much memory either may use, in megabytes.
    pub memory_mb: NonZeroU32,
}

impl Default for Script {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), condition_time: Duration::from_secs(5), memory_mb: megabytes(256) }
    }
}

/// How much is kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// How many megabytes of a task's outputs are stored with the run, so that another machine can go on; of the rest only
    /// the digest is known. Zero stores none.
    pub output_keep_mb: u32,
    /// How many megabytes of what a task prints are kept in its log.
    pub log_mb: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { output_keep_mb: 16, log_mb: megabytes(64) }
    }
}

impl Limits {
    /// How many bytes of a task's outputs are stored with the run.
    pub fn output_keep_bytes(&self) -> u64 {
        u64::from(self.output_keep_mb) * 1_000_000
    }
}

fn megabytes(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}

fn positive_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration = parse_duration(&String::deserialize(deserializer)?).map_err(D::Error::custom)?;
    if duration.is_zero() { Err(D::Error::custom("it must be longer than nothing")) } else { Ok(duration) }
}

/// Why the settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The line, counted from 1, where there is one to blame.
    pub line: Option<usize>,
    /// The column in characters, counted from 1.
    pub column: Option<usize>,
    /// What would mend it.
    pub help: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads the settings; a file that is not there gives the defaults.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let whole = |message: String| ConfigError { path: path.to_path_buf(), message, line: None, column: None, help: None };
        match read_text(path) {
            Ok(Some(text)) => Self::parse(&text, path),
            Ok(None) => Ok(Self::default()),
            Err(error) => Err(whole(format!("the settings cannot be read: {error}"))),
        }
    }

    /// Reads the settings from a text; the path is only for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_nodes: 10_000, max_depth: 16 },
            with_snippet: false,
        };
        let read: Result<Option<Self>, _> = serde_saphyr::from_str_with_options(text, options);
        read.map(Option::unwrap_or_default).map_err(|error| explain(&error, path))
    }
}

/// The text of the file, without waiting for it should it be a pipe.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MOST_BYTES {
        return Err(io::Error::other("it is larger than 1 MB"));
    }
    Ok(Some(text))
}

fn explain(error: &serde_saphyr::Error, path: &Path) -> ConfigError {
    use serde_saphyr::Error;
    let place = error.location().filter(|location| location.line() > 0);
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (message, help) = match error.without_snippet() {
        Error::SerdeUnknownField { field, expected, .. } => {
            (format!("there is no setting {field:?}"), Some(suggestion(field, expected)))
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("{key:?} stands there twice"), Some("keep one of them".to_owned()))
        }
        Error::Message { msg, .. } => (msg.clone(), None),
        // The place is told apart from the message, which ends with it in this library.
        other => {
            let text = other.to_string();
            let message = text.split(" at line ").next().unwrap_or(&text);
            (message.trim_end_matches([',', ' ', ':']).to_owned(), None)
        }
    };
    ConfigError {
        path: path.to_path_buf(),
        message,
        line: place.map(|place| number(place.line())),
        column: place.map(|place| number(place.column())),
        help,
    }
}

fn suggestion(field: &str, expected: &[&'static str]) -> String {
    match similar::get_close_matches(field, expected, 1, 0.6).first() {
        Some(close) => format!("did you mean {close:?}?"),
        None => format!("the settings here are {}", expected.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("config.yaml"))
    }

    #[test]
    fn an_empty_file_gives_the_defaults() {
        for text in ["", "# nothing\n", "people:\n", "{}\n"] {
            let config = parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
            assert_eq!(config, Config::default(), "{text:?}");
        }
        assert!(Config::default().people.require_terminal);
    }

    #[test]
    fn every_setting_is_read() {
        let text = "people: { require_terminal: false }\nmax_parallel: 3\nscript: { time: 1m, condition_time: PT2S, memory_mb: 32 }\n\
                    limits: { output_keep_mb: 0, log_mb: 1 }\n";
        let config = parse(text).unwrap();
        assert!(!config.people.require_terminal);
        assert_eq!(config.max_parallel.map(NonZeroU32::get), Some(3));
        assert_eq!(config.script.time, Duration::from_secs(60));
        assert_eq!(config.script.condition_time, Duration::from_secs(2));
        assert_eq!(config.script.memory_mb.get(), 32);
        assert_eq!(config.limits.output_keep_bytes(), 0);
        assert_eq!(config.limits.log_mb.get(), 1);
    }

    #[test]
    fn an_unknown_setting_is_an_error_with_its_place_and_a_suggestion() {
        let error = parse("people:\n  require_terminl: false\n").unwrap_err();
        assert_eq!((error.line, error.column), (Some(2), Some(3)), "{error}");
        assert_eq!(error.to_string(), "config.yaml:2:3: there is no setting \"require_terminl\"");
        assert_eq!(error.help.as_deref(), Some("did you mean \"require_terminal\"?"));

        let error = parse("zebra: 1\n").unwrap_err();
        assert_eq!(error.help.as_deref(), Some("the settings here are people, max_parallel, script, limits"));
    }

    #[test]
    fn wrong_values_are_errors_with_their_place() {
        for (text, line, part) in [
            ("people: { require_terminal: perhaps }\n", 1, "bool"),
            ("\nmax_parallel: 0\n", 2, "zero"),
            ("script:\n  time: 30\n", 2, "not a duration"),
            ("script:\n  time: 0s\n", 2, "longer than nothing"),
            ("script:\n  memory_mb: -1\n", 2, ""),
            ("limits:\n  log_mb: 1\n  log_mb: 2\n", 3, "twice"),
            ("people: [\n", 1, ""),
            ("people: 3\n", 1, ""),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, Some(line), "{text:?}: {error}");
            assert!(error.column.is_some(), "{text:?}: {error}");
            assert!(error.message.contains(part), "{text:?}: {error}");
            assert!(!error.message.contains("line"), "the place is told once: {error}");
        }
    }

    #[test]
    fn hostile_texts_are_errors() {
        let deep = format!("people: {}", "[".repeat(100_000));
        let wide = format!("people: {{{}}}", "require_terminal: true, ".repeat(20_000));
        let aliases = format!("people: &all\n  require_terminal: true\nscript: [{}]\n", "*all, ".repeat(50_000));
        for text in [deep, wide, aliases] {
            assert!(parse(&text).is_err(), "{}…", &text[..40]);
        }
    }

    #[test]
    fn a_file_that_is_not_there_gives_the_defaults_and_one_that_cannot_be_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        assert_eq!(Config::read(&path).unwrap(), Config::default());
        std::fs::write(&path, "people: { require_terminal: false }").unwrap();
        assert!(!Config::read(&path).unwrap().people.require_terminal);
        std::fs::write(&path, b"people: \xff").unwrap();
        assert!(Config::read(&path).is_err());
        std::fs::write(&path, "#".repeat(1_000_001)).unwrap();
        assert!(Config::read(&path).unwrap_err().message.contains("larger than 1 MB"));
        let error = Config::read(folder.path()).unwrap_err();
        assert_eq!((error.message.as_str(), error.line), ("the settings cannot be read: it is not a file", None));
    }
}
