//! The live tree at a terminal, judged by the contents of the screen.

use crate::project::{Project, hangups_are_ignored, lives, until};
use crate::screen::Screen;

const WINDOW: (u16, u16) = (80, 24);

/// Two tasks that run until a file exists, then a phase that asks.
const FLOW: &str = "
name: ship
phases:
  - id: plan
    tasks: [{ id: outline, run: 'true' }]
  - id: build
    tasks:
      - { id: compile, run: 'echo compiling; echo $$ > pid; until test -e go; do sleep 0.02; done' }
      - { id: lint, run: 'printf \"\\033[31mchecking\\007\\n\"; until test -e go; do sleep 0.02; done' }
      - { id: pack, run: 'true', needs: [compile] }
  - id: release
    tasks: [{ id: upload, run: 'true' }]
";

fn project(flow: &str) -> Project {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", flow);
    project
}

/// The text without parts that differ between two runs.
fn comparable(text: &str) -> Vec<String> {
    let words = |line: &str| match line.split_once(" in ") {
        Some((what, _)) if line.contains(" done in ") => what.to_owned(),
        _ => line
            .split(' ')
            .map(|word| if word.trim_end_matches(':').len() == 8 { "RUN" } else { word })
            .collect::<Vec<_>>()
            .join(" "),
    };
    text.lines().map(|line| words(line.trim_end())).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_tree_shows_running_tasks_and_only_the_record_remains_at_the_end() {
    let project = project(FLOW);
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml", "slug"]);
    screen.until("the tree", |screen| {
        let rows = screen.rows();
        let shows = |parts: &[&str]| rows.iter().any(|row| parts.iter().all(|part| row.contains(part)));
        shows(&["● ", "ship (slug)"])
            && shows(&["  ✓ plan"])
            && shows(&["    ● compile", "s  compiling"])
            && shows(&["    ● lint", "s  checking"])
            && shows(&["    … pack"])
            && shows(&["  … release"])
    });
    assert!(screen.text().contains("  plan/outline done in"), "finished tasks are printed above: {}", screen.text());
    project.write("go", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    let history = screen.history().join("\n");
    assert!(!history.contains(['●', '✓', '…']), "the tree is gone: {history}");
    let plain = self::project(FLOW);
    plain.write("go", "");
    let output = plain.run(&["run", "flow.yaml", "slug"]);
    let (mut seen, mut reported) = (comparable(&history), comparable(&output.stderr));
    reported.retain(|line| !line.ends_with(" started"));
    seen.sort();
    reported.sort();
    assert_eq!(seen, reported);
}

#[test]
fn fifty_parallel_tasks_do_not_flicker_and_are_all_in_the_record() {
    let tasks: String =
        (0..50).map(|at| format!("      - {{ id: task-{at:02}, run: 'until test -e go; do sleep 0.2; done' }}\n")).collect();
    let project = project(&format!("name: many\nphases:\n  - id: all\n    tasks:\n{tasks}"));
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("0 of 50 done, 50 running");
    assert!(screen.text().contains("… and 37 more running"), "{}", screen.text());
    assert!(screen.text().contains("phase all"), "the record stays in sight: {}", screen.text());
    assert!(screen.rows().iter().filter(|row| row.contains("● task-")).count() <= 16, "{}", screen.text());
    project.write("go", "");
    assert_eq!(screen.end(), 0);
    let done = screen.history().iter().filter(|row| row.contains(" done in ")).count();
    assert_eq!(done, 50);
}

#[test]
fn no_row_wraps_in_a_narrow_window_with_wide_characters() {
    let flow = "
name: 'ship 日本語の長い名前がここにあります'
phases:
  - id: build
    tasks:
      - { id: a-task-with-a-name-that-is-rather-long, run: 'echo 日本語の長い行がここにあります🙂; until test -e go; do sleep 0.02; done' }
";
    for columns in [80, 40, 24, 12] {
        let project = project(flow);
        let mut screen = Screen::start(&project, (columns, 24), &["run", "flow.yaml"]);
        screen.shows("    ● a");
        assert_eq!(screen.rows().iter().filter(|row| row.contains("● ")).count(), 3, "{columns}: {}", screen.text());
        let tree = screen.rows().iter().position(|row| row.starts_with('●')).unwrap();
        assert!(screen.rows()[tree..].iter().all(|row| row.is_empty() || row.contains('●')), "{columns}: {}", screen.text());
        project.write("go", "");
        assert_eq!(screen.end(), 0);
        assert!(!screen.history().join("\n").contains('●'), "{columns}");
    }
}

#[test]
fn a_resized_window_is_redrawn() {
    let project = project(FLOW);
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("    ● compile");
    for size in [(40, 12), (100, 30), (20, 6), (80, 24)] {
        screen.resize(size);
        let wide = size.0 > 30;
        screen.until("a new drawing", |screen| {
            let rows = screen.rows();
            let once = |part: &str| rows.iter().filter(|row| row.starts_with(part)).count() == 1;
            once("● ")
                && once("    ● compile")
                && once("  … ") == wide
                && rows.iter().any(|row| row.ends_with("s  compiling")) == wide
        });
    }
    project.write("go", "");
    assert_eq!(screen.end(), 0);
    assert!(!screen.text().contains('●'), "{}", screen.text());
}

/// Fifty tasks that print a long line and run until a file exists.
fn fifty() -> Project {
    let work = "echo a line of output that fills the row to its end and goes on beyond it; until test -e go; do sleep 0.2; done";
    let tasks: String = (0..50).map(|at| format!("      - {{ id: task-{at:02}, run: '{work}' }}\n")).collect();
    project(&format!("name: many\nphases:\n  - id: all\n    tasks:\n{tasks}"))
}

#[test]
fn a_narrow_window_still_shows_how_many_more_tasks_run() {
    let project = fifty();
    let mut screen = Screen::start(&project, (40, 24), &["run", "flow.yaml"]);
    screen.shows("    … and 37 more running");
    screen.resize((24, 24));
    screen.until("fewer words", |screen| screen.rows().iter().any(|row| row == "    … and 37 more"));
    screen.resize((12, 24));
    screen.until("the number alone", |screen| screen.rows().iter().any(|row| row == "    … +37"));
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
}

#[test]
fn narrowing_the_window_leaves_no_second_tree_behind() {
    let project = fifty();
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.until("the lines", |screen| screen.rows().iter().filter(|row| row.contains("fills the row")).count() == 13);
    let count = |screen: &mut Screen, part: &str| screen.history().iter().filter(|row| row.contains(part)).count();
    // If redrawn in time, no row is ever too long for the next width.
    for columns in [79, 78, 77, 76] {
        screen.narrow(columns);
        let width = usize::from(columns) - 1;
        screen.until("the next width", |screen| {
            screen
                .rows()
                .iter()
                .filter(|row| row.contains("● task-"))
                .all(|row| row.ends_with('…') && row.chars().count() == width)
        });
        assert_eq!(count(&mut screen, "● task-00"), 1, "{columns}: {}", screen.history().join("\n"));
    }
    // Rows that the terminal has scrolled away cannot be erased, but rows still on the screen must not follow them.
    screen.narrow(40);
    screen.until("half the width", |screen| screen.rows().iter().all(|row| row.chars().count() < 40));
    assert_eq!(count(&mut screen, "● task-12"), 1, "{}", screen.history().join("\n"));
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
}

#[test]
fn ctrl_c_removes_the_tree_and_prints_the_resume_command() {
    let project = project(FLOW);
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("    ● compile");
    screen.send("\x03");
    assert_eq!(screen.end(), 130);
    assert!(screen.text().contains("its state is saved") && !screen.text().contains('●'), "{}", screen.text());
}

#[test]
fn ctrl_z_stops_lockgate_and_not_its_tasks_and_fg_shows_the_tree_again() {
    let project = project(
        "name: ship\nphases: [{ id: a, tasks: [{ id: t, run: 'until test -e go; do echo tick >> ticks; sleep 0.02; done' }] }]\n",
    );
    let script = "set -m; before=$(stty -g); \"$LOCKGATE\" run flow.yaml; echo \"stopped with $?\"; \
                  test \"$before\" = \"$(stty -g)\" && echo same; read -r _; fg; echo \"ended with $?\"";
    let mut screen = Screen::shell(&project, WINDOW, script, &[]);
    screen.shows("    ● t");
    until("the task", || project.path("ticks").exists());
    screen.send("\x1a");
    screen.shows("stopped with ");
    screen.shows("same");
    assert!(screen.text().contains("continues after `fg`"), "{}", screen.text());
    assert!(!screen.text().contains('●'), "the tree is gone while the shell has the terminal: {}", screen.text());
    let ticks = project.read("ticks").len();
    until("the task's next tick", || project.read("ticks").len() > ticks);
    screen.send("\n");
    screen.shows("    ● t");
    project.write("go", "");
    screen.shows("ended with 0");
    screen.end();
}

#[test]
fn ctrl_z_does_nothing_without_a_shell_to_resume_the_program() {
    let project = project(FLOW);
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("    ● compile");
    screen.send("\x1a");
    project.write("go", "");
    assert_eq!(screen.end(), 0);
    assert!(!screen.text().contains("stopped"), "{}", screen.text());
}

#[test]
fn a_terminal_that_vanishes_without_a_signal_does_not_stop_the_run() {
    let project = project(FLOW);
    // In its own session, the program gets no signal when the terminal closes; writes to it fail from then on.
    let mut screen = Screen::shell(&project, WINDOW, "exec setsid --wait \"$LOCKGATE\" run flow.yaml", &[]);
    screen.shows("    ● compile");
    let run = project.newest();
    drop(screen);
    project.write("go", "");
    until("the end of the run", || project.status(&run)["status"] == "complete");
}

#[test]
fn output_that_is_stopped_with_ctrl_s_does_not_stop_the_run() {
    // The time between these tasks is long enough for a drawing that would block forever.
    let flow = "
name: ship
phases:
  - id: a
    tasks:
      - { id: wait, run: 'until test -e go; do sleep 0.02; done' }
      - { id: first, run: 'sleep 0.4', needs: [wait] }
      - { id: second, run: 'sleep 0.4', needs: [first] }
      - { id: last, run: 'true', needs: [second] }
";
    let project = project(flow);
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("    ● wait");
    screen.send("\x13");
    let run = project.newest();
    project.write("go", "");
    until("the next task", || project.events(&run, "task_finished").iter().any(|event| event["task"] == "last"));
    screen.send("\x11");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}

#[test]
fn ctrl_z_at_the_prompt_restores_the_terminal_and_fg_asks_again() {
    let project = project("name: ask\nphases: [{ id: a, checkpoint: { prompt: 'Is it good?' } }]\n");
    let script = "set -m; before=$(stty -g); \"$LOCKGATE\" run flow.yaml; echo \"stopped with $?\"; \
                  test \"$before\" = \"$(stty -g)\" && echo same; read -r _; clear; fg; echo \"ended with $?\"; stty -g > after; \
                  test \"$before\" = \"$(stty -g)\" && echo as before";
    let mut screen = Screen::shell(&project, WINDOW, script, &[]);
    screen.shows("then Enter: ");
    screen.send("\x1a");
    screen.shows("stopped with ");
    screen.shows("same");
    screen.send("\n");
    screen.until("the question", |screen| {
        let text = screen.text();
        !text.contains("stopped with")
            && text.contains("Is it good?")
            && text.contains("1. Continue")
            && text.contains("then Enter: ")
    });
    screen.send("1\r");
    screen.shows("ended with 0");
    screen.shows("as before");
    screen.end();
}

#[test]
fn narrowing_the_window_at_a_prompt_keeps_the_question_and_an_input_row() {
    let project = project("name: ask\nphases: [{ id: a, checkpoint: { prompt: 'Is it good?' } }]\n");
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("then Enter: ");
    screen.send("Cont");
    screen.shows("then Enter: Cont");
    screen.resize((30, 24));
    screen.until("the line", |screen| screen.input() == "> Cont");
    screen.send("inue\r");
    assert_eq!(screen.end(), 0, "{}", screen.text());
}

#[test]
fn the_tree_is_redrawn_only_a_few_times_per_second_under_heavy_output() {
    let flow = "name: loud\nphases: [{ id: a, tasks: [{ id: t, run: 'seq 200000' }] }]\n";
    let project = project(flow);
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    assert_eq!(screen.end(), 0);
    let drawings = String::from_utf8_lossy(&screen.bytes).matches("\x1b[?7l").count();
    // No wait takes longer than a minute, which allows 600 drawings.
    assert!(drawings <= 620, "{drawings}");
}

#[test]
fn the_tree_shows_that_tasks_are_stopping() {
    let flow = "name: slow\nphases: [{ id: a, tasks: [{ id: t, run: 'trap \"\" TERM; touch began; until test -e go; do sleep 0.02; done' }] }]\n";
    let project = project(flow);
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("    ● t");
    until("the task", || project.path("began").exists());
    screen.send("\x03");
    screen.shows("stopping;");
    screen.send("\x03");
    assert_eq!(screen.end(), 130, "{}", screen.text());
}

#[test]
fn losing_the_terminal_stops_the_tasks_and_saves_the_state() {
    if hangups_are_ignored() {
        return;
    }
    let project = project(FLOW);
    let mut screen = Screen::start(&project, WINDOW, &["run", "flow.yaml"]);
    screen.shows("    ● compile");
    until("the task", || project.read("pid").ends_with('\n'));
    let (run, task) = (project.newest(), project.read("pid"));
    drop(screen);
    until("the end of the program", || project.status(&run).get("driver").is_none());
    assert!(!lives(&task), "the task is ended");
    assert_eq!(project.events(&run, "interrupted")[0]["signal"], "SIGHUP");
    assert_eq!(project.status(&run)["status"], "interrupted");
}

#[test]
fn without_color_the_tree_has_no_styles_and_a_dumb_terminal_gets_plain_lines() {
    let project = project(FLOW);
    let mut screen = Screen::shell(&project, WINDOW, "exec \"$LOCKGATE\" run flow.yaml", &[("NO_COLOR", "1")]);
    screen.shows("    ● compile");
    project.write("go", "");
    assert_eq!(screen.end(), 0);
    let bytes = String::from_utf8_lossy(&screen.bytes).into_owned();
    let codes = bytes.split("\x1b[").skip(1).map(|rest| rest.trim_start_matches(|c: char| !c.is_ascii_alphabetic()));
    assert!(codes.clone().count() > 0 && codes.into_iter().all(|rest| !rest.starts_with('m')), "{bytes:?}");

    let project = self::project(FLOW);
    project.write("go", "");
    let mut screen = Screen::shell(&project, WINDOW, "exec \"$LOCKGATE\" run flow.yaml", &[("TERM", "dumb")]);
    assert_eq!(screen.end(), 0);
    let bytes = String::from_utf8_lossy(&screen.bytes).into_owned();
    assert!(!bytes.contains('\x1b') && bytes.contains("build/compile started"), "{bytes:?}");
}

#[test]
fn a_background_job_draws_nothing_over_its_shell() {
    let project = project(FLOW);
    let mut screen = Screen::shell(&project, WINDOW, "set -m; \"$LOCKGATE\" run flow.yaml & wait", &[]);
    screen.shows("  plan/outline done in");
    until("the tasks", || project.path("pid").exists());
    project.write("go", "");
    screen.shows("is complete");
    screen.end();
    assert!(!String::from_utf8_lossy(&screen.bytes).contains('●'), "{}", screen.text());
}

#[test]
fn a_secret_that_a_task_prints_is_masked_in_the_tree() {
    let flow = "
name: ship
secrets: { TOKEN: { env: THE_TOKEN } }
phases:
  - id: a
    tasks: [{ id: t, run: 'echo token is $TOKEN.; until test -e go; do sleep 0.02; done', secrets: [TOKEN] }]
";
    let project = project(flow);
    let mut screen = Screen::shell(&project, WINDOW, "exec \"$LOCKGATE\" run flow.yaml", &[("THE_TOKEN", "hunter2hunter2")]);
    screen.shows("token is ");
    project.write("go", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    assert!(!String::from_utf8_lossy(&screen.bytes).contains("hunter2hunter2"));
}

#[test]
fn desktop_notifications_use_the_system_program_if_the_terminal_has_none() {
    let project = project("name: ask\nphases: [{ id: a, checkpoint: { prompt: 'Is it good?' } }]\n");
    project.write(".lockgate/config.yaml", "notify: desktop\n");
    let path = Screen::program(&project, "notify-send", "printf '%s|' \"$@\" > notified.new; mv notified.new notified");
    let set = [("PATH", path.as_str()), ("DISPLAY", ":0")];
    let mut screen = Screen::shell(&project, WINDOW, "exec \"$LOCKGATE\" run flow.yaml", &set);
    screen.shows("then Enter: ");
    until("the notice", || project.path("notified").exists());
    assert_eq!(project.read("notified"), "--app-name=Lockgate|--|Lockgate|ask waits: Is it good?|");
    screen.send("1\r");
    assert_eq!(screen.end(), 0);
    assert!(!screen.bytes.contains(&0x07), "one notice is enough");
}

#[test]
fn an_opened_hold_rings_unless_preset_or_disabled_in_the_settings() {
    let flow = "name: ask\nphases: [{ id: a, checkpoint: { prompt: 'Is it good; really?' } }]\n";
    let heard = |settings: &str, arguments: &str, set: &[(&str, &str)]| {
        let project = project(flow);
        project.write(".lockgate/config.yaml", settings);
        let mut screen = Screen::shell(&project, WINDOW, &format!("exec \"$LOCKGATE\" run flow.yaml {arguments}"), set);
        if arguments.is_empty() {
            screen.shows("then Enter: ");
            screen.send("1\r");
        }
        assert_eq!(screen.end(), 0, "{}", screen.text());
        String::from_utf8_lossy(&screen.bytes).into_owned()
    };
    assert_eq!(heard("", "", &[]).matches('\x07').count(), 1);
    assert_eq!(heard("", "--answer a=Continue", &[]).matches('\x07').count(), 0);
    assert_eq!(heard("notify: off\n", "", &[]).matches('\x07').count(), 0);
    let reported = heard("notify: desktop\n", "", &[("TERM_PROGRAM", "iTerm.app")]);
    assert!(
        reported.contains("\x1b]9;Lockgate: ask waits: Is it good, really?\x1b\\") && !reported.contains('\x07'),
        "{reported:?}"
    );
    assert_eq!(heard("notify: desktop\n", "", &[]).matches('\x07').count(), 1, "neither a known terminal nor a desktop");
}
