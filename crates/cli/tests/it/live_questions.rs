//! A question at a terminal while other tasks run: it stays in place, the tree continues below it, and finished tasks are printed
//! above it.

use crate::project::{Project, until};
use crate::screen::Screen;

const WINDOW: (u16, u16) = (80, 40);

/// A question alongside a task that runs until a file exists.
const IN_PARALLEL: &str = "
name: flow
phases:
  - id: build
    tasks:
      - { id: ask, decision: { question: Which one?, options: [{ id: one, name: One }, { id: two, name: Two }] } }
      - { id: long, run: 'until [ -e finish ]; do sleep 0.02; done; echo over' }
      - { id: more, run: 'until [ -e more ]; do sleep 0.02; done' }
";

fn in_parallel() -> Project {
    let project = Project::new();
    project.write("flow.yaml", IN_PARALLEL);
    project
}

#[test]
fn ctrl_c_at_a_question_stops_running_tasks() {
    let project = in_parallel();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    screen.send("\x03");
    screen.shows("was interrupted; its state is saved");
    assert_eq!(screen.end(), 130, "{}", screen.text());
    assert_eq!(project.events(&project.newest(), "interrupted").len(), 1);
    assert!(project.events(&project.newest(), "task_interrupted").len() >= 2);
}

#[test]
fn a_question_is_closed_when_the_run_is_cancelled() {
    let project = in_parallel();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    assert_eq!(project.run(&["cancel", &project.newest()]).code, Some(0));
    // Nothing is typed, so the program can exit only because the question was closed.
    screen.shows("was cancelled");
    assert!(screen.end() != 0);
}

/// The row of the screen that contains a text.
fn row_of(screen: &Screen, text: &str) -> usize {
    screen.rows().iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("no {text:?}:\n{}", screen.text()))
}

/// How many rows contain a text, including those that were scrolled away.
fn count(screen: &mut Screen, text: &str) -> usize {
    screen.history().iter().filter(|row| row.contains(text)).count()
}

#[test]
fn the_tree_continues_below_a_question_and_finished_tasks_are_printed_above_it() {
    let project = in_parallel();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.until("the question and the tree", |screen| {
        screen.input().ends_with("then Enter:") && screen.text().contains("● more") && screen.text().contains("● long")
    });
    assert_eq!(project.status(&project.newest())["tasks"][1]["status"], "running");
    screen.send("tw");
    screen.until("what is typed", |screen| screen.input().ends_with("then Enter: tw"));
    project.write("more", "");
    screen.until("the other task's end", |screen| screen.text().contains("✓ more") && screen.text().contains("build/more done"));
    let rows = ["build/more done", "Decision in phase build", "Which one?", "1. One", "2. Two", "then Enter: tw", "● long"];
    let rows: Vec<usize> =
        rows.iter().map(|part| screen.rows().iter().rposition(|row| row.contains(part)).expect(part)).collect();
    assert!(rows.is_sorted(), "{rows:?}:\n{}", screen.text());
    screen.send("o\r");
    screen.until("the answer", |screen| {
        let text = screen.text();
        text.contains("answered \"Two\"") && text.contains("● long") && !text.contains("then Enter")
    });
    until("the answer's effect", || !project.events(&project.newest(), "hold_settled").is_empty());
    assert_eq!(project.status(&project.newest())["tasks"][1]["status"], "running");
    project.write("finish", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    assert_eq!(project.events(&project.newest(), "answered")[0]["actor"]["channel"], "prompt");
    assert_eq!(count(&mut screen, "Decision in phase"), 0, "only the record is left: {}", screen.text());
}

#[test]
fn an_answer_given_elsewhere_takes_the_question_away_and_leaves_one_line() {
    let project = in_parallel();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    screen.send("tw");
    screen.shows("then Enter: tw");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "one", "--no-resume"]).code, Some(0));
    screen.until("the tree alone", |screen| {
        screen.text().contains("was answered elsewhere: \"One\"")
            && !screen.text().contains("then Enter")
            && screen.input().is_empty()
            && screen.text().contains("● long")
    });
    assert_eq!(count(&mut screen, "answered elsewhere"), 1);
    assert_eq!(count(&mut screen, "Decision in phase"), 0);
    project.write("more", "");
    project.write("finish", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}

#[test]
fn feedback_is_kept_when_an_answer_elsewhere_opens_the_hold_again() {
    let project = Project::new();
    project.write("one.md", "first\n");
    project.write(
        "flow.yaml",
        "name: flow\nphases:\n  - id: review\n    checkpoint:\n      prompt: Is it good?\n      show_files: [one.md]\n      options:\n        - { label: Publish, on_select: { action: continue } }\n        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }\n",
    );
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    screen.send("2\r");
    screen.shows("Feedback: ");
    screen.send("much shorter");
    screen.until("the draft", |screen| screen.input() == "> much shorter");
    project.write("one.md", "something else\n");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Publish", "--no-resume"]).code, Some(0));
    screen.until("the hold again", |screen| {
        screen.text().contains("@2)")
            && screen.text().contains("Your feedback is kept")
            && screen.input().ends_with("then Enter:")
    });
    screen.send("2\r");
    screen.until("the draft again", |screen| screen.input() == "> much shorter");
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
}

#[test]
fn holds_are_asked_about_one_after_another_and_counted() {
    let project = in_parallel();
    let more = "      - { id: wait, run: 'until [ -e third ]; do sleep 0.02; done' }
      - { id: second, decision: { question: Which other?, options: [{ id: red, name: Red }, { id: blue, name: Blue }] } }
      - { id: third, needs: [wait], decision: { question: And the third?, options: [{ id: up, name: Up }, { id: down, name: Down }] } }
";
    project.write("flow.yaml", format!("{}\n{more}", IN_PARALLEL.trim_end()));
    let mut screen = Screen::start(&project, (100, 60), &["run", "flow.yaml"]);
    screen.until("the first of two", |screen| {
        screen.text().contains("1 of 2 · Decision") && screen.input().ends_with("then Enter:")
    });
    screen.send("o");
    // A hold that opens meanwhile is counted immediately, and the typed text stays.
    project.write("third", "");
    screen.until("the first of three", |screen| {
        screen.text().contains("1 of 3 · Decision") && screen.input().ends_with("then Enter: o")
    });
    assert!(row_of(&screen, "hold ") < row_of(&screen, "1 of 3"), "the record is above: {}", screen.text());
    screen.send("\x151\r");
    screen.until("the second", |screen| screen.text().contains("2 of 3 · Decision") && screen.input().ends_with("then Enter:"));
    screen.send("1\r");
    screen.until("the third", |screen| {
        screen.text().contains("3 of 3 · Decision")
            && screen.rows().iter().any(|row| row == "Decision needed: And the third?")
            && screen.input().ends_with("then Enter:")
    });
    screen.send("1\r");
    until("all answers", || project.events(&project.newest(), "answered").len() == 3);
    project.write("more", "");
    project.write("finish", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}

#[test]
fn a_window_that_changes_its_size_has_the_question_once_and_the_tree_below_it() {
    // A terminal that wraps long rows, and one that truncates them.
    for set in [[("LANG", "C")], [("XTERM_VERSION", "XTerm(390)")]] {
        let project = in_parallel();
        project.write("flow.yaml", IN_PARALLEL.replace("Which one?", "Which one of these is it that we should choose at last?"));
        let mut screen = Screen::shell(&project, (80, 40), "exec \"$LOCKGATE\" run flow.yaml", &set);
        screen.until("the tree", |screen| screen.text().contains("● long") && screen.input().ends_with("then Enter:"));
        screen.send("tw");
        screen.until("what is typed", |screen| screen.input().ends_with("tw"));
        let recorded = screen.rows().iter().filter(|row| row.starts_with("run ") || row.starts_with("phase ")).count();
        for columns in [60, 45, 30, 100, 25, 80] {
            let before = screen.bytes.len();
            match set[0].0 {
                "LANG" => screen.reflow(columns),
                _ => screen.resize((columns, 40)),
            }
            let label = if columns > 70 { "Choose 1-2 (number, label or arrows), then Enter: tw" } else { "> tw" };
            screen.until(&format!("a drawing in {columns} columns"), |screen| {
                // The old drawing is erased before the new one is drawn.
                String::from_utf8_lossy(&screen.bytes[before..]).contains("\x1b7")
                    && screen.input() == label
                    && screen.rows().iter().filter(|row| row.contains("● long")).count() == 1
            });
            assert_eq!(count(&mut screen, "Decision in phase"), 1, "{columns}: {}", screen.history().join("\n"));
            assert_eq!(count(&mut screen, "2. Two"), 1, "{columns}: {}", screen.history().join("\n"));
            assert!(row_of(&screen, "2. Two") < row_of(&screen, "● long"), "{}", screen.text());
        }
        let kept = screen.history().iter().filter(|row| row.starts_with("run ") || row.starts_with("phase ")).count();
        assert_eq!(kept, recorded, "nothing that happened is lost: {}", screen.history().join("\n"));
        screen.send("o\r");
        project.write("more", "");
        project.write("finish", "");
        assert_eq!(screen.end(), 0, "{}", screen.text());
    }
}

#[test]
fn in_a_small_window_the_question_the_options_and_the_typed_text_are_in_sight() {
    let project = Project::new();
    project.write("one.md", "first\n");
    project.write(
        "flow.yaml",
        "name: flow\nphases:\n  - id: review\n    checkpoint:\n      prompt: Is it good?\n      show_files: [one.md]\n      options:\n        - { label: Publish, on_select: { action: continue } }\n        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }\n        - { label: Stop, on_select: { action: abort } }\n",
    );
    for size in [(24, 10), (80, 10), (24, 24), (40, 7)] {
        let mut screen = Screen::start(&project, size, &["run", "flow.yaml"]);
        screen.until("the question", |screen| {
            let rows = screen.rows();
            let has = |part: &str| rows.iter().any(|row| row.starts_with(part));
            has("Is it good?") && has("  1. Publish") && has("  2. Again") && has("  3. Stop") && !screen.input().is_empty()
        });
        screen.send("2\r");
        screen.send("shorter");
        screen.until("the draft", |screen| screen.input() == "> shorter");
        for part in ["Is it good?", "  1. Publish", "  3. Stop"] {
            assert!(screen.rows().iter().any(|row| row.starts_with(part)), "{size:?} lacks {part}:\n{}", screen.text());
        }
        screen.send("\x03");
        assert_eq!(screen.end(), 130);
    }
}

#[test]
fn a_question_that_is_too_long_for_the_window_says_so_and_is_shown_in_full_by_the_pager() {
    let project = Project::new();
    let long: String = (1..=60).map(|at| format!("        line {at} of the question\n")).collect();
    project.write("flow.yaml", format!("name: flow\nphases:\n  - id: review\n    checkpoint:\n      prompt: |\n{long}"));
    let set = [("LOCKGATE_PAGER", "cat > seen.new; mv seen.new seen")];
    let mut screen = Screen::shell(&project, (80, 24), "exec \"$LOCKGATE\" run flow.yaml", &set);
    screen.until("the question", |screen| screen.input().ends_with("then Enter:"));
    for part in ["line 1 of the question", "more rows: Ctrl+O shows all", "1. Continue", "waits for a person"] {
        assert!(screen.text().contains(part), "{part}: {}", screen.text());
    }
    screen.send("\x0f");
    until("the pager", || project.path("seen").exists());
    assert!(project.read("seen").contains("line 60 of the question"), "{}", project.read("seen"));
    screen.until("the question again", |screen| {
        let bytes = String::from_utf8_lossy(&screen.bytes);
        bytes.matches("then Enter: ").count() > 1 && screen.input().ends_with("then Enter:")
    });
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
}

#[test]
fn a_task_that_ends_while_the_pager_is_open_is_printed_afterwards() {
    let project = Project::new();
    project.write("one.md", "first\n");
    project.write(
        "flow.yaml",
        "name: flow\nphases:\n  - id: build\n    tasks:\n      - { id: ask, decision: { question: Which one?, options: [{ id: one, name: One }, { id: two, name: Two }] } }\n      - { id: more, run: 'until [ -e more ]; do sleep 0.02; done' }\n",
    );
    let pager = "cat > /dev/null; echo PAGING; until test -e paged; do sleep 0.02; done";
    let mut screen = Screen::shell(&project, WINDOW, "exec \"$LOCKGATE\" run flow.yaml", &[("LOCKGATE_PAGER", pager)]);
    screen.shows("then Enter: ");
    screen.send("\x0f");
    screen.shows("PAGING");
    project.write("more", "");
    until("the other task's end", || !project.events(&project.newest(), "task_finished").is_empty());
    assert!(!screen.text().contains("build/more done"), "{}", screen.text());
    project.write("paged", "");
    screen.until("what happened and the question", |screen| {
        screen.text().contains("build/more done") && screen.input().ends_with("then Enter:")
    });
    screen.send("1\r");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}

#[test]
fn a_question_that_is_stopped_from_outside_gives_the_terminal_back() {
    let project = in_parallel();
    let script = "set -m; before=$(stty -g); \"$LOCKGATE\" run flow.yaml; echo \"stopped with $?\"; \
                  test \"$before\" = \"$(stty -g)\" && echo same; read -r _; fg; echo \"ended with $?\"";
    let mut screen = Screen::shell(&project, WINDOW, script, &[]);
    screen.shows("then Enter: ");
    let driver = project.status(&project.newest())["driver"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(driver).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TSTP).unwrap();
    screen.shows("stopped with ");
    screen.shows("same");
    assert!(!screen.text().contains("then Enter") && !screen.text().contains('●'), "{}", screen.text());
    screen.send("\n");
    screen.until("the question", |screen| screen.input().ends_with("then Enter:") && screen.text().contains("● long"));
    project.write("more", "");
    project.write("finish", "");
    screen.send("1\r");
    screen.shows("ended with 0");
    screen.end();
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_the_question_once_and_what_happens_in_between() {
    let project = in_parallel();
    let mut screen = Screen::shell(&project, WINDOW, "exec \"$LOCKGATE\" run flow.yaml", &[("TERM", "dumb")]);
    screen.shows("then Enter: ");
    screen.send("tw");
    screen.until("what is typed", |screen| screen.input().ends_with("then Enter: tw"));
    project.write("more", "");
    screen.until("the other task's end", |screen| {
        screen.text().contains("build/more done") && screen.input().ends_with("then Enter: tw")
    });
    assert_eq!(count(&mut screen, "Decision in phase"), 1, "{}", screen.text());
    screen.send("o\r");
    screen.shows("answered \"Two\"");
    project.write("finish", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}
