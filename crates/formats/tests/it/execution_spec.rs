//! EXECUTION-SPEC files as workflows, and the position of every error in them.

use crate::lines;
use lockgate_engine::spec::includes::{IncludeError, Includes, NoIncludes};
use lockgate_engine::spec::workflow::{Phase, Prompt, Work, Workflow};
use lockgate_formats::execution_spec::with_gate_commands;
use lockgate_formats::file_format::{self, Format};

const SPEC: &str = r#"---
# An EXECUTION-SPEC
prd: PRD-009
prd_title: "Cashier Workflows"
workstreams:
  WS1:
    name: Database layer
    description: "Tables for {{cash}}"
    executor: schema-builder
    executor_type: skill
    depends_on: []
    outputs:
      - db/YYYYMMDDHHMMSS_cash.sql
      - types/db.ts (regenerated)
      - A decision record
    gate: schema
    hints:
      - keep it small
      - { file: a.sql, change: one line }
  WS2:
    name: Service
    agent: service-builder
    depends_on: [WS1]
    gates: [type-check]
  WS3:
    name: Routes
    command: make routes
    depends_on: WS2
    gate: lint
  WS4:
    name: Screen
    depends_on: [WS2]
execution_phases:
  - name: "Phase 1 — Foundation"
    parallel: [WS1]
    gates: [schema]
  - name: "Phase 2 — Service and routes"
    parallel: [WS2, WS3]
    gates: [type-check, lint]
  - name: Look at it
    note: Waits for the designers.
    parallel: [WS4]
    gates: [review]
gates:
  schema: { command: make schema, success_criteria: Exit code 0 }
  type-check: { command: make types }
  lint: make lint
  review:
    success_criteria: Two people have looked at it
---
# Cashier

### WS1: Database layer

Use `numeric` columns.

### WS10: something else
"#;

fn spec(source: &str) -> Workflow {
    let diagnostics = file_format::read_with_includes(source, &mut NoIncludes);
    assert_eq!(diagnostics.format, Format::ExecutionSpec);
    assert_eq!(diagnostics.read.problems, [], "{source}");
    diagnostics.read.workflow.expect("a workflow")
}

fn diagnostics(source: &str) -> Vec<String> {
    lines(file_format::read_with_includes(source, &mut NoIncludes).read)
}

/// A file with these workstreams, phases and gates in flow style, on lines 3 to 5.
fn small(workstreams: &str, phases: &str, gates: &str) -> String {
    format!("---\nprd: PRD-001\nworkstreams: {workstreams}\nexecution_phases: {phases}\ngates: {gates}\n---\n# Body\n")
}

fn gates(phase: &Phase) -> Vec<(&str, &str, Option<&str>, &str)> {
    let one = phase.gates.iter();
    one.map(|gate| (gate.id.as_str(), gate.title(), gate.task.as_ref().map(|task| task.as_str()), gate.run.as_str())).collect()
}

#[test]
fn workstreams_become_tasks_in_phases_with_needs_among_them() {
    let workflow = spec(SPEC);
    assert_eq!((workflow.name.as_str(), workflow.description.as_deref()), ("PRD-009", Some("Cashier Workflows")));
    let ids: Vec<&str> = workflow.phases.iter().map(|phase| phase.id.as_str()).collect();
    assert_eq!(ids, ["phase-1", "phase-2", "look-at-it"]);
    let tasks = &workflow.phases[1].tasks;
    assert_eq!(tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["WS2", "WS3"]);
    assert_eq!(tasks[0].needs, [], "an earlier phase needs no arrow");
    assert_eq!(tasks[1].needs.iter().map(|task| task.as_str()).collect::<Vec<_>>(), ["WS2"]);
    assert_eq!(tasks[0].agent().and_then(|work| work.agent.as_deref()), Some("service-builder"));
    assert_eq!(tasks[1].work, Work::Run("make routes".into()));
    let pipeline = workflow.pipeline.expect("a pipeline");
    assert_eq!((pipeline.prd.as_str(), pipeline.title.as_str()), ("PRD-009", "Cashier Workflows"));
    assert_eq!(pipeline.phases.len(), workflow.phases.len());
    let outputs: Vec<(&str, Option<&str>)> =
        pipeline.workstreams[0].outputs.iter().map(|output| (output.said.as_str(), output.path.as_deref())).collect();
    assert_eq!(
        outputs,
        [
            ("db/YYYYMMDDHHMMSS_cash.sql", Some("db/*_cash.sql")),
            ("types/db.ts (regenerated)", Some("types/db.ts")),
            ("A decision record", None)
        ]
    );
}

#[test]
fn a_workstream_gate_reruns_for_the_phase_if_other_work_follows_it() {
    let workflow = spec(SPEC);
    assert_eq!(gates(&workflow.phases[0]), [("schema-WS1", "schema (WS1)", Some("WS1"), "make schema")]);
    assert_eq!(
        gates(&workflow.phases[1]),
        [
            ("type-check-WS2", "type-check (WS2)", Some("WS2"), "make types"),
            ("lint-WS3", "lint (WS3)", Some("WS3"), "make lint"),
            ("type-check", "type-check", None, "make types"),
        ],
        "WS3 comes after the type check of WS2; nothing comes after the lint of WS3"
    );
}

#[test]
fn a_gate_without_a_command_is_decided_by_a_person() {
    let workflow = spec(SPEC);
    let last = &workflow.phases[2];
    assert_eq!(gates(last), []);
    let asked = last.checkpoint.as_ref().expect("a question");
    assert_eq!(
        asked.prompt,
        "Look at it is done (3 of 3).\nBy continuing, you confirm:\n- review: Two people have looked at it\nIs the pipeline complete?"
    );
    let manual_gates = &workflow.pipeline.as_ref().expect("a pipeline").manual_gates;
    assert_eq!((manual_gates[0].title.as_str(), manual_gates[0].phase.as_str()), ("review", "look-at-it"));
}

#[test]
fn a_person_starts_each_later_phase_and_sees_its_contents() {
    let workflow = spec(SPEC);
    let asked = workflow.phases[1].checkpoint.as_ref().expect("a question");
    assert_eq!(
        asked.prompt,
        "Phase 2 — Service and routes is done (2 of 3).\nNext: Look at it (WS4 Screen).\nWaits for the designers.\nContinue with next phase?"
    );
    assert_eq!(asked.options.iter().map(|option| option.label.as_str()).collect::<Vec<_>>(), ["Continue", "Abort"]);
    let alone = spec(&small("{WS1: {}}", "[{parallel: [WS1]}]", "{}"));
    assert!(alone.phases[0].checkpoint.is_none(), "nothing comes after the last phase");
}

#[test]
fn the_prompt_contains_everything_that_the_spec_says_about_the_workstream() {
    let workflow = spec(SPEC);
    let agent = workflow.phases[0].tasks[0].agent().expect("an agent");
    let Prompt::Text(prompt) = &agent.prompt else { panic!("{:?}", agent.prompt) };
    let expected = "# WS1: Database layer

This is workstream WS1 of PRD-009 (Cashier Workflows), in the phase \"Phase 1 — Foundation\".
Work as the skill `schema-builder`.

Tables for \\{{cash}}

## Outputs

- db/YYYYMMDDHHMMSS_cash.sql
- types/db.ts (regenerated)
- A decision record

## Hints

- keep it small
- file: a.sql
  change: one line

## Gates that must pass afterwards

- schema: `make schema` (Exit code 0)

---

From the specification:

### WS1: Database layer

Use `numeric` columns.
";
    assert_eq!(prompt, expected);
}

#[test]
fn alternative_forms_of_phases_gates_and_workstreams_are_parsed() {
    let source = "prd_id: PRD-001
workstreams:
  - { id: WS1, title: One, deliverables: { code: [src/a.rs: the first], docs: [{ path: docs/a.md, change: new }] } }
  - { id: WS2, needs: none, gate: none }
execution_phases:
  phase_1: { workstreams: [WS1, WS2], parallel: false, gate: both }
gates:
  - { id: both, commands: [make a, make b], files_required: [src/a.rs], timeout: 5m }
";
    let workflow = spec(source);
    let phase = &workflow.phases[0];
    assert_eq!((phase.id.as_str(), phase.title()), ("phase-1", "phase_1"));
    assert_eq!(phase.tasks[1].needs, [phase.tasks[0].id.clone()], "one after the other");
    let gate = &phase.gates[0];
    let run = "test -e 'src/a.rs' || { printf '%s is missing\\n' 'src/a.rs' >&2; exit 1; }\n{ make a\n} && { make b\n}";
    assert_eq!((gate.run.as_str(), gate.timeout.map(|timeout| timeout.as_secs())), (run, Some(300)));
    let outputs = &workflow.pipeline.as_ref().expect("a pipeline").workstreams[0].outputs;
    assert_eq!(outputs.iter().map(|output| output.said.as_str()).collect::<Vec<_>>(), ["src/a.rs", "docs/a.md"]);
}

#[test]
fn remarks_paths_and_inline_gates_are_parsed() {
    let source = "prd: docs/prd/PRD-001.md
id: PRD-001
workstreams:
  WS1: { gate: lint (WS1) }
  WS2: { depends_on: ['WS1 (schema)'], gates: [{ name: test, command: make test }] }
execution_phases: [{ parallel: [WS1, 'WS2: the rest'], gates: [test] }]
gates: { lint: make lint }
";
    let workflow = spec(source);
    assert_eq!(workflow.name, "PRD-001");
    let phase = &workflow.phases[0];
    assert_eq!(phase.tasks[1].needs, [phase.tasks[0].id.clone()]);
    assert_eq!(
        gates(phase),
        [("lint-WS1", "lint (WS1)", Some("WS1"), "make lint"), ("test-WS2", "test (WS2)", Some("WS2"), "make test")]
    );
}

#[test]
fn a_state_file_inside_the_lockgate_or_git_directory_is_refused() {
    let source = small("{ WS1: { name: A, command: 'true' } }", "[{ name: One, parallel: [WS1] }]", "{}");
    for (place, refused) in [(".lockgate/lockgate.db", true), ("./.git/config", true), (".LOCKGATE/x", true), ("a/.git/x", false)]
    {
        let source = source.replacen("prd:", &format!("state_file: {place}\nprd:"), 1);
        let diagnostics = diagnostics(&source).join(" ");
        assert_eq!(diagnostics.contains("inside a directory of Lockgate or Git"), refused, "{place}: {diagnostics}");
    }
}

#[test]
fn dependencies_on_a_later_phase_or_itself_are_reported() {
    assert_eq!(
        diagnostics(&small(
            "{WS1: {depends_on: [WS2]}, WS2: {}}",
            "[{name: A, parallel: [WS1]}, {name: B, parallel: [WS2]}]",
            "{}"
        )),
        [
            "3:34 warning phase-order: workstream `WS1` of phase `A` depends on `WS2`, so it runs in the later phase `B` (list `WS1` under phase `B`, or move its dependency to an earlier phase)",
            "4:20 warning empty-phase: this phase does nothing (list its workstreams under `parallel`, or remove it)"
        ]
    );
    assert_eq!(
        diagnostics(&small("{A: {depends_on: B}, B: {depends_on: C}, C: {depends_on: A}}", "[{parallel: [A, B, C]}]", "{}")),
        ["3:31 dependency-cycle: these workstreams depend on each other: A → B → C → A (remove one of these dependencies)"]
    );
    assert_eq!(
        diagnostics(&small("{A: {depends_on: A}}", "[{parallel: [A]}]", "{}")),
        ["3:31 dependency-cycle: these workstreams depend on each other: A → A (remove one of these dependencies)"]
    );
    assert_eq!(
        diagnostics(&small("{WS1: {}, WS2: {depends_on: [WS11]}}", "[{parallel: [WS1, WS2]}]", "{}")),
        ["3:43 unknown-task: workstream `WS2` depends on `WS11`, which is not defined (did you mean `WS1`?)"]
    );
}

#[test]
fn a_workstream_belongs_to_exactly_one_phase() {
    assert_eq!(
        diagnostics(&small("{WS1: {}, WS2: {}}", "[{parallel: [WS1]}, {parallel: [WS1, WS3]}]", "{}")),
        [
            "3:24 warning unscheduled-task: workstream `WS2` is not in any phase; it runs in phase `Phase 1` (add it to a phase under `execution_phases`, or mark it with `deferred: true`)",
            "4:51 duplicate-id: workstream `WS1` is in two phases (it is also listed on line 4; keep one of them)",
            "4:56 unknown-task: workstream `WS3` is not defined under `workstreams` (did you mean `WS1`?)",
        ]
    );
    let deferred = small("{WS1: {}, WS2: {deferred: true}}", "[{parallel: [WS1]}]", "{}");
    assert_eq!(
        diagnostics(&deferred),
        [
            "3:24 warning unscheduled-task: workstream `WS2` is deferred and not in any phase, so it does not run (add it to a phase under `execution_phases` to run it)"
        ]
    );
}

/// The workflow of a file without errors, and its warnings.
fn lenient(source: &str) -> (Workflow, Vec<String>) {
    let read = file_format::read_with_includes(source, &mut NoIncludes).read;
    let workflow = read.workflow.clone().expect("a workflow");
    (workflow, lines(read))
}

fn phase_of(workflow: &Workflow, workstream: &str) -> usize {
    workflow.pipeline.as_ref().and_then(|pipeline| pipeline.phase_of(workstream)).expect("a phase")
}

#[test]
fn a_workstream_without_a_phase_runs_after_its_dependencies() {
    let streams = "{WS1: {}, WS2: {}, WS3: {depends_on: [WS2]}, WS4: {depends_on: [WS3, WS1]}}";
    let (workflow, diagnostics) = lenient(&small(streams, "[{parallel: [WS1]}, {parallel: [WS2]}, {parallel: []}]", "{}"));
    assert_eq!((phase_of(&workflow, "WS3"), phase_of(&workflow, "WS4")), (1, 1));
    let task = |id: &str| workflow.phases[1].task(id).expect("a task");
    assert_eq!((task("WS3").needs.len(), task("WS4").needs.len()), (1, 1));
    assert!(
        diagnostics[0].starts_with(
            "3:33 warning unscheduled-task: workstream `WS3` is not in any phase; it runs in phase `Phase 2`, after `WS2`"
        ),
        "{diagnostics:?}"
    );
    assert!(
        diagnostics[1].contains("workstream `WS4` is not in any phase; it runs in phase `Phase 2`, after `WS3`"),
        "{diagnostics:?}"
    );
}

#[test]
fn a_dependency_on_a_later_phase_moves_the_workstream_and_its_dependents() {
    let streams = "{WS1: {depends_on: [WS3]}, WS2: {depends_on: [WS1]}, WS3: {}}";
    let phases = "[{parallel: [WS1], gates: []}, {parallel: [WS2]}, {parallel: [WS3]}]";
    let (workflow, diagnostics) = lenient(&small(streams, phases, "{}"));
    assert_eq!(workflow.phases[2].tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["WS3", "WS1", "WS2"]);
    assert_eq!(diagnostics.iter().filter(|line| line.contains("warning phase-order")).count(), 2, "{diagnostics:?}");
    let circle = cycle_diagnostics();
    assert!(circle.iter().any(|line| line.contains("dependency-cycle")), "{circle:?}");
}

fn cycle_diagnostics() -> Vec<String> {
    diagnostics(&small(
        "{A: {depends_on: B}, B: {depends_on: A}, C: {depends_on: C}}",
        "[{parallel: [A]}, {parallel: [B]}]",
        "{}",
    ))
}

#[test]
fn conventional_gates_are_decided_by_a_person_unless_the_settings_have_a_command() {
    let streams = "{WS1: {gate: type-check + lint}, WS2: {gate: test-pass}}";
    let (mut workflow, diagnostics) =
        lenient(&small(streams, "[{parallel: [WS1, WS2], gates: [schema-validation]}]", "{lint: make lint}"));
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
    assert!(diagnostics[0].starts_with("3:27 warning unknown-gate: gate `type-check` is not defined under `gates`; it runs the command under `pipelines.gates` in the settings, or a person decides"), "{diagnostics:?}");
    assert_eq!(gates(&workflow.phases[0]), [("lint-WS1", "lint (WS1)", Some("WS1"), "make lint")]);
    let manual_gates = |workflow: &Workflow| {
        let gates = &workflow.pipeline.as_ref().expect("a pipeline").manual_gates;
        gates.iter().map(|gate| gate.title.clone()).collect::<Vec<_>>()
    };
    assert_eq!(manual_gates(&workflow), ["type-check (WS1)", "test-pass (WS2)", "schema-validation"]);
    let asked = |workflow: &Workflow| workflow.phases[0].checkpoint.as_ref().map(|checkpoint| checkpoint.prompt.clone());
    assert!(asked(&workflow).expect("a question").contains("- test-pass (WS2)\n"));
    let commands = [("type-check", "make types"), ("test-pass", "make test")];
    let commands = commands.map(|(name, command)| (name.to_owned(), command.to_owned())).into();
    with_gate_commands(&mut workflow, &commands);
    assert_eq!(manual_gates(&workflow), ["schema-validation"]);
    assert!(!asked(&workflow).expect("a question").contains("test-pass"), "{:?}", asked(&workflow));
    let ran: Vec<_> = gates(&workflow.phases[0]);
    assert_eq!(
        ran[1..],
        [
            ("type-check-WS1", "type-check (WS1)", Some("WS1"), "make types"),
            ("test-pass-WS2", "test-pass (WS2)", Some("WS2"), "make test"),
        ]
    );
    let listed = &workflow.pipeline.as_ref().expect("a pipeline").phases[0].gates;
    assert_eq!(listed.len(), 3);
}

#[test]
fn a_missing_prd_is_derived_from_the_file_name() {
    struct Named(&'static str);
    impl Includes for Named {
        fn read(&mut self, _: &str) -> Result<Option<String>, IncludeError> {
            Ok(None)
        }

        fn list(&mut self, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn file_name(&self) -> Option<String> {
            Some(self.0.to_owned())
        }
    }
    let source = "---\nworkstreams: {WS1: {}}\nexecution_phases: [{parallel: [WS1]}]\n---\n";
    for (file, prd) in [("EXEC-064-e2e-tests.md", "EXEC-064"), ("PRD-009.md", "PRD-009"), ("cashier.md", "cashier")] {
        let read = file_format::read_with_includes(source, &mut Named(file)).read;
        assert_eq!(read.workflow.as_ref().map(|workflow| workflow.name.as_str()), Some(prd));
        let diagnostics = lines(read);
        assert!(
            diagnostics[0].starts_with(&format!("2:1 warning missing-key: `prd` is missing; using `{prd}` from the file name")),
            "{diagnostics:?}"
        );
    }
    let read = file_format::read_with_includes(source, &mut Named("a b.md")).read;
    assert!(read.workflow.is_none());
}

#[test]
fn undefined_and_unused_gates_are_reported() {
    assert_eq!(
        diagnostics(&small("{WS1: {gate: tets}}", "[{parallel: [WS1], gates: [deploy]}]", "{test: make test, lint: make lint}")),
        [
            "3:27 unknown-gate: gate `tets` is not defined under `gates` (did you mean `test`?)",
            "4:46 unknown-gate: gate `deploy` is not defined under `gates` (available: `test`, `lint`)",
            "5:9 warning unused-key: gate `test` never runs: no phase or workstream names it (list it under `gates` of a phase, or remove it)",
            "5:26 warning unused-key: gate `lint` never runs: no phase or workstream names it (list it under `gates` of a phase, or remove it)",
        ]
    );
}

#[test]
fn paths_outside_the_root_and_invalid_file_names_are_refused() {
    let outputs = |output: &str| diagnostics(&small(&format!("{{WS1: {{outputs: ['{output}']}}}}"), "[{parallel: [WS1]}]", "{}"));
    assert_eq!(
        outputs("../a.ts (new)"),
        [
            "3:31 path-traversal: the output `../a.ts (new)` contains `..` (outputs must be inside the project root: write a relative path without `..`)"
        ]
    );
    assert!(outputs("/etc/passwd")[0].contains("is an absolute path"));
    assert!(outputs("~/x.ts")[0].contains("is an absolute path"));
    let id = diagnostics("---\nprd: ../x\nworkstreams: {'../y': {}, 'a b': {}}\nexecution_phases: []\n---\n");
    assert!(id[0].starts_with("2:6 invalid-id: `prd`, which names the state file, cannot be `../x`"), "{id:?}");
    assert!(id[1].starts_with("3:15 invalid-id: the id of a workstream cannot be `../y`"), "{id:?}");
    assert!(id[2].starts_with("3:27 invalid-id: "), "{id:?}");
}

#[test]
fn missing_required_parts_of_a_pipeline_are_reported() {
    assert_eq!(
        diagnostics("---\nworkstreams:\n---\n"),
        [
            "2:1 missing-key: an EXECUTION-SPEC needs `prd` (add the id of the pipeline, such as `prd: PRD-009`)",
            "2:1 missing-key: an EXECUTION-SPEC needs `workstreams`",
            "2:1 missing-key: an EXECUTION-SPEC needs `execution_phases` (list the phases in order, each with `name` and the ids of its workstreams under `parallel`)",
        ]
    );
    assert_eq!(
        diagnostics(&small(
            "{WS1: {dependson: [], command: 'echo {{vars.x.}}'}}",
            "[{parallel: [WS1], paralel: true, gates: [a]}]",
            "[a, a]"
        )),
        [
            "3:21 warning unknown-key: unknown key `dependson` on a workstream (did you mean `depends_on`?)",
            "3:51 invalid-template: `vars.x.` is not a path (a path looks like {{vars.name}} or {{outputs.phase.task}})",
            "4:38 warning unknown-key: unknown key `paralel` on a phase (did you mean `parallel`?)",
            "5:12 duplicate-id: there are two gates called `a` (the first one is on line 5; rename one of them)",
        ]
    );
    assert_eq!(diagnostics("---\nprd: a\n: b\nworkstreams: [\n---\n").len(), 1, "unreadable YAML is reported once");
}

#[test]
fn a_state_file_given_as_a_workflow_is_recognized() {
    assert_eq!(
        diagnostics("{\"prd\": \"PRD-009\", \"status\": \"paused\"}"),
        [
            "1:1 not-a-workflow: this is a pipeline state file, not a workflow (check it with `lockgate pipeline check`; start a pipeline from its EXECUTION-SPEC, or continue this one with `lockgate pipeline import`)"
        ]
    );
}

#[test]
fn a_large_hostile_file_is_refused_or_parsed_in_bounded_memory() {
    let many = |count: usize| (0..count).map(|number| format!("W{number}: {{}}")).collect::<Vec<_>>().join(", ");
    let ids = |count: usize| (0..count).map(|number| format!("W{number}")).collect::<Vec<_>>().join(", ");
    let refused = diagnostics(&small(&format!("{{{}}}", many(1_001)), &format!("[[{}]]", ids(1_001)), "{}"));
    assert!(refused[0].contains("too-large: `workstreams`: the limit is 1000, found 1001"), "{refused:?}");
    let long = "x".repeat(200_000);
    let phases = format!("[{{note: {long}, name: {long}, parallel: [{}], gates: [g]}}]", ids(1_000));
    let workflow = spec(&small(&format!("{{{}}}", many(1_000)), &phases, "{g: {command: make, success_criteria: y}}"));
    assert!(workflow.to_bytes().len() < 8 << 20, "{}", workflow.to_bytes().len());
    let command = diagnostics(&small("{A: {gate: g}}", "[[A]]", &format!("{{g: 'echo {long}'}}")));
    assert!(command[0].contains("is longer than 16384 bytes"), "{command:?}");
}
