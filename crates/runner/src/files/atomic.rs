//! Writes files atomically and durably.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file atomically: a temporary file next to it is made durable and renamed, and its directory is synced. An
/// existing file keeps its permissions; a symlink at the path is replaced, not followed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    write_in(&Dir::open_ambient_dir(folder, ambient_authority())?, Path::new(name), bytes)
}

/// Writes a file in an open directory; `name` has one component.
pub(crate) fn write_in(folder: &Dir, name: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!(".lockgate-{:016x}.tmp", rand::random::<u64>());
    let written = write_temporary(folder, &temporary, name, bytes).and_then(|()| folder.rename(&temporary, folder, name));
    if let Err(error) = written {
        // The first error is the one to report; a leftover temporary file does no harm.
        if let Err(error) = folder.remove_file(&temporary) {
            tracing::debug!(temporary, %error, "cannot remove the temporary file");
        }
        return Err(error);
    }
    sync_dir(folder)
}

fn write_temporary(folder: &Dir, temporary: &str, name: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = folder.open_with(temporary, OpenOptions::new().write(true).create_new(true))?;
    if let Ok(present) = folder.symlink_metadata(name)
        && present.is_file()
    {
        file.set_permissions(present.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

pub(super) fn sync_dir(folder: &Dir) -> io::Result<()> {
    // The handle itself cannot be synced; a readable one is needed.
    folder.open(".")?.sync_all()
}
