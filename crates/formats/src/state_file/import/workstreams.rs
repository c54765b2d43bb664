//! The status of workstreams: from three lists, from each workstream, or from its phase.

use super::Reader;
use crate::json::{Content, Placed};
use lockgate_engine::plural::counted;
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::spec::suggest;
use std::collections::BTreeSet;

/// Workstreams by status; each is in one list only.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) completed: Vec<String>,
    pub(super) in_progress: Vec<String>,
    pub(super) pending: Vec<String>,
    known: BTreeSet<String>,
}

impl Lists {
    /// Adds a workstream that is not in any list yet; returns whether it was added.
    fn add(&mut self, id: String, status: Lifecycle) -> bool {
        let is_new = self.known.insert(id.clone());
        if is_new {
            match status {
                Lifecycle::Complete => self.completed.push(id),
                Lifecycle::InProgress => self.in_progress.push(id),
                Lifecycle::Initialized | Lifecycle::Paused | Lifecycle::Failed => self.pending.push(id),
            }
        }
        is_new
    }
}

impl Reader<'_> {
    pub(super) fn workstreams(&mut self) -> Lists {
        let mut lists = Lists::default();
        for (key, status) in [
            ("completed_workstreams", Lifecycle::Complete),
            ("in_progress_workstreams", Lifecycle::InProgress),
            ("pending_workstreams", Lifecycle::Initialized),
        ] {
            let again: Vec<String> = self.ids(key).into_iter().filter(|id| !lists.add(id.clone(), status)).collect();
            if let Some(names) = suggest::known(again.iter().map(String::as_str)) {
                self.note(format!("also listed before `{key}`: {names}; the first entry counts"));
            }
        }
        let failed = self.ids("failed_workstreams").into_iter().filter(|id| lists.add(id.clone(), Lifecycle::Failed)).count();
        if failed > 0 {
            self.note(format!("`failed_workstreams` has {}, which will be redone", counted(failed, "workstream")));
        }
        self.workstreams_by_status(&mut lists);
        self.workstreams_of_phases(&mut lists);
        lists
    }

    /// The ids in a list of strings, a list of objects with an id, or a map by id.
    fn ids(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.whole.get(key) else { return Vec::new() };
        let mut ids: Vec<String> = Vec::new();
        let mut leniently = false;
        match &value.content {
            Content::List(items) => {
                for item in items {
                    leniently |= item.text().is_none();
                    ids.extend(id_of(item));
                }
            }
            Content::Map(entries) => {
                leniently = true;
                ids.extend(entries.iter().map(|entry| entry.key.clone()));
            }
            Content::Text(text) => {
                leniently = true;
                ids.extend(text.split([',', ' ']).filter(|id| !id.is_empty()).map(str::to_owned));
            }
            Content::Null | Content::Boolean(_) | Content::Number(_) => leniently = true,
        }
        if leniently {
            self.note(format!("`{key}` is not a list of strings; found {}", counted(ids.len(), "workstream")));
        }
        ids
    }

    /// `workstreams: {WS1: {status: …}}` gives the status of every workstream that is not in a list.
    fn workstreams_by_status(&mut self, lists: &mut Lists) {
        let Some(value) = self.whole.get("workstreams") else { return };
        let named: Vec<(String, Option<&str>)> = match &value.content {
            Content::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.get("status").and_then(Placed::text).or(entry.value.text())))
                .collect(),
            Content::List(items) => {
                items.iter().filter_map(|item| Some((id_of(item)?, item.get("status").and_then(Placed::text)))).collect()
            }
            Content::Null | Content::Boolean(_) | Content::Number(_) | Content::Text(_) => Vec::new(),
        };
        let mut found = 0;
        for (id, status) in named {
            found += usize::from(lists.add(id, status.and_then(meaning).unwrap_or(Lifecycle::Initialized)));
        }
        if found > 0 {
            self.note(format!("the status of {} was taken from `workstreams`", counted(found, "workstream")));
        }
    }

    /// Workstreams that only phases name take the status of their phase.
    fn workstreams_of_phases(&mut self, lists: &mut Lists) {
        let mut found = 0;
        for key in ["phases", "execution_phases"] {
            let Some(value) = self.whole.get(key) else { continue };
            let phases: Vec<&Placed> = match &value.content {
                Content::List(items) => items.iter().collect(),
                Content::Map(entries) => entries.iter().map(|entry| &entry.value).collect(),
                Content::Null | Content::Boolean(_) | Content::Number(_) | Content::Text(_) => Vec::new(),
            };
            for phase in phases {
                let status = phase.get("status").and_then(Placed::text).and_then(meaning);
                let members = ["workstreams", "parallel"].iter().find_map(|key| phase.get(key)?.items()).unwrap_or_default();
                for id in members.iter().filter_map(id_of) {
                    let status = if status == Some(Lifecycle::Complete) { Lifecycle::Complete } else { Lifecycle::Initialized };
                    found += usize::from(lists.add(id, status));
                }
            }
        }
        if found > 0 {
            self.note(format!("the status of {} was taken from the phases", counted(found, "workstream")));
        }
    }
}

/// Translates a status of another tool; `None` if it is unknown.
pub(super) fn meaning(word: &str) -> Option<Lifecycle> {
    let word: String = word.trim().to_lowercase().replace(['-', ' '], "_");
    match word.as_str() {
        "initialized" | "initialised" | "created" | "new" | "ready" | "pending" | "not_started" | "todo" | "draft" | "queued" => {
            Some(Lifecycle::Initialized)
        }
        "in_progress" | "inprogress" | "running" | "active" | "started" | "executing" | "building" => Some(Lifecycle::InProgress),
        "paused" | "blocked" | "waiting" | "on_hold" | "awaiting_approval" | "awaiting_review" | "review" => {
            Some(Lifecycle::Paused)
        }
        "failed" | "failure" | "error" | "errored" | "aborted" => Some(Lifecycle::Failed),
        "complete" | "completed" | "done" | "finished" | "closed" | "success" | "succeeded" | "passed" | "shipped" | "merged" => {
            Some(Lifecycle::Complete)
        }
        _ => None,
    }
}

/// The id of a workstream: a string, or an object with an id.
pub(super) fn id_of(value: &Placed) -> Option<String> {
    let named = || ["id", "workstream", "name"].iter().find_map(|key| value.get(key)?.text());
    value.text().or_else(named).map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned)
}
