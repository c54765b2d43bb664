//! The shell of a job: where it stops, what it takes from its environment, how it gets the command. A14.

use super::{among_others, job, run_job};
use lockgate_engine::spec::workflow::Shell;
use lockgate_runner::process::{ExitReason, Job};
use std::fs;
use tempfile::TempDir;

fn run_in(shell: Option<Shell>, command: &str) -> (ExitReason, Vec<String>) {
    let folder = TempDir::new().unwrap();
    let (ended, lines) = run_job(Job { shell, ..job(folder.path(), command) });
    (ended.reason, lines)
}

#[test]
fn a_command_stops_at_the_first_failing_line_or_pipeline_member() {
    let _table = among_others();
    for shell in [None, Some(Shell::Bash)] {
        assert_eq!(run_in(shell.clone(), "false\necho passed"), (ExitReason::Exit(1), vec![]), "{shell:?}");
        assert_eq!(run_in(shell.clone(), "(exit 3) | tail -1"), (ExitReason::Exit(3), vec![]), "{shell:?}");
        assert_eq!(run_in(shell.clone(), "false || echo handled; echo \"$UNSET.\"").0, ExitReason::Exit(0), "{shell:?}");
    }
    assert_eq!(run_in(Some(Shell::Sh), "false\necho passed"), (ExitReason::Exit(1), vec![]));
    assert_eq!(run_in(Some(Shell::Sh), "seq 100000 | head -1"), (ExitReason::Exit(0), vec!["1".to_owned()]));
}

#[test]
fn a_shell_reads_no_startup_file_and_exports_its_name() {
    let _table = among_others();
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("startup"), "echo started; set +e\n").unwrap();
    let startup = folder.path().join("startup").to_string_lossy().into_owned();
    let env = vec![("BASH_ENV".to_owned(), startup.clone()), ("ENV".to_owned(), startup)];
    let (ended, lines) = run_job(Job { env, ..job(folder.path(), "bash -c 'echo inner'; false; echo passed") });
    assert_eq!((ended.reason, lines), (ExitReason::Exit(1), vec!["started".to_owned(), "inner".to_owned()]));
}

#[test]
fn a_program_gets_the_command_in_a_private_file() {
    let _table = among_others();
    let shell = Some(Shell::parse("env MARK=x sh -e {0}").unwrap());
    let (reason, lines) = run_in(shell, "echo \"$MARK\"; stat -c %a \"$0\"");
    assert_eq!((reason, lines), (ExitReason::Exit(0), vec!["x".to_owned(), "600".to_owned()]));
    let absent = Some(Shell::parse("lockgate-no-such-shell {0}").unwrap());
    match run_in(absent, "echo").0 {
        ExitReason::NotStarted(why) => assert!(why.contains("`lockgate-no-such-shell {0}` could not be started"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_too_long_for_an_argument_still_runs() {
    let _table = among_others();
    let long = format!("printf %s '{}' | wc -c", "x".repeat(300_000));
    for shell in [None, Some(Shell::Sh), Some(Shell::Bash)] {
        assert_eq!(run_in(shell, &long), (ExitReason::Exit(0), vec!["300000".to_owned()]));
    }
}
