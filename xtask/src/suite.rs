//! Runs one test program within a time limit, passes its output on, and reads its summary.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// The number of tests by outcome.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    /// Failed tests, and suites that did not finish.
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl Tally {
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed, ignored: self.ignored + other.ignored }
    }

    /// Whether nothing failed and nothing was ignored.
    pub(crate) fn good(&self) -> bool {
        self.failed == 0 && self.ignored == 0
    }
}

pub(crate) struct Report {
    pub(crate) title: String,
    pub(crate) tally: Tally,
    /// The summary lines as the test program printed them, or the error.
    pub(crate) lines: Vec<String>,
    pub(crate) took: Duration,
}

/// Reads a line such as `test result: ok. 5 passed; 0 failed; 0 ignored; …`.
pub(crate) fn read_summary(line: &str) -> Option<Tally> {
    let rest = line.strip_prefix("test result: ")?;
    let count = |word: &str| {
        let at = rest.find(&format!(" {word}"))?;
        rest[..at].rsplit(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    Some(Tally { passed: count("passed")?, failed: count("failed")?, ignored: count("ignored")? })
}

/// Runs a test program; kills it and all its descendants if it exceeds its time limit.
pub(crate) fn run(title: &str, mut command: Command, budget: Duration) -> Report {
    println!("\n== {title}");
    let started = Instant::now();
    let report = |tally, lines| Report { title: title.to_owned(), tally, lines, took: started.elapsed() };
    let broken = |line: String| {
        println!("{line}");
        (Tally { failed: 1, ..Tally::default() }, vec![line])
    };
    let mut child = match command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => {
            let (tally, lines) = broken(format!("cannot start: {error}"));
            return report(tally, lines);
        }
    };
    let overdue = Arc::new(AtomicBool::new(false));
    let (done, watched) = mpsc::channel::<()>();
    let watchdog = watch(child.id(), budget, watched, overdue.clone());
    let summaries = show(&mut child);
    let status = child.wait();
    drop(done);
    // If the watchdog panicked, it killed nothing, so the suite's own result counts.
    let _ = watchdog.join();

    let mut tally = summaries.iter().filter_map(|line| read_summary(line)).fold(Tally::default(), |sum, one| sum.plus(&one));
    let mut lines = summaries;
    if overdue.load(Ordering::SeqCst) {
        let (more, line) = broken(format!("killed after its time limit of {} s", budget.as_secs()));
        tally = tally.plus(&more);
        lines.extend(line);
    } else if !matches!(&status, Ok(status) if status.success()) && tally.failed == 0 {
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let (more, line) = broken(format!("no test failed, but the program did: {how}"));
        tally = tally.plus(&more);
        lines.extend(line);
    } else if lines.is_empty() {
        let (more, line) = broken("no summary was printed".to_owned());
        tally = tally.plus(&more);
        lines.extend(line);
    }
    report(tally, lines)
}

/// Passes the output on, and returns its summary lines.
fn show(child: &mut Child) -> Vec<String> {
    let mut summaries = Vec::new();
    let Some(stdout) = child.stdout.take() else { return summaries };
    let mut reader = BufReader::new(stdout);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        if read_summary(text.trim_end()).is_some() {
            summaries.push(text.trim_end().to_owned());
        }
        line.clear();
    }
    summaries
}

fn watch(pid: u32, budget: Duration, finished: mpsc::Receiver<()>, overdue: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        if let Err(mpsc::RecvTimeoutError::Timeout) = finished.recv_timeout(budget) {
            overdue.store(true, Ordering::SeqCst);
            end_with_descendants(pid);
        }
    })
}

/// Kills a process that this program started, and all its descendants. It is not in a process group of its own, so that Ctrl+C reaches the tests.
fn end_with_descendants(pid: u32) {
    let mut family = vec![pid];
    let mut next = 0;
    while next < family.len() {
        family.extend(children(family[next]).into_iter().filter(|child| *child != pid));
        next += 1;
    }
    let pids: Vec<String> = family.iter().map(u32::to_string).collect();
    // Some may be gone already; `kill` complains about those, which is harmless.
    let _ = Command::new("sh").args(["-c", "kill -KILL \"$@\" 2>/dev/null", "sh"]).args(&pids).status();
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn the_test_runners_own_summary_is_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.10s";
        assert_eq!(read_summary(line), Some(Tally { passed: 12, failed: 3, ignored: 1 }));
        assert_eq!(read_summary("test tests::one ... ok"), None);
    }

    #[test]
    fn a_suite_that_dies_without_a_summary_has_failed() {
        let report = run("dies", shell("exit 3"), Duration::from_secs(60));
        assert_eq!(report.tally, Tally { passed: 0, failed: 1, ignored: 0 });
    }

    #[test]
    fn a_suite_that_crashes_after_its_summary_has_failed() {
        let summary = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s";
        let report = run("crashes", shell(&format!("echo '{summary}'; kill -SEGV $$")), Duration::from_secs(60));
        assert_eq!(report.tally, Tally { passed: 2, failed: 1, ignored: 0 });
    }

    #[test]
    fn a_suite_past_its_budget_is_killed_with_its_processes() {
        let report = run("hangs", shell("sleep 600 & sleep 600"), Duration::from_millis(50));
        assert_eq!(report.tally.failed, 1);
        assert!(report.lines.iter().any(|line| line.starts_with("killed after")), "{:?}", report.lines);
    }
}
