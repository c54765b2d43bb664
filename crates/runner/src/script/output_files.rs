//! Access to files in the output directory, and nowhere else.
//!
//! Every path is resolved beneath a directory handle, so that neither `..` nor a symlink leads out of it, even if a symlink
//! is created while the script runs.

use super::{FILE_LIMIT, Files};
use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions, OpenOptionsExt},
};
use rustix::fs::OFlags;
use std::{
    cell::{Cell, OnceCell},
    io::{self, ErrorKind, Read, Write},
    path::{Component, Path, PathBuf},
};

/// The output directory of one evaluation, opened on first use.
pub(super) struct OutputFiles {
    files: Files,
    root: OnceCell<Dir>,
    written: Cell<u64>,
}

pub(super) type Outcome<T> = Result<T, OutputFileError>;

/// Why a script cannot use a path. The text becomes the message of an exception.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputFileError {
    #[error("{0:?} does not exist in the output directory")]
    Absent(String),
    /// It is empty or contains a NUL.
    #[error("{0:?} is not a path")]
    NotAPath(String),
    #[error("{0:?} leads out of the output directory; scripts can use only files inside it")]
    LeadsOut(String),
    #[error("{0:?} leads out of the output directory through a symlink; scripts can use only files inside it")]
    LinkLeadsOut(String),
    #[error("{0:?} is a directory")]
    IsDirectory(String),
    /// The output directory disappeared while it was being created.
    #[error("{0:?}: the output directory cannot be created")]
    NotCreated(String),
    #[error("{path:?}: {error}")]
    Io {
        /// The path as the script wrote it.
        path: String,
        error: io::Error,
    },
}

const MAX_LISTED: usize = 10_000;
/// The maximum number of entries visited for a list: there may be more directories than files.
const MAX_VISITED: usize = 100_000;

/// The state of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Missing,
    /// An empty file, or a directory without files.
    Empty,
    Filled,
}

impl OutputFiles {
    pub(super) fn new(files: Files) -> Self {
        Self { files, root: OnceCell::new(), written: Cell::new(0) }
    }

    /// The text of a file; invalid UTF-8 is replaced.
    pub(super) fn read(&self, path: &str) -> Outcome<String> {
        self.read_if_present(path)?.ok_or_else(|| OutputFileError::Absent(path.to_owned()))
    }

    /// The text of a file; `None` if it does not exist.
    pub(super) fn read_if_present(&self, path: &str) -> Outcome<Option<String>> {
        let Some(root) = self.root(path)? else { return Ok(None) };
        let name = self.resolve(root, path)?;
        match read(root, &name) {
            Ok(bytes) => {
                Ok(Some(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())))
            }
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(explain(path, error)),
        }
    }

    pub(super) fn exists(&self, path: &str) -> Outcome<bool> {
        let Some(root) = self.root(path)? else { return Ok(false) };
        match root.metadata(self.resolve(root, path)?) {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(explain(path, error)),
        }
    }

    /// The paths that the phase is expected to write.
    pub(super) fn expected(&self) -> &[String] {
        &self.files.expected
    }

    pub(super) fn state(&self, path: &str) -> Outcome<State> {
        let Some(root) = self.root(path)? else { return Ok(State::Missing) };
        let is_empty = match root.metadata(self.resolve(root, path)?) {
            Ok(found) if found.is_dir() => self.list(path)?.is_empty(),
            Ok(found) => found.len() == 0,
            Err(error) if is_absent(&error) => return Ok(State::Missing),
            Err(error) => return Err(explain(path, error)),
        };
        Ok(if is_empty { State::Empty } else { State::Filled })
    }

    /// Whether the text of a file, or of any file in a directory, satisfies a predicate. Files that are too large to read do
    /// not.
    pub(super) fn holds(&self, path: &str, is_such: impl Fn(&str) -> bool) -> Outcome<bool> {
        let Some(root) = self.root(path)? else { return Ok(false) };
        let found = root.metadata(self.resolve(root, path)?).map_err(|error| explain(path, error))?;
        let files = if found.is_dir() { self.list(path)? } else { vec![path.to_owned()] };
        for file in files {
            let size = root.metadata(self.resolve(root, &file)?).map_or(0, |found| found.len());
            if size <= FILE_LIMIT as u64 && self.read_if_present(&file)?.is_some_and(|text| is_such(&text)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The files in a directory and its subdirectories, relative to the output directory, sorted; empty if it does not exist.
    pub(super) fn list(&self, path: &str) -> Outcome<Vec<String>> {
        let Some(root) = self.root(path)? else { return Ok(Vec::new()) };
        let folder = self.resolve(root, path)?;
        let mut listing = Listing { root, files: Vec::new(), looked_at: 0 };
        match listing.gather(&folder) {
            Ok(()) => {}
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(explain(path, error)),
        }
        listing.files.sort();
        Ok(listing.files)
    }

    /// Writes a file atomically and durably. Returns its path relative to the output directory.
    pub(super) fn write(&self, path: &str, content: &str) -> Outcome<String> {
        // Check before anything is created.
        steps(&self.files, path)?;
        let root = match self.root(path)? {
            Some(root) => root,
            None => {
                Dir::create_ambient_dir_all(&self.files.output_dir, ambient_authority()).map_err(|e| explain(path, e))?;
                self.root(path)?.ok_or_else(|| OutputFileError::NotCreated(path.to_owned()))?
            }
        };
        let name = self.resolve(root, path)?;
        self.write_beneath(root, &name, content).map_err(|error| explain(path, error))?;
        Ok(name.to_string_lossy().into_owned())
    }

    fn write_beneath(&self, root: &Dir, name: &Path, content: &str) -> io::Result<()> {
        let Some(file_name) = name.file_name() else { return Err(ErrorKind::IsADirectory.into()) };
        let folder = match name.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => create_dirs(root, parent)?,
            None => root.try_clone()?,
        };
        if folder.symlink_metadata(file_name).is_ok_and(|found| found.is_dir()) {
            return Err(ErrorKind::IsADirectory.into());
        }
        self.written.set(self.written.get() + 1);
        let temporary = temporary(self.written.get());
        // A leftover of an earlier process with the same pid is unused.
        drop(folder.remove_file(&temporary));
        let written = (|| {
            let mut file = folder.open_with(&temporary, OpenOptions::new().write(true).create_new(true))?;
            file.write_all(content.as_bytes())?;
            file.sync_all()?;
            // Replaces a symlink of that name instead of following it.
            folder.rename(&temporary, &folder, file_name)
        })();
        if written.is_err()
            && let Err(error) = folder.remove_file(&temporary)
        {
            tracing::debug!(%error, "cannot remove an incomplete file");
        }
        written?;
        sync(&folder)
    }

    /// The directory; `None` if it does not exist.
    fn root(&self, path: &str) -> Outcome<Option<&Dir>> {
        if self.root.get().is_none() {
            match Dir::open_ambient_dir(&self.files.output_dir, ambient_authority()) {
                Ok(dir) => drop(self.root.set(dir)),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(explain(path, error)),
            }
        }
        Ok(self.root.get())
    }

    fn resolve(&self, root: &Dir, path: &str) -> Outcome<PathBuf> {
        let mut steps = steps(&self.files, path)?;
        if let (Some(feature), Some(first)) = (&self.files.feature, steps.first())
            && feature == first
            && root.symlink_metadata(first).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        {
            steps.remove(0);
        }
        Ok(if steps.is_empty() { ".".into() } else { steps.iter().collect() })
    }
}

struct Listing<'d> {
    root: &'d Dir,
    files: Vec<String>,
    looked_at: usize,
}

impl Listing<'_> {
    fn gather(&mut self, folder: &Path) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in self.root.read_dir(folder)? {
            names.push(entry?.file_name());
        }
        // Sorted, so that a truncated list is always the same.
        names.sort();
        for name in names {
            if self.files.len() == MAX_LISTED || self.looked_at == MAX_VISITED {
                return Ok(());
            }
            self.looked_at += 1;
            let path = if folder == Path::new(".") { name.into() } else { folder.join(name) };
            // Entries that disappeared or lead out are skipped.
            let Ok(found) = self.root.symlink_metadata(&path) else { continue };
            if found.is_dir() {
                match self.gather(&path) {
                    Err(error) if !is_absent(&error) => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            } else if !is_temporary(&path) && self.root.metadata(&path).is_ok_and(|found| found.is_file()) {
                // A symlink to a directory could form a cycle, and its contents are listed under their own path.
                self.files.push(path.to_string_lossy().into_owned());
            }
        }
        Ok(())
    }
}

/// The name of a file while it is being written.
fn temporary(number: u64) -> String {
    format!(".lockgate-{}-{number}.tmp", std::process::id())
}

fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(".lockgate-") && name.ends_with(".tmp")
}

/// The components of a path from the output directory, with `.` and `..` resolved.
fn steps(files: &Files, path: &str) -> Outcome<Vec<String>> {
    let leads_out = || OutputFileError::LeadsOut(path.to_owned());
    if path.is_empty() || path.contains('\0') {
        return Err(OutputFileError::NotAPath(path.to_owned()));
    }
    let given = Path::new(path);
    let inside = if given.is_absolute() { given.strip_prefix(&files.output_dir).map_err(|_| leads_out())? } else { given };
    let mut steps = Vec::new();
    for component in inside.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => steps.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => drop(steps.pop().ok_or_else(leads_out)?),
            Component::RootDir | Component::Prefix(_) => return Err(leads_out()),
        }
    }
    Ok(steps)
}

fn read(root: &Dir, name: &Path) -> io::Result<Vec<u8>> {
    // Non-blocking: a pipe of that name would otherwise block the script forever.
    let options = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).clone();
    let file = root.open_with(name, &options)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0).min(FILE_LIMIT));
    file.take(FILE_LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_LIMIT {
        return Err(io::Error::other(format!("it is larger than {FILE_LIMIT} bytes")));
    }
    Ok(bytes)
}

/// Opens a directory beneath the root, durably creating what is missing on the way.
fn create_dirs(root: &Dir, path: &Path) -> io::Result<Dir> {
    match root.open_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    let parent = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => create_dirs(root, parent)?,
        None => root.try_clone()?,
    };
    match root.create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => sync(&parent)?,
    }
    root.open_dir(path)
}

fn sync(folder: &Dir) -> io::Result<()> {
    folder.open(".")?.sync_all()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn explain(path: &str, error: io::Error) -> OutputFileError {
    let path = path.to_owned();
    // The path resolution itself refused it, so there is no error number from the operating system.
    if error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return OutputFileError::LinkLeadsOut(path);
    }
    match error.kind() {
        ErrorKind::IsADirectory => OutputFileError::IsDirectory(path),
        _ => OutputFileError::Io { path, error },
    }
}
