//! Asks cargo to build, and says where the products are.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that cargo built.
pub(crate) struct Product {
    /// The package that it belongs to.
    pub(crate) package: String,
    /// The target: a crate's name, a test's name or a program's name.
    pub(crate) target: String,
    /// `lib`, `bin`, `test`, …
    pub(crate) kind: String,
    /// Whether it is a test program.
    pub(crate) test: bool,
    /// Where it is.
    pub(crate) program: PathBuf,
    /// The package's folder, where its tests run.
    pub(crate) folder: PathBuf,
}

impl Product {
    /// What people call it: the package, and the target where that says more.
    pub(crate) fn title(&self) -> String {
        format!("{} ({} {})", self.package, self.kind, self.target)
    }
}

/// Cargo itself, in the workspace: the same one that started us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::root());
    // `cargo run` sets these for us; a build script that watches one would otherwise think that it had changed.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_CRATE_NAME" {
            command.env_remove(name);
        }
    }
    command
}

/// Builds, shows the compiler's messages, and gives the programs that came out.
pub(crate) fn build(arguments: &[&str]) -> Result<Vec<Product>, String> {
    build_with(arguments, &[])
}

/// Builds with variables in the environment.
pub(crate) fn build_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Vec<Product>, String> {
    let mut command = cargo();
    command.envs(variables.iter().copied());
    command.args(arguments).arg("--message-format=json-render-diagnostics").stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo {}` failed; the compiler's messages stand above", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(product).collect())
}

fn product(line: &str) -> Option<Product> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let program = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    Some(Product {
        package: package_name(&folder).unwrap_or_default(),
        target: message["target"]["name"].as_str()?.to_owned(),
        kind: message["target"]["kind"][0].as_str()?.to_owned(),
        test: message["profile"]["test"].as_bool()?,
        program,
        folder,
    })
}

/// The name in a package's manifest.
pub(crate) fn package_name(folder: &Path) -> Option<String> {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    line.split('"').nth(1).map(str::to_owned)
}

/// The folders of the workspace's packages.
pub(crate) fn package_folders() -> Result<Vec<PathBuf>, String> {
    let crates = crate::root().join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|error| format!("cannot list {}: {error}", crates.display()))?;
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file()).collect();
    folders.push(crate::root().join("fuzz"));
    folders.push(crate::root().join("xtask"));
    folders.sort();
    Ok(folders)
}

/// The package that somebody means: by its name, or by the name of its folder (`engine` for `lockgate-engine`).
pub(crate) fn find_package(named: &str) -> Result<String, String> {
    let mut known = Vec::new();
    for folder in package_folders()? {
        let short = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let package = package_name(&folder).ok_or_else(|| format!("{} has no name in its Cargo.toml", folder.display()))?;
        if named == short || named == package {
            return Ok(package);
        }
        known.push(short);
    }
    Err(format!("there is no crate {named:?}; there are {}", known.join(", ")))
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
