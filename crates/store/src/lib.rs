//! Durable facts, no rules: histories of runs, appended with the expected version, and what lists need of them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`store`] | the trait [`Store`] and what goes in and out of it |
//! | [`error`] | what can go wrong, told so that a person knows what to do |
//! | [`sqlite`] | the store in a folder: one SQLite database, one lock file per driver |
//! | [`postgres`] | the store in a PostgreSQL database, for many machines: one lease per driver |
//! | [`memory`] | the same behaviour without a disk, with faults on request, for tests and simulation |
//! | [`lease`] | how long a process may rely on what it claimed, by its own clock |
//! | `change_feed` | one source of changes per process, any number of waiters |
//! | `held` | the claims that this process holds |
//! | [`cleanup`] | removing files and ending threads that are no longer needed |
//! | [`backup`] | copies of a store in a file |
//! | [`verify`] | finds what was changed or lost in a store |
//! | [`conformance`] | the claims that every backend is tested against |

pub mod backup;
mod change_feed;
pub mod cleanup;
mod column_codes;
#[doc(hidden)]
pub mod conformance;
pub mod error;
mod held;
pub mod lease;
pub mod memory;
pub mod postgres;
pub mod sqlite;
pub mod store;
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
