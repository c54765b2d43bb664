//! The tar archive for systems without Debian packages, and the checksums.

use super::completions::SHELLS;
use super::{Compression, Shipped, copy, files_in, run, set_mode, temporary, write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes `lockgate-VERSION-ARCHITECTURE-linux.tar.gz`.
pub(super) fn write_archive(shipped: &Shipped, output: &Path) -> Result<PathBuf, String> {
    let release = shipped.release;
    let name = format!("lockgate-{}-{}-linux", release.version, std::env::consts::ARCH);
    let staging = temporary()?;
    let root = staging.path().join(&name);
    copy(&shipped.program, &root.join("lockgate"))?;
    set_mode(&root.join("lockgate"), 0o755)?;
    for document in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&crate::root().join(document), &root.join(document))?;
    }
    write(&root.join("THIRD-PARTY-LICENSES"), &release.notices)?;
    for page in files_in(&shipped.manual)? {
        copy(&page, &root.join("man/man1").join(page.file_name().unwrap_or_default()))?;
    }
    for (shell, file, _) in SHELLS {
        copy(&shipped.completions.join(file), &root.join("completions").join(shell).join(file))?;
    }
    let tar = staging.path().join("archive.tar");
    let mut command = Command::new("tar");
    command.args(["--create", "--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]);
    command.arg(format!("--mtime=@{}", release.epoch)).arg("--file").arg(&tar).arg("--directory").arg(staging.path()).arg(&name);
    run(&mut command)?;
    let file = output.join(format!("{name}.tar.gz"));
    write(&file, gzip(&tar, release.compression)?)?;
    Ok(file)
}

/// A compressed file, without its name and time.
pub(super) fn gzip(file: &Path, compression: Compression) -> Result<Vec<u8>, String> {
    let level = if compression == Compression::Best { "-9" } else { "-1" };
    run(Command::new("gzip").args([level, "--no-name", "--stdout"]).arg(file))
}

/// Writes `SHA256SUMS`, for `sha256sum --check`.
pub(super) fn write_checksums(output: &Path, files: &[&PathBuf]) -> Result<PathBuf, String> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = run(Command::new("sha256sum").arg("--").args(names).current_dir(output))?;
    let file = output.join("SHA256SUMS");
    write(&file, sums)?;
    Ok(file)
}
