//! Fan-out: the items of a list (`for_each`), and the agents of an adaptive script.

use super::script::{self, EvalError, EvalOptions, eval_failed, evaluate, keep_log, prepare};
use super::values::Renderer;
use super::{Shared, TaskCall, failed};
use crate::files::{LinesError, read_lines};
use crate::process::Stop;
use crate::root::Step;
use crate::runtime::Performed;
use crate::secret::Masks;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{CommandKind, Item, TaskOutcome};
use lockgate_engine::run::event::{FailureKind, Requester};
use lockgate_engine::spec::subagent::Subagent;
use lockgate_engine::spec::workflow::{ForEach, ItemSource, Script};
use lockgate_engine::stored_value::StoredValue;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

const MAX_ITEMS: usize = 100_000;

/// The longest key of an item, in characters.
const LONGEST_KEY: usize = 80;

/// Finds the items that a task fans out over.
pub(super) fn items(
    shared: Arc<Shared>,
    run: &Run,
    call: TaskCall<'_>,
    list: &ForEach,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let source = match &list.over {
        ItemSource::List(items) => Source::Values(Value::Array(items.clone())),
        ItemSource::Var(name) => match call.phase.vars.get(name) {
            Some(value) => Source::Values(value.clone()),
            None => Source::Var(name.clone(), run.vars.get(name).cloned()),
        },
        ItemSource::Script(script) => {
            let requester = Requester::Task(call.key.clone());
            let options = EvalOptions::script(&shared, Some(&requester), call.values());
            Source::Script(Box::new(prepare(&shared, run, call.phase, script, options)))
        }
        ItemSource::Lines(path) => {
            let run_dirs = shared.run_dirs(run);
            let renderer = Renderer::of(run, call.phase, std::path::Path::new(&run.output_dir), call.values(), [path.as_str()]);
            Source::Lines(Box::new((run_dirs, renderer, path.clone())))
        }
    };
    let (key, attempt) = (call.key.clone(), call.attempt);
    async move {
        let (outcome, values) = match source.list(&shared, &stop).await {
            Ok(list) => fan_out_over(&masked_list(&list, &shared.masks())),
            Err(eval_error) => eval_failed(&shared, eval_error),
        };
        Performed { command: CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }, values }
    }
    .boxed()
}

/// The source of a list, captured when its task starts.
enum Source {
    Values(Value),
    Var(String, Option<StoredValue>),
    Script(Box<script::Prepared>),
    Lines(Box<(crate::files::RunDirs, Renderer, String)>),
}

fn start(message: impl std::fmt::Display) -> EvalError {
    EvalError::new(FailureKind::Start, message)
}

impl Source {
    async fn list(self, shared: &Shared, stop: &Stop) -> Result<Value, EvalError> {
        match self {
            Self::Values(list) => Ok(list),
            Self::Var(name, None) => Err(start(format!("there is no list `{name}` in `vars`; set it with --var {name}='[…]'"))),
            Self::Var(_, Some(stored_value)) => shared.value(&stored_value).await.map_err(start),
            Self::Script(prepared) => {
                let returned = evaluate(shared, *prepared, stop).await?;
                serde_json::from_str(&returned.json).map_err(start)
            }
            Self::Lines(lines) => {
                let (run_dirs, renderer, path) = *lines;
                let path = renderer.ready(shared).await.and_then(|ready| Ok(ready.text(&path)?)).map_err(start)?;
                let lines = read_lines(&run_dirs, &path).map_err(|error| match error {
                    LinesError::Absent => start(format!("there is no file {path:?} to read lines from")),
                    why @ (LinesError::Unreadable(_) | LinesError::TooLarge | LinesError::NotText) => {
                        start(format!("{path:?} cannot be read: {why}"))
                    }
                })?;
                Ok(lines.into_iter().map(Value::String).collect())
            }
        }
    }
}

/// Items become parts of addresses, branch names and worktree paths, so they must not contain secrets.
fn masked_list(list: &Value, masks: &Masks) -> Value {
    let text = list.to_string();
    serde_json::from_str(&script::mask_json(&text, masks)).unwrap_or(Value::Null)
}

fn fan_out_over(list: &Value) -> script::Outcome {
    let Value::Array(list) = list else {
        return (failed(FailureKind::Start, format!("`for_each` needs a list, but got: {}", shortened(list))), Vec::new());
    };
    if list.len() > MAX_ITEMS {
        return (
            failed(FailureKind::Start, format!("`for_each` has {} items, but the limit is {MAX_ITEMS}", list.len())),
            Vec::new(),
        );
    }
    let mut taken = BTreeSet::new();
    let mut values: Vec<(Digest, Vec<u8>)> = Vec::new();
    let mut items = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let (stored_value, stored) = StoredValue::keep(value);
        values.extend(stored);
        items.push(Item { key: free_key(value, index, &mut taken), value: stored_value });
    }
    (TaskOutcome::Items(items), values)
}

/// A unique key for an item: its own text, or its id, key or name. The same list always gives the same keys.
fn free_key(value: &Value, index: usize, taken: &mut BTreeSet<String>) -> String {
    let own = match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Object(fields) => ["id", "key", "name"].iter().find_map(|name| match fields.get(*name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
        }),
        Value::Null | Value::Array(_) => None,
    };
    let own = own.unwrap_or_else(|| (index + 1).to_string());
    let plain: String =
        own.trim().chars().map(|c| if c.is_control() || matches!(c, '[' | ']') { '_' } else { c }).take(LONGEST_KEY).collect();
    let plain = if plain.is_empty() { (index + 1).to_string() } else { plain };
    let mut numbered = (2..).map(|number| format!("{plain}#{number}"));
    let key = if taken.contains(&plain) { numbered.find(|key| !taken.contains(key)).unwrap_or_default() } else { plain };
    taken.insert(key.clone());
    key
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Runs an adaptive script that returns the agents to start.
pub(super) fn agents(
    shared: Arc<Shared>,
    run: &Run,
    call: TaskCall<'_>,
    source: &Script,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let requester = Requester::Task(call.key.clone());
    let prepared = prepare(&shared, run, call.phase, source, EvalOptions::script(&shared, Some(&requester), call.values()));
    let log = shared.root.log_file(&run.id, Step::Task(call.key), call.attempt);
    let (key, attempt, run_dirs) = (call.key.clone(), call.attempt, shared.run_dirs(run));
    let run = run.id.clone();
    async move {
        let (_, evaluated) = script::stubbed_or_evaluated(&shared, prepared, &key, attempt, &run_dirs, &stop).await;
        let (outcome, values) = match evaluated {
            Ok(returned) => {
                keep_log(&shared, &run, &key, &returned.log, &log);
                let json = script::mask_json(&returned.json, &shared.masks());
                let value = serde_json::from_str(&json).unwrap_or(Value::Null);
                match Subagent::list(&value) {
                    Ok(agents) => (TaskOutcome::Agents(agents), Vec::new()),
                    Err(why) => (failed(FailureKind::Script, why), Vec::new()),
                }
            }
            Err(eval_error) => {
                keep_log(&shared, &run, &key, &eval_error.log, &log);
                eval_failed(&shared, eval_error)
            }
        };
        Performed { command: CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }, values }
    }
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn item_keys_are_derived_from_item_values() {
        let list = json!(["a", "a", {"id": "x", "v": 1}, {"v": 2}, 7, "", "b]\n"]);
        let (TaskOutcome::Items(items), _) = fan_out_over(&list) else { panic!("no items") };
        let keys: Vec<&str> = items.iter().map(|item| item.key.as_str()).collect();
        assert_eq!(keys, ["a", "a#2", "x", "4", "7", "6", "b_"]);
        assert!(matches!(fan_out_over(&json!("a")).0, TaskOutcome::Failed(_)));
    }
}
