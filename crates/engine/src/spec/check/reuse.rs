//! Phases from another workflow file.

use super::Checker;
use super::fields::Fields;
use super::phase::id_of;
use crate::hold::Action;
use crate::id::PhaseId;
use crate::spec::code::ProblemCode;
use crate::spec::problem::{Severity, shown};
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Budget, Mode, Phase, Policy, Workflow, Worktree};
use crate::spec::{includes, read_used, scalar};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum depth of workflows that use each other.
const MAX_USE_DEPTH: u32 = 8;

impl Checker<'_, '_> {
    /// The phases of the workflow that a phase uses, their ids prefixed with the id of that phase.
    pub(super) fn used_phases(&mut self, fields: &Fields<'_, '_>, mode: Mode) -> Option<Vec<Phase>> {
        let node = fields.get("use")?;
        let id = fields.require(self, "id").and_then(|node| self.id(node, "the id of a phase"))?.to_owned();
        let others = ["tasks", "subagents", "gates", "checkpoint", "main_agent", "gap_check"];
        if let Some(span) = others.iter().find_map(|key| fields.key(key)) {
            let message = "a phase with `use` cannot have work of its own";
            self.error(ProblemCode::ConflictingKeys, span, message).help("move it to a phase before or after this one");
        }
        let path = self.filled(node, "`use`")?.trim().to_owned();
        let used = self.used_workflow(node, &path)?;
        self.decided_here(&used, node, &path);
        let vars = self.handed(fields, &used, node);
        for (name, setting) in used.agents {
            self.used_agents.entry(name).or_insert(setting);
        }
        for (name, source) in used.secrets {
            self.used_secrets.entry(name).or_insert(source);
        }
        let own_mode = used.execution_mode;
        let (shell, _) = self.with_shell(fields, |_| ());
        let shell = used.shell.or(shell);
        let phases = used.phases.into_iter().map(|phase| {
            let shell = phase.shell.clone().or_else(|| shell.clone());
            renamed(Phase { shell, ..phase }, &id, own_mode, mode, &vars)
        });
        Some(phases.collect())
    }

    fn used_workflow(&mut self, node: &Node<'_>, path: &str) -> Option<Workflow> {
        if self.depth >= MAX_USE_DEPTH {
            let message = format!("workflows use each other more than {MAX_USE_DEPTH} levels deep");
            self.error(ProblemCode::TooDeep, &node.span, message).help("does this file use itself?");
            return None;
        }
        let source = match self.includes.read(path) {
            Ok(Some(source)) => source,
            Ok(None) => {
                let help = includes::meant(self.includes, path);
                let message = format!("there is no workflow `{}` next to this file or its directory", shown(path));
                self.error(ProblemCode::MissingFile, &node.span, message).maybe_help(help);
                return None;
            }
            Err(why) => {
                self.error(ProblemCode::MissingFile, &node.span, format!("`{}` cannot be read: {why}", shown(path)));
                return None;
            }
        };
        let read = read_used(&source, self.includes, self.depth + 1);
        if read.workflow.is_none() {
            let first = read.problems.iter().find(|problem| problem.severity == Severity::Error);
            let first_error =
                first.map(|problem| format!(": {}:{} {}", problem.line, problem.column, problem.message)).unwrap_or_default();
            let message = format!("`{}` has errors{first_error}", shown(path));
            self.error(ProblemCode::MissingFile, &node.span, message)
                .help(format!("see all of them with `lockgate validate {path}`"));
        }
        read.workflow
    }

    /// Some keys are about the run as a whole, so they count only in the file that is run.
    fn decided_here(&mut self, used: &Workflow, node: &Node<'_>, path: &str) {
        let says = [
            ("worktree", used.worktree != Worktree::default()),
            ("max_parallel", used.max_parallel.is_some()),
            ("finalization", used.finalization.is_some()),
            ("policy", used.policy != Policy::default()),
            ("team", used.team.as_ref().is_some_and(|team| !team.members.is_empty())),
            ("knowledge", used.team.as_ref().is_some_and(|team| !team.inject.is_empty())),
            ("budget", used.budget != Budget::default()),
            ("output_dir", used.output_dir.is_some()),
        ];
        for (key, said) in says {
            if !said || self.own_keys.contains(key) {
                continue;
            }
            let message = format!("`{}` sets `{key}`, which counts only in the file that is run", shown(path));
            let help = format!("set `{key}` in this file, which takes precedence, or remove it from `{}`", shown(path));
            self.error(ProblemCode::UnusedKey, &node.span, message).help(help);
        }
    }

    /// Reports phases of used workflows whose ids collide with others.
    pub(super) fn collisions(&mut self, nodes: &[Node<'_>], listed: &[(usize, Vec<PhaseId>)]) {
        let at = |here: usize| id_of(&nodes[here]).map_or(0..0, |(id, _)| id.span.clone());
        let mut first: BTreeMap<&PhaseId, usize> = BTreeMap::new();
        for (here, ids) in listed {
            for id in ids {
                let Some(before) = first.insert(id, *here).filter(|before| before != here) else { continue };
                let names = |place: usize| id_of(&nodes[place]).map(|(_, name)| name);
                // Two phases of the file itself with the same id were reported before.
                if names(before) != names(*here) {
                    self.repeated("phase", &at(*here), id.as_str(), at(before).start);
                }
            }
        }
    }

    /// The variables of the used workflow: its own, and those that it is given.
    fn handed(&mut self, fields: &Fields<'_, '_>, used: &Workflow, node: &Node<'_>) -> BTreeMap<String, Value> {
        let mut vars = used.vars.clone();
        let defaults = used.inputs.iter().filter_map(|(name, input)| Some((name.clone(), input.default.clone()?)));
        vars.extend(defaults);
        let mut refused = Vec::new();
        for entry in fields.get("with").and_then(|node| self.entries(node, "`with`")).unwrap_or_default() {
            let value = scalar::to_json(&entry.value, &mut refused);
            let name = entry.key.to_string();
            match used.inputs.get(&name) {
                Some(input) => match input.kind.read(&value) {
                    Ok(value) => drop(vars.insert(name, value)),
                    Err(why) => {
                        self.error(ProblemCode::InvalidValue, &entry.value.span, format!("`{}` {why}", shown(&name)));
                    }
                },
                None if vars.contains_key(&name) => drop(vars.insert(name, value)),
                None => {
                    let message = format!("the used workflow has no input `{}`", shown(&name));
                    let known: BTreeSet<&str> = used.inputs.keys().chain(vars.keys()).map(String::as_str).collect();
                    self.none_of(ProblemCode::UnknownVar, &entry.key_span, message, &name, known.iter().copied());
                }
            }
        }
        let given = |name: &str| fields.get("with").is_some_and(|node| has_key(node, name));
        let missing = used.inputs.iter().filter(|(name, input)| input.required && !vars.contains_key(*name) && !given(name));
        for (name, _) in missing {
            let message = format!("the used workflow needs the input `{}`", shown(name));
            self.error(ProblemCode::MissingKey, &node.span, message).help(format!("write `with: {{ {name}: … }}`"));
        }
        vars
    }
}

fn has_key(node: &Node<'_>, name: &str) -> bool {
    matches!(&*node.content, Content::Map(entries) if entries.iter().any(|entry| entry.key == name))
}

fn renamed(mut phase: Phase, id: &str, own_mode: Mode, mode: Mode, vars: &BTreeMap<String, Value>) -> Phase {
    let long = |inner: &PhaseId| PhaseId::new(format!("{id}.{inner}"));
    phase.id = long(&phase.id);
    // Its own values override those that its workflow was given.
    let mut handed = vars.clone();
    handed.extend(std::mem::take(&mut phase.vars));
    phase.vars = handed;
    phase.execution_mode = phase.execution_mode.or((own_mode != mode).then_some(own_mode));
    for choice in phase.choices_mut() {
        choice.restores.iter_mut().for_each(|phase| *phase = long(phase));
        match &mut choice.action {
            Action::RepeatPhase(target) => *target = long(target),
            Action::SkipPhases(phases) => phases.iter_mut().for_each(|phase| *phase = long(phase)),
            Action::Continue
            | Action::Abort
            | Action::Rerun
            | Action::CountAsDone
            | Action::RaiseBudget(_)
            | Action::Redo(_)
            | Action::Fail
            | Action::RerunRest
            | Action::Reply => {}
        }
    }
    phase
}

/// Makes the options of checkpoints that name a phase with `use` refer to the phases that replaced it.
pub(super) fn mean_used(phases: &mut [Phase], used: &BTreeMap<String, Vec<PhaseId>>) {
    if used.is_empty() {
        return;
    }
    for choice in phases.iter_mut().flat_map(Phase::choices_mut) {
        match &mut choice.action {
            Action::RepeatPhase(target) => {
                if let Some(all @ [first, ..]) = used.get(target.as_str()).map(Vec::as_slice) {
                    *target = first.clone();
                    choice.restores = all.to_vec();
                }
            }
            Action::SkipPhases(phases) => {
                let all =
                    phases.iter().flat_map(|phase| used.get(phase.as_str()).cloned().unwrap_or_else(|| vec![phase.clone()]));
                *phases = all.collect();
            }
            Action::Continue
            | Action::Abort
            | Action::Rerun
            | Action::CountAsDone
            | Action::RaiseBudget(_)
            | Action::Redo(_)
            | Action::Fail
            | Action::RerunRest
            | Action::Reply => {}
        }
    }
}
