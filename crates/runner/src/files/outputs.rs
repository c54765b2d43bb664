//! The outputs of a task, and reading and writing in the output directory.

use super::atomic::{sync_dir, write_in};
use super::error::{FileError, Reason, Refused};
use super::listing::walk;
use super::lookup::{Lookup, lookup, open_file, read};
use super::observe::ContainsSecret;
use super::run_dirs::{Opened, RunDirs, Side, joined};
use cap_std::fs::{Dir, File};
use lockgate_engine::digest::Digest;
use lockgate_engine::run::event::OutputFile;
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// The maximum number of entries below a declared output directory: each file is named in the history.
const MAX_ENTRIES: usize = 2_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// In the order in which they were declared.
    pub files: Vec<OutputFile>,
    /// The bytes of stored files, by digest.
    pub values: Vec<(Digest, Vec<u8>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingOutput {
    pub path: String,
    pub reason: FileError,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingOutputs {
    pub missing: Vec<MissingOutput>,
    /// Where they were searched for.
    pub looked_in: PathBuf,
}

impl fmt::Display for MissingOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task did not write its declared outputs to {}", self.looked_in.display())?;
        for MissingOutput { path, reason } in &self.missing {
            write!(f, "\n  {path:?}: {reason}")?;
        }
        Ok(())
    }
}

impl std::error::Error for MissingOutputs {}

/// Makes the declared outputs durable and digests them. Bytes are kept while their total fits into `keep_limit`, and never if
/// they contain a secret. A directory stands for all regular files below it.
pub fn collect_outputs(
    run_dirs: &RunDirs,
    declared: &[String],
    keep_limit: u64,
    contains_secret: ContainsSecret<'_>,
) -> Result<Outputs, MissingOutputs> {
    let opened = run_dirs.open();
    let folder = opened.dir(Side::Output);
    let mut collecting = Collecting::new(keep_limit, contains_secret);
    let mut missing = Vec::new();
    for path in declared {
        let collected = opened.output(path).map_err(FileError::from).and_then(|parts| match lookup(folder, &parts) {
            Lookup::Absent => Err(opened.absent(&parts)),
            Lookup::Unreadable(why) => Err(why),
            Lookup::File(file, _) => collecting.file(&joined(&parts), file),
            Lookup::Directory(dir, _) => collecting.directory(&parts.iter().collect::<PathBuf>(), &dir),
        });
        if let Err(reason) = collected {
            missing.push(MissingOutput { path: path.clone(), reason });
        }
    }
    if missing.is_empty()
        && let Ok(Some(dir)) = &folder.dir
        && let Err(reason) = collecting.sync_dirs(dir, &opened)
    {
        missing.push(MissingOutput { path: ".".to_owned(), reason });
    }
    if missing.is_empty() { Ok(collecting.outputs) } else { Err(MissingOutputs { missing, looked_in: run_dirs.output_path() }) }
}

struct Collecting<'a> {
    left: u64,
    contains_secret: ContainsSecret<'a>,
    named: BTreeSet<String>,
    kept: BTreeSet<Digest>,
    folders: BTreeSet<PathBuf>,
    outputs: Outputs,
}

impl<'a> Collecting<'a> {
    fn new(keep_limit: u64, contains_secret: ContainsSecret<'a>) -> Self {
        Self {
            left: keep_limit,
            contains_secret,
            named: BTreeSet::new(),
            kept: BTreeSet::new(),
            folders: BTreeSet::new(),
            outputs: Outputs::default(),
        }
    }

    fn directory(&mut self, path: &Path, dir: &Dir) -> Result<(), FileError> {
        let mut files = 0;
        for below in walk(dir, MAX_ENTRIES, &|_| true)? {
            if !below.kind.is_file() {
                continue;
            }
            let named = path.join(&below.path);
            match open_file(dir, &below.path, OFlags::NOFOLLOW) {
                Ok(Ok(file)) => self.file(&named, file)?,
                Ok(Err(_)) => return Err(FileError::OutputChanged(named)),
                Err(error) => return Err(FileError::OutputUnreadable { path: named, reason: Reason::from(&error) }),
            }
            files += 1;
        }
        if files == 0 { Err(FileError::NoFileBelow) } else { Ok(()) }
    }

    fn file(&mut self, path: &Path, mut file: File) -> Result<(), FileError> {
        let name = path.to_str().ok_or_else(|| FileError::NameNotUtf8(path.to_path_buf()))?;
        if !self.named.insert(name.to_owned()) {
            return Ok(());
        }
        file.sync_all().map_err(|error| FileError::OutputNotDurable { name: name.to_owned(), reason: Reason::from(&error) })?;
        self.folders.extend(path.ancestors().skip(1).map(Path::to_path_buf));
        let contents = read(&mut file, self.left, u64::MAX)
            .map_err(|error| FileError::OutputUnreadable { path: path.to_path_buf(), reason: Reason::from(&error) })?
            .ok_or_else(|| FileError::Endless(name.to_owned()))?;
        let stored = self.kept.contains(&contents.digest)
            || contents.kept.is_some_and(|bytes| {
                let keep = !(self.contains_secret)(&bytes);
                if keep {
                    self.left -= contents.bytes;
                    self.kept.insert(contents.digest);
                    self.outputs.values.push((contents.digest, bytes));
                }
                keep
            });
        let output = OutputFile { path: name.to_owned(), digest: contents.digest, bytes: contents.bytes, stored };
        self.outputs.files.push(output);
        Ok(())
    }

    /// Syncs the directories of the files, up to the output directory and from there to the root.
    fn sync_dirs(&self, output: &Dir, opened: &Opened<'_>) -> Result<(), FileError> {
        if self.folders.is_empty() {
            return Ok(());
        }
        let inside = self.folders.iter().map(|path| (output, path.clone()));
        for (base, path) in inside.chain(opened.above_output()) {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
            let synced = base.open_dir(path).and_then(|folder| sync_dir(&folder));
            synced.map_err(|error| FileError::DirectoryNotDurable { path: path.to_path_buf(), reason: Reason::from(&error) })?;
        }
        Ok(())
    }
}

/// Reads a file in the output directory, up to `most` bytes; `None` if it does not exist.
pub fn read_output(run_dirs: &RunDirs, path: &str, most: u64) -> Result<Option<Vec<u8>>, Refused> {
    let opened = run_dirs.open();
    let parts = opened.output(path).map_err(|why| Refused::new(path, why))?;
    match lookup(opened.dir(Side::Output), &parts) {
        Lookup::Absent => Ok(None),
        Lookup::Unreadable(why) => Err(Refused::new(path, why)),
        Lookup::Directory(_, _) => Err(Refused::new(path, FileError::NotAFile("a directory"))),
        Lookup::File(mut file, _) => match read(&mut file, most, most) {
            Ok(Some(contents)) => Ok(contents.kept),
            Ok(None) => Err(Refused::new(path, FileError::TooLarge { most })),
            Err(error) => Err(Refused::new(path, &error)),
        },
    }
}

/// The full path of a file in the output directory.
pub fn resolve_output_path(run_dirs: &RunDirs, path: &str) -> Result<PathBuf, Refused> {
    let parts = run_dirs.open().output(path).map_err(|why| Refused::new(path, why))?;
    Ok(run_dirs.output_path().join(joined(&parts)))
}

/// Creates the parent directories of a file in the output directory. No symlink may lead out of it.
pub fn create_output_parents(run_dirs: &RunDirs, path: &str) -> Result<(), Refused> {
    let refused = |why: FileError| Refused::new(path, why);
    let base = run_dirs.create_output_dir().map_err(refused)?;
    let mut parts = run_dirs.open().output(path).map_err(|why| refused(why.into()))?;
    parts.pop();
    if parts.is_empty() {
        return Ok(());
    }
    base.create_dir_all(joined(&parts)).map_err(|error| refused(FileError::DirectoryNotCreated(Reason::from(&error))))
}

/// Whether a file or directory exists in the output directory.
pub fn output_exists(run_dirs: &RunDirs, path: &str) -> Result<bool, Refused> {
    let opened = run_dirs.open();
    let parts = opened.output(path).map_err(|why| Refused::new(path, why))?;
    match lookup(opened.dir(Side::Output), &parts) {
        Lookup::Absent => Ok(false),
        Lookup::File(_, _) | Lookup::Directory(_, _) => Ok(true),
        Lookup::Unreadable(why) => Err(Refused::new(path, why)),
    }
}

/// Atomically writes a file in the output directory, creating its parent directories. Returns its path inside the output
/// directory.
pub fn write_output(run_dirs: &RunDirs, path: &str, bytes: &[u8]) -> Result<String, Refused> {
    let refused = |why: FileError| Refused::new(path, why);
    let base = run_dirs.create_output_dir().map_err(refused)?;
    let mut parts = run_dirs.open().output(path).map_err(|why| refused(why.into()))?;
    let inside = parts.join("/");
    let name = parts.pop().ok_or_else(|| refused(FileError::OutputDirItself))?;
    let failed = |error: std::io::Error| refused(FileError::NotWritten(Reason::from(&error)));
    let folder = joined(&parts);
    if !parts.is_empty() {
        base.create_dir_all(&folder).map_err(failed)?;
    }
    let folder = base.open_dir(&folder).map_err(failed)?;
    if folder.symlink_metadata(&name).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(refused(FileError::NotAFile("a directory")));
    }
    write_in(&folder, Path::new(&name), bytes).map_err(failed)?;
    Ok(inside)
}
