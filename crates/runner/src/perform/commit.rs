//! Commits a task's changes if it asks for that, and detects commits that an agent made itself.

use super::command::{failure, start};
use super::values::Renderer;
use super::{Shared, TaskCall, worktree};
use crate::commit::{CommitError, Message, NotCommitted, Place, Work};
use crate::git::git;
use crate::process::Stop;
use crate::root::Root;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{Failure, FailureKind};
use std::path::{Path, PathBuf};

/// What happens to a task's changes in git, captured when its effect starts.
pub(super) struct Commit {
    tree: Option<worktree::Wanted>,
    what: What,
}

enum What {
    Makes(Box<Makes>),
    /// The summary of a plan lists the commits of its agents, no matter who made them.
    Sees,
}

struct Makes {
    run: RunId,
    name: String,
    renderer: Renderer,
    /// The message template, if there is one.
    template: Option<String>,
    otherwise: String,
    hooks: bool,
}

/// The state of a [`Commit`] after the attempt has started.
pub(super) enum Started {
    Makes(Box<Work>, Message),
    Sees { dir: PathBuf, head: Option<String> },
}

impl Commit {
    /// The git handling that a task asks for; `None` if there is none.
    pub(super) fn of(run: &Run, call: TaskCall<'_>) -> Option<Self> {
        let tree = worktree::wanted(run, call.key, call.task);
        let what = match &call.task.commit {
            Some(commit) => {
                let output_dir = Path::new(&run.output_dir);
                let renderer = Renderer::of(run, call.phase, output_dir, call.values(), commit.message.as_deref());
                What::Makes(Box::new(Makes {
                    run: run.id.clone(),
                    name: format!("{}-{}", crate::worktree::Tree::of_task(&run.id, call.key).name, call.key.iteration),
                    renderer,
                    template: commit.message.clone(),
                    otherwise: format!("{}: {}", call.key.address(), call.task.title()),
                    hooks: commit.hooks.unwrap_or(true),
                }))
            }
            None if call.task.agent().is_some() && !run.workflow.plans.is_empty() => What::Sees,
            None => return None,
        };
        Some(Self { tree, what })
    }

    /// Records the state of the task's directory before it starts.
    pub(super) async fn start(self, shared: &Shared, stop: &Stop) -> Result<Started, Failure> {
        let dir = worktree::directory(shared, self.tree, stop).await?;
        let makes = match self.what {
            What::Makes(makes) => *makes,
            What::Sees => return Ok(Started::Sees { head: head(dir.clone()).await, dir }),
        };
        let text = match &makes.template {
            None => makes.otherwise,
            Some(template) => makes.renderer.ready(shared).await.and_then(|ready| Ok(ready.text(template)?)).map_err(start)?,
        };
        let message = Message { text: shared.masks().mask_text(&text).into_owned(), hooks: makes.hooks };
        if message.text.trim().is_empty() {
            return Err(start("its commit message is empty; check `commit.message`"));
        }
        let scratch = shared.root.commit_dir(&makes.run, &makes.name);
        let lock = shared.root.commit_lock(&makes.run, &makes.name);
        let place = Place { dir, scratch, lock, name: makes.name };
        let stop = stop.clone();
        let started = tokio::task::spawn_blocking(move || Work::start(&place, &stop));
        let work = started.await.map_err(start)?.map_err(|why| match why {
            NotCommitted::Failed(why) => start(format!("its changes could not be committed later: {why}")),
            NotCommitted::Stopped => failure(FailureKind::Stopped, "it was stopped before it started"),
        })?;
        Ok(Started::Makes(Box::new(work), message))
    }
}

impl Started {
    /// Commits the task's changes, or finds the commit that its agent made.
    pub(super) async fn complete(self) -> Result<Option<String>, Failure> {
        let (work, message) = match self {
            Self::Makes(work, message) => (work, message),
            Self::Sees { dir, head: before } => {
                let now = head(dir).await;
                return Ok(now.filter(|now| before.as_ref().is_some_and(|before| before != now)));
            }
        };
        let committed = tokio::task::spawn_blocking(move || work.commit(&message));
        let cannot =
            |why: &dyn std::fmt::Display| failure(FailureKind::Output, format!("its changes cannot be committed: {why}"));
        committed.await.map_err(|error| cannot(&error))?.map_err(|why| match why {
            NotCommitted::Failed(why) => cannot(&why),
            NotCommitted::Stopped => failure(FailureKind::Stopped, why),
        })
    }

    /// Records the changes of an attempt that did not complete the task.
    pub(super) async fn leave(self) {
        if let Self::Makes(work, _) = self {
            // If this fails, all changes until the next attempt count as this attempt's work.
            match tokio::task::spawn_blocking(move || work.leave()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "cannot record the changes of the attempt"),
                Err(error) => tracing::warn!(%error, "cannot record the changes of the attempt"),
            }
        }
    }
}

/// Repairs the working trees of a run in which a commit was interrupted by a kill.
pub fn recover_commits(root: &Root, run: &RunId) -> Result<(), CommitError> {
    let trees = std::fs::read_dir(root.state_dir().join(crate::worktree::WORKTREES_DIR)).into_iter().flatten().flatten();
    let of_run = |name: &std::ffi::OsStr| name.to_string_lossy().split('-').next() == Some(run.as_str());
    let trees = trees.filter(|entry| of_run(&entry.file_name())).map(|entry| entry.path()).filter(|path| path.is_dir());
    let (scratch, lock) = (root.commit_dir(run, "recovery"), root.commit_lock(run, "recovery"));
    std::iter::once(root.dir().to_owned()).chain(trees).try_for_each(|dir| {
        crate::commit::recover(&Place { dir, scratch: scratch.clone(), lock: lock.clone(), name: "recovery".to_owned() })
    })
}

/// The checked-out commit.
async fn head(dir: PathBuf) -> Option<String> {
    let asked = tokio::task::spawn_blocking(move || git(&dir, &["rev-parse", "--short", "HEAD"])).await;
    match asked {
        Ok(Ok(head)) => Some(head),
        Ok(Err(error)) => {
            tracing::debug!(%error, "cannot find out which commit is checked out");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "asking git which commit is checked out panicked");
            None
        }
    }
}
