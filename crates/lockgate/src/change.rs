//! Changing an answer that was not given by a person, and rerunning the tasks that depend on it.

use crate::code::Code;
use crate::error::Error;
use crate::pipeline::PutAside;
use crate::project::Project;
use crate::select::{self, HoldName};
use crate::view::HoldView;
use crate::worktrees::{self, git_error};
use lockgate_engine::id::{HoldId, IdSource, RunId};
use lockgate_engine::run::command::{AnswerChange, Caller, CommandKind};
use lockgate_engine::run::{Consequences, End, ForkAs, Run, consequences};
use lockgate_runner::driver::{fork_with, submit};
use lockgate_runner::load::load;
use lockgate_runner::worktree::ForkBranches;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// The action, as it completes "may not …".
pub const CHANGE_ANSWER: &str = "change an answer";

/// A planned change of an answer, with its consequences. Nothing is recorded yet.
#[derive(Clone, Debug)]
pub struct PlannedChange {
    /// The run before the change.
    pub run: Run,
    /// The hold whose answer changes.
    pub hold: HoldId,
    /// The new option, by id, label or number.
    pub option: String,
    /// What runs again, what is skipped and which answers become void.
    pub consequences: Consequences,
}

/// The result of changing an answer.
#[derive(Debug)]
pub enum Changed {
    /// The run has the new answer.
    Recorded(Box<Run>),
    /// The run was complete and stays unchanged. A fork of it has the new answer.
    Forked {
        /// The fork, which is not driven yet.
        fork: Box<Run>,
        /// Worktrees of the complete run whose uncommitted changes are not in the fork, relative to the root.
        uncommitted: Vec<String>,
        /// Files that were moved aside to make room for the state file of a pipeline.
        moved_aside: PutAside,
    },
}

/// The consequences of a changed answer, as JSON.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct ChangedView {
    pub hold: String,
    pub run: String,
    pub phase: Option<String>,
    pub tasks: Vec<String>,
    pub phases: Vec<String>,
    pub skipped: Vec<String>,
    pub void_answers: usize,
}

impl ChangedView {
    /// Creates the view. `run` is the fork, if there is one.
    pub fn of(hold: &HoldId, run: &RunId, found: &Consequences) -> Self {
        Self {
            hold: hold.to_string(),
            run: run.to_string(),
            phase: found.phase.as_ref().map(ToString::to_string),
            tasks: found.tasks.iter().map(ToString::to_string).collect(),
            phases: found.phases.iter().map(ToString::to_string).collect(),
            skipped: found.skipped.iter().map(ToString::to_string).collect(),
            void_answers: found.answers,
        }
    }
}

impl Project {
    /// Determines the consequences of changing the answer to a hold. Pass `run` if the run is a fork that inherited the answer.
    pub async fn plan_change(&self, hold: &HoldName, run: Option<&str>, option: &str) -> Result<PlannedChange, Error> {
        let (run, hold) = self.answered_hold(hold, run).await?;
        if let Some(open) = run.holds.get(&hold) {
            let (view, now) = (HoldView::of(open), self.now());
            let commands = view.next_commands(run.id.as_str(), false, now).join("\n");
            let error = Error::new(Code::NotStarted, format!("hold {hold} has no answer to change yet"));
            return Err(match commands.is_empty() {
                true => error,
                false if view.is_overdue(now) => {
                    error.help(format!("its deadline has passed, so answers are no longer accepted; apply it with\n{commands}"))
                }
                false => error.help(format!("answer it with one of\n{commands}")),
            });
        }
        let consequences = consequences(&run, &hold, option)?;
        Ok(PlannedChange { run, hold, option: option.to_owned(), consequences })
    }

    /// Resolves a run and a hold. A fork has answers whose holds belong to its parent.
    async fn answered_hold(&self, named: &HoldName, run: Option<&str>) -> Result<(Run, HoldId), Error> {
        let store = self.store();
        let Some(run) = run else {
            let row = select::hold(store, named).await?.row;
            return Ok((load(store, &row.run).await?, row.hold));
        };
        let state = load(store, &select::run_or_ended(store, run).await?.row.run).await?;
        let known = state.decisions.iter().map(|decision| &decision.hold).chain(state.holds.keys());
        let hold = select::one_of("hold", &named.id, known.map(HoldId::as_str))?;
        Ok((state, hold.map_or_else(|| HoldId::new(named.id.as_str()), HoldId::new)))
    }

    /// Changes an answer. A complete run stays unchanged: a fork continues from it with the new answer.
    pub async fn change_answer(
        &self,
        planned: &PlannedChange,
        feedback: Option<String>,
        caller: Caller,
    ) -> Result<Changed, Error> {
        let run = &planned.run;
        self.may_decide(&caller, &run.id, CHANGE_ANSWER).await?;
        let change = AnswerChange { hold: planned.hold.clone(), option: planned.option.clone(), feedback };
        if run.end == Some(End::Complete) {
            return self.fork(planned, change, caller).await;
        }
        match submit(&self.runtime, &run.id, caller.clone(), CommandKind::ChangeAnswer(change)).await {
            Ok(now) => Ok(Changed::Recorded(Box::new(now))),
            Err(error) => Err(self.failed(&caller, &run.id, CHANGE_ANSWER, error).await),
        }
    }

    /// Forks a complete run. The fork has its own outputs and worktrees.
    async fn fork(&self, planned: &PlannedChange, change: AnswerChange, caller: Caller) -> Result<Changed, Error> {
        let (parent, root) = (&planned.run, &self.root);
        let run = RunId::new(IdSource::new(self.runtime.clock.seed()).next_id());
        let output_dir = root.default_output_dir(&run);
        root.prepare_run(&run)?;
        let (from, to) = (root.dir().join(&parent.output_dir), root.dir().join(&output_dir));
        copy(&from, &to).map_err(|error| {
            let message = format!("the outputs of run {} cannot be copied to {}: {error}", parent.id, to.display());
            Error::new(Code::Unwritable, message)
        })?;
        let branched = match worktrees::uses(&parent.workflow) && !planned.consequences.aborts {
            true => ForkBranches::create(root, &parent.id, &run).map_err(git_error)?,
            false => ForkBranches::default(),
        };
        let own = ForkAs { run, output_dir, driver: self.store().driver().clone() };
        let fork = match fork_with(&self.runtime, parent, own, caller.clone(), &change).await {
            Ok(fork) => fork,
            Err(error) => {
                branched.remove(root);
                return Err(self.failed(&caller, &parent.id, CHANGE_ANSWER, error).await);
            }
        };
        let relative = |path: &PathBuf| path.strip_prefix(root.dir()).unwrap_or(path).to_string_lossy().into_owned();
        let uncommitted = branched.uncommitted.iter().map(|kept| relative(&kept.folder)).collect();
        let moved_aside = self.hand_over_state_file(&fork).await?;
        Ok(Changed::Forked { fork: Box::new(fork), uncommitted, moved_aside })
    }
}

/// Copies a directory recursively. Symbolic links are copied as links.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
