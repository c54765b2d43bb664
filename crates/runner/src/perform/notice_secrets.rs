//! Withholds a run's secrets from the command that delivers its notices.

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
        let shared = self.0.clone();
        let variables = secrets::variables(&run.workflow, &shared.config);
        // Events were already masked by the process that drives the run. A process that only answers learns the secrets in
        // its environment; it does not run the commands that produce secrets, because they may prompt the person.
        let in_environment = shared.secrets.unknown(run, &shared.config).map(secrets::Unknown::in_environment);
        async move {
            if let Some(unknown) = in_environment {
                shared.secrets.find_some(&unknown, shared.root.dir()).await;
            }
            (variables, shared.masks())
        }
        .boxed()
    }
}
