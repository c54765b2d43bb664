//! What accompanies a command: who gives it, when, and a seed.

use crate::runtime::Runtime;
use lockgate_engine::id::{CommandId, IdSource};
use lockgate_engine::run::command::{Caller, Command, CommandKind, Envelope};

/// A command from the driver itself: the outcome of an effect, or a step of the loop.
pub(super) fn own_command(runtime: &Runtime, kind: CommandKind) -> Command {
    Command { envelope: envelope(runtime, Caller::driver()), kind }
}

fn envelope(runtime: &Runtime, caller: Caller) -> Envelope {
    Envelope { id: None, caller, at: runtime.clock.now(), seed: runtime.clock.seed(), driving: true }
}

/// The envelope of a caller's command, with its own id.
pub(super) fn caller_envelope(runtime: &Runtime, caller: Caller) -> Envelope {
    let id = CommandId::new(IdSource::new(runtime.clock.seed()).next_id());
    Envelope { id: Some(id), ..envelope(runtime, caller) }
}

/// Like [`caller_envelope`], from a process that does not drive the run.
pub(super) fn external_envelope(runtime: &Runtime, caller: Caller) -> Envelope {
    Envelope { driving: false, ..caller_envelope(runtime, caller) }
}
