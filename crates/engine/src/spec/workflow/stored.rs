//! The stored form of tasks. A definition may hold very many, and what few of them say must not cost all of them.

use super::{Budget, Commit, ForEach, Join, OnFail, OnInterrupt, Retry, Script, Shell, Task, Until, Work, Worktree};
use crate::id::TaskId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A task as it is stored; fields only ever grow at the end of [`Seldom`].
#[derive(Serialize, Deserialize)]
pub(super) struct StoredTask {
    id: TaskId,
    name: Option<String>,
    needs: Vec<TaskId>,
    work: Work,
    timeout: Option<Duration>,
    retry: Retry,
    on_interrupt: OnInterrupt,
    on_fail: OnFail,
    outputs: Vec<String>,
    env: BTreeMap<String, String>,
    secrets: Vec<String>,
    dir: Option<String>,
    #[serde(default)]
    seldom: Option<Box<Seldom>>,
}

/// What few tasks say.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Seldom {
    when: Option<Script>,
    join: Join,
    for_each: Option<ForEach>,
    until: Option<Until>,
    continue_on_error: bool,
    budget: Budget,
    worktree: Worktree,
    commit: Option<Commit>,
    #[serde(default)]
    shell: Option<Shell>,
}

impl From<Task> for StoredTask {
    fn from(task: Task) -> Self {
        let Task { id, name, needs, work, timeout, retry, on_interrupt, on_fail, outputs, env, secrets, dir, .. } = task;
        let Task { when, join, for_each, until, continue_on_error, budget, worktree, commit, shell, .. } = task;
        let seldom = Seldom { when, join, for_each, until, continue_on_error, budget, worktree, commit, shell };
        let seldom = (seldom != Seldom::default()).then(|| Box::new(seldom));
        Self { id, name, needs, work, timeout, retry, on_interrupt, on_fail, outputs, env, secrets, dir, seldom }
    }
}

impl From<StoredTask> for Task {
    fn from(stored: StoredTask) -> Self {
        let StoredTask { id, name, needs, work, timeout, retry, on_interrupt, on_fail, outputs, env, secrets, dir, seldom } =
            stored;
        let Seldom { when, join, for_each, until, continue_on_error, budget, worktree, commit, shell } =
            seldom.map(|seldom| *seldom).unwrap_or_default();
        Self {
            id,
            name,
            needs,
            work,
            timeout,
            retry,
            on_interrupt,
            on_fail,
            outputs,
            env,
            secrets,
            dir,
            when,
            join,
            for_each,
            until,
            continue_on_error,
            budget,
            worktree,
            commit,
            shell,
        }
    }
}
