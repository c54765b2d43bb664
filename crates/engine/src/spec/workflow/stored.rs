//! The stored form of tasks. A definition may have very many, so rare settings must not cost space in every task.

use super::{Budget, Commit, ForEach, Join, OnFail, OnInterrupt, Retry, Script, Shell, Task, Until, Work, Worktree};
use crate::id::TaskId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A stored task. Add new fields at the end of [`RareFields`].
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
    rare_fields: Option<Box<RareFields>>,
}

/// Settings that few tasks have.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct RareFields {
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
    #[serde(default)]
    inject: Vec<String>,
}

impl From<Task> for StoredTask {
    fn from(task: Task) -> Self {
        let Task { id, name, needs, work, timeout, retry, on_interrupt, on_fail, outputs, env, secrets, dir, .. } = task;
        let Task { when, join, for_each, until, continue_on_error, budget, worktree, commit, shell, inject, .. } = task;
        let rare_fields = RareFields { when, join, for_each, until, continue_on_error, budget, worktree, commit, shell, inject };
        let rare_fields = (rare_fields != RareFields::default()).then(|| Box::new(rare_fields));
        Self { id, name, needs, work, timeout, retry, on_interrupt, on_fail, outputs, env, secrets, dir, rare_fields }
    }
}

impl From<StoredTask> for Task {
    fn from(stored: StoredTask) -> Self {
        let StoredTask { id, name, needs, work, timeout, retry, on_interrupt, on_fail, outputs, env, secrets, dir, rare_fields } =
            stored;
        let RareFields { when, join, for_each, until, continue_on_error, budget, worktree, commit, shell, inject } =
            rare_fields.map(|rare_fields| *rare_fields).unwrap_or_default();
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
            inject,
        }
    }
}
