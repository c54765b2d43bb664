//! Delivery of notices: at least once, by one process at a time, with retries, and without affecting the run.

use crate::no_effects::NoEffects;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{PhaseId, RunId, TaskId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Actor, Caller, Channel, CommandKind, Create, Credential, TerminalRule};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::Created;
use lockgate_engine::run::index::NamedVariants;
use lockgate_engine::run::outbox::{Notice, NoticeChannel, NoticeId, NoticeKind, Subscriptions};
use lockgate_engine::spec::workflow::{Phase, Task, Work, Workflow};
use lockgate_engine::time::Timestamp;
use lockgate_runner::driver::{start_parked, submit};
use lockgate_runner::outbox::{Courier, Deliver, NotDelivered};
use lockgate_runner::runtime::{Clock, OrphanError, Perform, Performed, Runtime, Stop, SystemClock};
use lockgate_runner::start::Prepared;
use lockgate_store::{MemoryStore, OutboxFilter, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

#[derive(Clone, Copy)]
enum Does {
    Delivers,
    Fails,
    Hangs,
}

/// A channel that records its notices.
#[derive(Clone)]
struct Post {
    does: Does,
    given: Arc<Mutex<Vec<String>>>,
    is_given: Arc<Notify>,
    in_parallel: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Post {
    fn new(does: Does) -> Self {
        Self { does, given: Arc::default(), is_given: Arc::default(), in_parallel: Arc::default() }
    }

    fn given(&self) -> Vec<String> {
        self.given.lock().unwrap().clone()
    }
}

impl Deliver for Post {
    fn is_ours(&self, run: &RunId) -> bool {
        !run.as_str().starts_with("theirs")
    }

    fn deliver(&self, run: &Run, id: &NoticeId, notice: &Notice) -> BoxFuture<'static, Result<(), NotDelivered>> {
        assert_eq!(run.id, id.run);
        self.given.lock().unwrap().push(format!("{id} {}", notice.kind.as_str()));
        self.is_given.notify_one();
        let (does, in_parallel) = (self.does, self.in_parallel.clone());
        Box::pin(async move {
            let now = in_parallel.0.fetch_add(1, Ordering::Relaxed) + 1;
            in_parallel.1.fetch_max(now, Ordering::Relaxed);
            tokio::task::yield_now().await;
            in_parallel.0.fetch_sub(1, Ordering::Relaxed);
            match does {
                Does::Delivers => Ok(()),
                Does::Fails => Err(NotDelivered::Command("it ended with exit code 1".to_owned())),
                Does::Hangs => std::future::pending().await,
            }
        })
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(40)
    }
}

/// Performs nothing but delivers notices.
struct Notifying(Arc<Courier>);

impl Perform for Notifying {
    fn start(&self, run: &Run, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        NoEffects.start(run, effect, stop)
    }

    fn courier(&self) -> Option<&Arc<Courier>> {
        Some(&self.0)
    }

    fn end_orphans(&self, run: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        NoEffects.end_orphans(run)
    }
}

/// A wall clock that follows the clock of the runtime, which tests can pause.
struct RuntimeClock(tokio::time::Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000).plus(self.0.elapsed())
    }

    fn sleep_until(&self, due: Timestamp, _: Option<Duration>) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(due.since(self.now())))
    }

    fn seed(&self) -> [u8; 16] {
        SystemClock.seed()
    }
}

fn process(store: MemoryStore, post: &Post) -> Runtime {
    process_since(tokio::time::Instant::now(), store, post)
}

/// Like [`process`], with the clock of other processes that were given the same start.
fn process_since(start: tokio::time::Instant, store: MemoryStore, post: &Post) -> Runtime {
    let mut subscriptions = Subscriptions::NONE;
    subscriptions.subscribe(NoticeChannel::Command, NoticeKind::ALL.iter().copied());
    let (store, clock): (Arc<dyn Store>, Arc<dyn Clock>) = (Arc::new(store), Arc::new(RuntimeClock(start)));
    let courier = Courier::new(store.clone(), clock.clone(), subscriptions, Box::new(post.clone()));
    Runtime { store, perform: Arc::new(Notifying(courier)), clock }
}

fn courier(runtime: &Runtime) -> &Arc<Courier> {
    runtime.perform.courier().expect("it delivers")
}

fn person() -> Caller {
    let person = Actor { credential: Credential::Person, terminal: true, ..Actor::automatic("ada", Channel::Command) };
    Caller::new(person, TerminalRule::NotRequired)
}

/// Starts a run and cancels it, which people are notified of.
async fn cancelled(runtime: &Runtime, run: &str) {
    let task = Task::new(TaskId::new("t"), Work::Run("work".into()));
    let phase = Phase { tasks: vec![task], ..Phase::new(PhaseId::new("p")) };
    let workflow = Workflow { name: "flow".into(), phases: vec![phase], ..Workflow::default() };
    let bytes = workflow.to_bytes();
    let created = Created::new(RunId::new(run), Digest::of(&bytes), "out".into(), runtime.store.driver().clone());
    let values = vec![(created.definition, bytes)];
    let prepared = Prepared { create: Create { created, presets: Vec::new() }, workflow: Arc::new(workflow), values };
    start_parked(runtime, person(), prepared).await.unwrap();
    submit(runtime, &RunId::new(run), person(), CommandKind::Cancel { reason: None }).await.unwrap();
}

async fn undelivered(store: &dyn Store) -> usize {
    store.outbox(OutboxFilter::Undelivered, 99).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_delivered_after_its_commit_and_leaves_the_outbox() {
    let (store, post) = (MemoryStore::new(), Post::new(Does::Delivers));
    let runtime = process(store.clone(), &post);
    cancelled(&runtime, "aaaa").await;
    assert_eq!(undelivered(&store).await, 1, "the commit does not wait for the delivery");
    courier(&runtime).settle().await;
    assert_eq!(post.given(), ["aaaa-2 run_ended"]);
    assert_eq!(undelivered(&store).await, 0);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(post.given().len(), 1, "it is not delivered again");
}

#[test]
fn a_notice_whose_deliverer_was_killed_is_delivered_by_the_next_process_with_the_same_id() {
    let store = MemoryStore::new();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (killed, first, start) = (runtime(), Post::new(Does::Hangs), tokio::time::Instant::now());
    killed.block_on(async {
        let runtime = process_since(start, store.another_process(), &first);
        cancelled(&runtime, "aaaa").await;
        first.is_given.notified().await;
    });
    // Everything the process was doing ends here, as with a kill.
    drop(killed);
    let next = Post::new(Does::Delivers);
    runtime().block_on(async {
        let runtime = process_since(start, store.another_process(), &next);
        courier(&runtime).settle().await;
    });
    assert_eq!((next.given(), first.given()), (vec!["aaaa-2 run_ended".to_owned()], vec!["aaaa-2 run_ended".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn what_another_process_committed_and_did_not_deliver_is_found_by_one_that_is_running() {
    let (store, post) = (MemoryStore::new(), Post::new(Does::Delivers));
    let runtime = process(store.clone(), &post);
    courier(&runtime).wake();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let other = store.another_process();
    let died = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { cancelled(&process(other, &Post::new(Does::Hangs)), "aaaa").await });
    });
    died.join().unwrap();
    post.is_given.notified().await;
    courier(&runtime).settle().await;
    assert_eq!((post.given(), undelivered(&store).await), (vec!["aaaa-2 run_ended".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn two_processes_deliver_a_notice_once() {
    let (store, post) = (MemoryStore::new(), Post::new(Does::Delivers));
    let worlds = [process(store.another_process(), &post), process(store.another_process(), &post)];
    for number in 0..20 {
        cancelled(&worlds[number % 2], &format!("run{number:02}")).await;
    }
    futures::future::join(courier(&worlds[0]).settle(), courier(&worlds[1]).settle()).await;
    let mut given = post.given();
    given.sort();
    given.dedup();
    assert_eq!((given.len(), post.given().len(), undelivered(&store).await), (20, 20, 0));
    assert!(post.in_parallel.1.load(Ordering::Relaxed) <= 8, "each process delivers few in parallel");
}

#[tokio::test(start_paused = true)]
async fn a_failing_delivery_is_retried_ever_later_and_then_given_up() {
    let (store, post) = (MemoryStore::new(), Post::new(Does::Fails));
    let runtime = process(store.clone(), &post);
    cancelled(&runtime, "aaaa").await;
    courier(&runtime).settle().await;
    assert_eq!((post.given().len(), undelivered(&store).await), (1, 1), "settling does not wait for the next attempt");
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(post.given().len(), 2, "the first retry comes soon");
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(post.given(), vec!["aaaa-2 run_ended"; 8]);
    let given_up = store.outbox(OutboxFilter::GivenUp, 99).await.unwrap();
    assert_eq!((given_up.len(), given_up[0].attempts, undelivered(&store).await), (1, 8, 0));
    assert_eq!(given_up[0].error.as_deref(), Some("it ended with exit code 1"));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_delivery_delays_neither_commits_nor_the_end_for_long() {
    let (store, post) = (MemoryStore::new(), Post::new(Does::Hangs));
    let runtime = process(store.clone(), &post);
    let started = tokio::time::Instant::now();
    for run in ["aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff"] {
        cancelled(&runtime, run).await;
    }
    assert_eq!(started.elapsed(), Duration::ZERO, "commits wait for nothing");
    courier(&runtime).settle().await;
    assert_eq!(started.elapsed(), post.patience());
    assert_eq!((post.given().len(), undelivered(&store).await), (4, 6), "few at a time, and none is lost");
}

#[tokio::test(start_paused = true)]
async fn notices_of_other_projects_in_the_same_database_are_left_alone() {
    let (store, post) = (MemoryStore::new(), Post::new(Does::Delivers));
    let runtime = process(store.clone(), &post);
    for number in 0..70 {
        cancelled(&runtime, &format!("theirs{number:02}")).await;
    }
    cancelled(&runtime, "aaaa").await;
    courier(&runtime).settle().await;
    assert_eq!((post.given(), undelivered(&store).await), (vec!["aaaa-2 run_ended".to_owned()], 70));
}
