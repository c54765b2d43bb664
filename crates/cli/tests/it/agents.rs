//! Agent tasks end to end, with fake agent programs.

use crate::project::{Output, Project, finish, signal, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Prints its prompt and its environment.
const PLAIN: &str = r#"#!/bin/sh
cat > "$LOCKGATE_OUTPUT_DIR/asked-$LOCKGATE_TASK-$LOCKGATE_ATTEMPT.txt"
printf '%s|' "$LOCKGATE_RUN" "$LOCKGATE_PHASE" "$LOCKGATE_TASK" "$LOCKGATE_ATTEMPT" "$LOCKGATE_FEEDBACK" > "$LOCKGATE_OUTPUT_DIR/knew.txt"
echo "the answer of $LOCKGATE_TASK"
"#;

/// Speaks the streaming protocol of a known program: prints its arguments, a session, tokens and a cost of 60 cents.
const KNOWN: &str = r#"#!/bin/sh
cat > /dev/null
echo "$@" >> arguments.txt
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m-1"}'
echo 'this line is garbage'
echo '{"type":"result","subtype":"success","is_error":false,"result":"all good","session_id":"s-1","total_cost_usd":0.6,"usage":{"input_tokens":100,"output_tokens":20}}'
"#;

fn project(flow: &str, programs: &[(&str, &str)]) -> Project {
    let project = Project::with(flow);
    for (name, text) in programs {
        program(&project, name, text);
    }
    project
}

fn program(project: &Project, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    project.write(name, text);
    std::fs::set_permissions(project.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn out(project: &Project, name: &str) -> String {
    project.read(&format!(".lockgate/runs/{}/out/{name}", project.newest()))
}

fn ended(output: &Output, code: i32) {
    assert_eq!(output.code, Some(code), "{}\n{}", output.stdout, output.stderr);
}

#[test]
fn an_agent_gets_its_prompt_and_its_text_becomes_the_file() {
    let flow = "
name: flow
phases:
  - id: review
    tasks:
      - { id: look, prompt: 'Look at {{feature.name}} for $(ann)', output_path: notes/look.md }
";
    let project = project(flow, &[("agent.sh", PLAIN)]);
    ended(&project.run(&["run", "flow.yaml", "login", "--agent", "./agent.sh"]), 0);
    let run = project.newest();
    assert_eq!(out(&project, "notes/look.md"), "the answer of look\n");
    let asked = out(&project, "asked-look-1.txt");
    assert!(asked.starts_with("Look at login for $(ann)\n") && asked.contains("notes/look.md"), "{asked}");
    assert_eq!(out(&project, "knew.txt"), format!("{run}|review|look|1||"));
    let context = &project.status(&run)["context"];
    assert_eq!(context["outputs"]["review"]["look"], "the answer of look\n");
    assert_eq!(context["deliverables"][0]["path"], "notes/look.md");
}

#[test]
fn a_file_that_the_agent_wrote_is_kept_and_empty_output_is_a_failure() {
    let flow = "
name: flow
phases:
  - id: work
    tasks: [{ id: write, prompt: go, output_path: result.txt }]
";
    let writes = "#!/bin/sh\ncat >/dev/null\necho mine > \"$LOCKGATE_OUTPUT_PATH\"\necho something else\n";
    let project = project(flow, &[("agent.sh", writes), ("silent.sh", "#!/bin/sh\ncat >/dev/null\n")]);
    ended(&project.run(&["run", "flow.yaml", "--agent", "./agent.sh"]), 0);
    assert_eq!(out(&project, "result.txt"), "mine\n");
    let output = project.run(&["run", "flow.yaml", "--agent", "./silent.sh"]);
    ended(&output, 1);
    assert!(output.stderr.contains("neither wrote result.txt nor replied"), "{}", output.stderr);
}

#[test]
fn usage_of_a_preset_agent_is_recorded_and_a_later_attempt_resumes_its_session() {
    let flow = "
name: flow
agents: { default: { preset: claude, command: ./claude.sh } }
phases:
  - id: work
    tasks: [{ id: think, prompt: go, session: resume }]
    checkpoint:
      prompt: Again?
      options:
        - { label: Redo, on_select: { action: repeat_phase, target: work } }
        - { label: Continue }
";
    let project = project(flow, &[("claude.sh", KNOWN)]);
    ended(&project.run(&["run", "flow.yaml", "--answer", "work=Redo", "--answer", "work=Continue"]), 0);
    let run = project.newest();
    let finished = project.events(&run, "task_finished");
    assert_eq!(
        finished[0]["agent"],
        json!({
            "agent": "default", "preset": "claude", "model": "m-1", "session": "s-1", "dir": "", "asks": 1,
            "command": finished[0]["agent"]["command"], "denied": [],
            "usage": {"cost_micros": 600_000, "input_tokens": 100, "output_tokens": 20},
        }),
        "{}",
        finished[0]
    );
    assert!(finished[0]["agent"]["command"].as_str().unwrap().starts_with("./claude.sh "), "{}", finished[0]);
    let arguments = project.read("arguments.txt");
    let (first, second) = arguments.trim_end().split_once('\n').unwrap();
    let started = project.events(&run, "task_started");
    let chosen = started[0]["session"]["id"].as_str().unwrap();
    assert!(first.contains(&format!("--session-id {chosen}")) && second.contains("--resume s-1"), "{arguments}");
    assert_eq!(started[1]["session"], json!({"id": "s-1", "resume": true}));
}

#[test]
fn usage_reported_for_a_whole_session_counts_once() {
    let flow = "
name: flow
agents: { default: { preset: codex, command: ./codex.sh } }
phases:
  - id: work
    behavior: sequential
    tasks: [{ id: one, prompt: go, session: same }, { id: two, prompt: go, session: same }]
";
    let codex = r#"#!/bin/sh
cat > /dev/null
echo x >> calls.txt
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"done"}}'
n=$(wc -l < calls.txt)
echo "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":$((n * 100)),\"cached_input_tokens\":0,\"output_tokens\":$((n * 10))}}"
"#;
    let project = project(flow, &[("codex.sh", codex)]);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    let finished = project.events(&project.newest(), "task_finished");
    let used: Vec<Value> = finished.iter().map(|event| event["agent"]["usage"]["input_tokens"].clone()).collect();
    assert_eq!(used, [json!(100), json!(100)], "{finished:?}");
}

#[test]
fn an_exhausted_budget_asks_before_more_is_spent() {
    let flow = "
name: flow
agents: { default: { preset: claude, command: ./claude.sh } }
budget: { max_cost: 1 }
phases:
  - id: work
    behavior: sequential
    tasks: [{ id: one, prompt: go }, { id: two, prompt: go }, { id: three, prompt: go }, { id: four, prompt: go }]
";
    let project = project(flow, &[("claude.sh", KNOWN)]);
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 3);
    assert!(output.stderr.contains("$1.20 of $1.00 spent"), "{}", output.stderr);
    let run = project.newest();
    assert_eq!(project.events(&run, "task_finished").len(), 2);
    assert_eq!(project.status(&run)["holds"][0]["kind"], "budget");
    let hold = project.waiting_hold();
    ended(&project.run(&["answer", &hold, "raise-budget", "--foreground"]), 0);
    assert_eq!(project.events(&run, "task_finished").len(), 4);
    assert_eq!(project.events(&run, "budget_raised").len(), 1);
}

#[test]
fn a_preset_agent_that_stops_at_its_limit_or_before_its_result_fails() {
    let flow = "
name: flow
agents: { default: { preset: claude, command: ./claude.sh } }
phases:
  - id: work
    tasks: [{ id: think, prompt: go, budget: { max_cost: 0.5 } }]
";
    let stops = r#"#!/bin/sh
cat > /dev/null
echo "$@" >> arguments.txt
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m-1"}'
echo '{"type":"result","subtype":"error_max_budget_usd","is_error":true,"session_id":"s-1","total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":1}}'
exit 1
"#;
    let project = project(flow, &[("claude.sh", stops)]);
    ended(&project.run(&["run", "flow.yaml"]), 3);
    let run = project.newest();
    assert_eq!(project.status(&run)["holds"][0]["kind"], "budget");
    let hold = project.waiting_hold();
    ended(&project.run(&["answer", &hold, "raise-budget", "--foreground"]), 3);
    let arguments = project.read("arguments.txt");
    assert!(arguments.lines().nth(1).unwrap().contains("--resume s-1"), "it resumes its session: {arguments}");
    let half = "#!/bin/sh\ncat >/dev/null\necho '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"half\"}]}}'\n";
    program(&project, "claude.sh", half);
    let output = project.run(&["run", "flow.yaml", "other"]);
    ended(&output, 1);
    assert!(output.stderr.contains("its output ended without a final result"), "{}", output.stderr);
}

#[test]
fn an_unknown_cost_is_not_zero() {
    let flow = "
name: flow
phases:
  - id: work
    budget: { max_cost: 100 }
    behavior: sequential
    tasks: [{ id: one, prompt: go }, { id: two, prompt: go }]
";
    let project = project(flow, &[("agent.sh", PLAIN)]);
    let output =
        project.run(&["run", "flow.yaml", "--agent", "./agent.sh", "--answer", "work/two=Raise the budget and continue"]);
    ended(&output, 0);
    assert!(output.stderr.contains("so that work/two can continue?"), "{}", output.stderr);
    let opened = project.events(&project.newest(), "hold_opened");
    assert_eq!(opened[0]["notes"], json!(["the cost of one attempt is unknown"]));
}

#[test]
fn an_agent_stops_at_its_time_budget_and_a_person_decides_whether_to_continue() {
    let flow = "
name: flow
phases:
  - id: work
    tasks: [{ id: long, prompt: go, budget: { max_minutes: 0.005 } }]
";
    let project = project(flow, &[("agent.sh", "#!/bin/sh\ncat >/dev/null\nsleep 60\n")]);
    let output = project.run(&["run", "flow.yaml", "--agent", "./agent.sh"]);
    ended(&output, 3);
    let run = project.newest();
    assert_eq!(project.events(&run, "task_failed").len(), 0, "{}", output.stderr);
    assert_eq!(project.status(&run)["holds"][0]["kind"], "budget");
    let hold = project.waiting_hold();
    ended(&project.run(&["answer", &hold, "Count as done", "--foreground"]), 0);
}

#[test]
fn a_reply_that_violates_its_schema_is_requested_again_with_the_error() {
    let flow = "
name: flow
phases:
  - id: work
    tasks:
      - id: judge
        prompt: Judge it
        output_path: verdict.json
        output_schema: { type: object, required: [verdict], properties: { verdict: { enum: [ship, stop] } } }
  - id: ship
    tasks: [{ id: go, when: \"context.outputs.work.judge.verdict === 'ship'\", run: touch shipped }]
";
    let learns = r#"#!/bin/sh
cat > "asked-$(ls | grep -c asked).txt"
case $(ls | grep -c asked) in 1) echo 'no idea';; 2) echo '{"verdict": "perhaps"}';; *) printf 'Here:\n```json\n{"verdict": "ship"}\n```\n';; esac
"#;
    let project = project(flow, &[("agent.sh", learns)]);
    ended(&project.run(&["run", "flow.yaml", "--agent", "./agent.sh"]), 0);
    assert!(project.path("shipped").exists());
    assert_eq!(serde_json::from_str::<Value>(&out(&project, "verdict.json")).unwrap(), json!({"verdict": "ship"}));
    assert!(project.read("asked-2.txt").contains("does not match the JSON Schema: /verdict"), "{}", project.read("asked-2.txt"));
    assert_eq!(project.events(&project.newest(), "task_finished")[0]["agent"]["asks"], 3);
    std::fs::remove_file(project.path("shipped")).unwrap();
    program(&project, "never.sh", "#!/bin/sh\ncat >/dev/null\necho no\n");
    let output = project.run(&["run", "flow.yaml", "--agent", "./never.sh"]);
    ended(&output, 1);
    assert!(output.stderr.contains("does not match `output_schema` after 3 asks: the answer is not JSON"), "{}", output.stderr);
}

#[test]
fn an_invalid_reply_is_not_reused_and_its_secrets_are_masked() {
    let flow = "
name: flow
phases:
  - id: work
    tasks:
      - { id: judge, prompt: go, secrets: [TOKEN], output_path: verdict.json, output_schema: { type: object }, max_asks: 2 }
";
    // First it writes an invalid file, then it replies with valid JSON.
    let learns = "#!/bin/sh\ncat >/dev/null\nif [ -e asked ]; then echo '{}'; else touch asked; echo \"\\\"$TOKEN\\\"\" > \"$LOCKGATE_OUTPUT_PATH\"; fi\n";
    let never = "#!/bin/sh\ncat >/dev/null\necho \"\\\"$TOKEN\\\"\" > \"$LOCKGATE_OUTPUT_PATH\"\n";
    let project = project(flow, &[("learns.sh", learns), ("never.sh", never)]);
    let run = |agent: &str| {
        let mut command = project.command(&["run", "flow.yaml", "--agent", agent]);
        command.env("TOKEN", "hunter2-hunter2");
        crate::project::finish(command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap())
    };
    ended(&run("./learns.sh"), 0);
    assert_eq!(out(&project, "verdict.json"), "{}\n");
    let output = run("./never.sh");
    ended(&output, 1);
    let log = project.run(&["log", &project.newest(), "--json"]).stdout;
    assert!(!output.stderr.contains("hunter2") && !log.contains("hunter2"), "{}\n{log}", output.stderr);
}

#[test]
fn an_output_path_cannot_escape_the_output_directory_through_a_symlink() {
    let flow = "
name: flow
output_dir: out
phases:
  - id: work
    tasks: [{ id: write, prompt: go, output_path: link/deep/result.txt }]
";
    let project = project(flow, &[("agent.sh", PLAIN)]);
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(project.path("out")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), project.path("out/link")).unwrap();
    ended(&project.run(&["run", "flow.yaml", "--agent", "./agent.sh"]), 1);
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0, "nothing is created outside");
}

#[test]
fn a_missing_preset_or_schema_is_reported_before_anything_runs() {
    let project = project(
        "name: x\nagents: { default: { preset: cluade } }\nphases: [{ id: a, tasks: [{ id: t, prompt: p, output_schema: { type: 3 } }] }]\n",
        &[],
    );
    let output = project.run(&["validate", "flow.yaml"]);
    ended(&output, 4);
    for reported in ["there is no preset `cluade`", "did you mean `claude`?", "`output_schema` is not a valid JSON Schema"] {
        assert!(output.stderr.contains(reported), "{reported}: {}", output.stderr);
    }
}

#[test]
fn a_run_without_a_configured_agent_does_not_start() {
    let project = project("name: flow\nphases: [{ id: a, subagents: [{ type: scout }] }]\n", &[]);
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 4);
    assert!(output.stderr.contains("error[agent-not-configured]: task a/scout needs an agent"), "{}", output.stderr);
    assert!(output.stderr.contains("--agent"), "{}", output.stderr);
    project
        .write(".lockgate/config.yaml", "people: { require_terminal: false }\nagents: { scout: 'cat >/dev/null; echo found' }\n");
    ended(&project.run(&["run", "flow.yaml"]), 0);
}

#[test]
fn an_agent_that_hangs_floods_or_reports_an_error_is_stopped_and_reported() {
    let flow = "
name: flow
phases:
  - id: work
    tasks: [{ id: odd, prompt: go, idle_timeout: 300ms }]
";
    let hangs = "#!/bin/sh\ntrap '' TERM\ncat >/dev/null\nprintf '\\033[2Jdrawing'\nsleep 60 &\nsleep 60\n";
    let floods = "#!/bin/sh\ncat >/dev/null\nhead -c 30000000 /dev/zero | tr '\\0' 'x'\necho\n";
    let fails = "#!/bin/sh\ncat >/dev/null\necho '{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"result\":\"no credit\"}'\n";
    let project = project(flow, &[("hangs.sh", hangs), ("floods.sh", floods), ("fails.sh", fails)]);
    let output = project.run(&["run", "flow.yaml", "--agent", "./hangs.sh"]);
    ended(&output, 1);
    assert!(output.stderr.contains("it printed nothing for 0.3 s") && !output.stderr.contains('\u{1b}'), "{}", output.stderr);
    ended(&project.run(&["run", "flow.yaml", "--agent", "./floods.sh"]), 0);
    project.write("flow.yaml", format!("agents: {{ default: {{ preset: claude, command: ./fails.sh }} }}{flow}"));
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 1);
    assert!(output.stderr.contains("no credit"), "{}", output.stderr);
}

#[test]
fn an_agent_cannot_answer_its_own_hold() {
    let flow = "
name: flow
phases:
  - id: plan
    checkpoint: { approval_required: true }
    tasks: [{ id: note, prompt: go }]
";
    let program = crate::project::program().display().to_string();
    let tries = format!(
        "#!/bin/sh\ncat >/dev/null\nhold=$(cat hold)\n{program} answer \"$hold\" Continue 2>&1\necho \"ended with $?\"\n"
    );
    let project = project(flow, &[("agent.sh", &tries)]);
    project.write("hold", "nothing");
    ended(&project.run(&["run", "flow.yaml", "--agent", "./agent.sh"]), 3);
    let hold = project.waiting_hold();
    project.write("hold", &hold);
    let output = project.run(&["run", "flow.yaml", "other", "--agent", "./agent.sh"]);
    ended(&output, 3);
    let first = project.json(0, &["runs", "--json"]);
    let waiting: Vec<&Value> = first.as_array().unwrap().iter().filter(|run| run["status"] == "waiting").collect();
    assert_eq!(waiting.len(), 2, "{first}");
    let refused = waiting.iter().flat_map(|run| project.events(run["run"].as_str().unwrap(), "attempt_refused")).count();
    assert_eq!(refused, 2, "both attempts are recorded, also the one about a hold that does not exist");
}

#[test]
fn doctor_checks_whether_the_configured_agents_can_be_started() {
    let project = project("name: flow\nphases: [{ id: a, tasks: [{ id: t, pass: true }] }]\n", &[("here.sh", PLAIN)]);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    project.write(
        ".lockgate/config.yaml",
        "people: { require_terminal: false }\nagents: { default: ./here.sh --fast, other: { command: no-such-agent } }\n",
    );
    let output = project.run(&["doctor"]);
    ended(&output, 1);
    assert!(output.stdout.contains("agent \"default\" is `./here.sh`"), "{}", output.stdout);
    assert!(output.stdout.contains("agent \"other\": `no-such-agent` is not found"), "{}", output.stdout);
}

#[test]
fn the_prompt_mentions_an_interrupted_attempt_only_if_there_was_one() {
    let flow = "
name: flow
phases:
  - id: work
    behavior: sequential
    tasks:
      - { id: first, prompt: Build it }
      - { id: second, prompt: Ship it }
";
    let slow = r#"#!/bin/sh
cat > "asked-$LOCKGATE_TASK-$LOCKGATE_ATTEMPT"
if [ "$LOCKGATE_ATTEMPT" = 1 ] && [ "$LOCKGATE_TASK" = first ]; then touch at-work; sleep 600; fi
echo done
"#;
    let project = project(flow, &[("agent.sh", slow)]);
    let child = project.start(&["run", "flow.yaml", "--agent", "./agent.sh"]);
    until("the start of the agent", || project.path("at-work").exists());
    signal(&child, Signal::KILL);
    finish(child);
    ended(&project.run(&["resume", &project.newest(), "--rerun"]), 0);
    let reported =
        |task: &str, attempt: u32| project.read(&format!("asked-{task}-{attempt}")).contains("was cut off before it ended");
    assert_eq!([reported("first", 1), reported("first", 2), reported("second", 1)], [false, true, false]);
}

/// Prints its arguments. The first attempt reports its session, unless the file `unnamed` exists, and never ends.
const SLOW_CODEX: &str = r#"#!/bin/sh
cat > /dev/null
echo "$LOCKGATE_ATTEMPT $*" >> arguments.txt
if [ "$LOCKGATE_ATTEMPT" = 1 ] && [ -e unnamed ]; then touch at-work; sleep 600; fi
echo '{"type":"thread.started","thread_id":"t-1"}'
if [ "$LOCKGATE_ATTEMPT" = 1 ]; then touch at-work; sleep 600; fi
if [ "$LOCKGATE_ATTEMPT" = 2 ] && [ -e unnamed ]; then exit 1; fi
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
"#;

fn killed_at_work(project: &Project) -> String {
    let child = project.start(&["run", "flow.yaml"]);
    until("the start of the agent", || project.path("at-work").exists());
    if !project.path("unnamed").exists() {
        until("its session is recorded", || project.events(&project.newest(), "session_named").len() == 1);
    }
    signal(&child, Signal::KILL);
    finish(child);
    project.newest()
}

const RESUMED: &str = "
name: flow
agents: { default: { preset: codex, command: ./codex.sh } }
phases: [{ id: work, tasks: [{ id: one, prompt: go, session: resume, retry: 1 }] }]
";

#[test]
fn a_session_reported_before_the_process_was_killed_is_resumed() {
    let project = project(RESUMED, &[("codex.sh", SLOW_CODEX)]);
    let run = killed_at_work(&project);
    let named = project.events(&run, "session_named");
    assert_eq!((&named[0]["session"], &named[0]["attempt"]), (&json!("t-1"), &json!(1)), "{named:?}");
    ended(&project.run(&["resume", &run, "--rerun"]), 0);
    assert!(project.read("arguments.txt").contains("2 exec --json resume t-1"), "{}", project.read("arguments.txt"));
}

#[test]
fn a_session_that_was_never_reported_is_not_resumed() {
    let project = project(RESUMED, &[("codex.sh", SLOW_CODEX)]);
    project.write("unnamed", "");
    let run = killed_at_work(&project);
    ended(&project.run(&["resume", &run, "--rerun"]), 1);
    ended(&project.run(&["resume", &run]), 0);
    let arguments = project.read("arguments.txt");
    let attempts: Vec<&str> = arguments.lines().collect();
    assert!(!attempts[1].contains("resume"), "no session was reported: {arguments}");
    assert!(attempts[2].contains("resume t-1"), "the second attempt named one: {arguments}");
}

#[test]
fn denied_tools_of_an_agent_are_reported() {
    let denied = r#"#!/bin/sh
cat > /dev/null
echo '{"type":"result","subtype":"success","is_error":false,"result":"I could not","session_id":"s-1","permission_denials":[{"tool_name":"Write"}]}'
"#;
    let flow = "
name: flow
agents: { default: { preset: claude, command: ./claude.sh } }
phases: [{ id: work, tasks: [{ id: one, prompt: go }] }]
";
    let project = project(flow, &[("claude.sh", denied)]);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    let summary = project.run(&["summary", &project.newest()]);
    assert!(summary.stdout.contains("the agent of work/one was not permitted to use Write"), "{}", summary.stdout);
}

#[test]
fn another_agent_can_finish_the_remaining_work_and_the_history_records_it() {
    let flow = "
name: flow
phases: [{ id: work, behavior: sequential, tasks: [{ id: one, prompt: go }, { id: two, prompt: go }] }]
";
    let project = project(flow, &[("agent.sh", PLAIN), ("fails.sh", "#!/bin/sh\ncat >/dev/null\nexit 1\n")]);
    ended(&project.run(&["run", "flow.yaml", "--agent", "./fails.sh"]), 1);
    let run = project.newest();
    ended(&project.run(&["resume", &run, "--agent", "./agent.sh"]), 0);
    let changed = project.events(&run, "agent_changed");
    assert_eq!((changed.len(), &changed[0]["agent"]), (1, &json!("./agent.sh")), "{changed:?}");
    assert_eq!(changed[0]["actor"]["credential"], "person");
    let worked: Vec<Value> = project.events(&run, "task_finished").iter().map(|event| event["agent"]["agent"].clone()).collect();
    assert_eq!(worked, ["./agent.sh", "./agent.sh"]);
    let log = project.run(&["log", &run]).stdout;
    assert!(log.contains("the agent is now ./agent.sh, regardless of the configuration"), "{log}");
}

#[test]
fn a_task_cannot_choose_another_agent_for_its_run() {
    let flow = "name: flow\nphases: [{ id: work, tasks: [{ id: one, prompt: go }] }]\n";
    let program = crate::project::program().display().to_string();
    let tries =
        format!("#!/bin/sh\ncat >/dev/null\n{program} resume \"$LOCKGATE_RUN\" --agent ./mine.sh 2>&1\necho \"ended with $?\"\n");
    let project = project(flow, &[("agent.sh", &tries)]);
    ended(&project.run(&["run", "flow.yaml", "--agent", "./agent.sh"]), 0);
    let run = project.newest();
    assert_eq!(project.events(&run, "agent_changed"), Vec::<Value>::new());
    assert_eq!(project.events(&run, "attempt_refused").len(), 1);
}

#[test]
fn only_an_agent_that_reports_missing_authentication_itself_opens_an_auth_gate() {
    let flow = "
name: flow
agents: { default: { preset: codex, command: ./codex.sh } }
phases: [{ id: work, tasks: [{ id: one, prompt: go }] }]
";
    let fails = |message: &str| {
        format!(
            "#!/bin/sh\ncat >/dev/null\necho 'Error: 401 Unauthorized, please log in' >&2\n\
             echo '{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{message}\"}}}}'\nexit 1\n"
        )
    };
    let project = project(flow, &[("codex.sh", &fails("stream disconnected"))]);
    ended(&project.run(&["run", "flow.yaml"]), 1);
    program(&project, "codex.sh", &fails("unexpected status 401 Unauthorized: no such key"));
    let output = project.run(&["run", "flow.yaml", "other"]);
    ended(&output, 3);
    for part in ["Authentication Required", "unexpected status 401", "Run: codex login"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
}

#[test]
fn validate_warns_about_missing_capabilities_of_the_configured_agents() {
    let flow = "
name: flow
phases: [{ id: work, tasks: [{ id: one, prompt: go, session: same }, { id: two, agent: denier, prompt: go, tools: { deny: [Write] } }] }]
";
    let project = project(flow, &[("agent.sh", PLAIN)]);
    let settings =
        "people: { require_terminal: false }\nagents: { default: ./agent.sh, denier: { preset: codex, command: ./agent.sh } }\n";
    project.write(".lockgate/config.yaml", settings);
    let output = project.run(&["validate", "flow.yaml"]);
    ended(&output, 0);
    for reported in [
        "`session: same` has no effect: the command `./agent.sh` cannot continue a session",
        "the preset `codex` cannot deny tools, so the task fails when it starts",
    ] {
        assert!(output.stderr.contains(reported), "{reported}: {}", output.stderr);
    }
}
