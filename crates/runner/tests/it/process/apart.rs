//! Jobs whose output is read apart from their errors, and jobs that fall silent.

use super::{among_others, job, run_job};
use lockgate_runner::process::{Ended, Grace, How, Job, Stop, run_reading};
use lockgate_runner::secret::{Masks, Secret};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Runs a job and gives what became of it, its lines, and what it printed as output. A line is made for each piece of output.
fn run_apart(job: Job) -> (Ended, Vec<String>, Vec<u8>) {
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
    let ended = runtime.block_on(run_reading(job, Stop::new(), &mut on_line, &mut on_output));
    assert_eq!(ends, 1, "the end is told once");
    (ended, lines, output)
}

#[test]
fn output_is_read_apart_from_errors_and_the_log_has_both() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let (ended, lines, output) = run_apart(job(folder.path(), "printf 'out\\n'; echo err >&2; printf 'more!'; exit 3"));
    assert_eq!((ended.how, ended.bytes), (How::Exit(3), 13));
    assert_eq!(output, b"out\nmore!");
    assert!(lines.contains(&"err".to_owned()) && lines.contains(&"made of output".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("more!")), "{lines:?}");
    assert!(ended.tail.contains("err") && ended.tail.contains("made of output"), "{}", ended.tail);
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("out\n") && log.contains("err\n") && log.contains("more!"), "{log}");
}

#[test]
fn output_that_is_read_apart_is_masked_wherever_it_is_cut() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let secret = Secret { name: "TOKEN".into(), value: "hunter2-hunter2".into() };
    let pieces = "printf 'a hunt'; sleep 0.05; printf 'er2-hunter2 b'; printf 'hunter2' >&2; printf ' hunter2-hunt'";
    let (_, _, output) = run_apart(Job { masks: Arc::new(Masks::new([&secret])), ..job(folder.path(), pieces) });
    assert_eq!(String::from_utf8(output).unwrap(), "a ***TOKEN*** b hunter2-hunt");
}

#[test]
fn a_job_that_falls_silent_is_ended_though_it_ignores_the_request() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let idle = Duration::from_secs(1);
    let silent = "trap '' TERM; echo begun; while :; do sleep 0.05; done";
    let (ended, lines) = run_job(Job { idle_timeout: Some(idle), ..job(folder.path(), silent) });
    assert_eq!((ended.how, ended.survivors, lines), (How::Idle(idle), vec![], vec!["begun".to_owned()]));
    let (ended, _, output) = run_apart(Job { idle_timeout: Some(idle), ..job(folder.path(), silent) });
    assert_eq!((ended.how, output), (How::Idle(idle), b"begun\n".to_vec()));
}

#[test]
fn a_job_that_keeps_talking_on_either_side_is_not_silent() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    // In all it takes longer than it may be silent.
    let talk = "for i in 1 2 3 4 5 6 7 8; do echo out; sleep 0.2; echo err >&2; sleep 0.2; done";
    let (ended, _, _) = run_apart(Job { idle_timeout: Some(Duration::from_secs(2)), ..job(folder.path(), talk) });
    assert_eq!(ended.how, How::Exit(0));
}

#[test]
fn a_silent_job_may_tidy_up_within_its_grace() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let grace = Grace { stopped: Duration::from_secs(10), left: Duration::ZERO };
    let tidy = "trap 'echo tidied; exit 0' TERM; while :; do sleep 0.01; done";
    let idle = Duration::from_secs(1);
    let (ended, lines) = run_job(Job { grace, idle_timeout: Some(idle), ..job(folder.path(), tidy) });
    assert_eq!((ended.how, lines.last().map(String::as_str)), (How::Idle(idle), Some("tidied")));
}
