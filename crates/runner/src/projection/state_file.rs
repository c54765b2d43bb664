//! The state file of a pipeline: its path, and writing it in order.

use crate::files::write_in;
use crate::root::Root;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::pipeline::Imported;
use lockgate_engine::spec::workflow::Pipeline;
use lockgate_engine::time::Timestamp;
use lockgate_formats::state_file::document::{Document, document};
use lockgate_formats::state_file::render::{Before, Original, WrongTransition, exported, render};
use lockgate_store::{ListedRun, Store, StoreError};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The default directory of state files, relative to the root.
pub const DEFAULT_DIR: &str = ".claude/skills/build-pipeline/checkpoints";

/// The directory next to them that keeps those of earlier runs.
const ARCHIVE: &str = "archive";

const MAX_BYTES: u64 = 16_000_000;

#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    #[error("the state file {path:?} must be inside the root: {why}")]
    BadPath { path: String, why: String },
    #[error("the state file {} cannot be written: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is ahead of the run.
    #[error(
        "the state file {} is not overwritten: {source}; if the file is wrong, move it away and check the run again",
        path.display()
    )]
    Transition {
        path: PathBuf,
        /// The invalid transition.
        source: WrongTransition,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The intended content of a run's state file.
pub struct StateFile {
    root: Root,
    store: Arc<dyn Store>,
    run: RunId,
    version: u64,
    path: String,
    document: Document,
    imported: Option<(lockgate_engine::digest::Digest, Document)>,
}

impl StateFile {
    /// The state file of a run; `None` if the run is not a pipeline.
    pub fn of(root: &Root, store: Arc<dyn Store>, run: &Run) -> Option<Self> {
        let pipeline = run.workflow.pipeline.as_deref()?;
        let shown = root.dir().to_string_lossy();
        let imported = run.pipeline.as_ref().and_then(|known| known.imported.as_ref());
        let meant = |imported: &Imported| Document::of_imported(pipeline, imported, run.started_at);
        let imported = imported.map(|imported| (imported.file.digest, meant(imported)));
        Some(Self {
            root: root.clone(),
            store,
            run: run.id.clone(),
            version: run.version,
            path: path_of(pipeline),
            document: document(run, Some(&shown))?,
            imported,
        })
    }

    /// The path of a pipeline's state file, relative to the root.
    pub fn place(pipeline: &Pipeline) -> String {
        path_of(pipeline)
    }

    /// The version of the run that it shows.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn path(&self) -> PathBuf {
        self.root.dir().join(&self.path)
    }

    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The text it would have, whether or not it is written.
    pub async fn export(&self) -> Result<String, StateFileError> {
        let original = self.original().await?;
        let text = read(&self.path()).map_err(|source| self.io(source))?;
        let before = before(text.as_deref(), original);
        Ok(exported(before.as_ref(), &self.document))
    }

    /// Writes it, unless the file shows a later state of the run or belongs to a later run of the same pipeline. Returns
    /// where a file that was not a state file was moved.
    pub async fn write(&self) -> Result<Option<PathBuf>, StateFileError> {
        let runs = runs_of(&*self.store, &self.document.prd).await?;
        if runs.first().is_some_and(|newest| newest.row.run != self.run) {
            return Ok(None);
        }
        match self.write_unless(None).await? {
            Written::Here(aside) => Ok(aside),
            Written::Newer(newer) if self.store.commits(&self.run, newer - 1, 1).await?.is_empty() => {
                // The newer state was rolled back with the database, so the file is wrong.
                match self.write_unless(Some(newer)).await? {
                    Written::Here(aside) => Ok(aside),
                    Written::Newer(_) => Ok(None),
                }
            }
            Written::Newer(_) => Ok(None),
        }
    }

    /// Writes it, unless the file shows a newer version other than `taken_back`.
    async fn write_unless(&self, taken_back: Option<u64>) -> Result<Written, StateFileError> {
        let original = self.original().await?;
        let (root, run, version) = (self.root.clone(), self.run.clone(), self.version);
        let (path, document) = (self.path.clone(), self.document.clone());
        let written = tokio::task::spawn_blocking(move || {
            let mut sequence =
                Sequence::take(&root, &run).map_err(|source| StateFileError::Io { path: root.dir().join(&path), source })?;
            if sequence.written > version && Some(sequence.written) != taken_back {
                return Ok(Written::Newer(sequence.written));
            }
            // A state that was rolled back does not restrict later transitions.
            let text = |before: Option<&Before>| match taken_back {
                Some(_) => Ok(exported(before, &document)),
                None => render(before, &document),
            };
            write(&root, &mut sequence, version, &path, text, original).map(Written::Here)
        });
        written.await.map_err(|error| self.io(io::Error::other(error)))?
    }

    fn io(&self, source: io::Error) -> StateFileError {
        StateFileError::Io { path: self.path(), source }
    }

    /// The file that the run was imported from.
    async fn original(&self) -> Result<Option<Original>, StateFileError> {
        let Some((digest, meant)) = &self.imported else { return Ok(None) };
        let bytes = self.store.values(&[*digest]).await?.pop().flatten().unwrap_or_default();
        Ok(Some(Original::new(&String::from_utf8_lossy(&bytes), meant)))
    }
}

enum Written {
    /// It was written; with the path where a file that was not a state file was moved.
    Here(Option<PathBuf>),
    /// The file shows this later version.
    Newer(u64),
}

/// The runs of a pipeline, newest first. Other workflows may have the same feature.
pub async fn runs_of(store: &dyn Store, prd: &str) -> Result<Vec<ListedRun>, StoreError> {
    let mut runs = store.runs_of_feature(prd).await?;
    runs.retain(|run| run.row.workflow == prd);
    Ok(runs)
}

/// The path of a pipeline's state file, relative to the root.
fn path_of(pipeline: &Pipeline) -> String {
    pipeline.state_file.clone().unwrap_or_else(|| format!("{DEFAULT_DIR}/{}.json", pipeline.prd))
}

/// The contents of the file, merged over what the run was imported from, so that keys only the import knows are not lost with
/// the file.
fn before(text: Option<&str>, original: Option<Original>) -> Option<Before> {
    let mut before = text.and_then(Before::of_text);
    if let Some(original) = original {
        let known = before.get_or_insert_with(|| Before { keys: original.keys.clone(), original: None });
        known.original = Some(original);
    }
    before
}

fn write(
    root: &Root,
    sequence: &mut Sequence,
    version: u64,
    path: &str,
    wanted: impl FnOnce(Option<&Before>) -> Result<String, WrongTransition>,
    original: Option<Original>,
) -> Result<Option<PathBuf>, StateFileError> {
    let full = root.dir().join(path);
    let io = |source| StateFileError::Io { path: full.clone(), source };
    let (folder, name) = place(root, path)?;
    let text = read(&full).map_err(io)?;
    let is_foreign = text.as_deref().is_some_and(|text| Before::of_text(text).is_none() && !text.trim().is_empty());
    let aside = if is_foreign { Some(moved_aside(&folder, &name).map_err(io)?) } else { None };
    let wanted = wanted(before(text.as_deref(), original).as_ref())
        .map_err(|source| StateFileError::Transition { path: full.clone(), source })?;
    if text.as_deref() != Some(wanted.as_str()) {
        write_in(&folder, &name, wanted.as_bytes()).map_err(io)?;
    }
    sequence.set(version).map_err(io)?;
    Ok(aside.map(|name| full.with_file_name(name)))
}

/// Moves a file that is not a state file aside, next to those that were moved before.
fn moved_aside(folder: &Dir, name: &Path) -> io::Result<PathBuf> {
    let first = format!("{}.unreadable", name.display());
    let others = (2_u32..).map(|number| format!("{first}-{number}"));
    let mut names = std::iter::once(first.clone()).chain(others).map(PathBuf::from);
    let free = names.find(|free| folder.symlink_metadata(free).is_err()).expect("there are more names than files");
    folder.rename(name, folder, &free)?;
    Ok(free)
}

/// The directory of a state file, created if it is missing, and the file's name. Symlinks must not lead out of the root.
fn place(root: &Root, path: &str) -> Result<(Dir, PathBuf), StateFileError> {
    let bad = |why: &str| StateFileError::BadPath { path: path.to_owned(), why: why.to_owned() };
    let asked = Path::new(path);
    if asked.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(bad("it is absolute or contains `..`"));
    }
    if is_own(asked) {
        return Err(bad("`.lockgate` and `.git` are reserved"));
    }
    let name = asked.file_name().map(PathBuf::from).ok_or_else(|| bad("it has no file name"))?;
    let parent = asked.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let io = |source| StateFileError::Io { path: root.dir().join(path), source };
    let top = Dir::open_ambient_dir(root.dir(), ambient_authority()).map_err(io)?;
    if parent != Path::new(".") {
        top.create_dir_all(parent).map_err(io)?;
    }
    Ok((top.open_dir(parent).map_err(io)?, name))
}

/// Whether a path inside the root belongs to Lockgate or git.
pub(crate) fn is_own(path: &Path) -> bool {
    let first = path.components().find(|part| !matches!(part, Component::CurDir));
    first.is_some_and(|first| [".lockgate", ".git"].iter().any(|own| first.as_os_str().eq_ignore_ascii_case(own)))
}

/// The text of a file; `None` if it does not exist.
fn read(path: &Path) -> io::Result<Option<String>> {
    // Pipes and devices are not opened, and symlinks are not followed.
    match path.symlink_metadata() {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(io::Error::other("it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than any state file"));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The version of a run that its file shows, under a lock: processes write one after the other, and an older version never
/// replaces a newer one.
struct Sequence {
    file: File,
    written: u64,
}

impl Sequence {
    fn take(root: &Root, run: &RunId) -> io::Result<Self> {
        let folder = root.run_dir(run);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join("state-file");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        let mut text = String::new();
        // A truncated number counts as none; the file is then written once more.
        let written = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok()).unwrap_or(0);
        Ok(Self { file, written })
    }

    fn set(&mut self, version: u64) -> io::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(version.to_string().as_bytes())
    }
}

/// Moves the state file of an earlier run aside, so that a new one can start; returns its new path.
pub fn archive(root: &Root, pipeline: &Pipeline, at: Timestamp) -> Result<Option<PathBuf>, StateFileError> {
    let path = path_of(pipeline);
    let full = root.dir().join(&path);
    let io = |source| StateFileError::Io { path: full.clone(), source };
    if read(&full).map_err(io)?.is_none() {
        return Ok(None);
    }
    let (folder, name) = place(root, &path)?;
    folder.create_dir_all(ARCHIVE).map_err(io)?;
    let stem = name.file_stem().unwrap_or(name.as_os_str()).to_string_lossy().into_owned();
    let moment: String = at.to_string().chars().filter(|character| !"-:".contains(*character)).collect();
    let kept = Path::new(ARCHIVE).join(format!("{stem}-{moment}.json"));
    folder.rename(&name, &folder, &kept).map_err(io)?;
    Ok(full.parent().map(|parent| parent.join(kept)))
}

/// The path of this pipeline's state file, if it exists.
pub fn is_there(root: &Root, pipeline: &Pipeline) -> Option<PathBuf> {
    let path = root.dir().join(path_of(pipeline));
    path.symlink_metadata().is_ok().then_some(path)
}
