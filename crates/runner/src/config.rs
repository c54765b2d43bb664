//! The settings in `.lockgate/config.yaml`. Without the file, everything has its default.

mod agents;
mod logins;
mod policy;

use crate::projection::is_own;
use lockgate_engine::spec::document::{self, Value};
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::{AgentSetting, Policy};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Names the database in the environment; it may hold a password, so no task inherits it.
pub const DATABASE_VARIABLE: &str = "LOCKGATE_DATABASE_URL";

/// Larger than any settings that somebody wrote.
const MOST_BYTES: u64 = 1_000_000;

/// Larger than any machine's memory or disk that somebody would give to one task.
const MOST_MEGABYTES: u32 = 1_000_000;

/// As many as a workflow may ask for.
const MOST_AT_ONCE: u32 = 100_000;

/// More runs than one process should drive side by side.
pub const MOST_RUNS_AT_ONCE: u32 = 10_000;

/// The settings of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Who may answer, and how.
    pub people: People,
    /// How many tasks of a run may run at once, where its workflow does not say; no limit when absent.
    pub max_parallel: Option<NonZeroU32>,
    /// What scripts and conditions may use.
    pub script: Script,
    /// How much is kept.
    pub limits: Limits,
    /// The process that drives in the background.
    pub background: Background,
    /// How somebody at a terminal is told that a question waits.
    pub notify: Notify,
    /// How agents are started, by name, where a workflow does not say.
    pub agents: BTreeMap<String, AgentSetting>,
    /// The PostgreSQL database that keeps the runs; without it they are kept beside the settings.
    pub database: Option<DatabaseUrl>,
    /// How missing logins show, besides what is known.
    pub logins: Vec<crate::login::Tool>,
    /// Which questions may be answered without a person, where a workflow does not say.
    pub policy: Policy,
    /// What holds for all pipelines.
    pub pipelines: Pipelines,
}

/// What holds for all pipelines that do not say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipelines {
    /// The folder under the root in which their state files lie.
    pub folder: Option<String>,
    /// Whether a review must let them begin.
    pub review: bool,
    /// The shell command that runs when all phases of one are done.
    pub on_complete: Option<String>,
    /// Whether the question between two phases is answered without a person, where no gate is left to one.
    pub go_on: bool,
}

impl Pipelines {
    fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in
            value.fields("`pipelines`", "{ folder: build/checkpoints }", &["folder", "review", "on_complete", "approve"])?
        {
            let value = &setting.value;
            let text = |what: &str| {
                let text = value.text().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
                text.ok_or_else(|| value.problem(format!("{what} must be a text"), None))
            };
            match setting.key.as_str() {
                "folder" => {
                    let folder = text("`folder`")?;
                    let inside =
                        Path::new(&folder).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
                    if !inside || is_own(Path::new(&folder)) {
                        let help = "name it from the root on, without `..`, and outside `.lockgate` and `.git`".to_owned();
                        return Err(value.problem("`folder` must be a folder under the root", Some(help)));
                    }
                    self.folder = Some(folder);
                }
                "review" => self.review = value.truth("`review`")?,
                "approve" => {
                    self.go_on = match value.text() {
                        Some("ask") => false,
                        Some("auto") => true,
                        Some(_) | None => {
                            let help = "write `ask` or `auto`".to_owned();
                            return Err(value.problem("`approve` must say who lets the next phase begin", Some(help)));
                        }
                    }
                }
                _ => self.on_complete = Some(text("`on_complete`")?),
            }
        }
        Ok(())
    }
}

/// How somebody at a terminal is told that a question waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// The terminal's bell.
    #[default]
    Bell,
    /// A notice of the desktop, where the terminal or the desktop can show one; else the bell.
    Desktop,
    /// Not at all.
    Off,
}

impl Notify {
    fn of(value: &Value<'_>) -> Result<Self, Problem> {
        match value.text() {
            Some("bell") => Ok(Self::Bell),
            Some("desktop") => Ok(Self::Desktop),
            Some("off") => Ok(Self::Off),
            Some(_) | None => Err(value.problem(
                "`notify` must say how somebody is told that a question waits",
                Some("write `bell`, `desktop` or `off`".to_owned()),
            )),
        }
    }
}

/// The address of a database. It may hold a password, and is not shown where settings are.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// What is wrong with it is told without repeating it.
    fn of(value: &Value<'_>) -> Result<Self, Problem> {
        let url = value.text().map(|text| Self(text.to_owned()));
        url.ok_or_else(|| {
            let help = "write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE".to_owned();
            value.problem("`database` must be the address of a database", Some(help))
        })
    }

    /// The address itself, for whoever connects to it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(_)")
    }
}

/// Who may answer, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// How long a script may compute.
    pub time: Duration,
    /// How long a condition may compute.
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The process that drives in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Background {
    /// How long it stays when nothing can go on: long enough for the next answer in a row of them.
    pub stay: Duration,
    /// How many runs it drives side by side at most.
    pub at_once: NonZeroU32,
}

impl Default for Background {
    fn default() -> Self {
        Self { stay: Duration::from_secs(10), at_once: NonZeroU32::new(64).unwrap_or(NonZeroU32::MIN) }
    }
}

impl Background {
    fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`background`", "{ stay: 10s }", &["stay", "at_once"])? {
            match setting.key.as_str() {
                "stay" => self.stay = setting.value.duration("`stay`")?,
                _ => {
                    let count = setting.value.count("`at_once`", 1..=MOST_RUNS_AT_ONCE)?;
                    self.at_once = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
                }
            }
        }
        Ok(())
    }
}

fn megabytes(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
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
        match read_text(path) {
            Ok(Some(text)) => Self::parse(&text, path),
            Ok(None) => Ok(Self::default()),
            Err((why, help)) => {
                let message = format!("the settings cannot be read: {why}");
                Err(ConfigError { path: path.to_path_buf(), message, line: None, column: None, help: Some(help.to_owned()) })
            }
        }
    }

    /// Reads the settings from a text; the path is only for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let read = document::read(text).and_then(|root| Self::of(&root));
        read.map_err(|problem| ConfigError {
            path: path.to_path_buf(),
            message: problem.message,
            line: Some(problem.line),
            column: Some(problem.column),
            help: problem.help,
        })
    }

    fn of(root: &Value<'_>) -> Result<Self, Problem> {
        let mut config = Self::default();
        if root.is_nothing() {
            return Ok(config);
        }
        let example = "people: { require_terminal: false }";
        let known = [
            "people",
            "max_parallel",
            "script",
            "limits",
            "background",
            "notify",
            "agents",
            "logins",
            "policy",
            "database",
            "pipelines",
        ];
        for setting in root.fields("the settings", example, &known)? {
            let value = &setting.value;
            match setting.key.as_str() {
                "people" => config.people.set(value)?,
                "max_parallel" => config.max_parallel = NonZeroU32::new(value.count("`max_parallel`", 1..=MOST_AT_ONCE)?),
                "script" => config.script.set(value)?,
                "limits" => config.limits.set(value)?,
                "background" => config.background.set(value)?,
                "notify" => config.notify = Notify::of(value)?,
                "agents" => config.agents = agents::read(value)?,
                "logins" => config.logins = logins::read(value)?,
                "policy" => config.policy = policy::read(value)?,
                "pipelines" => config.pipelines.set(value)?,
                _ => config.database = Some(DatabaseUrl::of(value)?),
            }
        }
        Ok(config)
    }
}

impl People {
    fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`people`", "{ require_terminal: false }", &["require_terminal"])? {
            self.require_terminal = setting.value.truth("`require_terminal`")?;
        }
        Ok(())
    }
}

impl Script {
    fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`script`", "{ time: 30s }", &["time", "condition_time", "memory_mb"])? {
            match setting.key.as_str() {
                "time" => self.time = setting.value.duration("`time`")?,
                "condition_time" => self.condition_time = setting.value.duration("`condition_time`")?,
                _ => self.memory_mb = megabytes(setting.value.count("`memory_mb`", 1..=MOST_MEGABYTES)?),
            }
        }
        Ok(())
    }
}

impl Limits {
    fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`limits`", "{ log_mb: 64 }", &["output_keep_mb", "log_mb"])? {
            match setting.key.as_str() {
                "output_keep_mb" => self.output_keep_mb = setting.value.count("`output_keep_mb`", 0..=MOST_MEGABYTES)?,
                _ => self.log_mb = megabytes(setting.value.count("`log_mb`", 1..=MOST_MEGABYTES)?),
            }
        }
        Ok(())
    }
}

/// The text of the file, without waiting for it should it be a pipe; or why it cannot be read, and what to do.
fn read_text(path: &Path) -> Result<Option<String>, (String, &'static str)> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => ("permission denied".to_owned(), "make the file readable for you"),
        io::ErrorKind::InvalidData => ("it is not UTF-8 text".to_owned(), "save it as UTF-8"),
        _ => (error.to_string(), "remove it to go on with the defaults"),
    };
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "it is a folder" } else { "it is not a file" };
        return Err((what.to_owned(), "put a file there, or remove it to go on with the defaults"));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > MOST_BYTES {
        return Err(("it is larger than 1 MB".to_owned(), "settings are a few lines; look whether this is the right file"));
    }
    Ok(Some(text))
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
                    limits: { output_keep_mb: 0, log_mb: 1 }\nbackground: { stay: 1m, at_once: 7 }\nnotify: off\n";
        let config = parse(text).unwrap();
        assert!(!config.people.require_terminal);
        assert_eq!(config.max_parallel.map(NonZeroU32::get), Some(3));
        assert_eq!(config.script.time, Duration::from_secs(60));
        assert_eq!(config.script.condition_time, Duration::from_secs(2));
        assert_eq!(config.script.memory_mb.get(), 32);
        assert_eq!(config.limits.output_keep_bytes(), 0);
        assert_eq!(config.limits.log_mb.get(), 1);
        assert_eq!((config.background.stay, config.background.at_once.get()), (Duration::from_secs(60), 7));
        assert_eq!(config.notify, Notify::Off);
    }

    #[test]
    fn logins_are_read_and_a_bad_pattern_is_told_with_its_place() {
        let config = parse("logins:\n  acme: { pattern: session expired, login: acme login, probe: acme me }\n").unwrap();
        assert_eq!(config.logins.len(), 1);
        assert_eq!(config.logins[0].probe.as_deref(), Some("acme me"));
        let error = parse("logins:\n  acme: { pattern: '(' }\n").unwrap_err();
        assert_eq!((error.line, error.column), (Some(2), Some(20)), "{error}");
    }

    #[test]
    fn the_settings_of_pipelines_are_read_and_their_folder_lies_under_the_root() {
        let config =
            parse("pipelines: { folder: build/states, review: true, on_complete: make roadmap, approve: auto }\n").unwrap();
        let expected = Pipelines {
            folder: Some("build/states".into()),
            review: true,
            on_complete: Some("make roadmap".into()),
            go_on: true,
        };
        assert_eq!(config.pipelines, expected);
        for folder in ["/tmp/x", "../x", "a/../../b", ".lockgate", "./.git/hooks"] {
            let error = parse(&format!("pipelines: {{ folder: {folder} }}\n")).unwrap_err();
            assert_eq!(error.message, "`folder` must be a folder under the root", "{folder}");
        }
    }

    #[test]
    fn policy_is_read_and_never_speaks_for_a_person() {
        let config = parse("policy: { verify: auto, decision: { at_most: 3 }, checkpoint: ask, collect: phase }\n").unwrap();
        assert!(config.policy.verify.is_some() && config.policy.checkpoint.is_none() && config.policy.collect_phase);
        assert_eq!(config.policy.decision.and_then(|rule| rule.at_most), Some(3));
        for wrong in ["policy: { action: auto }", "policy: { verify: always }", "policy: { authentication: auto }"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_address_of_a_database_is_read_and_not_shown() {
        let config = parse("database: postgresql://ann:s3cret@db.example/work\n").unwrap();
        assert_eq!(config.database.as_ref().map(DatabaseUrl::reveal), Some("postgresql://ann:s3cret@db.example/work"));
        assert!(!format!("{config:?}").contains("s3cret"));
        let error = parse("database: { url: s3cret }\n").unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }

    #[test]
    fn an_unknown_setting_is_an_error_with_its_place_and_a_suggestion() {
        let error = parse("people:\n  require_terminl: false\n").unwrap_err();
        assert_eq!((error.line, error.column), (Some(2), Some(3)), "{error}");
        assert_eq!(error.to_string(), "config.yaml:2:3: `people` has no key `require_terminl`");
        assert_eq!(error.help.as_deref(), Some("did you mean `require_terminal`?"));

        let error = parse("zebra: 1\n").unwrap_err();
        assert_eq!(
            error.help.as_deref(),
            Some("there is `people`, `max_parallel`, `script`, `limits`, `background`, `notify`, `agents`, `logins` and 3 more")
        );
    }

    #[test]
    fn wrong_values_are_errors_with_their_place() {
        let number = "must be a whole number from";
        for (text, told, help) in [
            (
                "people: { require_terminal: perhaps }\n",
                "1:29: `require_terminal` must be true or false, not `perhaps`",
                "write `true` or `false`",
            ),
            (
                "people: { require_terminal: no }\n",
                "1:29: `require_terminal` must be true or false, not `no`",
                "write `false`, without quotes",
            ),
            (
                "people: { require_terminal: 'false' }\n",
                "1:29: `require_terminal` must be true or false, not `false`",
                "write `false`, without quotes",
            ),
            (
                "\nmax_parallel: 0\n",
                &format!("2:15: `max_parallel` {number} 1 to 100000, not `0`"),
                "write it without quotes and units",
            ),
            ("script:\n  time: 30\n", "2:9: `time` must be a duration, not `30`", "say which unit: `30s`, `30m` or `30h`"),
            ("script:\n  time: 0s\n", "2:9: `time` must be longer than nothing", "write it as `30s` or `5m`"),
            (
                "script:\n  time: [1]\n",
                "2:9: `time` must be a duration, not a list",
                "write it as `30s`, `5m`, `1h 30m` or `PT30M`",
            ),
            (
                "script:\n  memory_mb: -1\n",
                &format!("2:14: `memory_mb` {number} 1 to 1000000, not `-1`"),
                "write it without quotes and units",
            ),
            (
                "limits: { log_mb: 64MB }\n",
                &format!("1:19: `log_mb` {number} 1 to 1000000, not `64MB`"),
                "write it without quotes and units",
            ),
            (
                "limits:\n  log_mb: 1\n  log_mb: 2\n",
                "3:3: key `log_mb` is given twice in this map",
                "the first one is on line 2; keep one of them",
            ),
            (
                "notify: loudly\n",
                "1:9: `notify` must say how somebody is told that a question waits",
                "write `bell`, `desktop` or `off`",
            ),
            ("people: 3\n", "1:9: `people` must be a map such as `{ require_terminal: false }`, not `3`", ""),
            ("- people\n", "1:1: the settings must be a map such as `people: { require_terminal: false }`, not a list", ""),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.to_string(), format!("config.yaml:{told}"), "{text:?}");
            assert_eq!(error.help.unwrap_or_default(), help, "{text:?}");
        }
        let error = parse("people: [\n").unwrap_err();
        assert!(error.line.is_some() && error.message.starts_with("this is not YAML: "), "{error}");
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
        assert_eq!(Config::read(&path).unwrap_err().message, "the settings cannot be read: it is not UTF-8 text");
        std::fs::write(&path, "#".repeat(1_000_001)).unwrap();
        assert!(Config::read(&path).unwrap_err().message.contains("larger than 1 MB"));
        let error = Config::read(folder.path()).unwrap_err();
        assert_eq!((error.message.as_str(), error.line), ("the settings cannot be read: it is a folder", None));
        assert!(error.help.is_some());
    }
}
