//! The pictures of the terminal in the guide, with fixed times and window sizes.

use super::scripted_run::ScriptedRun;
use crate::live::composed;
use crate::prompt;
use crate::tree::Size;

/// The contents of a terminal, for a picture.
#[derive(Debug)]
pub struct Screen {
    /// The path of the picture in `docs/`.
    pub file: &'static str,
    /// The colours of the terminal.
    pub background: Background,
    pub columns: u16,
    pub rows: u16,
    /// The output, including control sequences.
    pub text: String,
}

/// The colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Light text on dark.
    Dark,
    /// Dark text on light.
    Light,
}

pub fn screens() -> Vec<Screen> {
    vec![
        tree("guide/terminal-tree.svg", Background::Dark),
        tree("guide/terminal-tree-light.svg", Background::Light),
        many_tasks("guide/terminal-many.svg"),
        checkpoint("guide/terminal-checkpoint.svg"),
    ]
}

const FLOW: &str = "
name: ship-a-feature
phases:
  - id: plan
    tasks: [{ id: outline, run: 'true' }]
  - id: build
    tasks:
      - { id: compile, run: 'true' }
      - { id: docs, run: 'true' }
      - { id: lint, run: 'true' }
      - { id: package, run: 'true', needs: [compile] }
    gates: [{ id: tests, run: 'true' }]
  - id: release
    tasks: [{ id: notes, run: 'true' }]
    checkpoint:
      prompt: Release version 1.4.0?
      show_files: [release-notes.md]
      options:
        - { label: Release, on_select: { action: continue } }
        - { label: Revise, with_feedback: true, on_select: { action: repeat_phase } }
        - { label: Stop, on_select: { action: abort } }
  - id: publish
    tasks: [{ id: upload, run: 'true' }]
";

const COMMAND: &str = "lockgate run ship.yaml slug";

const NOTES: &str = "# 1.4.0\n\n- Slugs keep their dashes.\n- `slug --json` prints one object a line.\n";

impl Screen {
    /// The screen after a command was typed and the program drew this.
    fn new(file: &'static str, (columns, rows): (u16, u16), command: &str, drawn: &str) -> Self {
        let typed = if command.is_empty() { String::new() } else { format!("\x1b[1m$\x1b[0m {command}\n") };
        Self { file, background: Background::Dark, columns, rows, text: format!("{typed}{drawn}") }
    }
}

fn window((columns, rows): (u16, u16)) -> Size {
    Size { columns: columns.into(), rows: rows.into() }
}

/// The record and the tree below it.
fn with_tree(play: &ScriptedRun, size: Size, lines: &[(&str, &str)]) -> String {
    let line_of = |address: &str| lines.iter().find(|(known, _)| *known == address).map(|(_, line)| (*line).to_owned());
    format!("{}{}", play.rendered, composed(None, Some(&play.tree), play.now(), size, &line_of).drawn())
}

fn building() -> ScriptedRun {
    let mut play = ScriptedRun::of(FLOW, Some("slug"));
    play.pass(4);
    play.done(&["plan/outline"]);
    play.pass(31);
    play.done(&["build/compile"]);
    play.pass(12);
    play
}

const LINES: &[(&str, &str)] = &[
    ("build/docs", "rendering guide/recovery.md"),
    ("build/lint", "Checking slug v1.4.0 (/src/slug)"),
    ("build/package", "adding: target/release/slug (deflated 61%)"),
];

fn tree(file: &'static str, background: Background) -> Screen {
    let size = (80, 17);
    Screen { background, ..Screen::new(file, size, COMMAND, &with_tree(&building(), window(size), LINES)) }
}

fn many_tasks(file: &'static str) -> Screen {
    let tasks: String = (1..=50).map(|at| format!("      - {{ id: page-{at:02}, run: 'true' }}\n")).collect();
    let flow = format!(
        "name: translate\nmax_parallel: 6\nphases:\n  - id: pages\n    tasks:\n{tasks}  - {{ id: review, tasks: [{{ id: read, run: 'true' }}] }}\n"
    );
    let mut play = ScriptedRun::of(&flow, None);
    for at in 1..=21 {
        play.pass(2);
        play.done(&[&format!("pages/page-{at:02}")]);
    }
    play.pass(3);
    let lines: Vec<(String, String)> = (22..=27)
        .map(|at| (format!("pages/page-{at}"), format!("translating paragraph {} of {}", at * 7 % 13 + 1, at % 5 + 14)))
        .collect();
    let line_of = |address: &str| lines.iter().find(|(known, _)| known == address).map(|(_, line)| line.clone());
    let size = (80, 17);
    let frame = composed(None, Some(&play.tree), play.now(), window(size), &line_of);
    let rendered: Vec<&str> = play.rendered.lines().collect();
    // Earlier lines have scrolled out of the picture.
    let last = rendered[rendered.len() - 7..].join("\n");
    Screen::new(file, size, "", &format!("{last}\n{}", frame.drawn()))
}

fn checkpoint(file: &'static str) -> Screen {
    let mut play = ScriptedRun::with_files(FLOW, Some("slug"), &[("release-notes.md", NOTES)]);
    for (seconds, address) in [
        (4, "plan/outline"),
        (31, "build/compile"),
        (5, "build/lint"),
        (9, "build/docs"),
        (2, "build/package"),
        (14, "build/tests"),
        (3, "release/notes"),
    ] {
        play.pass(seconds);
        play.done(&[address]);
    }
    let hold = play.run.open_holds()[0].clone();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without I/O needs nothing");
    let shown = runtime.block_on(async { prompt::HoldText::of(&play.run, &hold, &play.store().await).await });
    let shown = shown.expect("the store in memory has the shown files");
    let size = (80, 36);
    let panel = prompt::Panel::typed(shown, hold.options.len(), "Release");
    let frame = composed(Some(&panel), Some(&play.tree), play.now(), window(size), &|_| None);
    let text = format!("{}{}", play.rendered, frame.drawn());
    Screen::new(file, size, COMMAND, &text)
}
