//! Passed and pending gates: two lists, or results by gate.

use super::Reader;
use super::workstreams::id_of;
use crate::json::{Content, Placed};
use lockgate_engine::plural::counted;

impl Reader<'_> {
    pub(super) fn gates(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut passed, mut pending) = (self.gate_list("gates_passed"), self.gate_list("gates_pending"));
        for key in ["gate_results", "gates"] {
            let Some(value) = self.whole.get(key).filter(|_| passed.is_empty() && pending.is_empty()) else { continue };
            for entry in value.entries() {
                let has_passed = match &entry.value.content {
                    Content::Boolean(passed) => Some(*passed),
                    Content::Text(text) => Some(says_passed(text)),
                    Content::Map(_) => match entry.value.get("passed").map(|passed| &passed.content) {
                        Some(Content::Boolean(passed)) => Some(*passed),
                        _ => entry.value.get("status").and_then(Placed::text).map(says_passed),
                    },
                    Content::Null | Content::Number(_) | Content::List(_) => None,
                };
                let name = entry.value.get("gate").and_then(Placed::text).unwrap_or(&entry.key).to_owned();
                match has_passed {
                    Some(true) => passed.push(name),
                    Some(false) => pending.push(name),
                    None => {}
                }
            }
            if !(passed.is_empty() && pending.is_empty()) {
                self.note(format!("gate results were taken from `{key}`"));
            }
        }
        (passed, pending)
    }

    /// The gates of a list: `lint`, `lint (WS3)`, `WS3:lint`, or objects that name the gate and its workstreams.
    fn gate_list(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.whole.get(key) else { return Vec::new() };
        let mut gates: Vec<String> = Vec::new();
        let mut leniently = 0;
        for item in value.items().unwrap_or_default() {
            let gate = match &item.content {
                Content::Text(text) => {
                    let gate = gate_of(text);
                    leniently += usize::from(gate != *text);
                    Some(gate)
                }
                Content::Map(_) => {
                    leniently += 1;
                    ["gate", "id", "name"].iter().find_map(|key| item.get(key)?.text()).map(|name| {
                        let owners: Vec<String> = match item.get("workstreams").and_then(Placed::items) {
                            Some(items) => items.iter().filter_map(id_of).collect(),
                            None => item.get("workstream").and_then(id_of).into_iter().collect(),
                        };
                        if owners.is_empty() { name.to_owned() } else { format!("{name} ({})", owners.join("+")) }
                    })
                }
                Content::Null | Content::Boolean(_) | Content::Number(_) | Content::List(_) => {
                    leniently += 1;
                    None
                }
            };
            gates.extend(gate);
        }
        for entry in value.entries() {
            leniently += 1;
            gates.push(entry.key.clone());
        }
        if leniently > 0 {
            self.note(format!("`{key}` has {} in another format", counted(leniently, "value")));
        }
        gates
    }
}

fn says_passed(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    ["pass", "ok", "green", "success", "complete", "done", "✅"].iter().any(|word| text.starts_with(word))
}

/// Rewrites `WS3:lint` to `lint (WS3)`, and `phase_1:lint` to `lint`; returns anything else unchanged.
fn gate_of(text: &str) -> String {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
    };
    match text.split_once(':') {
        Some((owner, gate)) if is_name(owner) && is_name(gate) => {
            if owner.to_lowercase().starts_with("phase") {
                gate.to_owned()
            } else {
                format!("{gate} ({owner})")
            }
        }
        Some(_) | None => text.to_owned(),
    }
}
