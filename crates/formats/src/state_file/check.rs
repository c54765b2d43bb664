//! Checks a state file against the rules of the reference format.

use super::rule::{Finding, Findings, Rule};
use super::spec_diff;
use crate::json::{self, Content, Entry, JsonError, Placed};
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::spec::reader::shown;
use lockgate_engine::spec::suggest;
use lockgate_engine::spec::workflow::Workflow;
use std::collections::BTreeSet;

/// Checks a state file and returns the rules it violates, each once, in the order of the file.
///
/// `stem` is the file's name without its extension, which must equal `prd`. If `spec` is a workflow from an EXECUTION-SPEC, the file must list
/// its workstreams and gates.
pub fn check(text: &str, stem: Option<&str>, spec: Option<&Workflow>) -> Result<Vec<Finding>, JsonError> {
    let root = json::parse(text)?;
    if !matches!(root.content, Content::Map(_)) {
        let message = format!("a state file must be an object, not {}", root.kind());
        return Err(JsonError { message, at: root.span.start });
    }
    let mut findings = Findings::new(text);
    let found = &mut findings;
    identity(found, &root, stem);
    current_phase(found, &root);
    let status = status(found, &root);
    let completed = list(found, &root, "completed_workstreams", Rule::CompletedMissing, Rule::CompletedType);
    let in_progress = list(found, &root, "in_progress_workstreams", Rule::InProgressMissing, Rule::InProgressType);
    let pending = list(found, &root, "pending_workstreams", Rule::PendingMissing, Rule::PendingType);
    artifacts(found, &root, &completed);
    let passed = list(found, &root, "gates_passed", Rule::GatesPassedMissing, Rule::GatesPassedType);
    let gates_pending = list(found, &root, "gates_pending", Rule::GatesPendingMissing, Rule::GatesPendingType);
    timestamp(found, &root);
    let workstreams = [&completed, &in_progress, &pending];
    twice(found, &workstreams);
    error_shape(found, &root);
    if let Some(status) = status {
        by_status(found, &root, status, &in_progress);
        if status == Lifecycle::Complete {
            left_over(found, &pending, Rule::CompletePendingWorkstreams, "a complete pipeline has no pending workstreams");
            left_over(found, &gates_pending, Rule::CompletePendingGates, "a complete pipeline has no pending gates");
        }
    }
    if let Some(spec) = spec.and_then(|workflow| Some((workflow, workflow.pipeline.as_deref()?))) {
        spec_diff::workstreams(found, &root, spec, &workstreams);
        spec_diff::gates(found, &root, spec, &[&passed, &gates_pending]);
    }
    Ok(findings.finish())
}

/// The strings in a list; other values are skipped.
pub(super) struct Names<'f> {
    pub(super) key: &'static str,
    /// The entry in the file, if present.
    pub(super) entry: Option<&'f Entry>,
    pub(super) names: Vec<(&'f str, &'f Placed)>,
    /// The number of values, including those that are not strings.
    count: usize,
}

fn missing(found: &mut Findings<'_>, root: &Placed, rule: Rule, key: &str, example: &str) {
    let other = root.entries().iter().map(|entry| entry.key.as_str());
    let alias = match key {
        "prd" => root
            .entries()
            .iter()
            .map(|entry| entry.key.as_str())
            .find(|other| matches!(*other, "prd_id" | "id" | "exec_id" | "spec_id")),
        "prd_title" => other.clone().find(|other| matches!(*other, "title" | "name")),
        "timestamp" => other.clone().find(|other| matches!(*other, "updated_at" | "last_updated")),
        _ => suggest::typo_of(key, other),
    };
    let help = match alias {
        Some(alias) => format!("rename `{}` to `{key}`, or add `\"{key}\": {example}`", shown(alias)),
        None => format!("add `\"{key}\": {example}`"),
    };
    let message = match root.entries().iter().find(|entry| entry.key == key) {
        Some(_) => format!("`{key}` has no value"),
        None => format!("`{key}` is missing"),
    };
    found.add(rule, &root.span, message, help);
}

fn identity(found: &mut Findings<'_>, root: &Placed, stem: Option<&str>) {
    match root.get("prd") {
        None => missing(found, root, Rule::PrdMissing, "prd", "\"PRD-009\""),
        Some(prd) => {
            let text = prd.text();
            if !text.is_some_and(follows_pattern) {
                let found_value = text.map_or_else(|| prd.kind().to_owned(), |text| format!("`{}`", shown(text)));
                found.add(
                    Rule::PrdPattern,
                    &prd.span,
                    format!("`prd` is {found_value}, which is not a PRD id"),
                    "write `PRD-` and three digits, such as `PRD-009`",
                );
            }
            if let Some(stem) = stem.filter(|stem| text != Some(*stem)) {
                let message = format!("`prd` differs from the file name `{}`", shown(stem));
                let example = text.filter(|text| follows_pattern(text)).unwrap_or("PRD-009");
                let help = format!("name the file after its `prd`: `{example}.json` for `{example}`");
                found.add(Rule::PrdFilename, &prd.span, message, help);
            }
        }
    }
    match root.get("prd_title") {
        None => missing(found, root, Rule::TitleMissing, "prd_title", "\"Cashier Workflows\""),
        Some(title) if title.text().is_none() => {
            found.add(
                Rule::TitleType,
                &title.span,
                format!("`prd_title` must be a string, not {}", title.kind()),
                "write the title in quotes",
            );
        }
        Some(_) => {}
    }
}

fn follows_pattern(prd: &str) -> bool {
    prd.strip_prefix("PRD-").is_some_and(|digits| digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn current_phase(found: &mut Findings<'_>, root: &Placed) {
    let Some(value) = root.get("current_phase") else {
        missing(found, root, Rule::CurrentPhase, "current_phase", "0");
        return;
    };
    let is_whole = matches!(&value.content, Content::Number(number) if number.is_u64());
    if !is_whole {
        let help = "write the number of the phase without quotes, or 0 before the first";
        found.add(Rule::CurrentPhase, &value.span, "`current_phase` must be a whole number", help);
    }
}

fn status(found: &mut Findings<'_>, root: &Placed) -> Option<Lifecycle> {
    let Some(value) = root.get("status") else {
        missing(found, root, Rule::StatusMissing, "status", "\"initialized\"");
        return None;
    };
    let status = value.text().and_then(Lifecycle::of_word);
    if status.is_none() {
        let words = Lifecycle::ALL.map(Lifecycle::as_str);
        let text = value.text().unwrap_or_default();
        let found_value = value.text().map_or_else(|| value.kind().to_owned(), |text| format!("`{}`", shown(text)));
        let meant = suggest::did_you_mean(text, words).unwrap_or_else(|| format!("write one of {}", words.join(", ")));
        found.add(Rule::StatusValue, &value.span, format!("`status` is {found_value}, which is not a known status"), meant);
    }
    status
}

fn list<'f>(found: &mut Findings<'_>, root: &'f Placed, key: &'static str, absent: Rule, wrong: Rule) -> Names<'f> {
    let entry = root.entry(key);
    let Some(value) = entry.map(|entry| &entry.value) else {
        missing(found, root, absent, key, "[]");
        return Names { key, entry: None, names: Vec::new(), count: 0 };
    };
    let items = value.items().unwrap_or_default();
    let fault = if value.items().is_none() { Some(value) } else { items.iter().find(|item| item.text().is_none()) };
    if let Some(fault) = fault {
        let message = format!("`{key}` must be a list of strings, not {}", fault.kind());
        found.add(wrong, &fault.span, message, "write `[\"WS1\", \"WS2\"]`, and put other information under a separate key");
    }
    let names = items.iter().filter_map(|item| Some((item.text().or_else(|| item.get("id")?.text())?, item))).collect();
    Names { key, entry, names, count: items.len().max(value.entries().len()) }
}

fn artifacts(found: &mut Findings<'_>, root: &Placed, completed: &Names<'_>) {
    let Some(value) = root.get("artifacts") else {
        missing(found, root, Rule::ArtifactsMissing, "artifacts", "{}");
        return;
    };
    let Content::Map(entries) = &value.content else {
        let message = format!("`artifacts` must be an object with a list per workstream, not {}", value.kind());
        found.add(Rule::ArtifactsType, &value.span, message, "write `{\"WS1\": [\"path/of/file\"]}`");
        return;
    };
    let is_list = |value: &Placed| value.items().is_some_and(|items| items.iter().all(|item| item.text().is_some()));
    let wrong: Vec<&Entry> = entries.iter().filter(|entry| !is_list(&entry.value)).collect();
    if let Some(first) = wrong.first() {
        let message = format!(
            "in `artifacts`, the values of these keys must be lists of strings: {}",
            named(wrong.iter().map(|entry| entry.key.as_str()))
        );
        found.add(
            Rule::ArtifactValue,
            &first.value.span,
            message,
            "write the files of a workstream as a list, even a single one",
        );
    }
    let done: BTreeSet<&str> = completed.names.iter().map(|(name, _)| *name).collect();
    let strange = |entry: &&Entry| !done.contains(entry.key.as_str());
    let strange: Vec<&Entry> = entries.iter().filter(strange).collect();
    if let Some(first) = strange.first() {
        let message = format!(
            "in `artifacts`, these keys are not completed workstreams: {}",
            named(strange.iter().map(|entry| entry.key.as_str()))
        );
        let help = "list artifacts under the ids of `completed_workstreams` only; put other notes under a separate key";
        found.add(Rule::ArtifactKey, &first.key_span, message, help);
    }
}

/// Names for a message, shortened if there are many.
pub(super) fn named<'c>(names: impl Iterator<Item = &'c str>) -> String {
    suggest::known(names).unwrap_or_default()
}

fn timestamp(found: &mut Findings<'_>, root: &Placed) {
    let Some(value) = root.get("timestamp") else {
        missing(found, root, Rule::TimestampMissing, "timestamp", "\"2025-12-11T10:00:00Z\"");
        return;
    };
    if !value.text().is_some_and(is_iso_8601) {
        let found_value = value.text().map_or_else(|| value.kind().to_owned(), |text| format!("`{}`", shown(text)));
        let help = "write it as `2025-12-11T10:00:00Z`";
        found.add(Rule::TimestampFormat, &value.span, format!("`timestamp` is {found_value}, which is not ISO 8601"), help);
    }
}

/// Whether a text is a date, or a date and a time with an optional offset; with separators throughout, or without any.
fn is_iso_8601(text: &str) -> bool {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let digits_and =
        |text: &str, others: &str| !text.is_empty() && text.chars().all(|sign| sign.is_ascii_digit() || others.contains(sign));
    let date_is_one = digits_and(date, "-") && matches!(date.len(), 8 | 10) && date.parse::<jiff::civil::Date>().is_ok();
    date_is_one
        && time.is_none_or(|time| {
            let clock_end = time.find(['Z', '+', '-']).unwrap_or(time.len());
            let (clock, offset) = time.split_at(clock_end);
            let separators = |text: &str| text.contains(':') || text.len() <= 2;
            let is_clock = digits_and(clock, ":.,")
                && separators(clock.split(['.', ',']).next().unwrap_or_default()) == date.contains('-')
                && clock.parse::<jiff::civil::Time>().is_ok();
            let is_offset = match offset.as_bytes() {
                [] | [b'Z'] => true,
                [b'+' | b'-', rest @ ..] => {
                    matches!(rest.len(), 2 | 4 | 5)
                        && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b':')
                        && (rest.len() < 5 || rest[2] == b':')
                }
                _ => false,
            };
            is_clock && is_offset
        })
}

fn twice(found: &mut Findings<'_>, lists: &[&Names<'_>; 3]) {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut repeated: Vec<(&str, &Placed)> = Vec::new();
    for (name, place) in lists.iter().flat_map(|list| list.names.iter().copied()) {
        if !seen.insert(name) {
            repeated.push((name, place));
        }
    }
    if let Some((_, place)) = repeated.first() {
        let message = format!("listed more than once: {}", named(repeated.iter().map(|(name, _)| *name)));
        let help = "list each workstream once, as completed, in progress or pending";
        found.add(Rule::WorkstreamTwice, &place.span, message, help);
    }
}

fn error_shape(found: &mut Findings<'_>, root: &Placed) {
    let Some(error) = root.get("error") else { return };
    let lacks: Vec<&str> =
        ["workstream", "message"].into_iter().filter(|key| error.get(key).and_then(Placed::text).is_none()).collect();
    if !lacks.is_empty() {
        let help = "write `{\"workstream\": \"WS3\", \"message\": \"what went wrong\"}`, with `file` and `line` if known";
        found.add(Rule::ErrorShape, &error.span, format!("`error` has no {}", named(lacks.into_iter())), help);
    }
}

/// The rules of the reference format for each status.
fn by_status(found: &mut Findings<'_>, root: &Placed, status: Lifecycle, in_progress: &Names<'_>) {
    let error = root.entry("error");
    let here = root.get("status").map_or(0..0, |status| status.span.clone());
    match (status, error) {
        (Lifecycle::Failed, None) => {
            let help = "add `\"error\": {\"workstream\": \"WS3\", \"message\": \"what went wrong\"}`";
            found.add(Rule::ErrorMissing, &here, "the status is `failed`, but there is no `error`", help);
        }
        (Lifecycle::Initialized | Lifecycle::InProgress | Lifecycle::Paused | Lifecycle::Complete, Some(error)) => {
            let message = format!("there is an `error`, but the status is `{}`", status.as_str());
            found.add(Rule::ErrorUnexpected, &error.key_span, message, "remove it, or write `\"status\": \"failed\"`");
        }
        (Lifecycle::Failed, Some(_))
        | (Lifecycle::Initialized | Lifecycle::InProgress | Lifecycle::Paused | Lifecycle::Complete, None) => {}
    }
    let Some(entry) = in_progress.entry else { return };
    match (status, in_progress.count) {
        (Lifecycle::InProgress, 0) => {
            let message = "the status is `in_progress`, but no workstream is in progress";
            found.add(
                Rule::NothingInProgress,
                &entry.value.span,
                message,
                "list the running workstreams, or write `\"status\": \"paused\"`",
            );
        }
        (Lifecycle::Initialized | Lifecycle::Paused | Lifecycle::Failed | Lifecycle::Complete, 1..) => {
            let names = named(in_progress.names.iter().map(|(name, _)| *name));
            let message = format!("the status is `{}`, but `in_progress_workstreams` contains {names}", status.as_str());
            let help = "move them to `completed_workstreams` or `pending_workstreams`, or write `\"status\": \"in_progress\"`";
            found.add(Rule::StillInProgress, &entry.value.span, message, help);
        }
        (Lifecycle::InProgress, 1..)
        | (Lifecycle::Initialized | Lifecycle::Paused | Lifecycle::Failed | Lifecycle::Complete, 0) => {}
    }
}

fn left_over(found: &mut Findings<'_>, list: &Names<'_>, rule: Rule, message: &str) {
    if let Some(entry) = list.entry.filter(|_| list.count > 0) {
        let names = named(list.names.iter().map(|(name, _)| *name));
        let help = "move them to the list of completed ones, or write `\"status\": \"paused\"`";
        found.add(rule, &entry.value.span, format!("{message}, but `{}` contains {names}", list.key), help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_8601_dates_and_times_are_recognized() {
        for good in [
            "2025-12-11",
            "2025-12-11T10:00:00Z",
            "2025-12-11T10:00Z",
            "2025-12-11T10:00:00.123+01:00",
            "2025-12-11T10:00:00",
            "20251211T100000Z",
            "2025-12-11T10:00:00-0500",
        ] {
            assert!(is_iso_8601(good), "{good}");
        }
        for bad in [
            "",
            "2025-13-11",
            "2025-12-32T10:00:00Z",
            "2025-12-11T25:00:00Z",
            "2026-05-04T_ws8-complete",
            "11.12.2025",
            "yesterday",
            "2025-12-11 10:00:00",
            "2025-12-11T10:00:00 CET",
            "2025-12-11T",
        ] {
            assert!(!is_iso_8601(bad), "{bad}");
        }
    }
}
