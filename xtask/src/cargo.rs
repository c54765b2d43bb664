//! Runs cargo builds, and finds the programs they produce.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that cargo built.
pub(crate) struct Product {
    pub(crate) package: String,
    /// The target: the name of a crate, a test or a program.
    pub(crate) target: String,
    /// `lib`, `bin`, `test`, …
    pub(crate) kind: String,
    pub(crate) test: bool,
    pub(crate) program: PathBuf,
    /// The directory of the package, where its tests run.
    pub(crate) directory: PathBuf,
}

impl Product {
    /// The package, with the target if it differs.
    pub(crate) fn title(&self) -> String {
        format!("{} ({} {})", self.package, self.kind, self.target)
    }
}

/// The cargo that started this program, in the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::root());
    // `cargo run` sets these for this process. A build script that watches one would otherwise see a change.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_CRATE_NAME" {
            command.env_remove(name);
        }
    }
    command
}

/// Builds, shows the compiler's messages, and returns the resulting programs.
pub(crate) fn build(arguments: &[&str]) -> Result<Vec<Product>, String> {
    build_with(arguments, &[])
}

/// Like [`build`], with environment variables.
pub(crate) fn build_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Vec<Product>, String> {
    let mut command = cargo();
    command.envs(variables.iter().copied());
    command.args(arguments).arg("--message-format=json-render-diagnostics").stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo {}` failed; see the compiler's messages above", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(product).collect())
}

fn product(line: &str) -> Option<Product> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let program = PathBuf::from(message["executable"].as_str()?);
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    Some(Product {
        package: package_name(&directory).unwrap_or_default(),
        target: message["target"]["name"].as_str()?.to_owned(),
        kind: message["target"]["kind"][0].as_str()?.to_owned(),
        test: message["profile"]["test"].as_bool()?,
        program,
        directory,
    })
}

/// The name in the manifest of a package.
pub(crate) fn package_name(directory: &Path) -> Option<String> {
    let manifest = std::fs::read_to_string(directory.join("Cargo.toml")).ok()?;
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    line.split('"').nth(1).map(str::to_owned)
}

/// The directories of the workspace's packages.
pub(crate) fn package_directories() -> Result<Vec<PathBuf>, String> {
    let crates = crate::root().join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|error| format!("cannot list {}: {error}", crates.display()))?;
    let mut directories: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file()).collect();
    directories.push(crate::root().join("fuzz"));
    directories.push(crate::root().join("xtask"));
    directories.sort();
    Ok(directories)
}

/// Finds a package by its name, or by the name of its directory (`engine` for `lockgate-engine`).
pub(crate) fn find_package(named: &str) -> Result<String, String> {
    let mut known = Vec::new();
    for directory in package_directories()? {
        let short = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let package = package_name(&directory).ok_or_else(|| format!("{} has no name in its Cargo.toml", directory.display()))?;
        if named == short || named == package {
            return Ok(package);
        }
        known.push(short);
    }
    Err(format!("no crate {named:?}; the crates are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_found_by_directory_and_by_name() {
        assert_eq!(find_package("engine").unwrap(), "lockgate-engine");
        assert_eq!(find_package("lockgate-engine").unwrap(), "lockgate-engine");
        assert_eq!(find_package("cli").unwrap(), "lockgate-cli");
        assert_eq!(find_package("formats").unwrap(), "lockgate-formats");
        assert!(find_package("nothing").unwrap_err().contains("engine"));
    }
}
