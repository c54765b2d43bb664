//! Commands built from settings, presets and requests.

use super::call::dollars;
use super::{AgentError, AgentRequest, PromptBy, SessionMode, Setting, call, preset, preset_names};

const FRESH: SessionMode<'static> = SessionMode::Fresh { id: "0b5c-id" };

fn ask(prompt: &str) -> AgentRequest<'_> {
    AgentRequest {
        prompt,
        model: None,
        session: FRESH,
        tools_allow: &[],
        tools_deny: &[],
        max_cost_micros: None,
        policy: "/run/policy.toml",
    }
}

fn command(name: &str, ask: &AgentRequest<'_>) -> Result<String, AgentError> {
    let setting = Setting { args: vec!["--own".into()], ..Setting::default() };
    call(&setting, Some(preset(name)?), ask).map(|invocation| invocation.command)
}

#[test]
fn each_preset_is_called_as_documented() {
    let model = Some("some-model");
    let resume = SessionMode::Resume { id: "ses_1" };
    let commands =
        |name: &str| [FRESH, resume].map(|session| command(name, &AgentRequest { model, session, ..ask("hello") }).unwrap());
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
fn the_session_is_known_in_advance_only_if_it_can_be_chosen() {
    for name in preset_names() {
        let known = call(&Setting::default(), preset(name).ok(), &ask("hello")).unwrap();
        let chosen = matches!(name, "claude" | "copilot" | "qwen").then(|| "0b5c-id".to_owned());
        assert_eq!((known.session, known.stdin), (chosen, Some(b"hello".to_vec())), "{name}");
        let again = AgentRequest { session: SessionMode::Resume { id: "ses_1" }, ..ask("hello") };
        assert_eq!(call(&Setting::default(), preset(name).ok(), &again).unwrap().session.as_deref(), Some("ses_1"));
    }
}

#[test]
fn tool_and_cost_limits_are_passed_if_supported_and_refused_otherwise() {
    let (allow, deny) = (["Read".to_owned(), "Bash(git log:*)".to_owned()], ["Write".to_owned()]);
    let with_tools = AgentRequest { tools_allow: &allow, tools_deny: &deny, ..ask("hello") };
    assert_eq!(
        command("claude", &AgentRequest { max_cost_micros: Some(1_250_000), ..with_tools }).unwrap(),
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
        let error = command(name, &AgentRequest { tools_deny: &[], ..with_tools }).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("cannot allow tools"), "{error}");
    }
    for name in ["codex", "cursor", "opencode"] {
        let error = command(name, &AgentRequest { tools_allow: &[], ..with_tools }).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("cannot deny tools"), "{error}");
    }
    for name in ["codex", "cursor", "opencode", "gemini", "copilot", "qwen"] {
        let error = command(name, &AgentRequest { max_cost_micros: Some(1), ..ask("hello") }).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("cannot limit what a call costs"), "{error}");
    }
}

#[test]
fn a_value_cannot_become_an_option() {
    let tools = ["--dangerous".to_owned()];
    assert!(command("claude", &AgentRequest { tools_allow: &tools, ..ask("x") }).is_err());
    assert!(command("claude", &AgentRequest { model: Some("-x"), ..ask("x") }).is_err());
    for id in ["", "-rf", "a b", "a;b", "a'b", &"x".repeat(300)] {
        assert!(command("claude", &AgentRequest { session: SessionMode::Resume { id }, ..ask("x") }).is_err(), "{id}");
    }
}

#[test]
fn a_prompt_can_be_an_argument_unless_it_is_too_long() {
    let setting = Setting { prompt_by: PromptBy::Argument, ..Setting::default() };
    let invocation = call(&setting, preset("copilot").ok(), &ask("it's $(me)")).unwrap();
    assert!(invocation.command.ends_with(" '--prompt=it'\\''s $(me)'") && invocation.stdin.is_none());
    for name in ["copilot", "gemini", "qwen"] {
        let invocation = call(&setting, preset(name).ok(), &ask("- do this")).unwrap();
        assert!(invocation.command.ends_with(" '--prompt=- do this'"), "it must not look like an option: {}", invocation.command);
    }
    let error = call(&setting, preset("copilot").ok(), &ask(&"x".repeat(200_000))).unwrap_err().to_string();
    assert!(error.contains("too long for an argument"), "{error}");
    assert!(call(&setting, preset("copilot").ok(), &ask("a\0b")).is_err());
}

#[test]
fn a_plain_command_reports_unsupported_settings() {
    let setting = Setting { command: Some("my agent".into()), ..Setting::default() };
    let error = |ask: &AgentRequest<'_>| call(&setting, None, ask).unwrap_err().to_string();
    assert!(error(&AgentRequest { model: Some("m"), ..ask("x") }).contains("`{model}`"));
    assert!(error(&AgentRequest { session: SessionMode::Resume { id: "1" }, ..ask("x") }).contains("resume a session"));
    assert!(error(&AgentRequest { max_cost_micros: Some(1), ..ask("x") }).contains("limit what a call costs"));
    let tools = ["Read".to_owned()];
    assert!(error(&AgentRequest { tools_deny: &tools, ..ask("x") }).contains("deny tools"));
    assert!(call(&Setting::default(), None, &ask("x")).unwrap_err().to_string().contains("`preset` or a `command`"));
}

#[test]
fn placeholders_inside_a_prompt_are_not_expanded() {
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
fn dollar_amounts_are_printed_without_trailing_zeros() {
    assert_eq!([0, 1, 1_000_000, 2_500_000, 10_000_001].map(dollars), ["0", "0.000001", "1", "2.5", "10.000001"]);
}

#[test]
fn tool_policies_quote_tool_names_and_use_command_prefixes() {
    let (allow, deny) = (["read_file".to_owned(), "run_shell_command(git \"log\")".to_owned()], ["write_file".to_owned()]);
    let asked = AgentRequest { tools_allow: &allow, tools_deny: &deny, ..ask("hello") };
    let text = call(&Setting::default(), preset("gemini").ok(), &asked).unwrap().policy.unwrap();
    let rules: Vec<&str> = text.split("[[rule]]\n").skip(1).collect();
    assert!(rules[0].contains("toolName = \"read_file\"\ndecision = \"allow\""), "{text}");
    assert!(rules[1].contains("toolName = \"run_shell_command\"\ncommandPrefix = \"git \\\"log\\\"\""), "{text}");
    assert!(!rules[1].contains("allowRedirection") && rules[2].contains("decision = \"deny\""), "{text}");
    assert_eq!(call(&Setting::default(), preset("gemini").ok(), &ask("hello")).unwrap().policy, None);
}
