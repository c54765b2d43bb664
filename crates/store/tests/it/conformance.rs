//! Runs the conformance suite on every backend.

use lockgate_store::conformance::Backend;
use lockgate_store::postgres::test_server::server;
use lockgate_store::{MemoryStore, PostgresStore, SqliteStore, Store};
use tempfile::TempDir;

struct Memory(MemoryStore);

impl Backend for Memory {
    fn process(&self) -> Box<dyn Store> {
        Box::new(self.0.another_process())
    }
}

struct Sqlite(TempDir);

impl Backend for Sqlite {
    fn process(&self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(&self.0.path().join("store")).unwrap())
    }
}

struct Postgres(String);

impl Backend for Postgres {
    fn process(&self) -> Box<dyn Store> {
        Box::new(PostgresStore::connect(&self.0).unwrap())
    }
}

fn postgres() -> Postgres {
    Postgres(server().database())
}

mod memory {
    lockgate_store::conformance_tests!(super::Memory(lockgate_store::MemoryStore::new()));
}

mod sqlite {
    lockgate_store::conformance_tests!(super::Sqlite(tempfile::tempdir().unwrap()));
}

mod postgres {
    lockgate_store::conformance_tests!(super::postgres());
}
