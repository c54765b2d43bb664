//! Messages, conflicts and knowledge of agents: real runs whose tasks call `lockgate`.

use crate::project::{Output, Project};
use serde_json::{Value, json};

fn ended(output: &Output, code: i32) {
    assert_eq!(output.code, Some(code), "{}\n{}", output.stdout, output.stderr);
}

fn json_of(project: &Project, arguments: &[&str]) -> Value {
    let output = project.run(arguments);
    ended(&output, 0);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.stdout))
}

fn out(project: &Project, name: &str) -> String {
    project.read(&format!(".lockgate/runs/{}/out/{name}", project.newest()))
}

/// An agent that keeps its prompt, and then does what the file `NAME.sh` of its task says.
const AGENT: &str = r#"cat > "$LOCKGATE_OUTPUT_DIR/asked-$LOCKGATE_TASK-$LOCKGATE_ATTEMPT.txt"
echo "$0" >> "$LOCKGATE_OUTPUT_DIR/agents.txt"
[ ! -e "$LOCKGATE_TASK.sh" ] || . "./$LOCKGATE_TASK.sh"
echo done"#;

fn project(flow: &str, tasks: &[(&str, &str)]) -> Project {
    let project = Project::with(flow);
    project.script("ana.sh", AGENT);
    project.script("bob.sh", AGENT);
    for (task, script) in tasks {
        project.write(&format!("{task}.sh"), script);
    }
    project
}

const PAIR: &str = "
name: pair
agents: { ana: ./ana.sh, bob: ./bob.sh }
phases:
  - id: work
    tasks:
      - { id: plan, agent: ana, prompt: Plan it. }
      - { id: build, agent: bob, prompt: Build it., needs: [plan] }
";

#[test]
fn a_message_from_a_task_enters_the_prompt_of_its_recipient() {
    let send = r#""$LOCKGATE" message send --to bob --summary 'use port 8080' --payload '{"port": 8080}' --priority HIGH"#;
    let project = project(PAIR, &[("plan", send)]);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    let prompt = out(&project, "asked-build-1.txt");
    assert!(prompt.starts_with("Build it.\n") && prompt.contains("REQUEST from ana (HIGH): use port 8080"), "{prompt}");
    assert!(prompt.contains(r#"{"port":8080}"#), "{prompt}");
    let messages = json_of(&project, &["message", "list", "--json"]);
    assert_eq!(messages[0]["from"], "ana");
    assert_eq!((&messages[0]["task"], &messages[0]["pending"]), (&json!("work/plan"), &json!(false)));
    assert_eq!(messages[0]["acknowledged_by"], json!(["bob"]), "the attempt succeeded");
    let id = messages[0]["id"].as_str().unwrap();
    assert_eq!(json_of(&project, &["message", "show", id, "--json"]), messages[0]);
}

#[test]
fn a_task_cannot_forge_its_sender() {
    let forge = r#"export LOCKGATE_TASK=build LOCKGATE_PHASE=work LOCKGATE_ATTEMPT=1
LOCKGATE_JOB="$(dirname "$LOCKGATE_JOB")/other.lock" "$LOCKGATE" message send --type BROADCAST --summary 'as another task'
env -i PATH="$PATH" "$LOCKGATE" --root "$PWD" message send --type BROADCAST --summary 'without an environment' --run "$LOCKGATE_RUN""#;
    let project = project(PAIR, &[("plan", forge)]);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    let messages = json_of(&project, &["message", "list", "--json"]);
    let senders: Vec<&Value> = messages.as_array().unwrap().iter().map(|message| &message["from"]).collect();
    assert_eq!(senders, ["ana", "ana"], "{messages}");
}

#[test]
fn a_task_of_another_run_does_not_speak_for_a_task_of_this_one() {
    let project = project(PAIR, &[]);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    let first = project.newest();
    project.write("plan.sh", format!("\"$LOCKGATE\" message send --to bob --summary hello --run {first} > said 2>&1 || true\n"));
    ended(&project.run(&["run", "flow.yaml"]), 0);
    assert!(project.read("said").contains("error["), "{}", project.read("said"));
    assert_eq!(json_of(&project, &["message", "list", &first, "--json"]), json!([]));
}

#[test]
fn a_handoff_continues_the_task_with_the_other_agent() {
    let hand_off =
        r#"[ "$LOCKGATE_ATTEMPT" != 1 ] || "$LOCKGATE" message send --type HANDOFF --to bob --summary 'this is your field'"#;
    let project = project(PAIR, &[("plan", hand_off)]);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    let agents = out(&project, "agents.txt");
    let agents: Vec<&str> = agents.lines().map(|line| line.trim_start_matches("./")).collect();
    assert_eq!(agents, ["ana.sh", "bob.sh", "bob.sh"]);
    let prompt = out(&project, "asked-plan-2.txt");
    assert!(prompt.contains("HANDOFF from ana (NORMAL): this is your field"), "{prompt}");
}

#[test]
fn an_escalation_waits_for_a_person_and_the_answer_comes_back() {
    let ask = r#""$LOCKGATE" message send --type ESCALATE --summary 'Which region?' --option eu --option us
hold=$("$LOCKGATE" inbox --json | grep -o '"id": "[a-z0-9]*"' | head -n 1 | cut -d '"' -f 4)
"$LOCKGATE" answer "$hold" eu > said 2>&1; echo "code $?" >> said"#;
    let project = project(PAIR, &[("plan", ask)]);
    ended(&project.run(&["run", "flow.yaml"]), 3);
    assert!(project.read("said").contains("code 3"), "an agent cannot answer: {}", project.read("said"));
    let hold = project.waiting_hold();
    ended(&project.run(&["answer", &hold, "us", "--foreground"]), 0);
    let messages = json_of(&project, &["message", "list", "--json"]);
    assert_eq!(
        (&messages[1]["type"], &messages[1]["to"], &messages[1]["summary"]),
        (&json!("RESPONSE"), &json!("ana"), &json!("us"))
    );
    assert_eq!(messages[1]["correlation_id"], messages[0]["id"]);
}

#[test]
fn agents_settle_a_conflict_by_weighted_votes() {
    let flow = "
name: vote
team:
  members:
    sec: { role: supervisor, domains: { security: 0.5 } }
    ux: { weight: 0.8 }
phases:
  - id: work
    tasks:
      - { id: sec, run: 'sh sec.sh' }
      - { id: ux, run: 'sh ux.sh' }
";
    let project = project(
        flow,
        &[
            (
                "sec",
                r#""$LOCKGATE" conflict open 'Keep users signed in?' --with ux --domain security > id.tmp && mv id.tmp id
"$LOCKGATE" conflict vote "$(cat id)" --choice no --confidence 95
while [ ! -e voted ]; do sleep 0.1; done"#,
            ),
            (
                "ux",
                r#"while [ ! -e id ]; do sleep 0.1; done
"$LOCKGATE" conflict vote "$(cat id)" --choice yes --confidence 80 --relevance 0.6
"$LOCKGATE" conflict vote "$(cat id)" --choice yes > said 2>&1 || true
touch voted"#,
            ),
        ],
    );
    ended(&project.run(&["run", "flow.yaml"]), 0);
    let conflicts = json_of(&project, &["conflict", "list", "--json"]);
    let resolution = &conflicts[0]["resolution"];
    assert_eq!((&resolution["choice"], &resolution["by"]), (&json!("no"), &json!("score")), "{conflicts}");
    let score = |at: usize| (resolution["scores"][at]["score"].as_f64().unwrap() * 1000.0).round();
    assert_eq!((score(0), score(1)), (1425.0, 384.0));
    assert_eq!(resolution["dissent"][0]["agent"], "ux");
    assert!(project.read("said").contains("conflict-rejected"), "{}", project.read("said"));
    let members = json_of(&project, &["team", "--json"]);
    assert_eq!(
        (&members[0]["agent"], &members[0]["role"], &members[0]["status"]),
        (&json!("sec"), &json!("supervisor"), &json!("done"))
    );
    assert_eq!(members[0]["completed"], json!(["work/sec"]));
    let outside = project.run(&["conflict", "vote", conflicts[0]["id"].as_str().unwrap(), "--choice", "yes"]);
    ended(&outside, 4);
}

#[test]
fn captured_knowledge_enters_the_prompts_of_a_later_run_once() {
    let capture = r#""$LOCKGATE" knowledge add --type decision --content '{"title": "use SQLite"}' --tag storage
"$LOCKGATE" knowledge add --type decision --content '{"title":  "use SQLite"}' --tag other > again 2>&1"#;
    let project = project(PAIR, &[("plan", capture)]);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    assert!(project.read("again").contains("was captured before"), "{}", project.read("again"));
    let known = json_of(&project, &["knowledge", "list", "--json"]);
    assert_eq!(known.as_array().unwrap().len(), 1);
    assert_eq!((&known[0]["by"], &known[0]["tags"]), (&json!("ana"), &json!(["storage"])));
    let id = known[0]["id"].as_str().unwrap();
    assert!(id.starts_with("KE-decision-"), "{id}");
    std::fs::remove_file(project.path("plan.sh")).unwrap();
    project.write("flow.yaml", PAIR.replace("name: pair", "name: later\nknowledge: { inject: [storage] }"));
    ended(&project.run(&["run", "flow.yaml"]), 0);
    for task in ["plan", "build"] {
        let prompt = out(&project, &format!("asked-{task}-1.txt"));
        assert!(prompt.contains(&format!("{id} (decision): ")) && prompt.contains("use SQLite"), "{prompt}");
    }
    let injected = project.events(&project.newest(), "team");
    let entries: Vec<usize> =
        injected.iter().filter_map(|event| event["knowledge_injected"]["entries"].as_array().map(Vec::len)).collect();
    assert_eq!(entries, [1, 0], "the entry is recorded once per run");
}
