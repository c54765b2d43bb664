//! The program at a terminal whose screen can be inspected.

use crate::project::{PATIENCE, Project, program};
use expectrl::{Session, WaitStatus};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

/// How many scrolled-away rows are kept.
const SCROLLED: usize = 1000;

/// Clears the screen from the cursor on.
const CLEARS: &[u8] = b"\x1b[J";

/// A terminal with a program on it.
pub(crate) struct Screen {
    session: Session,
    parser: vt100::Parser,
    /// Bytes that may be the start of a clear sequence.
    held: Vec<u8>,
    /// All received bytes.
    pub(crate) bytes: Vec<u8>,
}

impl Screen {
    /// Starts the program in a window with this many columns and rows.
    pub(crate) fn start(project: &Project, (columns, rows): (u16, u16), arguments: &[&str]) -> Self {
        let script = format!("exec \"$LOCKGATE\" {}", arguments.join(" "));
        Self::shell(project, (columns, rows), &script, &[])
    }

    /// Starts a shell with job control that runs a script, with variables set.
    pub(crate) fn shell(project: &Project, (columns, rows): (u16, u16), script: &str, set: &[(&str, &str)]) -> Self {
        let mut command = Command::new("bash");
        // The size of the terminal is set after its creation, so the program waits for a line of input before it starts.
        command.args(["--norc", "--noprofile", "-c", &format!("read -r _; {script}")]).current_dir(project.root()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("USER", "tester").env("LOCKGATE", program());
        command.env("TERM", "xterm-256color").envs(set.iter().copied());
        let mut session = Session::spawn(command).unwrap();
        session.set_echo(false, None).unwrap();
        session.set_window_size(columns, rows).unwrap();
        session.send("\n").unwrap();
        Self { session, parser: vt100::Parser::new(rows, columns, SCROLLED), held: Vec::new(), bytes: Vec::new() }
    }

    /// Installs a program that takes precedence over others of its name, and returns the search path for it.
    pub(crate) fn program(project: &Project, name: &str, script: &str) -> String {
        std::fs::create_dir_all(project.path("bin")).unwrap();
        let path = project.path("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        format!("{}:{}", project.root().join("bin").display(), std::env::var("PATH").unwrap_or_default())
    }

    pub(crate) fn send(&mut self, keys: &str) {
        self.session.send(keys).unwrap();
    }

    /// Resizes the window.
    pub(crate) fn resize(&mut self, (columns, rows): (u16, u16)) {
        self.parser.screen_mut().set_size(rows, columns);
        self.session.set_window_size(columns, rows).unwrap();
    }

    /// Narrows the window as tmux does: rows that are too long wrap, and as many rows are scrolled away.
    pub(crate) fn narrow(&mut self, columns: u16) {
        let rows = self.parser.screen().size().0;
        let more: usize =
            self.rows().iter().map(|row| row.trim_end().chars().count().saturating_sub(1) / usize::from(columns)).sum();
        // The cursor stays in its row, or moves to the first one if its row was scrolled away.
        self.parser.process(format!("\x1b[{more}S\x1b[{more}A").as_bytes());
        self.resize((columns, rows));
    }

    /// Resizes the window as terminals that reflow do: each row becomes as many as it needs, the cursor stays with its character,
    /// and excess rows are scrolled away.
    pub(crate) fn reflow(&mut self, columns: u16) {
        let (height, _) = self.parser.screen().size();
        let (cursor_row, cursor_column) = self.parser.screen().cursor_position();
        let mut rows = self.history();
        let above = rows.len().saturating_sub(self.rows().iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        let cursor_row = above + usize::from(cursor_row);
        rows.resize(rows.len().max(cursor_row + 1), String::new());
        let (mut pieces, mut cursor) = (Vec::new(), (0, 0));
        for (at, row) in rows.iter().enumerate() {
            if at == cursor_row {
                let column = usize::from(cursor_column);
                cursor = (pieces.len() + column / usize::from(columns), column % usize::from(columns));
            }
            let characters: Vec<char> = row.chars().collect();
            pieces.extend(characters.chunks(columns.into()).map(|piece| piece.iter().collect::<String>()));
            if characters.is_empty() {
                pieces.push(String::new());
            }
        }
        pieces.resize(pieces.len().max(cursor.0 + 1), String::new());
        self.parser = vt100::Parser::new(height, columns, SCROLLED);
        self.parser.process(pieces.join("\r\n").as_bytes());
        let up = pieces.len() - 1 - cursor.0;
        self.parser.process(if up > 0 { format!("\r\x1b[{up}A") } else { "\r".to_owned() }.as_bytes());
        self.parser.process(if cursor.1 > 0 { format!("\x1b[{}C", cursor.1) } else { String::new() }.as_bytes());
        self.session.set_window_size(columns, height).unwrap();
    }

    /// The row of the cursor, where a person types.
    pub(crate) fn input(&self) -> String {
        let row = usize::from(self.parser.screen().cursor_position().0);
        self.rows().get(row).map_or("", |row| row.trim_end()).to_owned()
    }

    /// The text on the screen.
    pub(crate) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// The rows of the screen.
    pub(crate) fn rows(&self) -> Vec<String> {
        let (_, columns) = self.parser.screen().size();
        self.parser.screen().rows(0, columns).collect()
    }

    /// All rows, including those that were scrolled away.
    pub(crate) fn history(&mut self) -> Vec<String> {
        let columns = self.parser.screen().size().1;
        self.parser.screen_mut().set_scrollback(SCROLLED);
        let scrolled = self.parser.screen().scrollback();
        let mut rows = Vec::new();
        for back in (1..=scrolled).rev() {
            self.parser.screen_mut().set_scrollback(back);
            rows.extend(self.parser.screen().rows(0, columns).take(1));
        }
        self.parser.screen_mut().set_scrollback(0);
        rows.extend(self.rows());
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// Waits until the screen meets a condition.
    pub(crate) fn until(&mut self, what: &str, so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !so(self) {
            assert!(began.elapsed() < PATIENCE, "{what} did not happen:\n{}", self.text());
            assert!(self.read(), "{what} did not happen before the end:\n{}", self.text());
        }
    }

    /// Waits until a text is on the screen.
    pub(crate) fn shows(&mut self, text: &str) {
        self.until(text, |screen| screen.text().contains(text));
    }

    /// Waits for the exit, and returns the exit code.
    pub(crate) fn end(&mut self) -> i32 {
        let began = Instant::now();
        while self.read() {
            assert!(began.elapsed() < PATIENCE, "it did not end:\n{}", self.text());
        }
        match self.session.wait().unwrap() {
            WaitStatus::Exited(_, code) => code,
            other => panic!("it ended by {other:?}:\n{}", self.text()),
        }
    }

    /// Processes output. As in tmux, a screen that is cleared from its first cell is scrolled away.
    fn process(&mut self, piece: &[u8]) {
        for byte in piece {
            self.held.push(*byte);
            if CLEARS.starts_with(&self.held) && self.held.len() < CLEARS.len() {
                continue;
            }
            if self.held == CLEARS && self.parser.screen().cursor_position() == (0, 0) {
                let used = self.rows().iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
                self.parser.process(format!("\x1b[{used}S").as_bytes());
            }
            self.parser.process(&self.held);
            self.held.clear();
        }
    }

    /// Reads output. Returns false at the end.
    fn read(&mut self) -> bool {
        let mut piece = [0; 4096];
        match self.session.try_read(&mut piece) {
            Ok(0) => false,
            Ok(length) => {
                self.bytes.extend_from_slice(&piece[..length]);
                self.process(&piece[..length]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                std::thread::sleep(Duration::from_millis(5));
                true
            }
            Err(_) => false,
        }
    }
}
