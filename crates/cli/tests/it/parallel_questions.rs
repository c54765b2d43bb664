//! Questions that are asked at a terminal while other tasks run.

use crate::project::{Project, until};
use crate::screen::Screen;

const WINDOW: (u16, u16) = (80, 40);

/// A question next to a task that runs until a file is there.
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
fn a_question_is_asked_while_other_tasks_run() {
    let project = in_parallel();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    assert_eq!(project.status(&project.newest())["tasks"][1]["status"], "running");
    // What happens meanwhile is recorded, and leaves the question on the screen as it is.
    screen.send("tw");
    screen.shows("then Enter: tw");
    project.write("more", "");
    until("the other task's end", || !project.events(&project.newest(), "task_finished").is_empty());
    let asked = screen.text();
    screen.send("o");
    screen.shows("then Enter: two");
    assert_eq!(screen.text(), format!("{}o", asked.trim_end()));
    screen.send("\r");
    // Then it is printed, and the tree is there again.
    screen.until("what happened meanwhile", |screen| {
        let text = screen.text();
        text.contains("build/more done") && text.contains("answered \"Two\"") && text.contains("long")
    });
    until("the answer's effect", || !project.events(&project.newest(), "hold_settled").is_empty());
    assert_eq!(project.status(&project.newest())["tasks"][1]["status"], "running");
    project.write("finish", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    assert_eq!(project.events(&project.newest(), "answered")[0]["actor"]["channel"], "prompt");
}

#[test]
fn a_question_closes_when_it_is_answered_elsewhere_while_other_tasks_run() {
    let project = in_parallel();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "one"]).code, Some(0));
    screen.shows("was answered elsewhere: \"One\"");
    project.write("more", "");
    project.write("finish", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
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
fn two_questions_are_asked_one_after_the_other_while_a_task_runs() {
    let project = in_parallel();
    let second = "      - { id: again, decision: { question: Which other?, options: [{ id: red, name: Red }, { id: blue, name: Blue }] } }\n";
    project.write("flow.yaml", format!("{}{second}", IN_PARALLEL.trim_end().to_owned() + "\n"));
    let mut screen = Screen::start(&project, (80, 60), &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    let answered = |screen: &Screen, label: &str| screen.text().contains(&format!("answered \"{label}\""));
    screen.send("1\r");
    screen.until("the first answer", |screen| answered(screen, "One") != answered(screen, "Red"));
    screen.until("the other question", |screen| screen.text().trim_end().ends_with("then Enter:"));
    screen.send("1\r");
    screen.until("both answers", |screen| answered(screen, "One") && answered(screen, "Red"));
    project.write("more", "");
    project.write("finish", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}

#[test]
fn a_question_is_closed_when_the_run_is_cancelled() {
    let project = in_parallel();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    assert_eq!(project.run(&["cancel", &project.newest()]).code, Some(0));
    // Nothing is typed, so the program can only end because the question was closed.
    screen.shows("was cancelled");
    assert!(screen.end() != 0);
}
