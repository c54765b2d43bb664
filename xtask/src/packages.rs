//! System packages that the tests need: installs missing ones or names them, and never skips a test.

use std::path::Path;
use std::process::Command;

/// A program that the tests call, and its Debian package.
struct Needed {
    program: &'static str,
    package: &'static str,
    what_for: &'static str,
}

const NEEDED: &[Needed] = &[
    Needed { program: "cc", package: "build-essential", what_for: "to compile the embedded SQLite and JavaScript engines" },
    Needed { program: "git", package: "git", what_for: "the examples create commits" },
    Needed { program: "tar", package: "tar", what_for: "the examples pack a release" },
    Needed { program: "gzip", package: "gzip", what_for: "the examples pack a release" },
    Needed { program: "openssl", package: "openssl", what_for: "to create certificates for tests with TLS" },
    Needed { program: "jq", package: "jq", what_for: "the recipes for notifications read JSON with it" },
    Needed { program: "initdb", package: "postgresql", what_for: "the store is tested on PostgreSQL" },
];

/// What the tests with real agent programs need in addition.
const NEEDED_BY_AGENTS: &[Needed] = &[Needed { program: "npm", package: "npm", what_for: "to install the real agent programs" }];

/// What packaging a release needs.
const NEEDED_BY_DIST: &[Needed] = &[
    Needed { program: "dpkg-deb", package: "dpkg", what_for: "to write the Debian package" },
    Needed { program: "tar", package: "tar", what_for: "to write the archive" },
    Needed { program: "gzip", package: "gzip", what_for: "to compress manual pages and the archive" },
    Needed { program: "sha256sum", package: "coreutils", what_for: "to write checksums" },
];

/// Ensures that all programs are installed.
pub(crate) fn ensure() -> Result<(), String> {
    ensure_these(NEEDED)?;
    ensure_for_dist()
}

/// Ensures that a release can be packaged.
pub(crate) fn ensure_for_dist() -> Result<(), String> {
    ensure_these(NEEDED_BY_DIST)
}

/// Ensures that the real agent programs can be installed.
pub(crate) fn ensure_for_agents() -> Result<(), String> {
    ensure_these(NEEDED_BY_AGENTS)
}

fn ensure_these(needed: &[Needed]) -> Result<(), String> {
    let missing = missing(needed, on_path);
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|needed| needed.package).collect();
    let advice = advice(&missing);
    if !may_install() {
        return Err(advice);
    }
    eprintln!("installing {}", packages.join(" "));
    for arguments in [vec!["update", "-q"], [&["install", "-q", "-y", "--no-install-recommends"], packages.as_slice()].concat()] {
        let status = Command::new("apt-get").args(&arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(format!("`apt-get {}` failed\n{advice}", arguments.join(" ")));
        }
    }
    Ok(())
}

fn missing(needed: &[Needed], there: impl Fn(&str) -> bool) -> Vec<&Needed> {
    needed.iter().filter(|needed| !there(needed.program)).collect()
}

fn advice(missing: &[&Needed]) -> String {
    let reasons: Vec<String> = missing.iter().map(|needed| format!("  {}: {}", needed.program, needed.what_for)).collect();
    let packages: Vec<&str> = missing.iter().map(|needed| needed.package).collect();
    format!("these programs are missing:\n{}\ninstall them: sudo apt-get install {}", reasons.join("\n"), packages.join(" "))
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|directory| directory.join(program).is_file()))
        || of_postgresql(program)
}

/// Debian keeps the programs of each PostgreSQL version in a directory that is not on the `PATH`.
fn of_postgresql(program: &str) -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin").join(program)).any(|path| path.is_file())
}

fn may_install() -> bool {
    let root = std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0")));
    root && Path::new("/usr/bin/apt-get").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let missing = missing(NEEDED, |program| program != "cc");
        let advice = advice(&missing);
        assert!(advice.contains("cc: to compile"), "{advice}");
        assert!(advice.ends_with("apt-get install build-essential"), "{advice}");
    }
}
