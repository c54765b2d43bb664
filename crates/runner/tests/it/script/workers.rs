//! Worker processes: reused, replaced, ended.

use super::{body, command, evaluator, fails, json};
use lockgate_engine::digest::Digest;
use lockgate_runner::script::{Call, Evaluator, Files, ScriptError, StoredPart, WorkerCommand};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The workers with this marker in their environment.
fn workers(mark: &str) -> Vec<Pid> {
    let wanted = format!("{}={mark}", super::WORKER_VARIABLE).into_bytes();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    processes
        .filter(|process: &i32| {
            // A process that has ended but was not reaped yet has an empty environment.
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
        })
        .filter_map(Pid::from_raw)
        .collect()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not come about");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A call that writes a file when it has started, and then never ends.
fn endless(folder: &Path) -> Call {
    let mut call = body("writeFile('started', ''); while (true);");
    call.files = Some(Files { output_dir: folder.into(), feature: None, expected: Vec::new() });
    call.limits.time = Duration::from_secs(60);
    call
}

#[tokio::test]
async fn a_worker_killed_during_a_call_is_an_error_and_is_replaced() {
    let folder = TempDir::new().unwrap();
    let evaluator = Evaluator::new(command("killed-within"));
    let kill = async {
        until("the call", || folder.path().join("started").exists()).await;
        let [worker] = workers("killed-within")[..] else { panic!("not one worker") };
        kill_process(worker, Signal::KILL).unwrap();
    };
    let (error, ()) = tokio::join!(fails(&evaluator, endless(folder.path())), kill);
    match error {
        ScriptError::Worker(what) => assert!(what.contains("signal: 9"), "{what}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(json(&evaluator, body("return 1")).await, "1");
}

#[tokio::test]
async fn an_idle_worker_that_exited_is_replaced_transparently() {
    let evaluator = Evaluator::new(command("killed-resting"));
    for expected in 1..5 {
        assert_eq!(json(&evaluator, body(&format!("return {expected}"))).await, expected.to_string());
        let resting = workers("killed-resting");
        assert_eq!(resting.len(), 1);
        kill_process(resting[0], Signal::KILL).unwrap();
        until("its end", || workers("killed-resting").is_empty()).await;
    }
}

#[tokio::test]
async fn a_dropped_call_stops_its_worker_and_the_next_reply_is_correct() {
    let folder = TempDir::new().unwrap();
    let evaluator = Evaluator::new(command("dropped"));
    for round in 0..3 {
        tokio::select! {
            outcome = evaluator.call(endless(folder.path())) => panic!("{outcome:?}"),
            () = until("the call", || folder.path().join("started").exists()) => {}
        }
        fs::remove_file(folder.path().join("started")).unwrap();
        until("the worker's end", || workers("dropped").is_empty()).await;
        assert_eq!(json(&evaluator, body(&format!("return {round}"))).await, round.to_string());
        until("the rest of one worker", || workers("dropped").len() == 1).await;
        for worker in workers("dropped") {
            kill_process(worker, Signal::KILL).unwrap();
        }
        until("its end", || workers("dropped").is_empty()).await;
    }
}

#[tokio::test]
async fn calls_dropped_at_any_time_never_mix_up_replies() {
    let evaluator = evaluator();
    json(&evaluator, body("return 0")).await;
    for round in 0..60_u64 {
        let dropped = evaluator.call(body("let n = 0; for (let i = 0; i < 3e4; i++) n += i; return 'dropped'"));
        drop(tokio::time::timeout(Duration::from_micros(round * 40), dropped).await);
        assert_eq!(json(&evaluator, body(&format!("return {round}"))).await, round.to_string());
    }
}

#[tokio::test]
async fn dropping_the_evaluator_stops_its_workers() {
    let evaluator = Evaluator::new(command("evaluator-dropped"));
    evaluator.warm();
    let calls = (0..4).map(|_| json(&evaluator, body("let n = 0; for (let i = 0; i < 1e5; i++) n += i; return 1")));
    futures::future::join_all(calls).await;
    assert!(!workers("evaluator-dropped").is_empty());
    drop(evaluator);
    until("the end of all", || workers("evaluator-dropped").is_empty()).await;
}

const PARENT_VARIABLE: &str = "LOCKGATE_TEST_PARENT";

/// Not a test: the program that the next test kills.
#[tokio::test]
async fn parent_entry() {
    if let Some(folder) = std::env::var_os(PARENT_VARIABLE) {
        let mut call = endless(Path::new(&folder));
        call.source = "writeFile('started', ''); [].reverse.call({length: 2 ** 53 - 1})".into();
        drop(Evaluator::new(command("orphaned")).call(call).await);
    }
}

#[tokio::test]
async fn no_worker_outlives_its_parent_even_in_an_endless_built_in() {
    let folder = TempDir::new().unwrap();
    let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "script::workers::parent_entry"])
        .env(PARENT_VARIABLE, folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the call", || folder.path().join("started").exists()).await;
    assert_eq!(workers("orphaned").len(), 1);
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("the worker's end", || workers("orphaned").is_empty()).await;
}

#[tokio::test]
async fn many_concurrent_calls_are_answered_by_few_workers() {
    let evaluator = Evaluator::new(command("many"));
    let text = format!("[{}]", (0..500).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let calls = (0..200).map(|number| {
        let mut call = body("let sum = n; for (const x of big) sum += x; return sum");
        call.globals = vec![("n".into(), number.to_string())];
        call.stored =
            vec![StoredPart { path: vec!["big".into()], digest: Digest::of(text.as_bytes()), json: text.as_str().into() }];
        let evaluator = &evaluator;
        async move { (number, json(evaluator, call).await) }
    });
    for (number, sum) in futures::future::join_all(calls).await {
        assert_eq!(sum, (number + 499 * 500 / 2).to_string());
    }
    assert!(workers("many").len() <= 4, "{:?}", workers("many"));
}

#[tokio::test]
async fn a_call_with_megabytes_is_answered() {
    let evaluator = evaluator();
    let big = format!("\"{}\"", "x".repeat(5 << 20));
    let mut call = body("return [big.length, stored.length]");
    call.limits.memory = 64 << 20;
    call.globals = vec![("big".into(), big.clone())];
    call.stored = vec![StoredPart { path: vec!["stored".into()], digest: Digest::of(big.as_bytes()), json: big.into() }];
    for _ in 0..3 {
        assert_eq!(json(&evaluator, call.clone()).await, "[5242880,5242880]");
    }
}

#[tokio::test]
async fn a_worker_that_cannot_start_is_an_error_that_names_it() {
    let absent = WorkerCommand { program: "/nonexistent/program".into(), args: vec![], env: vec![] };
    let error = fails(&Evaluator::new(absent), body("return 1")).await;
    assert!(matches!(&error, ScriptError::Worker(what) if what.contains("/nonexistent/program")), "{error:?}");
    // Ends immediately without a reply.
    let mut mute = command("1");
    mute.env.clear();
    let error = fails(&Evaluator::new(mute), body("return 1")).await;
    assert!(matches!(&error, ScriptError::Worker(what) if what.contains("exit status: 0")), "{error:?}");
}
