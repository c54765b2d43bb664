//! The pager and the editor at a checkpoint.

use crate::project::{Project, until};
use crate::screen::Screen;

const WINDOW: (u16, u16) = (80, 24);

const FLOW: &str = "
name: flow
phases:
  - id: review
    tasks: [{ id: read, run: 'true' }]
    checkpoint:
      prompt: Is it good?
      show_files: [article.md, absent.md]
      options:
        - { label: Publish, on_select: { action: continue } }
        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }
";

/// A project whose hold shows a file of 60 lines, one of them long and one with control characters.
fn project() -> Project {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", FLOW);
    let lines: String = (1..=60).map(|at| format!("line {at}\n")).collect();
    project.write("article.md", format!("{lines}{}\nred \u{1b}[31m\tend", "x".repeat(500)));
    project
}

fn start(project: &Project, set: &[(&str, &str)]) -> Screen {
    let mut screen = Screen::shell(project, WINDOW, "exec \"$LOCKGATE\" run flow.yaml", set);
    screen.shows("Ctrl+O shows the files in full.");
    screen.shows("then Enter: ");
    screen
}

/// How many times a text was printed.
fn said(screen: &Screen, text: &str) -> usize {
    String::from_utf8_lossy(&screen.bytes).matches(text).count()
}

#[test]
fn the_pager_shows_the_file_as_it_was_when_the_hold_opened_with_control_characters_sanitized() {
    let project = project();
    let mut screen = start(&project, &[("PAGER", "false"), ("LOCKGATE_PAGER", "cat > seen; touch read")]);
    project.write("article.md", "something else");
    screen.send("\x0f");
    until("the pager", || project.path("read").exists());
    let seen = project.read("seen");
    let lines: String = (1..=60).map(|at| format!("line {at}\n")).collect();
    assert!(seen.contains(&format!(" (985 B)\n{lines}{}\nred ␛[31m\tend\n", "x".repeat(500))), "{seen}");
    assert!(seen.contains("absent.md\u{1b}[0m (missing)"), "{seen:?}");
    assert!(!seen.contains("something else") && !seen.contains("\u{1b}[31m"), "{seen:?}");
    screen.until("the prompt", |screen| said(screen, "then Enter: ") > 1);
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
}

#[test]
fn the_default_pager_is_less() {
    let project = project();
    let path = Screen::program(&project, "less", "cat > seen; echo \"$*\" > said.new; mv said.new said");
    let mut screen = start(&project, &[("PATH", &path)]);
    screen.send("\x0f");
    until("the pager", || project.path("said").exists());
    assert_eq!(project.read("said").trim(), "-R");
    assert!(project.read("seen").contains("line 60\n"));
    screen.until("the prompt", |screen| said(screen, "then Enter: ") > 1);
    screen.send("1\r");
    assert_eq!(screen.end(), 0);
}

#[test]
fn ctrl_c_in_the_pager_is_left_to_the_pager_and_the_question_is_shown_afterwards() {
    let project = project();
    let pager = "trap 'touch interrupted' INT; cat > /dev/null; touch paging; until test -e paged; do sleep 0.02; done";
    let mut screen = start(&project, &[("LOCKGATE_PAGER", pager)]);
    screen.send("\x0f");
    until("the pager", || project.path("paging").exists());
    screen.send("\x03");
    until("the pager's own Ctrl+C", || project.path("interrupted").exists());
    project.write("paged", "");
    // Typed text counts again once the prompt has the terminal back.
    screen.until("the prompt", |screen| said(screen, "then Enter: ") > 1);
    screen.send("1\r");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    assert_eq!(project.status(&project.newest())["status"], "complete");
}

#[test]
fn ctrl_z_in_the_pager_stops_both_and_fg_brings_the_pager_back() {
    let project = project();
    let script = "set -m; \"$LOCKGATE\" run flow.yaml; echo \"stopped with $?\"; read -r _; fg; echo \"ended with $?\"";
    let pager = "cat > /dev/null; touch paging; until test -e paged; do sleep 0.02; done";
    let mut screen = Screen::shell(&project, WINDOW, script, &[("LOCKGATE_PAGER", pager)]);
    screen.shows("then Enter: ");
    screen.send("\x0f");
    until("the pager", || project.path("paging").exists());
    screen.send("\x1a");
    screen.shows("stopped with ");
    screen.send("\n");
    project.write("paged", "");
    screen.until("the prompt", |screen| said(screen, "then Enter: ") > 1);
    screen.send("1\r");
    screen.shows("ended with 0");
    screen.end();
}

#[test]
fn without_a_pager_the_files_are_shown_page_by_page() {
    let project = project();
    let mut screen = start(&project, &[("LOCKGATE_PAGER", "no-such-program-anywhere")]);
    screen.send("\x0f");
    screen.shows("Enter or Space: next page, q: back");
    assert!(screen.text().contains("line 15") && !screen.text().contains("line 30"), "{}", screen.text());
    screen.send(" ");
    screen.until("the next page", |screen| screen.text().contains("line 35") && screen.text().contains("q: back"));
    screen.send("q");
    screen.until("the prompt", |screen| screen.input().ends_with("then Enter:"));
    screen.send("1\r");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}

#[test]
fn a_signal_while_the_pager_is_open_ends_both() {
    let project = project();
    let mut screen = start(&project, &[("LOCKGATE_PAGER", "cat > /dev/null; touch paging; exec sleep 1000")]);
    screen.send("\x0f");
    until("the pager", || project.path("paging").exists());
    let driver = project.status(&project.newest())["driver"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(driver).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(screen.end(), 143, "{}", screen.text());
}

#[test]
fn feedback_is_written_in_the_editor_and_sent_with_enter() {
    let project = project();
    let mut screen = start(
        &project,
        &[("EDITOR", "false"), ("VISUAL", "sh -c 'printf \"shorter\\nand clearer\\n\\n\" > \"$0\"; stat -c %a \"$0\" > mode'")],
    );
    screen.send("2\r");
    screen.shows("opens your editor");
    screen.send("\x07");
    screen.shows("Copied from the editor; press Enter to send it.");
    screen.shows("> shorter␊and clearer");
    screen.send("\r");
    screen
        .until("the question again", |screen| said(screen, "Checkpoint in phase") > 1 && screen.input().ends_with("then Enter:"));
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
    assert_eq!(project.events(&project.newest(), "answered")[0]["feedback"], "shorter\nand clearer");
    assert_eq!(project.read("mode").trim(), "600", "no other user can read it");
}

#[test]
fn an_editor_that_fails_or_writes_nothing_changes_nothing() {
    for (editor, reported) in [
        ("sh -c 'echo lost > \"$0\"; exit 1'", "The editor failed"),
        ("sh -c ': > \"$0\"'", "Nothing was changed in the editor."),
        ("true", "Nothing was changed in the editor."),
        ("no-such-program-anywhere", "The editor failed"),
    ] {
        let project = project();
        let mut screen = start(&project, &[("EDITOR", editor)]);
        screen.send("2\r");
        screen.shows("> ");
        screen.send("typed");
        screen.shows("> typed");
        screen.send("\x07");
        screen.shows(reported);
        screen.until("the line", |screen| screen.input() == "> typed");
        screen.send("!\r");
        screen.until("the question again", |screen| {
            said(screen, "Checkpoint in phase") > 1 && screen.input().ends_with("then Enter:")
        });
        screen.send("\x03");
        assert_eq!(screen.end(), 130);
        assert_eq!(project.events(&project.newest(), "answered")[0]["feedback"], "typed!", "{editor}");
    }
}

#[test]
fn without_an_editor_feedback_is_typed_on_one_line() {
    let project = project();
    let mut screen = start(&project, &[]);
    screen.send("2\r");
    screen.shows("> ");
    assert!(!screen.text().contains("Ctrl+G"), "{}", screen.text());
    screen.send("\x07");
    screen.shows("No editor is set: name one in VISUAL or EDITOR.");
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
}
