//! Output of `--json` matches `docs/reference/json.schema.json` key by key: undocumented keys fail.

use crate::project::{Output, Project};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

static DOCUMENTED: LazyLock<Value> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
});

/// Panics if the JSON of a command matches neither its documented schema nor that of an error.
pub(crate) fn check(arguments: &[&str], output: &Output) {
    let ours: Vec<&str> = arguments.iter().copied().take_while(|word| *word != "--").collect();
    if !ours.contains(&"--json") || output.code.is_none() {
        return;
    }
    let Some(shape) = command(&ours).map(|name| &DOCUMENTED["properties"][name]) else {
        assert!(
            output.stdout.is_empty() || output.stdout.starts_with("{\"error\":"),
            "{arguments:?} is not documented: {output:?}"
        );
        return;
    };
    let by_lines = shape.get("x-lines").is_some();
    let pieces: Vec<&str> = if by_lines { output.stdout.lines().collect() } else { vec![output.stdout.as_str()] };
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        let value: Value = serde_json::from_str(piece).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"));
        let error = &DOCUMENTED["$defs"]["error"];
        let shape = if value.get("error").is_some_and(|error| error.get("exit").is_some()) { error } else { shape };
        if let Err(problem) = fits(&value, shape, "") {
            panic!("{arguments:?} prints undocumented JSON: {problem}: {value:#}");
        }
    }
}

/// The command in a list of arguments, as the schema names it: a nested one with the command above it.
fn command(arguments: &[&str]) -> Option<String> {
    let documented = |name: &String| DOCUMENTED["properties"].get(name).is_some();
    let nested = arguments.windows(2).map(|words| words.join(" ")).find(documented);
    nested.or_else(|| arguments.iter().map(|word| (*word).to_owned()).find(documented))
}

/// Panics if a delivered notice does not match its documented schema.
pub(crate) fn check_notice(notice: &Value) {
    if let Err(problem) = fits(notice, &DOCUMENTED["$defs"]["notice"], "") {
        panic!("a notice is undocumented JSON: {problem}: {notice:#}");
    }
}

/// Checks a value against a schema. The error names the position.
fn fits(value: &Value, shape: &Value, place: &str) -> Result<(), String> {
    if let Some(name) = shape["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").unwrap();
        return fits(value, DOCUMENTED["$defs"].get(name).unwrap_or_else(|| panic!("no shape {name}")), place);
    }
    if let Some(either) = shape["anyOf"].as_array() {
        let tried: Vec<Result<(), String>> = either.iter().map(|shape| fits(value, shape, place)).collect();
        return if tried.iter().any(Result::is_ok) { Ok(()) } else { Err(format!("{tried:?}")) };
    }
    if let Some(words) = shape["enum"].as_array() {
        return if words.contains(value) { Ok(()) } else { Err(format!("{place}: {value} is not one of {words:?}")) };
    }
    let kinds: Vec<&str> = match &shape["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !kinds.contains(&kind) {
        return Err(format!("{place}: {value} is not a {kinds:?}"));
    }
    if shape["format"] == "date-time" && !value.as_str().is_some_and(|text| text.len() == 24 && text.ends_with('Z')) {
        return Err(format!("{place}: {value} is not a timestamp"));
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        fits(item, &shape["items"], &format!("{place}[{at}]"))?;
    }
    let Some(known) = shape["properties"].as_object() else { return Ok(()) };
    let fields = value.as_object().unwrap();
    if let Some(name) =
        shape["required"].as_array().into_iter().flatten().find(|name| !fields.contains_key(name.as_str().unwrap()))
    {
        return Err(format!("{place} lacks {name}"));
    }
    for (name, value) in fields {
        let shape = known.get(name).ok_or_else(|| format!("{place}.{name}"))?;
        fits(value, shape, &format!("{place}.{name}"))?;
    }
    Ok(())
}

const FLOW: &str = "\
name: shapes
phases:
  - id: work
    tasks:
      - { id: broken, run: 'echo working; test -e fixed', on_fail: ask }
      - { id: fine, run: 'echo fine > $LOCKGATE_OUTPUT_DIR/report.md', outputs: report.md }
    gates: [{ id: gate, run: 'true' }]
    checkpoint:
      prompt: Good?
      show_files: report.md
";

#[test]
fn every_command_prints_its_documented_shape() {
    // A backup can only be restored to SQLite.
    let project = Project::on_sqlite();
    project.write("flow.yaml", FLOW);
    let mut reported = BTreeSet::new();
    let mut run = |code: i32, arguments: &[&str]| {
        reported.extend(command(arguments));
        let output = project.run(arguments);
        assert_eq!(output.code, Some(code), "{arguments:?}: {output:?}");
        assert!(!output.stdout.is_empty(), "{arguments:?}: {output:?}");
        output
    };
    run(0, &["init", "--json"]);
    run(0, &["explain", "--json"]);
    run(0, &["explain", "invalid-yaml", "--json"]);
    run(3, &["run", "flow.yaml", "shape", "--json"]);
    run(0, &["status", "shape", "--json"]);
    run(0, &["summary", "shape", "--json"]);
    run(0, &["worktrees", "--json"]);
    run(0, &["why", "shape", "--json"]);
    run(0, &["inbox", "--json"]);
    run(0, &["runs", "--json"]);
    run(0, &["config", "show", "--json"]);
    run(0, &["log", "shape", "--json"]);
    run(0, &["logs", "shape", "broken", "--json"]);
    run(3, &["wait", "shape", "--json"]);
    run(0, &["retry", "shape", "broken", "--json", "--no-resume"]);
    run(3, &["resume", "shape", "--json"]);
    run(0, &["skip", "shape", "broken", "--reason", "later", "--json", "--no-resume"]);
    run(3, &["resume", "shape", "--json"]);
    let hold = project.waiting_hold();
    run(0, &["answer", &hold, "Continue", "--json", "--no-resume"]);
    run(0, &["answer", &hold, "Continue", "--foreground", "--json"]);
    run(4, &["resume", "shape", "--json"]);
    run(0, &["log", &project.newest(), "--json"]);
    run(0, &["graph", "flow.yaml", "--json"]);
    run(0, &["graph", &project.newest(), "--json"]);
    run(0, &["watch", &project.newest(), "--json"]);
    project.write("bad.yaml", "name: bad\nphases: []\ntaks: 1\n");
    run(4, &["validate", "flow.yaml", "bad.yaml", "missing.yaml", "--json"]);
    project.write("PRD-001.json", "{}");
    run(1, &["pipeline", "check", "PRD-001.json", "--json"]);
    run(4, &["pipeline", "check", "PRD-001.json", "missing.json", "--json"]);
    run(0, &["run", "flow.yaml", "--dry-run", "--json"]);
    project.write("flow.test.yaml", "workflow: flow.yaml\ncases: [{ expect: { path: [other] } }]\n");
    run(1, &["test", "flow.test.yaml", "--json"]);
    run(4, &["test", "flow.test.yaml", "missing.yaml", "--json"]);
    project.write("spec.md", crate::pipelines::SPEC);
    run(3, &["run", "spec.md", "--json"]);
    run(0, &["pipeline", "note", "PRD-009", "--cleanup", "swept", "--json"]);
    project.write(
        "PRD-050.json",
        r#"{"prd": "PRD-050", "status": "paused", "completed_workstreams": ["WS1"], "pending_workstreams": []}"#,
    );
    run(0, &["pipeline", "import", "PRD-050.json", "--json"]);
    project.write("reviewed.md", crate::pipelines::SPEC.replace("PRD-009", "PRD-010"));
    run(3, &["run", "reviewed.md", "--review", "--json"]);
    run(0, &["pipeline", "review", "PRD-010", "--verdict", "ship", "--p0", "0", "--p1", "0", "--json"]);
    run(0, &["tick", "--json"]);
    run(0, &["cancel", "PRD-010", "--reason", "replaced by a hotfix", "--json"]);
    run(0, &["status", "PRD-010", "--json"]);
    run(0, &["summary", "PRD-010", "--json"]);
    project.write(
        "default.yaml",
        "name: d\nphases: [{ id: a, checkpoint: { prompt: Good?, blocking: false } }, { id: b, checkpoint: { prompt: x } }]\n",
    );
    run(3, &["run", "default.yaml", "--json"]);
    let answered = project.events(&project.newest(), "answered")[0]["hold"].as_str().unwrap().to_owned();
    run(0, &["change", &answered, "Abort", "--yes", "--json"]);
    project.write(
        "team.yaml",
        "name: t\nteam: { members: { ana: { role: lead }, bob: {} } }\nphases: [{ id: a, checkpoint: { prompt: x } }]\n",
    );
    run(3, &["run", "team.yaml", "together", "--json"]);
    let id_of = |output: &Output| serde_json::from_str::<Value>(&output.stdout).unwrap()["id"].as_str().unwrap().to_owned();
    let message = id_of(&run(0, &["message", "send", "--to", "ana", "--summary", "hello", "--run", "together", "--json"]));
    run(0, &["message", "list", "together", "--json"]);
    run(0, &["message", "show", &message, "--run", "together", "--json"]);
    run(4, &["message", "ack", &message, "--run", "together", "--json"]);
    let members = ["--with", "ana", "--with", "bob", "--run", "together", "--json"];
    let conflict = id_of(&run(0, &[&["conflict", "open", "Which?"][..], &members].concat()));
    run(0, &["conflict", "list", "together", "--json"]);
    run(0, &["conflict", "show", &conflict, "--run", "together", "--json"]);
    run(4, &["conflict", "vote", &conflict, "--choice", "one", "--run", "together", "--json"]);
    run(0, &["knowledge", "add", "--type", "pattern", "--content", "retry later", "--tag", "api", "--json"]);
    run(0, &["knowledge", "list", "--json"]);
    run(0, &["knowledge", "show", "KE-pattern", "--json"]);
    run(0, &["team", "together", "--json"]);
    run(0, &["log", "together", "--json"]);
    let taken = id_of(&run(0, &["snapshots", "create", "together", "--json"]));
    run(0, &["snapshots", "list", "together", "--json"]);
    run(0, &["snapshots", "show", &taken, "--json"]);
    run(0, &["snapshots", "verify", "together", "--json"]);
    let together = project.newest();
    run(0, &["snapshots", "prune", &together, "--dry-run", "--json"]);
    // The run exists, so nothing is recovered.
    run(1, &["recover", ".lockgate/runs", "--json"]);
    // A run that a task detaches waits for a worker.
    project.write(
        "outer.yaml",
        "name: o\nphases: [{ id: a, tasks: [{ id: t, run: '\"$LOCKGATE\" run failing.yaml --detach' }] }]\n",
    );
    project.write("failing.yaml", "name: f\nphases: [{ id: a, tasks: [{ id: t, run: exit 3 }] }]\n");
    run(0, &["run", "outer.yaml", "--json"]);
    run(0, &["worker", "--json"]);
    run(0, &["db", "verify", "--json"]);
    run(0, &["db", "verify", &project.newest(), "--json"]);
    let finished = run(0, &["runs", "--status", "finished", "--json"]).stdout;
    let finished: Vec<Value> = serde_json::from_str(&finished).unwrap();
    run(0, &["runs", "rm", finished[0]["run"].as_str().unwrap(), "--dry-run", "--json"]);
    run(0, &["db", "gc", "--dry-run", "--json"]);
    run(0, &["db", "gc", "--json"]);
    run(0, &["db", "backup", "copy.db", "--json"]);
    run(0, &["db", "restore", "copy.db", "--force", "--json"]);
    let doctor = project.run(&["doctor", "--json"]);
    assert!(doctor.stdout.starts_with('{'), "{doctor:?}");
    reported.insert("doctor".to_owned());
    let documented: BTreeSet<String> = DOCUMENTED["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(reported, documented);
}

#[test]
fn every_documented_example_matches_its_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json.examples.json");
    let examples: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (name, shape) in DOCUMENTED["$defs"].as_object().unwrap() {
        assert_eq!(fits(&examples["shapes"][name], shape, ""), Ok(()), "{name}");
    }
    for (name, shape) in DOCUMENTED["properties"].as_object().unwrap() {
        let Some(output) = examples["commands"][name].get("output") else { continue };
        let values = match output.as_array() {
            Some(lines) if shape.get("x-lines").is_some() => lines.iter().collect(),
            _ => vec![output],
        };
        for value in values {
            assert_eq!(fits(value, shape, ""), Ok(()), "{name}");
        }
    }
}

#[test]
fn an_undocumented_key_does_not_match_the_schema() {
    let shape = &DOCUMENTED["$defs"]["values"];
    assert_eq!(fits(&serde_json::json!({"count": 1, "bytes": 2}), shape, ""), Ok(()));
    for wrong in [
        serde_json::json!({"count": 1, "bytes": 2, "more": 3}),
        serde_json::json!({"count": 1}),
        serde_json::json!({"count": "1", "bytes": 2}),
    ] {
        assert!(fits(&wrong, shape, "").is_err(), "{wrong}");
    }
}
