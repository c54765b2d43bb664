//! Programs that hang, flood, print control sequences, ignore signals and leave daemons behind.

use super::{ASK, StandIn};
use crate::process::{among_others, lives, pid_in};
use lockgate_runner::process::{How, Job, LogLimits};
use lockgate_runner::secret::{Masks, Secret};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

const ANSWER: &str = "{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"done\",\"session_id\":\"ses-1\"}\n";
const INIT: &str = "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"ses-1\",\"model\":\"m\"}\n";

#[test]
fn one_that_hangs_and_ignores_signals_is_ended_and_its_session_is_known() {
    let _table = among_others();
    let stand_in = StandIn::new(INIT, "trap '' TERM INT HUP; while :; do sleep 0.05; done");
    let idle = Duration::from_secs(1);
    let called = stand_in.call_with(&stand_in.setting(Some("claude")), &ASK, |job| Job { idle_timeout: Some(idle), ..job });
    assert_eq!((called.ended.how, called.ended.survivors), (How::Idle(idle), vec![]));
    assert_eq!((called.told.session.as_deref(), called.told.text), (Some("ses-1"), None));
}

#[test]
fn a_flood_of_fifty_megabytes_is_borne_and_the_answer_after_it_is_read() {
    let _table = among_others();
    let floods = [
        // One line without an end, garbage lines, and lines that are well formed.
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
        assert_eq!((called.ended.how, called.ended.truncated), (How::Exit(0), true));
        assert!(called.ended.bytes > 50_000_000 && called.told.garbage_lines <= most_garbage, "{}", called.told.garbage_lines);
        assert_eq!((called.told.text.as_deref(), called.told.session.as_deref()), (Some("done"), Some("ses-1")), "{flood}");
        assert!(fs::metadata(stand_in.path().join("log")).unwrap().len() < 120_000);
    }
}

#[test]
fn a_plain_flood_gives_its_beginning_and_says_that_it_was_cut() {
    let _table = among_others();
    let stand_in = StandIn::new("the beginning\n", "yes \"$(printf '%0999d' 0)\" | head -c 20000000");
    let called = stand_in.call_with(&stand_in.setting(None), &ASK, |job| job);
    let text = called.told.text.unwrap();
    assert!(text.starts_with("the beginning\n000") && text.len() == 4 * 1024 * 1024, "{}", text.len());
    assert!(called.told.truncated);
}

#[test]
fn control_sequences_around_and_inside_the_lines_do_no_harm() {
    let _table = among_others();
    let stream = format!("\u{1b}[2J\u{1b}[?25l{INIT}\u{1b}]0;title\u{7}\n\u{0}\u{0}\n\u{1b}[0m{ANSWER}");
    let told = StandIn::new(&stream, "").call("claude", &ASK).told;
    assert_eq!((told.text.as_deref(), told.session.as_deref(), told.garbage_lines), (Some("done"), Some("ses-1"), 2));
    let sequence = "{\"type\":\"result\",\"result\":\"red: \\u001b[31m nul: \\u0000.\"}\n";
    let told = StandIn::new(sequence, "").call("claude", &ASK).told;
    assert_eq!(told.text.as_deref(), Some("red: \u{1b}[31m nul: ."), "made visible where it is shown");
}

#[test]
fn a_daemon_that_it_leaves_behind_is_ended() {
    let _table = among_others();
    let daemon = "setsid sh -c 'trap \"\" TERM; echo $$ > daemon.new; mv daemon.new daemon; exec sleep 1000' & while ! [ -s daemon ]; do sleep 0.01; done";
    let stand_in = StandIn::new(ANSWER, daemon);
    let called = stand_in.call("claude", &ASK);
    assert_eq!((called.ended.how, called.ended.survivors), (How::Exit(0), vec![]));
    assert_eq!(called.told.text.as_deref(), Some("done"));
    assert!(!lives(pid_in(stand_in.path(), "daemon")));
}

#[test]
fn secrets_are_masked_before_anybody_reads_them() {
    let _table = among_others();
    let stream = "{\"type\":\"result\",\"result\":\"it is hun\\u0074er2-hunter2 or hunter2-hunter2\"}\n{\"type\":\"assistant\",\"parent_tool_use_id\":null,\"message\":{\"content\":\"hunter2\\u002dhunter2\"}}\n";
    let secret = Secret { name: "TOKEN".into(), value: "hunter2-hunter2".into() };
    let masks = Arc::new(Masks::new([&secret]));
    let stand_in = StandIn::new(stream, "");
    let called = stand_in.call_with(&stand_in.setting(Some("claude")), &ASK, |job| Job { masks: masks.clone(), ..job });
    // What a program escapes on purpose shows only when it is read, so lines for people are masked once more.
    assert_eq!(called.lines, ["***TOKEN***"]);
    let log = fs::read_to_string(stand_in.path().join("log")).unwrap();
    assert!(log.contains("or ***TOKEN***"), "{log}");
}
