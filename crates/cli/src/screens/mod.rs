//! The pictures of the terminal in the guide, made from what the program draws, at moments and in windows that do not vary.
//! `SNAPSHOTS=overwrite cargo test -p lockgate screens` makes them anew.

mod svg;

use crate::live::drawing;
use crate::play::Play;
use crate::prompt;
use crate::tree::Size;
use std::path::Path;
use svg::Theme;

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

const NOTES: &str = "# 1.4.0\n\n- Slugs keep their dashes.\n- `slug --json` prints one object a line.\n";

/// What is on the screen after a command was typed and this came.
fn screen(size: Size, command: &str, drawn: &str) -> vt100::Parser {
    let (rows, columns) = (u16::try_from(size.rows).unwrap(), u16::try_from(size.columns).unwrap());
    let mut parser = vt100::Parser::new(rows, columns, 0);
    let typed = if command.is_empty() { String::new() } else { format!("\x1b[1m$\x1b[0m {command}\n") };
    let text = format!("{typed}{drawn}");
    // A terminal makes a line break of every line feed.
    parser.process(text.replace("\r\n", "\n").replace('\n', "\r\n").as_bytes());
    parser
}

/// The record and below it the tree.
fn with_tree(play: &Play, size: Size, lines: &[(&str, &str)]) -> String {
    let line_of = |address: &str| lines.iter().find(|(known, _)| *known == address).map(|(_, line)| (*line).to_owned());
    format!("{}{}", play.told, drawing(&play.tree.rows(play.now(), size, &line_of)))
}

fn is_up_to_date(name: &str, picture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name);
    if std::env::var_os("SNAPSHOTS").is_some_and(|what| what == "overwrite") {
        std::fs::write(&path, picture).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == picture, "docs/guide/{name} is not what is drawn now; SNAPSHOTS=overwrite makes it anew");
}

fn building() -> Play {
    let mut play = Play::of(FLOW, Some("slug"));
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

#[test]
fn the_picture_of_the_tree_is_up_to_date_on_dark_and_light() {
    let size = Size { columns: 80, rows: 17 };
    let shown = screen(size, "lockgate run ship.yaml slug", &with_tree(&building(), size, LINES));
    is_up_to_date("terminal-tree.svg", &svg::picture(shown.screen(), Theme::DARK));
    is_up_to_date("terminal-tree-light.svg", &svg::picture(shown.screen(), Theme::LIGHT));
}

#[test]
fn the_picture_of_fifty_tasks_is_up_to_date() {
    let tasks: String = (1..=50).map(|at| format!("      - {{ id: page-{at:02}, run: 'true' }}\n")).collect();
    let flow = format!(
        "name: translate\nmax_parallel: 6\nphases:\n  - id: pages\n    tasks:\n{tasks}  - {{ id: review, tasks: [{{ id: read, run: 'true' }}] }}\n"
    );
    let mut play = Play::of(&flow, None);
    for at in 1..=21 {
        play.pass(2);
        play.done(&[&format!("pages/page-{at:02}")]);
    }
    play.pass(3);
    let lines: Vec<(String, String)> = (22..=27)
        .map(|at| (format!("pages/page-{at}"), format!("translating paragraph {} of {}", at * 7 % 13 + 1, at % 5 + 14)))
        .collect();
    let lines: Vec<(&str, &str)> = lines.iter().map(|(address, line)| (address.as_str(), line.as_str())).collect();
    let size = Size { columns: 80, rows: 17 };
    let told: Vec<&str> = play.told.lines().collect();
    let line_of = |address: &str| lines.iter().find(|(known, _)| *known == address).map(|(_, line)| (*line).to_owned());
    let rows = play.tree.rows(play.now(), size, &line_of);
    // What was scrolled away is not in the picture.
    let last = told[told.len() - 7..].join("\n");
    let shown = screen(size, "", &format!("{last}\n{}", drawing(&rows)));
    is_up_to_date("terminal-many.svg", &svg::picture(shown.screen(), Theme::DARK));
}

#[test]
fn the_picture_of_a_checkpoint_is_up_to_date() {
    let mut play = Play::with_files(FLOW, Some("slug"), &[("release-notes.md", NOTES)]);
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
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let shown = runtime.block_on(async { prompt::Shown::of(&play.run, &hold, &play.store().await).await.unwrap() });
    let size = Size { columns: 80, rows: 28 };
    let text = format!("{}{}", play.told, prompt::asked(&shown, &hold, "Release", size));
    let shown = screen(size, "lockgate run ship.yaml slug", &text);
    is_up_to_date("terminal-checkpoint.svg", &svg::picture(shown.screen(), Theme::DARK));
}
