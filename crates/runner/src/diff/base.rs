//! The starting point of a diff.

use super::{DiffError, Request};
use crate::commit::repository::Repository;
use lockgate_engine::run::event::DiffBase;
use lockgate_engine::spec::workflow::DiffSince;

pub(super) struct Start {
    /// Its id for display: a commit if there is one, otherwise a tree.
    pub(super) id: String,
    pub(super) tree: String,
    /// A note for people.
    pub(super) note: Option<String>,
}

pub(super) fn of(repository: &Repository, request: &Request) -> Result<Start, DiffError> {
    match &request.since {
        DiffSince::Phase | DiffSince::Run => match &request.recorded {
            Some(DiffBase::Tree { tree, .. }) => recorded(repository, tree),
            Some(DiffBase::Missing(why)) => Err(DiffError::NotRecorded(why.clone())),
            None => Err(DiffError::NotRecorded("the workflow did not show changes then".to_owned())),
        },
        DiffSince::Ref(name) => revision(repository, name),
    }
}

fn recorded(repository: &Repository, tree: &str) -> Result<Start, DiffError> {
    match object(repository, &format!("{tree}^{{tree}}")) {
        Some(tree) => Ok(Start { id: tree.clone(), tree, note: None }),
        None => Err(DiffError::Lost),
    }
}

/// A revision or, if it has moved on since, the merge base with the current branch, so that the work of others is not part of
/// the diff.
fn revision(repository: &Repository, name: &str) -> Result<Start, DiffError> {
    let missing = || {
        let shallow = repository.line(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true");
        DiffError::NoRevision { name: name.to_owned(), shallow }
    };
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_control) {
        return Err(missing());
    }
    let Some(commit) = object(repository, &format!("{name}^{{commit}}")) else {
        let tree = object(repository, &format!("{name}^{{tree}}")).ok_or_else(missing)?;
        return Ok(Start { id: tree.clone(), tree, note: None });
    };
    let left = repository.head()?.and_then(|head| {
        let bases = repository.line(&["merge-base", &head, &commit]).ok()?;
        bases.lines().next().map(str::to_owned)
    });
    let note = left
        .is_none()
        .then(|| format!("the current branch has no commit in common with {name}, so it is compared with {name} itself"));
    let id = left.unwrap_or(commit);
    let tree = repository.tree_of(Some(&id))?;
    Ok(Start { id, tree, note })
}

/// Resolves a name to an object id, if git knows it.
fn object(repository: &Repository, name: &str) -> Option<String> {
    repository.line(&["rev-parse", "--verify", "--quiet", name]).ok()
}
