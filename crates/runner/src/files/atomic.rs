//! Writing a file so that it is there whole or not at all, and stays there when the machine stops.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file: a temporary one beside it, made durable, renamed into its place, and its folder made durable. An existing
/// file keeps its permissions; a symbolic link in its place is replaced, not followed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    write_in(&Dir::open_ambient_dir(folder, ambient_authority())?, Path::new(name), bytes)
}

/// Writes a file in a folder that is held open; `name` has one part.
pub(crate) fn write_in(folder: &Dir, name: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!(".lockgate-{:016x}.tmp", rand::random::<u64>());
    let written = write_temporary(folder, &temporary, name, bytes).and_then(|()| folder.rename(&temporary, folder, name));
    if let Err(error) = written {
        // The first error is the one to report; a temporary file that stays behind does no harm.
        if let Err(error) = folder.remove_file(&temporary) {
            tracing::debug!(temporary, %error, "the temporary file stays behind");
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

/// Makes the names in a folder durable.
pub(super) fn sync_dir(folder: &Dir) -> io::Result<()> {
    // The handle itself can only be used to go on from; a readable one is needed here.
    folder.open(".")?.sync_all()
}
