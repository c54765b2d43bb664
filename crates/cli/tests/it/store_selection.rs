//! Selects the store for test projects: SQLite or, with `LOCKGATE_TEST_STORE=postgresql`, a database per project on one server.
//!
//! `sqlite_only.txt` lists the tests that concern the SQLite file, each with a reason. They always use SQLite, and `cargo xtask
//! test` runs them only there and reports their number.

use lockgate_store::postgres::test_server::server;

const SQLITE_ONLY: &str = include_str!("sqlite_only.txt");

/// The tests that concern the SQLite file, each with its reason.
fn sqlite_only() -> impl Iterator<Item = (&'static str, &'static str)> {
    SQLITE_ONLY.lines().map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{line:?} lacks its reason")))
}

/// Whether the projects of the current test are on PostgreSQL.
fn on_postgresql() -> bool {
    let postgresql = match std::env::var("LOCKGATE_TEST_STORE").as_deref() {
        Err(_) | Ok("sqlite") => false,
        Ok("postgresql") => true,
        Ok(other) => panic!("LOCKGATE_TEST_STORE is sqlite or postgresql, not {other:?}"),
    };
    let thread = std::thread::current();
    postgresql && !sqlite_only().any(|(test, _)| thread.name() == Some(test))
}

/// The line in the settings that selects a new database for a project; empty on SQLite.
pub(crate) fn selecting_line() -> String {
    if on_postgresql() { postgresql_line() } else { String::new() }
}

/// The line in the settings that selects a new PostgreSQL database.
pub(crate) fn postgresql_line() -> String {
    format!("database: {}\n", server().database())
}

#[test]
fn every_sqlite_only_test_has_a_reason() {
    for (test, reason) in sqlite_only() {
        assert!(test.contains("::") && reason.len() > 10, "{test}: {reason}");
    }
}
