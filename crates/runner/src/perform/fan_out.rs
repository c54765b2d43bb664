//! Tasks that fan out, are conditional, or loop.

use super::commit::{Commit, Started};
use super::dir_lock::{self, DirLock};
use super::script::{self, EvalError, EvalOptions, evaluate, keep_log, masked, prepare};
use super::values::{FillError, Renderer, TaskValues};
use super::{Shared, TaskCall, command, failed, shell, worktree};
use crate::files::{LinesError, read_lines};
use crate::process::Stop;
use crate::root::Step;
use crate::runtime::Performed;
use crate::secret::Masks;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::TaskKey;
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::command::{CommandKind, Item, TaskOutcome};
use lockgate_engine::run::event::{ConditionOutcome, Failure, FailureKind, Requester};
use lockgate_engine::spec::subagent::Subagent;
use lockgate_engine::spec::workflow::{ForEach, ItemSource, Script, Until as Declared, UntilCondition};
use lockgate_engine::stored_value::StoredValue;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

const MAX_ITEMS: usize = 100_000;

/// The longest key of an item, in characters.
const LONGEST_KEY: usize = 80;

/// Evaluates a task's `when`.
pub(super) fn when(shared: Arc<Shared>, run: &Run, key: &TaskKey, stop: Stop) -> BoxFuture<'static, Performed> {
    let found = run.workflow.phase(key.phase.as_str()).zip(run.declared(key)).zip(run.task_run(key));
    let condition = found.and_then(|((phase, task), state)| Some((phase, task.when.as_ref()?, state)));
    let key = key.clone();
    let Some((phase, condition, state)) = condition else {
        let outcome = ConditionOutcome::Error("the definition has no such condition".into());
        return futures::future::ready(CommandKind::WhenEvaluated { key, outcome }.into()).boxed();
    };
    let task = TaskValues {
        id: Some((key.task.as_str(), state.attempts + 1)),
        item: key.item.as_deref().zip(state.value.as_ref()),
        ..TaskValues::default()
    };
    let prepared = prepare(&shared, run, phase, condition, EvalOptions::condition(&shared, true, task));
    async move {
        let outcome = script::truth(&shared, evaluate(&shared, prepared, &stop).await);
        CommandKind::WhenEvaluated { key, outcome }.into()
    }
    .boxed()
}

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

/// The outcome of an evaluation without a result: it queries an agent, or it has failed.
pub(super) fn eval_failed(shared: &Shared, eval_error: EvalError) -> script::Outcome {
    match &eval_error.wants {
        Some(prompt) => {
            let prompt = shared.masks().mask_text(prompt).into_owned();
            let (stored_value, stored) = StoredValue::keep(&Value::String(prompt));
            (TaskOutcome::QueriesAgent(stored_value), stored.into_iter().collect())
        }
        None => (TaskOutcome::Failed(masked(shared, &eval_error)), Vec::new()),
    }
}

/// Ends an attempt: evaluates `until` after its work succeeded.
pub(super) struct Ending {
    shared: Arc<Shared>,
    key: TaskKey,
    attempt: u32,
    until: Option<Until>,
    commit: Option<Commit>,
    turn: Option<dir_lock::Wanted>,
    resources: AttemptResources,
    stop: Stop,
}

/// What an attempt holds while it works.
#[derive(Default)]
struct AttemptResources {
    commit: Option<Started>,
    /// Dropped last.
    turn: Option<DirLock>,
}

enum Until {
    Condition(Box<script::Prepared>),
    Run(Box<UntilCommand>),
}

struct UntilCommand {
    prepared: command::Prepared,
    renderer: Renderer,
    command: String,
    until: Declared,
    tree: Option<worktree::Wanted>,
}

impl Ending {
    pub(super) fn new(shared: Arc<Shared>, run: &Run, call: TaskCall<'_>, stop: Stop) -> Self {
        let until = call.task.until.as_ref().map(|until| match &until.holds {
            UntilCondition::Condition(script) => {
                let options = EvalOptions::condition(&shared, true, call.values());
                Until::Condition(Box::new(prepare(&shared, run, call.phase, script, options)))
            }
            UntilCondition::Run(command) => {
                let process_spec = command::ProcessSpec { timeout: until.timeout.or(call.task.timeout), ..call.process_spec() };
                let mut prepared = command::prepare(&shared, run, call.phase, process_spec);
                prepared.at.address += "-until";
                let renderer = command::renderer(run, call.phase, &prepared, call.values(), &[command]);
                let tree = worktree::wanted(run, call.key, call.task);
                Until::Run(Box::new(UntilCommand { prepared, renderer, command: command.clone(), until: until.clone(), tree }))
            }
        });
        let tree = worktree::wanted(run, call.key, call.task);
        let turn = dir_lock::Wanted::of_task(run, call.phase, call.task, call.key.address(), tree.as_ref());
        let (commit, resources) = (Commit::of(run, call), AttemptResources::default());
        Self { shared, key: call.key.clone(), attempt: call.attempt, until, commit, turn, resources, stop }
    }

    /// Waits for exclusive use of its directory, and records the state of the files before the work starts.
    pub(super) async fn start(&mut self) -> Result<(), Failure> {
        if self.shared.stubs.is_some() {
            return Ok(());
        }
        if let Some(turn) = self.turn.take() {
            self.resources.turn = Some(turn.take(&self.shared, &self.stop).await?);
        }
        if let Some(commit) = self.commit.take() {
            self.resources.commit = Some(commit.start(&self.shared, &self.stop).await?);
        }
        Ok(())
    }

    /// Reports the outcome of the attempt.
    pub(super) async fn end(
        self,
        outcome: TaskOutcome,
        values: Vec<(Digest, Vec<u8>)>,
        agent: Option<Box<AgentReport>>,
    ) -> Performed {
        let Self { shared, key, attempt, until, resources, stop, .. } = self;
        let outcome = match (outcome, until) {
            (TaskOutcome::Finished { result, outputs }, Some(until)) => {
                match holds(&shared, until, result.as_ref(), &values, &stop).await {
                    Ok(Verdict::Met) => TaskOutcome::Finished { result, outputs },
                    Ok(Verdict::Not { why, failed_check }) => TaskOutcome::Again { result, outputs, why, failed_check },
                    Err(why) => failed(FailureKind::Condition, format!("its `until` could not be evaluated: {why}")),
                }
            }
            (outcome, _) => outcome,
        };
        let (outcome, commit) = match (outcome, resources.commit) {
            (outcome @ TaskOutcome::Finished { .. }, Some(commit)) => match commit.complete().await {
                Ok(made) => (outcome, made),
                Err(failure) => (TaskOutcome::Failed(failure), None),
            },
            (outcome, Some(commit)) => {
                commit.leave().await;
                (outcome, None)
            }
            (outcome, None) => (outcome, None),
        };
        drop(resources.turn);
        Performed { command: CommandKind::TaskEnded { key, attempt, outcome, agent, commit }, values }
    }
}

/// Whether the `until` condition is met and, if a command checked it, what is still wrong.
enum Verdict {
    Met,
    Not {
        why: String,
        /// The index of the check that failed, if there are several.
        failed_check: Option<usize>,
    },
}

#[derive(Debug, thiserror::Error)]
enum UntilError {
    #[error("{}", .0.message)]
    Failed(Failure),
    #[error(transparent)]
    Fill(#[from] FillError),
}

/// Evaluates an `until` condition.
async fn holds(
    shared: &Shared,
    until: Until,
    result: Option<&StoredValue>,
    values: &[(Digest, Vec<u8>)],
    stop: &Stop,
) -> Result<Verdict, UntilError> {
    match until {
        Until::Condition(prepared) => {
            let output = match result {
                None => "null".to_owned(),
                Some(StoredValue::Inline(text)) => text.clone(),
                Some(StoredValue::Stored { digest, .. }) => {
                    // The value is about to be stored together with this outcome.
                    let bytes = values.iter().find(|(known, _)| known == digest).map(|(_, bytes)| bytes.clone());
                    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_else(|_| "null".to_owned())
                }
            };
            let returned = evaluate(shared, prepared.with("output", output), stop).await;
            let verdict =
                |truthy: bool| if truthy { Verdict::Met } else { Verdict::Not { why: String::new(), failed_check: None } };
            returned
                .map(|returned| verdict(returned.truthy))
                .map_err(|eval_error| UntilError::Failed(masked(shared, &eval_error)))
        }
        Until::Run(run) => {
            let UntilCommand { mut prepared, renderer, command, until, tree } = *run;
            worktree::enter(shared, &mut prepared, tree, stop).await.map_err(UntilError::Failed)?;
            let ready = renderer.ready(shared).await?;
            match shell::execute(shared, &prepared, &ready, &command, stop).await {
                Ok(()) => Ok(Verdict::Met),
                Err(failure) => match failure.kind {
                    FailureKind::Exit(status) => {
                        Ok(Verdict::Not { why: check_feedback(&until, &failure), failed_check: until.failed_check(status) })
                    }
                    // The timeout belongs to the check, not to the task.
                    FailureKind::Timeout if until.timeout.is_some() => {
                        Ok(Verdict::Not { why: check_feedback(&until, &failure), failed_check: None })
                    }
                    _ => Err(UntilError::Failed(failure)),
                },
            }
        }
    }
}

/// Why a check failed, as feedback for the next attempt.
fn check_feedback(until: &Declared, failure: &Failure) -> String {
    let check = match until.checks.as_slice() {
        [one] => format!("{one}: "),
        [] | [_, ..] => String::new(),
    };
    format!("A check after it failed: {check}{}\n{}", failure.message, failure.tail).trim_end().to_owned()
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
