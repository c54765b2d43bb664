//! The secrets that a process knows that does not drive the run: those in its environment. They are withheld from the command that
//! delivers notices, and masked in what a task says with `lockgate message`.

use super::{Shared, secrets};
use crate::outbox::command::Withhold;
use crate::secret::Masks;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::run::Run;
use std::sync::Arc;

pub(super) struct Secrets(pub(super) Arc<Shared>);

impl Withhold for Secrets {
    fn withhold(&self, run: &Run) -> BoxFuture<'static, (Vec<String>, Arc<Masks>)> {
        let variables = secrets::variables(&run.workflow, &self.0.config);
        known_masks(&self.0, run).map(|masks| (variables, masks)).boxed()
    }
}

/// Masks for the secrets in the environment. Events were already masked by the process that drives the run. This process does not
/// run the commands that produce secrets, because they may prompt the person.
pub(super) fn known_masks(shared: &Arc<Shared>, run: &Run) -> BoxFuture<'static, Arc<Masks>> {
    let shared = shared.clone();
    let in_environment = shared.secrets.unknown(run, &shared.config).map(secrets::Unknown::in_environment);
    async move {
        if let Some(unknown) = in_environment {
            shared.secrets.find_some(&unknown, shared.root.dir()).await;
        }
        shared.masks()
    }
    .boxed()
}
