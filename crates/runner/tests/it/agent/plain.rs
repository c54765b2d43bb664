//! Programs without a preset, and the ways to pass them a prompt.

use super::{ASK, StandIn};
use crate::process::among_others;
use lockgate_runner::agent::{AgentError, AgentRequest, PromptBy, Setting, call};
use lockgate_runner::process::ExitReason;
use std::fs;

const PROMPT: &str = "it's a \"prompt\"\nwith $(touch ran) `touch ran` and \\ $HOME {prompt} ä\n";

#[test]
fn a_plain_program_gets_the_prompt_and_its_output_is_the_reply() {
    let _table = among_others();
    let stand_in = StandIn::new("", "cat prompt; echo 'to the log' >&2");
    let called = stand_in.call_with(&stand_in.setting(None), &AgentRequest { prompt: PROMPT, ..ASK }, |job| job);
    assert_eq!((called.ended.reason, called.output.text.as_deref()), (ExitReason::Exit(0), Some(PROMPT)));
    assert!(called.lines.contains(&"to the log".to_owned()) && called.lines.contains(&"it's a \"prompt\"".to_owned()));
    assert!(!stand_in.path().join("ran").exists());
}

#[test]
fn a_prompt_can_be_an_argument_of_any_program() {
    let _table = among_others();
    let stand_in = StandIn::new("", "");
    let ask = AgentRequest { prompt: PROMPT, model: Some("big"), ..ASK };
    let args = vec!["--model={model}".to_owned(), "--message".to_owned(), "{prompt}".to_owned(), "--last".to_owned()];
    let setting = Setting { prompt_by: PromptBy::Argument, args, ..stand_in.setting(None) };
    let called = stand_in.call_with(&setting, &ask, |job| job);
    assert_eq!(called.arguments, ["--model=big", "--message", PROMPT, "--last"]);
    assert_eq!(called.prompt, b"");
    let setting = Setting { prompt_by: PromptBy::Argument, ..stand_in.setting(Some("opencode")) };
    let called = stand_in.call_with(&setting, &AgentRequest { prompt: PROMPT, ..ASK }, |job| job);
    assert_eq!(called.arguments, ["run", "--format", "json", "--", PROMPT]);
    assert!(!stand_in.path().join("ran").exists());
}

#[test]
fn a_prompt_can_be_passed_in_a_temporary_file() {
    let _table = among_others();
    let temporary = tempfile::tempdir().unwrap();
    for end in ["exit 3", "kill -TERM $$", "trap '' TERM; sleep 1000"] {
        let stand_in = StandIn::new("", &format!("cp \"${{1#--file=}}\" seen; {end}"));
        let setting = Setting { prompt_by: PromptBy::File, args: vec!["--file={prompt}".into()], ..stand_in.setting(None) };
        let called = stand_in.call_with(&setting, &AgentRequest { prompt: PROMPT, ..ASK }, |job| lockgate_runner::process::Job {
            env: vec![("TMPDIR".into(), temporary.path().to_string_lossy().into_owned())],
            idle_timeout: Some(std::time::Duration::from_secs(1)),
            ..job
        });
        assert_eq!(fs::read_to_string(stand_in.path().join("seen")).unwrap(), PROMPT);
        assert_eq!(called.prompt, b"", "the prompt is in the file alone");
        if end == "exit 3" {
            assert_eq!(called.ended.reason, ExitReason::Exit(3));
        }
        if !end.starts_with("trap") {
            assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "after {end}");
        }
    }
}

#[test]
fn a_silent_program_has_no_reply() {
    let _table = among_others();
    for name in [None, Some("claude")] {
        let stand_in = StandIn::new("", "");
        let called = stand_in.call_with(&stand_in.setting(name), &ASK, |job| job);
        assert_eq!((called.ended.reason, called.output.text, called.output.error), (ExitReason::Exit(0), None, None));
    }
}

#[test]
fn a_command_may_include_arguments() {
    let _table = among_others();
    let stand_in = StandIn::new("", "");
    let command = stand_in.setting(None).command.unwrap();
    let setting = Setting { command: Some(format!("LOUD=1 env TWICE=2 {command} --first")), ..stand_in.setting(Some("codex")) };
    assert_eq!(stand_in.call_with(&setting, &ASK, |job| job).arguments, ["--first", "exec", "--json", "-"]);
    for nothing in ["", "  "] {
        let setting = Setting { command: Some(nothing.into()), ..Setting::default() };
        assert_eq!(call(&setting, None, &ASK).unwrap_err(), AgentError::NotACommand);
    }
}
