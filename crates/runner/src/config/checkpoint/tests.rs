//! Settings of snapshots, from both files.

use super::*;
use crate::config::Config;

fn parse(text: &str) -> Result<CheckpointSettings, ConfigError> {
    Config::parse(text, Path::new("config.yaml")).map(|config| config.checkpoint)
}

/// A project with `.claude/checkpoint-config.yaml`, and perhaps with `.lockgate/config.yaml`.
fn read(checkpoint: &str, project: &str) -> Result<CheckpointSettings, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::at(dir.path());
    root.prepare().unwrap();
    std::fs::create_dir(dir.path().join(".claude")).unwrap();
    std::fs::write(root.checkpoint_config_file(), checkpoint).unwrap();
    std::fs::write(root.config_file(), project).unwrap();
    Config::read(&root).map(|config| config.checkpoint)
}

const SOURCE: &str = r#"checkpoint:
  enabled: true
  auto_checkpoint: true
  checkpoint_triggers:
    phase_transition: true
    batch_complete: true
    agent_complete: false
    conflict_events: true
  retention:
    phase_transition: -1
    batch_complete: 3
    agent_complete: 1
    conflict_resolved: -1
    user_interrupt: 1
    manual: -1
  storage:
    location: ".claude/crunch/{issue}/checkpoints"
    compress: false
    max_size_mb: 50
"#;

#[test]
fn the_documented_file_equals_the_defaults_except_for_its_location() {
    let mut settings = read(SOURCE, "").unwrap();
    let location = settings.storage.location.take().unwrap();
    assert_eq!(location.template, ".claude/crunch/{issue}/checkpoints");
    assert_eq!(settings, CheckpointSettings::default());
    assert_eq!(settings.max_bytes(), Some(50_000_000));
}

#[test]
fn project_settings_override_the_other_file_key_by_key() {
    let settings = read(
        "checkpoint:\n  retention: { batch_complete: 5, manual: 2 }\n  session_timeout: 1h\n",
        "checkpoint: { retention: { batch_complete: 7, session_end: 0 }, enabled: false }\n",
    )
    .unwrap();
    assert_eq!(settings.retention.batch_complete, Keep::Last(7));
    assert_eq!(settings.retention.manual, Keep::Last(2));
    assert_eq!(settings.retention.session_end, Keep::Last(0));
    assert_eq!((settings.enabled, settings.session_timeout), (false, Some(Duration::from_secs(3600))));
}

#[test]
fn every_trigger_follows_its_switch() {
    let wanted = |text: &str| -> Vec<&str> {
        let settings = parse(text).unwrap();
        Trigger::ALL.iter().filter(|trigger| settings.wants(**trigger)).map(|trigger| trigger.as_str()).collect()
    };
    let all =
        ["phase_transition", "batch_complete", "conflict_start", "conflict_resolved", "user_interrupt", "session_end", "manual"];
    assert_eq!(wanted(""), all, "agent_complete is off by default");
    assert_eq!(wanted("checkpoint: { enabled: false }"), Vec::<&str>::new());
    assert_eq!(wanted("checkpoint: { auto_checkpoint: false }"), ["user_interrupt", "session_end", "manual"]);
    let no_conflicts = wanted("checkpoint: { checkpoint_triggers: { conflict_events: false, agent_complete: true } }");
    assert_eq!(no_conflicts, ["phase_transition", "batch_complete", "agent_complete", "user_interrupt", "session_end", "manual"]);
    for key in TRIGGERS {
        let text = format!("checkpoint: {{ checkpoint_triggers: {{ {key}: false }} }}");
        assert!(!wanted(&text).contains(&key), "{key}");
    }
}

#[test]
fn the_location_fills_its_placeholders_or_gets_a_directory_per_run() {
    let dir = tempfile::tempdir().unwrap();
    let (root, run) = (Root::at(dir.path()), RunId::from("d12cbewf"));
    let location = |template: &str, issue| {
        let settings = parse(&format!("checkpoint: {{ storage: {{ location: {template:?} }} }}\n")).unwrap();
        settings.location(&root, &run, issue)
    };
    let inside = |path: &str| Ok(root.dir().join(path));
    assert_eq!(location("saved/{issue}", Some("42")), inside("saved/42"));
    assert_eq!(location("saved/{run}", None), inside("saved/d12cbewf"));
    assert_eq!(location("saved/{issue}/{run}", Some("42")), inside("saved/42/d12cbewf"));
    assert_eq!(location("saved", Some("42")), inside("saved/d12cbewf"));
    assert_eq!(location("/var/saved", None), Ok(PathBuf::from("/var/saved/d12cbewf")));
    let strange = location("saved/{issue}", Some("../../etc")).unwrap();
    assert_eq!(strange.parent(), Some(root.dir().join("saved").as_path()), "an issue is one path component");
    let default = CheckpointSettings::default().location(&root, &run, None);
    assert_eq!(default, inside(".lockgate/runs/d12cbewf/checkpoints"));
}

#[test]
fn a_location_with_an_issue_is_an_error_for_a_run_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let (root, run) = (Root::at(dir.path()), RunId::from("d12cbewf"));
    let settings = read(SOURCE, "").unwrap();
    for issue in [None, Some("")] {
        let error = settings.location(&root, &run, issue).unwrap_err();
        assert!(error.path.ends_with(".claude/checkpoint-config.yaml"), "{error}");
        assert_eq!((error.line, error.column), (Some(17), Some(15)), "{error}");
        assert_eq!(error.message, "`location` contains `{issue}`, but this run has no issue");
        assert!(error.help.is_some());
    }
}

#[test]
fn wrong_values_are_errors_with_a_position_and_help() {
    for (text, expected) in [
        ("checkpoint: { enable: true }\n", "1:15: `checkpoint` has no key `enable`"),
        ("checkpoint: 3\n", "1:13: `checkpoint` must be a map such as `{ storage: { compress: true } }`, not `3`"),
        (
            "checkpoint:\n  checkpoint_triggers:\n    batch_completed: true\n",
            "3:5: `checkpoint_triggers` has no key `batch_completed`",
        ),
        ("checkpoint: { retention: { manual: -2 } }\n", "1:36: `manual` must be a whole number from -1 to 1000000, not `-2`"),
        ("checkpoint: { retention: { manual: all } }\n", "1:36: `manual` must be a whole number from -1 to 1000000, not `all`"),
        ("checkpoint: { retention: { manual: '3' } }\n", "1:36: `manual` must be a whole number from -1 to 1000000, not `3`"),
        ("checkpoint: { retention: { manual: 1.5 } }\n", "1:36: `manual` must be a whole number from -1 to 1000000, not `1.5`"),
        ("checkpoint: { retention: { manually: 1 } }\n", "1:28: `retention` has no key `manually`"),
        (
            "checkpoint: { storage: { max_size_mb: 0 } }\n",
            "1:39: `max_size_mb` must be a whole number from 1 to 1000000, or -1, not `0`",
        ),
        ("checkpoint: { storage: { location: '' } }\n", "1:36: `location` must be a directory"),
        ("checkpoint: { storage: { location: \"a\\0b\" } }\n", "1:36: `location` must be a directory"),
        ("checkpoint: { storage: { location: 'a/{isue}' } }\n", "1:36: `location` has no placeholder `isue`"),
        ("checkpoint: { storage: { location: 'a/{run' } }\n", "1:36: `location` has a `{` without a `}`"),
        ("checkpoint: { storage: { compress: zstd } }\n", "1:36: `compress` must be true or false, not `zstd`"),
        ("checkpoint: { session_timeout: 30 }\n", "1:32: `session_timeout` must be a duration, not `30`"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.to_string(), format!("config.yaml:{expected}"), "{text:?}");
        assert!(error.help.is_some() || text == "checkpoint: 3\n", "{text:?}");
    }
    let help = parse("checkpoint: { storage: { location: 'a/{isue}' } }\n").unwrap_err().help;
    assert_eq!(help.as_deref(), Some("did you mean `issue`?"));
    let help = parse("checkpoint: { retention: { manually: 1 } }\n").unwrap_err().help;
    assert_eq!(help.as_deref(), Some("did you mean `manual`?"));
}

#[test]
fn the_other_file_contains_only_settings_of_snapshots() {
    assert_eq!(read("", "").unwrap(), CheckpointSettings::default());
    let error = read("people: { require_terminal: false }\n", "").unwrap_err();
    assert!(error.path.ends_with(".claude/checkpoint-config.yaml"), "{error}");
    assert_eq!((error.message.as_str(), error.line, error.column), ("this file has no key `people`", Some(1), Some(1)));
    let error = read("checkpoint:\n  storage: { max_size_mb: big }\n", "").unwrap_err();
    assert_eq!((error.line, error.column), (Some(2), Some(27)), "{error}");
}
