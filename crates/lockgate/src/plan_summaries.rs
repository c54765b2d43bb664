//! Summaries of plans, written next to each plan when its run is complete.

use crate::error::Error;
use crate::summary::{self, Summary, plan};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::End;
use lockgate_engine::spec::workflow::PlanPart;
use lockgate_runner::files::write_atomically;
use lockgate_runner::git::git;
use lockgate_runner::root::Root;
use lockgate_runner::runtime::Runtime;
use std::path::{Component, Path, PathBuf};

/// Why the summary of a plan was not written.
#[derive(Debug, thiserror::Error)]
pub enum SummaryError {
    /// The history cannot be read.
    #[error("the summaries of the plans cannot be generated: {}", .0.message())]
    History(Error),
    /// The file exists and was not written by Lockgate.
    #[error("{path} was not written by Lockgate and is not overwritten; see `lockgate summary {run}`")]
    NotOurs {
        /// The path of the file.
        path: String,
        /// The run whose plan it would summarize.
        run: RunId,
    },
    /// The file cannot be written.
    #[error("{path} cannot be written: {error}")]
    Unwritable {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The directory of the file does not exist.
    #[error("the summary of plan {plan} cannot be written: the directory of {} does not exist", path.display())]
    NoDirectory {
        /// The id of the plan.
        plan: String,
        /// The path of the file.
        path: PathBuf,
    },
}

/// Writes the summaries of a complete run and returns their paths, as shown to people. An identical file is left alone.
pub async fn write_summaries(runtime: &Runtime, root: &Root, run: &Run) -> Vec<Result<String, SummaryError>> {
    if run.workflow.plans.is_empty() || run.end != Some(End::Complete) {
        return Vec::new();
    }
    let summary = match summary::of(&*runtime.store, run, false, runtime.clock.now()).await {
        Ok(summary) => summary,
        Err(error) => return vec![Err(SummaryError::History(error))],
    };
    run.workflow.plans.iter().map(|part| write(root.dir(), &summary, run, part)).collect()
}

fn write(root: &Path, summary: &Summary, run: &Run, part: &PlanPart) -> Result<String, SummaryError> {
    let (shown, path) = place(root, run, part)?;
    let files = |commit: &str| match is_commit(commit) {
        true => git(root, &["show", "--format=", "--name-only", commit]).unwrap_or_default().lines().map(str::to_owned).collect(),
        false => Vec::new(),
    };
    let text = plan::markdown(summary, run, part, &files);
    let present = std::fs::read_to_string(&path).ok();
    if present.as_deref().is_some_and(|present| !present.starts_with(&format!("---\n{}", plan::MARK))) {
        return Err(SummaryError::NotOurs { path: shown, run: run.id.clone() });
    }
    match write_atomically(&path, text.as_bytes()) {
        Ok(()) => Ok(shown),
        Err(error) => Err(SummaryError::Unwritable { path: shown, error }),
    }
}

/// The path of a summary: the one that the plan specifies, if its directory exists, otherwise next to the plan.
fn place(root: &Path, run: &Run, part: &PlanPart) -> Result<(String, PathBuf), SummaryError> {
    let named = part.summary.as_deref().map(Path::new).filter(|path| stays_within(root, path));
    let next_to_plan = || {
        let first = run.files.first().map(|file| PathBuf::from(&file.path)).unwrap_or_default();
        let plan = part.file.as_ref().map_or(first.clone(), |file| first.join(file));
        let folder = plan.parent().map(Path::to_path_buf).unwrap_or_default();
        folder.join(format!("{}-SUMMARY.md", part.id))
    };
    let path = named.map_or_else(next_to_plan, Path::to_path_buf);
    let whole = root.join(&path);
    match whole.parent() {
        Some(folder) if folder.is_dir() => Ok((path.to_string_lossy().into_owned(), whole)),
        Some(_) | None => Err(SummaryError::NoDirectory { plan: part.id.to_string(), path }),
    }
}

/// Whether the directory of a path exists and is inside the root, even after resolving symbolic links.
fn stays_within(root: &Path, path: &Path) -> bool {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let folder = root.join(path).parent().and_then(|folder| folder.canonicalize().ok());
    let root = root.canonicalize().ok();
    is_plain && folder.zip(root).is_some_and(|(folder, root)| folder.starts_with(root))
}

/// Makes sure that only commit ids are passed to git.
fn is_commit(text: &str) -> bool {
    (4..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
