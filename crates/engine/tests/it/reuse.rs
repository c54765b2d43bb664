//! Phases that use another workflow file: their ids, and the keys that count only in the file that is run.

use super::lines;
use lockgate_engine::hold::Action;
use lockgate_engine::id::PhaseId;
use lockgate_engine::spec::includes::{IncludeError, Includes};
use lockgate_engine::spec::read_with_includes;

/// There is one file next to the workflow: `s.yaml`.
struct Used(String);

impl Includes for Used {
    fn read(&mut self, path: &str) -> Result<Option<String>, IncludeError> {
        Ok((path == "s.yaml").then(|| self.0.clone()))
    }

    fn list(&mut self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

const TWO: &str =
    "name: s\nphases:\n  - { id: one, tasks: [{ id: a, run: 'true' }] }\n  - { id: two, tasks: [{ id: b, run: 'true' }] }\n";

fn diagnostics(source: &str, used: &str) -> Vec<String> {
    lines(read_with_includes(source, &mut Used(used.to_owned())))
}

#[test]
fn a_reused_phase_must_have_a_unique_id() {
    let own = "  - { id: p.one, tasks: [{ id: c, run: 'true' }] }\n";
    let used = "  - { id: p, use: s.yaml }\n";
    assert_eq!(
        diagnostics(&format!("name: x\nphases:\n{used}{own}"), TWO),
        ["4:11 duplicate-id: there are two phases called `p.one` (the first one is on line 3; rename one of them)"]
    );
    assert_eq!(
        diagnostics(&format!("name: x\nphases:\n{own}{used}"), TWO),
        ["4:11 duplicate-id: there are two phases called `p.one` (the first one is on line 3; rename one of them)"]
    );
    assert_eq!(diagnostics(&format!("name: x\nphases:\n{used}{used}"), TWO).len(), 1, "a duplicate id is reported once");
    assert_eq!(diagnostics(&format!("name: x\nphases:\n{used}  - {{ id: q, use: s.yaml }}\n"), TWO), [] as [&str; 0]);
}

#[test]
fn keys_that_apply_to_a_whole_run_must_be_in_the_main_file() {
    let says = [
        ("worktree", "worktree: true"),
        ("max_parallel", "max_parallel: 2"),
        ("finalization", "finalization: { template: t.md, output: o.md }"),
        ("policy", "policy: { verify: auto }"),
        ("budget", "budget: { max_cost: 1 }"),
        ("output_dir", "output_dir: out"),
    ];
    for (key, line) in says {
        let used = |path: &str| match path {
            "s.yaml" => Some(format!("{TWO}{line}\n")),
            "t.md" | "templates/t.md" => Some("done".to_owned()),
            _ => None,
        };
        struct Files<F>(F);
        impl<F: Fn(&str) -> Option<String>> Includes for Files<F> {
            fn read(&mut self, path: &str) -> Result<Option<String>, IncludeError> {
                Ok((self.0)(path))
            }
            fn list(&mut self, _: &str) -> Vec<String> {
                Vec::new()
            }
        }
        let source = "name: x\nphases:\n  - { id: p, use: s.yaml }\n";
        let diagnostics = lines(read_with_includes(source, &mut Files(used)));
        let help = format!("(set `{key}` in this file, which takes precedence, or remove it from `s.yaml`)");
        let expected = format!("3:19 unused-key: `s.yaml` sets `{key}`, which counts only in the file that is run {help}");
        assert_eq!(diagnostics, [expected]);
        let decided = lines(read_with_includes(&format!("{source}{line}\n"), &mut Files(used)));
        assert_eq!(decided, [] as [&str; 0], "{key}");
    }
}

#[test]
fn repeating_a_phase_that_uses_a_workflow_repeats_all_of_its_phases() {
    let source = "
name: x
phases:
  - id: first
    checkpoint:
      prompt: Skip?
      options: [{ label: Skip, on_select: { action: skip_phases, phases: p } }, { label: Continue }]
  - { id: p, use: s.yaml }
  - id: last
    checkpoint:
      prompt: Again?
      options: [{ label: Again, on_select: { action: repeat_phase, target: p } }, { label: Continue }]
";
    let read = read_with_includes(source, &mut Used(TWO.to_owned())).workflow.expect("a workflow");
    let both = [PhaseId::from("p.one"), PhaseId::from("p.two")];
    let option = |phase: &str| read.phase(phase).unwrap().checkpoint.as_ref().unwrap().options[0].clone();
    assert_eq!(option("first").action, Action::SkipPhases(both.to_vec()));
    assert_eq!((option("last").action, option("last").restores), (Action::RepeatPhase(both[0].clone()), both.to_vec()));
}
