//! The artifacts of a workstream: the files that its pipeline names, if they exist.

use super::{Shared, worktree};
use crate::runtime::Performed;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::id::TaskKey;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::pipeline::PipelineCommand;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAX_ARTIFACTS: usize = 500;

/// The maximum number of directory entries visited while matching.
const MAX_VISITED: usize = 20_000;

pub(super) fn look(shared: Arc<Shared>, run: &Run, key: &TaskKey) -> BoxFuture<'static, Performed> {
    let workstream = run.workflow.pipeline.as_ref().and_then(|pipeline| pipeline.workstream(key.task.as_str()));
    let patterns: Vec<String> =
        workstream.iter().flat_map(|workstream| &workstream.outputs).filter_map(|output| output.path.clone()).collect();
    let task = run.workflow.phase(key.phase.as_str()).and_then(|phase| phase.task(key.task.as_str()));
    let tree = task.and_then(|task| worktree::wanted(run, key, task));
    let key = key.clone();
    async move {
        let found = tokio::task::spawn_blocking(move || match worktree::existing(&shared, tree) {
            Some(base) => find(&base, &patterns),
            None => (Vec::new(), patterns),
        });
        // Files that cannot be checked count as missing.
        let (paths, missing) = found.await.unwrap_or_default();
        CommandKind::Pipeline(Box::new(PipelineCommand::ArtifactsFound { key, paths, missing })).into()
    }
    .boxed()
}

/// The files under a directory that match the patterns, in order, and the patterns without a match.
fn find(base: &Path, patterns: &[String]) -> (Vec<String>, Vec<String>) {
    let Ok(folder) = Dir::open_ambient_dir(base, ambient_authority()) else { return (Vec::new(), patterns.to_vec()) };
    let mut budget = MAX_VISITED;
    let mut known = BTreeSet::new();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for pattern in patterns {
        let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let there = matches(&folder, Path::new(""), &parts, &mut budget);
        if there.is_empty() {
            missing.push(pattern.clone());
        }
        for path in there {
            if found.len() < MAX_ARTIFACTS && known.insert(path.clone()) {
                found.push(path);
            }
        }
    }
    (found, missing)
}

fn matches(folder: &Dir, before: &Path, parts: &[&str], budget: &mut usize) -> Vec<String> {
    let Some((first, rest)) = parts.split_first() else { return Vec::new() };
    let names: Vec<String> = if first.contains('*') {
        let at = if before.as_os_str().is_empty() { Path::new(".") } else { before };
        let Ok(entries) = folder.read_dir(at) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .take(*budget)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .inspect(|_| *budget = budget.saturating_sub(1))
            .filter(|name| is_like(name, first))
            .collect();
        names.sort();
        names
    } else {
        vec![(*first).to_owned()]
    };
    let mut found = Vec::new();
    for name in names {
        let path: PathBuf = before.join(name);
        if rest.is_empty() {
            // A directory or symlink counts under its own name; symlinks are not followed.
            if folder.symlink_metadata(&path).is_ok() {
                found.push(path.to_string_lossy().into_owned());
            }
        } else {
            found.extend(matches(folder, &path, rest, budget));
        }
    }
    found
}

/// Whether a name matches a pattern in which `*` matches any characters.
fn is_like(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_part_of_one_path_component() {
        for (name, pattern, is) in [
            ("a.test.ts", "*.test.ts", true),
            ("a.ts", "*.test.ts", false),
            ("20260101_x.sql", "*_x*.sql", true),
            ("abc", "a*c", true),
            ("ac", "a*c", true),
            ("a", "a*a", false),
            ("x", "x", true),
            ("xy", "x", false),
        ] {
            assert_eq!(is_like(name, pattern), is, "{name} {pattern}");
        }
    }

    #[test]
    fn only_existing_artifacts_inside_the_root_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("root");
        std::fs::create_dir_all(base.join("tests/deep")).unwrap();
        for name in ["b.test.ts", "a.test.ts", "deep/c.test.ts"] {
            std::fs::write(base.join("tests").join(name), "x").unwrap();
        }
        std::fs::write(folder.path().join("outside.txt"), "x").unwrap();
        let patterns = ["tests/*.test.ts", "tests/*/c.test.ts", "none.md", "../outside.txt", "tests/a.test.ts"];
        let (found, missing) = find(&base, &patterns.map(str::to_owned));
        assert_eq!(missing, ["none.md", "../outside.txt"]);
        assert_eq!(found, ["tests/a.test.ts", "tests/b.test.ts", "tests/deep/c.test.ts"]);
    }
}
