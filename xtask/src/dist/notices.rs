//! The licence texts of everything that is compiled into the program, which most licences require us to ship.

use super::{Workspace, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How deep below a package licences are searched: libraries in C have theirs next to their sources.
const DEPTH: usize = 4;

/// Each text once, under the names of the packages that it applies to.
pub(super) fn text(workspace: &Workspace) -> Result<String, String> {
    let mut command = crate::cargo::cargo();
    command.args(["tree", "--locked", "--package", "lockgate-cli", "--edges", "normal,no-proc-macro"]);
    command.args(["--prefix", "none", "--format", "{p}\t{l}"]);
    let tree = String::from_utf8_lossy(&run(&mut command)?).into_owned();
    let mut lines: Vec<&str> = tree.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        let (package, licence) = line.split_once('\t').unwrap_or((line, ""));
        let mut words = package.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().trim_start_matches('v'));
        let directory = workspace.packages.iter().find(|known| known.0 == name && known.1 == version).map(|known| &known.2);
        let directory = directory.ok_or_else(|| format!("`cargo metadata` does not list {name} {version}"))?;
        // Our own packages, and lines that cargo marks as repeated.
        if directory.starts_with(crate::root()) || licence.is_empty() {
            continue;
        }
        let licence = licence.trim_end_matches(" (*)");
        if !list.lines().any(|known| known == format!("{name} {version}: {licence}")) {
            list.push_str(&format!("{name} {version}: {licence}\n"));
            for file in licences_in(directory) {
                let text = fs::read_to_string(&file).unwrap_or_default().replace('\r', "");
                let user = format!("{name} {version}");
                let users = texts.entry(text.trim().to_owned()).or_default();
                if !text.trim().is_empty() && !users.contains(&user) {
                    users.push(user);
                }
            }
        }
    }
    let mut notices = format!("Lockgate contains these libraries:\n\n{list}");
    let mut texts: Vec<(String, Vec<String>)> = texts.into_iter().filter(|(_, users)| !users.is_empty()).collect();
    texts.sort_by(|one, other| one.1.cmp(&other.1));
    for (text, users) in texts {
        notices.push_str(&format!("\n{}\n{}\n\n{text}\n", "=".repeat(80), users.join(", ")));
    }
    Ok(notices)
}

/// The licence files of a package. If it offers the MIT licence, that is the one we choose.
fn licences_in(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![(directory.to_path_buf(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        for path in fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() && depth < DEPTH {
                directories.push((path, depth + 1));
            } else if path.is_file() && is_licence(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    let offers_mit = found.iter().any(|path| name(path).contains("MIT"));
    found.retain(|path| !(offers_mit && name(path).contains("APACHE")));
    found
}

fn is_licence(path: &Path) -> bool {
    let name = name(path);
    let source = [".RS", ".C", ".H", ".PY", ".HTML", ".JSON"].iter().any(|end| name.ends_with(end));
    !source && ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"].iter().any(|start| name.starts_with(start))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_of_rust_and_c_libraries_are_included() {
        let notices = text(&Workspace::read().unwrap()).unwrap();
        for library in ["\nserde ", "\ntokio ", "\nrquickjs-sys ", "\nlibmimalloc-sys "] {
            assert!(notices.contains(library), "{library:?} is not listed");
        }
        assert!(notices.contains("Fabrice Bellard"), "the licence of the JavaScript engine is missing");
        assert!(!notices.contains("\nlockgate-engine"), "our own packages have the licence of the program");
    }

    #[test]
    fn the_mit_licence_is_chosen_where_it_is_offered() {
        let directory = tempfile::tempdir().unwrap();
        for file in ["LICENSE-MIT", "LICENSE-APACHE", "license.rs"] {
            fs::write(directory.path().join(file), "text").unwrap();
        }
        assert_eq!(licences_in(directory.path()), [directory.path().join("LICENSE-MIT")]);
    }
}
