//! References that lead nowhere are reported when a file is read, before a run fails because of them.

use crate::{diagnostics, in_task, lines};
use lockgate_engine::spec::includes::{AgentLimits, IncludeError, Includes};
use lockgate_engine::spec::read_with_includes;
use lockgate_engine::spec::workflow::AgentSetting;
use std::collections::BTreeMap;

const NOTHING: [&str; 0] = [];

/// Three phases, of which the second reads something; the template is on line 7.
fn reading(template: &str, checkpoint: &str) -> String {
    format!(
        "name: test\nphases:\n  - id: plan\n    tasks: [{{id: write, pass: true}}]\n  - id: build\n    tasks:\n      - {{id: make, run: 'echo {template}'}}\n\
         \x20 - id: ship\n    tasks: [{{id: send, pass: true}}]\n{checkpoint}"
    )
}

#[test]
fn outputs_of_existing_earlier_tasks_may_be_read() {
    for template in
        ["{{outputs.plan.write}}", "{{outputs.plan.write.deep[0].x}}", "{{context.outputs.plan.write}}", "{{outputs.build.make}}"]
    {
        assert_eq!(diagnostics(&reading(template, "")), NOTHING, "{template}");
    }
    assert_eq!(diagnostics(&reading("{{outputs.plan}}", "")), NOTHING);
}

#[test]
fn an_output_of_an_unknown_phase_or_task_is_an_error() {
    assert_eq!(
        diagnostics(&reading("{{outputs.plam.write}}", "")),
        ["7:31 unknown-phase: there is no phase `plam` to read outputs from (did you mean `plan`?)"]
    );
    assert_eq!(
        diagnostics(&reading("{{outputs.plan.wrote}}", "")),
        ["7:31 unknown-task: phase `plan` has no task `wrote` (did you mean `write`?)"]
    );
    assert_eq!(
        diagnostics(&reading("{{context.outputs.nothing.x}}", "")),
        ["7:31 unknown-phase: there is no phase `nothing` to read outputs from (available: `plan`, `build`, `ship`)"]
    );
}

#[test]
fn an_output_of_a_later_phase_is_an_error_unless_the_run_can_go_back() {
    assert_eq!(
        diagnostics(&reading("{{outputs.ship.send}}", "")),
        [
            "7:31 phase-order: phase `ship` comes later, so its outputs never exist here (move the task after that phase, or read an earlier one)"
        ]
    );
    let back = "    checkpoint:\n      options:\n        - {label: Again, on_select: {action: repeat_phase, target: build}}\n        - {label: Go, on_select: {action: continue}}\n";
    assert_eq!(
        diagnostics(&reading("{{outputs.ship.send}}", back)),
        [
            "7:31 warning phase-order: phase `ship` comes later, so its outputs do not exist before the run goes back (give the task a `when` that is true only then, or move it after that phase)"
        ]
    );
}

#[test]
fn agents_chosen_by_a_script_may_have_any_output_name() {
    let source = "name: test\nexecution_mode: adaptive\nphases:\n  - id: plan\n    subagents: {adaptive: {script: 'return [];'}}\n  - id: build\n    tasks: [{id: make, run: 'echo {{outputs.plan.whatever}}'}]\n";
    assert_eq!(diagnostics(source), NOTHING);
}

#[test]
fn item_is_defined_only_in_a_fan_out() {
    assert_eq!(diagnostics(&in_task("for_each: [a, b]\nrun: 'echo {{item}}'")), NOTHING);
    assert_eq!(
        diagnostics(&in_task("run: 'echo {{item}}'")),
        [
            "6:20 invalid-template: `item` has no meaning here: the task does not run once per item of a list (give the task a list with `for_each`)"
        ]
    );
    let gate = "name: test\nphases:\n  - id: one\n    tasks: [{id: a, for_each: [x], run: 'echo {{item}}'}]\n    gates: [{id: g, run: 'test {{item}}'}]\n";
    assert_eq!(diagnostics(gate).len(), 1, "a gate of the phase belongs to no item: {:?}", diagnostics(gate));
}

/// A machine whose settings declare an agent, and on which a program is missing.
struct Machine;

impl Includes for Machine {
    fn read(&mut self, _: &str) -> Result<Option<String>, IncludeError> {
        Ok(None)
    }

    fn list(&mut self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn presets(&self) -> Vec<String> {
        vec!["claude".into(), "codex".into()]
    }

    fn agents(&self) -> Vec<String> {
        vec!["painter".into()]
    }

    fn agent_limits(&self, agents: &BTreeMap<String, AgentSetting>, wanted: Option<&str>) -> Option<AgentLimits> {
        let command = agents.get(wanted?)?.command.as_deref()?;
        let known = command == "claude";
        Some(AgentLimits { what: format!("the command `{command}`"), resumes: known, allows_tools: known, denies_tools: known })
    }

    fn missing_program(&self, preset: &str) -> Option<String> {
        (preset == "codex").then(|| "codex".to_owned())
    }
}

fn diagnostics_with_agents(source: &str) -> Vec<String> {
    lines(read_with_includes(source, &mut Machine))
}

fn with_agent(agents: &str, wanted: &str) -> String {
    format!("name: test\nagents: {agents}\nphases: [{{id: a, tasks: [{{id: t, agent: {wanted}, prompt: x}}]}}]\n")
}

#[test]
fn an_undeclared_agent_gives_a_warning_with_a_suggestion() {
    for wanted in ["reviewer", "painter", "default"] {
        assert_eq!(diagnostics_with_agents(&with_agent("{reviewer: ./review}", wanted)), NOTHING, "{wanted}");
    }
    assert_eq!(
        diagnostics_with_agents(&with_agent("{reviewer: ./review}", "reveiwer")),
        ["3:41 warning unknown-agent: agent `reveiwer` is not declared, so the default agent is used (did you mean `reviewer`?)"]
    );
    assert_eq!(
        diagnostics_with_agents(&with_agent("{reviewer: ./review}", "x")),
        [
            "3:41 warning unknown-agent: agent `x` is not declared, so the default agent is used (available: `reviewer`, `painter`)"
        ]
    );
    assert_eq!(diagnostics(&with_agent("{}", "x")), NOTHING, "the agent is chosen when the run starts");
}

#[test]
fn a_preset_without_its_program_installed_gives_a_warning() {
    let expected = "`codex` is not installed, but the preset `codex` needs it (install it, or add it to PATH)";
    assert_eq!(
        diagnostics_with_agents(&with_agent("{reviewer: {preset: codex}}", "reviewer")),
        [format!("2:29 warning missing-program: {expected}")]
    );
    assert_eq!(
        diagnostics_with_agents(&with_agent("{reviewer: codex}", "reviewer")),
        [format!("2:20 warning missing-program: {expected}")]
    );
    assert_eq!(diagnostics_with_agents(&with_agent("{reviewer: {preset: claude}}", "reviewer")), NOTHING);
}

#[test]
fn a_missing_capability_of_the_task_agent_gives_a_warning() {
    let wants = |agents: &str, wanted: &str| with_agent(agents, "reviewer").replace("prompt: x", &format!("prompt: x, {wanted}"));
    let diagnostics = |wanted: &str| diagnostics_with_agents(&wants("{reviewer: ./review}", wanted));
    assert_eq!(
        diagnostics("session: same"),
        [
            "3:71 warning unused-key: `session: same` has no effect: the command `./review` cannot continue a session (use an agent preset, or remove it)"
        ]
    );
    assert_eq!(
        diagnostics("tools: {deny: [Write]}"),
        [
            "3:69 warning not-supported: the command `./review` cannot deny tools, so the task fails when it starts (remove `tools.deny` and restrict the program in its own settings, or use another agent)"
        ]
    );
    assert_eq!(diagnostics("tools: {allow: [Read], deny: [Write]}").len(), 2);
    assert_eq!(diagnostics("session: fresh, tools: {deny: []}"), NOTHING);
    assert_eq!(diagnostics_with_agents(&wants("{reviewer: claude}", "session: same, tools: {deny: [Write]}")), NOTHING);
}
