//! F2: an approval is bound to the content that was shown.

use crate::project::Project;
use snapbox::{assert_data_eq, str};

const FLOW: &str = "
name: seen
phases:
  - id: write
    tasks: [{ id: text, run: 'true' }]
    checkpoint:
      prompt: Publish this?
      show_files: [article.md]
      options:
        - { label: Publish, on_select: { action: continue } }
        - { label: Again, on_select: { action: repeat_phase, target: current } }
        - { label: Stop, on_select: { action: abort } }
  - id: publish
    tasks: [{ id: send, run: 'cp article.md published' }]
";

fn waiting() -> (Project, String) {
    let project = Project::with(FLOW);
    project.write("article.md", "first line\nsecond line\n");
    assert_eq!(project.run(&["run", "flow.yaml", "news"]).code, Some(3));
    let hold = project.waiting_hold();
    (project, hold)
}

#[test]
fn a_file_change_before_the_answer_takes_effect_reopens_the_hold_with_a_diff() {
    let (project, hold) = waiting();
    project.write("article.md", "first line\nanother line\n");
    let output = project.run(&["answer", &hold, "Publish", "--foreground"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 3
--- stdout
--- stderr
hold [HOLD] is answered: "Publish"
run [RUN] continues
  the shown content has changed, so the hold is reopened: [HOLD]@2
    article.md changed (24 B, was 23 B)
    --- article.md (as shown)
    +++ article.md (now)
    @@ -1,2 +1,2 @@
     first line
    -second line
    +another line
run [RUN] waits for a person: hold [HOLD]@2 in phase write
    Publish this?
    ! article.md changed (24 B, was 23 B)
    ! --- article.md (as shown)
    ! +++ article.md (now)
    ! @@ -1,2 +1,2 @@
    !  first line
    ! -second line
    ! +another line
    file article.md
  answer it with one of
    lockgate answer [HOLD]@2 Publish
    lockgate answer [HOLD]@2 Again
    lockgate answer [HOLD]@2 Stop
  see details: lockgate why [RUN]

"#]]
    );
    assert!(!project.path("published").exists());

    let stale = project.run(&["answer", &hold, "Publish", "--foreground"]);
    assert_eq!(stale.code, Some(3), "{stale:?}");
    assert!(stale.stderr.contains("you answered revision 1, but revision 2 is open"), "{stale:?}");
    assert!(stale.stderr.contains("+another line"), "what changed is shown: {stale:?}");
    assert!(!project.path("published").exists());

    let seen = project.waiting_hold();
    assert!(seen.ends_with("@2"));
    assert_eq!(project.run(&["answer", &seen, "Publish", "--foreground"]).code, Some(0));
    assert_eq!(project.read("published"), "first line\nanother line\n");
}

#[test]
fn a_file_change_between_the_answer_and_a_resume_reopens_the_hold() {
    let (project, hold) = waiting();
    assert_eq!(project.run(&["answer", &hold, "Publish", "--no-resume"]).code, Some(0));
    project.write("article.md", "something else\n");
    let output = project.run(&["resume", "news"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(!project.path("published").exists());
    assert_eq!(project.events(&project.newest(), "hold_reopened")[0]["revision"], 2);
    // The file changes and changes back. The first approval stays void.
    project.write("article.md", "first line\nsecond line\n");
    assert_eq!(project.run(&["resume", "news"]).code, Some(3));
    assert!(!project.path("published").exists());
}

#[test]
fn a_deleted_or_created_file_also_reopens_the_hold() {
    let (project, hold) = waiting();
    std::fs::remove_file(project.path("article.md")).unwrap();
    assert_eq!(project.run(&["answer", &hold, "Publish", "--foreground"]).code, Some(3));
    let hold = project.waiting_hold();
    project.write("article.md", "back\n");
    assert_eq!(project.run(&["answer", &hold, "Publish", "--foreground"]).code, Some(3));
    assert!(project.waiting_hold().ends_with("@3"));
}

#[test]
fn a_preset_answer_never_answers_a_reopened_hold() {
    let (project, hold) = waiting();
    assert_eq!(project.run(&["answer", &hold, "Publish", "--no-resume"]).code, Some(0));
    project.write("article.md", "something else\n");
    let output = project.run(&["resume", "news", "--answer", "write=Publish"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("was not used"), "{output:?}");
    assert!(!project.path("published").exists());
}

#[test]
fn a_file_change_does_not_void_answers_that_do_not_continue() {
    let (project, hold) = waiting();
    project.write("article.md", "something else\n");
    assert_eq!(project.run(&["answer", &hold, "Stop", "--foreground"]).code, Some(2));
}

#[test]
fn a_hold_that_shows_files_cannot_be_answered_by_bare_id() {
    let (project, hold) = waiting();
    let bare = hold.split('@').next().unwrap();
    let output = project.run(&["answer", bare, "Publish", "--no-resume"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains(&format!("{bare}@1")), "{output:?}");
    let simple = Project::with(&FLOW.replace("      show_files: [article.md]\n", ""));
    simple.write("article.md", "text");
    assert_eq!(simple.run(&["run", "flow.yaml"]).code, Some(3));
    let hold = simple.waiting_hold();
    assert_eq!(
        simple.run(&["answer", hold.split('@').next().unwrap(), "Publish", "--no-resume"]).code,
        Some(0),
        "nothing is shown there"
    );
}

#[test]
fn the_definition_is_frozen_and_a_changed_file_is_reported() {
    let (project, hold) = waiting();
    project.write("flow.yaml", "name: other\nphases: []\n");
    let output = project.run(&["answer", &hold, "Publish", "--foreground"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output
            .stderr
            .contains("have changed since it started: flow.yaml (it has errors now); the run keeps its original definition"),
        "{output:?}"
    );
    assert!(project.path("published").exists());
}
