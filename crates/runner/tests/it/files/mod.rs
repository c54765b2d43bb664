//! The files that a run shows, reads and writes, in real directories.

mod confinement;
mod diff;
mod directories;
mod outputs;
mod show_files;

use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{PresentedFile, Seen};
use lockgate_runner::files::{ObserveLimits, Observed, RunDirs, observe};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A root with an output directory `out`, and a directory outside both.
struct Project {
    folder: tempfile::TempDir,
    run_dirs: RunDirs,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("root/out")).unwrap();
        std::fs::create_dir_all(folder.path().join("outside")).unwrap();
        let run_dirs = RunDirs { root: folder.path().join("root"), output_dir: PathBuf::from("out"), feature: None };
        let project = Self { folder, run_dirs };
        project.write("../outside/secret.txt", "outside");
        project
    }

    fn with_feature(feature: &str) -> Self {
        let mut project = Self::new();
        project.run_dirs.feature = Some(feature.to_owned());
        project
    }

    fn path(&self, path: &str) -> PathBuf {
        self.run_dirs.root.join(path)
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    fn pipe(&self, path: &str) {
        rustix::fs::mknodat(rustix::fs::CWD, self.path(path), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    }

    fn observe(&self, paths: &[&str]) -> Observed {
        self.observe_with(paths, &ObserveLimits::default())
    }

    fn observe_with(&self, paths: &[&str], caps: &ObserveLimits) -> Observed {
        observe(&self.run_dirs, &owned(paths), caps, &no_secret)
    }

    fn seen(&self, path: &str) -> PresentedFile {
        let mut files = self.observe(&[path]).files;
        assert_eq!(files.len(), 1);
        files.remove(0)
    }
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn no_secret(_: &[u8]) -> bool {
    false
}

fn a_file(text: &str) -> Seen {
    Seen::File { digest: Digest::of(text.as_bytes()), bytes: text.len() as u64, mode: usual_mode() }
}

/// The permissions of a new file, which depend on the umask.
fn usual_mode() -> u32 {
    tempfile::tempdir()
        .and_then(|folder| {
            let path = folder.path().join("file");
            std::fs::write(&path, "")?;
            Ok(path.metadata()?.permissions().mode() & 0o7777)
        })
        .unwrap()
}

/// Why something could not be read; panics if it could.
fn why(file: &PresentedFile) -> &str {
    match &file.seen {
        Seen::Unreadable(why) => why,
        Seen::Absent | Seen::File { .. } | Seen::Directory { .. } => panic!("{file:?} was read"),
    }
}
