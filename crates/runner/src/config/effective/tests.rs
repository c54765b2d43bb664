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
checkpoint:
  enabled: false
  auto_checkpoint: false
  checkpoint_triggers: { phase_transition: false, batch_complete: false, agent_complete: true, conflict_events: false, user_interrupt: false, session_end: false }
  retention: { phase_transition: 9, batch_complete: 9, agent_complete: 9, conflict_start: 9, conflict_resolved: 9, user_interrupt: 9, session_end: 9, manual: 9 }
  storage: { location: 'saved/{run}', compress: true, max_size_mb: -1 }
  session_timeout: 8h
pipelines: { dir: states, review: true, approve: auto, gates: { lint: make lint }, on_complete: make done }
policy: { verify: auto, decision: { max_consecutive: 3 } }
database: postgresql://me:hidden-password@db.example.com/runs?sslmode=require
";

/// A project with these settings files.
fn project(text: &str, checkpoint: Option<&str>) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    root.prepare().unwrap();
    std::fs::write(root.config_file(), text).unwrap();
    if let Some(checkpoint) = checkpoint {
        let path = root.checkpoint_config_file();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, checkpoint).unwrap();
    }
    (folder, root)
}

fn settings(text: &str, database: Option<&str>) -> Vec<EffectiveSetting> {
    let (_folder, root) = project(text, None);
    effective_settings(&root, database).unwrap()
}

fn at(line: usize) -> SettingSource {
    SettingSource::File { file: SettingsFile::Project, line }
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
        SettingSource::File { line, .. } => line,
        other => panic!("{other:?}"),
    };
    assert_eq!((line("people.require_terminal"), line("script.memory_mb"), line("database")), (1, 8, 24));
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
    let error = Config::parse("retentions: 1\n", std::path::Path::new("config.yaml")).unwrap_err();
    assert!(error.help.is_some(), "{error:?}");
    let listed: BTreeSet<&str> =
        settings("", None).iter().map(|setting| setting.key.split('.').next().unwrap_or_default()).collect();
    assert_eq!(listed, crate::config::KEYS.iter().copied().collect());
}

#[test]
fn the_short_form_of_notify_sets_only_the_terminal() {
    let given = settings("# first\nnotify: desktop\n", None);
    assert_eq!(setting(&given, "notify.terminal").source, at(2));
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
fn both_files_set_snapshots_and_each_key_names_its_file() {
    let other = "checkpoint:\n  enabled: false\n  retention: { manual: 5 }\n  storage:\n    compress: true\n";
    let (_folder, root) =
        project("checkpoint:\n  storage: { compress: false }\n  retention: { batch_complete: 7 }\n", Some(other));
    let given = effective_settings(&root, None).unwrap();
    let found = |key: &str| {
        let found = setting(&given, key);
        (found.value.clone(), found.source)
    };
    let other = |line| SettingSource::File { file: SettingsFile::Checkpoint, line };
    assert_eq!(found("checkpoint.enabled"), (json!(false), other(2)));
    assert_eq!(found("checkpoint.retention.manual"), (json!(5), other(3)));
    assert_eq!(found("checkpoint.retention.batch_complete"), (json!(7), at(3)));
    assert_eq!(found("checkpoint.storage.compress"), (json!(false), at(2)), "the project's own file wins");
    assert_eq!(found("checkpoint.storage.location"), (json!(".lockgate/runs/{run}/checkpoints"), SettingSource::Default));
}

#[test]
fn the_environment_overrides_the_file() {
    let given = settings(EVERYTHING, Some("postgresql://you:hidden-password@other/runs"));
    let database = setting(&given, "database");
    assert_eq!(database.source, SettingSource::Environment("LOCKGATE_DATABASE_URL"));
    assert_eq!(database.value, "postgresql://you:***@other/runs");
    let empty = settings(EVERYTHING, Some(""));
    assert_eq!(setting(&empty, "database").source, at(24));
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
