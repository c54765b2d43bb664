//! What changed in git since a phase or a run started, or since a revision.
//!
//! The working tree becomes a git tree, with uncommitted and untracked files, and is compared with the tree of its starting point. Neither
//! the user's index nor the user's objects change: new objects go into a directory of the run, which git sees as an addition to the
//! repository. `docs/design/show-diff.md` says why.
//!
//! | Module | Purpose |
//! |---|---|
//! | `objects` | the directory for objects of our own, and keeping what a starting point needs |
//! | `tree` | the working tree as a git tree |
//! | `base` | where a change starts |
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

/// The names of the refs that keep commits which changes start from begin with this.
pub(crate) const REFS: &str = "refs/lockgate/diffs/";

/// Where to look.
#[derive(Clone, Debug)]
pub struct Workplace {
    /// The directory that the run works in: its root, or its worktree.
    pub dir: PathBuf,
    /// The run's project.
    pub root: Root,
    /// The run.
    pub run: RunId,
    /// What looks, in a word: the phase or the task that asks. Two that look in parallel have different names.
    pub name: String,
}

/// What a change is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Since when.
    pub since: DiffSince,
    /// Only changes of these files and directories under the root; all when empty.
    pub paths: Vec<String>,
    /// The starting point that was recorded, where the change is one since the phase or the run started.
    pub recorded: Option<DiffBase>,
}

/// A change as it is shown, and what is stored with it.
#[derive(Clone, Debug)]
pub struct DiffObservation {
    /// What is shown.
    pub shown: ShownDiff,
    /// The patch, where it is kept.
    pub text: Option<String>,
    /// What people must know about it.
    pub notes: Vec<String>,
}

/// Why a change cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Git failed, or a file next to our own index did.
    #[error(transparent)]
    Repository(#[from] CommitError),
    /// The run was stopped first.
    #[error("it was stopped while git looked at the files")]
    Stopped,
    /// The starting point was not recorded.
    #[error("the files were not recorded then: {0}")]
    NotRecorded(String),
    /// The starting point is gone.
    #[error("the files as they were then are no longer in git")]
    Lost,
    /// The revision is not there.
    #[error("there is no revision {name} in this repository{}", if *.shallow { ", which is shallow: `git fetch --unshallow` gets all of its history" } else { "" })]
    NoRevision {
        /// How it was named.
        name: String,
        /// Whether the repository has only some of its history.
        shallow: bool,
    },
    /// A path leads out of the root.
    #[error("{0} is not under the root")]
    Outside(String),
    /// The directory for our own objects cannot be used.
    #[error("{} cannot be written: {error}", .path.display())]
    Objects {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl From<NotCommitted> for DiffError {
    fn from(why: NotCommitted) -> Self {
        match why {
            NotCommitted::Failed(why) => Self::Repository(why),
            NotCommitted::Stopped => Self::Stopped,
        }
    }
}

/// Records the files as they are now, as the starting point of changes. `names` says of what: of the run, of the phase.
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

/// Looks at what changed.
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

/// How the files now differ from those of a change that was shown, as a patch; nothing where git no longer knows those.
pub fn since_shown(place: &Workplace, before: &GitChange, now: &GitChange, paths: &[String], stop: &Stop) -> Option<String> {
    let compared = || -> Result<String, DiffError> {
        let repository = place.open(&[], stop)?;
        let paths = read::pathspecs(&place.prefix()?, paths)?;
        Ok(read::patch(&repository, (&before.tree, &now.tree), &paths, ObserveLimits::default().patch_bytes)?.0)
    };
    compared().inspect_err(|error| tracing::debug!(%error, "what changed since a question was shown is not known")).ok()
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
    /// The repository that the directory is in, with a directory for our own objects.
    fn open(&self, keepers: &[RunId], stop: &Stop) -> Result<Repository, DiffError> {
        let top = git(&self.dir, &["rev-parse", "--show-toplevel"])?;
        self.open_at(Path::new(&top), keepers, stop)
    }

    /// From the top of the repository to the directory: empty, or ending with a slash.
    fn prefix(&self) -> Result<String, DiffError> {
        Ok(git(&self.dir, &["rev-parse", "--show-prefix"])?)
    }

    fn open_at(&self, top: &Path, keepers: &[RunId], stop: &Stop) -> Result<Repository, DiffError> {
        let folder = self.root.diff_folder(&self.run);
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

/// Enough of a digest to tell names apart in file names.
fn short_digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect()
}
