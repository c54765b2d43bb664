//! Gates from the `must_haves` of a plan: files that must exist, and what they must contain.

use super::super::{Artifact, KeyLink, PlanFile};
use super::shell::{is_under_root, literal, quoted};
use lockgate_engine::id::GateId;
use lockgate_engine::plural::counted;
use lockgate_engine::spec::workflow::{Gate, OnFail};
use std::time::Duration;

/// The timeout for checking one file.
const LIMIT: Duration = Duration::from_secs(60);

/// The gates of a plan, and descriptions of what cannot be checked.
pub(super) fn gates(plan: &PlanFile, prefix: &str) -> (Vec<Gate>, Vec<String>) {
    let must = &plan.frontmatter.must_haves;
    let (mut gates, mut unchecked) = (Vec::new(), Vec::new());
    for (number, artifact) in (1..).zip(&must.artifacts) {
        match is_under_root(&artifact.path) {
            true => gates.push(gate(format!("{prefix}artifact-{number}"), &looks_at(artifact), artifact_says(artifact))),
            false => unchecked.push(format!("{}: {}", artifact.path, artifact.provides)),
        }
    }
    for (number, link) in (1..).zip(&must.key_links) {
        match link.pattern.as_deref().filter(|pattern| !pattern.is_empty() && is_file_of(plan, &link.from)) {
            Some(pattern) => gates.push(gate(
                format!("{prefix}link-{number}"),
                &looks_for(link, pattern),
                format!("{} matches {pattern}", link.from),
            )),
            None => unchecked.push(format!("{} is connected to {} ({})", link.from, link.to, link.via)),
        }
    }
    (gates, unchecked)
}

/// On failure, a person decides, because the plan itself may be wrong.
fn gate(id: String, command: &str, says: String) -> Gate {
    let title = Some(says.replace(char::is_control, " "));
    Gate { timeout: Some(LIMIT), on_fail: OnFail::Ask, title, ..Gate::new(GateId::new(id), literal(command)) }
}

/// The requirements on a file, in words.
fn artifact_says(artifact: &Artifact) -> String {
    let mut says = format!("{} exists", artifact.path);
    for text in artifact.contains.iter().filter(|text| !text.is_empty()) {
        says += &format!(", contains {text}");
    }
    if let Some(least) = artifact.min_lines {
        says += &format!(", has {} or more", counted(least, "line"));
    }
    says
}

fn looks_at(artifact: &Artifact) -> String {
    let mut command = format!("f={}\n", quoted(&format!("./{}", artifact.path)));
    command += &or_say("test -e \"$f\"", &format!("{} does not exist", artifact.path));
    for text in artifact.contains.iter().filter(|text| !text.is_empty()) {
        let word = quoted(text);
        let found = format!("grep -rqF -e {word} -- \"$f\" || grep -rqE -e {word} -- \"$f\" 2>/dev/null");
        command += &or_say(&found, &format!("{} does not contain {text}", artifact.path));
    }
    if let Some(least) = artifact.min_lines {
        // A last line without a line break counts too.
        let enough = format!("test \"$(grep -c '' <\"$f\")\" -ge {least}");
        command += &or_say(&enough, &format!("{} has fewer than {}", artifact.path, counted(least, "line")));
    }
    command
}

fn looks_for(link: &KeyLink, pattern: &str) -> String {
    let (file, word) = (quoted(&format!("./{}", link.from)), quoted(pattern));
    let mut command = format!("f={file}\n");
    command += &or_say("test -e \"$f\"", &format!("{} does not exist", link.from));
    let found = format!("grep -rqE -e {word} -- \"$f\" 2>/dev/null || grep -rqP -e {word} -- \"$f\" 2>/dev/null");
    command + &or_say(&found, &format!("nothing in {} matches {pattern} ({} to {})", link.from, link.via, link.to))
}

fn or_say(command: &str, why: &str) -> String {
    let why = quoted(&why.replace(char::is_control, " "));
    format!("{command} || {{ printf '%s\\n' {why} >&2; exit 1; }}\n")
}

/// Whether a link starts at a file of the plan. Real plans also name components and services there.
fn is_file_of(plan: &PlanFile, from: &str) -> bool {
    let known = plan.frontmatter.must_haves.artifacts.iter().map(|artifact| &artifact.path);
    let mut known = known.chain(&plan.frontmatter.files_modified).chain(plan.tasks.iter().flat_map(|task| &task.files));
    is_under_root(from) && (known.any(|path| path == from) || from.contains('/') && !from.contains(' '))
}
