//! The same command line on PostgreSQL.

use crate::project::Project;
use lockgate_store::postgres::test_server::server;

const FLOW: &str = "
name: flow
phases:
  - id: review
    tasks: [{ id: read, run: 'echo once >> ran' }]
    checkpoint: { prompt: Good? }
  - id: ship
    tasks: [{ id: send, run: 'echo sent >> ran' }]
";

#[test]
fn a_run_is_started_answered_resumed_and_verified_on_postgresql() {
    let project = Project::on_postgresql_with(FLOW);
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    assert!(!project.path(".lockgate/lockgate.db").exists(), "only the settings are stored locally");
    let hold = project.waiting_hold();
    assert_eq!(project.run(&["answer", &hold, "continue", "--no-resume"]).code, Some(0));
    let resumed = project.run(&["resume", "login"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.read("ran"), "once\nsent\n");
    assert_eq!(project.status(&project.newest())["status"], "complete");
    let verified = project.run(&["db", "verify"]);
    assert_eq!((verified.code, verified.stdout.as_str()), (Some(0), "the database is intact\n"), "{verified:?}");
}

#[test]
fn the_environment_selects_the_database_and_its_password_is_never_shown() {
    let project = Project::with(FLOW);
    let run = |url: &str| {
        let output = project.command(&["run", "flow.yaml"]).env("LOCKGATE_DATABASE_URL", url).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, reported) = run(&server().database());
    assert_eq!(code, Some(3), "{reported}");
    assert!(!project.path(".lockgate/lockgate.db").exists());
    for url in ["postgresql://ann:s3cret@127.0.0.1:1/work", "s3cret"] {
        let (code, reported) = run(url);
        assert!(
            code.is_some_and(|code| code != 0) && !reported.contains("s3cret") && reported.contains("database"),
            "{code:?} {reported}"
        );
    }
}

#[test]
fn backups_doctor_and_gc_work_on_postgresql() {
    let project = Project::on_postgresql_with(FLOW);
    project.write("flow.yaml", "name: flow\nphases: [{ id: a, tasks: [{ id: t, pass: true }], checkpoint: { prompt: Go? } }]\n");
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    let report = project.json(0, &["doctor", "--json"]);
    assert!(report.to_string().contains("1 run, in PostgreSQL"), "{report}");
    let output = project.run(&["db", "gc"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "nothing to remove\n"), "{output:?}");
    let output = project.run(&["db", "backup", "copy.db"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let refused = project.run(&["db", "restore", "copy.db", "--force"]);
    assert!(refused.code == Some(4) && refused.stderr.contains("kept in PostgreSQL"), "{refused:?}");
    let other = Project::on_sqlite();
    let output = other.run(&["db", "restore", project.path("copy.db").to_str().unwrap()]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "restored 1 run, 1 unfinished\n"), "{output:?}");
    assert_eq!(other.run(&["answer", &other.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
}
