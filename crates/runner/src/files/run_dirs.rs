//! Which files a path refers to: in the output directory, under the root, or both.

use super::error::{FileError, PathError, Reason};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::io;
use std::path::{Component, Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirs {
    pub root: PathBuf,
    /// The output directory: absolute, or relative to the root.
    pub output_dir: PathBuf,
    /// The feature; as the first component of a path it refers to the output directory itself.
    pub feature: Option<String>,
}

/// One of the two directories, open.
pub(super) struct ConfinedDir {
    /// `None` if the directory does not exist (yet), so that everything in it is absent; or why it cannot be used.
    pub(super) dir: Result<Option<Dir>, FileError>,
    /// The prefix that makes a path in it relative to the root, or absolute if it is outside.
    prefix: String,
}

impl ConfinedDir {
    /// The path of something in this directory, relative to the root.
    pub(super) fn shown(&self, parts: &[String]) -> String {
        let inside = parts.join("/");
        match (self.prefix.as_str(), inside.as_str()) {
            ("", "") => ".".to_owned(),
            ("", _) => inside,
            (prefix, "") => prefix.to_owned(),
            (prefix, _) => format!("{}/{inside}", prefix.trim_end_matches('/')),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Output,
    Root,
}

/// Both directories, open.
pub(super) struct Opened<'a> {
    run_dirs: &'a RunDirs,
    output: ConfinedDir,
    root: ConfinedDir,
    /// The components of the output directory's path under the root; empty if it is outside, or is the root.
    output_parts: Vec<String>,
}

impl RunDirs {
    /// The full path of the output directory.
    pub fn output_path(&self) -> PathBuf {
        self.root.join(&self.output_dir)
    }

    /// Opens both directories, the output directory relative to the root if it is inside. If a task replaces it with a
    /// symlink to somewhere else, the symlink is not followed.
    pub(super) fn open(&self) -> Opened<'_> {
        let root = Dir::open_ambient_dir(&self.root, ambient_authority());
        let output = self.output_path();
        let (output_dir, prefix, output_parts) = match (&root, output.strip_prefix(&self.root)) {
            (Ok(root), Ok(inside)) => match parts_of(inside) {
                Ok(parts) => (open_output(root.open_dir(joined(&parts))), parts.join("/"), parts),
                Err(why) => (Err(FileError::OutputDirUnusable(why)), inside.display().to_string(), Vec::new()),
            },
            (Err(_), Ok(inside)) => (Ok(None), inside.display().to_string(), Vec::new()),
            (_, Err(_)) => {
                let opened = Dir::open_ambient_dir(&output, ambient_authority());
                (open_output(opened), output.display().to_string(), Vec::new())
            }
        };
        let root =
            root.map(Some).map_err(|error| FileError::RootNotOpened { path: self.root.clone(), reason: Reason::from(&error) });
        Opened {
            run_dirs: self,
            output: ConfinedDir { dir: output_dir, prefix },
            root: ConfinedDir { dir: root, prefix: String::new() },
            output_parts,
        }
    }

    /// The output directory, opened, and created if it is missing.
    pub(super) fn create_output_dir(&self) -> Result<Dir, FileError> {
        let output = self.output_path();
        let failed = |error: io::Error| FileError::OutputDirNotCreated { path: output.clone(), reason: Reason::from(&error) };
        match output.strip_prefix(&self.root) {
            Ok(inside) => {
                let root = Dir::open_ambient_dir(&self.root, ambient_authority()).map_err(failed)?;
                let inside = joined(&parts_of(inside)?);
                if inside != Path::new(".") {
                    root.create_dir_all(&inside).map_err(failed)?;
                }
                root.open_dir(&inside).map_err(failed)
            }
            Err(_) => {
                std::fs::create_dir_all(&output).map_err(failed)?;
                Dir::open_ambient_dir(&output, ambient_authority()).map_err(failed)
            }
        }
    }
}

impl Opened<'_> {
    pub(super) fn dir(&self, side: Side) -> &ConfinedDir {
        match side {
            Side::Output => &self.output,
            Side::Root => &self.root,
        }
    }

    /// The files that a path in `show_files` may refer to; all that exist are meant. A task that writes into the output
    /// directory must not be able to replace the code that is to be approved with a file of its own.
    ///
    /// `.` is the root alone; the output directory is named by its own path, as in `{{output_dir}}`.
    pub(super) fn shown(&self, path: &str) -> Result<Vec<(Side, Vec<String>)>, PathError> {
        let exact = self.exact(path)?;
        if Path::new(path).is_absolute() || exact.0 == Side::Output || exact.1.is_empty() {
            return Ok(vec![exact]);
        }
        let (side, parts) = exact;
        Ok(vec![(Side::Output, self.without_feature(parts.clone())), (side, parts)])
    }

    /// The file that a path relative to the root, or an absolute one, refers to.
    pub(super) fn exact(&self, path: &str) -> Result<(Side, Vec<String>), PathError> {
        if Path::new(path).is_absolute() {
            return self
                .inside(path, &[(Side::Output, self.run_dirs.output_path()), (Side::Root, self.run_dirs.root.clone())])
                .ok_or(PathError::OutsideRootAndOutput)?;
        }
        let parts = checked_parts(path)?;
        if !self.output_parts.is_empty() && parts.starts_with(&self.output_parts) {
            return Ok((Side::Output, parts[self.output_parts.len()..].to_vec()));
        }
        Ok((Side::Root, parts))
    }

    /// What a path refers to inside the output directory.
    pub(super) fn output(&self, path: &str) -> Result<Vec<String>, PathError> {
        if Path::new(path).is_absolute() {
            let (_, parts) =
                self.inside(path, &[(Side::Output, self.run_dirs.output_path())]).ok_or(PathError::OutsideOutput)??;
            return Ok(parts);
        }
        Ok(self.without_feature(checked_parts(path)?))
    }

    /// The directories from the root to the output directory, the root included, if it is inside.
    pub(super) fn above_output(&self) -> impl Iterator<Item = (&Dir, PathBuf)> {
        let root = self.root.dir.as_ref().ok().and_then(Option::as_ref);
        let above = (0..self.output_parts.len()).map(|count| joined(&self.output_parts[..count]));
        above.filter_map(move |path| root.map(|root| (root, path)))
    }

    /// A directory under the root, by its relative or absolute path; `None` if it is not under the root.
    pub(super) fn dir_under_root(&self, path: &Path) -> Option<Dir> {
        let path = if path.is_absolute() { path.strip_prefix(&self.run_dirs.root).ok()? } else { path };
        let mut parts: Vec<Component<'_>> = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(_) => parts.push(part),
                Component::CurDir => {}
                Component::ParentDir => drop(parts.pop()?),
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        self.root.dir.as_ref().ok()?.as_ref()?.open_dir(parts.iter().collect::<PathBuf>()).ok()
    }

    /// Why there is no such output: people often give a path relative to the root.
    pub(super) fn absent(&self, parts: &[String]) -> FileError {
        match parts.strip_prefix(self.output_parts.as_slice()) {
            Some(inside) if !self.output_parts.is_empty() && !inside.is_empty() => {
                FileError::NamedFromRoot { instead: inside.join("/") }
            }
            Some(_) | None => FileError::Absent,
        }
    }

    /// Where an absolute path is, in the first of these directories that contains it, by its own or its canonical path.
    fn inside(&self, path: &str, folders: &[(Side, PathBuf)]) -> Option<Result<(Side, Vec<String>), PathError>> {
        folders.iter().find_map(|(side, folder)| {
            let real = folder.canonicalize().ok();
            [Some(folder.as_path()), real.as_deref()]
                .into_iter()
                .flatten()
                .find_map(|folder| Path::new(path).strip_prefix(folder).ok())
                .map(|inside| Ok((*side, parts_of(inside)?)))
        })
    }

    /// Removes the feature's name from the path, unless the output directory has an entry of that name.
    fn without_feature(&self, parts: Vec<String>) -> Vec<String> {
        let feature = self.run_dirs.feature.as_deref().and_then(|feature| checked_parts(feature).ok()).unwrap_or_default();
        if feature.is_empty() || !parts.starts_with(&feature) {
            return parts;
        }
        let rest = parts[feature.len()..].to_vec();
        let taken = match &self.output.dir {
            Ok(Some(dir)) => match dir.metadata(joined(&feature)) {
                Ok(metadata) => metadata.is_dir() || rest.is_empty(),
                // If it cannot be checked, it counts as present: opening it then reports the error.
                Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
            },
            Ok(None) | Err(_) => false,
        };
        if taken { parts } else { rest }
    }
}

fn open_output(opened: io::Result<Dir>) -> Result<Option<Dir>, FileError> {
    match opened {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::OutputDirNotOpened(Reason::from(&error))),
    }
}

fn checked_parts(path: &str) -> Result<Vec<String>, PathError> {
    if path.trim().is_empty() {
        return Err(PathError::Empty);
    }
    if path.contains('\0') {
        return Err(PathError::Nul);
    }
    parts_of(Path::new(path))
}

fn parts_of(path: &Path) -> Result<Vec<String>, PathError> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => match part.to_str() {
                Some(part) => parts.push(part.to_owned()),
                None => return Err(PathError::NotUtf8),
            },
            Component::CurDir => {}
            Component::ParentDir => return Err(PathError::Parent),
            Component::RootDir | Component::Prefix(_) => return Err(PathError::Absolute),
        }
    }
    Ok(parts)
}

/// The path with these components; `.` if there are none.
pub(super) fn joined(parts: &[String]) -> PathBuf {
    if parts.is_empty() { PathBuf::from(".") } else { parts.iter().collect() }
}
