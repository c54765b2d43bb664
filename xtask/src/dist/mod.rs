//! `cargo xtask dist`: the files of a release, in the directory of the `dist` profile.
//!
//! Building and packaging are separate: [`package`] takes any `lockgate` and a directory of manual pages, so that the tests package
//! the debug build. The same commit gives the same bytes, because every timestamp is that of the commit.
//!
//! | file | contents |
//! | --- | --- |
//! | `build.rs` | the optimized program without paths of this machine; the manual pages |
//! | `completions.rs` | completion scripts, printed by the program itself |
//! | `notices.rs` | licence texts of the dependencies |
//! | `deb.rs`, `archive.rs` | the Debian package; the tar archive and the checksums |
//! | `check.rs` | the check in `cargo xtask test` |

mod archive;
mod build;
pub(crate) mod check;
mod completions;
mod deb;
mod notices;

use crate::packages;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest program that we ship, in bytes.
const SIZE_LIMIT: u64 = 25_000_000;

/// A release before it is packaged.
pub(crate) struct Release {
    pub(crate) version: String,
    /// The program. It is packaged as it is.
    pub(crate) binary: PathBuf,
    /// A directory with one manual page per command.
    pub(crate) manual: PathBuf,
    /// The licence texts of the dependencies.
    pub(crate) notices: String,
    /// The time of the commit, in seconds since 1970.
    pub(crate) epoch: u64,
    pub(crate) compression: Compression,
}

/// How well archives are compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Best,
    /// For tests, which package a large debug build.
    Fast,
}

/// Runs the command.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let given = match arguments {
        [] => None,
        [flag, file] if flag == "--binary" => Some(PathBuf::from(file)),
        _ => return Err("usage: cargo xtask dist [--binary FILE]".to_owned()),
    };
    packages::ensure_for_dist()?;
    let workspace = Workspace::read()?;
    let binary = match given {
        Some(binary) => binary,
        None => build::program(&workspace)?,
    };
    check_size(fs::metadata(&binary).map_err(about(&binary))?.len())?;
    let manual = temporary()?;
    build::manual_pages(manual.path())?;
    let release = Release {
        version: workspace.version.clone(),
        binary,
        manual: manual.path().to_path_buf(),
        notices: notices::text(&workspace)?,
        epoch: epoch()?,
        compression: Compression::Best,
    };
    let output = workspace.target.join("dist");
    for file in package(&release, &output)? {
        println!("{:>9} bytes  {}", fs::metadata(&file).map_err(about(&file))?.len(), file.display());
    }
    Ok(true)
}

/// Writes the program, manual pages, completions, Debian package, tar archive and checksums, and returns the files that people download.
pub(crate) fn package(release: &Release, output: &Path) -> Result<Vec<PathBuf>, String> {
    create(output)?;
    let program = output.join("lockgate");
    if fs::canonicalize(&release.binary).map_err(about(&release.binary))? != fs::canonicalize(&program).unwrap_or_default() {
        copy(&release.binary, &program)?;
    }
    set_mode(&program, 0o755)?;
    let manual = output.join("man");
    replace_directory(&manual)?;
    for page in files_in(&release.manual)? {
        copy(&page, &manual.join(page.file_name().unwrap_or_default()))?;
    }
    let scripts = output.join("completions");
    replace_directory(&scripts)?;
    completions::write_all(&program, &scripts)?;
    let shipped = Shipped { release, program: program.clone(), manual, completions: scripts };
    let deb = deb::write_package(&shipped, output)?;
    let archive = archive::write_archive(&shipped, output)?;
    let sums = archive::write_checksums(output, &[&program, &deb, &archive])?;
    Ok(vec![program, deb, archive, sums])
}

/// What goes into the package and the archive.
struct Shipped<'a> {
    release: &'a Release,
    program: PathBuf,
    manual: PathBuf,
    completions: PathBuf,
}

/// What cargo reports about this workspace.
pub(crate) struct Workspace {
    version: String,
    target: PathBuf,
    /// Name, version and directory of every package.
    packages: Vec<(String, String, PathBuf)>,
}

impl Workspace {
    pub(crate) fn read() -> Result<Self, String> {
        let output = crate::cargo::cargo().args(["metadata", "--format-version", "1", "--locked"]).output();
        let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("`cargo metadata --locked` failed: {error}: {}", String::from_utf8_lossy(&output.stderr)))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let listed = metadata["packages"].as_array().ok_or("`cargo metadata` lists no packages")?;
        let packages: Vec<_> = listed
            .iter()
            .map(|package| {
                let manifest = PathBuf::from(text(&package["manifest_path"]));
                (text(&package["name"]), text(&package["version"]), manifest.parent().unwrap_or(Path::new("")).to_path_buf())
            })
            .collect();
        let own =
            packages.iter().find(|(name, ..)| name == "lockgate-cli").ok_or("`cargo metadata` does not list lockgate-cli")?;
        Ok(Self { version: own.1.clone(), target: text(&metadata["target_directory"]).into(), packages })
    }
}

fn check_size(bytes: u64) -> Result<(), String> {
    if bytes <= SIZE_LIMIT {
        return Ok(());
    }
    Err(format!(
        "the program has {bytes} bytes; the limit is {SIZE_LIMIT}\nfind out what grew with `cargo bloat --profile dist --crates`, or raise SIZE_LIMIT in xtask/src/dist/mod.rs and give the reason in docs/design/building.md"
    ))
}

/// The time that all files get: `SOURCE_DATE_EPOCH`, or the time of the last commit.
fn epoch() -> Result<u64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let output = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(crate::root()).output();
            let output = output.ok().filter(|output| output.status.success());
            let output = output.ok_or("there is no commit to take the time from; set SOURCE_DATE_EPOCH to seconds since 1970")?;
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
    };
    text.trim().parse().map_err(|_| format!("SOURCE_DATE_EPOCH is {text:?}, not a number of seconds since 1970"))
}

/// Runs a program and returns what it prints.
fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.output().map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("{command:?} failed with {}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

fn about(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

fn temporary() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("cannot create a temporary directory: {error}"))
}

fn create(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(about(directory))
}

fn replace_directory(directory: &Path) -> Result<(), String> {
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(about(directory))?;
    }
    create(directory)
}

/// The files of a directory, sorted.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory).map_err(about(directory))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

/// Copies a file, readable for everyone. Creates the directory.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    create(to.parent().unwrap_or(Path::new(".")))?;
    fs::copy(from, to).map_err(about(from))?;
    set_mode(to, 0o644)
}

/// Writes a file, readable for everyone. Creates the directory.
fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), String> {
    create(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, contents).map_err(about(path))?;
    set_mode(path, 0o644)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(about(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_over_the_limit_is_refused() {
        assert!(check_size(SIZE_LIMIT).is_ok());
        let message = check_size(SIZE_LIMIT + 1).unwrap_err();
        assert!(message.contains("25000001 bytes") && message.contains("25000000"), "{message}");
    }
}
