//! Handovers between agents: a long task passes through several agents without repeated work.

use crate::project::Project;

const FLOW: &str = "
name: long plan
phases:
  - id: work
    tasks:
      - { id: plan, name: The whole plan, prompt: 'Work through the plan.' }
      - { id: after, needs: [plan], run: 'echo after > after.txt' }
";

/// An agent that commits two tasks and asks for a decision, commits a third and asks for verification, and then finishes.
const AGENT: &str = r#"#!/bin/sh
cat > prompt.txt
echo "$LOCKGATE_ATTEMPT" >> attempts.txt
step() { echo "$1" > "$1.txt"; git add "$1.txt"; git commit -qm "$1"; git rev-parse --short HEAD; }
block() {
  printf 'I have stopped here.\n\n```\n## CHECKPOINT REACHED\n\n**Type:** %s\n**Plan:** 08-01\n**Progress:** %s/4 tasks complete\n\n### Completed Tasks\n\n' "$1" "$2"
  printf '| Task | Name | Commit | Files |\n|------|------|--------|-------|\n%s\n' "$3"
  printf '### Current Task\n\n**Task %s:** %s\n**Status:** %s\n**Blocked by:** you\n\n### Checkpoint Details\n\n%s\n\n### Awaiting\n\n%s\n```\n' "$4" "$5" "$6" "$7" "$8"
}
if [ ! -f one.txt ]; then
  a=$(step one); b=$(step two)
  block decision 2 "| 1 | one | $a | one.txt |
| 2 | two | $b | two.txt |" 3 three 'awaiting decision' '1. red: Red paint
2. blue: Blue paint' 'Which colour?'
elif [ ! -f three.txt ]; then
  grep -q 'User response: blue' prompt.txt || exit 9
  grep -q 'Resume from Task 3: three' prompt.txt || exit 9
  c=$(step three)
  block human-verify 3 "| 3 | three | $c | three.txt |" 4 four 'awaiting verification' 'Look at three.txt' 'approved or issues'
else
  grep -q '| 1 | one |' prompt.txt || exit 9
  grep -q '| 3 | three |' prompt.txt || exit 9
  cp prompt.txt last-prompt.txt
  echo 'All done.'
fi
"#;

fn project() -> Project {
    let project = Project::with(FLOW);
    project.write("agent.sh", AGENT);
    project.init_git();
    project
}

fn run(project: &Project) {
    let output = project.run(&["run", "flow.yaml", "--agent", "sh agent.sh"]);
    assert_eq!(output.code, Some(3), "{output:?}");
}

#[test]
fn a_long_task_is_handed_over_between_agents_without_repeating_work() {
    let project = project();
    run(&project);
    let inbox = project.json(0, &["inbox", "--json"]);
    assert_eq!(inbox[0]["kind"], "decision");
    let options: Vec<&str> =
        inbox[0]["options"].as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(options, ["red", "blue", "answer", "abort"]);
    assert!(inbox[0]["text"].as_str().unwrap().contains("Progress: 2/4 tasks complete\nTask: three"), "{inbox}");
    let block = project.run(&["agent", "handover", &project.newest()]).stdout;
    for part in
        ["## CHECKPOINT REACHED", "**Type:** decision", "| 1.1 | one | ", "**Status:** awaiting decision", "1. red: Red paint"]
    {
        assert!(block.contains(part), "{part}: {block}");
    }
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "blue", "--foreground"]).code, Some(3));
    assert_eq!(project.json(0, &["inbox", "--json"])[0]["kind"], "verify");
    let issues = project.run(&["answer", &project.waiting_hold(), "approved", "--foreground"]);
    assert_eq!(issues.code, Some(0), "{issues:?}");
    assert_eq!(project.read("attempts.txt"), "1\n2\n3\n");
    let prompt = project.read("last-prompt.txt");
    for part in [
        "Work through the plan.",
        "<completed_tasks>",
        "User response: approved",
        "- human-verify: User approved, continue to next task",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert_eq!(project.read("after.txt"), "after\n");
    let run = project.newest();
    assert_eq!(project.events(&run, "handed_over").len(), 2);
    assert_eq!(project.events(&run, "task_failed").len(), 0);
    let continuation = project.run(&["agent", "continuation", &run]).stdout;
    assert!(continuation.contains("| 1 | The whole plan | - | - |"), "{continuation}");
    assert!(continuation.contains("User response: approved"), "{continuation}");
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
}

#[test]
fn a_missing_commit_opens_a_hold_before_the_next_agent_starts() {
    let project = project();
    run(&project);
    // The work is discarded outside Lockgate.
    for arguments in [&["checkout", "-q", "--orphan", "new"][..], &["commit", "-qm", "x"], &["branch", "-qD", "main"]] {
        project.git(arguments);
    }
    for arguments in [&["reflog", "expire", "--expire=now", "--all"][..], &["gc", "-q", "--prune=now"]] {
        project.git(arguments);
    }
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "blue", "--foreground"]).code, Some(3));
    let inbox = project.json(0, &["inbox", "--json"]);
    assert_eq!(inbox[0]["kind"], "handover", "{inbox}");
    assert_eq!(project.read("attempts.txt"), "1\n", "no agent continued");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "continue", "--foreground"]).code, Some(3));
    assert_eq!(project.json(0, &["inbox", "--json"])[0]["kind"], "verify", "a person may continue it anyway");
}

/// An agent that asks in a table, and records the answer.
const ASKS_IN_A_TABLE: &str = r#"#!/bin/sh
cat > prompt.txt
if grep -q 'User response' prompt.txt; then
  grep 'User response' prompt.txt > answered.txt
  exit 0
fi
cat <<'END'
## CHECKPOINT REACHED

**Type:** decision
**Plan:** 08-01
**Progress:** 0/1 tasks complete

### Current Task

**Task 1:** storage
**Status:** awaiting decision
**Blocked by:** the choice of a database

### Checkpoint Details

**Decision needed:** Which database?

**Options:**

| Option | Pros | Cons |
|--------|------|------|
| Keep SQLite | simple | one machine |
| Abort | nothing to do | no feature |

### Awaiting

Select: [sqlite | abort]
END
"#;

#[test]
fn a_decision_of_an_agent_offers_its_options_and_the_next_agent_gets_the_chosen_one() {
    let project = Project::with(FLOW);
    project.write("agent.sh", ASKS_IN_A_TABLE);
    project.init_git();
    run(&project);
    let inbox = project.json(0, &["inbox", "--json"]);
    let offered = |key: &str| -> Vec<String> {
        let options = inbox[0]["options"].as_array().unwrap().iter();
        options.map(|option| option[key].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(offered("id"), ["sqlite", "option-abort", "answer", "abort"]);
    assert_eq!(offered("label"), ["Keep SQLite", "Abort (agent's option)", "Answer in words", "Abort"]);
    assert_eq!(offered("pros"), ["simple", "nothing to do", "-", "-"]);
    assert_eq!(offered("cons"), ["one machine", "no feature", "-", "-"]);
    let block = project.run(&["agent", "handover", &project.newest()]).stdout;
    assert!(block.contains("| Keep SQLite | simple | one machine |"), "{block}");
    assert_eq!(
        project.run(&["answer", &project.waiting_hold(), "option-abort", "--foreground"]).code,
        Some(0),
        "it is only an option"
    );
    assert_eq!(project.read("answered.txt"), "User response: option-abort: Abort (agent's option)\n");
    assert_eq!(project.read("after.txt"), "after\n");
}

#[test]
fn the_block_of_a_checkpoint_lists_the_possible_answers() {
    let project =
        Project::with("name: x\nphases: [{ id: a, tasks: [{ id: t, pass: true }], checkpoint: { prompt: 'Ship it?' } }]\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let block = project.run(&["agent", "handover", &project.newest()]).stdout;
    assert!(block.contains("Ship it?\n\nOptions:\n1. continue: Continue\n\n2. abort: Abort\n"), "{block}");
}

#[test]
fn blocks_for_agents_contain_no_escape_sequences() {
    let project = Project::with(
        "
name: flow
phases:
  - id: build
    checkpoint: { prompt: \"Good\\e[2J?\", options: [{ label: Go, with_feedback: true, on_select: { action: continue } }] }
  - id: last
    checkpoint: { prompt: 'And now?' }
",
    );
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let run = project.newest();
    let handover = project.run(&["agent", "handover", &run]).stdout;
    assert!(handover.contains("Good␛[2J?"), "{handover:?}");
    let answered =
        project.run(&["answer", &project.waiting_hold(), "Go", "--feedback", "fine\u{1b}]0;x\u{7}\u{9b}31m", "--foreground"]);
    assert_eq!(answered.code, Some(3), "{answered:?}");
    let continuation = project.run(&["agent", "continuation", &run]).stdout;
    assert!(continuation.contains("fine␛]0;x␇"), "{continuation:?}");
    for block in [handover, continuation] {
        assert!(block.chars().all(|character| character == '\n' || !character.is_control()), "{block:?}");
    }
}
