use super::*;
use crate::spec::includes::{IncludeError, Includes};
use crate::spec::problem::{Report, Severity};
use crate::spec::{read_with_includes, scalar, syntax};
use std::collections::{BTreeMap, BTreeSet};

fn value(text: &str) -> Value {
    let node = syntax::parse(text, &mut Report::default()).unwrap_or_else(|| panic!("no YAML: {text}"));
    scalar::to_json(&node, &mut Vec::new())
}

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&schema()).expect("a schema")
}

/// Every map of the format by name, starting at the top.
fn formats() -> BTreeMap<&'static str, &'static Format> {
    fn add(format: &'static Format, found: &mut BTreeMap<&'static str, &'static Format>) {
        if found.insert(format.name, format).is_some() {
            return;
        }
        format.known.iter().for_each(|key| within(&key.shape, found));
    }
    fn within(shape: &'static Shape, found: &mut BTreeMap<&'static str, &'static Format>) {
        match shape {
            Shape::Map(inner) | Shape::List(inner, _) | Shape::CountOrMap(_, _, inner) | Shape::Secrets(inner) => {
                add(inner, found);
            }
            Shape::AnyOf(shapes) => shapes.iter().for_each(|shape| within(shape, found)),
            Shape::ListOf(shape) | Shape::MapOf(shape) => within(shape, found),
            Shape::Text
            | Shape::Filled
            | Shape::Id
            | Shape::Boolean
            | Shape::True
            | Shape::Count(..)
            | Shape::Duration
            | Shape::Words(_)
            | Shape::Texts
            | Shape::Variables
            | Shape::Variable
            | Shape::Environment
            | Shape::Number
            | Shape::Items
            | Shape::Shell
            | Shape::Any
            | Shape::Values => {}
        }
    }
    let mut found = BTreeMap::new();
    add(&WORKFLOW, &mut found);
    found
}

/// A whole file around one map of the format that contains these lines.
fn file_around(format: &str, lines: &[String]) -> String {
    let flow = format!("{{ {} }}", lines.join(", "));
    let phase = |inside: &str| format!("name: x\nphases:\n  - {{ id: a, {inside} }}\n  - {{ id: b }}\n");
    match format {
        "workflow" => flow,
        "phase" => format!("name: x\nphases: [{flow}]\n"),
        "main_agent" => phase(&format!("main_agent: {flow}")),
        "task" => phase(&format!("tasks: [{{ id: first, pass: true }}, {flow}]")),
        "retry" => phase(&format!("tasks: [{{ id: t, pass: true, retry: {flow} }}]")),
        "gate" => phase(&format!("tasks: [{{ id: first, pass: true }}], gates: [{flow}]")),
        "checkpoint" => phase(&format!("checkpoint: {flow}")),
        "option" => phase(&format!("checkpoint: {{ options: [{flow}] }}")),
        "on_select" => phase(&format!("checkpoint: {{ options: [{{ label: x, on_select: {flow} }}] }}")),
        "secret" => format!("name: x\nsecrets: {{ S: {flow} }}\nphases: [{{ id: a }}]\n"),
        "agent" => format!("name: x\nagents: {{ default: {flow} }}\nphases: [{{ id: a }}]\n"),
        "input" => format!("name: x\ninputs: {{ i: {flow} }}\nphases: [{{ id: a }}]\n"),
        "finalization" => format!("name: x\nfinalization: {flow}\nphases: [{{ id: a }}]\n"),
        "budget" => phase(&format!("budget: {flow}")),
        "subagent" => phase(&format!("subagents: [{flow}]")),
        "subagents" => phase(&format!("subagents: {flow}")),
        "adaptive" => phase(&format!("subagents: {{ adaptive: {flow} }}")),
        "gap_check" => phase(&format!("gap_check: {flow}")),
        "criterion" => phase(&format!("gap_check: {{ criteria: [{flow}] }}")),
        "on_failure" => phase(&format!("gap_check: {{ criteria: [{{ name: c, check: 'true' }}], on_failure: {flow} }}")),
        "tools" => phase(&format!("tasks: [{{ id: t, prompt: p, tools: {flow} }}]")),
        "commit" => phase(&format!("tasks: [{{ id: t, pass: true, commit: {flow} }}]")),
        "for_each" => phase(&format!("tasks: [{{ id: t, pass: true, for_each: {flow} }}]")),
        "until" => phase(&format!("tasks: [{{ id: t, pass: true, until: {flow} }}]")),
        "verify" => phase(&format!("tasks: [{{ id: first, pass: true }}, {{ id: t, verify: {flow} }}]")),
        "decision" => phase(&format!("tasks: [{{ id: t, decision: {flow} }}]")),
        "decision_option" => phase(&format!("tasks: [{{ id: t, decision: {{ question: q, options: [{flow}] }} }}]")),
        "action" => phase(&format!("tasks: [{{ id: t, action: {flow} }}]")),
        "check" => phase(&format!("tasks: [{{ id: t, action: {{ needed: n, check: {flow} }} }}]")),
        "on_deadline" => phase(&format!("tasks: [{{ id: t, verify: {{ built: b }}, deadline: 2h, on_deadline: {flow} }}]")),
        "show_diff" => phase(&format!("checkpoint: {{ prompt: x, show_diff: {flow} }}")),
        "team" => format!("name: x\nteam: {flow}\nphases: [{{ id: a }}]\n"),
        "team_member" => format!("name: x\nteam: {{ members: {{ a: {flow} }} }}\nphases: [{{ id: a }}]\n"),
        "knowledge" => format!("name: x\nknowledge: {flow}\nphases: [{{ id: a }}]\n"),
        "policy" => format!("name: x\npolicy: {flow}\nphases: [{{ id: a }}]\n"),
        "automatic" => format!("name: x\npolicy: {{ verify: {flow} }}\nphases: [{{ id: a }}]\n"),
        other => panic!("no file template for {other}"),
    }
}

/// Values for a key: those that both must accept, and those that both must refuse.
fn samples(key: &Key) -> (Vec<String>, Vec<String>) {
    let all = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<String>>();
    let (mut good, mut bad) = match &key.shape {
        // Ids of tasks and phases are looked up, and paths and scripts have rules of their own.
        Shape::Text if key.name == "target" => (all(&["current", "a"]), all(&["[current]", "{}"])),
        Shape::Texts if key.name == "needs" => (all(&["first", "[first]", "[]"]), all(&["{}", "[[first]]"])),
        Shape::Texts if key.name == "phases" => (all(&["b", "[b]"]), all(&["{}", "[[b]]"])),
        Shape::Texts if key.name == "redo" => (all(&["first", "[first]", "[]"]), all(&["{}", "[[first]]"])),
        Shape::Filled if key.name == "resume_signal" => (all(&["text", "true"]), all(&["[text]", "{}", "' '"])),
        Shape::Filled if key.name == "default" || key.name == "answer" => (all(&["approved", "Approve"]), all(&["[a]", "{}"])),
        Shape::Filled if key.name == "task" => (all(&["first"]), all(&["[first]", "{}", "' '"])),
        Shape::Text => (all(&["text", "1", "1.50", "true"]), all(&["[text]", "{}"])),
        Shape::Filled => (all(&["text", "1", "true"]), all(&["[text]", "{}", "' '"])),
        Shape::Id => (all(&["one", "1", "_a.b-c"]), all(&["[one]", "{}", "'a b'", "'-a'", "''"])),
        Shape::Boolean => (all(&["true", "false"]), all(&["yes", "'true'", "1", "[]"])),
        Shape::True => (all(&["true"]), all(&["false", "yes", "[]"])),
        Shape::Count(least, most) => {
            (vec![least.to_string(), most.to_string()], vec![(least - 1).to_string(), (most + 1).to_string(), "x".into()])
        }
        Shape::Duration => (all(&["30s", "5m", "1h 30m", "2d", "PT30M", "'1 hour'"]), all(&["30", "soon", "[]", "{}"])),
        Shape::Words(words) => (all(words), all(&["nonsense", "[]", "{}", "1"])),
        Shape::Texts => (all(&["text", "[a, b]", "[]"]), all(&["{}", "[[a]]", "[{}]"])),
        Shape::Variables => (all(&["A", "[A, b_1]", "[]"]), all(&["{}", "[1a]", "'a b'"])),
        Shape::Variable => (all(&["A"]), all(&["{}", "[A]", "1a"])),
        Shape::Environment => (all(&["{ A: text, B: 1, C: '' }", "{}"]), all(&["{ 1A: x }", "{ A: }", "{ A: [] }", "[]"])),
        Shape::Values => (all(&["{ a: 1, 'b c': [null] }", "{}"]), all(&["[]", "text"])),
        Shape::Secrets(_) => (all(&["{ A: , B: { env: C } }", "[A]", "{}"]), all(&["text", "{ A: text }", "{ 'a b': }"])),
        Shape::Map(_) => (Vec::new(), all(&["[]", "text"])),
        Shape::List(_, _) => (Vec::new(), all(&["{}", "text"])),
        Shape::CountOrMap(least, most, _) => (vec![least.to_string(), most.to_string()], all(&["0", "[]", "x", "{}"])),
        Shape::Number => (all(&["1", "2.5"]), all(&["0", "-1", "x", "[]"])),
        Shape::Shell => (all(&["bash", "sh", "'python3 -u {0}'"]), all(&["zsh", "'{0}'", "[bash]", "{}", "' '"])),
        Shape::Items => (all(&["[1, a, {}]", "[]"]), all(&["' '"])),
        Shape::Any => (all(&["text", "3"]), Vec::new()),
        Shape::AnyOf(_) if key.name == "for_each" => (all(&["[a, b]", "{ in: [a] }"]), all(&["{}", "{ in: [a], lines: x }"])),
        Shape::AnyOf(_) if key.name == "until" => (all(&["output", "{ run: make }"]), all(&["{}", "[]"])),
        Shape::AnyOf(_) if key.name == "commit" => {
            (all(&["true", "false", "{}", "{ message: m }"]), all(&["[]", "yes", "{ message: ' ' }", "{ hooks: 1 }"]))
        }
        Shape::AnyOf(_) if key.name == "check" => (all(&["make", "{ run: make }"]), all(&["{}", "[]", "' '"])),
        Shape::AnyOf(_) if key.name == "on_deadline" => {
            (all(&["escalate", "abort", "{ abort: true }", "{ escalate: ann }"]), all(&["{}", "[]", "later"]))
        }
        Shape::AnyOf(_) if matches!(key.name, "checkpoint" | "verify" | "decision") => {
            (all(&["ask", "auto", "{ max_consecutive: 3 }"]), all(&["always", "[]"]))
        }
        Shape::AnyOf(_) if key.name == "show_diff" => {
            let good = all(&["true", "false", "phase", "run", "{}", "{ since: main }", "{ since: run, paths: [src] }"]);
            (good, all(&["main", "[]", "'true'", "{ since: ' ' }", "{ paths: {} }"]))
        }
        Shape::AnyOf(_) => (all(&["[a]", "[{ type: a }]", "{ always: [a] }"]), all(&["text", "[{}]"])),
        Shape::ListOf(_) => (all(&["[a]", "[{ type: a }]", "[]"]), all(&["text", "[{}]"])),
        Shape::MapOf(_) if key.name == "members" => (all(&["{ a: { weight: 2 } }", "{}"]), all(&["[]", "text", "{ a: x }"])),
        Shape::MapOf(_) if key.name == "domains" => (all(&["{ a: 0.5 }", "{}"]), all(&["[]", "text", "{ a: x }"])),
        Shape::MapOf(_) if key.name == "inputs" => {
            (all(&["{ a: string }", "{ a: }", "{ a: { default: x } }"]), all(&["[]", "{ a: [] }"]))
        }
        Shape::MapOf(_) => (all(&["{ default: x }", "{ a: { command: x } }"]), all(&["[]", "{ a: [] }", "{ a: {} }"])),
    };
    match key.presence {
        // It only appears next to the action that needs it.
        Presence::Optional if key.name == "phases" => bad.push(String::new()),
        Presence::Optional => good.push(String::new()),
        Presence::Required | Presence::Valued => bad.push(String::new()),
    }
    (good, bad)
}

/// The other keys that a map needs in addition to this one.
fn includes(format: &Format, name: &str) -> Vec<String> {
    let with = |lines: &[&str]| -> Vec<String> {
        let other = |line: &&&str| line.split(':').next() != Some(name);
        lines.iter().filter(other).map(|line| (*line).to_owned()).collect()
    };
    match format.name {
        "workflow" => with(&["name: x", "phases: [{ id: a }]"]),
        "phase" if name == "with" => with(&["id: a", "use: x"]),
        "phase" => with(&["id: a"]),
        "main_agent" if name == "prompt" => Vec::new(),
        "main_agent" if matches!(name, "agent" | "output_path") => with(&["prompt: p"]),
        "main_agent" => with(&["script: return 1"]),
        "task" if matches!(name, "run" | "script" | "pass" | "prompt" | "agent") => with(&["id: t"]),
        "task" if matches!(name, "verify" | "decision" | "action") => with(&["id: t"]),
        "task" if name == "default" => with(&["id: t", "verify: { built: b }", "blocking: false"]),
        "task" if name == "on_deadline" => with(&["id: t", "verify: { built: b }", "deadline: 2h"]),
        "task" if name == "shell" => with(&["id: t", "run: make"]),
        "task" if matches!(name, "show_files" | "show_diff") || crate::spec::check::WAIT_KEYS.contains(&name) => {
            with(&["id: t", "verify: { built: b }"])
        }
        "verify" => Vec::new(),
        "decision" => with(&["question: q", "options: [{ id: a }]"]),
        "decision_option" => with(&["id: a"]),
        "action" => with(&["needed: n", "check: make"]),
        "check" => with(&["run: make"]),
        "on_deadline" | "policy" | "automatic" | "show_diff" | "team" | "team_member" | "knowledge" => Vec::new(),
        "task" if crate::spec::check::AGENT_KEYS.contains(&name) || name == "budget" => with(&["id: t", "prompt: p"]),
        "agent" if name == "preset" => Vec::new(),
        "agent" => with(&["command: x"]),
        "input" if name == "type" => with(&["choices: [a]"]),
        "input" if name == "choices" => Vec::new(),
        "input" | "tools" | "on_failure" | "subagents" | "commit" => Vec::new(),
        "finalization" => with(&["template: 'a b'"]),
        "budget" if name == "max_cost" => with(&["max_tokens: 3"]),
        "budget" => with(&["max_cost: 3"]),
        "subagent" => with(&["type: a"]),
        "adaptive" => with(&["script: 'return []'"]),
        "gap_check" if name == "script" => Vec::new(),
        "gap_check" => with(&["script: 'return {}'"]),
        "criterion" => with(&["name: c", "check: 'true'"]),
        "for_each" if matches!(name, "in" | "script" | "lines") => Vec::new(),
        "for_each" => with(&["in: [a]"]),
        "until" if matches!(name, "condition" | "run") => Vec::new(),
        "until" => with(&["run: make"]),
        "task" => with(&["id: t", "pass: true"]),
        "retry" => with(&["attempts: 2"]),
        "gate" => with(&["id: g", "run: make"]),
        "checkpoint" if matches!(name, "prompt") => with(&["approval_required: true"]),
        "checkpoint" if matches!(name, "verify" | "decision" | "action") => Vec::new(),
        "checkpoint" if name == "resume_signal" => with(&["verify: { built: b }"]),
        "checkpoint" if name == "default" => with(&["verify: { built: b }", "blocking: false"]),
        "checkpoint" if name == "on_deadline" => with(&["prompt: x", "deadline: 2h"]),
        "checkpoint" => with(&["prompt: x"]),
        "option" => with(&["label: x", "on_select: { action: continue }"]),
        "on_select" if name == "phases" => with(&["action: skip_phases"]),
        "on_select" if name == "target" => with(&["action: repeat_phase"]),
        "on_select" => with(&["action: abort", "phases: b"]),
        "secret" if name == "env" => with(&["command:"]),
        "secret" => with(&["env:"]),
        other => panic!("no companion keys for {other}"),
    }
}

/// A directory in which every file is a small workflow.
struct SmallWorkflows;

impl Includes for SmallWorkflows {
    fn read(&mut self, _: &str) -> Result<Option<String>, IncludeError> {
        Ok(Some("name: small\nvars: { a: 1, 'b c': 2 }\nphases: [{ id: p }]\n".into()))
    }

    fn list(&mut self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

fn errors(text: &str) -> Vec<String> {
    let problems = read_with_includes(text, &mut SmallWorkflows).problems.into_iter();
    problems.filter(|problem| problem.severity == Severity::Error).map(|problem| problem.message).collect()
}

#[test]
fn the_schema_has_exactly_the_keys_that_the_checks_know() {
    let schema = schema();
    let properties =
        |schema: &Value| -> BTreeSet<String> { schema["properties"].as_object().expect("properties").keys().cloned().collect() };
    let mut names: BTreeSet<&str> = schema["$defs"].as_object().expect("definitions").keys().map(String::as_str).collect();
    names.insert("workflow");
    assert_eq!(names, formats().keys().copied().collect());
    for (name, format) in formats() {
        let part = if name == "workflow" { &schema } else { &schema["$defs"][name] };
        let known: BTreeSet<String> = format.names().map(str::to_owned).collect();
        assert_eq!(known.len(), format.known.len(), "{name} has a duplicate key");
        assert_eq!(properties(part), known, "{name}");
        assert_eq!(part["additionalProperties"], false, "{name}");
        assert!(format.later.iter().all(|later| !known.contains(*later)), "{name}");
        for key in format.known {
            assert!(key.about.ends_with('.'), "{name}.{}: {:?}", key.name, key.about);
        }
    }
}

#[test]
fn the_schema_and_the_checks_accept_the_same_values() {
    let validator = validator();
    let mut tried = 0;
    for (name, format) in formats() {
        for key in format.known {
            let (good, bad) = samples(key);
            for (sample, fits) in good.iter().map(|sample| (sample, true)).chain(bad.iter().map(|sample| (sample, false))) {
                let mut lines = includes(format, key.name);
                lines.push(format!("{}: {sample}", key.name));
                let text = file_around(name, &lines);
                let found = errors(&text);
                // If one key of an option or a secret is left out, the other one is reported as missing.
                let omitted =
                    sample.is_empty() && matches!((name, key.name), ("secret" | "on_deadline", _) | ("option", "on_select"));
                if omitted {
                    continue;
                }
                assert_eq!(found.is_empty(), fits, "the checks about {name}.{}: {found:?}\n{text}", key.name);
                assert_eq!(validator.is_valid(&value(&text)), fits, "the schema about {name}.{}\n{text}", key.name);
                tried += 1;
            }
        }
    }
    assert!(tried > 250, "{tried}");
}

#[test]
fn the_schema_and_the_checks_refuse_unknown_keys_and_keys_of_later_releases() {
    let validator = validator();
    for (name, format) in formats() {
        for unknown in format.later.iter().copied().chain(["nonsense"]) {
            let mut lines = includes(format, "");
            lines.push(format!("{unknown}: 1"));
            let text = file_around(name, &lines);
            assert!(!errors(&text).is_empty(), "{text}");
            assert!(!validator.is_valid(&value(&text)), "{text}");
        }
    }
}

#[test]
fn the_schema_and_the_checks_enforce_the_same_key_dependencies() {
    let validator = validator();
    for (name, line, fits) in [
        ("task", "id: t", false),
        ("task", "id: t, run: x", true),
        ("task", "id: t, run: x, pass: true", false),
        ("option", "label: CONTINUE", true),
        ("option", "label: ' abort '", true),
        ("option", "label: Something else", false),
        ("on_select", "action: skip_phases", false),
        ("on_select", "action: repeat_phase", true),
        ("secret", "", false),
        ("secret", "env: A", true),
    ] {
        let text = file_around(name, &[line.to_owned()]);
        assert_eq!(errors(&text).is_empty(), fits, "the checks: {text}");
        assert_eq!(validator.is_valid(&value(&text)), fits, "the schema: {text}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the examples are files, and a new one must not be forgotten")]
fn every_example_is_valid() {
    let validator = validator();
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).expect("the examples") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".yaml") && !name.ends_with(".test.yaml") {
            let text = std::fs::read_to_string(&path).expect("text");
            let problems: Vec<String> = validator.iter_errors(&value(&text)).map(|error| error.to_string()).collect();
            assert_eq!(problems, Vec::<String>::new(), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 5);
}

#[test]
fn the_schema_is_a_valid_json_schema() {
    assert!(jsonschema::meta::is_valid(&schema()));
    assert_eq!(schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
}
