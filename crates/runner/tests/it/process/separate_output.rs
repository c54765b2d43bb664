//! Jobs whose stdout is read separately from stderr, and jobs that stop printing.

use super::{among_others, job, run_job};
use lockgate_runner::process::{Ended, ExitReason, Grace, Job, Stop, run_with_output};
use lockgate_runner::secret::{Masks, Secret};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Runs a job and returns its result, its lines, and its stdout. The reader emits a line for each piece of output.
fn run_with_separate_output(job: Job) -> (Ended, Vec<String>, Vec<u8>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut lines, mut output, mut ends) = (Vec::new(), Vec::new(), 0);
    let mut on_line = |line: &str| lines.push(line.to_owned());
    let mut on_output = |bytes: &[u8], on_line: &mut dyn FnMut(&str)| {
        ends += usize::from(bytes.is_empty());
        output.extend_from_slice(bytes);
        if bytes.ends_with(b"!") {
            on_line("made of output");
        }
    };
    let ended = runtime.block_on(run_with_output(job, Stop::new(), &mut on_line, &mut on_output));
    assert_eq!(ends, 1, "the end is reported once");
    (ended, lines, output)
}

#[test]
fn stdout_is_read_separately_from_stderr_and_the_log_has_both() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let (ended, lines, output) =
        run_with_separate_output(job(folder.path(), "printf 'out\\n'; echo err >&2; printf 'more!'; exit 3"));
    assert_eq!((ended.reason, ended.bytes), (ExitReason::Exit(3), 13));
    assert_eq!(output, b"out\nmore!");
    assert!(lines.contains(&"err".to_owned()) && lines.contains(&"made of output".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("more!")), "{lines:?}");
    assert!(ended.tail.contains("err") && ended.tail.contains("made of output"), "{}", ended.tail);
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("out\n") && log.contains("err\n") && log.contains("more!"), "{log}");
}

#[test]
fn separate_stdout_is_masked_across_chunk_boundaries() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let secret = Secret { name: "TOKEN".into(), value: "hunter2-hunter2".into() };
    let pieces = "printf 'a hunt'; sleep 0.05; printf 'er2-hunter2 b'; printf 'hunter2' >&2; printf ' hunter2-hunt'";
    let (_, _, output) = run_with_separate_output(Job { masks: Arc::new(Masks::new([&secret])), ..job(folder.path(), pieces) });
    assert_eq!(String::from_utf8(output).unwrap(), "a ***TOKEN*** b hunter2-hunt");
}

#[test]
fn a_silent_job_is_killed_even_if_it_ignores_sigterm() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let idle = Duration::from_secs(1);
    let silent = "trap '' TERM; echo started; while :; do sleep 0.05; done";
    let (ended, lines) = run_job(Job { idle_timeout: Some(idle), ..job(folder.path(), silent) });
    assert_eq!((ended.reason, ended.survivors, lines), (ExitReason::Idle(idle), vec![], vec!["started".to_owned()]));
    let (ended, _, output) = run_with_separate_output(Job { idle_timeout: Some(idle), ..job(folder.path(), silent) });
    assert_eq!((ended.reason, output), (ExitReason::Idle(idle), b"started\n".to_vec()));
}

#[test]
fn output_on_either_stream_counts_as_activity() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    // In total it takes longer than it may be silent.
    let talk = "for i in 1 2 3 4 5 6 7 8; do echo out; sleep 0.2; echo err >&2; sleep 0.2; done";
    let (ended, _, _) = run_with_separate_output(Job { idle_timeout: Some(Duration::from_secs(2)), ..job(folder.path(), talk) });
    assert_eq!(ended.reason, ExitReason::Exit(0));
}

#[test]
fn a_silent_job_may_clean_up_within_its_grace_period() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let grace = Grace { stopped: Duration::from_secs(10), left: Duration::ZERO };
    let tidy = "trap 'echo tidied; exit 0' TERM; while :; do sleep 0.01; done";
    let idle = Duration::from_secs(1);
    let (ended, lines) = run_job(Job { grace, idle_timeout: Some(idle), ..job(folder.path(), tidy) });
    assert_eq!((ended.reason, lines.last().map(String::as_str)), (ExitReason::Idle(idle), Some("tidied")));
}
