//! Stored values for effects, and the values that templates see.

use super::Shared;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::run::context::Context;
use lockgate_engine::spec::workflow::{Phase, Reads};
use lockgate_engine::stored_value::StoredValue;
use lockgate_engine::template::{Escape, TemplateError, mustache, render};
use lockgate_store::StoreError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Why a value cannot be loaded, or a template cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub(super) enum FillError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the stored value {0} is missing")]
    Missing(Digest),
    #[error("the stored value {0} is not text")]
    NotText(Digest),
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// A cache of recently used JSON texts, so that each is read only once.
#[derive(Default)]
pub(super) struct Cache {
    texts: Mutex<BTreeMap<Digest, Arc<str>>>,
}

const CACHE_BYTES: usize = 64 * 1024 * 1024;

impl Shared {
    pub(super) async fn stored_text(&self, digest: Digest) -> Result<Arc<str>, FillError> {
        if let Some(text) = self.cache.texts.lock().expect("no code panics while holding this lock").get(&digest) {
            return Ok(text.clone());
        }
        let found = self.store.values(&[digest]).await?;
        let bytes = found.into_iter().next().flatten().ok_or(FillError::Missing(digest))?;
        let text: Arc<str> = String::from_utf8(bytes).map_err(|_| FillError::NotText(digest))?.into();
        let mut texts = self.cache.texts.lock().expect("no code panics while holding this lock");
        if texts.values().map(|text| text.len()).sum::<usize>() + text.len() > CACHE_BYTES {
            texts.clear();
        }
        texts.insert(digest, text.clone());
        Ok(text)
    }
}

impl Shared {
    /// Loads and parses a value.
    pub(super) async fn value(&self, stored_value: &StoredValue) -> Result<Value, FillError> {
        let parsed = match stored_value {
            StoredValue::Inline(text) => serde_json::from_str(text),
            StoredValue::Stored { digest, .. } => serde_json::from_str(&self.stored_text(*digest).await?),
        };
        Ok(parsed?)
    }
}

/// Overrides the run's `vars` with those of a phase.
pub(super) fn overlay(context: &mut Context, vars: &BTreeMap<String, Value>) {
    let Some(Value::Object(known)) = context.value.get_mut("vars") else { return };
    for (name, value) in vars {
        known.insert(name.clone(), value.clone());
        context.stored.retain(|(path, _)| *path != ["vars", name.as_str()]);
    }
}

/// What templates and scripts see of their task.
#[derive(Clone, Copy, Default)]
pub(super) struct TaskValues<'a> {
    pub(super) id: Option<(&'a str, u32)>,
    /// Its display name.
    pub(super) name: Option<&'a str>,
    /// The item of a fanned-out task.
    pub(super) item: Option<(&'a str, &'a StoredValue)>,
    /// The result of the previous round, and the number of this round, counted from 1.
    pub(super) round: Option<(Option<&'a StoredValue>, u32)>,
    /// The configuration of a subagent.
    pub(super) config: Option<&'a BTreeMap<String, Value>>,
    /// The path for its agent's output.
    pub(super) output_path: Option<&'a str>,
    /// Feedback from a person on the last attempt.
    pub(super) feedback: Option<&'a str>,
}

/// The template values of a run, with stored values still to be loaded.
pub(super) struct TemplateValues {
    context: Context,
    rest: Vec<(&'static str, Value)>,
    item: Option<StoredValue>,
    previous: Option<StoredValue>,
}

impl TemplateValues {
    /// The values for templates of a phase; `output_dir` is used as given.
    fn of(run: &Run, phase: &Phase, output_dir: &Path, task: TaskValues<'_>) -> Self {
        let mut of_task = task.id.map_or(Value::Null, |(id, attempt)| json!({"id": id, "attempt": attempt}));
        if let Some(name) = task.name {
            of_task["name"] = json!(name);
        }
        if let Some(feedback) = task.feedback {
            of_task["feedback"] = json!(feedback);
        }
        if let Some((key, _)) = task.item {
            of_task["item"] = json!(key);
        }
        if let Some((_, round)) = task.round {
            of_task["round"] = json!(round);
            of_task["previous"] = Value::Null;
        }
        let mut rest = vec![
            ("task", of_task),
            ("output_dir", json!(output_dir.to_string_lossy())),
            ("phase", run.phase_view(phase)),
            ("workflow", run.workflow_view()),
            ("run", json!(run.id)),
            ("flags", json!(run.flags)),
        ];
        rest.extend(task.config.map(|config| ("config", json!(config))));
        rest.extend(task.output_path.map(|path| ("output_path", json!(path))));
        let previous = task.round.and_then(|(previous, _)| previous.cloned());
        let item = task.item.map(|(_, value)| value.clone());
        let mut context = run.context(&Reads::All);
        overlay(&mut context, &phase.vars);
        Self { context, rest, item, previous }
    }

    /// Loads stored values. The result has `context`, and the parts of the context at the top level too.
    pub(super) async fn fill(self, shared: &Shared) -> Result<Value, FillError> {
        let mut context = Value::Object(self.context.value);
        for (path, digest) in self.context.stored {
            let text = shared.stored_text(digest).await?;
            let mut place = &mut context;
            for key in &path {
                place = &mut place[key.as_str()];
            }
            *place = serde_json::from_str(&text)?;
        }
        // Documents refer to parts of the context directly; `workflow` and `phase` have more fields than the parts of that
        // name.
        let mut values = context.clone();
        values["context"] = context;
        for (name, value) in self.rest {
            values[name] = value;
        }
        if let Some(item) = self.item {
            values["item"] = shared.value(&item).await?;
        }
        if let Some(previous) = self.previous {
            values["task"]["previous"] = shared.value(&previous).await?;
        }
        Ok(values)
    }
}

/// Renders the templates of one effect. Values are collected only if a template needs any.
pub(super) struct Renderer {
    values: Option<TemplateValues>,
}

/// A renderer with all values loaded.
pub(super) struct Ready {
    values: Value,
}

impl Renderer {
    /// For templates of a phase, and of one of its tasks or gates.
    pub(super) fn of<'a>(
        run: &Run,
        phase: &Phase,
        output_dir: &Path,
        task: TaskValues<'_>,
        templates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let asks = templates.into_iter().any(|template| template.contains("{{"));
        Self { values: asks.then(|| TemplateValues::of(run, phase, output_dir, task)) }
    }

    pub(super) async fn ready(self, shared: &Shared) -> Result<Ready, FillError> {
        let values = match self.values {
            Some(values) => values.fill(shared).await?,
            None => Value::Null,
        };
        Ok(Ready { values })
    }
}

impl Ready {
    pub(super) fn text(&self, template: &str) -> Result<String, TemplateError> {
        render(template, &self.values, Escape::None)
    }

    /// Renders a whole document, in which missing values are allowed.
    pub(super) fn document(&self, template: &str) -> Result<String, TemplateError> {
        mustache::render_document(template, &self.values)
    }

    /// Renders a shell command, with each value quoted as one word.
    pub(super) fn shell(&self, template: &str) -> Result<String, TemplateError> {
        render(template, &self.values, Escape::Shell)
    }

    pub(super) fn texts(&self, templates: &[String]) -> Result<Vec<String>, TemplateError> {
        templates.iter().map(|template| self.text(template)).collect()
    }
}
