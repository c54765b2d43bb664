//! `lockgate config show`: every setting, its value and its source.

use crate::project::Project;
use serde_json::Value;

fn setting<'s>(settings: &'s Value, key: &str) -> &'s Value {
    let found = settings.as_array().unwrap().iter().find(|setting| setting["key"] == key);
    found.unwrap_or_else(|| panic!("{key} is not listed: {settings}"))
}

#[test]
fn every_setting_is_shown_with_its_value_and_source() {
    let project = Project::on_sqlite();
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\n\nscript:\n  timeout: 1m\n");
    let shown = project.run(&["config", "show"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let line = |key: &str| {
        let found = shown.stdout.lines().find(|line| line.split_whitespace().next() == Some(key));
        found.unwrap_or_else(|| panic!("{key}: {shown:?}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("people.require_terminal"), "people.require_terminal false .lockgate/config.yaml:1");
    assert_eq!(line("script.timeout"), "script.timeout 1m .lockgate/config.yaml:4");
    assert_eq!(line("script.memory_mb"), "script.memory_mb 256 default");
    assert_eq!(line("database"), "database not set default");
    let settings = project.json(0, &["config", "show", "--json"]);
    let time = setting(&settings, "script.timeout");
    assert_eq!((&time["value"], &time["source"]), (&"1m".into(), &"file".into()));
    assert_eq!((&time["path"], &time["line"]), (&".lockgate/config.yaml".into(), &4.into()));
    let default = setting(&settings, "limits.log_mb");
    assert_eq!((&default["value"], &default["source"], &default["line"]), (&64.into(), &"default".into(), &Value::Null));
    assert_eq!(settings.as_array().unwrap().len(), shown.stdout.lines().count());
}

#[test]
fn the_password_of_the_database_is_masked_and_the_environment_is_named() {
    let project = Project::on_sqlite();
    project.write(".lockgate/config.yaml", "database: postgresql://ann:s3cret@db.example.com/runs\n");
    let shown = project.run(&["config", "show"]);
    assert!(shown.stdout.contains("postgresql://ann:***@db.example.com/runs") && !shown.stdout.contains("s3cret"), "{shown:?}");
    let mut command = project.command(&["config", "show", "--json"]);
    let output = command.env("LOCKGATE_DATABASE_URL", "postgresql://bob:s3cret@other/runs").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    let database = setting(&serde_json::from_str(&text).unwrap(), "database").clone();
    assert_eq!(database["value"], "postgresql://bob:***@other/runs");
    assert_eq!((&database["source"], &database["variable"]), (&"environment".into(), &"LOCKGATE_DATABASE_URL".into()));
}

#[test]
fn outside_a_project_everything_is_a_default() {
    let empty = tempfile::tempdir().unwrap();
    let project = Project::on_sqlite();
    let settings = project.json(0, &["--root", empty.path().to_str().unwrap(), "config", "show", "--json"]);
    let sources: Vec<&Value> = settings.as_array().unwrap().iter().map(|setting| &setting["source"]).collect();
    assert!(sources.len() > 20 && sources.iter().all(|source| **source == "default"), "{settings}");
    assert!(!empty.path().join(".lockgate").exists(), "showing settings creates nothing");
}

#[test]
fn broken_settings_are_reported_with_their_position() {
    let project = Project::on_sqlite();
    project.write(".lockgate/config.yaml", "retention:\n  finised: 30d\n");
    let refused = project.run(&["config", "show"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("invalid-settings") && refused.stderr.contains("config.yaml:2:3"), "{refused:?}");
    assert!(refused.stderr.contains("did you mean `finished`"), "{refused:?}");
}

#[test]
fn settings_of_snapshots_are_shown_with_the_file_that_sets_them() {
    let project = Project::on_sqlite();
    project.write(".claude/checkpoint-config.yaml", "checkpoint:\n  retention:\n    manual: 5\n    batch_complete: 2\n");
    project.write(".lockgate/config.yaml", "checkpoint: { retention: { batch_complete: 7 } }\n");
    let settings = project.json(0, &["config", "show", "--json"]);
    let shown = |key: &str| {
        let found = setting(&settings, key);
        (found["value"].clone(), found["path"].as_str().unwrap_or_default().to_owned(), found["line"].clone())
    };
    let other = ".claude/checkpoint-config.yaml".to_owned();
    assert_eq!(shown("checkpoint.retention.manual"), (5.into(), other, 3.into()));
    assert_eq!(shown("checkpoint.retention.batch_complete"), (7.into(), ".lockgate/config.yaml".to_owned(), 1.into()));
    project.write(".claude/checkpoint-config.yaml", "checkpoint: { retention: { manuel: 5 } }\n");
    let refused = project.run(&["runs"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("checkpoint-config.yaml:1:28"), "{refused:?}");
    assert!(refused.stderr.contains("did you mean `manual`"), "{refused:?}");
}
