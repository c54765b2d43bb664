//! Our own git objects, separate from those of the user.
//!
//! Untracked files may be private, so their content must not become part of the user's repository, from which it could be
//! pushed or read by people who may not read the file. It goes into a directory of the run that only its owner can enter.

use super::{DiffError, REFS, Workplace, short_digest};
use crate::commit::repository::Repository;
use crate::root::Root;
use lockgate_engine::id::RunId;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Creates our own object directory. Git finds all other objects through its alternates: those of the user, and those of the
/// runs that keep a starting point.
pub(super) fn prepare(place: &Workplace, repository: &Repository, keepers: &[RunId]) -> Result<PathBuf, DiffError> {
    let theirs = repository.git_path("objects")?;
    let theirs = theirs.canonicalize().unwrap_or(theirs);
    let of_run = |run: &RunId| directory(&place.root, run, &theirs);
    let ours = of_run(&place.run);
    let cannot = |error: io::Error| DiffError::Objects { path: ours.clone(), error };
    fs::create_dir_all(ours.join("info")).map_err(cannot)?;
    fs::set_permissions(place.root.diff_dir(&place.run), fs::Permissions::from_mode(0o700)).map_err(cannot)?;
    let mut alternates = Vec::new();
    for path in std::iter::once(theirs.clone()).chain(keepers.iter().map(of_run).filter(|path| path.is_dir())) {
        alternates.extend_from_slice(path.as_os_str().as_bytes());
        alternates.push(b'\n');
    }
    let file = ours.join("info/alternates");
    if fs::read(&file).ok().as_ref() != Some(&alternates) {
        crate::files::write_atomically(&file, &alternates).map_err(cannot)?;
    }
    Ok(ours)
}

/// The object directory of a run for this repository.
fn directory(root: &Root, run: &RunId, theirs: &Path) -> PathBuf {
    root.diff_dir(run).join(format!("objects-{}", short_digest(&theirs.to_string_lossy())))
}

/// Keeps everything a tree needs, whatever the user removes from the repository: objects that the checked-out commit lacks go
/// into a pack of ours, and a ref keeps that commit.
pub(super) fn keep(repository: &Repository, place: &Workplace, names: &[&str], tree: &str) -> Result<(), DiffError> {
    let Some(objects) = repository.own_objects() else { return Ok(()) };
    let head = repository.head()?;
    let without = head.as_ref().map(|head| format!("^{head}\n")).unwrap_or_default();
    let objects = objects.join("pack");
    fs::create_dir_all(&objects).map_err(|error| DiffError::Objects { path: objects.clone(), error })?;
    let pack = objects.join("pack").to_string_lossy().into_owned();
    let arguments = ["pack-objects", "--revs", "--quiet", "--non-empty", &pack];
    repository.run(&arguments, format!("{tree}\n{without}").as_bytes())?;
    if let Some(head) = head {
        for name in names {
            let reference = format!("{REFS}{}-{name}", place.run);
            // Only this run changes it, so a lock is left over from a kill.
            lockgate_store::cleanup::remove_file(&repository.git_path(&format!("{reference}.lock"))?);
            repository.run(&["update-ref", &reference, &head], b"")?;
        }
    }
    Ok(())
}

/// Removes the objects that only the diffs of a run needed.
pub fn forget(root: &Root, run: &RunId) {
    lockgate_store::cleanup::remove_dir(&root.diff_dir(run));
}
