//! The question at a checkpoint, judged by the contents of the screen.

use crate::project::Project;
use crate::screen::Screen;

const WINDOW: (u16, u16) = (80, 24);

const FLOW: &str = "
name: flow
phases:
  - id: review
    tasks: [{ id: read, run: 'true' }]
    checkpoint:
      prompt: Is it good?
      show_files: [one.md, two.md]
      options:
        - { label: Publish, on_select: { action: continue } }
        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }
        - { label: Accept, with_feedback: true, on_select: { action: continue } }
        - { label: Stop, on_select: { action: abort } }
";

/// A shell script that stops the program, clears the screen, and resumes the program.
const STOPPED_AND_BACK: &str = "set -m; \"$LOCKGATE\" run flow.yaml; echo \"stopped with $?\"; read -r _; clear; fg; \
                                echo \"ended with $?\"";

fn project() -> Project {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", FLOW);
    project.write("one.md", "first\n");
    project.write("two.md", "second\n");
    project
}

/// Waits until all of these are on the screen at the same time.
fn shows_all(screen: &mut Screen, parts: &[&str]) {
    screen.until(&format!("{parts:?}"), |screen| parts.iter().all(|part| screen.text().contains(part)));
}

#[test]
fn after_ctrl_z_and_fg_the_question_options_and_hints_are_redrawn() {
    let project = project();
    let mut screen = Screen::shell(&project, WINDOW, STOPPED_AND_BACK, &[]);
    screen.shows("then Enter: ");
    screen.send("Publ");
    screen.shows("then Enter: Publ");
    screen.send("\x1a");
    screen.shows("stopped with ");
    screen.send("\n");
    screen.until("the clear screen", |screen| !screen.text().contains("stopped with"));
    let parts =
        ["Is it good?", "file one.md", "file two.md", "1. Publish", "4. Stop", "Ctrl+O shows the files", "then Enter: Publ"];
    shows_all(&mut screen, &parts);
    screen.send("ish\r");
    screen.shows("ended with 0");
}

#[test]
fn after_ctrl_z_and_fg_the_draft_and_its_hints_are_redrawn() {
    let project = project();
    let mut screen = Screen::shell(&project, WINDOW, STOPPED_AND_BACK, &[]);
    screen.shows("then Enter: ");
    screen.send("2\r");
    screen.shows("Feedback: ");
    screen.send("much shor");
    screen.shows("> much shor");
    screen.send("\x1a");
    screen.shows("stopped with ");
    screen.send("\n");
    screen.until("the clear screen", |screen| !screen.text().contains("stopped with"));
    let parts = ["Is it good?", "2. Again", "Ctrl+O shows", "then Enter: Again", "Feedback: ", "Alt+Enter", "> much shor"];
    shows_all(&mut screen, &parts);
    screen.send("ter\r");
    screen.until("the next question", |screen| screen.input().ends_with("then Enter:"));
    screen.send("4\r");
    screen.shows("ended with 2");
    assert_eq!(project.events(&project.newest(), "answered")[0]["feedback"], "much shorter");
}

#[test]
fn escape_returns_to_the_options_and_keeps_the_draft() {
    let project = project();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    screen.send("2\r");
    screen.shows("Feedback: ");
    screen.send("much shorter");
    screen.shows("> much shorter");
    screen.send("\x1b");
    screen.shows("Your feedback is kept");
    screen.until("the question", |screen| screen.input().ends_with("then Enter:"));
    // The options are visible again, once.
    for part in ["Is it good?", "1. Publish", "2. Again", "3. Accept", "4. Stop"] {
        assert_eq!(
            screen.rows().iter().filter(|row| row.contains(part) && !row.contains("hold ")).count(),
            1,
            "{part}: {}",
            screen.text()
        );
    }
    assert!(!screen.text().contains("Feedback: "), "{}", screen.text());
    // With either option.
    for option in ["3\r", "2\r"] {
        screen.send(option);
        screen.until("the draft", |screen| screen.input() == "> much shorter");
        screen.send("\x1b");
        screen.until("the question", |screen| screen.input().ends_with("then Enter:"));
    }
    screen.send("2\r");
    screen.until("the draft", |screen| screen.input() == "> much shorter");
    screen.send(", please\r");
    screen.shows("(execution 2)");
    screen.until("the next question", |screen| screen.input().ends_with("then Enter:"));
    screen.send("2\r");
    screen.until("an empty draft", |screen| screen.input() == ">");
    screen.send("\x1b");
    screen.until("the question", |screen| screen.input().ends_with("then Enter:"));
    screen.send("4\r");
    assert_eq!(screen.end(), 2, "{}", screen.text());
    assert_eq!(project.events(&project.newest(), "answered")[0]["feedback"], "much shorter, please");
}

#[test]
fn late_feedback_is_kept_as_a_draft_when_the_question_is_asked_again() {
    let project = project();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    screen.send("3\r");
    screen.shows("Feedback: ");
    screen.send("much shorter");
    screen.shows("> much shorter");
    project.write("one.md", "something else\n");
    screen.send("\r");
    shows_all(&mut screen, &["@2)", "Your feedback is kept"]);
    screen.send("3\r");
    screen.until("the draft", |screen| screen.input() == "> much shorter");
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
}

#[test]
fn hints_wrap_between_words() {
    for columns in [80, 60, 40] {
        let project = project();
        let script = "exec \"$LOCKGATE\" run flow.yaml";
        let mut screen = Screen::shell(&project, (columns, 40), script, &[("EDITOR", "true")]);
        screen.shows("then Enter:");
        screen.send("2\r");
        screen.until("the draft", |screen| screen.text().contains("Feedback: ") && screen.input() == ">");
        let rows = screen.rows();
        let first = rows.iter().position(|row| row.starts_with("Feedback: ")).unwrap();
        let hint: Vec<&str> = rows[first..].iter().map(|row| row.trim_end()).take_while(|row| *row != ">").collect();
        assert!(hint.len() > 1, "{hint:?}");
        assert_eq!(
            hint.join(" "),
            "Feedback: Enter sends it (it may be empty), Alt+Enter inserts a line break, Ctrl+G opens your editor, Esc goes back and keeps it."
        );
        screen.send("\x03");
        assert_eq!(screen.end(), 130);
    }
}

#[test]
fn the_question_and_options_stay_visible_below_long_files() {
    let long: String = (1..=40).map(|at| format!("line {at} {}\n", "of a rather long text ".repeat(6))).collect();
    for (columns, rows) in [(80, 24), (60, 24), (80, 50), (80, 18)] {
        let project = project();
        project.write("one.md", &long);
        project.write("two.md", &long);
        let mut screen = Screen::start(&project, (columns, rows), &["run", "flow.yaml"]);
        screen.shows("then Enter:");
        let seen = ["Checkpoint in phase", "Is it good?", "file one.md", "file two.md", "1. Publish", "4. Stop", "Ctrl+O shows"];
        for part in seen {
            assert!(screen.text().contains(part), "{columns}x{rows} lacks {part}:\n{}", screen.text());
        }
        assert_eq!(screen.text().contains("│ line 1 of"), rows > 18, "{columns}x{rows}:\n{}", screen.text());
        // Also while feedback is being typed.
        screen.send("2\r");
        screen.until("the draft", |screen| screen.text().contains("Feedback: ") && screen.input() == ">");
        for part in seen {
            assert!(screen.text().contains(part), "{columns}x{rows} lacks {part}:\n{}", screen.text());
        }
        screen.send("\x03");
        assert_eq!(screen.end(), 130);
    }
}

#[test]
fn with_very_many_files_the_first_are_named_and_the_rest_counted() {
    let project = project();
    let names: Vec<String> = (1..=40).map(|at| format!("file-{at:02}.md")).collect();
    names.iter().for_each(|name| project.write(name, "text\n"));
    project.write("flow.yaml", FLOW.replace("one.md, two.md", &names.join(", ")));
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter:");
    for part in ["Checkpoint in phase", "Is it good?", "file file-01.md", " more files", "1. Publish", "Ctrl+O shows"] {
        assert!(screen.text().contains(part), "{part} is missing:\n{}", screen.text());
    }
    let named = screen.rows().iter().filter(|row| row.contains("file file-")).count();
    assert!(screen.text().contains(&format!("… and {} more files", 40 - named)), "{}", screen.text());
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
}

#[test]
fn after_paging_through_the_files_the_question_is_shown_again() {
    let project = project();
    let below_the_files = |screen: &Screen| {
        let text = screen.text();
        let files = text.find("\none.md (6 B)\n");
        files.is_some_and(|files| text[files..].contains("Is it good?") && text[files..].contains("Ctrl+O shows"))
    };
    let no_pager = [("PAGER", "no-such-pager")];
    let mut screen = Screen::shell(&project, (80, 50), "exec \"$LOCKGATE\" run flow.yaml", &no_pager);
    screen.shows("then Enter:");
    screen.send("\x0f");
    screen.until("the question again", |screen| below_the_files(screen) && screen.input().ends_with("then Enter:"));
    screen.send("\x04");
    assert_eq!(screen.end(), 3);
    // The same when a command asks to confirm an answer.
    let hold = project.waiting_hold();
    let command = format!("exec \"$LOCKGATE\" answer {} Publish", hold.split('@').next().unwrap());
    let mut screen = Screen::shell(&project, (80, 50), &command, &no_pager);
    screen.shows("[y/N]");
    screen.send("\x0f");
    screen.until("the question again", |screen| below_the_files(screen) && screen.input() == "Answer \"Publish\"? [y/N]");
    screen.send("y\r");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}
