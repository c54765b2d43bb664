//! The writer: group commit for all waiting appends, on a separate connection.
//!
//! Requests that arrive during a transaction share the next one; nothing is delayed to make a batch larger.

use super::append::{self, Appended};
use super::changes::Changes;
use super::claims::Claimed;
use super::connection::{Connection, Session};
use super::drivers::{Drivers, end_lease};
use super::errors::{explain, is_refused, is_worth_retrying};
use super::remove::{self, Removed};
use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::held_claims::{Awaited, Reservation};
use crate::store::{Append, RemovedRows, RunRemoval};
use lockgate_engine::id::RunId;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Error;

/// Session settings of the writer: generic plans that look up rows by key, however few rows the tables had when they were
/// planned.
pub(super) const SETTINGS: &str =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;";

/// The maximum number of appends in a transaction: the cost of joins inside the statement grows quadratically with it.
const MAX_BATCH: usize = 64;
/// How often a transaction is retried after conflicts.
const MAX_ATTEMPTS: u32 = 30;

/// A request that a caller waits for.
#[derive(Debug)]
enum Request {
    Append(Waiting),
    Claim(RunId, oneshot::Sender<Result<u64, ClaimError>>),
    /// Claims the first of these runs that want a driver and are free, up to a limit.
    ClaimAny(Vec<RunId>, usize, oneshot::Sender<Result<Vec<(RunId, u64)>, StoreError>>),
    Remove(RunRemoval, oneshot::Sender<Result<RemovedRows, RemoveError>>),
    /// No one waits for the release of an abandoned claim.
    Release(RunId, u64, Option<oneshot::Sender<Result<(), StoreError>>>),
}

/// An append and its waiting caller.
#[derive(Debug)]
struct Waiting {
    append: Box<Append>,
    /// For an append that creates a run and claims it.
    reservation: Option<Reservation>,
    reply: oneshot::Sender<Result<Option<u64>, AppendError>>,
}

impl Waiting {
    /// Whether it claims an existing run, which takes its own transaction.
    fn claims(&self) -> bool {
        self.append.claim.is_some() && self.append.expected > 0
    }
}

enum Turn {
    Appends(Vec<Waiting>),
    Alone(Request),
}

#[derive(Debug, Default)]
struct Queue {
    requests: Vec<Request>,
    /// The writer that takes over when this one stops.
    successor: Option<Arc<Writer>>,
}

/// Queues requests and gets them committed.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Queue>,
    wake: Notify,
    connection: Connection,
    drivers: Arc<Drivers>,
    changes: Arc<Changes>,
}

impl Writer {
    pub(super) fn new(connection: Connection, drivers: Arc<Drivers>, changes: Arc<Changes>) -> Self {
        Self { queue: Mutex::default(), wake: Notify::new(), connection, drivers, changes }
    }

    pub(super) async fn append(&self, append: Append) -> Result<Option<u64>, AppendError> {
        let (reply, result) = oneshot::channel();
        let run = append.run.clone();
        let awaited = Awaited::new(result, |unwanted: Result<Option<u64>, AppendError>| {
            unwanted.ok().flatten().into_iter().for_each(|epoch| self.abandon(run.clone(), epoch));
        });
        let creates = append.claim.is_some() && append.expected == 0;
        // If this process holds the run, it already exists, so the append fails and needs no claim.
        let reservation = creates.then(|| self.drivers.held().reserve(&append.run)).flatten();
        self.submit(Request::Append(Waiting { append: Box::new(append), reservation, reply }));
        awaited.await.unwrap_or_else(|_| Err(stopped().into()))
    }

    pub(super) async fn claim(&self, run: RunId) -> Result<u64, ClaimError> {
        let (reply, result) = oneshot::channel();
        let claimed = run.clone();
        let awaited = Awaited::new(result, |unwanted: Result<u64, ClaimError>| {
            unwanted.into_iter().for_each(|epoch| self.abandon(claimed.clone(), epoch));
        });
        self.submit(Request::Claim(run, reply));
        awaited.await.unwrap_or_else(|_| Err(stopped().into()))
    }

    pub(super) async fn claim_any(&self, runs: Vec<RunId>, limit: usize) -> Result<Vec<(RunId, u64)>, StoreError> {
        let (reply, result) = oneshot::channel();
        let awaited = Awaited::new(result, |unwanted: Result<Vec<(RunId, u64)>, StoreError>| {
            unwanted.unwrap_or_default().into_iter().for_each(|(run, epoch)| self.abandon(run, epoch));
        });
        self.submit(Request::ClaimAny(runs, limit, reply));
        awaited.await.unwrap_or_else(|_| Err(stopped()))
    }

    pub(super) async fn release(&self, run: RunId, epoch: u64) -> Result<(), StoreError> {
        // Do this first: when another process sees the release, the run must be free here too.
        self.drivers.held().release(&run, epoch);
        let (reply, result) = oneshot::channel();
        self.submit(Request::Release(run, epoch, Some(reply)));
        result.await.unwrap_or_else(|_| Err(stopped()))
    }

    pub(super) async fn remove(&self, removal: RunRemoval) -> Result<RemovedRows, RemoveError> {
        let (reply, result) = oneshot::channel();
        let (run, epoch) = (removal.run.clone(), removal.epoch);
        self.submit(Request::Remove(removal, reply));
        let removed = result.await.unwrap_or_else(|_| Err(stopped().into()))?;
        self.drivers.held().release(&run, epoch);
        Ok(removed)
    }

    /// Releases a claim without waiting for it.
    pub(super) fn abandon(&self, run: RunId, epoch: u64) {
        self.drivers.held().release(&run, epoch);
        self.submit(Request::Release(run, epoch, None));
    }

    fn submit(&self, request: Request) {
        let mut queue = self.queue();
        match &queue.successor {
            Some(successor) => successor.submit(request),
            None => queue.requests.push(request),
        }
        self.wake.notify_one();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves requests until its runtime ends. The remaining requests then go to the successor, except those in progress,
    /// whose outcome is unknown.
    pub(super) async fn serve_until_ended(self: Arc<Self>, successor: Arc<Self>) {
        let _bequest = Handoff { from: self.clone(), successor };
        self.wake.notified().await;
        // No request has been taken yet: if the runtime has no network and this task ends here, nothing is lost.
        if let Err(error) = self.connection.session().await {
            tracing::debug!(%error, "no connection yet; the next request reports the error");
        }
        self.serve().await;
    }

    pub(super) async fn serve(self: Arc<Self>) {
        loop {
            match self.next_turn() {
                None => self.wake.notified().await,
                Some(Turn::Appends(batch)) => self.append_all(batch).await,
                Some(Turn::Alone(request)) => self.serve_alone(request).await,
            }
        }
    }

    async fn serve_alone(&self, request: Request) {
        match request {
            Request::Append(Waiting { append, reservation: _, reply }) => {
                if let Err(Ok(Some(epoch))) = reply.send(self.append_claiming(&append).await) {
                    self.abandon(append.run, epoch);
                }
            }
            Request::Claim(run, reply) => {
                if let Err(Ok(epoch)) = reply.send(self.claim_now(&run).await) {
                    self.abandon(run, epoch);
                }
            }
            Request::ClaimAny(runs, limit, reply) => {
                if let Err(Ok(claimed)) = reply.send(self.claim_any_now(&runs, limit).await) {
                    claimed.into_iter().for_each(|(run, epoch)| self.abandon(run, epoch));
                }
            }
            Request::Remove(removal, reply) => answer(reply, self.remove_now(&removal).await),
            Request::Release(run, epoch, reply) => {
                let released = self.release_now(&run, epoch).await;
                match reply {
                    Some(reply) => answer(reply, released),
                    None => match released {
                        Ok(()) => tracing::debug!(%run, epoch, "released an abandoned claim"),
                        Err(error) => tracing::warn!(%run, epoch, %error, "an abandoned claim could not be released"),
                    },
                }
            }
        }
    }

    /// The next claim, or appends that can share a transaction, at most one per run. Requests whose caller is gone are
    /// dropped.
    fn next_turn(&self) -> Option<Turn> {
        let waiting = &mut self.queue().requests;
        waiting.retain(|request| match request {
            Request::Append(waiting) => !waiting.reply.is_closed(),
            Request::Claim(_, reply) => !reply.is_closed(),
            Request::ClaimAny(_, _, reply) => !reply.is_closed(),
            Request::Remove(_, reply) => !reply.is_closed(),
            // Others wait for the run, whether or not the caller does.
            Request::Release(..) => true,
        });
        let is_alone = match waiting.first()? {
            Request::Append(first) => first.claims(),
            Request::Claim(..) | Request::ClaimAny(..) | Request::Remove(..) | Request::Release(..) => true,
        };
        if is_alone {
            return Some(Turn::Alone(waiting.remove(0)));
        }
        let (mut batch, mut rest, mut runs) = (Vec::new(), Vec::new(), HashSet::new());
        for request in waiting.drain(..) {
            match request {
                Request::Append(next) if !next.claims() && batch.len() < MAX_BATCH && runs.insert(next.append.run.clone()) => {
                    batch.push(next)
                }
                other => rest.push(other),
            }
        }
        *waiting = rest;
        (!batch.is_empty()).then_some(Turn::Appends(batch))
    }

    async fn append_all(&self, mut batch: Vec<Waiting>) {
        // All processes lock runs in this order, which prevents deadlocks.
        batch.sort_by(|one, two| one.append.run.cmp(&two.append.run));
        match self.transact(&batch).await {
            Err(Failure::Refused(_)) if batch.len() > 1 => {
                // One rejected append must not fail the others, so retry each on its own.
                for one in batch {
                    let outcome = self.transact(std::slice::from_ref(&one)).await;
                    self.settle(vec![one], outcome);
                }
            }
            outcome => self.settle(batch, outcome),
        }
    }

    /// Sends the outcomes to the callers, after the transaction is durable.
    fn settle(&self, batch: Vec<Waiting>, outcome: Result<Vec<Appended>, Failure>) {
        match outcome {
            Ok(appended) => {
                let taken = batch.iter().zip(&appended).filter(|(_, appended)| matches!(appended, Appended::Taken(_)));
                let taken = taken.map(|(waiting, _)| (&waiting.append.run, Some(waiting.append.commit.version)));
                if taken.clone().next().is_some() {
                    self.changes.committed(taken);
                }
                for (Waiting { append, reservation, reply }, appended) in batch.into_iter().zip(appended) {
                    let run = append.run;
                    let result = match appended {
                        Appended::Taken(epoch) => {
                            epoch.zip(reservation).into_iter().for_each(|(epoch, reservation)| reservation.keep(epoch));
                            Ok(epoch)
                        }
                        Appended::Conflict => Err(AppendError::Conflict),
                        Appended::Fenced => Err(AppendError::Fenced),
                        Appended::NoRun => Err(StoreError::NoRun(run.clone()).into()),
                    };
                    if let Err(Ok(Some(epoch))) = reply.send(result) {
                        self.abandon(run, epoch);
                    }
                }
            }
            Err(Failure::Refused(error) | Failure::Lost(error)) => {
                batch.into_iter().for_each(|waiting| answer(waiting.reply, Err(error.clone().into())));
            }
        }
    }

    async fn transact(&self, batch: &[Waiting]) -> Result<Vec<Appended>, Failure> {
        let appends: Vec<&Append> = batch.iter().map(|waiting| &*waiting.append).collect();
        let mut tries = 0;
        loop {
            let session = self.connection.session().await.map_err(Failure::Lost)?;
            // If the connection is lost before the statement is sent, it can be sent again.
            let statement = match append::Statement::prepare(&session, &appends).await {
                Ok(statement) => statement,
                Err(error) => {
                    let lost = !is_refused(&error);
                    if lost {
                        self.connection.lose(&session).await;
                    }
                    self.pause(&error, &mut tries, lost).await?;
                    continue;
                }
            };
            match statement.perform(&session).await {
                Ok(appended) => return Ok(appended),
                Err(error) if !is_refused(&error) => {
                    self.connection.lose(&session).await;
                    let detail = explain(&error, &self.connection.address).to_string();
                    return Err(Failure::Lost(StoreError::OutcomeUnknown(detail)));
                }
                Err(error) => self.pause(&error, &mut tries, false).await?,
            }
        }
    }

    /// Waits briefly if the error is worth a retry.
    async fn pause(&self, error: &Error, tries: &mut u32, again: bool) -> Result<(), Failure> {
        *tries += 1;
        if *tries >= MAX_ATTEMPTS || !(again || is_worth_retrying(error)) {
            return Err(Failure::Refused(explain(error, &self.connection.address)));
        }
        tokio::time::sleep(Duration::from_millis(rand::random_range(1..=20 * u64::from((*tries).min(10))))).await;
        Ok(())
    }

    async fn claim_now(&self, run: &RunId) -> Result<u64, ClaimError> {
        let Some(reservation) = self.drivers.held().reserve(run) else {
            return Err(ClaimError::DrivenBy(self.drivers.own_info()));
        };
        let mut tries = 0;
        loop {
            let session = self.connection.session().await?;
            match self.drivers.claim(&session, run).await {
                Ok(Claimed::Epoch(epoch)) => {
                    reservation.keep(epoch);
                    self.changes.committed([(run, None)].into_iter());
                    return Ok(epoch);
                }
                // A late heartbeat of the dead process may still arrive and recreate its lease.
                Ok(Claimed::Left(driver)) => match end_lease(&session, &driver).await {
                    Ok(()) => {}
                    Err(error) => self.try_again(&session, &error, &mut tries).await?,
                },
                Ok(Claimed::DrivenBy(info)) => return Err(ClaimError::DrivenBy(info)),
                Ok(Claimed::NoRun) => return Err(StoreError::NoRun(run.clone()).into()),
                // Claiming a run twice merely raises its epoch twice.
                Err(error) => self.try_again(&session, &error, &mut tries).await?,
            }
        }
    }

    /// Claims a run together with an append, both or neither.
    async fn append_claiming(&self, append: &Append) -> Result<Option<u64>, AppendError> {
        let Some(reservation) = self.drivers.held().reserve(&append.run) else {
            return Err(AppendError::DrivenBy(self.drivers.own_info()));
        };
        let mut tries = 0;
        loop {
            let session = self.connection.session().await?;
            match self.drivers.claim_with(&session, append).await {
                Ok((Claimed::Epoch(epoch), true)) => {
                    reservation.keep(epoch);
                    self.changes.committed([(&append.run, Some(append.commit.version))].into_iter());
                    return Ok(Some(epoch));
                }
                Ok((Claimed::Epoch(_), false)) => return Err(AppendError::Conflict),
                Ok((Claimed::Left(driver), _)) => match end_lease(&session, &driver).await {
                    Ok(()) => {}
                    Err(error) => self.try_again(&session, &error, &mut tries).await?,
                },
                Ok((Claimed::DrivenBy(info), _)) => return Err(AppendError::DrivenBy(info)),
                Ok((Claimed::NoRun, _)) => return Err(StoreError::NoRun(append.run.clone()).into()),
                Err(error) if !is_refused(&error) => {
                    self.connection.lose(&session).await;
                    return Err(StoreError::OutcomeUnknown(explain(&error, &self.connection.address).to_string()).into());
                }
                Err(error) => self.try_again(&session, &error, &mut tries).await?,
            }
        }
    }

    async fn claim_any_now(&self, runs: &[RunId], limit: usize) -> Result<Vec<(RunId, u64)>, StoreError> {
        let mut reserved: Vec<Reservation> = runs.iter().filter_map(|run| self.drivers.held().reserve(run)).collect();
        let mut tries = 0;
        loop {
            let free: Vec<&str> = reserved.iter().map(|reservation| reservation.run().as_str()).collect();
            if free.is_empty() {
                return Ok(Vec::new());
            }
            let session = self.connection.session().await?;
            // Runs whose driver has ended on this machine are free even though its lease is still valid.
            let claimed = match self.drivers.claim_any(&session, &free, limit).await {
                Ok(claimed) if claimed.is_empty() => match self.drivers.end_left(&session, &free).await {
                    Ok(true) => self.drivers.claim_any(&session, &free, limit).await,
                    Ok(false) => return Ok(Vec::new()),
                    Err(error) => Err(error),
                },
                claimed => claimed,
            };
            match claimed {
                Ok(claimed) => {
                    for (run, epoch) in &claimed {
                        if let Some(at) = reserved.iter().position(|reservation| reservation.run() == run) {
                            reserved.swap_remove(at).keep(*epoch);
                        }
                    }
                    if !claimed.is_empty() {
                        self.changes.committed(claimed.iter().map(|(run, _)| (run, None)));
                    }
                    return Ok(claimed);
                }
                // If the claim was made nevertheless, no one holds it, and it is made again.
                Err(error) => self.try_again(&session, &error, &mut tries).await?,
            }
        }
    }

    async fn remove_now(&self, removal: &RunRemoval) -> Result<RemovedRows, RemoveError> {
        let mut tries = 0;
        loop {
            let session = self.connection.session().await?;
            match remove::remove(&session, self.drivers.own(), removal).await {
                Ok(Removed::Rows(rows)) => {
                    self.changes.committed([(&removal.run, None)].into_iter());
                    return Ok(rows);
                }
                Ok(Removed::Fenced) => return Err(RemoveError::Fenced),
                Ok(Removed::Status(status)) => return Err(RemoveError::Status(status)),
                Ok(Removed::NoRun) => return Err(StoreError::NoRun(removal.run.clone()).into()),
                Err(error) if !is_refused(&error) => {
                    self.connection.lose(&session).await;
                    return Err(StoreError::OutcomeUnknown(explain(&error, &self.connection.address).to_string()).into());
                }
                Err(error) => self.try_again(&session, &error, &mut tries).await?,
            }
        }
    }

    async fn release_now(&self, run: &RunId, epoch: u64) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            let session = self.connection.session().await?;
            match self.drivers.release(&session, run, epoch).await {
                Ok(true) => {
                    self.changes.committed([(run, None)].into_iter());
                    return Ok(());
                }
                Ok(false) => return Ok(()),
                Err(error) => self.try_again(&session, &error, &mut tries).await?,
            }
        }
    }

    /// Waits briefly before retrying an idempotent operation.
    async fn try_again(&self, session: &Arc<Session>, error: &Error, tries: &mut u32) -> Result<(), StoreError> {
        let lost = !is_refused(error);
        if lost {
            self.connection.lose(session).await;
        }
        match self.pause(error, tries, lost).await {
            Ok(()) => Ok(()),
            Err(Failure::Refused(error) | Failure::Lost(error)) => Err(error),
        }
    }

    pub(super) async fn close(&self) {
        self.connection.close().await;
    }
}

/// Hands waiting requests to the successor on drop.
struct Handoff {
    from: Arc<Writer>,
    successor: Arc<Writer>,
}

impl Drop for Handoff {
    fn drop(&mut self) {
        let mut queue = self.from.queue();
        queue.requests.drain(..).for_each(|request| self.successor.submit(request));
        queue.successor = Some(self.successor.clone());
    }
}

enum Failure {
    /// The database rejected it: nothing is recorded.
    Refused(StoreError),
    /// The connection was lost; the error says what is recorded.
    Lost(StoreError),
}

/// Sends the outcome to the caller, if it still waits.
fn answer<T>(reply: oneshot::Sender<T>, outcome: T) {
    if reply.send(outcome).is_err() {
        tracing::trace!("the caller is gone");
    }
}

fn stopped() -> StoreError {
    StoreError::OutcomeUnknown("the store was closed".to_owned())
}
