//! The secrets of the runs that this process performs effects for, known before anything of theirs is written or shown.

use crate::config::DATABASE_VARIABLE;
use crate::secret::{Masks, Secret};
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::spec::workflow::{SecretSource, Workflow};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// What this process knows of secrets.
#[derive(Default)]
pub(super) struct Known {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    values: BTreeMap<String, Secret>,
    /// Definitions whose every secret has been looked for.
    looked_for: BTreeSet<Digest>,
    masks: Masks,
}

/// Secrets to be looked for, and the definition that lists them.
pub(super) struct Unknown {
    definition: Digest,
    secrets: Vec<(String, Option<SecretSource>)>,
}

impl Known {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The secrets of a run's workflow, unless they were looked for before.
    pub(super) fn unknown(&self, run: &Run) -> Option<Unknown> {
        if self.inner().looked_for.contains(&run.definition) {
            return None;
        }
        let secrets = listed(&run.workflow).into_iter();
        let secrets = secrets.map(|name| (name.clone(), run.workflow.secrets.get(&name).cloned())).collect();
        Some(Unknown { definition: run.definition, secrets })
    }

    /// Looks for secrets. One that cannot be found is told by the task that lists it; it cannot be in anything that this process writes.
    pub(super) async fn find(&self, unknown: Unknown, dir: &Path) {
        for (name, source) in &unknown.secrets {
            if let Ok(secret) = Secret::resolve(name, source.as_ref(), dir).await {
                self.add(secret);
            }
        }
        self.inner().looked_for.insert(unknown.definition);
    }

    /// Takes in a secret that was resolved for a task.
    pub(super) fn add(&self, secret: Secret) {
        let mut inner = self.inner();
        let known = inner.values.get(&secret.name).is_some_and(|known| known.value == secret.value);
        if !known {
            inner.values.insert(secret.name.clone(), secret);
            inner.masks = Masks::new(inner.values.values());
        }
    }

    /// Masks for every secret that is known.
    pub(super) fn masks(&self) -> Masks {
        self.inner().masks.clone()
    }
}

/// The names of all secrets that tasks and gates of a workflow list.
fn listed(workflow: &Workflow) -> BTreeSet<String> {
    let tasks = workflow.phases.iter().flat_map(|phase| &phase.tasks).flat_map(|task| &task.secrets);
    let gates = workflow.phases.iter().flat_map(|phase| &phase.gates).flat_map(|gate| &gate.secrets);
    tasks.chain(gates).chain(workflow.secrets.keys()).cloned().collect()
}

/// The environment variables that hold a secret of a workflow: no task inherits them, those that list a secret are given it.
pub(super) fn variables(workflow: &Workflow) -> Vec<String> {
    let declared = workflow.secrets.values().filter_map(|source| match source {
        SecretSource::Env(variable) => Some(variable.clone()),
        SecretSource::Command(_) => None,
    });
    declared.chain(listed(workflow)).chain([DATABASE_VARIABLE.to_owned()]).collect()
}
