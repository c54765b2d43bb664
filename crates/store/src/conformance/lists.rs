//! Conformance tests for lists, changes and scans.

use super::{Backend, HistoryWriter, hold_ids, hold_row, run_ids, run_row, timer_row};
use crate::store::{Append, HoldFilter, Orphan, Page, RunFilter, Store};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::{RunId, TimerId};
use lockgate_engine::run::Status;
use lockgate_engine::run::event::RunKind;
use lockgate_engine::run::index::{HoldRow, RunRow};
use lockgate_engine::time::Timestamp;

pub(super) async fn start_run(store: &dyn Store, run: &str, change: impl FnOnce(&mut Append)) -> HistoryWriter {
    let mut scribe = HistoryWriter::new(run);
    let mut append = scribe.next("one");
    change(&mut append);
    scribe.append(store, append).await.expect("the run is new");
    scribe
}

pub async fn runs_are_listed_newest_first_in_pages(backend: &dyn Backend) {
    let store = backend.process();
    assert_eq!(store.runs(Page::ALL).await, Ok(Vec::new()));
    for run in ["bbbb", "aaaa", "dddd", "cccc"] {
        start_run(&*store, run, |_| ()).await;
    }
    let all = store.runs(Page::ALL).await.unwrap();
    assert_eq!(run_ids(&all), ["cccc", "dddd", "aaaa", "bbbb"]);
    let first = store.runs(Page::first(3)).await.unwrap();
    assert_eq!(first, all[..3]);
    let rest = store.runs(Page { after: Some(first[2].cursor), limit: 3 }).await.unwrap();
    assert_eq!(rest, all[3..]);
    let none = store.runs(Page { after: Some(rest[0].cursor), limit: 3 }).await.unwrap();
    assert_eq!(none, []);
}

pub async fn runs_are_found_by_prefix_and_by_feature(backend: &dyn Backend) {
    let store = backend.process();
    for (run, feature) in [("abcd", Some("login")), ("abxx", None), ("b%_d", Some("logout")), ("abce", Some("login"))] {
        start_run(&*store, run, |append| append.index.run.as_mut().unwrap().feature = feature.map(str::to_owned)).await;
    }
    let found = async |prefix| run_ids(&store.find_runs(prefix).await.unwrap()).join(" ");
    assert_eq!(found("ab").await, "abce abxx abcd");
    assert_eq!(found("abc").await, "abce abcd");
    assert_eq!(found("abcd").await, "abcd");
    assert_eq!(found("abcde").await, "");
    assert_eq!(found("%").await, "");
    assert_eq!(found("b%").await, "b%_d");
    assert_eq!(found("").await, "abce b%_d abxx abcd");
    assert_eq!(run_ids(&store.runs_of_feature("login").await.unwrap()), ["abce", "abcd"]);
    assert_eq!(store.runs_of_feature("log").await, Ok(Vec::new()));
}

/// A claim.
pub async fn runs_are_listed_by_status_workflow_feature_and_age(backend: &dyn Backend) {
    let store = backend.process();
    let runs = [
        ("aaaa", Status::Complete, "build", Some("login"), 10),
        ("bbbb", Status::Running, "build", None, 20),
        ("cccc", Status::Waiting, "deploy", Some("login"), 30),
        ("dddd", Status::Failed, "build", Some("login"), 40),
    ];
    for (run, status, workflow, feature, changed_at) in runs {
        start_run(&*store, run, |append| {
            let row = append.index.run.as_mut().unwrap();
            row.status = status.into();
            row.workflow = workflow.to_owned();
            row.feature = feature.map(str::to_owned);
            row.changed_at = Timestamp::from_millis(changed_at);
        })
        .await;
    }
    let listed = async |filter: RunFilter, page: Page| {
        let listed = store.list_runs(filter, page).await.unwrap();
        (run_ids(&listed).join(" "), listed.last().map(|run| run.cursor))
    };
    let all = async |filter: RunFilter| listed(filter, Page::ALL).await.0;
    assert_eq!(all(RunFilter::default()).await, "dddd cccc bbbb aaaa");
    assert_eq!(all(RunFilter::with_status([Status::Complete, Status::Failed])).await, "dddd aaaa");
    let build = RunFilter { workflow: Some("build".to_owned()), ..RunFilter::default() };
    assert_eq!(all(build.clone()).await, "dddd bbbb aaaa");
    assert_eq!(all(RunFilter { feature: Some("login".to_owned()), ..build.clone() }).await, "dddd aaaa");
    assert_eq!(all(RunFilter { changed_before: Some(Timestamp::from_millis(30)), ..RunFilter::default() }).await, "bbbb aaaa");
    let (first, after) = listed(build.clone(), Page::first(2)).await;
    assert_eq!((first.as_str(), listed(build, Page { after, limit: 2 }).await.0.as_str()), ("dddd bbbb", "aaaa"));
}

/// A claim.
pub async fn a_run_row_is_replaced_by_its_successor(backend: &dyn Backend) {
    let store = backend.process();
    let mut scribe = start_run(&*store, "aaaa", |_| ()).await;
    let changed = RunRow {
        kind: RunKind::Plan.into(),
        workflow: "other".to_owned(),
        feature: Some("login".to_owned()),
        status: Status::Waiting.into(),
        phase: Some("review".to_owned()),
        created_at: Timestamp::from_millis(11),
        changed_at: Timestamp::from_millis(12),
        parent: Some(RunId::new("zzzz")),
        ..run_row(&scribe.run)
    };
    let mut append = scribe.next("two");
    append.index.run = Some(changed.clone());
    scribe.append(&*store, append).await.unwrap();
    scribe.write(&*store, "three").await;
    assert_eq!(store.runs(Page::ALL).await.unwrap()[0].row, changed);
    assert_eq!(store.stored_run(&scribe.run).await.unwrap().unwrap().row, changed);
}

pub async fn open_holds_are_listed_longest_waiting_first_in_pages(backend: &dyn Backend) {
    let store = backend.process();
    let mut one = start_run(&*store, "aaaa", |append| {
        append.index.run.as_mut().unwrap().feature = Some("login".to_owned());
        append.index.holds = vec![hold_row(&append.run, "h1", 300), hold_row(&append.run, "h2", 100)];
    })
    .await;
    start_run(&*store, "bbbb", |append| {
        append.index.holds = vec![hold_row(&append.run, "h3", 200), hold_row(&append.run, "h4", 100)]
    })
    .await;
    let open = async |page| store.holds(HoldFilter::Open, page).await.unwrap();
    let all = open(Page::ALL).await;
    assert_eq!(hold_ids(&all), ["h2", "h4", "h3", "h1"]);
    assert_eq!((all[0].workflow.as_str(), all[0].feature.as_deref(), all[1].feature.as_deref()), ("ship", Some("login"), None));
    assert_eq!(all[0].row, hold_row(&one.run, "h2", 100));
    assert_eq!(open(Page::first(1)).await, all[..1]);
    assert_eq!(open(Page { after: Some(all[0].cursor), limit: 2 }).await, all[1..3]);
    assert_eq!(open(Page { after: Some(all[2].cursor), limit: 2 }).await, all[3..]);

    let mut settle = one.next("two");
    settle.index.holds = vec![HoldRow { state: HoldState::Settled, ..hold_row(&one.run, "h2", 100) }];
    one.append(&*store, settle).await.unwrap();
    assert_eq!(hold_ids(&open(Page::ALL).await), ["h4", "h3", "h1"]);
    let mut reopen = one.next("three");
    reopen.index.holds = vec![HoldRow { revision: 2, ..hold_row(&one.run, "h2", 250) }];
    one.append(&*store, reopen).await.unwrap();
    assert_eq!(hold_ids(&open(Page::ALL).await), ["h4", "h3", "h2", "h1"]);
}

pub async fn holds_of_a_run_are_listed_in_order(backend: &dyn Backend) {
    let store = backend.process();
    let mut one = start_run(&*store, "aaaa", |append| append.index.holds = vec![hold_row(&append.run, "h2", 300)]).await;
    start_run(&*store, "bbbb", |append| append.index.holds = vec![hold_row(&append.run, "h3", 1)]).await;
    let states = [HoldState::Open, HoldState::Checking, HoldState::Settled, HoldState::Void];
    for (number, state) in states.into_iter().enumerate() {
        let mut append = one.next("more");
        append.index.holds = vec![HoldRow { state, ..hold_row(&one.run, &format!("h1{number}"), 1) }];
        one.append(&*store, append).await.unwrap();
    }
    let filter = HoldFilter::OfRun(one.run.clone());
    let all = store.holds(filter.clone(), Page::ALL).await.unwrap();
    assert_eq!(hold_ids(&all), ["h2", "h10", "h11", "h12", "h13"]);
    assert_eq!(all[1..].iter().map(|hold| hold.row.state).collect::<Vec<_>>(), states);
    assert_eq!(store.holds(filter.clone(), Page::first(2)).await.unwrap(), all[..2]);
    assert_eq!(store.holds(filter, Page { after: Some(all[1].cursor), limit: 9 }).await.unwrap(), all[2..]);
    assert_eq!(store.holds(HoldFilter::OfRun(RunId::new("none")), Page::ALL).await, Ok(Vec::new()));
}

pub async fn holds_are_found_by_prefix(backend: &dyn Backend) {
    let store = backend.process();
    // Two runs may generate the same id: both are found, and neither replaces the other's row.
    for run in ["aaaa", "bbbb"] {
        start_run(&*store, run, |append| {
            let own = format!("x{run}");
            append.index.holds = vec![hold_row(&append.run, "same", 1), hold_row(&append.run, &own, 2)];
        })
        .await;
    }
    let found = async |prefix| hold_ids(&store.find_holds(prefix).await.unwrap()).join(" ");
    assert_eq!(found("x").await, "xaaaa xbbbb");
    assert_eq!(found("xa").await, "xaaaa");
    assert_eq!(found("sam").await, "same same");
    assert_eq!(found("y").await, "");
    let same = store.find_holds("same").await.unwrap();
    assert_eq!(same.iter().map(|hold| hold.row.run.as_str()).collect::<Vec<_>>(), ["aaaa", "bbbb"]);
}

pub async fn timers_come_due_in_order_and_are_removed(backend: &dyn Backend) {
    let store = backend.process();
    let mut one = start_run(&*store, "aaaa", |append| {
        append.index.timers = vec![timer_row(&append.run, "t1", 300), timer_row(&append.run, "t2", 100)];
    })
    .await;
    start_run(&*store, "bbbb", |append| append.index.timers = vec![timer_row(&append.run, "t1", 200)]).await;
    let due = async |moment, limit| {
        let timers = store.timers(Timestamp::from_millis(moment), limit).await.unwrap();
        timers.iter().map(|timer| format!("{}/{}", timer.run, timer.timer)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(due(99, 9).await, "");
    assert_eq!(due(200, 9).await, "aaaa/t2 bbbb/t1");
    assert_eq!(due(999, 9).await, "aaaa/t2 bbbb/t1 aaaa/t1");
    assert_eq!(due(999, 1).await, "aaaa/t2");
    let mut append = one.next("two");
    append.index.timers_removed = vec![TimerId::new("t2"), TimerId::new("never")];
    append.index.timers = vec![timer_row(&one.run, "t1", 50)];
    one.append(&*store, append).await.unwrap();
    assert_eq!(due(999, 9).await, "aaaa/t1 bbbb/t1");
    assert_eq!(store.timers(Timestamp::from_millis(50), 9).await.unwrap(), [timer_row(&one.run, "t1", 50)]);
}

pub async fn commits_of_any_process_are_changes(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = start_run(&*store, "aaaa", |_| ()).await;
    for writer in [&store, &other] {
        let marker = store.changes();
        assert_eq!(store.changes(), marker, "reading changes nothing");
        let waiting = store.changed(marker);
        let ((), changed) = futures::future::join(scribe.write(&**writer, "more"), waiting).await;
        assert_ne!(changed.unwrap(), marker);
    }
    // A change that came before anyone waited is not lost.
    let marker = store.changes();
    scribe.write(&*other, "last").await;
    assert_ne!(store.changed(marker).await.unwrap(), marker);
    for writer in [&store, &other] {
        let marker = store.changes();
        let (run, known) = (scribe.run.clone(), scribe.version);
        let waiting = store.run_changed(&run, marker, Some(known));
        let ((), changed) = futures::future::join(scribe.write(&**writer, "more"), waiting).await;
        let marker = changed.unwrap();
        scribe.write(&**writer, "last").await;
        store.run_changed(&run, marker, None).await.unwrap();
    }
}

pub async fn everything_is_scanned_in_pages(backend: &dyn Backend) {
    let store = backend.process();
    let digest = Digest::of(b"value");
    let mut one = start_run(&*store, "bbbb", |append| {
        append.values = vec![(digest, b"value".to_vec())];
        append.index.referenced_values = vec![digest];
        append.index.holds = vec![hold_row(&append.run, "h1", 1)];
        append.index.timers = vec![timer_row(&append.run, "t1", 1)];
        append.materialized = Some(b"state".to_vec());
    })
    .await;
    let two = start_run(&*store, "aaaa", |_| ()).await;
    one.write(&*store, "two").await;
    one.epoch = Some(store.claim(&one.run).await.unwrap());

    let (mut commits, mut after) = (Vec::new(), None);
    while let Some(row) = store.scan_commits(after, 1).await.unwrap().pop() {
        after = Some(row.place);
        commits.push(row);
    }
    assert_eq!(store.scan_commits(None, 9).await.unwrap(), commits);
    let seen: Vec<_> = commits.iter().map(|row| (row.run.as_ref().unwrap().as_str(), row.commit.version)).collect();
    assert_eq!(seen, [("bbbb", 1), ("bbbb", 2), ("aaaa", 1)]);

    let runs = store.scan_runs(None, 9).await.unwrap();
    assert_eq!(store.scan_runs(Some(runs[0].place), 9).await.unwrap(), runs[1..]);
    assert_eq!(runs[0].row, run_row(&one.run));
    assert_eq!((runs[0].driver.as_ref(), Some(runs[0].epoch)), (Some(store.driver()), one.epoch));
    assert_eq!(
        runs[0].materialized.as_ref().map(|materialized| (materialized.version, materialized.state.as_slice())),
        Some((1, &b"state"[..]))
    );
    assert_eq!(
        (runs[0].holds.as_slice(), runs[0].timers.as_slice()),
        (&[hold_row(&one.run, "h1", 1)][..], &[timer_row(&one.run, "t1", 1)][..])
    );
    assert_eq!(runs[0].referenced_values, [digest]);
    assert_eq!((runs[1].row.run.clone(), runs[1].driver.clone(), runs[1].epoch), (two.run.clone(), None, 0));
    assert_eq!(store.stored_run(&two.run).await.unwrap().as_ref(), Some(&runs[1]));

    let values = store.scan_values(None, 9).await.unwrap();
    assert_eq!(values.iter().map(|value| value.bytes.as_slice()).collect::<Vec<_>>(), [b"value"]);
    assert_eq!(store.scan_values(Some(digest), 9).await, Ok(Vec::new()));
    assert_eq!((store.orphans().await, store.damage().await), (Ok(Vec::new()), Ok(Vec::new())));
}

pub async fn orphans_are_found(backend: &dyn Backend) {
    let store = backend.process();
    let (lonely, missing) = (Digest::of(b"lonely"), Digest::of(b"missing"));
    let scribe = start_run(&*store, "aaaa", |append| {
        append.values = vec![(lonely, b"lonely".to_vec())];
        append.index.referenced_values = vec![missing];
    })
    .await;
    let expected =
        vec![Orphan::ValueWithoutReference(lonely), Orphan::ReferenceWithoutValue { run: scribe.run, digest: missing }];
    assert_eq!(store.orphans().await, Ok(expected));
}

pub async fn an_append_dropped_before_it_started_does_nothing(backend: &dyn Backend) {
    let store = backend.process();
    let mut scribe = start_run(&*store, "aaaa", |_| ()).await;
    drop(store.append(scribe.next("dropped")));
    scribe.write(&*store, "two").await;
    assert_eq!(store.load(&scribe.run).await.unwrap().unwrap().head(), (2, scribe.hash));
}
