//! Logging with `-v` and `LOCKGATE_LOG`, and none by default.

use crate::project::{Output, PATIENCE, Project, without_terminal};
use std::time::Instant;

const FLOW: &str =
    "name: logged\nphases: [{ id: p, tasks: [{ id: t, run: 'echo printed' }], checkpoint: { approval_required: true } }]\n";

/// Runs a command with this log filter in the environment.
fn run_with(project: &Project, filter: &str, arguments: &[&str]) -> Output {
    let mut command = project.command(arguments);
    without_terminal(&mut command);
    let output = command.env("LOCKGATE_LOG", filter).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn is_logged(line: &str) -> bool {
    ["ERROR", " WARN", " INFO", "DEBUG", "TRACE"].iter().any(|level| line.contains(&format!("Z {level} ")))
}

#[test]
fn verbose_logs_run_and_task_on_stderr_and_leaves_json_on_stdout_alone() {
    let project = Project::with(FLOW);
    let run = project.run(&["-vv", "run", "flow.yaml", "--json"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    let view: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let id = view["run"].as_str().unwrap_or_else(|| panic!("{view}"));
    let logged: Vec<&str> = run.stderr.lines().filter(|line| is_logged(line)).collect();
    let has = |parts: &[&str]| logged.iter().any(|line| parts.iter().all(|part| line.contains(part)));
    let span = format!("run{{id={id}}}: task{{address=p/t attempt=1}}: ");
    assert!(has(&[&span, "INFO", "started"]), "{}", run.stderr);
    assert!(has(&[&span, "INFO", "ended outcome=\"finished\""]), "{}", run.stderr);
    assert!(has(&[&span, "DEBUG", "process ended", "code=0"]), "{}", run.stderr);
    assert!(has(&["database opened"]) || project.is_on_postgresql(), "{}", run.stderr);
    assert!(!logged.iter().any(|line| line.contains("printed")), "output of tasks is not logged: {}", run.stderr);
    assert!(!run.stderr.contains('\x1b'), "there is no terminal: {}", run.stderr);

    let hold = project.waiting_hold();
    let answer = project.run(&["answer", &hold, "Continue", "-v", "--no-resume"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let name = hold.split('@').next().unwrap_or_default();
    assert!(
        answer.stderr.lines().any(|line| is_logged(line) && line.contains(&format!("run{{id={id}}}: hold{{id={name}"))),
        "{}",
        answer.stderr
    );
    assert!(!answer.stderr.contains("DEBUG"), "{}", answer.stderr);
}

#[test]
fn nothing_is_logged_by_default() {
    let project = Project::with(FLOW);
    for output in
        [project.run(&["run", "flow.yaml"]), run_with(&project, "", &["runs"]), run_with(&project, "off", &["-vvv", "runs"])]
    {
        assert!(!output.stderr.lines().any(is_logged), "{output:?}");
    }
}

#[test]
fn the_environment_variable_overrides_the_flag() {
    let project = Project::with(FLOW);
    let run = run_with(&project, "warn,lockgate_store=debug", &["-vvv", "run", "flow.yaml"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    let logged: Vec<&str> = run.stderr.lines().filter(|line| is_logged(line)).collect();
    assert!(!logged.is_empty() && logged.iter().all(|line| line.contains("lockgate_store::")), "{}", run.stderr);
}

#[test]
fn an_invalid_filter_is_an_error_with_a_code() {
    let project = Project::with(FLOW);
    for filter in ["bogus=", "lockgate=loud", "degub"] {
        let refused = run_with(&project, filter, &["run", "flow.yaml", "--json"]);
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.stderr.contains("error[invalid-usage]:") && refused.stderr.contains("LOCKGATE_LOG"), "{refused:?}");
        let view: serde_json::Value = serde_json::from_str(&refused.stdout).unwrap();
        assert_eq!(view["error"]["code"], "invalid-usage", "{view}");
    }
    assert!(!project.run(&["runs"]).stdout.contains("logged"), "nothing was started");
}

#[test]
fn control_characters_in_log_records_are_made_visible() {
    let project = Project::new();
    let name = "sub\x1b[31m\n\u{202e}dir";
    project.write(&format!("{name}/flow.yaml"), FLOW);
    project.write(&format!("{name}/.lockgate/config.yaml"), project.read(".lockgate/config.yaml"));
    let run = project.run(&["-vvv", "--root", name, "run", &format!("{name}/flow.yaml")]);
    let logged: Vec<&str> = run.stderr.lines().filter(|line| is_logged(line)).collect();
    assert!(logged.iter().any(|line| line.contains("sub␛[31m␊\\u{202e}dir")), "{}", run.stderr);
    assert!(!run.stderr.contains('\x1b') && !run.stderr.contains('\u{202e}'), "{}", run.stderr);
}

#[test]
fn the_background_process_logs_to_its_file() {
    let project = Project::with("name: logged\nphases: [{ id: p, tasks: [{ id: t, run: 'echo printed' }] }]\n");
    let started = run_with(&project, "info", &["run", "flow.yaml", "--detach"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    let expected = format!("run{{id={}}}: task{{address=p/t attempt=1}}: ", project.newest());
    let since = Instant::now();
    while !project.read(".lockgate/background.log").contains(&expected) {
        assert!(since.elapsed() < PATIENCE, "{}", project.read(".lockgate/background.log"));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
