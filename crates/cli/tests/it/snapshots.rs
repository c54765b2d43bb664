//! Snapshots: what a run leaves behind, and continuing from it.

use crate::crash_recovery::number;
use crate::project::{Output, Project, finish, signal, until};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const FLOW: &str = "
name: deploy
phases:
  - id: build
    tasks:
      - { id: compile, run: 'echo compile >> ran' }
      - { id: pack, needs: [compile], run: 'echo pack >> ran' }
  - id: ship
    tasks: [{ id: deploy, run: 'echo deploy >> ran' }]
    checkpoint:
      prompt: Announce it?
      options: [{ label: Announce, on_select: { action: continue } }]
  - id: announce
    tasks: [{ id: mail, run: 'echo mail >> ran' }]
";

fn ended(output: &Output, code: i32) {
    assert_eq!(output.code, Some(code), "{}\n{}", output.stdout, output.stderr);
}

fn dir(project: &Project) -> PathBuf {
    project.path(&format!(".lockgate/runs/{}/checkpoints", project.newest()))
}

fn list(project: &Project) -> Vec<Value> {
    project.json(0, &["snapshots", "list", "--json"]).as_array().unwrap().clone()
}

fn triggers(project: &Project) -> Vec<String> {
    let text = |known: &Value| format!("{} {}", known["phase"].as_str().unwrap(), known["trigger"].as_str().unwrap());
    list(project).iter().map(text).collect()
}

/// The id of the newest snapshot with a trigger in a phase.
fn id(project: &Project, phase: &str, trigger: &str) -> String {
    let listed = list(project);
    let found = listed.iter().rfind(|known| known["phase"] == phase && known["trigger"] == trigger);
    found.unwrap_or_else(|| panic!("{listed:?}"))["id"].as_str().unwrap().to_owned()
}

fn file(project: &Project, id: &str) -> PathBuf {
    dir(project).join(format!("{id}.yaml"))
}

fn waiting() -> Project {
    let project = Project::with(FLOW);
    ended(&project.run(&["run", "flow.yaml"]), 3);
    project
}

#[test]
fn a_run_leaves_snapshots_at_its_start_after_batches_and_between_phases() {
    let project = waiting();
    let expected = ["build phase_transition", "build batch_complete", "build phase_transition", "ship batch_complete"];
    assert_eq!(triggers(&project), expected);
    ended(&project.run(&["answer", &project.waiting_hold(), "Announce", "--foreground"]), 0);
    let expected = ["ship phase_transition", "announce phase_transition", "announce session_end"];
    assert_eq!(triggers(&project)[4..], expected);
    let last = list(&project).pop().unwrap();
    assert_eq!((&last["can_resume"], &last["latest"]), (&json!(false), &json!(true)), "the run is complete");
    let latest = fs::read_link(dir(&project).join("latest")).unwrap();
    assert_eq!(latest.to_str().unwrap(), format!("{}.yaml", last["id"].as_str().unwrap()));
    let status = project.run(&["status"]);
    assert!(status.stdout.contains(&format!("snapshot {} (session_end, ", last["id"].as_str().unwrap())), "{status:?}");
    assert_eq!(project.status(&project.newest())["snapshot"]["id"], last["id"]);
}

#[test]
fn an_index_that_is_lost_or_wrong_is_rebuilt_from_the_files() {
    let project = waiting();
    let before = list(&project);
    for broken in ["", "through: {}\ncheckpoints: []\nlatest: null\ntotal_checkpoints: 0\n", "]["] {
        project.write(&format!(".lockgate/runs/{}/checkpoints/index.yaml", project.newest()), broken);
        let names = |known: &[Value]| known.iter().map(|known| known["id"].clone()).collect::<Vec<_>>();
        assert_eq!(names(&list(&project)), names(&before), "{broken:?}");
    }
    ended(&project.run(&["answer", &project.waiting_hold(), "Announce", "--foreground"]), 0);
    let again = triggers(&project);
    assert_eq!(again.iter().filter(|known| *known == "build batch_complete").count(), 1, "none is written twice: {again:?}");
}

#[test]
fn going_back_reruns_what_came_later_and_keeps_the_history() {
    let project = waiting();
    ended(&project.run(&["answer", &project.waiting_hold(), "Announce", "--foreground"]), 0);
    let run = project.newest();
    let before = project.log(&run).len();
    let to = id(&project, "build", "phase_transition");
    let refused = project.run(&["resume", &run, "--from", &to]);
    assert!(refused.code == Some(4) && refused.stderr.contains("error[changes-not-accepted]"), "{refused:?}");
    assert!(refused.stderr.contains("runs again: ship/deploy, announce/mail"), "{refused:?}");
    assert_eq!(project.log(&run).len(), before, "nothing is recorded before the confirmation");
    ended(&project.run(&["resume", &run, "--from", &to, "--accept-changes"]), 3);
    assert_eq!(project.read("ran"), "compile\npack\ndeploy\nmail\ndeploy\n");
    let kinds = project.kinds(&run);
    assert!(kinds.len() > before && kinds.contains(&"rewound".to_owned()), "{kinds:?}");
    ended(&project.run(&["answer", &project.waiting_hold(), "Announce", "--foreground"]), 0);
    assert_eq!(project.read("ran"), "compile\npack\ndeploy\nmail\ndeploy\nmail\n");
    ended(&project.run(&["db", "verify"]), 0);
    let kept = project.json(0, &["snapshots", "list", &run, "--json"]);
    assert!(kept.as_array().unwrap().iter().any(|known| known["id"] == to), "the resume point is kept");
}

#[test]
fn a_missing_database_is_rebuilt_and_asks_before_each_unfinished_task() {
    let project = Project::on_sqlite();
    project.write("flow.yaml", FLOW);
    ended(&project.run(&["run", "flow.yaml"]), 3);
    let (run, hold) = (project.newest(), project.waiting_hold());
    let exists = project.run(&["recover", ".lockgate/runs"]);
    assert!(exists.code == Some(1) && exists.stderr.contains(&format!("run {run} was not recovered")), "{exists:?}");
    forget_database(&project);
    let recovered = project.run(&["recover", ".lockgate/runs"]);
    ended(&recovered, 0);
    assert!(recovered.stdout.contains(&format!("recovered {run} (deploy, waiting) from CP-ship-")), "{recovered:?}");
    assert_eq!(project.waiting_hold(), hold, "the question has the same id");
    ended(&project.run(&["answer", &hold, "Announce", "--foreground"]), 3);
    assert_eq!(project.read("ran"), "compile\npack\ndeploy\n", "mail may already have been sent");
    let asked = project.json(0, &["inbox", "--json"]);
    assert_eq!(asked[0]["tasks"], json!(["announce/mail"]), "{asked}");
    ended(&project.run(&["answer", &project.waiting_hold(), "rerun", "--foreground"]), 0);
    assert_eq!(project.read("ran"), "compile\npack\ndeploy\nmail\n");
    ended(&project.run(&["db", "verify"]), 0);
}

fn forget_database(project: &Project) {
    for entry in fs::read_dir(project.path(".lockgate")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("lockgate.db") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Kills the run at random times, loses its database, and recovers it. Every task that runs without a person's word must not have
/// run before.
#[test]
fn no_finished_task_runs_again_after_a_recovery_without_a_persons_word() {
    let rounds = number("LOCKGATE_KILLS").map_or(6, |kills| kills / 10 + 1);
    let mut random = SmallRng::seed_from_u64(16);
    for round in 0..rounds {
        let project = Project::on_sqlite();
        project.write("flow.yaml", FLOW.replace("run: '", "run: 'sleep 0.05; "));
        let mut child = project.start(&["run", "flow.yaml"]);
        std::thread::sleep(Duration::from_millis(random.random_range(20..900)));
        child.kill().unwrap();
        finish(child);
        // The killed driver's task may still end.
        std::thread::sleep(Duration::from_millis(120));
        forget_database(&project);
        if !project.path(".lockgate/runs").is_dir() {
            continue;
        }
        let recovered = project.run(&["recover", ".lockgate/runs"]);
        if recovered.stderr.contains("snapshot-not-found") {
            continue;
        }
        ended(&recovered, 0);
        let counts = || {
            project.read("ran").lines().fold(BTreeMap::<String, u32>::new(), |mut counts, line| {
                *counts.entry(line.to_owned()).or_default() += 1;
                counts
            })
        };
        let mut before = counts();
        let mut output = project.run(&["resume"]);
        loop {
            assert_eq!(counts(), before, "round {round}: something ran without being asked about: {output:?}");
            let inbox = project.json(0, &["inbox", "--json"]);
            let Some(hold) = inbox.as_array().unwrap().first() else { break };
            let name = format!("{}@{}", hold["id"].as_str().unwrap(), hold["revision"]);
            let tasks: Vec<&str> = hold["tasks"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let option = match tasks.as_slice() {
                [] => "Announce",
                [task] if before.contains_key(task.split('/').nth(1).unwrap()) => "skip",
                [task] => {
                    before.insert(task.split('/').nth(1).unwrap().to_owned(), 1);
                    "rerun"
                }
                several => panic!("one task after the other: {several:?}"),
            };
            output = project.run(&["answer", &name, option, "--foreground"]);
        }
        assert_eq!(project.status(&project.newest())["status"], "complete", "round {round}: {output:?}");
        assert!(counts().values().all(|count| *count == 1) && counts().len() == 4, "round {round}: {:?}", counts());
    }
}

#[test]
fn each_kind_of_bad_snapshot_has_its_own_message_and_restores_nothing() {
    let project = waiting();
    let run = project.newest();
    let good = id(&project, "build", "batch_complete");
    let path = file(&project, &good);
    let text = fs::read_to_string(&path).unwrap();
    let before = project.log(&run).len();
    let try_with = |content: &str, what: &str| {
        fs::write(&path, content).unwrap();
        let refused = project.run(&["resume", &run, "--from", &good, "--accept-changes"]);
        assert!(refused.stderr.contains(what), "{what}: {refused:?}");
        assert_ne!(refused.code, Some(101), "no panic");
        assert_eq!(project.log(&run).len(), before, "{what}: nothing is recorded");
    };
    try_with(&text[..text.len() / 2], "error[snapshot-");
    try_with("", "error[snapshot-damaged]");
    try_with(": ][ {", "error[snapshot-damaged]");
    try_with(&text.replace("status: done", "status: failed"), "error[snapshot-changed]");
    try_with(&text.replace("  format: 1\n", "  format: 99\n"), "error[newer-format]");
    try_with(&text.replace("  format: 1\n", "  format: 0\n"), "which is too old");
    try_with(&text[..text.find("lockgate:\n").unwrap()], "no engine state");
    let bomb = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\n";
    try_with(bomb, "error[snapshot-damaged]");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
    let link = project.run(&["resume", &run, "--from", &good, "--accept-changes"]);
    assert!(link.stderr.contains("error[not-a-file]"), "{link:?}");
    fs::remove_file(&path).unwrap();
    for name in ["../../../../etc/passwd", "CP-../../x", "CP-none"] {
        let absent = project.run(&["resume", &run, "--from", name, "--accept-changes"]);
        assert!(absent.code == Some(4) && absent.stderr.contains("error[snapshot-not-found]"), "{absent:?}");
    }
    fs::write(&path, &text).unwrap();
    fs::remove_dir_all(dir(&project).join("values")).unwrap();
    let missing = project.run(&["resume", &run, "--from", &good, "--accept-changes"]);
    assert!(missing.stderr.contains("error[stored-value-missing]"), "{missing:?}");
    assert_eq!(project.log(&run).len(), before);
}

#[test]
fn a_snapshot_of_another_run_is_refused() {
    let project = waiting();
    let (first, taken) = (project.newest(), id(&project, "build", "batch_complete"));
    let path = file(&project, &taken);
    ended(&project.run(&["run", "flow.yaml"]), 3);
    let second = project.json(0, &["runs", "--json"])[0]["run"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    let copied = project.path(&format!(".lockgate/runs/{second}/checkpoints/{taken}.yaml"));
    fs::copy(path, copied).unwrap();
    let refused = project.run(&["resume", &second, "--from", &taken, "--accept-changes"]);
    assert!(refused.stderr.contains("error[snapshot-mismatch]") && refused.stderr.contains(&first), "{refused:?}");
}

#[test]
fn snapshots_are_verified_one_by_one() {
    let project = waiting();
    ended(&project.run(&["snapshots", "verify"]), 0);
    let bad = id(&project, "build", "batch_complete");
    let text = fs::read_to_string(file(&project, &bad)).unwrap();
    fs::write(file(&project, &bad), text.replace("attempts: 1", "attempts: 2")).unwrap();
    let checked = project.json(1, &["snapshots", "verify", "--json"]);
    let wrong: Vec<&Value> = checked.as_array().unwrap().iter().filter(|known| known["ok"] == false).collect();
    assert_eq!(wrong.len(), 1, "{checked}");
    assert_eq!(wrong[0]["id"], bad);
}

#[test]
fn a_snapshot_is_taken_shown_pinned_and_pruned_on_request() {
    let project = waiting();
    let run = project.newest();
    let taken = project.json(0, &["snapshots", "create", "--json"]);
    let taken = taken["id"].as_str().unwrap();
    let shown = project.run(&["snapshots", "show", taken]);
    assert!(shown.stdout.contains("trigger: manual") && !shown.stdout.contains("inline"), "{shown:?}");
    let whole = project.json(0, &["snapshots", "show", taken, "--json"]);
    assert_eq!(whole["lockgate"]["run"], run);
    let settings = project.read(".lockgate/config.yaml");
    project.write(
        ".lockgate/config.yaml",
        format!("{settings}\ncheckpoint: {{ retention: {{ batch_complete: 0, phase_transition: 1, manual: 0 }} }}\n"),
    );
    let pinned = id(&project, "build", "batch_complete");
    ended(&project.run(&["snapshots", "pin", &pinned]), 0);
    let planned = project.json(0, &["snapshots", "prune", &run, "--dry-run", "--json"]);
    let planned: Vec<&str> = planned.as_array().unwrap().iter().map(|known| known["id"].as_str().unwrap()).collect();
    assert!(!planned.is_empty() && !planned.contains(&pinned.as_str()) && !planned.contains(&taken), "{planned:?}");
    let count = list(&project).len();
    let removed = project.json(0, &["snapshots", "prune", &run, "--json"]);
    assert_eq!(removed.as_array().unwrap().len(), planned.len());
    assert_eq!(list(&project).len(), count - planned.len());
    ended(&project.run(&["snapshots", "unpin", &pinned]), 0);
    ended(&project.run(&["snapshots", "prune", &run]), 0);
    assert!(list(&project).iter().all(|known| known["id"] != pinned.as_str()));
}

#[test]
fn a_task_can_take_a_snapshot_but_not_remove_one_or_go_back() {
    let script = r#"
name: inside
phases:
  - id: a
    tasks:
      - id: try
        run: |
          "$LOCKGATE" snapshots create > taken
          "$LOCKGATE" snapshots prune "$LOCKGATE_RUN" 2> said || echo $? > codes
          "$LOCKGATE" snapshots unpin "$(cat taken)" 2>> said || echo $? >> codes
          "$LOCKGATE" resume "$LOCKGATE_RUN" --from "$(cat taken)" --accept-changes 2>> said || echo $? >> codes
          "$LOCKGATE" recover .lockgate/runs 2>> said || echo $? >> codes
"#;
    let project = Project::with(script);
    ended(&project.run(&["run", "flow.yaml"]), 0);
    assert_eq!(project.read("codes"), "3\n3\n3\n3\n", "{}", project.read("said"));
    assert!(project.read("taken").starts_with("CP-a-"));
    let refused = project.events(&project.newest(), "attempt_refused");
    assert_eq!(refused.len(), 4, "{refused:?}");
}

#[test]
fn signals_leave_their_snapshots() {
    for (sent, code, trigger) in [(Signal::INT, 130, "user_interrupt"), (Signal::TERM, 143, "session_end")] {
        let project = Project::with("name: slow\nphases: [{ id: a, tasks: [{ id: x, run: 'touch started; sleep 60' }] }]\n");
        let child = project.start(&["run", "flow.yaml"]);
        until("the task starts", || project.path("started").exists());
        signal(&child, sent);
        ended(&finish(child), code);
        let last = list(&project).pop().unwrap();
        assert_eq!((last["trigger"].as_str(), &last["can_resume"]), (Some(trigger), &json!(true)));
    }
}

#[test]
fn compressed_snapshots_are_read_like_others() {
    let project = Project::on_sqlite();
    project.write("flow.yaml", FLOW);
    let settings = project.read(".lockgate/config.yaml");
    project.write(".lockgate/config.yaml", format!("{settings}\ncheckpoint: {{ storage: {{ compress: true }} }}\n"));
    ended(&project.run(&["run", "flow.yaml"]), 3);
    let taken = id(&project, "ship", "batch_complete");
    assert!(dir(&project).join(format!("{taken}.yaml.zst")).is_file());
    ended(&project.run(&["snapshots", "verify"]), 0);
    forget_database(&project);
    ended(&project.run(&["recover", ".lockgate/runs"]), 0);
    let mut bytes = fs::read(dir(&project).join(format!("{taken}.yaml.zst"))).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(dir(&project).join(format!("{taken}.yaml.zst")), bytes).unwrap();
    let damaged = project.run(&["snapshots", "show", &taken]);
    assert!(damaged.stderr.contains("error[snapshot-damaged]"), "{damaged:?}");
}

#[test]
fn switched_off_snapshots_are_not_written() {
    let project = Project::with(FLOW);
    let settings = project.read(".lockgate/config.yaml");
    project.write(".lockgate/config.yaml", format!("{settings}\ncheckpoint: {{ enabled: false }}\n"));
    ended(&project.run(&["run", "flow.yaml"]), 3);
    assert!(!dir(&project).exists());
    let refused = project.run(&["snapshots", "create"]);
    assert!(refused.code == Some(4) && refused.stderr.contains("error[snapshots-disabled]"), "{refused:?}");
    project.write(".lockgate/config.yaml", format!("{settings}\ncheckpoint: {{ auto_checkpoint: false }}\n"));
    ended(&project.run(&["run", "flow.yaml"]), 3);
    ended(&project.run(&["snapshots", "create"]), 0);
    assert_eq!(triggers(&project), ["ship manual"]);
}

#[test]
fn a_deleted_branch_or_another_one_is_noticed_before_a_run_continues() {
    let project = Project::with(FLOW);
    project.init_git();
    project.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    project.git(&["checkout", "-q", "-b", "feature"]);
    ended(&project.run(&["run", "flow.yaml"]), 3);
    let run = project.newest();
    let taken = id(&project, "build", "batch_complete");
    project.git(&["checkout", "-q", "-b", "other"]);
    let asks = project.run(&["resume", &run, "--from", &taken]);
    assert!(asks.code == Some(4) && asks.stderr.contains("the branch other is checked out"), "{asks:?}");
    project.git(&["branch", "-D", "feature"]);
    let gone = project.run(&["resume", &run]);
    assert!(gone.code == Some(4) && gone.stderr.contains("the branch feature no longer exists"), "{gone:?}");
    assert!(gone.stderr.contains("--start-fresh") && gone.stderr.contains("--accept-changes"), "{gone:?}");
    ended(&project.run(&["resume", &run, "--start-fresh"]), 3);
    assert_eq!(project.json(0, &["runs", "--json"]).as_array().unwrap().len(), 2);
    ended(&project.run(&["resume", &run, "--accept-changes"]), 3);
}

/// An agent that does what the file `TASK.sh` says.
const AGENT: &str = r#"cat > /dev/null
[ ! -e "$LOCKGATE_TASK.sh" ] || . "./$LOCKGATE_TASK.sh"
echo "$LOCKGATE_TASK is done""#;

const TEAM: &str = "
name: refresh tokens
team:
  members:
    architect: { role: supervisor, domains: { security: 0.5 } }
    developer: { role: implementer, weight: 0.8 }
agents: { architect: ./agent.sh, developer: ./agent.sh }
phases:
  - id: enrich
    tasks:
      - { id: spec, agent: architect, prompt: Write the spec., output_path: spec.md }
      - { id: estimate, agent: developer, prompt: Estimate it. }
  - id: implementing
    tasks:
      - { id: code, agent: developer, prompt: Write the code., knowledge: { inject: [tokens] } }
      - { id: review, needs: [code], run: 'echo review >> ran; [ -e go ] || sleep 60' }
";

/// Fills every part of the structure from a real run, kills it, and resumes it.
#[test]
fn every_part_of_a_snapshot_is_filled_from_a_real_run_that_then_resumes() {
    let project = Project::with(TEAM);
    project.init_git();
    project.write("tokens.py", "old\n");
    project.git(&["add", "tokens.py"]);
    project.git(&["commit", "-q", "-m", "first"]);
    project.git(&["checkout", "-q", "-b", "feature/issue-42"]);
    project.write("tokens.py", "new\n");
    project.git(&["add", "tokens.py"]);
    project.script("agent.sh", AGENT);
    project.write(
        "42.md",
        "---\nnumber: 42\ntitle: Refresh tokens\nlabels: [state:enrich, type:feature]\nassignees: [ada]\n---\nRotate them.\n",
    );
    let settings = project.read(".lockgate/config.yaml");
    let location = "checkpoint: { storage: { location: '.claude/crunch/{issue}/checkpoints' } }";
    project.write(".lockgate/config.yaml", format!("{settings}\n{location}\n"));
    project.write(
        "spec.sh",
        r#""$LOCKGATE" conflict open 'Rotate on each use?' --with developer --domain security > id.tmp && mv id.tmp id
"$LOCKGATE" conflict vote "$(cat id)" --choice yes --confidence 95 > /dev/null
"$LOCKGATE" knowledge add --type decision --tag tokens --content '{"title": "Rotate refresh tokens"}' > /dev/null
while [ ! -e voted ]; do sleep 0.05; done
"$LOCKGATE" message send --to developer --type REQUEST --summary 'Use one-time tokens' > /dev/null
"#,
    );
    project.write(
        "estimate.sh",
        "while [ ! -e id ]; do sleep 0.05; done\n\"$LOCKGATE\" conflict vote \"$(cat id)\" --choice no --confidence 80 --relevance 0.6\ntouch voted\n",
    );
    let without = project.run(&["run", "flow.yaml"]);
    assert!(without.code == Some(4) && without.stderr.contains("{issue}"), "a location without its issue: {without:?}");
    let mut child = project.start(&["run", "flow.yaml", "--issue", "42.md"]);
    until("the second phase works", || project.path("ran").exists());
    until("its snapshot is written", || triggers(&project).contains(&"implementing batch_complete".to_owned()));
    child.kill().unwrap();
    finish(child);

    let found: Vec<String> = triggers(&project);
    for wanted in ["enrich conflict_start", "enrich conflict_resolved", "enrich phase_transition"] {
        assert!(found.contains(&wanted.to_owned()), "{wanted}: {found:?}");
    }
    let in_conflict = shown(&project, &id(&project, "enrich", "conflict_start"));
    assert_eq!(in_conflict["acp_state"]["conflicts_in_progress"].as_array().unwrap().len(), 1);
    let between = shown(&project, &id(&project, "enrich", "phase_transition"));
    let awaiting = between["acp_state"]["awaiting_response"].as_array().unwrap();
    let pending = between["acp_state"]["pending_messages"].as_array().unwrap();
    assert!(awaiting.len() == 1 && pending.contains(&awaiting[0]), "{between:#}");
    assert_eq!(between["acp_state"]["conflicts_in_progress"], json!([]));
    let last = shown(&project, &id(&project, "implementing", "batch_complete"));
    let kept = project.path(&format!(".claude/crunch/42/checkpoints/{}.yaml", last["checkpoint_id"].as_str().unwrap()));
    assert!(kept.is_file(), "it is at the configured location");
    assert_eq!((&last["version"], &last["issue_number"]), (&json!("1.0"), &json!(42)));
    let state = &last["workflow_state"];
    assert_eq!((&state["current_phase"], &state["phase_attempt"]), (&json!("implementing"), &json!(1)));
    assert_eq!(state["current_state_label"], "state:implementing");
    let issue = &last["issue_snapshot"];
    assert_eq!((&issue["title"], &issue["body"]), (&json!("Refresh tokens"), &json!("Rotate them.")));
    assert_eq!((&issue["assignees"], &issue["branch"]), (&json!(["ada"]), &json!("feature/issue-42")));
    let members = &last["team_state"]["members"];
    assert_eq!(
        (&members[0]["agent"], &members[0]["role"], &members[0]["tasks_completed"]),
        (&json!("architect"), &json!("supervisor"), &json!(1))
    );
    let graph = &last["execution_graph"];
    assert_eq!((&graph["completed_batches"], &graph["current_batch"]), (&json!([1]), &json!(2)));
    assert_eq!(graph["node_states"]["code"]["status"], "done");
    let output = &last["agent_outputs"]["architect"]["spec"];
    assert!(output["output_location"].as_str().unwrap().ends_with("spec.md"), "{output}");
    assert_eq!(output["output_summary"], "spec is done");
    let knowledge = &last["knowledge_context"];
    assert_eq!(knowledge["captured_entries"], knowledge["injected_entries"], "{knowledge}");
    assert_eq!(knowledge["captured_entries"].as_array().unwrap().len(), 1);
    let files = last["files_modified"].as_array().unwrap();
    assert!(files.contains(&json!({ "path": "tokens.py", "status": "modified", "staged": true })), "{files:?}");
    assert_eq!(last["recovery_info"]["resume_from"], "batch_2_task_1");
    assert!(last["session_id"].is_string() && last["recovery_info"]["can_resume"] == true);

    project.write("go", "");
    ended(&project.run(&["resume", "--rerun"]), 0);
    assert_eq!(project.read("ran"), "review\nreview\n", "only the interrupted task ran again");
}

fn shown(project: &Project, id: &str) -> Value {
    project.json(0, &["snapshots", "show", id, "--run", "@", "--json"])
}

#[test]
fn a_run_that_is_cancelled_without_a_driver_stays_cancelled_after_a_recovery() {
    let project = Project::on_sqlite();
    project.write("flow.yaml", FLOW);
    ended(&project.run(&["run", "flow.yaml"]), 3);
    let run = project.newest();
    ended(&project.run(&["cancel", &run]), 0);
    assert_eq!(list(&project).pop().unwrap()["trigger"], "session_end");
    forget_database(&project);
    ended(&project.run(&["recover", ".lockgate/runs"]), 0);
    assert_eq!(project.status(&run)["status"], "cancelled");
}

#[test]
fn snapshots_at_another_location_are_removed_with_their_run() {
    let project = Project::with(FLOW);
    let settings = project.read(".lockgate/config.yaml");
    project.write(".lockgate/config.yaml", format!("{settings}\ncheckpoint: {{ storage: {{ location: saved }} }}\n"));
    ended(&project.run(&["run", "flow.yaml"]), 3);
    let (run, dir) = (project.newest(), project.path(&format!("saved/{}", project.newest())));
    assert!(dir.join("index.yaml").is_file());
    ended(&project.run(&["cancel", &run]), 0);
    ended(&project.run(&["runs", "rm", &run, "--yes"]), 0);
    assert!(!dir.exists());
}

#[test]
fn snapshots_above_the_size_limit_are_removed_and_that_is_said() {
    let project = Project::with(
        "name: big\nphases: [{ id: a, tasks: [{ id: x, run: 'true' }] }, { id: b, tasks: [{ id: y, run: 'true' }] }]\n",
    );
    let settings = project.read(".lockgate/config.yaml");
    let vars: String = (0..900).map(|number| format!("--var\u{1}n{number}={}\u{1}", "x".repeat(900))).collect();
    project.write(".lockgate/config.yaml", format!("{settings}\ncheckpoint: {{ storage: {{ max_size_mb: 1 }} }}\n"));
    let mut arguments = vec!["run", "flow.yaml"];
    arguments.extend(vars.split('\u{1}').filter(|word| !word.is_empty()));
    let output = project.run(&arguments);
    ended(&output, 0);
    assert!(output.stderr.contains("because all together exceed `checkpoint.storage.max_size_mb`"), "{}", output.stderr.len());
    assert_eq!(list(&project).len(), 1, "the latest is never removed");
}

#[test]
fn a_secret_in_a_message_or_an_entry_is_masked() {
    let say = r#"
name: say
secrets: { TOKEN: { env: MY_TOKEN } }
phases:
  - id: a
    tasks:
      - id: speak
        secrets: [TOKEN]
        run: |
          "$LOCKGATE" message send --type BROADCAST --summary "it is $TOKEN" --payload "{\"key\": \"$TOKEN\"}"
          "$LOCKGATE" knowledge add --type decision --content "{\"key\": \"$TOKEN\"}" --tag t
"#;
    let project = Project::with(say);
    let output = project.command(&["run", "flow.yaml"]).env("MY_TOKEN", "tok-93fa61c2").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let messages = project.run(&["message", "list", "--json"]);
    assert!(messages.stdout.contains("***") && !messages.stdout.contains("tok-93fa61c2"), "{messages:?}");
    assert!(holds_nowhere(&project.path(".lockgate"), "tok-93fa61c2"));
}

fn holds_nowhere(dir: &std::path::Path, secret: &str) -> bool {
    fs::read_dir(dir).unwrap().flatten().all(|entry| {
        let path = entry.path();
        match path.is_dir() {
            true => holds_nowhere(&path, secret),
            false => fs::read(&path).is_ok_and(|bytes| !bytes.windows(secret.len()).any(|part| part == secret.as_bytes())),
        }
    })
}

/// An agent edits a snapshot and gives it a matching hash.
#[test]
fn a_forged_snapshot_is_refused_because_the_history_says_something_else() {
    let project = waiting();
    let run = project.newest();
    let taken = id(&project, "ship", "batch_complete");
    let text = shown(&project, &taken).to_string();
    let forged = text.replace("Announce it?", "Nothing to see?");
    assert_ne!(forged, text);
    let mut content: serde_json::Map<String, Value> = serde_json::from_str(&forged).unwrap();
    content.remove("checkpoint_id");
    let name = format!("{}{}", &taken[..taken.len() - 16], lockgate_engine::snapshot::document::content_hash(&content));
    content.insert("checkpoint_id".into(), json!(name));
    fs::write(dir(&project).join(format!("{name}.json")), Value::Object(content).to_string()).unwrap();
    ended(&project.run(&["snapshots", "show", &name]), 0);
    let refused = project.run(&["resume", &run, "--from", &name, "--accept-changes"]);
    assert!(
        refused.stderr.contains("error[snapshot-changed]") && refused.stderr.contains("does not show the state"),
        "{refused:?}"
    );
}
