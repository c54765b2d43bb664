//! The effects of a run: starts those that are pending, stops the others, and turns their outcomes into commands.

use super::claim::Claim;
use super::envelope::own_command;
use super::{DriveError, Driver, Halt, Waiting};
use crate::runtime::{Performed, Stop};
use crate::spans;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use lockgate_engine::run::command::{CommandKind, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use std::any::Any;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::time::Instant;
use tracing::{Instrument, debug, info, warn};

/// How long the driver waits for killed processes to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of an effect, or the panic that ended it.
pub(super) type Outcome = Result<Performed, Panicked>;

/// The panic message.
pub(super) struct Panicked(String);

impl Driver {
    /// Stops all running effects before another process may start the same ones. Effects that do not stop in time are
    /// dropped, which kills them.
    pub(super) async fn stop_before_lease_ends(&mut self) {
        let in_time = match self.claim.kill_at() {
            Some(kill_at) => tokio::time::timeout_at(kill_at + KILL_TIMEOUT, self.stop_all(None)).await.is_ok(),
            None => {
                self.stop_all(None).await;
                true
            }
        };
        if !in_time {
            self.span.in_scope(|| warn!("some effects did not stop before the claim expires; killing them"));
        }
        self.outcomes.clear();
    }

    /// Stops all running effects. Returns the outcomes of those that finished anyway, to be recorded without starting
    /// anything new. `halt` says when those are killed that do not end, and may still move that forward.
    pub(super) async fn stop_all(&mut self, halt: Option<&Halt>) -> Vec<Waiting> {
        let mut kill_at = halt.and_then(|halt| halt.stop.kill_at());
        self.request_stop_of_all(kill_at);
        let mut finished = Vec::new();
        // Every effect here was wanted until now or is already being stopped.
        loop {
            let ended = tokio::select! {
                biased;
                ended = self.outcomes.next() => ended,
                sooner = killed_sooner(halt, kill_at) => {
                    kill_at = sooner;
                    self.request_stop_of_all(kill_at);
                    continue;
                }
            };
            let Some((effect, performed)) = ended else { break };
            let performed = match performed {
                Ok(performed) => performed,
                Err(panic) => {
                    self.span.in_scope(|| warn!(panic = panic.0, "an effect panicked while it was being stopped"));
                    continue;
                }
            };
            let well = matches!(
                performed.command,
                CommandKind::TaskEnded { outcome: TaskOutcome::Finished { .. }, .. }
                    | CommandKind::GateEnded { failure: None, .. }
            );
            let mut waiting = self.ended_as(effect, performed);
            waiting.command.envelope.driving = false;
            if well {
                finished.push(waiting);
            }
        }
        self.running.clear();
        finished
    }

    /// Asks an effect to stop, and has it killed at this time, and in any case before the claim expires.
    fn request_stop(&self, stop: &Stop, kill_at: Option<Instant>) {
        match self.claim.kill_at().into_iter().chain(kill_at).min() {
            Some(kill_at) => stop.stop_by(kill_at),
            None => stop.stop(),
        }
    }

    /// Asks all effects to stop, also those that were asked before and have not ended yet.
    fn request_stop_of_all(&self, kill_at: Option<Instant>) {
        self.running.values().chain(self.ending.values()).for_each(|stop| self.request_stop(stop, kill_at));
    }

    pub(super) fn outcome(&mut self, effect: Effect, outcome: Outcome) -> Result<Waiting, DriveError> {
        match outcome {
            Ok(performed) => Ok(self.ended_as(effect, performed)),
            Err(Panicked(detail)) => Err(DriveError::Panicked { run: self.run.id.clone(), detail }),
        }
    }

    fn ended_as(&mut self, effect: Effect, performed: Performed) -> Waiting {
        self.running.remove(&effect);
        self.ending.remove(&effect);
        self.ended.push(effect);
        let command = own_command(&self.runtime, performed.command);
        Waiting { command, values: performed.values }
    }

    /// Starts pending effects and stops those that are no longer pending. Nothing starts while an unwanted effect is still
    /// ending: it may be an earlier attempt of the same task.
    pub(super) fn start_pending(&mut self) {
        let pending: BTreeSet<Effect> = self.run.pending().into_iter().collect();
        let unwanted: Vec<Effect> = self.running.keys().filter(|effect| !pending.contains(effect)).cloned().collect();
        for effect in unwanted {
            if let Some(stop) = self.running.remove(&effect) {
                spans::effect(&self.span, &effect).in_scope(|| debug!("no longer wanted; stopping it"));
                self.request_stop(&stop, None);
                self.ending.insert(effect, stop);
            }
        }
        for effect in pending {
            let is_work =
                matches!(effect, Effect::Task { .. } | Effect::Gate { .. } | Effect::QueryAgent { .. } | Effect::Check { .. });
            if self.running.contains_key(&effect) || (is_work && !self.ending.is_empty()) {
                continue;
            }
            let stop = Stop::new();
            let future = self.start(&effect, stop.clone());
            self.running.insert(effect.clone(), stop.clone());
            let claim = self.claim.clone();
            // A panic must stop only this driver, in order, and not the process with its other runs.
            let performed = under_claim(claim, stop, future).instrument(spans::effect(&self.span, &effect));
            let guarded = AssertUnwindSafe(performed).catch_unwind();
            self.outcomes.push(Box::pin(async move { (effect, guarded.await.map_err(|panic| Panicked(panic_text(&*panic)))) }));
        }
    }

    fn start(&self, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        match effect {
            Effect::Wake { timer, due, longest } => {
                let (timer, sleep) = (timer.clone(), self.runtime.clock.sleep_until(*due, *longest));
                Box::pin(async move {
                    tokio::select! {
                        () = sleep => CommandKind::TimerDue { timer }.into(),
                        // Stopping the timer does not make it due.
                        () = stop.stopped() => CommandKind::Advance.into(),
                    }
                })
            }
            Effect::Task { .. }
            | Effect::Gate { .. }
            | Effect::Evaluate { .. }
            | Effect::Show { .. }
            | Effect::DiffBase { .. }
            | Effect::When { .. }
            | Effect::Gaps { .. }
            | Effect::QueryAgent { .. }
            | Effect::Finalize
            | Effect::Check { .. }
            | Effect::Artifacts { .. }
            | Effect::Recheck { .. } => self.runtime.perform.start(&self.run, effect, stop),
        }
    }
}

/// Waits until effects are to be killed earlier than at this time, and returns when.
async fn killed_sooner(halt: Option<&Halt>, kill_at: Option<Instant>) -> Option<Instant> {
    let Some(halt) = halt else { return std::future::pending().await };
    halt.stop.hurried(kill_at).await;
    halt.stop.kill_at()
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

/// Performs an effect once the claim is confirmed. This is checked last, because the process may be suspended at any earlier
/// point.
async fn under_claim(claim: Claim, stop: Stop, effect: BoxFuture<'static, Performed>) -> Performed {
    tokio::select! {
        biased;
        () = claim.confirmed() => {}
        () = stop.stopped() => return CommandKind::Advance.into(),
    }
    info!("started");
    let performed = effect.await;
    let (outcome, failure) = spans::outcome(&performed.command);
    info!(outcome, failure = failure.map(tracing::field::debug), "ended");
    performed
}
