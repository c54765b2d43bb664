//! Jobs with real processes.

mod orphans;
mod separate_output;
mod shell;

use lockgate_runner::process::{
    Ended, ExitReason, Grace, Job, LogLimits, Stop, become_subreaper, end_orphans, run, task_ancestry,
};
use lockgate_runner::secret::{Masks, Secret};
use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tempfile::TempDir;

/// The tests share one process, which adopts all orphans. Tests that create orphans on purpose run alone.
static TABLE: RwLock<()> = RwLock::new(());

pub(crate) fn among_others() -> RwLockReadGuard<'static, ()> {
    become_subreaper().unwrap();
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

fn alone() -> RwLockWriteGuard<'static, ()> {
    become_subreaper().unwrap();
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn job(folder: &Path, command: &str) -> Job {
    Job {
        command: command.into(),
        shell: None,
        dir: folder.to_owned(),
        env: Vec::new(),
        remove_env: Vec::new(),
        stdin: None,
        timeout: Some(Duration::from_secs(30)),
        idle_timeout: None,
        grace: Grace { stopped: Duration::from_millis(200), left: Duration::from_millis(200) },
        lock: folder.join("lock"),
        log: folder.join("log"),
        masks: Arc::default(),
        limits: LogLimits::default(),
    }
}

/// Runs a job and returns its result and its lines.
fn run_job(job: Job) -> (Ended, Vec<String>) {
    run_with(job, Stop::new())
}

fn run_with(job: Job, stop: Stop) -> (Ended, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut lines = Vec::new();
    let ended = runtime.block_on(run(job, stop, &mut |line| lines.push(line.to_owned())));
    (ended, lines)
}

fn run_command(command: &str) -> (Ended, Vec<String>) {
    let folder = TempDir::new().unwrap();
    run_job(job(folder.path(), command))
}

/// A pid that a job wrote into a file.
pub(crate) fn pid_in(folder: &Path, name: &str) -> u32 {
    fs::read_to_string(folder.join(name)).unwrap().trim().parse().unwrap()
}

/// Whether a process exists and has not ended.
pub(crate) fn lives(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().unwrap().trim_start().starts_with(['Z', 'X'])
}

/// Polls until a condition is met; fails after a long time.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain: {what}");
}

#[test]
fn a_job_ends_with_its_exit_code() {
    let _table = among_others();
    for code in [0, 1, 7, 255] {
        assert_eq!(run_command(&format!("exit {code}")).0.reason, ExitReason::Exit(code));
    }
}

#[test]
fn a_job_killed_by_a_signal_reports_it() {
    let _table = among_others();
    assert_eq!(run_command("kill -KILL $$").0.reason, ExitReason::Signal(9));
    assert_eq!(run_command("kill -TERM $$").0.reason, ExitReason::Signal(15));
}

#[test]
fn stdout_and_stderr_lines_arrive_in_order_and_are_logged() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let (ended, lines) = run_job(job(folder.path(), "echo one; echo two >&2; printf 'three\\r\\nfo\\377r'"));
    assert_eq!(lines, ["one", "two", "three", "fo\u{fffd}r"]);
    assert_eq!(ended.tail, "one\ntwo\nthree\nfo\u{fffd}r");
    assert_eq!((ended.bytes, ended.truncated, ended.log_error), (19, false, None));
    assert_eq!(fs::read(folder.path().join("log")).unwrap(), b"one\ntwo\nthree\r\nfo\xffr");
}

#[test]
fn a_job_reads_its_stdin_which_is_empty_by_default() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let large = "x".repeat(300_000);
    let (ended, lines) = run_job(Job { stdin: Some(format!("{large}\n").into_bytes()), ..job(folder.path(), "wc -c; exit 3") });
    assert_eq!((ended.reason, lines[0].trim()), (ExitReason::Exit(3), "300001"));
    let unread = run_job(Job { stdin: Some(large.into_bytes()), ..job(folder.path(), "true") });
    assert_eq!(unread.0.reason, ExitReason::Exit(0));
    assert_eq!(run_command("cat; echo end").1, ["end"]);
}

#[test]
fn variables_are_set_and_removed() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    // PATH represents any variable of this process.
    let path = std::env::var("PATH").unwrap();
    let show = "echo \"[$PATH][$GIVEN][$BOTH]\"";
    let bare = Job {
        remove_env: vec!["PATH".into(), "BOTH".into()],
        ..job(folder.path(), "/usr/bin/env | /bin/grep -c ^PATH= || true")
    };
    assert_eq!(run_job(bare).1.last().map(String::as_str), Some("0"));
    let given = Job {
        env: vec![("GIVEN".into(), "a b'\"$c".into()), ("BOTH".into(), "set".into())],
        remove_env: vec!["BOTH".into()],
        ..job(folder.path(), show)
    };
    assert_eq!(run_job(given).1, [format!("[{path}][a b'\"$c][set]")]);
}

#[test]
fn a_job_leads_its_own_session_and_group_and_has_no_terminal() {
    let _table = among_others();
    let (ended, lines) = run_command("echo $$; cat /proc/$$/stat; if (: < /dev/tty) 2> /dev/null; then echo terminal; fi");
    assert_eq!(ended.reason, ExitReason::Exit(0));
    assert_eq!(lines.len(), 2, "{lines:?}");
    let fields: Vec<&str> = lines[1].rsplit(')').next().unwrap().split_whitespace().collect();
    let (group, session, terminal) = (fields[2], fields[3], fields[4]);
    assert_eq!((group, session, terminal), (lines[0].as_str(), lines[0].as_str(), "0"));
}

#[test]
fn a_command_that_cannot_start_reports_the_reason() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let reason = run_job(Job { dir: folder.path().join("absent"), ..job(folder.path(), "true") }).0.reason;
    assert!(matches!(&reason, ExitReason::NotStarted(why) if why.contains("absent does not exist")), "{reason:?}");
    let env = (0..40).map(|number| (format!("V{number}"), "x".repeat(100_000))).collect();
    let reason = run_job(Job { env, ..job(folder.path(), "true") }).0.reason;
    assert!(matches!(&reason, ExitReason::NotStarted(why) if why.contains("too long")), "{reason:?}");
    // Neither holds the lock any more.
    assert_eq!(run_job(job(folder.path(), "true")).0.reason, ExitReason::Exit(0));
}

#[test]
fn a_job_past_its_timeout_is_killed_even_if_it_ignores_sigterm() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let timeout = Duration::from_millis(100);
    let (ended, _) = run_job(Job { timeout: Some(timeout), ..job(folder.path(), "trap '' TERM; while :; do sleep 0.05; done") });
    assert_eq!((ended.reason, ended.survivors), (ExitReason::TimedOut(timeout), vec![]));
    assert_eq!(run_job(job(folder.path(), "true")).0.reason, ExitReason::Exit(0), "the lock is free");
}

#[test]
fn a_stopped_job_is_killed_with_children_that_ignore_sigterm() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let stubborn =
        "sh -c 'trap \"\" TERM; echo $$ > child; echo ready; while :; do sleep 0.05; done' & while :; do sleep 0.05; done";
    let stop = Stop::new();
    let asked = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(run(job(folder.path(), stubborn), stop, &mut |_| asked.stop()));
    assert_eq!((ended.reason, ended.survivors), (ExitReason::Stopped, vec![]));
    assert!(!lives(pid_in(folder.path(), "child")));
}

#[test]
fn a_stopped_job_may_clean_up_within_its_grace_period() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let tidy = "sh -c 'trap \"echo tidied; exit 0\" TERM; echo ready; while :; do sleep 0.01; done'; echo never";
    let stop = Stop::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut lines = Vec::new();
    let grace = Grace { stopped: Duration::from_secs(10), left: Duration::ZERO };
    let asked = stop.clone();
    let ended = runtime.block_on(run(Job { grace, ..job(folder.path(), tidy) }, stop, &mut |line| {
        lines.push(line.to_owned());
        if line == "ready" {
            asked.stop();
        }
    }));
    assert_eq!(ended.reason, ExitReason::Stopped);
    let has = |line: &str| lines.iter().any(|given| given == line);
    assert!(has("tidied") && !has("never"), "{lines:?}");
}

#[test]
fn a_suspended_job_can_be_stopped() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let (ended, _) = run_job(Job { timeout: Some(Duration::from_millis(100)), ..job(folder.path(), "kill -STOP $$") });
    assert_eq!(ended.reason, ExitReason::TimedOut(Duration::from_millis(100)));
}

#[test]
fn a_job_stopped_before_its_start_does_not_start() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let stop = Stop::new();
    stop.stop();
    assert_eq!(run_with(job(folder.path(), "touch started"), stop).0.reason, ExitReason::Stopped);
    assert!(!folder.path().join("started").exists());
}

#[test]
fn secrets_are_masked_in_log_lines_and_tail_across_chunk_boundaries() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let secret = Secret { name: "TOKEN".into(), value: "hunter2-hunter2".into() };
    let pieces = "printf 'a hunt'; sleep 0.05; printf 'er2-hun'; sleep 0.05; printf 'ter2 b\\n'; printf 'hunter2-hunter2' | base64; printf 'c hunter2-hunt'";
    let (ended, lines) = run_job(Job { masks: Arc::new(Masks::new([&secret])), ..job(folder.path(), pieces) });
    assert_eq!(lines, ["a ***TOKEN*** b", "***TOKEN***", "c hunter2-hunt"]);
    assert_eq!(ended.tail, lines.join("\n"));
    assert_eq!(fs::read_to_string(folder.path().join("log")).unwrap(), lines.join("\n"));
}

#[test]
fn two_hundred_megabytes_stay_within_the_limits() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let limits = LogLimits { head: 100_000, tail: 10_000 };
    let mut count = 0_u64;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let flood = "line=$(printf '%01000d' 0); (yes \"$line\" || true) | head -c 200000000; echo; echo the end";
    let secret = Secret { name: "TOKEN".into(), value: "hunter2-hunter2".into() };
    let masks = Arc::new(Masks::new([&secret]));
    let ended = runtime.block_on(run(Job { limits, masks, ..job(folder.path(), flood) }, Stop::new(), &mut |_| count += 1));
    assert_eq!((ended.reason, ended.bytes, ended.truncated), (ExitReason::Exit(0), 200_000_009, true));
    assert_eq!(count, 199_801 + 1);
    assert!(ended.tail.ends_with("the end") && ended.tail.len() <= 4096, "{}", ended.tail.len());
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.len() < 111_000 && log.contains(" bytes left out …\n") && log.ends_with("\nthe end\n"), "{}", log.len());
}

#[test]
fn a_tail_has_at_most_forty_lines() {
    let _table = among_others();
    let (ended, lines) = run_command("seq 1 100");
    assert_eq!(lines.len(), 100);
    assert_eq!(ended.tail.lines().count(), 40);
    assert!(ended.tail.starts_with("61\n") && ended.tail.ends_with("\n100"), "{}", ended.tail);
}

#[test]
fn a_full_disk_is_reported_and_does_not_stop_the_job() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let (ended, lines) = run_job(Job { log: "/dev/full".into(), ..job(folder.path(), "seq 1 100000; exit 5") });
    assert_eq!((ended.reason, lines.len()), (ExitReason::Exit(5), 100_000));
    assert!(ended.log_error.as_deref().is_some_and(|error| error.contains("No space left")), "{:?}", ended.log_error);
}

#[test]
fn a_job_whose_lock_is_held_is_refused_and_the_lock_is_released_afterwards() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let mut refused = None;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended =
        runtime.block_on(run(job(folder.path(), "echo $$; while ! [ -e go ]; do sleep 0.01; done"), Stop::new(), &mut |line| {
            assert_eq!(line, fs::read_to_string(folder.path().join("lock")).unwrap().trim());
            refused = std::thread::scope(|scope| scope.spawn(|| run_job(job(folder.path(), "true")).0.reason).join().ok());
            fs::write(folder.path().join("go"), "").unwrap();
        }));
    assert_eq!(ended.reason, ExitReason::Exit(0));
    assert!(matches!(&refused, Some(ExitReason::NotStarted(why)) if why.contains("is locked")), "{refused:?}");
    assert_eq!(run_job(job(folder.path(), "true")).0.reason, ExitReason::Exit(0));
    assert_eq!(end_orphans(&folder.path().join("lock")).unwrap().ended, Vec::<u32>::new());
}

#[test]
fn many_concurrent_jobs_all_end_correctly() {
    let _table = among_others();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            scope.spawn(move || {
                for round in 0..10 {
                    let (ended, lines) = run_command(&format!("echo {worker}.{round}; sleep 100 & exit {round}"));
                    assert_eq!(
                        (ended.reason, lines, ended.survivors),
                        (ExitReason::Exit(round), vec![format!("{worker}.{round}")], vec![])
                    );
                }
            });
        }
    });
}

#[test]
fn the_starting_process_is_an_ancestor_of_the_job() {
    let _table = among_others();
    let (_, lines) = run_command("cut -d ' ' -f 4 /proc/$$/stat");
    assert_eq!(lines, [std::process::id().to_string()]);
    assert!(task_ancestry::start_ticks(std::process::id()).is_some());
}
