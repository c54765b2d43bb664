//! Programs that hang, flood the output, print control sequences, ignore signals and leave daemons behind.

use super::{ASK, StandIn};
use crate::process::{among_others, lives, pid_in};
use lockgate_runner::process::{ExitReason, Job, LogLimits};
use lockgate_runner::secret::{Masks, Secret};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

const ANSWER: &str = "{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"done\",\"session_id\":\"ses-1\"}\n";
const INIT: &str = "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"ses-1\",\"model\":\"m\"}\n";

#[test]
fn a_hanging_program_that_ignores_signals_is_killed_and_its_session_is_known() {
    let _table = among_others();
    let stand_in = StandIn::new(INIT, "trap '' TERM INT HUP; while :; do sleep 0.05; done");
    let idle = Duration::from_secs(1);
    let called = stand_in.call_with(&stand_in.setting(Some("claude")), &ASK, |job| Job { idle_timeout: Some(idle), ..job });
    assert_eq!((called.ended.reason, called.ended.survivors), (ExitReason::Idle(idle), vec![]));
    assert_eq!((called.output.session.as_deref(), called.output.text), (Some("ses-1"), None));
}

#[test]
fn the_reply_after_fifty_megabytes_of_output_is_parsed() {
    let _table = among_others();
    let floods = [
        // One endless line, garbage lines, and well-formed lines.
        ("head -c 50000000 /dev/zero | tr '\\0' x; echo", 1),
        ("line=$(printf '%0999d' 0); yes \"$line\" | head -c 50000000", 50_000),
        ("line=$(printf '{\"type\":\"user\",\"x\":\"%0980d\"}' 0); yes \"$line\" | head -c 50000000", 1),
    ];
    for (flood, most_garbage) in floods {
        let stand_in = StandIn::new(INIT, &format!("{flood}\necho\nprintf '%s' '{}'", ANSWER.trim()));
        let called = stand_in.call_with(&stand_in.setting(Some("claude")), &ASK, |job| Job {
            limits: LogLimits { head: 100_000, tail: 10_000 },
            timeout: Some(Duration::from_secs(300)),
            ..job
        });
        assert_eq!((called.ended.reason, called.ended.truncated), (ExitReason::Exit(0), true));
        assert!(
            called.ended.bytes > 50_000_000 && called.output.garbage_lines <= most_garbage,
            "{}",
            called.output.garbage_lines
        );
        assert_eq!((called.output.text.as_deref(), called.output.session.as_deref()), (Some("done"), Some("ses-1")), "{flood}");
        assert!(fs::metadata(stand_in.path().join("log")).unwrap().len() < 120_000);
    }
}

#[test]
fn flooding_plain_output_is_truncated_and_marked() {
    let _table = among_others();
    let stand_in = StandIn::new("the beginning\n", "yes \"$(printf '%0999d' 0)\" | head -c 20000000");
    let called = stand_in.call_with(&stand_in.setting(None), &ASK, |job| job);
    let text = called.output.text.unwrap();
    assert!(text.starts_with("the beginning\n000") && text.len() == 4 * 1024 * 1024, "{}", text.len());
    assert!(called.output.truncated);
}

#[test]
fn control_sequences_around_and_inside_lines_are_harmless() {
    let _table = among_others();
    let stream = format!("\u{1b}[2J\u{1b}[?25l{INIT}\u{1b}]0;title\u{7}\n\u{0}\u{0}\n\u{1b}[0m{ANSWER}");
    let output = StandIn::new(&stream, "").call("claude", &ASK).output;
    assert_eq!((output.text.as_deref(), output.session.as_deref(), output.garbage_lines), (Some("done"), Some("ses-1"), 2));
    let sequence = "{\"type\":\"result\",\"result\":\"red: \\u001b[31m nul: \\u0000.\"}\n";
    let output = StandIn::new(sequence, "").call("claude", &ASK).output;
    assert_eq!(output.text.as_deref(), Some("red: \u{1b}[31m nul: ."), "made visible where it is shown");
}

#[test]
fn a_daemon_left_behind_by_an_agent_is_stopped() {
    let _table = among_others();
    let daemon = "setsid sh -c 'trap \"\" TERM; echo $$ > daemon.new; mv daemon.new daemon; exec sleep 1000' & while ! [ -s daemon ]; do sleep 0.01; done";
    let stand_in = StandIn::new(ANSWER, daemon);
    let called = stand_in.call("claude", &ASK);
    assert_eq!((called.ended.reason, called.ended.survivors), (ExitReason::Exit(0), vec![]));
    assert_eq!(called.output.text.as_deref(), Some("done"));
    assert!(!lives(pid_in(stand_in.path(), "daemon")));
}

#[test]
fn secrets_are_masked_before_agent_output_is_processed() {
    let _table = among_others();
    let stream = "{\"type\":\"result\",\"result\":\"it is hun\\u0074er2-hunter2 or hunter2-hunter2\"}\n{\"type\":\"assistant\",\"parent_tool_use_id\":null,\"message\":{\"content\":\"hunter2\\u002dhunter2\"}}\n";
    let secret = Secret { name: "TOKEN".into(), value: "hunter2-hunter2".into() };
    let masks = Arc::new(Masks::new([&secret]));
    let stand_in = StandIn::new(stream, "");
    let called = stand_in.call_with(&stand_in.setting(Some("claude")), &ASK, |job| Job { masks: masks.clone(), ..job });
    // A deliberately escaped secret only appears after parsing, so progress lines are masked again.
    assert_eq!(called.lines, ["***TOKEN***"]);
    let log = fs::read_to_string(stand_in.path().join("log")).unwrap();
    assert!(log.contains("or ***TOKEN***"), "{log}");
}
