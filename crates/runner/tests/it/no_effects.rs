//! For tests in which no effect is ever performed.

use futures::future::BoxFuture;
use lockgate_engine::run::Run;
use lockgate_engine::run::effect::Effect;
use lockgate_runner::runtime::{OrphanError, Perform, Performed, Stop};

/// Performs no effects and writes no files.
pub(crate) struct NoEffects;

impl Perform for NoEffects {
    fn start(&self, _: &Run, effect: &Effect, _: Stop) -> BoxFuture<'static, Performed> {
        panic!("{effect:?} was started")
    }

    fn end_orphans(&self, _: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        Box::pin(async { Ok(()) })
    }
}
