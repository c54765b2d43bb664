//! A failure caused by a missing login is not a failure: a person is asked to log in, and the task is retried.

use super::Shared;
use crate::agent::Preset;
use crate::auth_gate;
use lockgate_engine::hold::Authentication;
use lockgate_engine::run::command::TaskOutcome;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::Check;

/// The maximum length of a command shown to people.
const MAX_COMMAND_LENGTH: usize = 500;

/// Whether a missing login can cause this kind of failure.
fn may_be_auth_failure(kind: FailureKind) -> bool {
    match kind {
        FailureKind::Exit(_) | FailureKind::Agent => true,
        FailureKind::Signal(_)
        | FailureKind::Timeout
        | FailureKind::Script
        | FailureKind::Start
        | FailureKind::Output
        | FailureKind::Interrupted
        | FailureKind::Stopped
        | FailureKind::Condition
        | FailureKind::Budget
        | FailureKind::Idle
        | FailureKind::Until
        | FailureKind::Items
        | FailureKind::Issues
        | FailureKind::Authentication => false,
    }
}

pub(super) fn failed_or_unauthenticated(shared: &Shared, attempted: &str, failure: Failure) -> TaskOutcome {
    if !may_be_auth_failure(failure.kind) {
        return TaskOutcome::Failed(failure);
    }
    let printed = format!("{}\n{}", failure.tail, failure.message);
    let Some(missing) = auth_gate::missing(attempted, &printed, &shared.config.logins) else {
        return TaskOutcome::Failed(failure);
    };
    unauthenticated(shared, attempted, missing, failure)
}

/// Classifies the failure of an agent with a preset. Its protocol reports a missing login itself. Login messages printed by
/// its tools are part of its work, so apart from the protocol only patterns from the settings count.
pub(super) fn agent_failed(shared: &Shared, attempted: &str, preset: &Preset, failure: Failure) -> TaskOutcome {
    if failure.kind == FailureKind::Authentication {
        let steps = preset.login_steps().to_vec();
        let missing = auth_gate::Missing { error: auth_gate::shown(&failure.message), steps, probe: None };
        return unauthenticated(shared, attempted, missing, failure);
    }
    let printed = format!("{}\n{}", failure.tail, failure.message);
    match auth_gate::missing_by_settings(attempted, &printed, &shared.config.logins) {
        Some(missing) if may_be_auth_failure(failure.kind) => unauthenticated(shared, attempted, missing, failure),
        Some(_) | None => TaskOutcome::Failed(failure),
    }
}

fn unauthenticated(shared: &Shared, attempted: &str, missing: auth_gate::Missing, failure: Failure) -> TaskOutcome {
    let attempted: String = shared.masks().mask_text(attempted.trim()).chars().take(MAX_COMMAND_LENGTH).collect();
    let verified_by = match &missing.probe {
        Some(probe) => format!("{probe} succeeds"),
        None => "the task is retried".to_owned(),
    };
    let authentication = Authentication {
        attempted,
        error: missing.error,
        steps: missing.steps,
        verified_by,
        message: failure.message,
        tail: failure.tail,
    };
    let probe = missing.probe.map(|run| Check { run, timeout: None, description: None });
    TaskOutcome::Unauthenticated { missing: Box::new(authentication), probe }
}
