//! Requirements A10 to A13 end to end: the workflow format around the checkpoints, as people actually write it.

use crate::project::{Output, Project};
use serde_json::json;

const SAYS: &str = "cat > asked-$LOCKGATE_TASK.txt; echo by $LOCKGATE_TASK";

fn ended(output: &Output, code: i32) {
    assert_eq!(output.code, Some(code), "{}\n{}", output.stdout, output.stderr);
}

fn finished(project: &Project) -> Vec<String> {
    let events = project.events(&project.newest(), "task_finished");
    events.iter().map(|event| format!("{}/{}", event["phase"].as_str().unwrap(), event["task"].as_str().unwrap())).collect()
}

fn run(project: &Project, more: &[&str]) -> Output {
    let arguments: Vec<&str> = ["run", "flow.yaml", "login", "--agent", SAYS].into_iter().chain(more.iter().copied()).collect();
    project.run(&arguments)
}

#[test]
fn a10_strict_runs_the_listed_agents_then_the_main_script() {
    let project = Project::with(
        "
name: flow
phases:
  - id: find
    description: Find all of it
    subagents:
      - { type: scout, config: { output_path: '{{feature.name}}/found.md', depth: 2 } }
      - scout
    main_agent:
      script: |
        writeFile('plan.md', readFile('found.md').length + ' ' + context.subagents_spawned);
        return { status: 'complete' };
",
    );
    ended(&run(&project, &[]), 0);
    let mut done = finished(&project);
    assert_eq!(done.pop().as_deref(), Some("find/main"));
    done.sort();
    assert_eq!(done, ["find/scout", "find/scout-2"]);
    let out = format!(".lockgate/runs/{}/out", project.newest());
    assert_eq!(project.read(&format!("{out}/plan.md")), "9 2");
    let asked = project.read("asked-scout.txt");
    for part in ["You are the subagent `scout`.", "Find all of it", "Feature: login", "\"depth\": 2", "found.md"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    let deliverable = &project.status(&project.newest())["context"]["deliverables"][0];
    assert_eq!((&deliverable["path"], &deliverable["subagent"]), (&json!("found.md"), &json!("scout")));
}

#[test]
fn a10_prompt_files_are_read_from_the_workflow_directory_and_frozen_with_the_run() {
    let project = Project::with(
        "
name: flow
phases:
  - id: find
    skills: [reading]
    subagents: [scout, { type: judge, config: { size: 3 } }]
",
    );
    project.write("subagents/scout.md", "Scout {{feature.name}} {{nowhere}}\n{{#phase.skills}}- {{.}}\n{{/phase.skills}}");
    project.write("subagents/prompts/judge/default.md.tmpl", "Judge {{config.size}} of {{phase.name}}");
    ended(&run(&project, &[]), 0);
    assert!(project.read("asked-scout.txt").starts_with("Scout login \n- reading\n"), "{}", project.read("asked-scout.txt"));
    assert!(project.read("asked-judge.txt").starts_with("Judge 3 of find"), "{}", project.read("asked-judge.txt"));
    let created = &project.events(&project.newest(), "created")[0];
    let files: Vec<&str> = created["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(files, ["flow.yaml", "subagents/prompts/judge/default.md.tmpl", "subagents/scout.md"]);
}

#[test]
fn a10_loose_runs_only_the_main_script_and_passes_it_the_suggestions() {
    let project = Project::with(
        "
name: flow
execution_mode: loose
phases:
  - id: think
    subagents: [scout]
    suggested_subagents: [{ type: judge }]
    main_agent: { script: 'return phase.suggested_subagents' }
",
    );
    ended(&run(&project, &[]), 0);
    assert_eq!(finished(&project), ["think/main"]);
    assert_eq!(project.status(&project.newest())["context"]["outputs"]["think"]["main"], json!(["judge", "scout"]));
}

#[test]
fn a10_adaptive_runs_the_always_listed_agents_then_those_the_script_names() {
    let project = Project::with(
        "
name: flow
execution_mode: adaptive
phases:
  - id: work
    subagents:
      always: [{ type: scout, config: { output_path: found.md } }]
      adaptive:
        script: |
          return readFile('found.md').includes('scout') ? [{ type: 'fixer', config: { output_path: 'fix.md' } }, 'fixer'] : [];
    main_agent: { script: \"return analyzeFiles('.')\" }
  - id: plain
    subagents: [last]
",
    );
    ended(&run(&project, &[]), 0);
    let mut done = finished(&project);
    done[1..3].sort();
    assert_eq!(done, ["work/scout", "work/fixer", "work/fixer-2", "work/adaptive", "work/main", "plain/last"]);
    let run = project.newest();
    assert_eq!(
        project.status(&run)["context"]["outputs"]["work"]["main"],
        json!({"coverage": 100, "files": ["fix.md", "found.md"]})
    );
    assert_eq!(project.events(&run, "task_fanned_out")[0]["tasks"].as_array().unwrap().len(), 2);
}

#[test]
fn a10_an_adaptive_script_that_names_no_agent_or_an_invalid_one_is_reported() {
    let flow = |script: &str| {
        format!(
            "name: flow\nexecution_mode: adaptive\nphases:\n  - id: a\n    subagents: {{ adaptive: {{ script: \"{script}\" }} }}\n"
        )
    };
    let project = Project::with(&flow("return []"));
    ended(&run(&project, &[]), 0);
    project.write("flow.yaml", flow("return [{ config: {} }]"));
    let output = run(&project, &[]);
    ended(&output, 1);
    assert!(output.stderr.contains("an agent needs a `type`"), "{}", output.stderr);
}

#[test]
fn a10_think_hard_queries_the_agent_once_and_a_second_evaluation_reuses_the_reply() {
    let project = Project::with(
        "
name: flow
phases:
  - id: think
    main_agent:
      script: |
        const one = thinkHard('first of ' + context.feature.name);
        const two = await thinkHard('second');
        return [one, two];
",
    );
    let agent = "cat >> asked.txt; echo >> asked.txt; wc -l < asked.txt | tr -d ' '";
    ended(&project.run(&["run", "flow.yaml", "login", "--agent", agent]), 0);
    assert_eq!(project.read("asked.txt"), "first of login\nsecond\n");
    let run = project.newest();
    assert_eq!(project.status(&run)["context"]["outputs"]["think"]["main"], json!(["1\n", "2\n"]));
    assert_eq!(project.events(&run, "agent_query_answered").len(), 2);
}

const GAPS: &str = "
name: flow
phases:
  - id: work
    tasks: [{ id: make, run: 'echo x >> made.txt; if [ $(wc -l < made.txt) -ge 3 ]; then mkdir -p $LOCKGATE_OUTPUT_DIR; echo ok > $LOCKGATE_OUTPUT_DIR/whole.txt; fi' }]
    gap_check:
      criteria:
        - { name: It is whole, check: \"files_exist(['whole.txt'])\" }
        - { name: No phase is odd, check: 'context.phases.iteration_counts[phase.id] < 100' }
      on_failure: { action: retry }
";

#[test]
fn a11_unmet_criteria_rerun_the_phase_with_the_gaps() {
    let project = Project::with(&format!("{GAPS}      max_iterations: 5\n"));
    ended(&run(&project, &[]), 0);
    let status = project.status(&project.newest());
    let checks = status["context"]["gap_checks"].as_array().unwrap().clone();
    let reported: Vec<_> = checks
        .iter()
        .map(|check| (check["iteration"].clone(), check["status"].clone(), check.get("action_taken").cloned()))
        .collect();
    let retry = Some(json!("retry"));
    assert_eq!(
        reported,
        [
            (json!(1), json!("incomplete"), retry.clone()),
            (json!(2), json!("incomplete"), retry),
            (json!(3), json!("complete"), None)
        ]
    );
    assert_eq!(checks[0]["gaps"], json!(["It is whole"]));
    assert_eq!(status["context"]["phases"]["iteration_counts"]["work"], 3);
    let started = project.events(&project.newest(), "phase_started");
    assert_eq!(started[1]["feedback"], "It is whole");
}

#[test]
fn a11_a_person_decides_after_the_iteration_limit() {
    let project = Project::with(&format!("{GAPS}      max_iterations: 2\n"));
    ended(&run(&project, &[]), 3);
    let run_id = project.newest();
    let hold = &project.status(&run_id)["holds"][0];
    assert_eq!(hold["kind"], "gaps");
    let labels: Vec<&str> = hold["options"].as_array().unwrap().iter().map(|option| option["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["Run the phase again", "Continue anyway", "Abort"]);
    let waiting = project.waiting_hold();
    ended(&project.run(&["answer", &waiting, "Run the phase again", "--foreground"]), 0);
    assert_eq!(project.status(&run_id)["status"], "complete");
    std::fs::remove_file(project.path("made.txt")).unwrap();
    ended(&run(&project, &["--answer", "work/gap_check=Continue anyway"]), 0);
    std::fs::remove_file(project.path("made.txt")).unwrap();
    ended(&run(&project, &["--answer", "work/gap_check=Abort"]), 2);
}

#[test]
fn a11_a_script_may_call_more_agents_escalate_or_abort() {
    let flow = |script: &str| {
        format!(
            "
name: flow
phases:
  - id: work
    subagents: [{{ type: scout, config: {{ output_path: found.md }} }}]
    gap_check:
      script: |
        const gaps = identifyGaps(['found.md', 'more.md']);
        if (gaps.length === 0) return {{ status: 'complete' }};
        return {{ status: 'incomplete', gaps, message: 'look', {script} }};
"
        )
    };
    let project = Project::with(&flow(
        "action: 'spawn_additional', additionalAgents: [{ type: 'helper', config: { output_path: 'more.md' } }]",
    ));
    ended(&run(&project, &[]), 0);
    assert_eq!(finished(&project), ["work/scout", "work/helper"]);
    let status = project.status(&project.newest());
    assert_eq!(status["context"]["gap_checks"][0]["agents_spawned"], json!(["helper"]));
    assert_eq!(status["context"]["gap_checks"][0]["gaps"], json!(["more.md is missing"]));
    project.write("flow.yaml", flow("action: 'escalate'"));
    ended(&run(&project, &[]), 3);
    project.write("flow.yaml", flow("action: 'abort'"));
    let output = run(&project, &[]);
    ended(&output, 1);
    assert!(output.stderr.contains("the work of phase work is incomplete: look; more.md is missing"), "{}", output.stderr);
    assert_eq!(project.status(&project.newest())["status"], "failed");
    ended(&project.run(&["resume", &project.newest()]), 1);
}

#[test]
fn a11_criteria_that_cannot_be_evaluated_are_shown_to_a_person() {
    let project = Project::with(
        "
name: flow
phases:
  - id: work
    tasks: [{ id: make, pass: true }]
    gap_check: { script: \"throw new Error('broken')\" }
  - id: next
    tasks: [{ id: make, pass: true }]
    gap_check: { criteria: [{ name: odd, check: nowhere.x }], on_failure: { action: escalate } }
",
    );
    ended(&run(&project, &[]), 3);
    let hold = &project.status(&project.newest())["holds"][0];
    assert!(hold["notes"][0].as_str().unwrap().contains("the gap check failed: Error: broken"), "{hold}");
    let waiting = project.waiting_hold();
    let output = project.run(&["answer", &waiting, "continue", "--foreground"]);
    ended(&output, 3);
    assert!(output.stderr.contains("odd: ReferenceError"), "{}", output.stderr);
}

#[test]
fn a12_the_finalization_is_rendered_from_the_context() {
    let project = Project::with(
        "
name: flow
phases:
  - id: one
    subagents: [{ type: scout, config: { output_path: found.md } }]
    checkpoint:
      prompt: Good?
      options: [{ label: 'Yes', with_feedback: true, on_select: { action: continue } }]
finalization:
  template: templates/final.md.tmpl
  output: '{{feature.name}}/FINAL.md'
",
    );
    let template = "# {{feature.name}} ({{workflow.name}})\n{{#phases.completed}}\n- {{.}}\n{{/phases.completed}}\n{{#deliverables}}\n{{path}} by {{subagent}}: {{size_bytes}}\n\
         {{/deliverables}}\n{{#checkpoints}}\n{{phase}}: {{decision}}{{#feedback}} ({{feedback}}){{/feedback}}\n{{#if (eq decision \"approve\")}}never{{/if}}\n{{/checkpoints}}\n\
         {{deliverables.length}} {{subagents_spawned}} {{nowhere}}\n";
    project.write("templates/final.md.tmpl", template);
    ended(&run(&project, &["--answer", "one=Yes", "--feedback", "one=fine"]), 0);
    let run = project.newest();
    assert_eq!(
        project.read(&format!(".lockgate/runs/{run}/out/FINAL.md")),
        "# login (flow)\n- one\nfound.md by scout: 9\none: continue (fine)\n\n1 1 \n"
    );
    assert_eq!(project.events(&run, "finalized")[0]["file"]["path"], "FINAL.md");
    std::fs::remove_file(project.path("templates/final.md.tmpl")).unwrap();
    let output = project.run(&["validate", "flow.yaml"]);
    ended(&output, 4);
    assert!(output.stderr.contains("missing-file") && output.stderr.contains("flow.yaml:10:13"), "{}", output.stderr);
}

#[test]
fn a13_a_file_in_the_successor_format_is_recognized() {
    let project = Project::with("name: x\ncheckpoints: [{ after: a }]\nphases: [{ name: a }]\n");
    let output = project.run(&["validate", "flow.yaml"]);
    ended(&output, 4);
    assert!(output.stderr.contains("error[successor-format]"), "{}", output.stderr);
}
