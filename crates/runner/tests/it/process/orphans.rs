//! Processes that jobs leave behind, and that outlive a Lockgate.

use super::{alone, among_others, job, lives, pid_in, run_job, wait_until};
use lockgate_runner::process::{
    ExitReason, Job, Stop, become_subreaper, end_orphans, keep_reaping, reap_adopted, run, spawn_own_child,
};
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

fn is_in_the_table(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn background_processes_of_a_job_are_stopped() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let (ended, _) = run_job(job(
        folder.path(),
        "sleep 1000 & echo $! > child; sh -c 'trap \"\" TERM; echo $$ > stubborn; sleep 1000; sleep 1000' & while ! [ -s stubborn ]; do sleep 0.01; done; exit 4",
    ));
    assert_eq!((ended.reason, ended.survivors), (ExitReason::Exit(4), vec![]));
    assert!(!lives(pid_in(folder.path(), "child")) && !lives(pid_in(folder.path(), "stubborn")));
}

/// A shell command that starts a daemon in its own session, without its parent, with its pid in the file `daemon`.
fn daemon(inside: &str) -> String {
    let daemon = format!("sh -c '{inside} echo \\$\\$ > daemon.new; mv daemon.new daemon; exec sleep 1000' &");
    format!("setsid sh -c \"{daemon}\" & while ! [ -s daemon ]; do sleep 0.01; done")
}

#[test]
fn a_daemon_outside_the_session_is_stopped_and_does_not_delay_the_job() {
    let _table = among_others();
    for inside in ["", "trap \\\"\\\" TERM;", "exec 2> /dev/null > /dev/null;"] {
        let folder = TempDir::new().unwrap();
        let (ended, _) = run_job(job(folder.path(), &daemon(inside)));
        assert_eq!((ended.reason, ended.survivors), (ExitReason::Exit(0), vec![]), "{inside}");
        let pid = pid_in(folder.path(), "daemon");
        wait_until("the daemon is reaped", || !is_in_the_table(pid));
    }
}

/// A shell command that becomes a `sleep` with its pid in the file `hidden`, after closing the lock's descriptor and, for
/// `all`, clearing its environment too.
fn hiding(what: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!("LOCKGATE_TEST_HIDE={what} {} --exact process::orphans::helper_that_hides_its_origin", program.display())
}

/// A shell command that waits for that.
fn until_hidden() -> &'static str {
    "while ! grep -q sleep /proc/$(cat hidden || echo none)/comm; do sleep 0.01; done 2> /dev/null"
}

/// Does nothing unless another test starts this program again.
#[test]
fn helper_that_hides_its_origin() {
    let Some(what) = std::env::var_os("LOCKGATE_TEST_HIDE") else { return };
    let open: Vec<i32> =
        fs::read_dir("/proc/self/fd").unwrap().filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in open.into_iter().filter(|number| *number > 2) {
        // SAFETY: nothing else in this process could close a descriptor; one that is already closed gives an error.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC);
    }
    fs::write("hidden.new", std::process::id().to_string()).unwrap();
    fs::rename("hidden.new", "hidden").unwrap();
    let mut sleep = Command::new("/bin/sh");
    sleep.args(["-c", "exec sleep 1000"]);
    if what == "all" {
        sleep.env_clear();
    }
    panic!("{}", sleep.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).exec());
}

#[test]
fn a_daemon_that_hides_its_origin_is_stopped() {
    let _table = alone();
    let folder = TempDir::new().unwrap();
    let command = format!("setsid sh -c '{} &' & {}", hiding("all"), until_hidden());
    let (ended, _) = run_job(job(folder.path(), &command));
    assert_eq!((ended.reason, ended.survivors), (ExitReason::Exit(0), vec![]));
    assert!(!is_in_the_table(pid_in(folder.path(), "hidden")));
}

#[test]
fn processes_of_another_job_are_not_stopped() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let first = job(folder.path(), &format!("{}; while ! [ -e go ]; do sleep 0.01; done; kill -0 $(cat daemon)", daemon("")));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| run_job(first).0);
        wait_until("the daemon is there", || folder.path().join("daemon").exists());
        let other = TempDir::new().unwrap();
        assert_eq!(run_job(job(other.path(), "sleep 1000 & true")).0.reason, ExitReason::Exit(0));
        fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(first.join().unwrap().reason, ExitReason::Exit(0), "the daemon had to live until here");
    });
    assert!(!lives(pid_in(folder.path(), "daemon")));
}

#[test]
fn a_dropped_job_is_killed() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (told, mut ready) = tokio::sync::mpsc::unbounded_channel();
        let mut on_line = move |_: &str| told.send(()).unwrap();
        tokio::select! {
            _ = run(job(folder.path(), "echo $$ > first; echo ready; sleep 1000"), Stop::new(), &mut on_line) => panic!("it ended by itself"),
            _ = ready.recv() => {}
        }
    });
    let pid = pid_in(folder.path(), "first");
    wait_until("the job is gone", || !lives(pid));
    wait_until("the job is reaped", || {
        reap_adopted();
        !is_in_the_table(pid)
    });
}

#[test]
fn adopted_processes_are_reaped_and_own_children_keep_their_status() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    // A child of our own, in its own session, that has ended before anyone checks.
    let (mut own, _ours) = spawn_own_child(|| Command::new("setsid").args(["sh", "-c", "exit 9"]).spawn(), Child::id).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let orphan = "setsid sh -c \"sh -c 'echo \\$\\$ > orphan.new; mv orphan.new orphan' &\" & while ! [ -s orphan ]; do sleep 0.01; done; while [ -e /proc/$(cat orphan) ]; do sleep 0.01; done";
    let ended = runtime.block_on(async {
        let reaping = tokio::spawn(keep_reaping());
        let plain = tokio::process::Command::new("sh").args(["-c", "exit 8"]).status().await.unwrap();
        assert_eq!(plain.code(), Some(8));
        let ended = run(job(folder.path(), orphan), Stop::new(), &mut |_| {}).await;
        reaping.abort();
        ended
    });
    assert_eq!(ended.reason, ExitReason::Exit(0), "the orphan had to leave the table while the job was running");
    assert_eq!(own.wait().unwrap().code(), Some(9));
}

/// Does nothing unless another test starts this program again as a Lockgate that will be killed.
#[test]
fn helper_that_runs_a_job() {
    let Some(folder) = std::env::var_os("LOCKGATE_TEST_HELPER") else { return };
    become_subreaper().unwrap();
    let command = std::env::var("LOCKGATE_TEST_COMMAND").unwrap();
    run_job(Job { timeout: None, ..job(Path::new(&folder), &command) });
}

/// A separate Lockgate with a running job. Everything left of both is stopped with the test, however that ends.
struct Helper {
    child: Child,
    folder: TempDir,
}

impl Helper {
    /// Returns once the job has created the file `ready`.
    fn start(command: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::orphans::helper_that_runs_a_job", "--test-threads=1"])
            .env("LOCKGATE_TEST_HELPER", folder.path())
            .env("LOCKGATE_TEST_COMMAND", command)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let helper = Self { child, folder };
        wait_until("the job is ready", || helper.folder.path().join("ready").exists());
        helper
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end_orphans(&self) -> Vec<u32> {
        end_orphans(&self.folder.path().join("lock")).unwrap().ended
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = end_orphans(&self.folder.path().join("lock"));
    }
}

#[test]
fn an_orphan_of_a_killed_lockgate_holds_the_lock_until_stopped() {
    let _table = alone();
    let mut helper = Helper::start("trap '' TERM; echo $$ > first; touch ready; while :; do sleep 0.05; done");
    helper.kill();
    let pid = pid_in(helper.folder.path(), "first");
    assert!(lives(pid), "the orphan outlives its Lockgate");
    let reason = run_job(job(helper.folder.path(), "true")).0.reason;
    assert!(
        matches!(&reason, ExitReason::NotStarted(why) if why.contains("is locked") && why.contains(&pid.to_string())),
        "{reason:?}"
    );
    let ended = helper.end_orphans();
    assert!(ended.contains(&pid), "{ended:?}");
    assert!(!lives(pid));
    assert_eq!(run_job(job(helper.folder.path(), "exit 6")).0.reason, ExitReason::Exit(6));
    assert_eq!(helper.end_orphans(), Vec::<u32>::new());
}

#[test]
fn orphans_outside_the_session_or_without_the_lock_are_also_stopped() {
    let _table = alone();
    // One leaves the session; another closes the lock's descriptor, as launchers do with descriptors they do not know.
    let command = format!("{} & {}; {}; touch ready; exec sleep 1000", hiding("descriptors"), until_hidden(), daemon(""));
    let mut helper = Helper::start(&command);
    helper.kill();
    let (daemon, hidden) = (pid_in(helper.folder.path(), "daemon"), pid_in(helper.folder.path(), "hidden"));
    assert!(lives(daemon) && lives(hidden));
    let ended = helper.end_orphans();
    assert!(ended.contains(&daemon) && ended.contains(&hidden), "{ended:?}");
    assert!(!lives(daemon) && !lives(hidden));
}

#[test]
fn an_unrelated_process_whose_pid_is_in_the_lock_file_is_not_stopped() {
    let _table = alone();
    let bystanders = TempDir::new().unwrap();
    // A process that leads its own session, as a job's first process does, and that even reads the lock file.
    let mut helper = Helper::start("echo $$ > first; touch ready; exec sleep 1000");
    let lock = helper.folder.path().join("lock");
    let (mut bystander, _ours) = spawn_own_child(
        || {
            Command::new("setsid")
                .args(["sh", "-c", "exec sleep 1000"])
                .stdin(fs::File::open(&lock)?)
                .current_dir(bystanders.path())
                .spawn()
        },
        Child::id,
    )
    .unwrap();
    wait_until("the bystander leads its session", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", bystander.id())).unwrap();
        stat.starts_with(&format!("{} (sleep)", bystander.id()))
    });
    helper.kill();
    fs::write(&lock, format!("{}\n", bystander.id())).unwrap();
    let orphan = pid_in(helper.folder.path(), "first");

    assert_eq!(helper.end_orphans(), [orphan]);
    assert!(!lives(orphan));
    assert!(lives(bystander.id()), "it only has the recorded pid");
    assert_eq!(helper.end_orphans(), Vec::<u32>::new(), "the lock is free");
    assert!(lives(bystander.id()));
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn no_lock_file_means_no_orphans() {
    let folder = TempDir::new().unwrap();
    assert_eq!(end_orphans(&folder.path().join("lock")).unwrap().ended, Vec::<u32>::new());
}
