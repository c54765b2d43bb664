//! The project root: the directory that contains `.lockgate/`, and the paths of all state files in it.

use crate::files::{RunDirs, write_atomically};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{GateId, PhaseId, RunId, TaskKey};
use lockgate_engine::run::outbox::NoticeId;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) const STATE_DIR: &str = ".lockgate";

/// Never commit state by accident; the settings may be committed.
const IGNORED: &str = "*\n!.gitignore\n!config.yaml\n";

/// The maximum length of the readable part of a file name that is derived from an id.
const READABLE: usize = 40;

/// The directory that contains `.lockgate/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    dir: PathBuf,
    /// The state directory, if it is not in the project directory.
    state: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Task(&'a TaskKey),
    /// A gate of a phase execution.
    Gate {
        phase: &'a PhaseId,
        iteration: u32,
        gate: &'a GateId,
    },
}

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error("{} is not an existing directory; choose one with --root", path.display())]
    RootNotFound { path: PathBuf },
    /// Something other than a directory occupies the path.
    #[error("{} is not a directory, but Lockgate keeps its state there; move it away", path.display())]
    PathOccupied { path: PathBuf },
    #[error("{} cannot be written: {source}; Lockgate keeps its state there: make the directory writable, or choose another with --root", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

impl Root {
    /// The nearest root at or above `start`.
    pub fn find(start: &Path) -> Option<Self> {
        // Use the real path: the parent of `a/b/..` is the parent of `a`, not `a/b`.
        let start = real(start);
        start.ancestors().find(|dir| dir.join(STATE_DIR).is_dir()).map(|dir| Self { dir: dir.to_path_buf(), state: None })
    }

    /// The root at this directory, whether or not it has been initialized.
    pub fn at(dir: &Path) -> Self {
        Self { dir: real(dir), state: None }
    }

    /// The same project with its state elsewhere, so that the project directory is not touched.
    pub fn with_state(self, folder: PathBuf) -> Self {
        Self { state: Some(folder), ..self }
    }

    /// Creates `.lockgate/` and its `.gitignore` if they are missing.
    pub fn prepare(&self) -> Result<(), RootError> {
        if !self.dir.is_dir() {
            return Err(RootError::RootNotFound { path: self.dir.clone() });
        }
        let unwritable = |source| RootError::Unwritable { path: self.state_dir(), source };
        if !self.state_dir().is_dir() {
            create_dir(&self.state_dir())?;
            // A new directory is durable only once its parent has been synced.
            std::fs::File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(unwritable)?;
        }
        let ignore = self.state_dir().join(".gitignore");
        if ignore.symlink_metadata().is_err() {
            write_atomically(&ignore, IGNORED.as_bytes()).map_err(unwritable)?;
        }
        Ok(())
    }

    /// Creates the directories of a run for logs, locks and outputs.
    pub fn prepare_run(&self, run: &RunId) -> Result<(), RootError> {
        let folder = self.run_dir(run);
        [folder.join("logs"), folder.join("locks"), folder.join("out")].iter().try_for_each(|folder| create_dir(folder))
    }

    /// The project directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state directory.
    pub fn state_dir(&self) -> PathBuf {
        self.state.clone().unwrap_or_else(|| self.dir.join(STATE_DIR))
    }

    pub fn config_file(&self) -> PathBuf {
        self.state_dir().join("config.yaml")
    }

    /// Settings of snapshots, under the name and with the keys that other tools use.
    pub fn checkpoint_config_file(&self) -> PathBuf {
        self.dir.join(".claude").join("checkpoint-config.yaml")
    }

    pub fn database_file(&self) -> PathBuf {
        self.state_dir().join("lockgate.db")
    }

    /// The directory of one run.
    pub fn run_dir(&self, run: &RunId) -> PathBuf {
        self.state_dir().join("runs").join(file_name(run.as_str()))
    }

    /// The log of one attempt of a task or gate.
    pub fn log_file(&self, run: &RunId, step: Step<'_>, attempt: u32) -> PathBuf {
        self.run_dir(run).join("logs").join(format!("{}.{attempt}.log", step.file_name()))
    }

    /// The lock file that an attempt of a task or gate holds while it is alive.
    pub fn lock_file(&self, run: &RunId, step: Step<'_>, attempt: u32) -> PathBuf {
        self.run_dir(run).join("locks").join(format!("{}.{attempt}.lock", step.file_name()))
    }

    /// The lock file of a command that delivers a notice. It is outside the run's directory because taking over a run stops
    /// everything that its tasks left running, while another process may still be delivering the notice.
    pub fn notice_lock(&self, notice: &NoticeId) -> PathBuf {
        self.state_dir().join("notices").join(format!("{}.{}.lock", file_name(notice.run.as_str()), notice.seq))
    }

    /// The lock file that git holds while it creates a worktree of a run.
    pub fn worktree_lock(&self, run: &RunId, name: &str) -> PathBuf {
        self.run_dir(run).join("locks").join(format!("worktree.{}.lock", file_name(name)))
    }

    /// The lock file that git holds while it commits a task's changes.
    pub fn commit_lock(&self, run: &RunId, name: &str) -> PathBuf {
        self.run_dir(run).join("locks").join(format!("commit.{}.lock", file_name(name)))
    }

    /// Temporary files of a commit.
    pub fn commit_dir(&self, run: &RunId, name: &str) -> PathBuf {
        self.run_dir(run).join("commit").join(file_name(name))
    }

    /// The lock file that git holds while it computes a diff for a question of a run.
    pub fn diff_lock(&self, run: &RunId, name: &str) -> PathBuf {
        self.run_dir(run).join("locks").join(format!("diff.{}.lock", file_name(name)))
    }

    /// Git objects that only the diffs of a run need, and temporary files.
    pub fn diff_dir(&self, run: &RunId) -> PathBuf {
        self.run_dir(run).join("diff")
    }

    /// The lock files of a run's attempts, including those left behind by a killed driver.
    pub fn lock_files(&self, run: &RunId) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.run_dir(run).join("locks")) else { return Vec::new() };
        entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "lock"))
            .collect()
    }

    /// The default output directory of a run, relative to the root.
    pub fn default_output_dir(&self, run: &RunId) -> String {
        format!("{STATE_DIR}/runs/{}/out", file_name(run.as_str()))
    }

    /// The directories that a run's files may be in.
    pub fn run_dirs(&self, output_dir: &str, feature: Option<&str>) -> RunDirs {
        RunDirs { root: self.dir.clone(), output_dir: PathBuf::from(output_dir), feature: feature.map(str::to_owned) }
    }
}

impl<'a> Step<'a> {
    /// The address that people type: `phase/task` or `phase/gate`.
    pub fn address(self) -> String {
        match self {
            Self::Task(key) => key.address(),
            Self::Gate { phase, gate, .. } => format!("{phase}/{gate}"),
        }
    }

    /// The iteration of its phase, counted from 1.
    pub fn iteration(self) -> u32 {
        match self {
            Self::Task(key) => key.iteration,
            Self::Gate { iteration, .. } => iteration,
        }
    }

    pub fn task(self) -> Option<&'a TaskKey> {
        match self {
            Self::Task(key) => Some(key),
            Self::Gate { .. } => None,
        }
    }

    /// Unique for every step; a dot only separates the parts.
    fn file_name(&self) -> String {
        match self {
            Self::Task(TaskKey { phase, iteration, task, item }) => {
                let item = item.as_deref().map(|item| format!(".{}", file_name(item))).unwrap_or_default();
                format!("{}.{iteration}.task.{}{item}", file_name(phase.as_str()), file_name(task.as_str()))
            }
            Self::Gate { phase, iteration, gate } => {
                format!("{}.{iteration}.gate.{}", file_name(phase.as_str()), file_name(gate.as_str()))
            }
        }
    }
}

/// An id as part of a file name: unchanged if it is safe on every file system, otherwise its readable part plus a digest, so
/// that ids that differ only in case, punctuation or a long suffix stay distinct.
pub(crate) fn file_name(id: &str) -> String {
    let plain = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-' | '_');
    if !id.is_empty() && id.len() <= READABLE && id.chars().all(plain) {
        return id.to_owned();
    }
    let lower = id.to_lowercase();
    let readable: String = lower.chars().take(READABLE).map(|character| if plain(character) { character } else { '_' }).collect();
    let digest = Digest::of(id.as_bytes()).to_string();
    format!("{readable}~{}", &digest[..16])
}

/// The canonical path, if it can be resolved.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf())
}

fn create_dir(path: &Path) -> Result<(), RootError> {
    match std::fs::create_dir_all(path) {
        Ok(()) => Ok(()),
        Err(source) => Err(match path.ancestors().find(|path| path.symlink_metadata().is_ok() && !path.is_dir()) {
            Some(other) => RootError::PathOccupied { path: other.to_path_buf() },
            None => RootError::Unwritable { path: path.to_path_buf(), source },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(task: &str, item: Option<&str>) -> TaskKey {
        TaskKey { phase: "build".into(), iteration: 2, task: task.into(), item: item.map(str::to_owned) }
    }

    #[test]
    fn the_root_is_the_nearest_ancestor_with_a_lockgate_directory() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let deep = top.join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(top.join("a/b/.lockgate"), "a file of that name does not count").unwrap();
        Root::at(&top).prepare().unwrap();
        assert_eq!(Root::find(&deep), Some(Root::at(&top)));
        Root::at(&deep).prepare().unwrap();
        assert_eq!(Root::find(&deep), Some(Root::at(&deep)));
        assert_eq!(Root::find(&deep.join("..")), Some(Root::at(&top)), "a child is not an ancestor");
        assert_eq!(Root::find(&top.join("a")).map(|root| root.dir().to_path_buf()), Some(top));
    }

    #[test]
    fn preparing_keeps_state_out_of_git_and_is_idempotent() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        assert!(!root.state_dir().exists(), "naming a root creates nothing");
        root.prepare().unwrap();
        let ignore = root.state_dir().join(".gitignore");
        assert_eq!(std::fs::read_to_string(&ignore).unwrap(), "*\n!.gitignore\n!config.yaml\n");
        std::fs::write(&ignore, "mine").unwrap();
        root.prepare().unwrap();
        assert_eq!(std::fs::read_to_string(&ignore).unwrap(), "mine");
    }

    #[test]
    fn a_file_that_occupies_the_path_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        std::fs::write(root.state_dir(), "").unwrap();
        let error = root.prepare().unwrap_err();
        assert!(matches!(&error, RootError::PathOccupied { path } if *path == root.state_dir()), "{error}");
        std::fs::remove_file(root.state_dir()).unwrap();
        std::os::unix::fs::symlink("nowhere", root.state_dir()).unwrap();
        assert!(matches!(root.prepare(), Err(RootError::PathOccupied { .. })));
        let error = Root::at(&folder.path().join("missing")).prepare().unwrap_err();
        assert!(matches!(&error, RootError::RootNotFound { .. }) && error.to_string().contains("--root"), "{error}");
    }

    #[test]
    fn a_run_directory_that_cannot_be_created_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        root.prepare().unwrap();
        std::fs::write(root.state_dir().join("runs"), "").unwrap();
        let error = root.prepare_run(&RunId::new("abcdefgh")).unwrap_err();
        assert!(matches!(&error, RootError::PathOccupied { path } if *path == root.state_dir().join("runs")), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_read_only_state_directory_is_reported_with_help() {
        // No one can create directories there, not even root.
        let error = Root::at(Path::new("/proc")).prepare().unwrap_err();
        assert!(matches!(&error, RootError::Unwritable { .. }) && error.to_string().contains("--root"), "{error}");
    }

    #[test]
    fn run_files_are_in_the_run_directory_and_each_attempt_has_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let (root, run) = (Root::at(folder.path()), RunId::new("abcdefgh"));
        root.prepare_run(&run).unwrap();
        let gate = GateId::new("lint");
        let phase = PhaseId::new("build");
        let (task, item, odd) = (key("lint", None), key("lint", Some("a.b")), key("../../x", None));
        let steps = [
            Step::Task(&task),
            Step::Task(&item),
            Step::Task(&odd),
            Step::Gate { phase: &phase, iteration: 2, gate: &gate },
            Step::Gate { phase: &phase, iteration: 1, gate: &gate },
        ];
        assert_eq!(root.log_file(&run, steps[0], 1), root.run_dir(&run).join("logs/build.2.task.lint.1.log"));
        let mut names = std::collections::BTreeSet::new();
        for step in steps {
            for attempt in 1..3 {
                let (log, lock) = (root.log_file(&run, step, attempt), root.lock_file(&run, step, attempt));
                std::fs::write(&log, "").unwrap();
                std::fs::write(&lock, "").unwrap();
                names.extend([log, lock]);
            }
        }
        assert_eq!(names.len(), 20);
        let run_dirs = root.run_dirs(&root.default_output_dir(&run), None);
        assert_eq!(run_dirs.output_path(), root.run_dir(&run).join("out"));
        assert!(run_dirs.output_path().is_dir());
    }

    #[test]
    fn plain_ids_are_used_as_file_names() {
        assert_eq!(file_name("build-2_fast"), "build-2_fast");
    }

    #[test]
    fn file_names_of_ids_are_unique_and_stay_inside() {
        let long = "x".repeat(300);
        let longer = "x".repeat(301);
        let ids = ["", ".", "..", "../..", "a/b", "a_b", "a.b", "A_b", "a\0b", "a~b", "ä", "Ä", &long, &longer];
        let names: std::collections::BTreeSet<String> = ids.iter().map(|id| file_name(id)).collect();
        assert_eq!(names.len(), ids.len());
        for name in names {
            assert!(name.len() <= READABLE + 17, "{name}");
            assert!(name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~')), "{name}");
        }
    }
}
