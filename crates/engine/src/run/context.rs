//! The context: the JSON view of a run that conditions, scripts and templates see.

use crate::digest::Digest;
use crate::run::state::{Decision, GapRecord, Run};
use crate::spec::workflow::{Phase, Reads};
use crate::stored_value::StoredValue;
use serde_json::{Map, Value, json};

/// A context, with references in place of large values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    /// The context without its stored values.
    pub value: Map<String, Value>,
    /// The path of keys and the digest of each stored value.
    pub stored: Vec<(Vec<String>, Digest)>,
}

/// The parts of a context, in display order.
const PARTS: [&str; 11] = [
    "run",
    "workflow",
    "feature",
    "phases",
    "subagents_spawned",
    "deliverables",
    "checkpoints",
    "skip_phases",
    "gap_checks",
    "outputs",
    "vars",
];

impl Run {
    /// The context, or only the parts that are read.
    pub fn context(&self, reads: &Reads) -> Context {
        let mut context = Context::default();
        match reads {
            Reads::All => PARTS.iter().for_each(|part| self.put_part(part, None, &mut context)),
            Reads::Parts(parts) => {
                for part in parts {
                    match part.split_once('.') {
                        None => self.put_part(part, None, &mut context),
                        Some((part, inner)) => self.put_part(part, Some(inner), &mut context),
                    }
                }
            }
        }
        context
    }

    /// The whole context, with stored values filled in by `resolve`.
    pub fn full_context(&self, resolve: &dyn Fn(&Digest) -> Option<Value>) -> Value {
        let Context { value, stored } = self.context(&Reads::All);
        let mut value = Value::Object(value);
        for (path, digest) in stored {
            let mut place = &mut value;
            for key in &path {
                place = &mut place[key.as_str()];
            }
            *place = resolve(&digest).unwrap_or(Value::Null);
        }
        value
    }

    fn put_part(&self, part: &str, inner: Option<&str>, context: &mut Context) {
        let value = match part {
            "run" => json!(self.id),
            "workflow" => json!({
                "name": self.workflow.name,
                "started_at": self.started_at,
                "execution_mode": self.workflow.execution_mode.as_str(),
            }),
            "feature" => json!({"name": self.feature, "flags": self.flags}),
            "phases" => json!({
                "current": self.current.as_ref().map(|phase| &phase.id),
                "completed": self.completed,
                "iteration_counts": self.iteration_counts,
            }),
            "subagents_spawned" => json!(self.subagents_spawned),
            "deliverables" => self.deliverables(),
            "checkpoints" => {
                let counts = |decision: &&Decision| decision.checkpoint && !decision.void;
                self.decisions.iter().filter(counts).map(checkpoint).collect()
            }
            "skip_phases" => json!(self.skip_list),
            "gap_checks" => self.gap_checks.iter().map(gap_check).collect(),
            "outputs" => return self.put_outputs(inner, context),
            "vars" => return self.put_vars(inner, context),
            // A script may read a part that does not exist. It then sees `undefined`, as for any missing property.
            _ => return,
        };
        context.value.insert(part.to_owned(), value);
    }

    fn deliverables(&self) -> Value {
        let files = self.deliverables.iter();
        files
            .map(|known| {
                json!({
                    "phase": known.key.phase,
                    "path": known.file.path,
                    "subagent": known.key.task,
                    "size_bytes": known.file.bytes,
                    "timestamp": known.at,
                })
            })
            .collect()
    }

    fn put_vars(&self, inner: Option<&str>, context: &mut Context) {
        let vars = self.vars.iter().filter(|(name, _)| inner.is_none_or(|inner| inner == name.as_str()));
        place(context, &["vars"]);
        for (name, stored_value) in vars {
            put_stored_value(context, &["vars", name], stored_value);
        }
    }

    fn put_outputs(&self, inner: Option<&str>, context: &mut Context) {
        let phases = self.outputs.iter().filter(|(phase, _)| inner.is_none_or(|inner| inner == phase.as_str()));
        place(context, &["outputs"]);
        for (phase, tasks) in phases {
            for (task, stored_value) in tasks {
                put_stored_value(context, &["outputs", phase.as_str(), task.as_str()], stored_value);
            }
        }
        let phases = self.item_outputs.iter().filter(|(phase, _)| inner.is_none_or(|inner| inner == phase.as_str()));
        for (phase, tasks) in phases {
            for (task, items) in tasks {
                for (item, stored_value) in items {
                    put_stored_value(context, &["outputs", phase.as_str(), task.as_str(), item], stored_value);
                }
            }
        }
    }

    /// The value of `phase` in scripts, conditions and templates.
    pub fn phase_view(&self, phase: &Phase) -> Value {
        let current = self.current.as_ref().filter(|current| current.id == phase.id);
        let mut view = json!({
            "id": phase.id,
            "name": phase.title(),
            "iteration": self.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(0),
        });
        if !phase.skills.is_empty() {
            view["skills"] = json!(phase.skills);
        }
        if !phase.suggested.is_empty() {
            view["suggested_subagents"] = json!(phase.suggested);
        }
        if let Some(description) = &phase.description {
            view["description"] = json!(description);
        }
        if let Some(feedback) = current.and_then(|current| current.feedback.as_ref()) {
            view["feedback"] = json!(feedback);
        }
        view
    }

    /// The value of `workflow` in scripts, conditions and templates.
    pub fn workflow_view(&self) -> Value {
        let workflow = &self.workflow;
        let ids: Vec<_> = workflow.phases.iter().map(|phase| &phase.id).collect();
        json!({
            "name": workflow.name,
            "description": workflow.description,
            "version": workflow.version,
            "execution_mode": workflow.execution_mode.as_str(),
            "phases": ids,
        })
    }
}

/// A gap check as shown in `context.gap_checks`. Absent values are left out.
fn gap_check(check: &GapRecord) -> Value {
    let mut record = json!({
        "phase": check.phase,
        "iteration": check.round,
        "status": check.status,
        "gaps": check.gaps,
        "agents_spawned": check.agents,
        "timestamp": check.at,
    });
    if let Some(action) = check.action {
        record["action_taken"] = json!(action.as_str());
    }
    record
}

/// A decision as shown in `context.checkpoints`. Absent values are left out.
fn checkpoint(decision: &Decision) -> Value {
    let mut record = json!({
        "phase": decision.phase,
        "decision": decision.action,
        "option": decision.label,
        "timestamp": decision.at,
        "by": {"name": decision.actor.name, "credential": decision.actor.credential, "channel": decision.actor.channel},
    });
    if let Some(uid) = decision.actor.uid {
        record["by"]["uid"] = json!(uid);
    }
    if let Some(target) = &decision.target {
        record["target"] = json!(target);
    }
    if !decision.skipped.is_empty() {
        record["skipped"] = json!(decision.skipped);
    }
    if let Some(feedback) = &decision.feedback {
        record["feedback"] = json!(feedback);
    }
    record
}

fn place<'a>(context: &'a mut Context, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut map = &mut context.value;
    for key in path {
        let value = map.entry(*key).or_insert_with(|| Value::Object(Map::new()));
        map = value.as_object_mut().expect("every inner node of a path is an object");
    }
    map
}

fn put_stored_value(context: &mut Context, path: &[&str], stored_value: &StoredValue) {
    let (last, before) = path.split_last().expect("a path has a last key");
    match stored_value {
        StoredValue::Inline(text) => {
            let value = serde_json::from_str(text).unwrap_or(Value::Null);
            place(context, before).insert((*last).to_owned(), value);
        }
        StoredValue::Stored { digest, .. } => {
            place(context, before).insert((*last).to_owned(), Value::Null);
            context.stored.push((path.iter().map(|key| (*key).to_owned()).collect(), *digest));
        }
    }
}
