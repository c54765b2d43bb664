//! What failed for want of a login is no failure: a person is asked for it, and the task is tried again.

use super::Shared;
use crate::login;
use lockgate_engine::hold::Authentication;
use lockgate_engine::run::command::TaskOutcome;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::Check;

/// So much of a command is told.
const TOLD: usize = 500;

/// What a failed attempt came to.
pub(super) fn failed_or_unauthenticated(shared: &Shared, attempted: &str, failure: Failure) -> TaskOutcome {
    match failure.kind {
        FailureKind::Exit(_) | FailureKind::Agent => {}
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
        | FailureKind::Authentication => return TaskOutcome::Failed(failure),
    }
    let printed = format!("{}\n{}", failure.tail, failure.message);
    let Some(missing) = login::missing(attempted, &printed, &shared.config.logins) else {
        return TaskOutcome::Failed(failure);
    };
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
