//! Tools around runs: init, schema, doctor, completions, graph, backup, restore, gc.

use crate::project::{Output, Project, finish, lives, signal, until};
use rustix::process::Signal;
use serde_json::Value;
use snapbox::{assert_data_eq, str};
use std::path::Path;
use std::time::{Duration, SystemTime};

const FLOW: &str = "
name: flow
phases:
  - id: plan
    name: The plan
    tasks:
      - { id: draft, run: echo draft, on_interrupt: rerun }
      - { id: check, needs: [draft], pass: true }
    gates: [{ id: good, run: 'true' }]
    checkpoint: { prompt: Good plan? }
  - id: build
    tasks: [{ id: make, pass: true }]
";

fn waiting() -> Project {
    let project = Project::with(FLOW);
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    project
}

/// All files in a directory, with their contents.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                found.push((path.display().to_string(), Vec::new()));
                folders.push(path);
            } else {
                found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

/// Sets the modification time to a day ago.
fn age(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(86_400)).unwrap();
}

fn wrong(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["state"] == "failed").map(|check| check["check"].as_str().unwrap()).collect()
}

#[test]
fn init_creates_a_runnable_workflow_and_overwrites_nothing() {
    let project = Project::new();
    std::fs::remove_dir_all(project.path(".lockgate")).unwrap();
    assert_data_eq!(
        project.snapshot(&project.run(&["init"])),
        str![[r#"
exit 0
--- stdout
created workflow.yaml
created .lockgate/config.yaml
--- stderr
Next: read workflow.yaml, then start it with `lockgate run workflow.yaml`. It stops where you decide.
Check your changes with `lockgate validate workflow.yaml`, draw them with `lockgate graph workflow.yaml`,
and write a schema for your editor with `lockgate schema > workflow.schema.json`.

"#]]
    );
    for list in ["runs", "inbox"] {
        let output = project.run(&[list, "--json"]);
        assert_eq!((output.code, output.stdout.trim()), (Some(0), "[]"), "{output:?}");
    }
    let output = project.run(&["validate", "workflow.yaml"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "workflow.yaml: valid workflow\n"), "{output:?}");
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\n");
    let output = project.run(&["run", "workflow.yaml", "--answer", "write=Publish", "--var", "name=Ada"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let out = format!(".lockgate/runs/{}/out/published.txt", project.newest());
    assert_eq!(project.read(&out), "Hello, Ada!\n");

    project.write("workflow.yaml", "mine");
    let output = project.run(&["init"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("kept workflow.yaml") && output.stdout.contains("kept .lockgate/config.yaml"), "{output:?}");
    assert_eq!(project.read("workflow.yaml"), "mine");
    assert_eq!(project.read(".lockgate/config.yaml"), "people: { require_terminal: false }\n");
}

#[test]
fn init_never_writes_through_a_symlink() {
    let project = Project::new();
    std::os::unix::fs::symlink("elsewhere.yaml", project.path("workflow.yaml")).unwrap();
    assert_eq!(project.run(&["init"]).code, Some(0));
    assert!(!project.path("elsewhere.yaml").exists());
}

#[test]
fn the_schema_uses_the_newest_json_schema_dialect() {
    let schema = Project::new().json(0, &["schema"]);
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["required"], serde_json::json!(["name", "phases"]));
    assert!(schema["$defs"]["task"]["properties"]["needs"]["description"].is_string());
}

#[test]
fn a_workflow_is_drawn_for_a_terminal() {
    let project = Project::with(FLOW);
    assert_data_eq!(
        project.snapshot(&project.run(&["graph", "flow.yaml"])),
        str![[r#"
exit 0
--- stdout
flow
○ plan  The plan
│  · draft
│  · check ← draft
│  · gate good
│  · checkpoint: Good plan?
│    - Continue
│    - Abort → ends the run
│
○ build
   · make

--- stderr

"#]]
    );
}

#[test]
fn the_graph_of_a_run_shows_the_state_of_every_task() {
    let project = waiting();
    assert_data_eq!(
        project.snapshot(&project.run(&["graph", "login"])),
        str![[r#"
exit 0
--- stdout
flow (login), run [RUN]  waiting
? waiting     plan  The plan
│  ✓ done        draft
│  ✓ done        check ← draft
│  ✓ done        gate good
│  ? waiting     checkpoint: Good plan?
│    - Continue
│    - Abort → ends the run
│
… pending     build
   … pending     make

--- stderr

"#]]
    );
    let run = project.newest();
    let hold = project.waiting_hold();
    assert_eq!(project.run(&["answer", &hold, "Continue", "--foreground"]).code, Some(0));
    let text = project.run(&["graph", &run]).stdout;
    assert!(text.contains("answered: Continue") && text.contains("✓ done        make"), "{text}");
    for (kind, beginning) in [("--svg", "<svg "), ("--mermaid", "%% flow (login), run ")] {
        let output = project.run(&["graph", &run, kind]);
        assert!(output.code == Some(0) && output.stdout.starts_with(beginning), "{output:?}");
        assert!(output.stdout.contains("✓ make"), "{output:?}");
    }
}

#[test]
fn the_graph_marks_failed_and_skipped_parts() {
    let project = Project::with(
        "
name: flow
phases:
  - id: ask
    checkpoint: { prompt: Go?, options: [{ label: Skip, on_select: { action: skip_phases, phases: [extra] } }] }
  - { id: extra, tasks: [{ id: more, pass: true }] }
  - { id: last, tasks: [{ id: works, pass: true }, { id: breaks, run: exit 3 }, { id: after, needs: [breaks], pass: true }] }
",
    );
    assert_eq!(project.run(&["run", "flow.yaml", "--answer", "ask=Skip"]).code, Some(1));
    let text = project.run(&["graph", &project.newest()]).stdout;
    for line in
        ["– skipped     extra", "– skipped     more", "✗ failed      breaks", "… pending     after", "✓ done        works"]
    {
        assert!(text.contains(line), "{line} is missing:\n{text}");
    }
}

#[test]
fn the_graph_is_available_as_json() {
    let project = Project::with(
        "
name: flow
phases:
  - id: one
    tasks: [{ id: a, pass: true }, { id: b, needs: [a], pass: true }]
    gates: [{ id: lint, run: 'true' }]
    checkpoint: { prompt: Go?, options: [{ label: Go, on_select: { action: continue } }, { label: Again, on_select: { action: repeat_phase } }] }
  - { id: two, tasks: [{ id: c, pass: true }] }
",
    );
    let of_file = project.json(0, &["graph", "flow.yaml", "--json"]);
    assert!(of_file["run"].is_null() && of_file["nodes"][0].get("state").is_none(), "{of_file}");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let of_run = project.json(0, &["graph", &project.newest(), "--json"]);
    assert_eq!(of_run["status"], "waiting");
    let nodes = of_run["nodes"].as_array().unwrap().iter();
    let nodes: Vec<_> = nodes.map(|node| (node["id"].as_str().unwrap(), node["state"].as_str().unwrap())).collect();
    let expected = [
        ("one", "waiting"),
        ("one/task/a", "done"),
        ("one/task/b", "done"),
        ("one/gate/lint", "done"),
        ("one/checkpoint", "waiting"),
        ("two", "pending"),
        ("two/task/c", "pending"),
    ];
    assert_eq!(nodes, expected);
    let edges = of_run["edges"].as_array().unwrap().iter();
    let edges: Vec<_> = edges.map(|edge| ["from", "kind", "to"].map(|key| edge[key].as_str().unwrap()).join(" ")).collect();
    let expected = [
        "one/task/a then one/task/b",
        "one/task/b then one/gate/lint",
        "one/gate/lint then one/checkpoint",
        "one then two",
        "one/checkpoint back one",
    ];
    assert_eq!(edges, expected);
    assert_eq!(of_run["edges"][4]["option"], "Again");
}

#[test]
fn hostile_names_are_harmless_in_graphs() {
    let project = Project::with(
        "
name: \"</title><script>alert(1)</script>\\e[2J\"
phases:
  - id: a
    name: \"\\\"]--> x; <b> `**` #quot; \\u202e & \\uffff\"
    tasks: [{ id: t, pass: true }]
    checkpoint: { prompt: \"{{vars.x}}\\n\\\"end\\\" <img src=x onerror=1>\", options: [{ label: \"a|b\\\"]\", on_select: { action: repeat_phase } }] }
vars: { x: 1 }
",
    );
    let svg = project.run(&["graph", "flow.yaml", "--svg"]);
    assert_eq!(svg.code, Some(0), "{svg:?}");
    for bad in ["<script", "<img", "<b>", "\u{1b}", "\u{202e}", "\u{ffff}"] {
        assert!(!svg.stdout.contains(bad), "{bad:?}: {}", svg.stdout);
    }
    assert_eq!(svg.stdout.matches('<').count(), svg.stdout.matches('>').count());
    let mermaid = project.run(&["graph", "flow.yaml", "--mermaid"]).stdout;
    for line in mermaid.lines() {
        assert!(line.matches('"').count() % 2 == 0 && line.matches('"').count() <= 2, "{line}");
        assert!(!line.contains(['<', '`', '|', '\u{1b}']) || line.starts_with("%%"), "{line}");
    }
    assert!(!mermaid.contains("p0c -. \"a#124;b#34;#93; #40;back to a#41;\" .-> p0\n"), "nothing points at its own container");
    assert!(mermaid.contains(".-> p0t0"), "{mermaid}");
}

#[test]
fn an_impossible_graph_is_reported() {
    let project = waiting();
    let output = project.run(&["graph", "missing.yaml"]);
    assert!(output.code == Some(4) && output.stderr.contains("missing.yaml cannot be read"), "{output:?}");
    project.write("bad.yaml", "name: x\nphases: 3\n");
    let output = project.run(&["graph", "bad.yaml"]);
    assert!(output.code == Some(4) && output.stdout.is_empty() && output.stderr.contains("bad.yaml:2:9"), "{output:?}");
    assert_eq!(project.run(&["graph", "nobody"]).code, Some(4));
    assert_eq!(project.run(&["graph", "login", "--svg", "--mermaid"]).code, Some(4));
}

#[test]
fn doctor_finds_no_problems_in_a_healthy_project() {
    let project = waiting();
    let output = project.run(&["doctor"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    let report = project.json(0, &["doctor", "--json"]);
    assert_eq!(report["ok"], true);
    let checks: Vec<&str> = report["checks"].as_array().unwrap().iter().map(|check| check["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["shell", "git", "processes", "clock", "project", "disk", "settings", "database", "drivers", "orphans"]);
}

#[test]
fn doctor_works_without_a_project_and_finds_missing_programs() {
    let project = Project::new();
    std::fs::remove_dir_all(project.path(".lockgate")).unwrap();
    assert_eq!(project.json(0, &["doctor", "--json"])["ok"], true, "no project is nothing wrong");
    let output = project.command(&["doctor", "--json"]).env("PATH", "").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(wrong(&report), ["git"], "{report}");
    assert!(report["checks"][1]["fix"].as_str().unwrap().contains("PATH"), "{report}");
    let report = project.json(1, &["doctor", "--json", "--root", "nowhere"]);
    assert_eq!(wrong(&report), ["project"]);
}

#[test]
fn doctor_finds_bad_settings_damage_and_committed_state() {
    let project = waiting();
    project.write(".lockgate/config.yaml", "people: { require_terminl: false }\n");
    let report = project.json(1, &["doctor", "--json"]);
    assert_eq!(wrong(&report), ["settings"], "{report}");
    let settings = report["checks"].as_array().unwrap().iter().find(|check| check["check"] == "settings").unwrap();
    assert_eq!(settings["fix"], "did you mean `require_terminal`?");

    project.write(".lockgate/config.yaml", "");
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        assert!(command.args(arguments).current_dir(project.root()).output().unwrap().status.success());
    };
    git(&["init", "-q"]);
    git(&["add", "-f", ".lockgate"]);
    assert_eq!(wrong(&project.json(1, &["doctor", "--json"])), ["git state"]);
}

#[test]
fn doctor_finds_a_damaged_database() {
    let project = waiting();
    project
        .write(".lockgate/lockgate.db", "this text is not a database despite its name, but it is long enough to have a header");
    let report = project.json(1, &["doctor", "--json"]);
    assert_eq!(wrong(&report), ["database"], "{report}");
    assert!(report.to_string().contains("lockgate db restore BACKUP --force"), "{report}");
}

#[test]
fn doctor_finds_a_killed_driver_and_its_orphans_and_resume_cleans_up() {
    let project = Project::with(
        "
name: slow
phases:
  - id: a
    tasks: [{ id: wait, run: 'echo $$ > pid; while ! test -e go; do sleep 0.05; done', on_interrupt: rerun }]
",
    );
    let mut child = project.start(&["run", "flow.yaml"]);
    until("the start of the task", || !project.read("pid").is_empty());
    assert_eq!(wrong(&project.json(0, &["doctor", "--json"])), Vec::<&str>::new(), "a running run is not a problem");
    let text = project.run(&["graph", &project.newest()]).stdout;
    assert!(text.contains("● running     wait"), "{text}");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let report = project.json(1, &["doctor", "--json"]);
    // On PostgreSQL, a dead driver leaves no file.
    let found = if project.is_on_postgresql() { vec!["drivers", "orphans"] } else { vec!["garbage", "drivers", "orphans"] };
    assert_eq!(wrong(&report), found, "{report}");
    assert!(report.to_string().contains(project.read("pid").trim()), "the process is named: {report}");
    let text = project.run(&["graph", &project.newest()]).stdout;
    assert!(text.contains("! interrupted wait"), "{text}");
    // Files of an unfinished run are not garbage.
    let output = project.run(&["db", "gc"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(lives(&project.read("pid")), "gc ends nothing");
    project.write("go", "");
    let resumed = project.run(&["resume", &project.newest()]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(wrong(&project.json(0, &["doctor", "--json"])), Vec::<&str>::new());
}

#[test]
fn a_backup_taken_during_a_run_can_be_resumed_elsewhere() {
    let project = Project::with(
        "
name: slow
phases:
  - id: a
    tasks: [{ id: first, run: echo once >> first, on_interrupt: rerun }, { id: wait, needs: [first], run: 'touch started; while ! test -e go; do sleep 0.05; done', on_interrupt: rerun }]
",
    );
    let child = project.start(&["run", "flow.yaml", "login"]);
    until("the start of the task", || project.path("started").exists());
    let output = project.run(&["db", "backup", "copy.db"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.starts_with("copy.db: 1 run, "), "{output:?}");
    let bytes = std::fs::read(project.path("copy.db")).unwrap();
    let refused = project.run(&["db", "backup", "copy.db"]);
    assert!(refused.code == Some(4) && refused.stderr.contains("is not overwritten"), "{refused:?}");
    assert_eq!(std::fs::read(project.path("copy.db")).unwrap(), bytes);
    // A database that is in use cannot be replaced, and one on a server cannot be restored at all.
    let refused = project.run(&["db", "restore", "copy.db", "--force"]);
    let (code, reported) =
        if project.is_on_postgresql() { (4, "are kept in PostgreSQL") } else { (3, "has been driving runs of this database") };
    assert!(refused.code == Some(code) && refused.stderr.contains(reported), "{refused:?}");
    project.write("go", "");
    assert_eq!(finish(child).code, Some(0));
    assert_eq!(project.status(&project.newest())["status"], "complete", "the run continued");

    let other = Project::on_sqlite();
    let copy = project.path("copy.db");
    let output = other.run(&["db", "restore", copy.to_str().unwrap()]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stdout, "restored 1 run, 1 unfinished\n");
    assert_eq!(std::fs::read(&copy).unwrap(), bytes, "the backup stays as it is");
    assert_eq!(other.run(&["db", "verify"]).code, Some(0));
    other.write("go", "");
    let resumed = other.run(&["resume", "login"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(!other.path("first").exists(), "finished work is not repeated");
}

#[test]
fn restoring_over_a_database_requires_force_and_keeps_the_old_one() {
    let project = waiting();
    assert_eq!(project.run(&["db", "backup", "copy.db"]).code, Some(0));
    let run = project.newest();
    assert_eq!(project.run(&["run", "flow.yaml", "later"]).code, Some(3));
    let output = project.run(&["db", "restore", "copy.db"]);
    assert!(output.code == Some(4) && output.stderr.contains("--force"), "{output:?}");
    assert_eq!(project.json(0, &["runs", "--json"]).as_array().unwrap().len(), 2, "nothing happened");
    let output = project.run(&["db", "restore", "copy.db", "--force"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(project.newest(), run);
    let kept: Vec<String> = tree(&project.path(".lockgate"))
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.contains("lockgate.db.before-"))
        .collect();
    let [kept] = kept.as_slice() else { panic!("{kept:?}") };
    let other = Project::new();
    assert_eq!(other.run(&["db", "restore", kept]).stdout, "restored 2 runs, 2 unfinished\n");
    // The restored run can be answered.
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
}

#[test]
fn an_invalid_backup_is_refused_and_changes_nothing() {
    let project = waiting();
    assert_eq!(project.run(&["db", "backup", "copy.db"]).code, Some(0));
    let refused = |output: Output, code: i32, part: &str| {
        assert_eq!(output.code, Some(code), "{output:?}");
        assert!(output.stderr.contains(part) && output.stdout.is_empty(), "{part}: {output:?}");
    };
    let before = project.json(0, &["runs", "--json"]);
    // Change a byte of the history.
    let changed = rusqlite::Connection::open(project.path("copy.db")).unwrap();
    changed.execute("UPDATE commits SET payload = payload || x'00' WHERE key = (SELECT max(key) FROM commits)", []).unwrap();
    drop(changed);
    refused(project.run(&["db", "restore", "copy.db", "--force"]), 1, "its contents differ from what was written");
    project.write("text.db", "just text, but long enough that it could be mistaken for a database or even for two");
    refused(project.run(&["db", "restore", "text.db", "--force"]), 1, "cannot be restored");
    refused(project.run(&["db", "restore", "missing.db"]), 4, "missing.db cannot be read");
    refused(project.run(&["db", "restore", ".", "--force"]), 4, "is not a file");
    project.write("live.db", std::fs::read(project.path("copy.db")).unwrap());
    project.write("live.db-wal", "frames");
    refused(project.run(&["db", "restore", "live.db", "--force"]), 4, "a database in use");
    assert_eq!(project.json(0, &["runs", "--json"]), before);
    let left: Vec<String> = tree(&project.path(".lockgate")).into_iter().map(|(path, _)| path).collect();
    assert!(left.iter().all(|path| !path.contains(".new-") && !path.contains("before-")), "{left:?}");
}

#[test]
fn gc_removes_only_files_that_no_run_needs() {
    let project = waiting();
    assert_eq!(project.run(&["run", "flow.yaml", "done", "--answer", "plan=1"]).code, Some(0));
    let (done, open) = (project.newest(), project.status("login")["run"].as_str().unwrap().to_owned());
    let folder = |run: &str, name: &str| format!(".lockgate/runs/{run}/{name}");
    // Runs that no longer exist: one with outputs, one without, and one that may just be starting.
    for (run, output) in [("gonewith", true), ("gonebare", false), ("justnow1", false)] {
        for part in ["logs", "locks", "out"] {
            std::fs::create_dir_all(project.path(&folder(run, part))).unwrap();
        }
        project.write(&folder(run, "logs/a.1.task.t.1.log"), "printed");
        if output {
            project.write(&folder(run, "out/result.txt"), "precious");
        }
        if run != "justnow1" {
            age(&project.path(&format!(".lockgate/runs/{run}")));
        }
    }
    // A link out of the project is not followed.
    std::os::unix::fs::symlink(project.root(), project.path(".lockgate/runs/linked")).unwrap();
    std::fs::create_dir_all(project.path(".lockgate/drivers")).unwrap();
    for name in ["lockgate.db.new-0011", ".lockgate-00ff.tmp", "drivers/abc.new", "lockgate.db.new-young"] {
        project.write(&format!(".lockgate/{name}"), "half");
        if !name.ends_with("young") {
            age(&project.path(&format!(".lockgate/{name}")));
        }
    }
    project.write(".lockgate/drivers/deaddriver.lock", "{}");
    project.write(&folder(&done, "out/.lockgate-0000.tmp"), "in an output directory");
    age(&project.path(&folder(&done, "out/.lockgate-0000.tmp")));
    project.write(&folder(&open, "logs/.lockgate-0000.tmp"), "of an unfinished run");
    age(&project.path(&folder(&open, "logs/.lockgate-0000.tmp")));
    project.change(
        "INSERT INTO stored_values(digest, bytes) VALUES(zeroblob(32), zeroblob(5000))",
        "INSERT INTO lockgate.stored_values(digest, bytes) VALUES(decode(repeat('00', 32), 'hex'), decode(repeat('00', 5000), 'hex'))",
    );

    for run in [&done, &open] {
        project.write(&folder(run, "locks/plan.1.task.draft.1.lock"), "1\n");
        project.write(&folder(run, "locks/plan.1.gate.good.1.lock"), "1\n");
    }
    // A process of the finished run still holds this lock.
    project.write(&folder(&done, "locks/plan.1.task.held.1.lock"), "1\n");
    let held = std::fs::File::open(project.path(&folder(&done, "locks/plan.1.task.held.1.lock"))).unwrap();
    held.lock().unwrap();

    let before = tree(&project.path("."));
    let output = project.run(&["db", "gc", "--dry-run"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("would remove 1 stored value without references, 5 kB\n"), "{output:?}");
    let names = |tree: &[(String, Vec<u8>)]| -> Vec<String> {
        let is_no_companion = |path: &&String| !path.ends_with("-wal") && !path.ends_with("-shm");
        tree.iter().map(|(path, _)| path).filter(is_no_companion).cloned().collect()
    };
    assert_eq!(names(&tree(&project.path("."))), names(&before), "a dry run removes nothing");

    assert_data_eq!(
        project.snapshot(&project.run(&["db", "gc"])),
        str![[r#"
exit 0
--- stdout
removed 1 file of a dead driver, 2 B
removed 2 lock files of ended attempts, 4 B
removed 2 directories of runs that no longer exist, 14 B
removed 3 incomplete files, 12 B
removed 1 stored value without references, 5 kB
5 kB in all
--- stderr
note: .lockgate/runs/gonewith/out is kept because it may contain your files; remove it yourself if you do not need it

"#]]
    );
    let after = names(&tree(&project.path(".")));
    let gone: Vec<String> = names(&before).into_iter().filter(|path| !after.contains(path)).collect();
    for part in ["deaddriver.lock", "new-0011", "00ff.tmp", "abc.new", "gonewith/logs", "runs/gonebare", "draft.1.lock"] {
        assert!(gone.iter().any(|path| path.contains(part)), "{part} is still there: {gone:?}");
    }
    assert!(
        gone.iter()
            .all(|path| !path.contains(&open) && !path.contains("/out/") && !path.contains("justnow1") && !path.contains("held"))
    );
    assert_eq!(project.read(&folder("gonewith", "out/result.txt")), "precious");
    assert_eq!(wrong(&project.json(1, &["doctor", "--json"])), ["orphans"], "what lives on is found");
    drop(held);
    assert!(project.run(&["db", "gc"]).stdout.starts_with("removed 1 lock file of an ended attempt, 2 B\n"));
    assert_eq!(project.run(&["db", "gc"]).stdout, "nothing to remove\n");
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
}
