//! The commands that come of a setting, a preset and what is asked.

use super::call::dollars;
use super::{AgentError, Ask, PromptBy, SessionAsk, Setting, call, preset, preset_names};

const FRESH: SessionAsk<'static> = SessionAsk::Fresh { id: "0b5c-id" };

fn ask(prompt: &str) -> Ask<'_> {
    Ask {
        prompt,
        model: None,
        session: FRESH,
        tools_allow: &[],
        tools_deny: &[],
        max_cost_micros: None,
        policy: "/run/policy.toml",
    }
}

fn command(name: &str, ask: &Ask<'_>) -> Result<String, AgentError> {
    let setting = Setting { args: vec!["--own".into()], ..Setting::default() };
    call(&setting, Some(preset(name)?), ask).map(|invocation| invocation.command)
}

#[test]
fn each_preset_is_called_as_it_is_documented() {
    let model = Some("some-model");
    let resume = SessionAsk::Resume { id: "ses_1" };
    let commands = |name: &str| [FRESH, resume].map(|session| command(name, &Ask { model, session, ..ask("hello") }).unwrap());
    assert_eq!(
        commands("claude"),
        [
            "claude -p --output-format stream-json --verbose --model some-model --session-id 0b5c-id --own",
            "claude -p --output-format stream-json --verbose --model some-model --resume ses_1 --own",
        ]
    );
    assert_eq!(
        commands("codex"),
        ["codex exec --json --model some-model --own -", "codex exec --json --model some-model --own resume ses_1 -",]
    );
    assert_eq!(
        commands("gemini"),
        [
            "gemini --output-format stream-json --model some-model --own",
            "gemini --output-format stream-json --model some-model --resume ses_1 --own",
        ]
    );
    assert_eq!(
        commands("copilot"),
        [
            "copilot --output-format json --model some-model --session-id 0b5c-id --own",
            "copilot --output-format json --model some-model '--resume=ses_1' --own",
        ]
    );
    assert_eq!(
        commands("qwen"),
        [
            "qwen --output-format stream-json --model some-model --session-id 0b5c-id --own",
            "qwen --output-format stream-json --model some-model --resume ses_1 --own",
        ]
    );
    assert_eq!(
        commands("cursor"),
        [
            "cursor-agent --print --output-format stream-json --model some-model --own",
            "cursor-agent --print --output-format stream-json --model some-model --resume ses_1 --own",
        ]
    );
    assert_eq!(
        commands("opencode"),
        [
            "opencode run --format json --model some-model --own",
            "opencode run --format json --model some-model --session ses_1 --own",
        ]
    );
}

#[test]
fn the_session_is_known_before_the_work_only_where_it_can_be_chosen() {
    for name in preset_names() {
        let known = call(&Setting::default(), preset(name).ok(), &ask("hello")).unwrap();
        let chosen = matches!(name, "claude" | "copilot" | "qwen").then(|| "0b5c-id".to_owned());
        assert_eq!((known.session, known.stdin), (chosen, Some(b"hello".to_vec())), "{name}");
        let again = Ask { session: SessionAsk::Resume { id: "ses_1" }, ..ask("hello") };
        assert_eq!(call(&Setting::default(), preset(name).ok(), &again).unwrap().session.as_deref(), Some("ses_1"));
    }
}

#[test]
fn tools_and_costs_are_passed_where_the_program_can_do_it_and_refused_where_not() {
    let (allow, deny) = (["Read".to_owned(), "Bash(git log:*)".to_owned()], ["Write".to_owned()]);
    let with_tools = Ask { tools_allow: &allow, tools_deny: &deny, ..ask("hello") };
    assert_eq!(
        command("claude", &Ask { max_cost_micros: Some(1_250_000), ..with_tools }).unwrap(),
        "claude --allowedTools 'Read,Bash(git log:*)' --disallowedTools Write -p --output-format stream-json --verbose \
         --max-budget-usd 1.25 --session-id 0b5c-id --own"
    );
    assert_eq!(
        command("copilot", &with_tools).unwrap(),
        "copilot --output-format json '--allow-tool=Read' '--allow-tool=Bash(git log:*)' '--deny-tool=Write' \
         --session-id 0b5c-id --own"
    );
    assert_eq!(command("gemini", &with_tools).unwrap(), "gemini --output-format stream-json --policy /run/policy.toml --own");
    for name in ["codex", "cursor", "opencode"] {
        let error = command(name, &Ask { tools_deny: &[], ..with_tools }).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("no way to allow tools"), "{error}");
    }
    for name in ["codex", "cursor", "opencode"] {
        let error = command(name, &Ask { tools_allow: &[], ..with_tools }).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("no way to deny tools"), "{error}");
    }
    for name in ["codex", "cursor", "opencode", "gemini", "copilot", "qwen"] {
        let error = command(name, &Ask { max_cost_micros: Some(1), ..ask("hello") }).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("no way to limit what a call costs"), "{error}");
    }
}

#[test]
fn a_value_cannot_become_an_option() {
    let tools = ["--dangerous".to_owned()];
    assert!(command("claude", &Ask { tools_allow: &tools, ..ask("x") }).is_err());
    assert!(command("claude", &Ask { model: Some("-x"), ..ask("x") }).is_err());
    for id in ["", "-rf", "a b", "a;b", "a'b", &"x".repeat(300)] {
        assert!(command("claude", &Ask { session: SessionAsk::Resume { id }, ..ask("x") }).is_err(), "{id}");
    }
}

#[test]
fn a_prompt_can_be_an_argument_unless_it_is_too_long() {
    let setting = Setting { prompt_by: PromptBy::Argument, ..Setting::default() };
    let invocation = call(&setting, preset("copilot").ok(), &ask("it's $(me)")).unwrap();
    assert!(invocation.command.ends_with(" '--prompt=it'\\''s $(me)'") && invocation.stdin.is_none());
    for name in ["copilot", "gemini", "qwen"] {
        let invocation = call(&setting, preset(name).ok(), &ask("- do this")).unwrap();
        assert!(invocation.command.ends_with(" '--prompt=- do this'"), "no option: {}", invocation.command);
    }
    let error = call(&setting, preset("copilot").ok(), &ask(&"x".repeat(200_000))).unwrap_err().to_string();
    assert!(error.contains("too long for an argument"), "{error}");
    assert!(call(&setting, preset("copilot").ok(), &ask("a\0b")).is_err());
}

#[test]
fn a_plain_command_says_what_it_cannot_do() {
    let setting = Setting { command: Some("my agent".into()), ..Setting::default() };
    let error = |ask: &Ask<'_>| call(&setting, None, ask).unwrap_err().to_string();
    assert!(error(&Ask { model: Some("m"), ..ask("x") }).contains("`{model}`"));
    assert!(error(&Ask { session: SessionAsk::Resume { id: "1" }, ..ask("x") }).contains("go on with a session"));
    assert!(error(&Ask { max_cost_micros: Some(1), ..ask("x") }).contains("limit what a call costs"));
    let tools = ["Read".to_owned()];
    assert!(error(&Ask { tools_deny: &tools, ..ask("x") }).contains("deny tools"));
    assert!(call(&Setting::default(), None, &ask("x")).unwrap_err().to_string().contains("`preset` or a `command`"));
}

#[test]
fn what_stands_in_a_prompt_is_no_placeholder() {
    let setting = Setting {
        command: Some("agent".into()),
        args: vec!["--m={model}".into(), "{prompt}".into()],
        model: Some("big".into()),
        prompt_by: PromptBy::Argument,
        ..Setting::default()
    };
    assert_eq!(call(&setting, None, &ask("{model} {prompt} {}")).unwrap().command, "agent '--m=big' '{model} {prompt} {}'");
}

#[test]
fn dollars_are_written_short() {
    assert_eq!([0, 1, 1_000_000, 2_500_000, 10_000_001].map(dollars), ["0", "0.000001", "1", "2.5", "10.000001"]);
}

#[test]
fn tools_that_a_policy_names_are_quoted_and_those_with_a_command_have_its_prefix() {
    let (allow, deny) = (["read_file".to_owned(), "run_shell_command(git \"log\")".to_owned()], ["write_file".to_owned()]);
    let asked = Ask { tools_allow: &allow, tools_deny: &deny, ..ask("hello") };
    let text = call(&Setting::default(), preset("gemini").ok(), &asked).unwrap().policy.unwrap();
    let rules: Vec<&str> = text.split("[[rule]]\n").skip(1).collect();
    assert!(rules[0].contains("toolName = \"read_file\"\ndecision = \"allow\""), "{text}");
    assert!(rules[1].contains("toolName = \"run_shell_command\"\ncommandPrefix = \"git \\\"log\\\"\""), "{text}");
    assert!(!rules[1].contains("allowRedirection") && rules[2].contains("decision = \"deny\""), "{text}");
    assert_eq!(call(&Setting::default(), preset("gemini").ok(), &ask("hello")).unwrap().policy, None);
}
