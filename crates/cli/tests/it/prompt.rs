//! The prompt at a real terminal.

use crate::project::{PATIENCE, Project};
use crate::screen::Screen;
use expectrl::{Eof, Session, WaitStatus};

pub(crate) const FLOW: &str = "
name: flow
phases:
  - id: review
    tasks: [{ id: read, run: 'echo \"feedback: $LOCKGATE_FEEDBACK\" >> ran' }]
    checkpoint:
      prompt: Is it good?
      show_files: [article.md]
      options:
        - { label: Publish, on_select: { action: continue } }
        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }
        - { label: Stop, on_select: { action: abort } }
  - id: publish
    tasks: [{ id: send, run: 'cp article.md published' }]
";

/// A project with default settings, so that the terminal itself identifies a person.
pub(crate) fn project() -> Project {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", FLOW);
    project.write("article.md", "first line\nsecond \u{1b}[31mline\n");
    project
}

/// The program at its own terminal.
pub(crate) struct Terminal {
    pub(crate) session: Session,
}

impl Terminal {
    pub(crate) fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut command = project.command(arguments);
        command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
        let mut session = Session::spawn(command).unwrap();
        session.set_expect_timeout(Some(PATIENCE));
        Self { session }
    }

    /// Waits for a text, and returns everything before it.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let found = self.session.expect(text).unwrap_or_else(|error| panic!("waiting for {text:?}: {error}"));
        String::from_utf8_lossy(found.before()).into_owned()
    }

    /// Waits for the question.
    pub(crate) fn asked(&mut self) -> String {
        self.expect("then Enter: ")
    }

    pub(crate) fn send(&mut self, keys: &str) {
        self.session.send(keys).unwrap();
    }

    /// Waits for the exit, and returns the last output and the exit code.
    pub(crate) fn end(mut self) -> (String, i32) {
        let said = self.session.expect(Eof).unwrap();
        let said = String::from_utf8_lossy(said.as_bytes()).into_owned();
        match self.session.wait().unwrap() {
            WaitStatus::Exited(_, code) => (said, code),
            other => panic!("it ended by {other:?}: {said}"),
        }
    }
}

#[test]
fn a_person_sees_the_question_the_files_and_the_options_and_chooses_by_number() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml", "news"]);
    let shown = terminal.asked();
    for part in [
        "Checkpoint in phase review",
        "Is it good?",
        "article.md (",
        "first line",
        "1. Publish",
        "2. Again (with feedback)",
        "3. Stop",
    ] {
        assert!(shown.contains(part), "{part:?} is missing: {shown}");
    }
    assert!(shown.contains("second ␛[31mline"), "shown text cannot control the terminal: {shown}");
    terminal.send("1\r");
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("is complete"), "{said}");
    assert!(project.path("published").exists());
    let answered = &project.events(&project.newest(), "answered")[0];
    assert_eq!(answered["actor"]["channel"], "prompt");
    assert_eq!(answered["actor"]["terminal"], true);
    assert_eq!(answered["actor"]["credential"], "person");
}

#[test]
fn an_option_is_chosen_with_arrows_and_feedback_reaches_the_repeated_phase() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\x1b[B");
    terminal.expect("Publish");
    terminal.send("\x1b[B");
    terminal.expect("Again");
    terminal.send("\r");
    terminal.expect("> ");
    terminal.send("shorterx\x7f, please\r");
    terminal.asked();
    terminal.send("publish\r");
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert_eq!(project.read("ran"), "feedback: \nfeedback: shorter, please\n");
    let checkpoints = &project.status(&project.newest())["context"]["checkpoints"];
    assert_eq!(checkpoints[0]["feedback"], "shorter, please");
}

#[test]
fn feedback_may_be_empty_pasted_or_cancelled() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("2\r");
    terminal.expect("> ");
    terminal.send("\x1b[200~one\r\ntwo\x1b[201~\r");
    terminal.asked();
    terminal.send("2\r");
    terminal.expect("> ");
    terminal.send("\r");
    terminal.asked();
    terminal.send("2\r");
    terminal.expect("> ");
    // Escape returns to the options.
    terminal.send("\x1b");
    terminal.asked();
    terminal.send("Stop\r");
    let (said, code) = terminal.end();
    assert_eq!(code, 2, "{said}");
    let answered = project.events(&project.newest(), "answered");
    let said: Vec<_> = answered.iter().map(|event| (event["option"].as_str().unwrap(), event["feedback"].as_str())).collect();
    assert_eq!(said, [("again", Some("one\ntwo")), ("again", Some("")), ("stop", None)]);
}

#[test]
fn an_invalid_option_is_reported_and_asked_again_and_enter_alone_chooses_nothing() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\rlgtm\r");
    terminal.expect("lgtm is not one of the options.");
    terminal.asked();
    assert!(project.events(&project.newest(), "answered").is_empty());
    terminal.send("3\r");
    assert_eq!(terminal.end().1, 2);
}

#[test]
fn a_label_prefix_approves_nothing() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("p\r");
    terminal.expect("p is not one of the options.");
    terminal.asked();
    terminal.send("Publis\r");
    terminal.expect("Publis is not one of the options.");
    terminal.asked();
    assert!(project.events(&project.newest(), "answered").is_empty());
    terminal.send("PUBLISH\r");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn feedback_is_edited_with_the_cursor() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("2\r");
    terminal.expect("> ");
    terminal.send("shrter\x1b[D\x1b[D\x1b[D\x1b[Do\x1b[Hmuch \x1b[F!\x1b[D\x1b[3~.\r");
    terminal.asked();
    terminal.send("3\r");
    assert_eq!(terminal.end().1, 2);
    assert_eq!(project.events(&project.newest(), "answered")[0]["feedback"], "much shorter.");
}

#[test]
fn typed_text_stays_on_one_row_in_a_narrow_window() {
    let project = project();
    let mut screen = Screen::start(&project, (30, 24), &["run", "flow.yaml"]);
    screen.until("the question", |screen| screen.text().contains("then Enter:") && screen.input() == ">");
    screen.send("\x1b[B");
    screen.until("the option", |screen| screen.input() == "> Publish");
    screen.send("\x15a text that is longer than the window is wide");
    screen.until("the end of the text", |screen| screen.input().ends_with("window is wide"));
    assert!(screen.input().starts_with("> …") && screen.input().chars().count() < 30, "{}", screen.text());
    screen.send("\x151\r");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}

#[test]
fn an_approval_of_a_file_that_changed_while_it_was_shown_asks_again() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    project.write("article.md", "first line\nsomething else\n");
    terminal.send("1\r");
    terminal.expect("@2)");
    let shown = terminal.asked();
    assert!(shown.contains("+something else"), "{shown}");
    assert!(!project.path("published").exists());
    terminal.send("1\r");
    assert_eq!(terminal.end().1, 0);
    assert_eq!(project.read("published"), "first line\nsomething else\n");
}

#[test]
fn a_bare_id_at_a_terminal_shows_the_hold_first_and_asks() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\x04");
    assert_eq!(terminal.end().1, 3);
    let hold = project.waiting_hold();
    let bare = hold.split('@').next().unwrap();
    for (reply, code) in [("n\r", 3), ("\r", 3), ("\x03", 130), ("y\r", 0)] {
        let mut terminal = Terminal::start(&project, &["answer", bare, "Publish", "--no-resume"]);
        let shown = terminal.expect("[y/N] ");
        assert!(shown.contains("first line") && shown.contains("Answer \"Publish\"?"), "{shown}");
        terminal.send(reply);
        let (said, ended) = terminal.end();
        assert_eq!(ended, code, "{reply:?}: {said}");
    }
    assert_eq!(project.events(&project.newest(), "answered")[0]["actor"]["channel"], "prompt");
}

#[test]
fn a_bare_id_at_a_terminal_asks_for_feedback_where_the_option_takes_it() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\x04");
    assert_eq!(terminal.end().1, 3);
    let hold = project.waiting_hold();
    let bare = hold.split('@').next().unwrap();
    for (reply, code) in [("\x1b", 3), ("\x03", 130), ("shorter\r", 0)] {
        let mut terminal = Terminal::start(&project, &["answer", bare, "Again", "--no-resume"]);
        terminal.expect("[y/N] ");
        terminal.send("y\r");
        terminal.expect("> ");
        terminal.send(reply);
        let (said, ended) = terminal.end();
        assert_eq!(ended, code, "{reply:?}: {said}");
    }
    assert_eq!(project.events(&project.newest(), "answered")[0]["feedback"], "shorter");
}

#[test]
fn json_never_prompts_even_at_a_terminal() {
    let project = project();
    let terminal = Terminal::start(&project, &["run", "flow.yaml", "--json"]);
    let (said, code) = terminal.end();
    assert_eq!(code, 3, "{said}");
    assert!(!said.contains("then Enter") && said.contains("\"status\": \"waiting\""), "{said}");
}

#[test]
fn colors_are_used_only_at_terminals_and_no_color_is_respected() {
    let project = project();
    project.write("flow.yaml", "name: tiny\nphases: [{ id: a, tasks: [{ id: t, pass: true }] }]\n");
    let mut command = project.command(&["run", "flow.yaml"]);
    command.env("TERM", "xterm-256color");
    let (coloured, _) = Terminal { session: Session::spawn(command).unwrap() }.end();
    assert!(coloured.contains("\x1b[32mcomplete"), "{coloured:?}");
    let (plain, _) = Terminal::start(&project, &["run", "flow.yaml"]).end();
    let styles = plain
        .split("\x1b[")
        .skip(1)
        .filter(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'));
    assert!(plain.contains("complete") && styles.count() == 0, "{plain:?}");
}

#[test]
fn preset_answers_are_accepted_at_a_terminal() {
    let project = project();
    let terminal = Terminal::start(&project, &["run", "flow.yaml", "--answer", "review=Publish"]);
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_missing_input_is_prompted_for_until_it_is_valid() {
    let project = Project::with_terminal_required();
    project.write(
        "flow.yaml",
        "name: flow\ninputs: { size: { description: How large it is, choices: [small, large] } }\nphases: [{ id: a, tasks: [{ id: t, script: 'return context.vars.size' }] }]\n",
    );
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    let shown = terminal.expect("size (one of small, large): ");
    assert!(shown.contains("How large it is"), "{shown}");
    terminal.send("huge\n");
    terminal.expect("must be one of small, large");
    terminal.expect("size (one of small, large): ");
    terminal.send("large\n");
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert_eq!(project.status(&project.newest())["context"]["outputs"]["a"]["t"], "large");
}

#[test]
fn a_changed_definition_prompts_at_the_terminal() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\u{3}");
    terminal.end();
    project.write("flow.yaml", FLOW.replace("cp article.md published", "cp article.md elsewhere"));
    let run = project.newest();
    let mut terminal = Terminal::start(&project, &["resume", &run]);
    let shown = terminal.expect("Which? [1] ");
    assert!(shown.contains("have changed since it started: flow.yaml") && shown.contains("2. Accept the changes"), "{shown}");
    terminal.send("2\n");
    terminal.asked();
    terminal.send("1\r");
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(project.path("elsewhere").exists() && !project.path("published").exists());
    assert_eq!(project.events(&run, "definition_accepted")[0]["actor"]["credential"], "person");
}

#[test]
fn free_text_becomes_an_issue_report_only_after_confirmation() {
    let project = Project::with_terminal_required();
    project.write(
        "flow.yaml",
        "name: flow\nphases:\n  - id: work\n    tasks:\n      - { id: make, run: 'echo \"made $LOCKGATE_FEEDBACK\" >> ran' }\n      - { id: look, needs: [make], verify: { built: it } }\n",
    );
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    let shown = terminal.asked();
    assert!(
        shown.contains("Verification in phase work") && shown.contains("2. issues: Report issues (with feedback)"),
        "{shown}"
    );
    terminal.send("lgtm\r");
    terminal.expect("That is not an approval.");
    terminal.asked();
    // A near match has no effect and can be edited.
    terminal.send("\x7f\x7f\x7f\x7ftoo small\r");
    terminal.expect("That is not an approval.");
    terminal.asked();
    terminal.send("\r");
    terminal.asked();
    terminal.send("approved\r");
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert_eq!(project.read("ran"), "made \nmade too small\n");
}

pub(crate) const DECISION: &str = "
name: flow
phases:
  - id: build
    tasks:
      - id: database
        decision:
          question: Which database?
          context: It stays.
          options:
            - { id: sqlite, name: SQLite, pros: simple, cons: one machine }
            - { id: postgres, name: PostgreSQL }
";

#[test]
fn a_decision_is_shown_with_one_heading_and_each_option_once() {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", DECISION);
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    let shown = terminal.asked();
    let question = &shown[shown.find("Decision in phase build").unwrap()..];
    for once in ["Which database?", "It stays.", "SQLite", "Pros: simple", "Cons: one machine", "PostgreSQL", "Stop the run"] {
        assert_eq!(question.matches(once).count(), 1, "{once}: {question}");
    }
    for never in ["CHECKPOINT:", "YOUR ACTION", "Select:", "option-id", "---"] {
        assert!(!question.contains(never), "{never}: {question}");
    }
    terminal.send("postgres\r");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn every_question_at_the_prompt_can_be_answered_by_stopping_the_run() {
    for asked in ["verify: { built: it }", "decision: { question: Q, options: [{ id: a, name: A }] }", "action: { needed: it }"] {
        let project = Project::with_terminal_required();
        project.write("flow.yaml", format!("name: flow\nphases: [{{ id: build, tasks: [{{ id: ask, {asked} }}] }}]\n"));
        let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
        let shown = terminal.asked();
        assert!(shown.contains("abort: Stop the run (Ctrl+C leaves it for later)"), "{shown}");
        terminal.send("abort\r");
        let (said, code) = terminal.end();
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("was aborted by ") && said.contains(" at the prompt"), "{said}");
        let run = project.newest();
        assert_eq!(project.status(&run)["status"], "aborted");
        assert_eq!(project.events(&run, "answered")[0]["option"], "abort");
    }
}

#[test]
fn the_prompt_shows_what_happens_at_the_deadline() {
    for (then, words) in [
        ("{ answer: continue }", "answered with \"Continue\" in 1h 59m unless someone answers"),
        ("{ escalate: ann }", "escalates to ann in 1h 59m unless someone answers"),
        ("abort", "the run aborts in 1h 59m unless someone answers"),
    ] {
        let project = Project::with_terminal_required();
        let checkpoint = format!("{{ prompt: Good?, deadline: 7199s, on_deadline: {then} }}");
        project.write("flow.yaml", format!("name: flow\nphases: [{{ id: plan, checkpoint: {checkpoint} }}]\n"));
        let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
        let shown = terminal.asked();
        assert!(shown.contains(words), "{shown}");
        terminal.send("\x04");
        let (said, code) = terminal.end();
        assert_eq!(code, 3, "{said}");
        assert!(said.contains(words), "also where it says how to answer from elsewhere: {said}");
    }
}
