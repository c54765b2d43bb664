//! What failed for want of a login is no failure: a person is asked for it, and the task is tried again.

use super::Shared;
use crate::agent::Preset;
use crate::auth_gate;
use lockgate_engine::hold::Authentication;
use lockgate_engine::run::command::TaskOutcome;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::Check;

/// So much of a command is told.
const TOLD: usize = 500;

/// Whether this can be what comes of a missing login.
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

/// What a failed attempt came to.
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

/// What a failed attempt of an agent with a preset came to. Its own protocol says whether a login is missing: what its tools print
/// about logins is their work, and only the patterns of the settings count besides.
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
    let attempted: String = shared.masks().mask_text(attempted.trim()).chars().take(TOLD).collect();
    let verified_by = match &missing.probe {
        Some(probe) => format!("{probe} succeeds"),
        None => "the task is tried again".to_owned(),
    };
    let told = Authentication {
        attempted,
        error: missing.error,
        steps: missing.steps,
        verified_by,
        message: failure.message,
        tail: failure.tail,
    };
    let probe = missing.probe.map(|run| Check { run, timeout: None, told: None });
    TaskOutcome::Unauthenticated { missing: Box::new(told), probe }
}
