//! The files that contain settings.

use super::ConfigError;
use crate::root::Root;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Larger than any real settings file.
const MAX_BYTES: u64 = 1_000_000;

/// A file that contains settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFile {
    /// `.claude/checkpoint-config.yaml`, which contains only `checkpoint`.
    Checkpoint,
    /// `.lockgate/config.yaml`, which overrides the other one, key by key.
    Project,
}

impl SettingsFile {
    /// Each overrides those before it.
    pub(super) const ALL: [Self; 2] = [Self::Checkpoint, Self::Project];

    pub fn path(self, root: &Root) -> PathBuf {
        match self {
            Self::Checkpoint => root.checkpoint_config_file(),
            Self::Project => root.config_file(),
        }
    }

    /// The text of the file; `None` if it does not exist.
    pub(super) fn read(self, root: &Root) -> Result<Option<String>, ConfigError> {
        read_file(&self.path(root))
    }
}

/// The text of a settings file; `None` if it does not exist.
fn read_file(path: &Path) -> Result<Option<String>, ConfigError> {
    read_text(path).map_err(|error| {
        let (message, help) = (format!("the settings cannot be read: {error}"), error.help().to_owned());
        ConfigError { path: path.to_path_buf(), message, line: None, column: None, help: Some(help) }
    })
}

#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("permission denied")]
    Denied,
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("it is a directory")]
    Directory,
    #[error("it is not a file")]
    NotAFile,
    #[error("it is larger than 1 MB")]
    TooLarge,
    #[error(transparent)]
    Io(io::Error),
}

impl Unreadable {
    fn help(&self) -> &'static str {
        match self {
            Self::Denied => "make the file readable",
            Self::NotText => "save it as UTF-8",
            Self::Directory | Self::NotAFile => "replace it with a file, or remove it to use the defaults",
            Self::TooLarge => "settings are a few lines; check whether this is the right file",
            Self::Io(_) => "remove it to use the defaults",
        }
    }
}

/// The text of the file. A pipe is not opened, because that could block.
fn read_text(path: &Path) -> Result<Option<String>, Unreadable> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => Unreadable::Denied,
        io::ErrorKind::InvalidData => Unreadable::NotText,
        _ => Unreadable::Io(error),
    };
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.is_file() {
        return Err(if metadata.is_dir() { Unreadable::Directory } else { Unreadable::NotAFile });
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > MAX_BYTES {
        return Err(Unreadable::TooLarge);
    }
    Ok(Some(text))
}
