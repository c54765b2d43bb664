//! Where no run gets so far that anything is performed.

use futures::future::BoxFuture;
use lockgate_engine::run::Run;
use lockgate_engine::run::effect::Effect;
use lockgate_runner::world::{OrphanError, Perform, Performed, Stop};

/// Begins nothing, and writes nothing by itself.
pub(crate) struct Nobody;

impl Perform for Nobody {
    fn begin(&self, _: &Run, effect: &Effect, _: Stop) -> BoxFuture<'static, Performed> {
        panic!("{effect:?} was begun")
    }

    fn end_orphans(&self, _: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        Box::pin(async { Ok(()) })
    }
}
