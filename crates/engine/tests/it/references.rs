//! References that lead nowhere are found when a file is read, before a run fails on them.

use crate::{in_task, lines, told};
use lockgate_engine::spec::beside::{AgentLimits, Beside, BesideError};
use lockgate_engine::spec::read_beside;
use lockgate_engine::spec::workflow::AgentSetting;
use std::collections::BTreeMap;

const NOTHING: [&str; 0] = [];

/// Three phases, of which the second reads something; the template stands on line 7.
fn reading(template: &str, checkpoint: &str) -> String {
    format!(
        "name: test\nphases:\n  - id: plan\n    tasks: [{{id: write, pass: true}}]\n  - id: build\n    tasks:\n      - {{id: make, run: 'echo {template}'}}\n\
         \x20 - id: ship\n    tasks: [{{id: send, pass: true}}]\n{checkpoint}"
    )
}

#[test]
fn outputs_of_tasks_that_exist_and_come_before_may_be_read() {
    for template in
        ["{{outputs.plan.write}}", "{{outputs.plan.write.deep[0].x}}", "{{context.outputs.plan.write}}", "{{outputs.build.make}}"]
    {
        assert_eq!(told(&reading(template, "")), NOTHING, "{template}");
    }
    assert_eq!(told(&reading("{{outputs.plan}}", "")), NOTHING);
}

#[test]
fn an_output_of_a_phase_or_task_that_does_not_exist_is_an_error() {
    assert_eq!(
        told(&reading("{{outputs.plam.write}}", "")),
        ["7:31 unknown-phase: there is no phase `plam` whose outputs could be read (did you mean `plan`?)"]
    );
    assert_eq!(
        told(&reading("{{outputs.plan.wrote}}", "")),
        ["7:31 unknown-task: phase `plan` has no task `wrote` (did you mean `write`?)"]
    );
    assert_eq!(
        told(&reading("{{context.outputs.nothing.x}}", "")),
        ["7:31 unknown-phase: there is no phase `nothing` whose outputs could be read (there is `plan`, `build`, `ship`)"]
    );
}

#[test]
fn an_output_of_a_later_phase_is_an_error_unless_the_run_can_go_back() {
    assert_eq!(
        told(&reading("{{outputs.ship.send}}", "")),
        [
            "7:31 phase-order: phase `ship` comes later, so its outputs are never there (move the task behind that phase, or read an earlier one)"
        ]
    );
    let back = "    checkpoint:\n      options:\n        - {label: Again, on_select: {action: repeat_phase, target: build}}\n        - {label: Go, on_select: {action: continue}}\n";
    assert_eq!(
        told(&reading("{{outputs.ship.send}}", back)),
        [
            "7:31 warning phase-order: phase `ship` comes later, so its outputs are not there before the run goes back (give the task a `when` that is true only then, or move it behind that phase)"
        ]
    );
}

#[test]
fn what_a_script_chooses_may_have_outputs_of_any_name() {
    let source = "name: test\nexecution_mode: adaptive\nphases:\n  - id: plan\n    subagents: {adaptive: {script: 'return [];'}}\n  - id: build\n    tasks: [{id: make, run: 'echo {{outputs.plan.whatever}}'}]\n";
    assert_eq!(told(source), NOTHING);
}

#[test]
fn item_is_known_only_where_a_task_is_done_for_a_list() {
    assert_eq!(told(&in_task("for_each: [a, b]\nrun: 'echo {{item}}'")), NOTHING);
    assert_eq!(
        told(&in_task("run: 'echo {{item}}'")),
        [
            "6:20 bad-template: `item` means nothing here: this is not done for each item of a list (give the task a list with `for_each`)"
        ]
    );
    let gate = "name: test\nphases:\n  - id: one\n    tasks: [{id: a, for_each: [x], run: 'echo {{item}}'}]\n    gates: [{id: g, run: 'test {{item}}'}]\n";
    assert_eq!(told(gate).len(), 1, "a gate of the phase belongs to no item: {:?}", told(gate));
}

/// A machine with settings that declare an agent, and without a program.
struct Machine;

impl Beside for Machine {
    fn read(&mut self, _: &str) -> Result<Option<String>, BesideError> {
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

fn told_there(source: &str) -> Vec<String> {
    lines(read_beside(source, &mut Machine))
}

fn with_agent(agents: &str, wanted: &str) -> String {
    format!("name: test\nagents: {agents}\nphases: [{{id: a, tasks: [{{id: t, agent: {wanted}, prompt: x}}]}}]\n")
}

#[test]
fn an_agent_that_nothing_declares_is_warned_of_with_what_was_meant() {
    for wanted in ["reviewer", "painter", "default"] {
        assert_eq!(told_there(&with_agent("{reviewer: ./review}", wanted)), NOTHING, "{wanted}");
    }
    assert_eq!(
        told_there(&with_agent("{reviewer: ./review}", "reveiwer")),
        ["3:41 warning unknown-agent: no agent `reveiwer` is declared, so the default one works (did you mean `reviewer`?)"]
    );
    assert_eq!(
        told_there(&with_agent("{reviewer: ./review}", "x")),
        ["3:41 warning unknown-agent: no agent `x` is declared, so the default one works (there is `reviewer`, `painter`)"]
    );
    assert_eq!(told(&with_agent("{}", "x")), NOTHING, "which agent works is said when the run begins");
}

#[test]
fn a_preset_whose_program_is_not_installed_is_warned_of() {
    let expected = "`codex` is not installed, which the preset `codex` starts (install it, or see that PATH leads to it)";
    assert_eq!(
        told_there(&with_agent("{reviewer: {preset: codex}}", "reviewer")),
        [format!("2:29 warning missing-program: {expected}")]
    );
    assert_eq!(told_there(&with_agent("{reviewer: codex}", "reviewer")), [format!("2:20 warning missing-program: {expected}")]);
    assert_eq!(told_there(&with_agent("{reviewer: {preset: claude}}", "reviewer")), NOTHING);
}

#[test]
fn what_the_agent_of_a_task_cannot_do_is_warned_of() {
    let wants = |agents: &str, wanted: &str| with_agent(agents, "reviewer").replace("prompt: x", &format!("prompt: x, {wanted}"));
    let told = |wanted: &str| told_there(&wants("{reviewer: ./review}", wanted));
    assert_eq!(
        told("session: same"),
        [
            "3:71 warning unused-key: `session: same` has no effect: the command `./review` cannot continue a session (use an agent preset, or remove it)"
        ]
    );
    assert_eq!(
        told("tools: {deny: [Write]}"),
        [
            "3:69 warning not-supported: the command `./review` cannot deny tools, so the task fails when it starts (remove `tools.deny` and restrict the program in its own settings, or use another agent)"
        ]
    );
    assert_eq!(told("tools: {allow: [Read], deny: [Write]}").len(), 2);
    assert_eq!(told("session: fresh, tools: {deny: []}"), NOTHING);
    assert_eq!(told_there(&wants("{reviewer: claude}", "session: same, tools: {deny: [Write]}")), NOTHING);
}
