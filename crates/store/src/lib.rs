//! Durable storage without rules: run histories, appended with an expected version, and the index rows that lists need.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`store`] | the [`Store`] trait and its data types |
//! | [`error`] | store errors, with messages that say what to do |
//! | [`sqlite`] | the store in a directory: one SQLite database, one lock file per driver |
//! | [`postgres`] | the store in a PostgreSQL database, for many machines: one lease per driver |
//! | [`memory`] | an in-memory store with the same behaviour and injectable faults, for tests and simulation |
//! | [`lease`] | how long a process may rely on its claims, by its own clock |
//! | `change_feed` | one source of changes per process, any number of waiters |
//! | `held_claims` | the claims that this process holds |
//! | `sys` | system calls and files that only Linux has |
//! | [`cleanup`] | removing unneeded files and joining threads |
//! | [`backup`] | copies of a store in a file |
//! | [`hash_chain`] | checks that every commit links to the one before it |
//! | [`verify`] | detects changed or lost data in a store |
//! | [`conformance`] | the test suite for every backend |

pub mod backup;
mod change_feed;
pub mod cleanup;
mod column_codes;
#[doc(hidden)]
pub mod conformance;
pub mod error;
pub mod hash_chain;
mod held_claims;
pub mod lease;
pub mod memory;
pub mod postgres;
pub mod sqlite;
pub mod store;
mod sys;
pub mod verify;

pub use error::{AppendError, ClaimError, RemoveError, StoreError};
pub use lease::Lease;
pub use memory::{Fault, MemoryStore};
pub use postgres::PostgresStore;
pub use sqlite::{Settings, SqliteStore};
pub use store::{
    Append, Cursor, Delivery, DriverInfo, Future, HoldFilter, ListedHold, ListedRun, Loaded, MaterializedState, Missing, Orphan,
    OutboxEntry, OutboxFilter, Page, RemovedRows, RunFilter, RunRemoval, Store, StoredCommit, StoredRun, StoredValue,
    Unreferenced,
};
pub use verify::{Finding, verify_run, verify_store};
