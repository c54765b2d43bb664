//! The secrets of the runs that this process performs effects for, resolved before anything of theirs is written or shown.

use crate::config::{Config, DATABASE_VARIABLE};
use crate::secret::{Masks, Secret};
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::spec::workflow::{SecretSource, Workflow};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Default)]
pub(super) struct Known {
    inner: Mutex<Inner>,
    masks: Arc<Masks>,
}

#[derive(Default)]
struct Inner {
    /// Definitions whose secrets have all been resolved.
    looked_for: BTreeSet<Digest>,
}

/// Secrets to be resolved, and the definition that lists them.
pub(super) struct Unknown {
    definition: Digest,
    secrets: Vec<(String, Option<SecretSource>)>,
}

impl Unknown {
    /// Those that come from environment variables, and those that a task received in the variable of their name.
    pub(super) fn in_environment(self) -> Self {
        let Self { definition, secrets } = self;
        let received: Vec<_> = secrets.iter().map(|(name, _)| (name.clone(), None)).collect();
        let from_environment = secrets.into_iter().filter(|(_, source)| match source {
            None | Some(SecretSource::Env(_)) => true,
            Some(SecretSource::Command(_)) => false,
        });
        Self { definition, secrets: from_environment.chain(received).collect() }
    }
}

impl Known {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The secrets of a run's workflow, unless they were already resolved.
    pub(super) fn unknown(&self, run: &Run, config: &Config) -> Option<Unknown> {
        if self.inner().looked_for.contains(&run.definition) {
            return None;
        }
        let secrets = listed(&run.workflow, config).into_iter();
        let secrets = secrets.map(|name| (name.clone(), run.workflow.secrets.get(&name).cloned())).collect();
        Some(Unknown { definition: run.definition, secrets })
    }

    /// Resolves secrets. The task that lists one reports if it cannot be found; it cannot appear in anything that this
    /// process writes.
    pub(super) async fn find(&self, unknown: Unknown, dir: &Path) {
        self.find_some(&unknown, dir).await;
        self.inner().looked_for.insert(unknown.definition);
    }

    /// Resolves some secrets of a definition; the others stay unresolved.
    pub(super) async fn find_some(&self, unknown: &Unknown, dir: &Path) {
        for (name, source) in &unknown.secrets {
            if let Ok(secret) = Secret::resolve(name, source.as_ref(), dir).await {
                self.add(secret);
            }
        }
    }

    /// Adds a secret that was resolved for a task. Its earlier values stay masked, because they may already have been written
    /// anywhere.
    pub(super) fn add(&self, secret: Secret) {
        self.masks.add([&secret]);
    }

    /// Masks for every secret that is or becomes known.
    pub(super) fn masks(&self) -> Arc<Masks> {
        self.masks.clone()
    }
}

/// The names of all secrets that a workflow lists for tasks, gates or agents, or the settings for agents.
fn listed(workflow: &Workflow, config: &Config) -> BTreeSet<String> {
    let tasks = workflow.phases.iter().flat_map(|phase| &phase.tasks).flat_map(|task| &task.secrets);
    let gates = workflow.phases.iter().flat_map(|phase| &phase.gates).flat_map(|gate| &gate.secrets);
    let agents = workflow.agents.values().chain(config.agents.values()).flat_map(|agent| &agent.secrets);
    tasks.chain(gates).chain(agents).chain(workflow.secrets.keys()).cloned().collect()
}

/// The environment variables from which the secrets of a workflow are read.
pub(super) fn required_variables(workflow: &Workflow, config: &Config) -> Vec<String> {
    let variable = |name: String| match workflow.secrets.get(&name) {
        None => Some(name),
        Some(SecretSource::Env(variable)) => Some(variable.clone()),
        Some(SecretSource::Command(_)) => None,
    };
    listed(workflow, config).into_iter().filter_map(variable).collect()
}

/// The environment variables that hold secrets of a workflow. No task inherits them; a task that lists a secret receives it
/// explicitly.
pub(super) fn variables(workflow: &Workflow, config: &Config) -> Vec<String> {
    let declared = workflow.secrets.values().filter_map(|source| match source {
        SecretSource::Env(variable) => Some(variable.clone()),
        SecretSource::Command(_) => None,
    });
    declared.chain(listed(workflow, config)).chain([DATABASE_VARIABLE.to_owned()]).collect()
}
