//! Making a checkpoint ready to be shown, and looking again at what was shown.

use super::values::{Renderer, TaskValues};
use super::{Shared, worktree};
use crate::files::{Caps, differences, observe, observe_again};
use crate::world::Performed;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{Seen, ShownFile};
use lockgate_engine::id::{HoldId, PhaseId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Body;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(super) fn show(shared: Arc<Shared>, run: &Run, phase: &PhaseId, iteration: u32) -> BoxFuture<'static, Performed> {
    let phase_id = phase.clone();
    let declared = run.workflow.phase(phase.as_str()).and_then(|phase| Some((phase, phase.checkpoint.clone()?)));
    let Some((phase, checkpoint)) = declared else { unreachable!("only a declared checkpoint is shown") };
    let places = shared.places(run);
    let templates = std::iter::once(checkpoint.prompt.as_str()).chain(checkpoint.show_files.iter().map(String::as_str));
    let renderer = Renderer::of(run, phase, Path::new(&run.output_dir), TaskValues::default(), templates);
    let tree = worktree::of_run(run);
    async move {
        let mut notes = Vec::new();
        let (prompt, paths) = match renderer.ready(&shared).await {
            Err(message) => {
                notes.push(format!("values could not be filled in: {message}"));
                (checkpoint.prompt.clone(), checkpoint.show_files.clone())
            }
            Ok(ready) => {
                let mut fill = |template: &String| {
                    ready.text(template).unwrap_or_else(|message| {
                        notes.push(message);
                        template.clone()
                    })
                };
                (fill(&checkpoint.prompt), checkpoint.show_files.iter().map(fill).collect())
            }
        };
        let paths = worktree::shown(&shared, tree, &places, paths);
        let masks = shared.masks();
        let observed = observe(&places, &paths, &Caps::default(), &|bytes| masks.contains(bytes));
        notes.extend(observed.files.iter().filter_map(note));
        let prompt = masks.mask_text(&prompt).into_owned();
        let body = Body::Shown { phase: phase_id, iteration, prompt, files: observed.files, notes };
        Performed { body, values: observed.values }
    }
    .boxed()
}

/// What people must know about a file that they are shown.
fn note(file: &ShownFile) -> Option<String> {
    let path = &file.path;
    match (&file.seen, &file.not_kept) {
        (Seen::Unreadable(why), _) => Some(format!("{path} cannot be shown, and the answer is not bound to it: {why}")),
        (Seen::Absent, _) => Some(format!("{path} does not exist")),
        (Seen::File { .. } | Seen::Directory { .. }, Some(why)) => Some(format!("{path} is known by its digest only: {why}")),
        (Seen::File { .. } | Seen::Directory { .. }, None) => None,
    }
}

pub(super) fn recheck(shared: Arc<Shared>, run: &Run, hold: &HoldId, revision: u32) -> BoxFuture<'static, Performed> {
    let hold_id = hold.clone();
    let before = run.holds.get(hold).map(|hold| hold.files.clone()).unwrap_or_default();
    let places = shared.places(run);
    async move {
        let masks = shared.masks();
        let now = observe_again(&places, &before, &Caps::default(), &|bytes| masks.contains(bytes));
        let mut changes = Vec::new();
        if now.files != before {
            let known = kept(&shared, &before, &now.values).await;
            changes = differences(&before, &now.files, &|digest| known.get(digest).cloned());
            changes.extend(now.files.iter().filter_map(note));
        }
        let body = Body::Rechecked { hold: hold_id, revision, files: now.files, differences: changes };
        Performed { body, values: now.values }
    }
    .boxed()
}

/// The bytes of what was shown, from the store, and of what is there now.
async fn kept(shared: &Shared, before: &[ShownFile], now: &[(Digest, Vec<u8>)]) -> BTreeMap<Digest, Vec<u8>> {
    let digests: Vec<Digest> = before.iter().filter_map(|file| file.seen.digest()).collect();
    let stored = shared.store.values(&digests).await.unwrap_or_default();
    let then = digests.into_iter().zip(stored).filter_map(|(digest, bytes)| Some((digest, bytes?)));
    then.chain(now.iter().cloned()).collect()
}
