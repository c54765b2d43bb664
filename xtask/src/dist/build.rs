//! Builds the program with the `dist` profile, and the manual pages.

use super::{Workspace, about, run};
use crate::cargo;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the program that we ship. It contains no path of this machine, so that two machines can build the same bytes.
pub(super) fn program(workspace: &Workspace) -> Result<PathBuf, String> {
    let prefixes = prefixes(workspace);
    let rust: Vec<String> = prefixes.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    let c: Vec<String> = prefixes.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    let variables = [("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}")), ("CFLAGS", c.join(" "))];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let arguments = ["build", "--profile", "dist", "--locked", "--package", "lockgate-cli", "--bin", "lockgate"];
    let products = cargo::build_with(&arguments, &variables)?;
    let found = products.into_iter().find(|product| product.target == "lockgate");
    let program = found.ok_or("cargo built no program `lockgate`")?.program;
    let contents = fs::read(&program).map_err(about(&program))?;
    for (path, _) in &prefixes {
        if contents.windows(path.len()).any(|bytes| bytes == path.as_bytes()) {
            return Err(format!("{} contains the path {path} of this machine; find it with `strings`", program.display()));
        }
    }
    Ok(program)
}

/// The directories of this machine that the compilers may write into the program, each with what they write instead.
fn prefixes(workspace: &Workspace) -> Vec<(String, String)> {
    let mut prefixes = Vec::new();
    let root = crate::root();
    for (.., directory) in &workspace.packages {
        // `…/registry/src/INDEX/serde-1.0.0`, where the name of the index depends on how cargo reaches the registry.
        if let Some(parent) = directory.parent().filter(|_| !directory.starts_with(&root)) {
            let from = parent.to_string_lossy().into_owned();
            if prefixes.iter().all(|(known, _)| *known != from) {
                prefixes.push((from, "/dependencies".to_owned()));
            }
        }
    }
    // Build scripts write generated code below the target directory, which may be inside the workspace: the last match counts.
    prefixes.push((root.to_string_lossy().into_owned(), "/lockgate".to_owned()));
    prefixes.push((workspace.target.to_string_lossy().into_owned(), "/lockgate/target".to_owned()));
    prefixes
}

/// Writes one manual page per command. The debug build of an example target does it, so that the shipped program need not.
pub(super) fn manual_pages(directory: &Path) -> Result<(), String> {
    let products = cargo::build(&["build", "--package", "lockgate-cli", "--example", "reference"])?;
    let found = products.into_iter().find(|product| product.target == "reference");
    write_manual_pages(&found.ok_or("cargo built no example `reference`")?.program, directory)
}

/// Writes the pages with the example target `reference`.
pub(super) fn write_manual_pages(reference: &Path, directory: &Path) -> Result<(), String> {
    run(Command::new(reference).arg("man").arg(directory)).map(drop)
}
