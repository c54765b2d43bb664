//! The content of a snapshot: a readable part with the state as people and other tools see it, and the complete engine state,
//! which alone is used to resume or recover.

use super::{Due, Trigger};
use crate::digest::Digest;
use crate::id::{RunId, SnapshotId};
use crate::run::event::OutputFile;
use crate::run::phase::PhaseRun;
use crate::run::state::TaskState;
use crate::run::team::Member;
use crate::run::{Run, Status};
use crate::spec::workflow::{DEFAULT_AGENT, Task};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The version of the readable structure.
pub const VERSION: &str = "1.0";

/// The version of the engine state that this release writes, and the newest that it reads.
pub const FORMAT: u64 = 1;

/// How much of an agent's answer is shown.
const SUMMARY_CHARS: usize = 200;

/// What a snapshot says about the world around its run. It is read when the snapshot is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    pub branch: Option<String>,
    /// The commit that is checked out.
    pub commit: Option<String>,
    /// Changed files, compared with that commit.
    pub files: Vec<ChangedFile>,
    /// The programs of the agents that the run still needs.
    pub agents: Vec<String>,
    /// The environment variables that the run still needs.
    pub environment: Vec<String>,
    pub warnings: Vec<String>,
    /// Captured knowledge that is not among the entries of the project yet.
    pub pending_captures: Vec<String>,
}

/// A file that git reports as changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    pub path: String,
    pub status: FileStatus,
    pub staged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    Added,
    Modified,
    Deleted,
    Renamed,
    Untracked,
    Conflicted,
}

/// The engine state of a snapshot: part of the file, or a stored value next to it.
#[derive(Clone, Debug, PartialEq)]
pub enum SavedState {
    Inline(Value),
    Stored(Digest),
}

/// The content of a snapshot without its id.
pub fn content(run: &Run, due: &Due, around: &Surroundings, state: SavedState, values: &[Digest]) -> Map<String, Value> {
    let phase = due.phase.as_ref();
    let current = run.current.as_ref();
    let label = phase.map(|phase| format!("state:{phase}"));
    let content = json!({
        "version": VERSION,
        "created_at": due.at,
        "trigger": due.trigger,
        "issue_number": run.issue.as_ref().and_then(|issue| issue.number),
        "session_id": run.driver,
        "workflow_state": {
            "current_phase": phase,
            "current_state_label": label,
            "phase_started_at": current.map(|phase| phase.started_at),
            "phase_attempt": current.map_or(1, |phase| phase.iteration),
        },
        "issue_snapshot": issue(run, around),
        "team_state": team(run),
        "execution_graph": graph(run),
        "agent_outputs": agent_outputs(run),
        "acp_state": {
            "pending_messages": run.pending_messages(),
            "awaiting_response": run.messages_awaiting_response(),
            "conflicts_in_progress": run.conflicts_in_progress(),
        },
        "knowledge_context": {
            "injected_entries": run.injected_knowledge(),
            "captured_entries": run.captured_knowledge(),
            "pending_captures": around.pending_captures,
        },
        "files_modified": around.files,
        "recovery_info": recovery(run, around),
        "lockgate": {
            "format": FORMAT,
            "run": run.id,
            "workflow": run.workflow.name,
            "status": run.status(),
            "seq": due.seq,
            "history": { "version": run.version, "head": run.head },
            "definition": run.definition,
            "prerequisites": {
                "branch": around.branch,
                "commit": around.commit,
                "agents": around.agents,
                "environment": around.environment,
            },
            "values": values,
            "state": match state {
                SavedState::Inline(state) => json!({ "inline": state }),
                SavedState::Stored(digest) => json!({ "stored": digest }),
            },
        },
    });
    match content {
        Value::Object(content) => content,
        _ => Map::new(),
    }
}

/// The id of a snapshot, which contains the hash of its content.
pub fn id(content: &Map<String, Value>, due: &Due) -> SnapshotId {
    let phase = due.phase.as_ref().map_or_else(|| "run".to_owned(), |phase| file_safe(phase.as_str()));
    SnapshotId(format!("CP-{phase}-{}-{}", compact(due.at), content_hash(content)))
}

/// The hash of the content as canonical JSON: keys are sorted, and the id is left out.
pub fn content_hash(content: &Map<String, Value>) -> String {
    let mut text = String::new();
    canonical_object(content.iter().filter(|(key, _)| *key != "checkpoint_id"), &mut text);
    Digest::of(text.as_bytes()).to_string()[..HASH_CHARS].to_owned()
}

/// The length of the hash in an id.
pub const HASH_CHARS: usize = 16;

fn canonical_object<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>, text: &mut String) {
    let mut entries: Vec<(&String, &Value)> = entries.collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&Value::String(key.clone()).to_string());
        text.push(':');
        canonical(value, text);
    }
    text.push('}');
}

fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(entries) => canonical_object(entries.iter(), text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                canonical(item, text);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}

/// A time as part of a file name: `20250114T103000Z`.
fn compact(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or(&text);
    format!("{}Z", seconds.trim_end_matches('Z').replace(['-', ':'], ""))
}

/// A name as part of a file name: letters, digits, `_` and `-`, not too long.
fn file_safe(name: &str) -> String {
    let safe = name.chars().map(|char| if char.is_ascii_alphanumeric() || char == '_' || char == '-' { char } else { '_' });
    safe.take(60).collect()
}

/// The issue as it was when the run started; a long body is a stored value.
fn issue(run: &Run, around: &Surroundings) -> Value {
    let issue = run.issue.as_deref();
    json!({
        "title": issue.map(|issue| &issue.title),
        "body": issue.map(|issue| stored(&issue.body)),
        "labels": issue.map_or(&[][..], |issue| &issue.labels),
        "assignees": issue.map_or(&[][..], |issue| &issue.assignees),
        "branch": around.branch,
    })
}

fn stored(value: &StoredValue) -> Value {
    match value {
        StoredValue::Inline(json) => serde_json::from_str(json).unwrap_or(Value::Null),
        StoredValue::Stored { digest, .. } => json!({ "stored": digest }),
    }
}

fn team(run: &Run) -> Value {
    let member = |member: &Member| {
        json!({
            "agent": member.agent,
            "role": member.role,
            "status": member.status,
            "tasks_completed": member.completed.len(),
            "tasks_pending": member.pending.len(),
        })
    };
    let members: Vec<Value> = run.team_members().iter().map(member).collect();
    json!({ "team_id": format!("TEAM-{}", run.id), "members": members })
}

fn graph(run: &Run) -> Value {
    let Some((phase, declared)) = current(run) else {
        return json!({
            "graph_id": format!("GRAPH-{}", run.id),
            "completed_batches": [], "current_batch": null, "node_states": {},
        });
    };
    let batches = phase.batches();
    let completed = batches.completed();
    let mut nodes = Map::new();
    for (index, task) in phase.tasks.iter().enumerate() {
        let mut node = Map::new();
        node.insert("status".into(), json!(task.state.status()));
        node.insert("batch".into(), json!(batches.of_task[index]));
        if let Some(agent) = phase.declared(declared, index).and_then(agent_name) {
            node.insert("agent".into(), json!(agent));
        }
        if task.attempts > 0 {
            node.insert("attempts".into(), json!(task.attempts));
        }
        if let Some(since) = task.since {
            let key = if task.state == TaskState::Running { "started_at" } else { "completed_at" };
            if task.state == TaskState::Running || phase.task_has_ended(index) {
                node.insert(key.into(), json!(since));
            }
        }
        if let Some(failure) = task.state.failure() {
            node.insert("error".into(), json!(failure.message));
        }
        let name = match &task.item {
            Some(item) => format!("{}[{item}]", task.task),
            None => task.task.to_string(),
        };
        nodes.insert(name, Value::Object(node));
    }
    json!({
        "graph_id": format!("GRAPH-{}-{}-{}", run.id, phase.id, phase.iteration),
        "completed_batches": (1..=completed).collect::<Vec<u32>>(),
        "current_batch": (completed < batches.count()).then_some(completed + 1),
        "node_states": nodes,
    })
}

fn current(run: &Run) -> Option<(&PhaseRun, &crate::spec::workflow::Phase)> {
    let phase = run.current.as_ref()?;
    Some((phase, run.workflow.phases.get(phase.position)?))
}

fn agent_name(task: &Task) -> Option<&str> {
    task.agent().map(|work| work.agent.as_deref().unwrap_or(DEFAULT_AGENT))
}

/// The outputs of agents, by agent and task.
fn agent_outputs(run: &Run) -> Value {
    let mut agents: Map<String, Value> = Map::new();
    for phase in &run.workflow.phases {
        let results = run.outputs.get(phase.id.as_str());
        for task in &phase.tasks {
            let Some(agent) = agent_name(task) else { continue };
            let file = run.deliverables.iter().rfind(|known| known.key.phase == phase.id && known.key.task == task.id);
            let result = results.and_then(|results| results.get(task.id.as_str()));
            let ended = current(run).filter(|(current, _)| current.id == phase.id).and_then(|(current, _)| {
                let known = current.tasks.iter().find(|known| known.task == task.id && known.item.is_none())?;
                (known.state == TaskState::Done).then_some(known.since?)
            });
            if file.is_none() && result.is_none() && ended.is_none() {
                continue;
            }
            let output = json!({
                "completed_at": file.map(|known| known.at).or(ended),
                "output_summary": result.and_then(summary),
                "output_location": file.map(|known| location(run, &known.file)),
            });
            let tasks = agents.entry(agent).or_insert_with(|| json!({}));
            if let Value::Object(tasks) = tasks {
                tasks.insert(task.id.to_string(), output);
            }
        }
    }
    Value::Object(agents)
}

fn location(run: &Run, file: &OutputFile) -> String {
    format!("{}/{}", run.output_dir, file.path)
}

/// The beginning of an agent's answer.
fn summary(result: &StoredValue) -> Option<String> {
    let text = match result {
        StoredValue::Inline(json) => match serde_json::from_str(json) {
            Ok(Value::String(text)) => text,
            Ok(_) | Err(_) => json.clone(),
        },
        StoredValue::Stored { bytes, .. } => return Some(format!("{bytes} bytes of JSON")),
    };
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let mut short: String = line.chars().take(SUMMARY_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    Some(short)
}

fn recovery(run: &Run, around: &Surroundings) -> Value {
    let can_resume = match run.status() {
        Status::Running | Status::Waiting | Status::Failed => true,
        Status::Complete | Status::Aborted | Status::Cancelled => false,
    };
    let mut warnings = around.warnings.clone();
    warnings.extend(run.warnings.iter().cloned());
    json!({
        "can_resume": can_resume,
        "resume_from": can_resume.then(|| resume_point(run)),
        "prerequisites_met": around.warnings.is_empty(),
        "warnings": warnings,
    })
}

/// Where the run continues: the first task of its first batch that has not ended.
fn resume_point(run: &Run) -> String {
    if let Some(hold) = run.open_holds().into_iter().find(|hold| hold.blocking) {
        return format!("hold_{}", hold.id);
    }
    let Some((phase, _)) = current(run) else {
        return run.workflow.phases.get(run.position).map_or("end".to_owned(), |phase| format!("phase_{}", phase.id));
    };
    let batches = phase.batches();
    let next = batches.completed() + 1;
    let of_batch = (0..phase.tasks.len()).filter(|index| batches.of_task[*index] == next);
    match of_batch.into_iter().position(|index| !phase.task_has_ended(index)) {
        Some(number) => format!("batch_{next}_task_{}", number + 1),
        None => format!("end_of_phase_{}", phase.id),
    }
}

/// The entry of a snapshot in the index of its directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    pub checkpoint_id: SnapshotId,
    pub created_at: Timestamp,
    pub trigger: Trigger,
    #[serde(default)]
    pub phase: Option<String>,
    pub can_resume: bool,
    /// The number of the last event that the snapshot includes.
    #[serde(default)]
    pub seq: u64,
    /// The size of the file.
    #[serde(default)]
    pub bytes: u64,
    /// The run, if Lockgate wrote the snapshot. Runs about the same issue may share a directory.
    #[serde(default)]
    pub run: Option<RunId>,
}
