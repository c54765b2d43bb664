//! What follows from an answer: the run continues here, in the background, elsewhere or not at all.

use crate::project::{Project, until};
use crate::prompt::Terminal;

const FLOW: &str = "
name: flow
phases:
  - id: review
    tasks: [{ id: work, run: 'echo worked >> trace' }]
    checkpoint:
      prompt: Is it good?
      options:
        - { label: Publish, on_select: { action: continue } }
        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }
        - { label: Stop, on_select: { action: abort } }
  - id: publish
    tasks: [{ id: send, run: 'echo published >> trace' }]
";

fn waiting(project: &Project) -> String {
    project.write("flow.yaml", FLOW);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    project.newest()
}

#[test]
fn without_a_terminal_an_answer_continues_the_run_in_the_background() {
    let project = Project::new();
    let run = waiting(&project);
    let recorded = project.json(0, &["answer", &project.waiting_hold(), "Publish", "--json"]);
    assert_eq!((&recorded["recorded"], &recorded["continues"]), (&true.into(), &"background".into()), "{recorded}");
    assert_eq!(project.run(&["wait", &run]).code, Some(0));
    assert_eq!(project.read("trace"), "worked\npublished\n");
}

#[test]
fn an_answer_with_no_resume_is_only_recorded() {
    let project = Project::new();
    let run = waiting(&project);
    let hold = project.waiting_hold();
    let recorded = project.json(0, &["answer", &hold, "Publish", "--no-resume", "--json"]);
    assert_eq!(recorded["continues"], "no");
    assert_eq!(project.read("trace"), "worked\n");
    assert_eq!(project.status(&run)["status"], "interrupted");
    let both = project.run(&["answer", &hold, "Publish", "--no-resume", "--foreground"]);
    assert_eq!(both.code, Some(4), "{both:?}");
}

#[test]
fn an_answer_that_ends_the_run_continues_nothing() {
    let project = Project::new();
    let run = waiting(&project);
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Stop"]).code, Some(0));
    until("the end of the run", || project.status(&run)["status"] == "aborted");
}

#[test]
fn the_only_open_hold_needs_no_name() {
    let project = Project::new();
    let output = project.run(&["answer"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    waiting(&project);
    let output = project.run(&["answer"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    let command = format!("lockgate answer {} Publish", project.waiting_hold());
    assert!(output.stderr.contains("error[option-not-found]") && output.stderr.contains(&command), "{output:?}");
    let output = project.run(&["answer", "publish"]);
    assert!(
        output.code == Some(4) && output.stderr.contains(&format!("help: to answer the only open hold: {command}")),
        "{output:?}"
    );
    waiting(&project);
    let output = project.run(&["answer"]);
    assert!(output.code == Some(4) && output.stderr.contains("several holds wait for an answer"), "{output:?}");
}

#[test]
fn an_answer_is_not_continued_when_the_workflow_has_changed_but_is_recorded() {
    let project = Project::new();
    let run = waiting(&project);
    project.write("flow.yaml", FLOW.replace("echo published", "echo changed"));
    let recorded = project.json(0, &["answer", &project.waiting_hold(), "Publish", "--json"]);
    assert_eq!((&recorded["recorded"], &recorded["continues"]), (&true.into(), &"no".into()), "{recorded}");
    assert_eq!(project.status(&run)["status"], "interrupted");
    assert_eq!(project.run(&["resume", &run, "--changed", "keep"]).code, Some(0));
    assert_eq!(project.read("trace"), "worked\npublished\n");
}

#[test]
fn at_a_terminal_answer_asks_and_continues_the_run_here() {
    let project = Project::with_terminal_required();
    waiting(&project);
    let mut terminal = Terminal::start(&project, &["answer"]);
    let shown = terminal.asked();
    assert!(shown.contains("Is it good?") && shown.contains("Publish"), "{shown}");
    terminal.send("1\r");
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("is complete"), "{said}");
    assert_eq!(project.read("trace"), "worked\npublished\n");
}

#[test]
fn leaving_the_question_of_answer_records_nothing() {
    let project = Project::with_terminal_required();
    let run = waiting(&project);
    for (keys, code) in [("\x03", 130), ("\x04", 3)] {
        let mut terminal = Terminal::start(&project, &["answer"]);
        terminal.asked();
        terminal.send(keys);
        assert_eq!(terminal.end().1, code);
    }
    assert_eq!(project.status(&run)["status"], "waiting");
    assert!(project.events(&run, "answered").is_empty());
}

#[test]
fn the_inbox_asks_about_one_hold_after_another() {
    let project = Project::with_terminal_required();
    let first = waiting(&project);
    let second = waiting(&project);
    let mut terminal = Terminal::start(&project, &["inbox"]);
    let listed = terminal.expect("Answer which one? [1-2, Enter: 1, q: quit] ");
    assert!(listed.contains(&first) && listed.contains(&second) && listed.contains("Is it good?"), "{listed}");
    terminal.send("7\r");
    terminal.expect("type a number from 1 to 2, or q");
    terminal.send("2\r");
    terminal.asked();
    terminal.send("1\r");
    terminal.expect("Answer it? [Enter: yes, q: quit] ");
    assert_eq!(project.events(&second, "answered").len(), 1);
    terminal.send("\r");
    terminal.asked();
    terminal.send("3\r");
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Nothing waits for a person."), "{said}");
    assert_eq!(project.run(&["wait", &second]).code, Some(0), "it continued in the background");
    assert_eq!(project.run(&["wait", &first]).code, Some(2));
}

#[test]
fn leaving_the_inbox_changes_nothing() {
    let project = Project::with_terminal_required();
    let run = waiting(&project);
    for (keys, expected) in [("q\r", 0), ("\x04", 0), ("\x03", 130)] {
        let mut terminal = Terminal::start(&project, &["inbox"]);
        terminal.expect("Answer it? [Enter: yes, q: quit] ");
        terminal.send(keys);
        let (said, code) = terminal.end();
        assert_eq!(code, expected, "{said}");
    }
    let mut terminal = Terminal::start(&project, &["inbox"]);
    terminal.expect("Answer it? [Enter: yes, q: quit] ");
    terminal.send("\r");
    terminal.asked();
    terminal.send("\x03");
    assert_eq!(terminal.end().1, 130);
    assert_eq!(project.status(&run)["status"], "waiting");
}

#[test]
fn the_inbox_is_a_list_without_a_terminal_and_on_request() {
    let project = Project::with_terminal_required();
    let run = waiting(&project);
    let output = project.run(&["inbox"]);
    assert!(output.code == Some(0) && output.stdout.contains(&run) && output.stdout.contains("lockgate answer "), "{output:?}");
    let mut terminal = Terminal::start(&project, &["inbox", "--list"]);
    terminal.expect("lockgate answer ");
    assert_eq!(terminal.end().1, 0);
}
