//! Opens files without following symlinks out of their directory and without blocking.

use super::error::FileError;
use super::listing::mode;
use super::run_dirs::{ConfinedDir, joined};
use cap_std::fs::{Dir, File, FileType, FileTypeExt, OpenOptions, OpenOptionsExt};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::SymbolicLink;
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The maximum number of symlinks followed for one path, as on Linux.
const MAX_LINKS: usize = 40;

pub(super) enum Lookup {
    Absent,
    File(File, u32),
    Directory(Dir, u32),
    Unreadable(FileError),
}

/// Looks up a path in a directory.
pub(super) fn lookup(folder: &ConfinedDir, parts: &[String]) -> Lookup {
    match &folder.dir {
        Ok(None) => Lookup::Absent,
        Ok(Some(dir)) => lookup_in(dir, &joined(parts)).unwrap_or_else(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Lookup::Absent,
            _ => Lookup::Unreadable(FileError::from(&error)),
        }),
        Err(why) => Lookup::Unreadable(why.clone()),
    }
}

fn lookup_in(dir: &Dir, path: &Path) -> io::Result<Lookup> {
    let kind = dir.metadata(path)?.file_type();
    if kind.is_dir() {
        let opened = dir.open_dir(path)?;
        let mode = mode(&opened.dir_metadata()?);
        return Ok(Lookup::Directory(opened, mode));
    }
    if !kind.is_file() {
        return Ok(Lookup::Unreadable(FileError::NotAFile(special(kind))));
    }
    Ok(match open_file(dir, path, OFlags::NONBLOCK)? {
        Ok(file) => {
            let mode = mode(&file.metadata()?);
            Lookup::File(file, mode)
        }
        Err(kind) => Lookup::Unreadable(FileError::NotAFile(special(kind))),
    })
}

/// The symlinks followed on the way to a path, with their targets. It stops at a link that leads out of the directory or in a
/// cycle, which cannot be opened either.
pub(super) fn links(folder: &ConfinedDir, parts: &[String]) -> Vec<SymbolicLink> {
    let Ok(Some(dir)) = &folder.dir else { return Vec::new() };
    let mut links = Vec::new();
    let mut here = PathBuf::new();
    let mut ahead: Vec<OsString> = parts.iter().rev().map(OsString::from).collect();
    while let Some(part) = ahead.pop() {
        if part == ".." {
            here.pop();
            continue;
        }
        here.push(&part);
        let Ok(target) = dir.read_link_contents(&here) else { continue };
        let path: Vec<String> = here.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        links.push(SymbolicLink { path: folder.shown(&path), target: target.to_string_lossy().into_owned() });
        here.pop();
        if links.len() == MAX_LINKS || target.is_absolute() {
            break;
        }
        ahead.extend(target.iter().rev().filter(|part| *part != ".").map(OsString::from));
    }
    links
}

/// Opens a regular file. If it has become a pipe since it was checked, opening must not wait for a writer.
pub(super) fn open_file(dir: &Dir, path: &Path, flags: OFlags) -> io::Result<Result<File, FileType>> {
    let mut options = OpenOptions::new();
    let flags = flags | OFlags::NONBLOCK;
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = dir.open_with(path, &options)?;
    let kind = file.metadata()?.file_type();
    Ok(if kind.is_file() { Ok(file) } else { Err(kind) })
}

/// A description of something that is neither a file nor a directory.
pub(super) fn special(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else {
        "something special"
    }
}

pub(super) struct Contents {
    pub(super) digest: Digest,
    pub(super) bytes: u64,
    /// The bytes, if they are few enough to keep.
    pub(super) kept: Option<Vec<u8>>,
}

/// Reads a file once, digesting all of it and keeping up to `keep` bytes; `None` if it has more than `most`.
pub(super) fn read(file: &mut impl Read, keep: u64, most: u64) -> io::Result<Option<Contents>> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut kept = Some(Vec::new());
    let mut bytes: u64 = 0;
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes += count as u64;
        if bytes > most {
            return Ok(None);
        }
        hasher.update(&buffer[..count]);
        if bytes > keep {
            kept = None;
        } else if let Some(kept) = &mut kept {
            kept.extend_from_slice(&buffer[..count]);
        }
    }
    Ok(Some(Contents { digest: Digest(*hasher.finalize().as_bytes()), bytes, kept }))
}
