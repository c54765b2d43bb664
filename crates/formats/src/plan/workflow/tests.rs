//! Plans as workflows.

use super::*;
use lockgate_engine::hold::Action as Effect;
use lockgate_engine::id::TaskId;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::workflow::{OnFail, Prompt, Task, UntilCondition, Work};
use serde_json::json;

const PLAN: &str = r#"---
phase: 08-login
plan: 01
wave: 1
autonomous: false
commits: true
must_haves:
  truths: ["A login works"]
  artifacts:
    - path: "src/it's.ts"
      contains: "{{vars.x}}"
      min_lines: 3
    - path: "../elsewhere"
      provides: "Something"
  key_links:
    - from: "src/it's.ts"
      to: "b"
      via: "import"
      pattern: "import.*b"
    - from: "LoginForm"
      to: "api"
      via: "fetch"
      pattern: "fetch"
---
<objective>
People can log in.
</objective>
<context>
@docs/PROJECT.md
</context>
<tasks>
<task type="auto">
  <name>Task 1: Build it</name>
  <files>src/a.ts</files>
  <action>Write `<div style={{ color: 1 }}>`.</action>
  <verify>Look at it.
  <automated>test -e a && docker ps --format '{{.Names}}'</automated></verify>
  <done>It is there</done>
</task>
<task type="checkpoint:decision" gate="non-blocking">
  <decision>Which store?</decision>
  <context>It stays.</context>
  <options>
    <option id="sqlite"><name>SQLite</name><pros>One file</pros><cons>One writer</cons></option>
    <option id="pg"><name>PostgreSQL</name></option>
  </options>
  <resume-signal>Select: sqlite or pg</resume-signal>
</task>
<task type="auto">
  <name>Store it</name>
  <action>Use the store.</action>
  <verify>
```sh
echo {{vars.x}} # all
make
```
```bash
true
```
  </verify>
</task>
<task type="checkpoint:human-verify" gate="blocking">
  <action>Start the server.</action>
  <what-built>The login</what-built>
  <how-to-verify>
    1. Open it
       twice
    2. Log in
  </how-to-verify>
  <resume-signal>Type "works" or describe issues</resume-signal>
</task>
<task type="checkpoint:human-action" gate="non-blocking">
  <action>Click the link</action>
  <instructions>Open your mail.</instructions>
  <verification><automated>mail --check</automated></verification>
  <resume-signal>Type "clicked"</resume-signal>
</task>
<task type="auto"><name>Finish</name><action>Last.</action><done>All is well</done></task>
</tasks>
<output>After completion, create `.planning/phases/08-login/08-01-SUMMARY.md`</output>
"#;

fn read(source: &str) -> (Workflow, Vec<Problem>) {
    let Read { workflow, problems } = read_workflow(source);
    (workflow.unwrap_or_else(|| panic!("no workflow: {problems:?}")), problems)
}

fn prompt(task: &Task) -> &str {
    match &task.agent().expect("an agent's").prompt {
        Prompt::Document(text) => text,
        other => panic!("{other:?}"),
    }
}

fn check(task: &Task) -> &str {
    match task.until.as_ref().map(|until| &until.condition) {
        Some(UntilCondition::Run(command)) => command,
        other => panic!("{other:?}"),
    }
}

fn filled(template: &str, values: &Value) -> String {
    lockgate_engine::template::mustache::render_document(template, values).expect("a document")
}

#[test]
fn a_plan_becomes_a_phase_with_sequential_tasks() {
    let (workflow, problems) = read(PLAN);
    let phase = &workflow.phases[0];
    assert_eq!((workflow.name.as_str(), phase.id.as_str(), workflow.phases.len()), ("08-login plan 08-01", "08-01", 1));
    let summary: Vec<_> = phase.tasks.iter().map(|task| (task.id.as_str(), task.work.as_str(), task.needs.len())).collect();
    assert_eq!(
        summary,
        [
            ("task-1", "agent", 0),
            ("task-2", "decision", 1),
            ("task-3", "agent", 1),
            ("task-4", "verify", 1),
            ("task-5", "action", 1),
            ("task-6", "agent", 1)
        ]
    );
    assert!(phase.tasks.iter().skip(1).zip(&phase.tasks).all(|(task, before)| task.needs == [before.id.clone()]));
    assert!(phase.tasks.iter().all(|task| task.commit.is_some() == task.agent().is_some()));
    assert_eq!(workflow.plans[0].summary.as_deref(), Some(".planning/phases/08-login/08-01-SUMMARY.md"));
    assert_eq!((workflow.plans[0].tasks.len(), workflow.plans[0].phase.as_str()), (6, "08-01"));
    let codes: Vec<&str> = problems.iter().map(|problem| problem.code.text()).collect();
    assert_eq!(codes, ["invalid-value"], "{problems:?}");
}

#[test]
fn the_prompt_contains_everything_that_the_plan_says_about_the_task() {
    let (workflow, _) = read(PLAN);
    let prompt_text = filled(prompt(&workflow.phases[0].tasks[0]), &json!({}));
    for part in [
        "# Build it",
        "task 1 of 6 of plan 08-01",
        "People can log in.",
        "@docs/PROJECT.md",
        "- src/a.ts",
        "Write `<div style={{ color: 1 }}>`.",
        "Look at it.",
        "docker ps --format '{{.Names}}'",
        "It is there",
        "- A login works",
        "CHECKPOINT REACHED",
        "Do not commit",
    ] {
        assert!(prompt_text.contains(part), "{part} is missing in {prompt_text}");
    }
    assert_eq!(crate::handover::parse(&prompt_text), None);
}

#[test]
fn the_prompt_contains_earlier_decisions_and_upcoming_checkpoints() {
    let (workflow, _) = read(PLAN);
    let template = prompt(&workflow.phases[0].tasks[2]);
    let prompt_text = filled(template, &json!({"outputs": {"08-01": {"task-2": {"option": "pg", "label": "PostgreSQL"}}}}));
    assert!(prompt_text.contains("A person was asked: Which store?\nThe answer: pg (PostgreSQL)"), "{prompt_text}");
    assert!(prompt_text.contains("Prepare this:\n\nStart the server."), "{prompt_text}");
    assert!(!filled(template, &json!({})).contains("A person was asked"));
}

#[test]
fn verify_commands_become_task_checks_without_template_expansion() {
    let (workflow, _) = read(PLAN);
    let tasks = &workflow.phases[0].tasks;
    assert_eq!(check(&tasks[0]), "test -e a && docker ps --format '{{.Names}}'");
    let command = check(&tasks[2]);
    assert!(lockgate_engine::template::roots(command, lockgate_engine::template::Escape::Shell).is_empty(), "{command}");
    assert!(command.starts_with("eval 'trap ") && command.contains("\n(\necho {'\"{\"'vars.x}} # all\nmake\n)\n"), "{command}");
    assert!(command.ends_with("\n(\ntrue\n)'"), "{command}");
    assert_eq!(tasks[2].until.as_ref().map(|until| (until.limit, until.timeout)), Some((3, Some(CHECK_LIMIT))));
    assert_eq!(tasks[5].until, None);
}

#[test]
fn checkpoints_ask_the_plan_question_and_issues_redo_the_preceding_work() {
    let (workflow, _) = read(PLAN);
    let checkpoint = |index: usize| workflow.phases[0].tasks[index].checkpoint().expect("a question");
    let decision = checkpoint(1);
    assert_eq!(decision.waits.default.as_ref().map(|id| id.as_str()), Some("sqlite"));
    assert!(
        matches!(&decision.question, Some(Question::Decision(asked)) if asked.options.len() == 2 && asked.question == "Which store?")
    );
    let verify = checkpoint(3);
    let Some(Question::Verify(asked)) = &verify.question else { panic!("{verify:?}") };
    assert_eq!(asked.steps[..2], ["Open it\n   twice".to_owned(), "Log in".into()]);
    assert!(asked.steps.contains(&"Build it: It is there".to_owned()) && asked.steps.contains(&"A login works".to_owned()));
    assert!(asked.steps.iter().any(|step| step.starts_with("LoginForm is connected")), "{:?}", asked.steps);
    assert_eq!((verify.options[0].signals.as_slice(), &verify.waits.default), (&["works".to_owned()][..], &None));
    assert_eq!(verify.options[1].action, Effect::Redo(vec![TaskId::from("task-3")]));
    let Some(Question::Action(asked)) = &checkpoint(4).question else { panic!("no action") };
    assert_eq!((asked.needed.as_str(), asked.instructions.as_deref()), ("Click the link", Some("Open your mail.")));
    assert_eq!(asked.check.as_ref().map(|check| check.run.as_str()), Some("mail --check"));
    assert_eq!(checkpoint(4).waits.default, None);
}

#[test]
fn unverified_work_is_verified_at_the_end() {
    let (workflow, _) = read(PLAN);
    let end = workflow.phases[0].checkpoint.as_ref().expect("a checkpoint");
    let Some(Question::Verify(asked)) = &end.question else { panic!("{end:?}") };
    assert_eq!(
        (asked.built.as_str(), asked.steps.as_slice()),
        ("Plan 08-01: People can log in. (Finish)", &["Finish: All is well".to_owned()][..])
    );
    assert_eq!((&end.waits.default, &end.options[1].action), (&None, &Effect::Redo(vec![TaskId::from("task-6")])));
    let alone = read(&PLAN.replace("autonomous: false", "autonomous: true")).0;
    let end = alone.phases[0].checkpoint.as_ref().expect("a checkpoint");
    assert_eq!(end.waits.default.as_ref().map(|id| id.as_str()), Some("approved"));
    let nothing = read("---\nphase: 1\nplan: 2\n---\n<task type=\"auto\"><name>a</name><action>x</action></task>").0;
    assert_eq!((&nothing.phases[0].checkpoint, nothing.phases[0].id.as_str()), (&None, "1-2"));
}

#[test]
fn artifacts_and_links_of_a_plan_become_gates() {
    let (workflow, _) = read(PLAN);
    let gates = &workflow.phases[0].gates;
    assert_eq!(gates.iter().map(|gate| gate.id.as_str()).collect::<Vec<_>>(), ["artifact-1", "link-1"]);
    assert!(gates.iter().all(|gate| gate.on_fail == OnFail::Ask && gate.timeout.is_some()));
    assert!(
        gates.iter().all(|gate| lockgate_engine::template::roots(&gate.run, lockgate_engine::template::Escape::Shell).is_empty())
    );
    assert!(gates[1].run.starts_with("f='./src/it'\\''s.ts'\ntest -e \"$f\" || "), "{}", gates[1].run);
}

fn plan(number: &str, head: &str, action: &str) -> String {
    format!(
        "---\nphase: 08-x\nplan: {number}\nautonomous: true\n{head}---\n<task type=\"auto\"><name>a</name><action>{action}</action><done>d</done></task>\n<task type=\"auto\"><name>b</name><action>y</action></task>\n"
    )
}

fn directory(plans: &[(&str, &str)]) -> Read {
    let sources: Vec<(String, String)> =
        plans.iter().map(|(number, head)| (format!("08-{number}-PLAN.md"), plan(number, head, "x"))).collect();
    let texts: Vec<PlanText<'_>> = sources.iter().map(|(name, source)| PlanText { name, source, is_done: false }).collect();
    read_directory("all", &texts)
}

#[test]
fn plans_of_a_wave_run_in_parallel_unless_one_depends_on_another() {
    let read = directory(&[
        ("03", "wave: 2\ndepends_on: [\"08-01\"]\n"),
        ("01", "wave: 1\n"),
        ("02", "wave: 1\n"),
        ("04", "wave: 2\ndepends_on: [03, 07-09]\n"),
        ("05", "depends_on: [08-04-PLAN.md]\n"),
    ]);
    let workflow = read.workflow.unwrap_or_else(|| panic!("{:?}", read.problems));
    let summary: Vec<(&str, Vec<String>)> = workflow
        .phases
        .iter()
        .map(|phase| {
            let task = |task: &Task| {
                format!("{} {}", task.id, task.needs.iter().map(|need| need.as_str()).collect::<Vec<_>>().join(","))
            };
            (phase.id.as_str(), phase.tasks.iter().map(task).collect())
        })
        .collect();
    assert_eq!(summary[0].0, "wave-1");
    assert_eq!(summary[0].1, ["08-01-task-1 ", "08-01-task-2 08-01-task-1", "08-02-task-1 ", "08-02-task-2 08-02-task-1"]);
    assert_eq!(
        summary[1].1,
        ["08-03-task-1 ", "08-03-task-2 08-03-task-1", "08-04-task-1 08-03-task-2", "08-04-task-2 08-04-task-1"]
    );
    assert_eq!((summary[2].0, summary.len()), ("wave-3", 3));
    let end = workflow.phases[0].checkpoint.as_ref().expect("a checkpoint");
    assert!(matches!(&end.question, Some(Question::Verify(asked)) if asked.steps == ["08-01: a: d", "08-02: a: d"]), "{end:?}");
    assert_eq!(read.problems.len(), 1);
    assert_eq!((read.problems[0].file.as_deref(), read.problems[0].line), (Some("08-04-PLAN.md"), 6));
    assert_eq!(workflow.plans.iter().map(|plan| (plan.id.as_str(), plan.tasks.len())).collect::<Vec<_>>()[4], ("08-05", 2));
}

#[test]
fn plans_that_change_the_same_files_or_commit_run_sequentially() {
    let needs = |read: Read| {
        let workflow = read.workflow.unwrap_or_else(|| panic!("{:?}", read.problems));
        workflow.phases[0].tasks[2].needs.iter().map(|need| need.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        needs(directory(&[("01", "wave: 1\nfiles_modified: [a]\n"), ("02", "wave: 1\nfiles_modified: [a]\n")])),
        ["08-01-task-2"]
    );
    assert_eq!(needs(directory(&[("01", "wave: 1\ncommits: true\n"), ("02", "wave: 1\n")])), ["08-01-task-2"]);
    assert!(needs(directory(&[("01", "wave: 1\nfiles_modified: [a]\n"), ("02", "wave: 1\nfiles_modified: [b]\n")])).is_empty());
}

#[test]
fn impossible_plan_orders_are_errors_with_positions() {
    let first_error = |read: Read| {
        assert!(read.workflow.is_none());
        let error = read.problems.into_iter().find(|problem| problem.severity == Severity::Error).expect("an error");
        (error.file.unwrap_or_default(), error.line, error.message)
    };
    assert_eq!(
        first_error(directory(&[("01", "wave: 1\ndepends_on: [02]\n"), ("02", "wave: 1\ndepends_on: [08-01]\n")])),
        ("08-01-PLAN.md".to_owned(), 6, "these plans depend on each other: 08-01 → 08-02 → 08-01".to_owned())
    );
    assert_eq!(
        first_error(directory(&[("01", "wave: 1\ndepends_on: [02]\n"), ("02", "wave: 2\n")])).2,
        "this plan depends on plan 08-02, which is in a later wave"
    );
    let text = plan("01", "", "x");
    let same = ["a.md", "b.md"].map(|name| PlanText { name, source: &text, is_done: false });
    assert_eq!(first_error(read_directory("all", &same)).2, "plan id 08-01 is also used by a.md");
}

#[test]
fn plan_level_text_reaches_people_and_agents() {
    let whole = "<verification>All pages load</verification>\n<success_criteria>No one waits</success_criteria>\n\
                 <threat_model>An attacker guesses</threat_model>\n<output>";
    let source = PLAN.replace("<output>", whole).replace("wave: 1\n", "wave: 1\nrequirements: [AUTH-1]\n");
    let source = source.replace("      min_lines: 3\n", "      min_lines: 3\n      exports: [login]\n");
    let (workflow, _) = read(&source);
    let prompt_text = filled(prompt(&workflow.phases[0].tasks[0]), &json!({}));
    for part in ["All pages load", "No one waits", "## Threat model of the plan\n\nAn attacker guesses", "- AUTH-1"] {
        assert!(prompt_text.contains(part), "{part} is missing in {prompt_text}");
    }
    let verify = workflow.phases[0].tasks[3].checkpoint().expect("a question");
    let Some(Question::Verify(asked)) = &verify.question else { panic!("{verify:?}") };
    for part in
        ["Verification of the plan: All pages load", "Success criteria of the plan: No one waits", "src/it's.ts exports login"]
    {
        assert!(asked.steps.iter().any(|step| step == part), "{part} is missing in {:?}", asked.steps);
    }
}

#[test]
fn misspelt_elements_give_warnings_and_an_agent_verification_becomes_a_check() {
    let source = "---\nphase: 1\nplan: 2\nmust_have: {}\nmust_haves:\n  truth: [a]\n  artifacts:\n    - path: a\n      min_line: 3\n  \
                  key_links:\n    - from: a\n      patern: b\nmine: 1\n---\n<task type=\"auto\"><name>a</name><action>x</action>\n\
                  <verfy><automated>true</automated></verfy>\n<checks><automated>true</automated></checks>\n<notes>x</notes>\n\
                  <verification><automated>test -e a</automated></verification>\n</task>";
    let (workflow, problems) = read(source);
    let warnings: Vec<(&str, &str)> = problems
        .iter()
        .filter(|problem| matches!(problem.code, ProblemCode::UnknownKey | ProblemCode::StrayTag))
        .map(|problem| (problem.message.as_str(), problem.help.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        warnings,
        [
            ("unknown key `must_have` in the frontmatter; it has no effect", "did you mean `must_haves`?"),
            ("unknown key `truth` in `must_haves`; it has no effect", "did you mean `truths`?"),
            ("unknown key `min_line` in an artifact; it has no effect", "did you mean `min_lines`?"),
            ("unknown key `patern` in a link; it has no effect", "did you mean `pattern`?"),
            ("`<verfy>` is not a known part of a task; it is only passed to the agent", "did you mean `verify`?"),
            ("`<checks>` is not a known part of a task; it is only passed to the agent", "write `<verify>` around `<automated>`"),
        ]
    );
    assert_eq!(check(&workflow.phases[0].tasks[0]), "test -e a");
}

const NEWER: &str = "---
phase: 08-login
plan: 01
gap_ids: [G-1, G-2]
human_verify_mode: mid-flight
---
<tasks>
<task type=\"tracer\" tdd=\"true\" gate=\"blocking-human\">
<name>Slice</name>
<precondition>The tree is clean.</precondition>
<reversibility rating=\"costly\">Others build on it.</reversibility>
<read_first>src/a.rs</read_first>
<behavior>It answers 200.</behavior>
<action>Build the slice.</action>
<acceptance_criteria>One route works.</acceptance_criteria>
<verify><automated>make test</automated></verify>
<done>It runs.</done>
</task>
<task type=\"auto\">
<name>Drop the table</name>
<reversibility rating=\"one-way\">The rows are gone.</reversibility>
<action>Drop it.</action>
</task>
<task type=\"checkpoint:decision\" gate=\"blocking-human\">
<decision>Which?</decision>
<options><option id=\"a\"><name>A</name></option></options>
</task>
</tasks>
";

#[test]
fn newer_plan_elements_are_parsed() {
    let read = read_workflow(NEWER);
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    let workflow = read.workflow.expect("a workflow");
    let tasks = &workflow.phases[0].tasks;
    let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["task-1", "task-1-tracer-1", "task-1-look", "task-2-start", "task-2", "task-3"]);
    for (before, after) in tasks.iter().zip(&tasks[1..]) {
        assert_eq!(after.needs, std::slice::from_ref(&before.id), "each task waits for the previous one");
    }
    assert_eq!(tasks[1].work, Work::Run("make test".into()), "its check runs again");
    let person_only = |index: usize| tasks[index].checkpoint().is_some_and(|checkpoint| checkpoint.waits.person_only);
    assert!(person_only(2) && person_only(3) && person_only(5));
    let looks = tasks[2].checkpoint().expect("a question");
    assert!(looks.options.iter().any(|choice| choice.action == Action::Redo(vec![TaskId::from("task-1")])), "{looks:?}");
    let Some(Question::Verify(verify)) = &looks.question else { panic!("{looks:?}") };
    assert!(verify.steps.iter().any(|step| step.contains("costly to undo: Others build on it.")), "{verify:?}");
    let asks = tasks[3].checkpoint().expect("a question");
    let actions: Vec<&Action> = asks.options.iter().map(|choice| &choice.action).collect();
    assert_eq!(actions, [&Action::Continue, &Action::Abort]);
    let Some(Question::Decision(decision)) = &asks.question else { panic!("{asks:?}") };
    assert!(decision.context.as_deref().unwrap_or_default().contains("The rows are gone."), "{decision:?}");
    let Prompt::Document(prompt) = &tasks[0].agent().expect("an agent").prompt else { panic!() };
    for part in [
        "This must be true before you start: The tree is clean.",
        "If it is not true, change nothing, stop, and hand over",
        "costly to undo",
        "thin slice",
        "- G-1",
        "src/a.rs",
        "It answers 200.",
        "Write failing tests",
        "One route works.",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
}

#[test]
fn unknown_ratings_gates_and_modes_are_warnings_that_keep_a_person_in_the_loop() {
    let source = NEWER
        .replace("one-way", "forever")
        .replacen("gate=\"blocking-human\"", "gate=\"soft\"", 1)
        .replace("mid-flight", "someday");
    let read = read_workflow(&source);
    let messages: Vec<&str> = read.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(
        messages.iter().any(|message| message.contains("`forever` is not a rating; a person is asked before the task")),
        "{messages:?}"
    );
    let workflow = read.workflow.expect("a workflow");
    assert!(workflow.phases[0].task("task-2-start").is_some());
}

#[test]
fn deferred_verifications_wait_until_the_end_except_those_only_for_a_person() {
    let checkpoint = |gate: &str| {
        format!(
            "<task type=\"checkpoint:human-verify\" {gate}><what-built>x</what-built><how-to-verify>look</how-to-verify></task>\n"
        )
    };
    let auto = "<task type=\"auto\"><name>n</name><action>do</action></task>\n";
    let (first, second) = (checkpoint("gate=\"blocking\""), checkpoint("gate=\"blocking-human\""));
    let source = format!("---\nphase: 8\nplan: 01\nhuman_verify_mode: end-of-phase\n---\n{auto}{first}{second}{auto}");
    let workflow = read_workflow(&source).workflow.expect("a workflow");
    let needs = |id: &str| workflow.phases[0].task(id).expect("a task").needs.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(needs("task-2"), ["task-1", "task-3", "task-4"], "it is asked last");
    assert_eq!(needs("task-4"), ["task-3"], "no task runs past a person");
}

#[test]
fn a_finished_plan_is_skipped_and_its_dependents_do_not_wait() {
    let (one, two) = (plan("01", "", "x"), plan("02", "depends_on: ['01']\n", "y"));
    let texts = [
        PlanText { name: "08-01-PLAN.md", source: &one, is_done: true },
        PlanText { name: "08-02-PLAN.md", source: &two, is_done: false },
    ];
    let read = read_directory("plans", &texts);
    assert!(read.problems.iter().all(|problem| !problem.message.contains("not found in this directory")), "{:?}", read.problems);
    let workflow = read.workflow.expect("a workflow");
    assert_eq!(workflow.plans.len(), 1);
    assert!(summary_names("08-01-PLAN.md", &one).contains(&"08-01-SUMMARY.md".to_owned()));
    assert!(summary_names("PLAN.md", &one).contains(&"SUMMARY.md".to_owned()));
}
