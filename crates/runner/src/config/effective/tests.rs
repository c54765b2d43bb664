//! Every setting, from a file that sets all of them.

use super::*;
use std::collections::BTreeSet;

/// Sets everything, one setting a line.
const EVERYTHING: &str = "\
people: { require_terminal: false }
max_parallel: 3
shell: sh
commit: { message: 'done: {{task.name}}', hooks: false }
script:
  timeout: 90s
  condition_timeout: 2s
  memory_mb: 32
limits: { stored_outputs_mb: 1, log_mb: 1 }
background: { idle_timeout: 1h, max_runs: 7 }
retention: { finished: 30d, keep: 100 }
notify: { terminal: off, command: ./notify.sh }
agents: { default: { preset: claude, env: { TOKEN: hidden-token } } }
logins: { acme: { login: acme login } }
pipelines: { dir: states, review: true, approve: auto, gates: { lint: make lint }, on_complete: make done }
policy: { verify: auto, decision: { max_consecutive: 3 } }
database: postgresql://me:hidden-password@db.example.com/runs?sslmode=require
";

fn settings(text: &str, database: Option<&str>) -> Vec<EffectiveSetting> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, text).unwrap();
    effective_settings(&path, database).unwrap()
}

fn setting<'s>(settings: &'s [EffectiveSetting], key: &str) -> &'s EffectiveSetting {
    settings.iter().find(|setting| setting.key == key).unwrap()
}

#[test]
fn every_setting_has_a_default_and_is_found_in_the_file() {
    let (defaults, given) = (settings("", None), settings(EVERYTHING, None));
    for (default, given) in defaults.iter().zip(&given) {
        assert_eq!(default.source, SettingSource::Default, "{}", default.key);
        assert!(matches!(given.source, SettingSource::File { .. }), "{} is not found in the file", given.key);
        assert_ne!(default.value, given.value, "{} has its default in the file of this test", given.key);
    }
    let line = |key| match setting(&given, key).source {
        SettingSource::File { line } => line,
        other => panic!("{other:?}"),
    };
    assert_eq!((line("people.require_terminal"), line("script.memory_mb"), line("database")), (1, 8, 17));
    assert_eq!(setting(&given, "script.timeout").value, "1m 30s");
    assert_eq!(setting(&given, "background.idle_timeout").value, "1h");
    assert_eq!(setting(&given, "retention.finished").value, "30d");
    assert_eq!(setting(&given, "policy").value["decision"], json!({ "max_consecutive": 3 }));
}

/// The first column of the first table names every setting.
#[test]
fn exactly_the_documented_settings_are_listed() {
    let page = include_str!("../../../../../docs/reference/settings.md");
    let rows = page.lines().skip_while(|line| !line.starts_with("| ---")).skip(1).take_while(|line| line.starts_with('|'));
    let first = rows.map(|row| row.split(" | ").next().unwrap_or_default());
    let documented: BTreeSet<&str> =
        first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(|key| *key != "notify").collect();
    let listed: BTreeSet<&str> = settings("", None).iter().map(|setting| setting.key).collect();
    assert_eq!(listed, documented);
}

#[test]
fn every_top_level_key_of_the_parser_is_listed() {
    let error = Config::parse("retentions: 1\n", Path::new("config.yaml")).unwrap_err();
    assert!(error.help.is_some(), "{error:?}");
    let listed: BTreeSet<&str> =
        settings("", None).iter().map(|setting| setting.key.split('.').next().unwrap_or_default()).collect();
    assert_eq!(listed, crate::config::KEYS.iter().copied().collect());
}

#[test]
fn the_short_form_of_notify_sets_only_the_terminal() {
    let given = settings("# first\nnotify: desktop\n", None);
    assert_eq!(setting(&given, "notify.terminal").source, SettingSource::File { line: 2 });
    assert_eq!(setting(&given, "notify.terminal").value, "desktop");
    assert_eq!(setting(&given, "notify.command").source, SettingSource::Default);
}

#[test]
fn a_key_without_a_value_keeps_its_default() {
    let given = settings("script:\n  timeout:\nshell:\n", None);
    assert_eq!(setting(&given, "script.timeout").source, SettingSource::Default);
    assert_eq!(setting(&given, "shell").source, SettingSource::Default);
}

#[test]
fn the_environment_overrides_the_file() {
    let given = settings(EVERYTHING, Some("postgresql://you:hidden-password@other/runs"));
    let database = setting(&given, "database");
    assert_eq!(database.source, SettingSource::Environment("LOCKGATE_DATABASE_URL"));
    assert_eq!(database.value, "postgresql://you:***@other/runs");
    let empty = settings(EVERYTHING, Some(""));
    assert_eq!(setting(&empty, "database").source, SettingSource::File { line: 17 });
}

#[test]
fn passwords_are_masked() {
    let all = format!("{:?}", settings(EVERYTHING, None));
    assert!(!all.contains("hidden"), "{all}");
    for (url, shown) in [
        ("postgresql://me:secret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me:se@cr:et@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://host/db?user=me&password=secret", "postgresql://host/db?user=me&password=***"),
        ("host=db password=secret", "***"),
    ] {
        assert_eq!(without_password(url), shown);
    }
}

#[test]
fn durations_are_written_as_they_can_be_parsed() {
    for text in ["500ms", "30s", "1m 30s", "2h", "30d", "25h"] {
        let duration = lockgate_engine::time::parse_duration(text).unwrap();
        let written = duration_text(duration);
        assert_eq!(lockgate_engine::time::parse_duration(&written), Ok(duration), "{written}");
    }
    assert_eq!(duration_text(Duration::from_secs(90_000)), "25h");
}
