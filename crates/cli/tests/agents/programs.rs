//! How each agent program is configured for the stub, and how its shell is permitted or denied.

use serde_json::{Value, json};

#[derive(Clone, Copy)]
pub(crate) struct Program {
    /// The installation directory.
    pub(crate) directory: &'static str,
    pub(crate) preset: &'static str,
    /// The environment variable for the key.
    pub(crate) key: &'static str,
    /// Arguments that it always needs.
    pub(crate) needs: &'static [&'static str],
    /// The name of its shell tool in permissions.
    pub(crate) shell: &'static str,
    /// Additional arguments that permit the shell without a prompt.
    pub(crate) permits: &'static [&'static str],
    /// Whether it reports its session id before the turn ends.
    pub(crate) names_session: bool,
    /// Additional environment variables, given the address of the stub.
    pub(crate) environment: fn(&str) -> Vec<(&'static str, String)>,
    /// Configuration files under `home/` and `project/`, given the address of the stub.
    pub(crate) files: fn(&str) -> Vec<(&'static str, String)>,
    /// How to deny it `touch`.
    pub(crate) denies: Denies,
}

/// Changes that permit a program its shell, except for `touch`.
#[derive(Clone, Copy)]
pub(crate) struct Denies {
    /// Additional arguments.
    pub(crate) arguments: &'static [&'static str],
    /// Files that are added or replaced.
    pub(crate) files: fn(&str) -> Vec<(&'static str, String)>,
}

fn nothing(_: &str) -> Vec<(&'static str, String)> {
    Vec::new()
}

#[expect(non_upper_case_globals, reason = "programs are named as their modules are")]
pub(crate) const codex: Program = Program {
    directory: "codex",
    preset: "codex",
    key: "STUB_KEY",
    needs: &["--skip-git-repo-check"],
    shell: "",
    permits: &["--sandbox", "danger-full-access"],
    names_session: true,
    environment: nothing,
    files: |url| {
        let provider = format!("name = \"stub\"\nbase_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n");
        let settings = format!(
            "model = \"stub\"\nmodel_provider = \"stub\"\n[features]\nplugins = false\n[model_providers.stub]\n{provider}\
             request_max_retries = 0\nstream_max_retries = 1\n[analytics]\nenabled = false\n"
        );
        vec![("home/.codex/config.toml", settings)]
    },
    denies: Denies {
        arguments: &[],
        files: |_| vec![("home/.codex/rules/default.rules", "prefix_rule(pattern=[\"touch\"], decision=\"forbidden\")\n".into())],
    },
};

#[expect(non_upper_case_globals, reason = "programs are named as their modules are")]
pub(crate) const opencode: Program = Program {
    directory: "opencode",
    preset: "opencode",
    key: "STUB_KEY",
    needs: &[],
    shell: "",
    permits: &[],
    names_session: true,
    environment: |_| {
        let off = ["OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD"];
        off.map(|name| (name, "1".to_owned())).into()
    },
    files: |url| vec![("project/opencode.json", opencode_settings(url, &json!({})))],
    denies: Denies {
        arguments: &[],
        files: |url| vec![("project/opencode.json", opencode_settings(url, &json!({"bash": {"touch *": "deny"}})))],
    },
};

fn opencode_settings(url: &str, permission: &Value) -> String {
    let stub = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "stub",
        "options": {"baseURL": format!("{url}/v1"), "apiKey": "{env:STUB_KEY}"},
        "models": {"stub": {"name": "stub", "cost": {"input": 1, "output": 1}}},
    });
    json!({"model": "stub/stub", "permission": permission, "provider": {"stub": stub}}).to_string()
}

#[expect(non_upper_case_globals, reason = "programs are named as their modules are")]
pub(crate) const gemini: Program = Program {
    directory: "gemini",
    preset: "gemini",
    key: "GEMINI_API_KEY",
    needs: &["--model", "stub"],
    shell: "run_shell_command",
    permits: &["--yolo"],
    names_session: true,
    environment: |url| vec![("GOOGLE_GEMINI_BASE_URL", url.to_owned()), ("GEMINI_CLI_TRUST_WORKSPACE", "true".into())],
    files: |_| {
        let settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
            "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        });
        vec![("home/.gemini/settings.json", settings.to_string())]
    },
    denies: Denies {
        arguments: &["--policy", "../home/policy.toml"],
        files: |_| {
            let rule =
                "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch\"\ndecision = \"deny\"\npriority = 999\n";
            vec![("home/policy.toml", rule.into())]
        },
    },
};

#[expect(non_upper_case_globals, reason = "programs are named as their modules are")]
pub(crate) const qwen: Program = Program {
    directory: "qwen",
    preset: "qwen",
    key: "OPENAI_API_KEY",
    needs: &["--model", "stub", "--auth-type", "openai"],
    shell: "run_shell_command",
    permits: &["--yolo"],
    names_session: true,
    environment: |url| vec![("OPENAI_BASE_URL", format!("{url}/v1")), ("OPENAI_MODEL", "stub".into())],
    files: |_| {
        let settings = json!({
            "privacy": {"usageStatisticsEnabled": false},
            "general": {"enableAutoUpdate": false},
            // These features send requests of their own, which count as usage.
            "memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false},
            "ui": {"enableFollowupSuggestions": false},
        });
        vec![("home/.qwen/settings.json", settings.to_string())]
    },
    denies: Denies { arguments: &["--exclude-tools", "run_shell_command(touch)"], files: nothing },
};

#[expect(non_upper_case_globals, reason = "programs are named as their modules are")]
pub(crate) const claude: Program = Program {
    directory: "claude",
    preset: "claude",
    key: "ANTHROPIC_API_KEY",
    needs: &[],
    shell: "Bash",
    permits: &["--allowedTools", "Bash"],
    names_session: true,
    environment: |url| {
        let off = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC";
        vec![("ANTHROPIC_BASE_URL", url.to_owned()), (off, "1".into()), ("CLAUDE_CODE_MAX_RETRIES", "1".into())]
    },
    files: nothing,
    denies: Denies { arguments: &["--disallowedTools", "Bash(touch:*)"], files: nothing },
};

#[expect(non_upper_case_globals, reason = "programs are named as their modules are")]
pub(crate) const claude_older: Program = Program { directory: "claude_older", ..claude };

#[expect(non_upper_case_globals, reason = "programs are named as their modules are")]
pub(crate) const copilot: Program = Program {
    directory: "copilot",
    preset: "copilot",
    key: "COPILOT_PROVIDER_API_KEY",
    needs: &[],
    shell: "shell",
    permits: &["--allow-all-tools"],
    names_session: false,
    environment: |url| {
        vec![
            ("COPILOT_OFFLINE", "true".into()),
            ("COPILOT_PROVIDER_BASE_URL", format!("{url}/v1")),
            ("COPILOT_MODEL", "stub".into()),
        ]
    },
    files: nothing,
    denies: Denies { arguments: &["--deny-tool=shell(touch)"], files: nothing },
};
