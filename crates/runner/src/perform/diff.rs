//! Git diffs for questions that show them.

use super::{Shared, worktree};
use crate::diff::{self, DiffObservation, ObserveLimits, Request, Workplace};
use crate::process::Stop;
use crate::runtime::Performed;
use crate::secret::Masks;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{SeenDiff, ShownDiff};
use lockgate_engine::id::{PhaseId, RunId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::event::DiffBase;
use lockgate_engine::run::state::{AwaitedBase, DiffBases};
use lockgate_engine::spec::workflow::DiffSince;
use std::path::PathBuf;
use std::sync::Arc;

const DRY_RUN: &str = "a dry run changes no files";

/// How many lines of the difference between two diffs go into the run's history.
const LINES: usize = 200;

/// What a diff needs from a run, captured when the effect starts.
pub(super) struct Looking {
    run: RunId,
    name: String,
    tree: Option<worktree::Wanted>,
    bases: DiffBases,
}

impl Looking {
    pub(super) fn of(run: &Run, name: String) -> Self {
        Self { run: run.id.clone(), name, tree: worktree::of_run(run), bases: run.diff_bases.clone() }
    }

    fn place(&self, shared: &Shared, dir: PathBuf) -> Workplace {
        Workplace { dir, root: shared.root.clone(), run: self.run.clone(), name: self.name.clone() }
    }

    /// Computes the diff, with the values to store.
    pub(super) async fn look(self, shared: &Shared, since: DiffSince, paths: Vec<String>, stop: &Stop) -> DiffObservation {
        let unavailable =
            |why: &str| ShownDiff { since: since.clone(), paths: paths.clone(), seen: SeenDiff::Unavailable(why.to_owned()) };
        if shared.stubs.is_some() {
            return DiffObservation { shown: unavailable(DRY_RUN), text: None, notes: Vec::new() };
        }
        let recorded = match &since {
            DiffSince::Phase => self.bases.phase.clone(),
            DiffSince::Run => self.bases.run.clone(),
            DiffSince::Ref(_) => None,
        };
        let (masks, stop, root) = (shared.masks(), stop.clone(), shared.root.clone());
        let Self { run, name, tree, .. } = self;
        let Some(dir) = worktree::existing(shared, tree) else {
            let shown = unavailable("the worktree of the run does not exist");
            let note = format!(
                "{} cannot be shown, and the answer is not bound to it: the worktree of the run does not exist",
                shown.title()
            );
            return DiffObservation { shown, text: None, notes: vec![note] };
        };
        let place = Workplace { dir, root, run, name };
        let request = Request { since: since.clone(), paths: paths.clone(), recorded };
        let looked = tokio::task::spawn_blocking(move || {
            let mut look = diff::look(&place, &request, &ObserveLimits::default(), &|patch| kept(&masks, patch), &stop);
            mask_names(&mut look.shown, &masks);
            look
        });
        looked.await.unwrap_or_else(|error| {
            let shown = unavailable(&error.to_string());
            DiffObservation {
                shown,
                text: None,
                notes: vec![format!("the change cannot be shown, and the answer is not bound to it: {error}")],
            }
        })
    }

    /// Describes how a shown diff differs from the current one, for people.
    pub(super) async fn differences(self, shared: &Shared, then: &ShownDiff, now: &ShownDiff, stop: &Stop) -> String {
        let (title, paths) = (then.title(), then.paths.clone());
        let (then, now) = match (&then.seen, &now.seen) {
            (SeenDiff::Change(then), SeenDiff::Change(now)) => (then.clone(), now.clone()),
            (SeenDiff::Unavailable(_), SeenDiff::Change(_)) => return format!("{title} can be shown now"),
            (_, SeenDiff::Unavailable(why)) => return format!("{title} can no longer be shown: {why}"),
        };
        let mut text = format!("{title} is different now: {}", totals(&now));
        if then.base != now.base {
            text += &format!("\nit starts from {} now, not from {}", short(&now.base), short(&then.base));
        }
        let Some(dir) = worktree::existing(shared, worktree_of(&self)) else { return text };
        let (place, stop, masks) = (self.place(shared, dir), stop.clone(), shared.masks());
        let patch = tokio::task::spawn_blocking(move || diff::since_shown(&place, &then, &now, &paths, &stop)).await;
        match patch.ok().flatten().filter(|patch| !patch.is_empty()).map(|patch| kept(&masks, &patch)) {
            Some(Ok(patch)) => text += &format!("\n{}", first_lines(&patch)),
            Some(Err(why)) => text += &format!("\nhow it differs is not shown: it {why}"),
            None => {}
        }
        text
    }
}

fn worktree_of(looking: &Looking) -> Option<worktree::Wanted> {
    looking.tree.as_ref().map(worktree::Wanted::same)
}

/// The values that a diff refers to.
pub(super) fn values(look: &DiffObservation) -> Option<(Digest, Vec<u8>)> {
    let digest = look.shown.change()?.text?;
    Some((digest, look.text.clone()?.into_bytes()))
}

/// Records the files at the start of a phase, after creating the run's worktree if it uses one.
pub(super) fn record(
    shared: Arc<Shared>,
    run: &Run,
    phase: &PhaseId,
    iteration: u32,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let names: &[&str] = match run.diff_bases.awaited {
        Some(AwaitedBase::RunAndPhase) => &["run", "phase"],
        Some(AwaitedBase::Phase) | None => &["phase"],
    };
    let (looking, phase) = (Looking::of(run, "base".to_owned()), phase.clone());
    async move {
        let base = match shared.stubs.is_some() {
            true => DiffBase::Missing(DRY_RUN.to_owned()),
            false => recorded(&shared, looking, names, &stop).await,
        };
        Performed::from(CommandKind::DiffBaseRecorded { phase, iteration, base })
    }
    .boxed()
}

async fn recorded(shared: &Shared, looking: Looking, names: &'static [&'static str], stop: &Stop) -> DiffBase {
    let dir = match worktree::directory(shared, worktree_of(&looking), stop).await {
        Ok(dir) => dir,
        Err(failure) => return DiffBase::Missing(failure.message),
    };
    let (place, stop) = (looking.place(shared, dir), stop.clone());
    let recorded = tokio::task::spawn_blocking(move || diff::record(&place, names, &stop)).await;
    recorded.unwrap_or_else(|error| DiffBase::Missing(error.to_string()))
}

/// Masks the secrets in a patch. The prefix of each line splits a multi-line secret, so the result is also searched without
/// the prefixes.
fn kept(masks: &Masks, patch: &str) -> Result<String, String> {
    let masked = masks.mask_text(patch).into_owned();
    let without_signs: String =
        masked.split_inclusive('\n').map(|line| line.strip_prefix([' ', '+', '-']).unwrap_or(line)).collect();
    match masks.contains(without_signs.as_bytes()) {
        true => Err("contains a secret".to_owned()),
        false => Ok(masked),
    }
}

/// File names are text too, and may contain secrets.
fn mask_names(shown: &mut ShownDiff, masks: &Masks) {
    let SeenDiff::Change(change) = &mut shown.seen else { return };
    for file in &mut change.files {
        for name in std::iter::once(&mut file.path).chain(&mut file.old_path) {
            *name = masks.mask_text(name).into_owned();
        }
    }
}

fn first_lines(patch: &str) -> String {
    let mut lines: Vec<String> = patch.lines().take(LINES).map(|line| crate::files::shortened(line, 500)).collect();
    let left = patch.lines().count().saturating_sub(LINES);
    if left > 0 {
        lines.push(format!("… and {}", lockgate_engine::plural::counted(left, "more line")));
    }
    lines.join("\n")
}

fn totals(change: &lockgate_engine::hold::GitChange) -> String {
    let files = lockgate_engine::plural::counted(change.file_count, "file");
    format!("{files}, +{} -{}", change.added, change.removed)
}

/// The abbreviated form of a git id.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
