//! A connection that is opened on demand and reopened after it was lost.

use super::address::Address;
use super::changes::Changes;
use super::columns::Parts;
use super::errors::{explain, is_refused, without_tls};
use super::single_append::LastCommit;
use crate::error::StoreError;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Error, Row, Statement};

/// Initial settings of every session, so that durability and isolation do not depend on the server's configuration.
const BEGIN: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; SET jit = off; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';";

/// One connection with its prepared statements.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Client,
    prepared: Mutex<HashMap<String, Statement>>,
    /// Append statements, cached by their parts because building their text takes longer than the lookup.
    appending: Mutex<HashMap<Parts, Statement>>,
    last: Mutex<Option<LastCommit>>,
}

impl Session {
    /// A statement, prepared on first use.
    pub(super) async fn prepare(&self, text: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.prepared().get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(text).await?;
        self.prepared().insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    /// The statement that appends batches with these parts.
    pub(super) async fn prepare_append(&self, parts: Parts, text: impl FnOnce() -> String) -> Result<Statement, Error> {
        if let Some(statement) = self.appending().get(&parts) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&text()).await?;
        self.appending().insert(parts, statement.clone());
        Ok(statement)
    }

    fn appending(&self) -> MutexGuard<'_, HashMap<Parts, Statement>> {
        self.appending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last commit on this session, if it was a single append.
    pub(super) fn last(&self) -> MutexGuard<'_, Option<LastCommit>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prepared(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn query(&self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let statement = self.prepare(text).await?;
        self.client.query(&statement, parameters).await
    }
}

/// A connection to the database that survives the loss of a session.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) address: Address,
    /// Additional initial settings of its sessions.
    settings: &'static str,
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    /// Receives every notification that arrives.
    changes: Option<Arc<Changes>>,
}

impl Connection {
    pub(super) fn new(address: Address, settings: &'static str) -> Self {
        Self { address, settings, session: tokio::sync::Mutex::default(), changes: None }
    }

    /// Forwards notifications to `changes`.
    pub(super) fn hearing(self, changes: Arc<Changes>) -> Self {
        Self { changes: Some(changes), ..self }
    }

    /// The current session, or a new one if it was lost.
    pub(super) async fn session(&self) -> Result<Arc<Session>, StoreError> {
        let mut present = self.session.lock().await;
        if let Some(session) = present.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(session.clone());
        }
        let session = Arc::new(self.connect().await?);
        *present = Some(session.clone());
        Ok(session)
    }

    async fn connect(&self) -> Result<Session, StoreError> {
        let tls = self.address.tls.for_attempt();
        let connected = self.address.config.connect(tls.clone()).await;
        let (client, mut connection) = connected.map_err(|error| match tls.was_declined(&self.address.config, &error) {
            true => without_tls(&self.address),
            false => explain(&error, &self.address),
        })?;
        let changes = self.changes.clone();
        tokio::spawn(async move {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(notification))) => {
                        if let Some(changes) = &changes {
                            changes.heard(notification.payload());
                        }
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return tracing::debug!(%error, "the connection was lost"),
                    None => return,
                }
            }
        });
        let started = client.batch_execute(&format!("{BEGIN}{}", self.settings)).await;
        started.map_err(|error| explain(&error, &self.address))?;
        tracing::debug!(database = self.address.name, "connected");
        Ok(Session { client, prepared: Mutex::default(), appending: Mutex::default(), last: Mutex::default() })
    }

    /// Executes a read, retrying once on a new session if the current one turns out to be lost.
    pub(super) async fn read(&self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let session = self.session().await?;
        match session.query(text, parameters).await {
            Ok(rows) => Ok(rows),
            Err(error) if !is_refused(&error) => {
                self.lose(&session).await;
                let again = self.session().await?.query(text, parameters).await;
                again.map_err(|error| explain(&error, &self.address))
            }
            Err(error) => Err(explain(&error, &self.address)),
        }
    }

    /// Discards a session that turned out to be lost, even if its end is not known yet.
    pub(super) async fn lose(&self, lost: &Arc<Session>) {
        let mut present = self.session.lock().await;
        if present.as_ref().is_some_and(|session| Arc::ptr_eq(session, lost)) {
            *present = None;
        }
    }

    pub(super) async fn close(&self) {
        *self.session.lock().await = None;
    }
}
