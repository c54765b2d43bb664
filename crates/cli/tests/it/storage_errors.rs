//! If the disk is full, the directory is not writable, or the database is locked, damaged or of a newer release, there is a clear
//! message and a documented exit code, and nothing is damaged.

use crate::project::{Project, program, without_terminal};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const FLOW: &str = "
name: small
phases:
  - id: one
    tasks: [{ id: a, pass: true }]
    checkpoint: { approval_required: true }
  - id: two
    tasks: [{ id: b, pass: true }]
";

fn waiting() -> (Project, String) {
    let project = Project::with(FLOW);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let run = project.newest();
    (project, run)
}

fn database(project: &Project) -> Connection {
    Connection::open(project.path(".lockgate/lockgate.db")).unwrap()
}

/// Checks that the run is intact and continues to its end.
fn is_intact_and_continues(project: &Project, run: &str) {
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
    let hold = project.waiting_hold();
    assert_eq!(project.run(&["answer", &hold, "Continue", "--foreground"]).code, Some(0));
    assert_eq!(project.status(run)["status"], "complete");
}

#[test]
fn a_database_of_a_later_release_is_refused_with_a_clear_error() {
    let (project, run) = waiting();
    let version: i64 = database(&project).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    database(&project).pragma_update(None, "user_version", version + 1).unwrap();
    let refused = project.run(&["status", &run]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("newer release"), "{refused:?}");
    database(&project).pragma_update(None, "user_version", version).unwrap();
    is_intact_and_continues(&project, &run);
}

#[test]
fn a_damaged_database_is_reported_and_left_unchanged() {
    let (project, run) = waiting();
    database(&project).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let path = project.path(".lockgate/lockgate.db");
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[..100].fill(b'x');
    std::fs::write(&path, &bad).unwrap();
    for command in [vec!["status", &run], vec!["resume", &run], vec!["run", "flow.yaml"], vec!["db", "verify"]] {
        let refused = project.run(&command);
        assert_ne!(refused.code, Some(0), "{command:?}");
        assert!(refused.stderr.contains("backup"), "{command:?}: {refused:?}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), bad, "nothing was written over it");
    std::fs::write(&path, good).unwrap();
    is_intact_and_continues(&project, &run);
}

#[test]
fn a_locked_database_is_reported_after_a_timeout() {
    let (project, run) = waiting();
    let other = database(&project);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = project.run(&["answer", &project.waiting_hold(), "Continue", "--no-resume"]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("locked"), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    is_intact_and_continues(&project, &run);
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_damaged() {
    let (project, run) = waiting();
    database(&project).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    // No file may grow beyond one block, so the log of the database cannot take the next commit.
    let mut limited = Command::new("sh");
    limited.arg("-c").arg("ulimit -f 1; exec \"$0\" answer \"$1\" Continue").arg(program()).arg(project.waiting_hold());
    limited.current_dir(project.root()).stdin(Stdio::null());
    without_terminal(&mut limited);
    let refused = limited.output().unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code().is_some_and(|code| code != 0), "it ends by itself: {refused:?}");
    assert!(stderr.contains("space left") || stderr.contains("too large"), "{stderr}");
    is_intact_and_continues(&project, &run);
}

#[test]
fn a_read_only_directory_is_reported() {
    let (project, run) = waiting();
    let copy = project.path("lockgate");
    std::fs::copy(program(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    database(&project).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mode = |mode: u32| {
        for name in ["", ".lockgate", ".lockgate/lockgate.db"] {
            let executable = if name.ends_with("db") { 0 } else { 0o111 };
            let permissions = std::fs::Permissions::from_mode(mode | executable);
            std::fs::set_permissions(project.path(name), permissions).unwrap();
        }
    };
    let hold = project.waiting_hold();
    mode(0o444);
    let try_to = |arguments: &[&str]| {
        let mut command = Command::new(&copy);
        command.args(arguments).current_dir(project.root()).stdin(Stdio::null());
        if rustix::process::getuid().is_root() {
            // The superuser may write everywhere, so another user tries.
            command.uid(65_534).gid(65_534);
        }
        command.output().unwrap()
    };
    let refused = try_to(&["answer", &hold, "Continue", "--no-resume"]);
    let reported: Vec<_> = questions(&run).into_iter().map(|question| (try_to(&question), question)).collect();
    mode(0o755);
    for (reported, question) in reported {
        assert_eq!(reported.status.code(), Some(0), "recorded state can be read: {question:?}: {reported:?}");
    }
    assert_ne!(refused.status.code(), Some(0));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("writ"), "{stderr}");
    is_intact_and_continues(&project, &run);
}

/// Commands about a run that write nothing.
fn questions(run: &str) -> Vec<Vec<&str>> {
    let about_all = [vec!["runs"], vec!["inbox"], vec!["db", "verify"], vec!["runs", "--json"]];
    let about_it = ["status", "log", "why", "summary", "graph"].map(|command| vec![command, run]);
    let nested = [vec!["db", "verify", run], vec!["agent", "handover", run]];
    about_all.into_iter().chain(about_it).chain(nested).collect()
}

/// A project whose processes were all killed, so that its newest run exists only in the log of the database.
fn killed() -> (Project, String) {
    let (project, _) = waiting();
    let keeps_the_log = database(&project);
    keeps_the_log.query_row("SELECT count(*) FROM runs", [], |_| Ok(())).unwrap();
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let run = project.newest();
    let copy = Project::on_sqlite();
    for name in ["lockgate.db", "lockgate.db-wal"] {
        std::fs::copy(project.path(&format!(".lockgate/{name}")), copy.path(&format!(".lockgate/{name}"))).unwrap();
    }
    (copy, run)
}

#[test]
fn recorded_state_can_be_read_on_a_full_disk() {
    for (project, run) in [waiting(), killed()] {
        let questions = questions(&run);
        let reported = questions.iter().map(|question| {
            let mut limited = Command::new("sh");
            limited.arg("-c").arg("trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"").arg(program()).args(question);
            limited.current_dir(project.root()).stdin(Stdio::null());
            without_terminal(&mut limited);
            limited.output().unwrap()
        });
        let reported: Vec<_> = reported.collect();
        for (question, reported) in questions.iter().zip(reported) {
            assert_eq!(reported.status.code(), Some(0), "{question:?}: {reported:?}");
            let (reported, asked) = (String::from_utf8(reported.stdout).unwrap(), project.run(question).stdout);
            assert!(
                reported.lines().count() > 0 && reported.lines().count() == asked.lines().count(),
                "{question:?}: {reported}, not {asked}"
            );
        }
    }
}

#[test]
fn verify_finds_a_changed_byte_in_the_history() {
    let (project, run) = waiting();
    assert_eq!(project.run(&["db", "verify", &run]).code, Some(0));
    project.change(
        "UPDATE commits SET payload = CAST(replace(CAST(payload AS TEXT), 'one', 'two') AS BLOB)",
        "UPDATE lockgate.commits SET payload = overlay(payload PLACING 'two' FROM position('one'::bytea IN payload)) \
         WHERE position('one'::bytea IN payload) > 0",
    );
    let found = project.run(&["db", "verify", &run]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stdout.contains("commit 1"), "{found:?}");
}

#[test]
fn a_modified_history_is_never_continued() {
    let (project, run) = waiting();
    let answered = project.run(&["answer", &project.waiting_hold(), "Continue", "--no-resume"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    // The recorded answer is changed: still a readable event, but not the one that was recorded.
    project.change(
        "UPDATE commits SET payload = CAST(replace(CAST(payload AS TEXT), 'continue', 'cantinue') AS BLOB) \
         WHERE key = (SELECT max(key) FROM commits)",
        "UPDATE lockgate.commits SET payload = overlay(payload PLACING 'cantinue' FROM position('continue'::bytea IN payload)) \
         WHERE version = (SELECT max(version) FROM lockgate.commits) AND position('continue'::bytea IN payload) > 0",
    );
    for arguments in [&["status", run.as_str()][..], &["resume", &run], &["why", &run], &["log", &run], &["log", &run, "--json"]]
    {
        let refused = project.run(arguments);
        assert_eq!(refused.code, Some(1), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("error[history-corrupt]"), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("its hash does not match"), "{arguments:?}: {refused:?}");
    }
    let intact = project.run(&["log", &run, "--json"]).stdout;
    assert!(intact.contains("hold_opened") && !intact.contains("answered"), "{intact}");
}

#[test]
fn verify_finds_changed_index_rows() {
    for (on_sqlite, on_postgresql) in [
        ("UPDATE runs SET status = 'complete'", "UPDATE lockgate.runs SET status = 'complete'"),
        ("UPDATE holds SET state = 'settled'", "UPDATE lockgate.holds SET state = 2"),
        ("DELETE FROM holds", "DELETE FROM lockgate.holds"),
    ] {
        let (project, run) = waiting();
        project.change(on_sqlite, on_postgresql);
        let found = project.run(&["db", "verify", &run]);
        assert_eq!(found.code, Some(1), "{on_sqlite}: {found:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_a_closed_pipe_is_not() {
    let (project, _) = waiting();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for arguments in [&["log", "--json"][..], &["runs"], &["status", "--json"], &["--help"]] {
        let mut command = Command::new(program());
        without_terminal(&mut command);
        let output = command.args(arguments).current_dir(project.root()).stdout(full()).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(message.contains("error[unwritable]: stdout cannot be written"), "{arguments:?}: {message}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(program());
    without_terminal(&mut command);
    let output = command.args(["log", "--json"]).current_dir(project.root()).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}
