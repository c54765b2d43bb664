//! Verification finds every change to stored data.

use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::time::Timestamp;
use lockgate_store::conformance::{HistoryWriter, hold_row, timer_row};
use lockgate_store::{Finding, HoldFilter, MemoryStore, Page, SqliteStore, Store, StoreError, verify_run, verify_store};
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};

/// A small store: two runs of three commits, with values, a materialized state, a hold and a timer.
async fn fill(store: &dyn Store) {
    let own = b"only of one run".to_vec();
    let shared = b"of both runs".to_vec();
    for run in ["aaaa", "bbbb"] {
        let mut scribe = HistoryWriter::new(run);
        let mut append = scribe.next("one");
        append.values = vec![(Digest::of(&shared), shared.clone())];
        append.index.referenced_values = vec![Digest::of(&shared)];
        append.index.holds = vec![hold_row(&scribe.run, "hold", 1)];
        append.index.timers = vec![timer_row(&scribe.run, "timer", 1)];
        scribe.append(store, append).await.unwrap();
        let mut append = scribe.next("two");
        if run == "aaaa" {
            append.values = vec![(Digest::of(&own), own.clone())];
            append.index.referenced_values = vec![Digest::of(&own)];
            append.materialized = Some(b"state".to_vec());
        }
        scribe.append(store, append).await.unwrap();
        scribe.write(store, "three").await;
    }
}

fn database(folder: &Path) -> Connection {
    let connection = Connection::open(folder.join("lockgate.db")).unwrap();
    connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
    connection
}

fn blobs(connection: &Connection, query: &str) -> Vec<(i64, Vec<u8>)> {
    let mut statement = connection.prepare(query).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn an_intact_store_has_no_findings() {
    let folder = tempfile::tempdir().unwrap();
    let (sqlite, memory) = (SqliteStore::open(folder.path()).unwrap(), MemoryStore::new());
    for store in [&sqlite as &dyn Store, &memory] {
        fill(store).await;
        assert_eq!(verify_store(store).await, Ok(Vec::new()));
        assert_eq!(verify_run(store, &RunId::new("aaaa")).await, Ok(Some(Vec::new())));
        assert_eq!(verify_run(store, &RunId::new("none")).await, Ok(None));
    }
}

#[tokio::test]
async fn every_flipped_byte_of_commits_and_values_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    fill(&store).await;
    let connection = database(folder.path());
    let mut flips = 0;
    for (table, column) in [("commits", "hash"), ("commits", "payload"), ("stored_values", "digest"), ("stored_values", "bytes")]
    {
        let update = format!("UPDATE {table} SET {column} = ?2 WHERE rowid = ?1");
        for (row, bytes) in blobs(&connection, &format!("SELECT rowid, {column} FROM {table}")) {
            for place in 0..bytes.len() {
                for mask in [0x01, 0x80, 0xff] {
                    let mut flipped = bytes.clone();
                    flipped[place] ^= mask;
                    assert_eq!(connection.execute(&update, params![row, flipped]).unwrap(), 1);
                    let findings = verify_store(&store).await.unwrap();
                    assert!(
                        !findings.is_empty(),
                        "byte {place} of {column} in row {row:#x} of {table}, flipped by {mask:#x}, was not found"
                    );
                    flips += 1;
                }
            }
            connection.execute(&update, params![row, bytes]).unwrap();
        }
    }
    assert!(flips > 1000, "{flips}");
    assert_eq!(verify_store(&store).await, Ok(Vec::new()), "everything was restored");
}

#[tokio::test]
async fn every_flipped_byte_of_a_commits_key_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    fill(&store).await;
    let connection = database(folder.path());
    let keys: Vec<i64> = blobs(&connection, "SELECT key, hash FROM commits").into_iter().map(|(key, _)| key).collect();
    let swap = |one: i64, two: i64| {
        // If the new key is taken, swap the two.
        let update = "UPDATE commits SET key = ?2 WHERE key = ?1";
        let taken = connection.execute(update, [two, i64::MAX]).unwrap() == 1;
        connection.execute(update, [one, two]).unwrap();
        if taken {
            connection.execute(update, [i64::MAX, one]).unwrap();
        }
    };
    for key in keys {
        for place in 0..8 {
            for mask in [0x01, 0x80, 0xff_u8] {
                let mut bytes = key.to_be_bytes();
                bytes[place] ^= mask;
                let flipped = i64::from_be_bytes(bytes);
                swap(key, flipped);
                let findings = verify_store(&store).await.unwrap();
                assert!(!findings.is_empty(), "key {key:#x} as {flipped:#x} was not found");
                swap(flipped, key);
            }
        }
    }
    assert_eq!(verify_store(&store).await, Ok(Vec::new()), "everything was restored");
}

async fn found_after(change: &str) -> (Vec<Finding>, Vec<Finding>) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    fill(&store).await;
    database(folder.path()).execute_batch(change).unwrap();
    let of_run = verify_run(&store, &RunId::new("aaaa")).await.unwrap().unwrap_or_default();
    (verify_store(&store).await.unwrap(), of_run)
}

#[tokio::test]
async fn findings_name_the_run_the_position_and_the_problem() {
    let run = |finding: &Finding| finding.run.as_ref().map(|run| run.as_str().to_owned());
    let reported = |findings: &[Finding]| {
        let lines: Vec<String> =
            findings.iter().map(|found| format!("{:?} {}: {}", run(found), found.location, found.problem)).collect();
        lines.join("\n")
    };
    let (all, of_run) = found_after("DELETE FROM commits WHERE key = 0x100000002").await;
    assert_eq!(all, of_run);
    assert_eq!(
        reported(&all),
        "Some(\"aaaa\") commit 3: it follows commit 1: the commits between them are missing\n\
         Some(\"aaaa\") commit 3: its hash does not match its contents and the previous commit\n\
         Some(\"aaaa\") commit 3: its first event has number 3, which is out of sequence"
    );
    let (all, of_run) = found_after("DELETE FROM commits WHERE key > 0x100000001 AND key < 0x200000000").await;
    assert_eq!(all, of_run);
    assert_eq!(
        reported(&all),
        "Some(\"aaaa\") 2 commits (2 to 3): recorded, but missing from the end of the history\n\
         Some(\"aaaa\") its materialized state: it claims to be the state after commit 2, but the last commit is 1"
    );
    let (all, _) = found_after("DELETE FROM runs WHERE run = 'bbbb'").await;
    assert_eq!(
        reported(&all).lines().filter(|line| line.starts_with("None ")).collect::<Vec<_>>(),
        [
            "None commit at 0x200000001: it does not belong to a stored run",
            "None commit at 0x200000002: it does not belong to a stored run",
            "None commit at 0x200000003: it does not belong to a stored run",
            "None holds of run number 2: they do not belong to a stored run",
            "None timers of run number 2: they do not belong to a stored run",
            "None value_refs of run number 2: they do not belong to a stored run",
        ]
    );
    let digest = Digest::of(b"only of one run");
    let (all, of_run) = found_after("DELETE FROM stored_values WHERE bytes = CAST('only of one run' AS BLOB)").await;
    assert_eq!(all, of_run);
    assert_eq!(reported(&all), format!("Some(\"aaaa\") value {digest}: the run refers to it, but it is missing"));
    let (all, _) = found_after("DELETE FROM commits WHERE key > 0x200000000").await;
    assert_eq!(
        reported(&all),
        "Some(\"bbbb\") 3 commits (1 to 3): recorded, but missing from the end of the history\n\
         Some(\"bbbb\") its history: it has no commits"
    );
    let (all, _) = found_after("UPDATE commits SET hash = x'00' WHERE key = 0x100000001").await;
    assert!(reported(&all).contains("the commits: "), "{}", reported(&all));
}

#[tokio::test]
async fn a_table_with_a_different_definition_is_found() {
    // With this definition every row still exists, but its key reads as NULL.
    let change = "PRAGMA writable_schema = ON; \
        UPDATE sqlite_schema SET sql = replace(sql, 'PRIMARY', 'PRIMER') WHERE name = 'materialized_states'; PRAGMA writable_schema = RESET;";
    let folder = tempfile::tempdir().unwrap();
    fill(&SqliteStore::open(folder.path()).unwrap()).await;
    database(folder.path()).execute_batch(change).unwrap();
    let findings = verify_store(&SqliteStore::open_existing(folder.path()).unwrap()).await.unwrap();
    let expected = "materialized_states is not defined as Lockgate defines it";
    assert!(findings.iter().any(|found| found.problem == expected), "{findings:?}");
}

#[tokio::test]
async fn a_damaged_value_is_never_returned() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    fill(&store).await;
    database(folder.path()).execute_batch("UPDATE stored_values SET bytes = CAST('forged' AS BLOB)").unwrap();
    let error = store.values(&[Digest::of(b"of both runs")]).await.unwrap_err();
    assert!(error.to_string().contains("does not match its digest"), "{error}");
    let findings = verify_run(&store, &RunId::new("bbbb")).await.unwrap().unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
}

/// The pages of a database file, numbered from 1.
struct Pages {
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Pages {
    const SIZE: usize = 4096;

    fn of(folder: &Path) -> Self {
        let file = folder.join("lockgate.db");
        let bytes = std::fs::read(&file).unwrap();
        Self { file, bytes }
    }

    fn page(&mut self, number: u32) -> &mut [u8] {
        let begin = (number as usize - 1) * Self::SIZE;
        &mut self.bytes[begin..begin + Self::SIZE]
    }

    fn add(&mut self, page: &[u8]) -> u32 {
        self.bytes.extend_from_slice(page);
        u32::try_from(self.bytes.len() / Self::SIZE).unwrap()
    }

    /// A page that points to another one `times` times.
    fn leading(child: u32, times: u8) -> Vec<u8> {
        let mut page = vec![0; Self::SIZE];
        // An interior table page: its cell count, where the cells start, and its rightmost child.
        let cells = usize::from(times - 1);
        let begin = Self::SIZE - cells * 5;
        page[0] = 5;
        page[4] = times - 1;
        page[5..7].copy_from_slice(&u16::try_from(begin).unwrap().to_be_bytes());
        page[8..12].copy_from_slice(&child.to_be_bytes());
        for cell in 0..cells {
            let at = begin + cell * 5;
            page[12 + cell * 2..14 + cell * 2].copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
            page[at..at + 4].copy_from_slice(&child.to_be_bytes());
            page[at + 4] = u8::try_from(cell).unwrap().min(127);
        }
        page
    }

    fn write(mut self) {
        let count = u32::try_from(self.bytes.len() / Self::SIZE).unwrap();
        self.bytes[28..32].copy_from_slice(&count.to_be_bytes());
        std::fs::write(&self.file, &self.bytes).unwrap();
    }
}

/// The root page of each table, in a database that no process has open.
fn roots(folder: &Path) -> Vec<(String, u32)> {
    let connection = database(folder);
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut tables = connection.prepare("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'").unwrap();
    tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

/// Reads everything that can be read, in every way, and returns the reported damage.
async fn reported_damage(store: &dyn Store) -> Vec<String> {
    let mut reported: Vec<String> = verify_store(store).await.unwrap().into_iter().map(|found| found.problem).collect();
    let run = RunId::new("aaaa");
    let answers = [
        store.load(&run).await.map(drop),
        store.commits(&run, 0, usize::MAX).await.map(drop),
        store.runs(Page::ALL).await.map(drop),
        store.find_runs("a").await.map(drop),
        store.runs_of_feature("nothing").await.map(drop),
        store.holds(HoldFilter::Open, Page::ALL).await.map(drop),
        store.holds(HoldFilter::OfRun(run.clone()), Page::ALL).await.map(drop),
        store.find_holds("h").await.map(drop),
        store.timers(Timestamp::from_millis(i64::MAX), usize::MAX).await.map(drop),
        store.unreferenced_values().await.map(drop),
    ];
    for answer in answers {
        match answer {
            Ok(()) => {}
            Err(StoreError::Corrupt(detail)) => reported.push(detail),
            Err(other) => panic!("{other}"),
        }
    }
    reported
}

#[tokio::test]
async fn scanning_a_database_with_cyclic_pages_terminates_and_reports_damage() {
    for table in ["commits", "runs"] {
        let folder = tempfile::tempdir().unwrap();
        fill(&SqliteStore::open(folder.path()).unwrap()).await;
        let root = roots(folder.path()).into_iter().find(|(name, _)| name == table).unwrap().1;
        let mut pages = Pages::of(folder.path());
        let leaf = pages.page(root).to_vec();
        let mut child = pages.add(&leaf);
        // As deep as SQLite goes: the rows of one page are repeated more often than any scan could finish.
        for _ in 0..17 {
            child = pages.add(&Pages::leading(child, 4));
        }
        pages.page(root).copy_from_slice(&Pages::leading(child, 4));
        pages.write();
        let store = SqliteStore::open_existing(folder.path()).unwrap();
        let reported = reported_damage(&store).await;
        assert!(reported.iter().any(|line| line.contains("2nd reference to page")), "{table}: {reported:?}");
        assert!(reported.iter().any(|line| line.contains("rows are repeated")), "{table}: {reported:?}");
        // Commits are always read in the order of their keys.
        let endless = reported.iter().any(|line| line.contains("its pages form a cycle"));
        assert!(endless || table == "commits", "{table}: {reported:?}");
        let backup = store.back_up(folder.path().join("backup.db")).await.unwrap_err().to_string();
        assert!(backup.contains("lockgate.db is damaged") && backup.contains("restore a backup"), "{backup}");
    }
}

#[tokio::test]
async fn a_search_led_back_to_earlier_rows_does_not_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut scribe = HistoryWriter::new("aaaa");
    {
        let store = SqliteStore::open(folder.path()).unwrap();
        for _ in 0..600 {
            scribe.write(&store, "one of many").await;
        }
    }
    let root = roots(folder.path()).into_iter().find(|(name, _)| name == "commits").unwrap().1;
    let mut pages = Pages::of(folder.path());
    let page = pages.page(root);
    assert_eq!(page[0], 5, "the commits are on several pages");
    // Every cell claims lower keys than it has, so that a search for a later key is led past it.
    for cell in 0..usize::from(page[4]) {
        let at = usize::from(u16::from_be_bytes([page[12 + cell * 2], page[13 + cell * 2]]));
        page[at + 4] = 0xff;
    }
    pages.write();
    // The last commit cannot be found, so the store only opens for reading.
    let store = SqliteStore::open_read_only(folder.path()).unwrap();
    let reported = reported_damage(&store).await;
    assert!(reported.iter().any(|line| line.contains("rows are repeated")), "{reported:?}");
    let later = store.commits(&scribe.run, 599, 10).await.unwrap_err().to_string();
    assert!(later.contains("rows are repeated") && later.contains("restore a backup"), "{later}");
}
