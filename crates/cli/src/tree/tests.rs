use super::*;
use crate::columns::columns;
use crate::reference::scripted_run::{ScriptedRun, person};
use anstream::adapter::strip_str;
use lockgate_engine::run::command::{Actor, CommandKind, Item, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::stored_value::StoredValue;

const FLOW: &str = "
name: ship
phases:
  - id: plan
    tasks: [{ id: outline, run: 'true' }]
  - id: build
    tasks:
      - { id: compile, run: 'true' }
      - { id: lint, run: 'true' }
      - { id: pack, run: 'true', needs: [compile] }
    gates: [{ id: tests, run: 'true' }]
    checkpoint: { prompt: 'Release it?' }
  - id: release
    tasks: [{ id: upload, run: 'true' }]
";

const WINDOW: Size = Size { columns: 80, rows: 24 };

impl ScriptedRun {
    pub(crate) fn fail(&mut self, address: &str, message: &str) {
        self.end(address, Some(Failure { kind: FailureKind::Exit(1), message: message.to_owned(), tail: String::new() }));
    }

    /// Fans a task out into one task per item.
    pub(crate) fn fan_out(&mut self, address: &str, items: &[&str]) {
        let effects = self.run.pending();
        let task = effects.into_iter().find_map(|effect| {
            let Effect::Task { key, attempt } = effect else { return None };
            (key.address() == address).then_some((key, attempt))
        });
        let (key, attempt) = task.unwrap_or_else(|| panic!("{address} does not run"));
        let value = |item: &str| StoredValue::keep(&serde_json::Value::from(item)).0;
        let items = items.iter().map(|item| Item { key: (*item).to_owned(), value: value(item) }).collect();
        self.submit(
            Actor::driver(),
            CommandKind::TaskEnded { key, attempt, outcome: TaskOutcome::Items(items), agent: None, commit: None },
        );
        self.settle();
    }

    pub(crate) fn answer(&mut self, option: &str) {
        let hold = self.run.open_holds()[0].clone();
        let body =
            CommandKind::Answer { hold: hold.id, revision: Some(hold.revision), option: option.to_owned(), feedback: None };
        self.submit(person(), body);
        self.settle();
    }
}

fn rows(play: &ScriptedRun, size: Size, lines: &[(&str, &str)]) -> Vec<String> {
    let line_of = |address: &str| lines.iter().find(|(known, _)| *known == address).map(|(_, line)| (*line).to_owned());
    play.tree.rows(play.now(), size, &line_of).iter().map(|row| strip_str(row).to_string()).collect()
}

fn many(count: usize) -> ScriptedRun {
    let tasks: String = (0..count).map(|at| format!("      - {{ id: task-{at:02}, run: 'true' }}\n")).collect();
    ScriptedRun::of(&format!("name: many\nphases:\n  - id: all\n    tasks:\n{tasks}"), None)
}

#[test]
fn the_tree_shows_phases_and_steps_with_state_time_and_last_line() {
    let mut play = ScriptedRun::of(FLOW, Some("slug"));
    play.pass(3);
    play.done(&["plan/outline"]);
    play.pass(62);
    play.done(&["build/compile"]);
    play.pass(5);
    let shown = rows(&play, WINDOW, &[("build/pack", "adding: src/main.rs"), ("build/lint", "checking")]);
    assert_eq!(
        shown,
        [
            "● k3f9x2ab ship (slug)  1m 10s",
            "  ✓ plan              3s",
            "  ● build         1m 07s",
            "    ✓ compile     1m 02s",
            "    ● lint        1m 07s  checking",
            "    ● pack            5s  adding: src/main.rs",
            "    … gate tests",
            "  … release",
        ]
    );
}

#[test]
fn failures_show_their_reason_and_questions_appear_under_their_phase() {
    let mut play = ScriptedRun::of(FLOW, None);
    play.done(&["plan/outline", "build/compile", "build/lint", "build/pack"]);
    play.pass(2);
    let shown = rows(&play, WINDOW, &[]);
    assert!(shown.iter().any(|row| row == "    ● gate tests      2s"), "{shown:#?}");
    play.done(&["build/tests"]);
    let shown = rows(&play, WINDOW, &[]);
    assert_eq!(shown[0], "? k3f9x2ab ship  2s  waits for a person", "{shown:#?}");
    assert!(shown[3].starts_with("    ? hold") && shown[3].ends_with("@1: Release it?"), "{shown:#?}");
    let mut play = ScriptedRun::of(FLOW, None);
    play.fail("plan/outline", "exit code 7\nand more");
    let shown = rows(&play, WINDOW, &[]);
    assert_eq!(shown[0], "✗ k3f9x2ab ship  0s  failed", "{shown:#?}");
    assert!(shown.iter().any(|row| row.starts_with("    ✗ outline") && row.ends_with("exit code 7 …")), "{shown:#?}");
}

#[test]
fn with_many_tasks_the_running_ones_are_shown_and_the_rest_counted() {
    let mut play = many(50);
    let names: Vec<String> = (0..46).map(|at| format!("all/task-{at:02}")).collect();
    play.done(&names.iter().map(String::as_str).collect::<Vec<_>>());
    play.pass(1);
    assert_eq!(
        rows(&play, WINDOW, &[("all/task-47", "still at it")]),
        [
            "● k3f9x2ab many  1s",
            "  ● all             1s  46 of 50 done, 4 running",
            "    ● task-46       1s",
            "    ● task-47       1s  still at it",
            "    ● task-48       1s",
            "    ● task-49       1s",
        ]
    );
}

#[test]
fn fifty_parallel_tasks_leave_room_for_earlier_output() {
    let play = many(50);
    let shown = rows(&play, WINDOW, &[]);
    assert_eq!(shown.len(), 16, "{shown:#?}");
    assert_eq!(shown[1], "  ● all                        0s  0 of 50 done, 50 running");
    assert_eq!(shown[15], "    … and 37 more running");
}

#[test]
fn no_number_is_truncated_in_a_narrow_window() {
    let play = many(50);
    let row = |columns: usize, at: usize| rows(&play, Size { columns, rows: 24 }, &[])[at].trim().to_owned();
    for columns in 10..130 {
        let left = row(columns, 15);
        assert!(["… and 37 more running", "… and 37 more", "… +37"].contains(&left.as_str()), "{columns}: {left}");
        let phase = row(columns, 1);
        let counts = phase.rsplit_once("0s").map_or("", |(_, counts)| counts.trim());
        assert!(["0 of 50 done, 50 running", "0 of 50 done", "0 of 50", ""].contains(&counts), "{columns}: {phase}");
    }
    assert_eq!(row(30, 15), "… and 37 more running");
    assert_eq!(row(24, 2), "● task-00        0s", "names stay distinct while they fit");
}

#[test]
fn no_row_is_wider_than_the_window_and_the_tree_is_never_taller() {
    let wide = "日本語の長い行 🙂👩‍💻 \u{1b}[31mred\u{7} and a tail that goes on and on and on and on and on";
    let mut play = ScriptedRun::of(FLOW, Some("長い名前の機能の説明はここに書かれています"));
    play.done(&["plan/outline"]);
    let busy = many(50);
    for width in 0..130 {
        for height in [0, 1, 2, 3, 5, 8, 24, 60] {
            let size = Size { columns: width, rows: height };
            for (play, line) in [(&play, "build/compile"), (&busy, "all/task-01")] {
                let shown = rows(play, size, &[(line, wide)]);
                assert!(shown.len() <= height.saturating_sub(2), "{size:?}: {shown:#?}");
                for row in &shown {
                    assert!(columns(row) <= width.saturating_sub(1), "{size:?}: {row:?}");
                    assert!(!row.contains(['\u{1b}', '\u{7}']), "{row:?}");
                }
            }
        }
    }
}

#[test]
fn phases_that_do_not_fit_are_counted() {
    let phases: String = (0..40).map(|at| format!("  - {{ id: p{at}, tasks: [{{ id: t, run: 'true' }}] }}\n")).collect();
    let mut play = ScriptedRun::of(&format!("name: long\nphases:\n{phases}"), None);
    play.done(&["p0/t", "p1/t", "p2/t"]);
    assert_eq!(
        rows(&play, WINDOW, &[]),
        [
            "● k3f9x2ab long  0s",
            "  ✓ 3 phases done",
            "  ● p3                  0s",
            "    ● t                 0s",
            "  … 36 more phases",
        ]
    );
}

#[test]
fn in_a_short_window_the_current_phase_and_its_steps_take_precedence() {
    let mut play = ScriptedRun::of(FLOW, None);
    play.done(&["plan/outline"]);
    let low = |height| rows(&play, Size { columns: 80, rows: height }, &[]);
    assert_eq!(low(6)[1..], ["  ● build             0s", "    ● compile         0s", "    … and 3 more"]);
    assert_eq!(low(5)[1..], ["  ● build             0s", "    … and 4 more"]);
    assert_eq!(low(3).len(), 1);
}

#[test]
fn only_basic_colors_are_used_and_never_black_or_white() {
    let mut play = ScriptedRun::of(FLOW, None);
    play.done(&["plan/outline", "build/compile"]);
    play.fail("build/lint", "exit code 1");
    let rows = play.tree.rows(play.now(), WINDOW, &|_| Some("a line".into())).join("\n");
    let codes = rows.split("\x1b[").skip(1).map(|rest| rest.split('m').next().unwrap());
    for code in codes {
        assert!(matches!(code, "0" | "1" | "2" | "31" | "32" | "33" | "36"), "{code}");
    }
}

#[test]
fn a_tree_built_from_events_equals_one_built_from_the_state() {
    let mut play = ScriptedRun::of(FLOW, None);
    for address in ["plan/outline", "build/lint", "build/compile", "build/pack", "build/tests"] {
        play.pass(1);
        play.done(&[address]);
        let (heard, fresh) = (&play.tree, Tree::of(&play.run, true));
        let marks = |tree: &Tree| {
            (tree.status, tree.steps.iter().map(|step| (step.key.clone(), step.mark, step.attempt)).collect::<Vec<_>>())
        };
        assert_eq!(marks(heard), marks(&fresh));
        assert_eq!(heard.questions, fresh.questions);
        let phases = |tree: &Tree| tree.phases.iter().map(|phase| (phase.mark, phase.current)).collect::<Vec<_>>();
        assert_eq!(phases(heard), phases(&fresh));
    }
    play.answer("continue");
    play.done(&["release/upload"]);
    assert_eq!(rows(&play, WINDOW, &[])[0], "✓ k3f9x2ab ship  5s  complete");
}

#[test]
fn a_stopping_run_is_shown_as_stopping() {
    let mut play = ScriptedRun::of(FLOW, None);
    play.tree.set_ending();
    assert_eq!(rows(&play, WINDOW, &[])[0], "● k3f9x2ab ship  0s  stopping; press Ctrl+C again to kill running tasks");
}

#[test]
fn a_run_without_a_driver_is_not_shown_as_running() {
    let play = ScriptedRun::of(FLOW, None);
    let tree = Tree::of(&play.run, false);
    let shown: Vec<String> = tree.rows(play.now(), WINDOW, &|_| None).iter().map(|row| strip_str(row).to_string()).collect();
    assert_eq!(shown[0], "! k3f9x2ab ship  0s  no process drives it");
    assert!(shown.iter().any(|row| row.starts_with("    ! outline") && row.ends_with("interrupted")), "{shown:#?}");
    assert_eq!(tree.running().count(), 0);
}

const FAN_OUT: &str = "
name: many
phases:
  - id: all
    tasks:
      - { id: lint, for_each: [a], run: 'true' }
      - { id: write, agent: scribe, prompt: Write. }
    gap_check: { criteria: [{ name: whole, check: 'true' }] }
    gates: [{ id: tests, run: 'true' }]
";

#[test]
fn a_thousand_items_are_one_row_that_expands_to_failed_and_running_ones() {
    let mut play = ScriptedRun::of(FAN_OUT, None);
    let items: Vec<String> = (0..1000).map(|at| format!("f{at:03}")).collect();
    play.fan_out("all/lint", &items.iter().map(String::as_str).collect::<Vec<_>>());
    let shown = rows(&play, WINDOW, &[]);
    assert_eq!(
        shown[1..],
        [
            "  ● all               0s",
            "    ● lint            0s  0/1000 done, 1000 running",
            "    ● write           0s  scribe · session 92b5428e-8f66-4cfa-aefd-418ba958b8ce",
            "    … gap check",
            "    … gate tests",
        ]
    );
    play.fail("all/lint[f500]", "exit code 1");
    for item in &items {
        if !["f500", "f007", "f999"].contains(&item.as_str()) {
            play.done(&[&format!("all/lint[{item}]")]);
        }
    }
    let shown = rows(&play, WINDOW, &[("all/lint[f007]", "reading")]);
    assert_eq!(
        shown[2..6],
        [
            "    ● lint              0s  997/1000 done, 2 running, 1 failed",
            "      ✗ lint[f500]      0s  exit code 1",
            "      ● lint[f007]      0s  reading",
            "      ● lint[f999]      0s",
        ],
        "{shown:#?}"
    );
}
