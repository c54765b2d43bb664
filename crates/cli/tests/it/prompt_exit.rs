//! How the prompt closes: by keys and signals, by events elsewhere, and when its terminal disappears.

use crate::project::{PATIENCE, Project, until, user};
use crate::prompt::{FLOW, Terminal, project};
use expectrl::Session;

#[test]
fn ctrl_c_at_the_prompt_exits_with_130_and_prints_the_resume_command() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\x03");
    let (said, code) = terminal.end();
    assert_eq!(code, 130, "{said}");
    let run = project.newest();
    assert!(said.contains(&format!("lockgate resume {run}")), "{said}");
    assert_eq!(project.status(&run)["status"], "waiting");
    let mut terminal = Terminal::start(&project, &["resume", &run]);
    terminal.asked();
    terminal.send("1\r");
    assert_eq!(terminal.end().1, 0);
    assert_eq!(project.read("ran"), "feedback: \n", "finished work is not repeated");
}

#[test]
fn a_prompt_closes_when_the_hold_is_answered_elsewhere_and_shows_the_answer() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    let hold = project.waiting_hold();
    let mut elsewhere = Terminal::start(&project, &["answer", &hold, "Publish", "--no-resume"]);
    elsewhere.expect("is answered: \"Publish\"");
    assert_eq!(elsewhere.end().1, 0);
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(&format!("was answered elsewhere: \"Publish\" by {} by command at 20", user())), "{said}");
    assert!(project.path("published").exists());
}

#[test]
fn a_prompt_closes_when_the_run_is_cancelled_elsewhere() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    let elsewhere = Terminal::start(&project, &["cancel", &project.newest()]);
    assert_eq!(elsewhere.end().1, 0);
    let (said, code) = terminal.end();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("was cancelled"), "{said}");
}

#[test]
fn a_signal_at_the_prompt_ends_the_program_and_leaves_the_terminal_as_it_was() {
    let project = project();
    let mut command = std::process::Command::new("sh");
    let script =
        "before=$(stty -g); \"$LOCKGATE\" run flow.yaml; code=$?; test \"$before\" = \"$(stty -g)\" && echo same; exit $code";
    command.args(["-c", script]).current_dir(project.root()).env("LOCKGATE", crate::project::program()).env("TERM", "xterm");
    let mut session = Session::spawn(command).unwrap();
    session.set_expect_timeout(Some(PATIENCE));
    let mut terminal = Terminal { session };
    terminal.asked();
    let driver = project.status(&project.newest())["driver"]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(driver).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let (said, code) = terminal.end();
    assert_eq!(code, 143, "{said}");
    assert!(said.contains("same"), "{said}");
}

#[test]
fn ctrl_d_at_the_prompt_exits_with_3_and_prints_the_answer_commands() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\x04");
    let (said, code) = terminal.end();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("lockgate answer ") && said.contains("lockgate why "), "{said}");
}

#[test]
fn losing_the_terminal_at_the_prompt_ends_the_program() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    let run = project.newest();
    drop(terminal);
    until("the end of the program", || project.status(&run).get("driver").is_none());
    assert_eq!(project.status(&run)["status"], "waiting");
}

#[test]
fn ctrl_c_stops_running_tasks() {
    let project = project();
    project.write("flow.yaml", "name: slow\nphases: [{ id: a, tasks: [{ id: t, run: 'touch began; sleep 1000' }] }]\n");
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    until("the task", || project.path("began").exists());
    terminal.send("\x03");
    let (said, code) = terminal.end();
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("its state is saved"), "{said}");
}

#[test]
fn a_deadline_closes_the_prompt_that_asks() {
    let project = Project::with_terminal_required();
    project.write(
        "flow.yaml",
        "name: flow\nphases:\n  - id: plan\n    checkpoint: { prompt: Good?, deadline: 1500ms, remind: 1s, on_deadline: { answer: continue } }\n  - id: send\n    tasks: [{ id: send, run: 'echo sent > sent' }]\n",
    );
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    let (said, code) = terminal.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("was answered elsewhere: \"Continue\" by deadline"), "{said}");
    assert_eq!(project.read("sent"), "sent\n");
}

#[test]
fn ctrl_c_and_sigterm_end_the_question_about_changed_files() {
    let project = project();
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\x03");
    terminal.end();
    project.write("flow.yaml", FLOW.replace("cp article.md published", "cp article.md elsewhere"));
    let run = project.newest();
    let mut terminal = Terminal::start(&project, &["resume", &run]);
    terminal.expect("Which? [1] ");
    terminal.send("\x03");
    let (said, code) = terminal.end();
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("Nothing was changed."), "{said}");
    let mut terminal = Terminal::start(&project, &["resume", &run]);
    terminal.expect("Which? [1] ");
    let pid = rustix::process::Pid::from_raw(terminal.session.pid().as_raw()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let (said, code) = terminal.end();
    assert_eq!(code, 143, "{said}");
    assert_eq!(project.status(&run)["status"], "waiting");
}

#[test]
fn ctrl_c_at_the_change_confirmation_exits_with_130() {
    let project = Project::with_terminal_required();
    project.write(
        "flow.yaml",
        "name: flow\nphases: [{ id: plan, checkpoint: { prompt: Good?, blocking: false, default: continue } }, { id: last, checkpoint: { prompt: Really? } }]\n",
    );
    let mut terminal = Terminal::start(&project, &["run", "flow.yaml"]);
    terminal.asked();
    terminal.send("\x03");
    terminal.end();
    let hold = project.events(&project.newest(), "answered")[0]["hold"].as_str().unwrap().to_owned();
    let mut terminal = Terminal::start(&project, &["change", &hold, "abort"]);
    terminal.expect("[y/N]");
    terminal.send("\x03");
    let (said, code) = terminal.end();
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("Nothing was changed."), "{said}");
}
