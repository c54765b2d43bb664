//! The Debian package, written with `dpkg-deb`.

use super::archive::gzip;
use super::completions::SHELLS;
use super::{Compression, Shipped, about, copy, create, files_in, run, set_mode, temporary, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DOCUMENTS: &str = "usr/share/doc/lockgate";

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Lockgate
Comment: The program contains libraries of others. Their licences are in
 /usr/share/doc/lockgate/THIRD-PARTY-LICENSES.gz.

Files: *
Copyright: 2026 The Lockgate contributors
License: MIT or Apache-2.0

License: Apache-2.0
 On Debian systems, the full text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.

License: MIT
";

/// Writes `lockgate_VERSION-1_ARCHITECTURE.deb`.
pub(super) fn write_package(shipped: &Shipped, output: &Path) -> Result<PathBuf, String> {
    let release = shipped.release;
    let staging = temporary()?;
    let root = staging.path().join("root");
    let program = root.join("usr/bin/lockgate");
    copy(&shipped.program, &program)?;
    set_mode(&program, 0o755)?;
    let scratch = staging.path().join("scratch");
    let compressed = |contents: &[u8], to: PathBuf| {
        write(&scratch, contents)?;
        write(&to, gzip(&scratch, Compression::Best)?)
    };
    for page in files_in(&shipped.manual)? {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        compressed(&fs::read(&page).map_err(about(&page))?, root.join("usr/share/man/man1").join(name + ".gz"))?;
    }
    for (_, file, installed) in SHELLS {
        copy(&shipped.completions.join(file), &root.join(installed))?;
    }
    let documents = root.join(DOCUMENTS);
    let licence = crate::root().join("LICENSE-MIT");
    write(&documents.join("copyright"), copyright(&fs::read_to_string(&licence).map_err(about(&licence))?))?;
    let changes = crate::root().join("CHANGELOG.md");
    compressed(&fs::read(&changes).map_err(about(&changes))?, documents.join("changelog.gz"))?;
    compressed(release.notices.as_bytes(), documents.join("THIRD-PARTY-LICENSES.gz"))?;

    let files = files_below(&root);
    let sums = run(Command::new("md5sum").arg("--").args(&files).current_dir(&root))?;
    write(&root.join("DEBIAN/md5sums"), sums)?;
    let bytes: u64 = files.iter().filter_map(|file| fs::metadata(root.join(file)).ok()).map(|metadata| metadata.len()).sum();
    let contents = fs::read(&program).map_err(about(&program))?;
    write(&root.join("DEBIAN/control"), control(&release.version, bytes.div_ceil(1024), glibc(&contents)))?;
    set_modes_of_directories(&root)?;

    create(output)?;
    let file = output.join(format!("lockgate_{}-1_{}.deb", release.version, architecture()));
    let mut command = Command::new("dpkg-deb");
    // xz, because older versions of dpkg cannot read zstd, the default of some distributions.
    let compression = if release.compression == Compression::Best { ["-Zxz", "-z9"] } else { ["-Zgzip", "-z1"] };
    command.args(compression).args(["--root-owner-group", "--build"]).arg(&root).arg(&file);
    run(command.env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    Ok(file)
}

fn control(version: &str, kilobytes: u64, glibc: Option<(u32, u32)>) -> String {
    let depends = glibc.map(|(major, minor)| format!("Depends: libc6 (>= {major}.{minor}), libgcc-s1\n")).unwrap_or_default();
    format!(
        "Package: lockgate\n\
         Version: {version}-1\n\
         Section: devel\n\
         Priority: optional\n\
         Architecture: {}\n\
         Maintainer: The Lockgate contributors\n\
         Installed-Size: {kilobytes}\n\
         {depends}\
         Recommends: git\n\
         Suggests: bash-completion\n\
         Description: durable workflows of coding agents that stop where people decide\n\
         \x20Lockgate runs workflows of coding agents, shell commands and scripts. It\n\
         \x20stops at checkpoints until a person decides, and records every step on\n\
         \x20disk first, so that a run continues where it stopped after a crash, a kill\n\
         \x20or months of waiting. The database is embedded; there is no server.\n",
        architecture()
    )
}

/// Debian's name of the architecture that this program was built for.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "i386",
        "powerpc64" => "ppc64el",
        other => other,
    }
}

/// The newest version of the C library whose symbols a program uses.
fn glibc(program: &[u8]) -> Option<(u32, u32)> {
    let mark = b"GLIBC_";
    let versions = program.windows(mark.len()).enumerate().filter(|(_, bytes)| bytes == mark).filter_map(|(position, _)| {
        let rest = &program[position + mark.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        let mut numbers = std::str::from_utf8(&rest[..end]).ok()?.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max()
}

fn copyright(mit: &str) -> String {
    // A paragraph continues with a space; an empty line is written as a dot.
    let lines = mit.lines().map(|line| if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") });
    COPYRIGHT.to_owned() + &lines.collect::<String>()
}

/// All files below a directory, relative to it and sorted.
fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut directories = vec![root.to_path_buf()];
    let mut found = Vec::new();
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => directories.push(path),
                false => found.extend(path.strip_prefix(root).map(Path::to_path_buf)),
            }
        }
    }
    found.sort();
    found
}

/// The modes must not depend on the umask of the person who packages.
fn set_modes_of_directories(root: &Path) -> Result<(), String> {
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        set_mode(&directory, 0o755)?;
        let below = fs::read_dir(&directory).map_err(about(&directory))?.flatten().map(|entry| entry.path());
        directories.extend(below.filter(|path| path.is_dir()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_symbol_is_found() {
        assert_eq!(glibc(b"..GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0"), Some((2, 34)));
        assert_eq!(glibc(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn the_copyright_file_has_one_paragraph_per_licence() {
        let text = copyright("MIT License\n\nPermission is granted\n");
        assert!(text.ends_with("License: MIT\n MIT License\n .\n Permission is granted\n"), "{text}");
    }
}
