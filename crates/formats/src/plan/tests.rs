//! Plans as people write them, with and without errors.

use super::*;
use lockgate_engine::spec::problem::Severity;

const PLAN: &str = r#"---
phase: 07.2-search
plan: 08
type: execute
wave: 2
depends_on: [07.2-06, "07.2-07"]
files_modified:
  - src/(app)/index.ts
autonomous: false
user_setup:
  - service: mail
    why: "Letters"
must_haves:
  truths:
    - "Search finds things"
    - Login: works
  artifacts:
    - path: "src/index.ts"
      provides: "The index"
      contains: "export"
      min_lines: 40
      exports: [find, add]
      owner: ann
    - src/other.ts
  key_links:
    - from: "src/a.ts"
      to: "src/b.ts"
      via: "import"
      pattern: "import.*b"
tags: [x]
---

<objective>
Find things.

Output: an index.
</objective>

<context>
@docs/PROJECT.md
</context>

<tasks>

<task type="auto" tdd="true">
  <name>Task 1: Build the index</name>
  <files>src/(app)/index.ts, src/b.ts (new)</files>
  <read_first>
    - docs/design.md
  </read_first>
  <behavior>finds "a"</behavior>
  <action>
    Write it with `Map<string, Entry>`:

    ```tsx
    if (a < b && c) return <name>No name</name>;
    <task type="auto">
    </task>
    ```

    Then show <Card> in <form action={send}>.
  </action>
  <verify>
    Look at it first.
    <automated>npm test && npm run build</automated>
    ```bash
    grep -q export src/index.ts
    ```
    ```r
    test()
    ```
  </verify>
  <done>It finds things</done>
</task>

<!-- <task type="auto"><name>Not now</name></task> -->

<task type="checkpoint:human-verify" gate="blocking">
  <what-built>The index. It is quick.</what-built>
  <how-to-verify>
    1. Open it
       - twice
  </how-to-verify>
  <resume-signal>Type "verified" or describe issues</resume-signal>
</task>

<task type="checkpoint:decision" gate="non-blocking">
  <decision>Which store?</decision>
  <context>It stays.</context>
  <options>
    <option id="sqlite">
      <name>SQLite</name>
      <pros>One file</pros>
      <cons>One writer</cons>
    </option>
    <option id="pg"><name>PostgreSQL</name><pros>Many</pros><cons>A server</cons></option>
  </options>
  <resume-signal>Select: sqlite or pg</resume-signal>
</task>

<task type="checkpoint:human-action">
  <action>Click the link in the letter</action>
  <instructions>Open your mail.</instructions>
  <verification>
    <automated>mail --check</automated>
  </verification>
  <hint>It may be in the spam.</hint>
</task>

</tasks>

<verification>
All works.
</verification>

<threat_model>None.</threat_model>

<success_criteria>
- Found
</success_criteria>

<output>
Write `07.2-08-SUMMARY.md`
</output>
"#;

fn diagnostics(problems: &[Problem]) -> Vec<(usize, usize, &'static str, &str)> {
    problems.iter().map(|problem| (problem.line, problem.column, problem.code.text(), problem.message.as_str())).collect()
}

/// The tasks of a text, and all problems except for the missing frontmatter.
fn tasks(source: &str) -> (Vec<PlanTask>, Vec<Problem>) {
    let Read { plan, problems } = read(source);
    (plan.tasks, problems.into_iter().filter(|problem| problem.message != "the plan has no frontmatter").collect())
}

fn line_of(needle: &str) -> usize {
    1 + PLAN[..PLAN.find(needle).expect("it is there")].matches('\n').count()
}

#[test]
fn a_complete_plan_is_parsed_without_warnings() {
    let Read { plan, problems } = read(PLAN);
    // An unknown key on an artifact is kept, with a warning.
    let codes: Vec<&str> = problems.iter().map(|problem| problem.code.text()).collect();
    assert_eq!(codes, ["unknown-key"]);
    assert_eq!(diagnostics(&read(&PLAN.replace("\n      owner: ann", "")).problems), []);
    assert_eq!(plan.objective, "Find things.\n\nOutput: an index.");
    assert_eq!(plan.context, "@docs/PROJECT.md");
    assert_eq!((plan.verification.as_str(), plan.success_criteria.as_str()), ("All works.", "- Found"));
    assert_eq!(plan.output, "Write `07.2-08-SUMMARY.md`");
    assert_eq!(plan.others, [Section { tag: "threat_model".into(), text: "None.".into() }]);
    let kinds: Vec<PlanTaskKind> = plan.tasks.iter().map(|task| task.kind).collect();
    assert_eq!(kinds, [PlanTaskKind::Auto, PlanTaskKind::Verify, PlanTaskKind::Decision, PlanTaskKind::Action]);
}

#[test]
fn the_frontmatter_keeps_numbers_as_text() {
    let Frontmatter { phase, plan, kind, wave, depends_on, files_modified, autonomous, user_setup, must_haves, rest, .. } =
        read(PLAN).plan.frontmatter;
    assert_eq!((phase.as_deref(), plan.as_deref(), kind.as_deref()), (Some("07.2-search"), Some("08"), Some("execute")));
    assert_eq!((wave, autonomous), (Some(2), Some(false)));
    assert_eq!(depends_on, ["07.2-06", "07.2-07"]);
    assert_eq!(files_modified, ["src/(app)/index.ts"]);
    assert_eq!(user_setup[0]["service"], "mail");
    assert_eq!(must_haves.truths, ["Search finds things", "Login: works"]);
    let artifact = &must_haves.artifacts[0];
    assert_eq!((artifact.path.as_str(), artifact.provides.as_str(), artifact.min_lines), ("src/index.ts", "The index", Some(40)));
    assert_eq!(
        (artifact.contains.as_slice(), artifact.exports.as_slice()),
        (&["export".to_owned()][..], &["find".into(), "add".into()][..])
    );
    assert_eq!(artifact.line, line_of("path: \"src/index.ts\""));
    assert_eq!(must_haves.artifacts[1].path, "src/other.ts");
    assert_eq!(must_haves.key_links[0].pattern.as_deref(), Some("import.*b"));
    assert_eq!(rest, [("tags".to_owned(), serde_json::json!(["x"]))]);
}

#[test]
fn an_auto_task_has_files_action_checks_and_done_criteria() {
    let task = &read(PLAN).plan.tasks[0];
    assert_eq!((task.name.as_str(), task.number, task.tdd), ("Build the index", 1, true));
    assert_eq!(task.place, Place { line: line_of("<task type=\"auto\" tdd"), column: 1 });
    assert_eq!(task.files, ["src/(app)/index.ts", "src/b.ts"]);
    assert!(
        task.action.starts_with("Write it with") && task.action.contains("\n<task type=\"auto\">\n</task>\n"),
        "{}",
        task.action
    );
    assert!(task.action.ends_with("<form action={send}>."), "{}", task.action);
    assert_eq!(
        (task.read_first.as_str(), task.behavior.as_str(), task.done.as_str()),
        ("- docs/design.md", "finds \"a\"", "It finds things")
    );
}

#[test]
fn only_automated_elements_and_shell_fences_of_verify_are_commands() {
    let verify = &read(PLAN).plan.tasks[0].verify;
    let commands: Vec<(&str, Place)> = verify.commands.iter().map(|command| (command.command.as_str(), command.place)).collect();
    assert_eq!(
        commands,
        [
            ("npm test && npm run build", Place { line: line_of("<automated>npm"), column: 16 }),
            ("grep -q export src/index.ts", Place { line: line_of("grep -q"), column: 5 }),
        ]
    );
    assert!(verify.prose.starts_with("Look at it first.") && verify.prose.contains("test()"), "{}", verify.prose);
    assert!(!verify.prose.contains("grep"), "{}", verify.prose);
}

#[test]
fn checkpoints_are_parsed_with_all_their_parts() {
    let tasks = read(PLAN).plan.tasks;
    assert_eq!((tasks[1].name.as_str(), tasks[1].resume_word()), ("The index", Some("verified")));
    assert_eq!((tasks[1].built.as_str(), tasks[1].steps.as_str()), ("The index. It is quick.", "1. Open it\n   - twice"));
    assert_eq!(
        (tasks[2].gate, tasks[2].decision.as_str(), tasks[2].context.as_str()),
        (PlanGate::NonBlocking, "Which store?", "It stays.")
    );
    let option = |id: &str, name: &str, pros: &str, cons: &str| PlanOption {
        id: id.into(),
        name: name.into(),
        pros: pros.into(),
        cons: cons.into(),
        text: String::new(),
    };
    assert_eq!(
        tasks[2].options,
        [option("sqlite", "SQLite", "One file", "One writer"), option("pg", "PostgreSQL", "Many", "A server")]
    );
    assert_eq!((tasks[3].name.as_str(), tasks[3].instructions.as_str()), ("Click the link in the letter", "Open your mail."));
    assert_eq!(tasks[3].verification.commands[0].command, "mail --check");
    assert_eq!(tasks[3].others, [Section { tag: "hint".into(), text: "It may be in the spam.".into() }]);
}

#[test]
fn an_unknown_type_or_gate_keeps_a_person_in_the_loop() {
    let (tasks, problems) = tasks(
        "<task type=\"checkpoint:human-verfy\" gate=\"soft\">\n<what-built>x</what-built>\n</task>\n\
         <task type=\"manual\">\n<action>y</action>\n</task>\n",
    );
    assert!(tasks.iter().all(|task| task.kind == PlanTaskKind::Verify && task.gate == PlanGate::Blocking), "{tasks:?}");
    assert_eq!(tasks[1].action, "y");
    assert!(problems.iter().all(|problem| problem.severity == Severity::Warning));
    assert_eq!(
        diagnostics(&problems),
        [
            (1, 1, "invalid-value", "`checkpoint:human-verfy` is not a type of task; it is read as a verification by a person"),
            (1, 1, "invalid-value", "`soft` is not a gate; it waits for a person"),
            (4, 1, "invalid-value", "`manual` is not a type of task; it is read as a verification by a person"),
        ]
    );
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `checkpoint:human-verify`?"));
}

#[test]
fn the_type_of_an_untyped_task_is_inferred() {
    let source = "<task>\n<name>a</name><action>x</action>\n</task>\n<task>\n<decision>b</decision>\n<option id=\"y\">Yes</option>\n</task>\n<task/>\n";
    let (tasks, problems) = tasks(source);
    assert_eq!(
        tasks.iter().map(|task| task.kind).collect::<Vec<_>>(),
        [PlanTaskKind::Auto, PlanTaskKind::Decision, PlanTaskKind::Auto]
    );
    assert_eq!(tasks[1].options[0].name, "Yes");
    assert_eq!(problems.iter().filter(|problem| problem.message.starts_with("this task has no type")).count(), 3);
}

#[test]
fn unclosed_and_nested_tasks_are_all_found() {
    let source = "<tasks>\n<task type=\"auto\">\n<name>a</name>\n<action>x\n<task type=\"auto\">\n<name>b</name><action>y</action>\n\
                  </task>\n</task>\n<task type=\"auto\"\n<name>c</name><action>z</action>\n</tasks>\n<done>late</done>\n";
    let Read { plan, problems } = read(source);
    assert_eq!(plan.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!((plan.tasks[0].action.as_str(), plan.tasks[2].action.as_str()), ("x", "z"));
    assert_eq!(
        diagnostics(&problems)[1..],
        [
            (2, 1, "unclosed-tag", "this task is not closed before the next task starts"),
            (4, 1, "unclosed-tag", "`<action>` is not closed in its task"),
            (8, 1, "stray-tag", "`</task>` without an open task"),
            (9, 1, "unclosed-tag", "this tag has no `>`; the task is read as starting after it"),
            (9, 1, "unclosed-tag", "this task is not closed before the tasks end"),
            (12, 1, "stray-tag", "`<done>` is outside of any task"),
        ]
    );
}

#[test]
fn task_tags_in_prose_create_no_tasks_and_give_a_warning() {
    let source =
        "<task type=\"auto\">\n<name>a</name>\n<action>\nFor each <task> in `<task type=\"auto\">` do it.\n</action>\n</task>\n";
    let (tasks, problems) = tasks(source);
    assert_eq!(tasks.len(), 1);
    assert_eq!(
        diagnostics(&problems).iter().map(|diagnostics| (diagnostics.0, diagnostics.1, diagnostics.2)).collect::<Vec<_>>(),
        [(4, 10, "stray-tag"), (4, 21, "stray-tag")]
    );
}

#[test]
fn an_unclosed_fence_hides_no_task() {
    let source = "<task type=\"auto\">\n<name>a</name>\n<action>\n```ts\nx\n</action>\n<verify><automated>make</automated></verify>\n</task>\n\
                  <task type=\"auto\">\n<name>b</name>\n<action>\n```ts\ny\n```\n</action>\n</task>\n";
    let (tasks, problems) = tasks(source);
    assert_eq!(tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(tasks[0].verify.commands[0].command, "make");
    assert_eq!(
        diagnostics(&problems),
        [(4, 1, "unclosed-fence", "this code fence is still open at `</action>`; it is read as ending there")]
    );
}

#[test]
fn a_missing_check_is_not_a_command() {
    let source = "<task type=\"auto\">\n<name>a</name>\n<action>x</action>\n<verify><automated>MISSING - comes later</automated></verify>\n</task>\n";
    let (tasks, problems) = tasks(source);
    assert_eq!((tasks[0].verify.commands.len(), tasks[0].verify.prose.as_str()), (0, "MISSING - comes later"));
    assert_eq!(problems.len(), 1);
}

#[test]
fn invalid_frontmatter_lines_are_read_as_text() {
    let source = "---\nphase: 1\nmust_haves:\n  truths:\n    - \"Says \"hello\" to all\"\n  key_links:\n    - from: a\n      pattern: \"\\d+\\.ts\"\n---\n<task type=\"auto\"><name>a</name><action>x</action></task>";
    let Read { plan, problems } = read(source);
    assert_eq!(plan.frontmatter.must_haves.truths, ["Says \"hello\" to all"]);
    assert_eq!(plan.frontmatter.must_haves.key_links[0].pattern.as_deref(), Some("\\d+\\.ts"));
    assert_eq!(plan.tasks.len(), 1);
    assert_eq!(
        problems.iter().map(|problem| (problem.line, problem.severity)).collect::<Vec<_>>(),
        [(5, Severity::Warning), (8, Severity::Warning)]
    );
}

#[test]
fn unreadable_frontmatter_is_an_error_with_a_position_and_tasks_are_still_parsed() {
    let source = "---\nphase: 1\nphase: 2\n  - x\n---\n<task type=\"auto\"><name>a</name><action>x</action></task>";
    let Read { plan, problems } = read(source);
    assert_eq!(plan.tasks.len(), 1);
    assert!(problems.iter().any(|problem| problem.severity == Severity::Error && problem.line > 1), "{problems:?}");
    let unended = read("---\nphase: 1\n<task type=\"auto\"><name>a</name><action>x</action></task>");
    assert_eq!((unended.plan.tasks.len(), unended.problems[0].severity), (1, Severity::Error));
}

#[test]
fn invalid_frontmatter_values_are_reported_with_positions() {
    let source = "\u{feff}---\r\nwave: two\r\nautonomous: maybe\r\ndepends_on: 01, 02\r\nfiles_modified: none\r\n---\r\n<task type=\"auto\">\r\n<name>a</name>\r\n<action>x</action>\r\n</task>";
    let Read { plan, problems } = read(source);
    assert_eq!((plan.frontmatter.wave, plan.frontmatter.autonomous), (None, Some(false)));
    assert_eq!(
        (plan.frontmatter.depends_on.as_slice(), plan.frontmatter.files_modified.len()),
        (&["01".to_owned(), "02".into()][..], 0)
    );
    assert_eq!(problems.iter().map(|problem| (problem.line, problem.column)).collect::<Vec<_>>(), [(2, 7), (3, 13)]);
    assert_eq!(plan.tasks[0].place, Place { line: 7, column: 1 });
}

#[test]
fn a_plan_without_tasks_is_an_error() {
    let problems = read("---\nphase: 1\n---\nNothing.\n").problems;
    assert_eq!(diagnostics(&problems), [(4, 1, "empty-plan", "the plan has no tasks")]);
}
