//! Removes unneeded files and joins threads. A file that is left behind does no harm, so failures are only
//! logged.

use std::fs;
use std::io;
use std::path::Path;
use std::thread::JoinHandle;

/// Removes a file, if it exists.
pub fn remove_file(path: &Path) {
    log_failure(path, fs::remove_file(path));
}

/// Removes a directory with everything in it, if it exists.
pub fn remove_dir(path: &Path) {
    log_failure(path, fs::remove_dir_all(path));
}

pub(crate) fn join(thread: JoinHandle<()>) {
    let name = thread.thread().name().unwrap_or_default().to_owned();
    if thread.join().is_err() {
        tracing::warn!(thread = name, "the thread panicked");
    }
}

fn log_failure(path: &Path, removed: io::Result<()>) {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!(path = %path.display(), %error, "could not be removed");
        }
        Ok(()) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_directories_are_removed_and_missing_ones_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let (file, folder) = (dir.path().join("file"), dir.path().join("folder"));
        fs::write(&file, "").unwrap();
        fs::create_dir_all(folder.join("inner")).unwrap();
        for _ in 0..2 {
            remove_file(&file);
            remove_dir(&folder);
            assert!(!file.exists() && !folder.exists());
        }
    }
}
