//! Git diffs since the start of a phase or a run, or since a revision.
//!
//! The working tree, with uncommitted and untracked files, becomes a git tree and is compared with the tree of its starting
//! point. Neither the user's index nor the user's objects change: new objects go into a directory of the run, which git uses
//! in addition to the repository. `docs/design/show-diff.md` says why.
//!
//! | Module | Purpose |
//! |---|---|
//! | `objects` | our own object directory, and keeping the objects of a starting point |
//! | `tree` | the working tree as a git tree |
//! | `base` | the starting point of a diff |
//! | `read` | the changed files, the patch and the digest |

mod base;
mod objects;
mod read;
mod tree;

pub use objects::forget;
pub use read::{Kept, ObserveLimits};

use crate::commit::repository::Repository;
use crate::commit::{CommitError, NotCommitted, Place};
use crate::git::{GitError, git};
use crate::process::Stop;
use crate::root::Root;
use lockgate_engine::hold::{GitChange, SeenDiff, ShownDiff};
use lockgate_engine::id::RunId;
use lockgate_engine::run::event::DiffBase;
use lockgate_engine::spec::workflow::DiffSince;
use std::io;
use std::path::{Path, PathBuf};
use tree::Files;

/// The prefix of the refs that keep the commits of starting points.
pub(crate) const REFS: &str = "refs/lockgate/diffs/";

#[derive(Clone, Debug)]
pub struct Workplace {
    /// The working directory of the run: its root or its worktree.
    pub dir: PathBuf,
    pub root: Root,
    pub run: RunId,
    /// A name for the phase or task that requests the diff. Concurrent requests must have different names.
    pub name: String,
}

/// What to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub since: DiffSince,
    /// Only changes of these files and directories under the root; all if empty.
    pub paths: Vec<String>,
    /// The recorded starting point, for a diff since the start of the phase or the run.
    pub recorded: Option<DiffBase>,
}

/// A diff as it is shown, and what is stored with it.
#[derive(Clone, Debug)]
pub struct DiffObservation {
    pub shown: ShownDiff,
    /// The patch, if it is kept.
    pub text: Option<String>,
    /// Notes for people.
    pub notes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Repository(#[from] CommitError),
    #[error("it was stopped while git compared the files")]
    Stopped,
    #[error("the files were not recorded then: {0}")]
    NotRecorded(String),
    #[error("the files as they were then are no longer in git")]
    Lost,
    #[error("there is no revision {name} in this repository{}", if *.shallow { ", which is shallow: `git fetch --unshallow` fetches its full history" } else { "" })]
    NoRevision { name: String, shallow: bool },
    #[error("{0} is not inside the root")]
    Outside(String),
    #[error("{} cannot be written: {error}", .path.display())]
    Objects { path: PathBuf, error: io::Error },
}

impl From<NotCommitted> for DiffError {
    fn from(why: NotCommitted) -> Self {
        match why {
            NotCommitted::Failed(why) => Self::Repository(why),
            NotCommitted::Stopped => Self::Stopped,
        }
    }
}

/// Records the current files as a starting point. `names` says for what: the run, the phase.
pub fn record(place: &Workplace, names: &[&str], stop: &Stop) -> DiffBase {
    let recorded = || -> Result<String, DiffError> {
        let repository = place.open(&[], stop)?;
        let files = Files::of(place, &repository, stop)?;
        objects::keep(&repository, place, names, &files.tree)?;
        Ok(files.tree)
    };
    match recorded() {
        Ok(tree) => DiffBase::Tree { tree, kept_by: place.run.clone() },
        Err(why) => DiffBase::Missing(why.to_string()),
    }
}

/// Computes the diff.
pub fn look(place: &Workplace, request: &Request, caps: &ObserveLimits, kept: Kept<'_>, stop: &Stop) -> DiffObservation {
    let Request { since, paths, .. } = request;
    let shown = |seen| ShownDiff { since: since.clone(), paths: paths.clone(), seen };
    match change(place, request, caps, kept, stop) {
        Ok((change, text, notes)) => DiffObservation { shown: shown(SeenDiff::Change(Box::new(change))), text, notes },
        Err(why) => {
            let shown = shown(SeenDiff::Unavailable(why.to_string()));
            let note = format!("{} cannot be shown, and the answer is not bound to it: {why}", shown.title());
            DiffObservation { shown, text: None, notes: vec![note] }
        }
    }
}

/// The difference between the current files and a diff that was shown, as a patch; `None` if git no longer has the old ones.
pub fn since_shown(place: &Workplace, before: &GitChange, now: &GitChange, paths: &[String], stop: &Stop) -> Option<String> {
    let compared = || -> Result<String, DiffError> {
        let repository = place.open(&[], stop)?;
        let paths = read::pathspecs(&place.prefix()?, paths)?;
        Ok(read::patch(&repository, (&before.tree, &now.tree), &paths, ObserveLimits::default().patch_bytes)?.0)
    };
    compared().inspect_err(|error| tracing::debug!(%error, "cannot compute what changed since a question was shown")).ok()
}

type Seen = (GitChange, Option<String>, Vec<String>);

fn change(place: &Workplace, request: &Request, caps: &ObserveLimits, kept: Kept<'_>, stop: &Stop) -> Result<Seen, DiffError> {
    let keepers = match &request.recorded {
        Some(DiffBase::Tree { kept_by, .. }) if *kept_by != place.run => vec![kept_by.clone()],
        Some(DiffBase::Tree { .. } | DiffBase::Missing(_)) | None => Vec::new(),
    };
    let repository = place.open(&keepers, stop)?;
    let start = base::of(&repository, request)?;
    let files = Files::of(place, &repository, stop)?;
    let specs = read::pathspecs(&place.prefix()?, &request.paths)?;
    let (change, text) = read::change(&repository, &start, &files, &specs, caps, kept)?;
    let notes = start.note.into_iter().chain(files.notes()).collect();
    Ok((change, text, notes))
}

impl Workplace {
    /// The repository that contains the directory, with our own object directory.
    fn open(&self, keepers: &[RunId], stop: &Stop) -> Result<Repository, DiffError> {
        let top = git(&self.dir, &["rev-parse", "--show-toplevel"])?;
        self.open_at(Path::new(&top), keepers, stop)
    }

    /// The path from the top of the repository to the directory: empty, or with a trailing slash.
    fn prefix(&self) -> Result<String, DiffError> {
        Ok(git(&self.dir, &["rev-parse", "--show-prefix"])?)
    }

    fn open_at(&self, top: &Path, keepers: &[RunId], stop: &Stop) -> Result<Repository, DiffError> {
        let folder = self.root.diff_dir(&self.run);
        let place = Place {
            dir: top.to_owned(),
            scratch: folder.join(format!("index-{}", short_digest(&self.name))),
            lock: self.root.diff_lock(&self.run, &self.name),
            name: self.name.clone(),
        };
        let repository = Repository::open(&place, stop)?;
        let objects = objects::prepare(self, &repository, keepers)?;
        Ok(repository.with_objects(objects))
    }
}

/// A short digest for unique file names.
fn short_digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect()
}
