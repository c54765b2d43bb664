//! The state file of a pipeline: its path, its integrity after kills, and files that Lockgate must leave alone.

use crate::pipelines::{FILE, SPEC, file, lists, pipeline};
use crate::project::{Project, finish, until};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn the_state_file_lists_running_workstreams() {
    let project = pipeline();
    project.write("spec.md", SPEC.replace("touch ws3 &&", "until test -e ws2 && test -e go; do sleep 0.02; done; touch ws3;"));
    let running = project.start(&["run", "spec.md", "--answer", "phase-1=Continue"]);
    until("the start of both", || {
        std::fs::read_to_string(project.path(FILE)).is_ok_and(|text| text.contains("\"WS2\",\n    \"WS3\"\n  ],\n  \"pending"))
    });
    let said = file(&project);
    assert_eq!(lists(&said), ["in_progress", "WS1", "WS2 WS3", "WS4"]);
    let status = project.status("PRD-009");
    assert_eq!(status["pipeline"]["phases"][1]["workstreams"][0]["status"], "in_progress");
    project.write("go", "");
    assert_eq!(finish(running).code, Some(3));
    assert_eq!(lists(&file(&project)), ["paused", "WS1 WS2 WS3", "", "WS4"]);
}

#[test]
fn the_next_command_writes_the_state_file_after_a_kill() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    // As if Lockgate had been killed between the commit and the file.
    project.write(FILE, project.read(FILE).replace("paused", "in_progress").replace("\"WS1\"\n  ],\n  \"in", "],\n  \"in"));
    project.write(FILE, json!({"status": "in_progress", "owner": "me"}).to_string());
    assert_eq!(project.run(&["status", "PRD-009"]).code, Some(0));
    let said = file(&project);
    assert_eq!(lists(&said), ["paused", "WS1", "", "WS2 WS3 WS4"]);
    assert_eq!(said["owner"], "me", "keys of others are kept");
    std::fs::remove_file(project.path(FILE)).unwrap();
    assert_eq!(project.run(&["resume", "PRD-009"]).code, Some(3));
    assert_eq!(lists(&file(&project)), ["paused", "WS1", "", "WS2 WS3 WS4"]);
    let left: Vec<String> = std::fs::read_dir(project.path(FILE).parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, ["PRD-009.json"], "nothing half-written is left behind");
}

#[test]
fn an_unreadable_state_file_is_kept_as_a_copy_and_reported_by_every_command() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    let kept = [(".unreadable", &["status", "PRD-009"][..]), (".unreadable-2", &["resume", "PRD-009"])];
    for (ending, command) in kept {
        project.write(FILE, format!("mine {ending}"));
        let output = project.run(command);
        assert!(output.stderr.contains(&format!("it is kept as {}{ending}", project.path(FILE).display())), "{output:?}");
        assert_eq!(lists(&file(&project)), ["paused", "WS1", "", "WS2 WS3 WS4"]);
    }
    for (ending, _) in kept {
        assert_eq!(project.read(&format!("{FILE}{ending}")), format!("mine {ending}"));
    }
}

#[test]
fn answering_and_cancelling_from_another_process_update_the_state_file() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Abort", "--foreground"]).code, Some(2));
    assert_eq!(lists(&file(&project)), ["paused", "WS1", "", "WS2 WS3 WS4"]);
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    let before = file(&project)["timestamp"].clone();
    assert_eq!(project.run(&["cancel", "PRD-009"]).code, Some(0));
    assert_eq!(lists(&file(&project)), ["paused", "WS1", "", "WS2 WS3 WS4"]);
    assert_ne!(file(&project)["timestamp"], before);
}

#[test]
fn the_state_file_is_written_to_the_configured_directory() {
    let project = pipeline();
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\npipelines: { dir: build/states }\n");
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    assert!(project.path("build/states/PRD-009.json").exists() && !project.path(FILE).exists());
}

#[test]
fn a_symlink_out_of_the_root_is_not_followed() {
    let project = pipeline();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), project.path(".claude")).unwrap();
    let output = project.run(&["run", "spec.md"]);
    assert!(output.stderr.contains("cannot be written"), "{}", output.stderr);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn unsafe_ids_and_artifacts_outside_the_root_are_refused_and_nothing_is_written() {
    for (was, is) in [
        ("prd: PRD-009", "prd: ../PRD-009"),
        ("outputs: [db/cash.sql]", "outputs: [../db/cash.sql]"),
        ("gate: schema", "gate: shema"),
    ] {
        let project = pipeline();
        project.write("spec.md", SPEC.replacen(was, is, 1));
        let output = project.run(&["run", "spec.md"]);
        assert_eq!(output.code, Some(4), "{is}: {output:?}");
        assert!(!project.path(".claude").exists() && !project.path("db").exists(), "{is}");
    }
    let project = pipeline();
    let output = project.run(&["run", "gone.md"]);
    assert_eq!(output.code, Some(4));
    assert!(output.stderr.contains("gone.md"), "{}", output.stderr);
    assert!(!project.path(".claude").exists());
}

#[test]
fn the_state_file_is_complete_and_valid_after_random_kills() {
    let project = pipeline();
    project.write("spec.md", SPEC.replace("'true'", "sleep 0.02"));
    let mut random = SmallRng::seed_from_u64(7);
    for _ in 0..12 {
        let life = Duration::from_millis(random.random_range(5..120));
        let known = project.run(&["status", "PRD-009"]).code == Some(0);
        let arguments: &[&str] = match known {
            false => &["run", "spec.md", "--answer", "phase-1=Continue", "--answer", "phase-2=Continue"],
            true if file(&project)["status"] == "failed" => &["resume", "PRD-009", "--fixed"],
            true => &["resume", "PRD-009", "--continue"],
        };
        let mut child =
            project.command(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(life);
        let _ = child.kill();
        child.wait().unwrap();
        // The next command that reads the run updates the file. Until then the file is complete, but may be outdated.
        if project.path(FILE).exists() {
            file(&project);
        }
        if project.run(&["status", "PRD-009"]).code == Some(0) {
            let checked = project.run(&["pipeline", "check", FILE, "--spec", "spec.md"]);
            assert_eq!(checked.code, Some(0), "{checked:?}: {}", project.read(FILE));
        }
    }
    // On a slow machine, no process may have lived long enough to start the run.
    if project.run(&["status", "PRD-009"]).code != Some(0) {
        project.run(&["run", "spec.md", "--answer", "phase-1=Continue", "--answer", "phase-2=Continue"]);
    }
    while file(&project)["status"] != "complete" {
        let output = project.run(&["resume", "PRD-009", "--continue"]);
        assert!(matches!(output.code, Some(0 | 3)), "{output:?}");
    }
    assert_eq!(project.run(&["pipeline", "check", FILE, "--spec", "spec.md"]).code, Some(0));
}

#[test]
fn another_workflow_for_the_same_prd_does_not_overwrite_its_state_file() {
    let project = pipeline();
    project.write("other.yaml", "name: other\nphases: [{ id: a, tasks: [{ id: t, pass: true }] }]\n");
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    assert_eq!(project.run(&["run", "other.yaml", "PRD-009"]).code, Some(0));
    assert_eq!(project.run(&["resume", "PRD-009", "--continue"]).code, Some(3));
    assert_eq!(lists(&file(&project)), ["paused", "WS1 WS2 WS3", "", "WS4"]);
}

#[test]
fn a_state_file_newer_than_a_restored_database_is_rewritten() {
    let project = Project::on_sqlite();
    project.write("spec.md", SPEC);
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    let before = lists(&file(&project));
    assert_eq!(project.run(&["db", "backup", "kept.db"]).code, Some(0));
    assert_eq!(project.run(&["resume", "PRD-009", "--continue"]).code, Some(3));
    assert_eq!(project.run(&["resume", "PRD-009", "--continue"]).code, Some(0));
    assert_eq!(file(&project)["status"], "complete");
    assert_eq!(project.run(&["db", "restore", "kept.db", "--force"]).code, Some(0));
    assert_eq!(project.run(&["status", "PRD-009"]).code, Some(0));
    assert_eq!(lists(&file(&project)), before);
}

#[test]
fn a_directory_in_place_of_the_state_file_is_reported_and_left_alone() {
    let project = pipeline();
    std::fs::create_dir_all(project.path(FILE)).unwrap();
    let refused = project.run(&["run", "spec.md"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(project.path(FILE).is_dir());
}
