//! Tests for parsing settings.

use super::*;
use lockgate_engine::run::outbox::NoticeKind;
use std::time::Duration;

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
fn every_setting_is_parsed() {
    let text = "people: { require_terminal: false }\nmax_parallel: 3\nscript: { timeout: 1m, condition_timeout: PT2S, memory_mb: 32 }\n\
                limits: { stored_outputs_mb: 0, log_mb: 1 }\nbackground: { idle_timeout: 1m, max_runs: 7 }\nnotify: off\n";
    let config = parse(text).unwrap();
    assert!(!config.people.require_terminal);
    assert_eq!(config.max_parallel.map(NonZeroU32::get), Some(3));
    assert_eq!(config.script.timeout, Duration::from_secs(60));
    assert_eq!(config.script.condition_timeout, Duration::from_secs(2));
    assert_eq!(config.script.memory_mb.get(), 32);
    assert_eq!(config.limits.stored_outputs_bytes(), 0);
    assert_eq!(config.limits.log_mb.get(), 1);
    assert_eq!((config.background.idle_timeout, config.background.max_runs.get()), (Duration::from_secs(60), 7));
    assert_eq!((config.notify.terminal, config.notify.command), (Notify::Off, None));
}

#[test]
fn auth_gate_settings_are_parsed_and_a_bad_pattern_is_reported_with_its_position() {
    let config = parse("logins:\n  acme: { pattern: session expired, login: acme login, probe: acme me }\n").unwrap();
    assert_eq!(config.logins.len(), 1);
    assert_eq!(config.logins[0].probe.as_deref(), Some("acme me"));
    let error = parse("logins:\n  acme: { pattern: '(' }\n").unwrap_err();
    assert_eq!((error.line, error.column), (Some(2), Some(20)), "{error}");
}

#[test]
fn pipeline_settings_are_parsed_and_their_directory_must_be_under_the_root() {
    let config = parse("pipelines: { dir: build/states, review: true, on_complete: make roadmap, approve: auto }\n").unwrap();
    let expected = Pipelines {
        dir: Some("build/states".into()),
        review: true,
        on_complete: Some("make roadmap".into()),
        auto_continue: true,
        gates: BTreeMap::new(),
    };
    assert_eq!(config.pipelines, expected);
    for dir in ["/tmp/x", "../x", "a/../../b", ".lockgate", "./.git/hooks"] {
        let error = parse(&format!("pipelines: {{ dir: {dir} }}\n")).unwrap_err();
        assert_eq!(error.message, "`dir` must be a directory inside the root", "{dir}");
    }
}

#[test]
fn policy_is_parsed_and_never_acts_for_a_person() {
    let config = parse("policy: { verify: auto, decision: { max_consecutive: 3 }, checkpoint: ask, collect: phase }\n").unwrap();
    assert!(config.policy.verify.is_some() && config.policy.checkpoint.is_none() && config.policy.collect_phase);
    assert_eq!(config.policy.decision.and_then(|rule| rule.max_consecutive), Some(3));
    for wrong in ["policy: { action: auto }", "policy: { verify: always }", "policy: { authentication: auto }"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_database_url_is_parsed_and_never_shown() {
    let config = parse("database: postgresql://ann:s3cret@db.example/work\n").unwrap();
    assert_eq!(config.database.as_ref().map(DatabaseUrl::reveal), Some("postgresql://ann:s3cret@db.example/work"));
    assert!(!format!("{config:?}").contains("s3cret"));
    let error = parse("database: { url: s3cret }\n").unwrap_err();
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[test]
fn an_unknown_setting_is_an_error_with_a_position_and_a_suggestion() {
    let error = parse("people:\n  require_terminl: false\n").unwrap_err();
    assert_eq!((error.line, error.column), (Some(2), Some(3)), "{error}");
    assert_eq!(error.to_string(), "config.yaml:2:3: `people` has no key `require_terminl`");
    assert_eq!(error.help.as_deref(), Some("did you mean `require_terminal`?"));

    let error = parse("zebra: 1\n").unwrap_err();
    assert_eq!(
        error.help.as_deref(),
        Some(
            "available: `people`, `max_parallel`, `script`, `limits`, `background`, `retention`, `checkpoint`, `notify` and 7 more"
        )
    );
}

#[test]
fn commit_settings_have_a_message_and_hooks() {
    let config = parse("commit: { message: 'feat: {{task.name}}', hooks: false }\n").unwrap();
    assert_eq!((config.commit.message.as_deref(), config.commit.hooks), (Some("feat: {{task.name}}"), Some(false)));
    let error = parse("commit: { message: ' ' }\n").unwrap_err();
    assert_eq!(error.to_string(), "config.yaml:1:20: `message` must be text");
}

#[test]
fn invalid_values_are_errors_with_a_position() {
    let number = "must be a whole number from";
    for (text, expected, help) in [
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
        ("script:\n  timeout: 30\n", "2:12: `timeout` must be a duration, not `30`", "add a unit: `30s`, `30m` or `30h`"),
        ("script:\n  timeout: 0s\n", "2:12: `timeout` must be longer than zero", "write it as `30s` or `5m`"),
        (
            "script:\n  timeout: [1]\n",
            "2:12: `timeout` must be a duration, not a list",
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
            "1:9: `notify` must say how a person at the terminal is notified of an open question",
            "write `bell`, `desktop` or `off`",
        ),
        ("people: 3\n", "1:9: `people` must be a map such as `{ require_terminal: false }`, not `3`", ""),
        ("- people\n", "1:1: the settings must be a map such as `people: { require_terminal: false }`, not a list", ""),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.to_string(), format!("config.yaml:{expected}"), "{text:?}");
        assert_eq!(error.help.unwrap_or_default(), help, "{text:?}");
    }
    let error = parse("people: [\n").unwrap_err();
    assert!(error.line.is_some() && error.message.starts_with("this is not YAML: "), "{error}");
}

#[test]
fn a_command_is_notified_of_everything_unless_the_settings_say_otherwise() {
    let config = parse("notify: { command: ./notify.sh }\n").unwrap();
    let command = config.notify.command.unwrap();
    assert_eq!((command.run.as_str(), command.timeout), ("./notify.sh", Duration::from_secs(30)));
    assert_eq!((command.on.len(), config.notify.terminal), (6, Notify::Bell));
    let text =
        "notify:\n  terminal: off\n  command:\n    run: ./notify.sh --fast\n    on: [hold_opened, run_ended]\n    timeout: 5s\n";
    let config = parse(text).unwrap();
    let command = config.notify.command.clone().unwrap();
    assert_eq!((command.timeout, config.notify.terminal), (Duration::from_secs(5), Notify::Off));
    assert_eq!(command.on.into_iter().collect::<Vec<_>>(), [NoticeKind::HoldOpened, NoticeKind::RunEnded]);
    assert!(!config.notify.subscriptions().is_empty() && Config::default().notify.subscriptions().is_empty());
}

#[test]
fn a_wrong_notify_command_is_an_error_with_its_position() {
    for (text, message) in [
        ("notify: { comand: x }\n", "1:11: `notify` has no key `comand`"),
        ("notify: { command: '' }\n", "1:20: `command` must be a shell command"),
        ("notify:\n  command:\n    on: run_ended\n", "3:5: `command` needs `run`, the command itself"),
        ("notify: { command: { run: x, on: [opened] } }\n", "1:35: `on` must list the notices that the command receives"),
        ("notify: { command: { run: x, on: [] } }\n", "1:34: `on` is empty, so the command would never run"),
        ("notify: { command: { run: x, timeout: 5 } }\n", "1:39: `timeout` must be a duration, not `5`"),
        (
            "notify: { terminal: loudly }\n",
            "1:21: `terminal` must say how a person at the terminal is notified of an open question",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.to_string(), format!("config.yaml:{message}"), "{text:?}");
        assert!(error.help.is_some(), "{text:?}");
    }
}

#[test]
fn hostile_settings_files_are_errors() {
    let deep = format!("people: {}", "[".repeat(100_000));
    let wide = format!("people: {{{}}}", "require_terminal: true, ".repeat(20_000));
    let aliases = format!("people: &all\n  require_terminal: true\nscript: [{}]\n", "*all, ".repeat(50_000));
    for text in [deep, wide, aliases] {
        assert!(parse(&text).is_err(), "{}…", &text[..40]);
    }
}

#[test]
fn a_missing_file_gives_the_defaults_and_an_unreadable_one_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::at(dir.path());
    root.prepare().unwrap();
    let path = root.config_file();
    let read = || Config::read(&root);
    assert_eq!(read().unwrap(), Config::default());
    std::fs::write(&path, "people: { require_terminal: false }").unwrap();
    assert!(!read().unwrap().people.require_terminal);
    std::fs::write(&path, b"people: \xff").unwrap();
    assert_eq!(read().unwrap_err().message, "the settings cannot be read: it is not UTF-8 text");
    std::fs::write(&path, "#".repeat(1_000_001)).unwrap();
    assert!(read().unwrap_err().message.contains("larger than 1 MB"));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let error = read().unwrap_err();
    assert_eq!((error.message.as_str(), error.line), ("the settings cannot be read: it is a directory", None));
    assert!(error.help.is_some());
}

#[test]
fn retention_is_parsed_and_keep_needs_an_age() {
    let config = parse("retention: { finished: 30d, keep: 100 }\n").unwrap();
    assert_eq!(config.retention, Retention { finished: Some(Duration::from_secs(30 * 86_400)), keep: 100 });
    assert_eq!(Config::default().retention.finished, None, "by default everything is kept");
    let error = parse("retention:\n  keep: 5\n").unwrap_err();
    assert!(error.message.contains("no effect without `finished`"), "{error}");
    assert!(parse("retention: { finished: 30 }\n").is_err(), "a bare number has no unit");
    assert!(parse("retention: { finished: 0s }\n").is_err(), "a run is never removed as soon as it ends");
}
