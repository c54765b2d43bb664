//! Lockgate as users start it: a project root with a workflow, the release binary, and times from the history.

use rusqlite::Connection;
use serde_json::Value;
use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A root with a workflow in it.
pub(crate) struct Root {
    directory: PathBuf,
    lockgate: PathBuf,
}

impl Root {
    /// Writes a workflow to a directory, with settings that need no terminal.
    pub(crate) fn make(lockgate: &Path, directory: &Path, workflow: &str) -> Result<Self, String> {
        let root = Self::found(lockgate, directory);
        root.put(".lockgate/config.yaml", "people: { require_terminal: false }\n")?;
        root.put("workflow.yaml", workflow)?;
        Ok(root)
    }

    /// Opens an existing root.
    pub(crate) fn found(lockgate: &Path, directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), lockgate: lockgate.to_path_buf() }
    }

    pub(crate) fn put(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.directory.join(name);
        let directory = path.parent().unwrap_or(&self.directory);
        let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.directory.join(".lockgate/lockgate.db")
    }

    /// A command that runs in the root, without output.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.lockgate);
        command.args(arguments).current_dir(&self.directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The output of a command, or an error with its messages. Messages go to a file, because a reader would take time from the measurement.
    pub(crate) fn output(&self, arguments: &[&str]) -> Result<String, String> {
        let path = self.directory.join("messages.txt");
        let talk = File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let output = self.command(arguments).stdout(Stdio::piped()).stderr(talk).output();
        let output = output.map_err(|error| format!("cannot start {}: {error}", self.lockgate.display()))?;
        if !output.status.success() {
            let messages = std::fs::read_to_string(&path).unwrap_or_default();
            return Err(format!("`lockgate {}` ended with {}: {}", arguments.join(" "), output.status, messages.trim_end()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(crate) fn newest_run(&self) -> Result<String, String> {
        let text = self.output(&["runs", "--json"])?;
        let runs: Value = serde_json::from_str(&text).map_err(|error| format!("`lockgate runs --json` is not JSON: {error}"))?;
        runs[0]["run"].as_str().map(str::to_owned).ok_or_else(|| format!("`lockgate runs --json` lists no run: {text}"))
    }

    /// The history of a run's tasks.
    pub(crate) fn history(&self, run: &str) -> Result<History, String> {
        History::read(&self.output(&["log", run, "--json"])?)
    }

    /// The size of the database, after its log is truncated.
    pub(crate) fn bytes(&self) -> Result<u64, String> {
        let database = self.database();
        let emptied = Connection::open(&database)
            .and_then(|connection| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)));
        match emptied {
            Ok(0) => std::fs::metadata(&database).map(|data| data.len()).map_err(|error| error.to_string()),
            Ok(_) => Err(format!("{} is in use", database.display())),
            Err(error) => Err(format!("cannot open {}: {error}", database.display())),
        }
    }
}

/// Times of tasks from the history.
#[derive(Debug, PartialEq)]
pub(crate) struct History {
    /// The number of finished tasks.
    pub(crate) finished: usize,
    /// Milliseconds from the first start to the last finish.
    pub(crate) milliseconds: i64,
}

impl History {
    fn read(lines: &str) -> Result<Self, String> {
        let (mut first, mut last, mut finished) = (None, None, 0);
        for line in lines.lines() {
            let event: Value =
                serde_json::from_str(line).map_err(|error| format!("a line of `lockgate log --json` is not JSON: {error}"))?;
            let at = || event["at"].as_str().and_then(milliseconds).ok_or_else(|| format!("event without a time: {line}"));
            match event["type"].as_str() {
                Some("task_started") if first.is_none() => first = Some(at()?),
                Some("task_finished") => {
                    last = Some(at()?);
                    finished += 1;
                }
                _ => {}
            }
        }
        let (first, last) = first.zip(last).ok_or("no task in the history started and finished")?;
        Ok(Self { finished, milliseconds: last - first })
    }
}

/// The milliseconds since the epoch of a time such as `2026-11-15T14:00:00.123Z`.
pub(crate) fn milliseconds(moment: &str) -> Option<i64> {
    let (date, time) = moment.strip_suffix('Z')?.split_once('T')?;
    let mut numbers = date.splitn(3, '-').chain(time.splitn(3, ':')).map(str::parse::<f64>);
    let mut next = || numbers.next()?.ok();
    let (year, month, day) = (next()? as i64, next()? as i64, next()? as i64);
    let (hours, minutes, seconds) = (next()?, next()?, next()?);
    // Days since the epoch in the Gregorian calendar, with years that start in March, so that a leap day is the last day.
    let year = if month <= 2 { year - 1 } else { year };
    let in_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + in_year - 719_468;
    Some(days * 86_400_000 + ((hours * 3600.0 + minutes * 60.0 + seconds) * 1000.0).round() as i64)
}

/// A phase with this many sequential tasks, each with the same work.
pub(crate) fn sequential_phase(id: &str, count: usize, work: &str) -> String {
    let mut text = format!("  - id: {id}\n    behavior: sequential\n    tasks:\n");
    for number in 1..=count {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "      - {{ id: t{number}, {work} }}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_parsed_to_the_millisecond() {
        assert_eq!(milliseconds("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(milliseconds("2025-10-31T14:00:00.250Z"), Some(1_761_919_200_250));
        assert_eq!(milliseconds("2024-02-29T23:59:59Z"), Some(1_709_251_199_000));
        assert_eq!(milliseconds("soon"), None);
    }

    #[test]
    fn the_history_gives_the_time_from_first_start_to_last_finish() {
        let lines = [
            r#"{"seq":1,"at":"2026-01-01T00:00:00.000Z","type":"created"}"#,
            r#"{"seq":2,"at":"2026-01-01T00:00:00.010Z","type":"task_started"}"#,
            r#"{"seq":3,"at":"2026-01-01T00:00:00.020Z","type":"task_finished"}"#,
            r#"{"seq":4,"at":"2026-01-01T00:00:00.020Z","type":"task_started"}"#,
            r#"{"seq":5,"at":"2026-01-01T00:00:00.035Z","type":"task_finished"}"#,
        ];
        assert_eq!(History::read(&lines.join("\n")).unwrap(), History { finished: 2, milliseconds: 25 });
    }
}
