//! Feedback written in the editor that the person likes.

use super::line::Line;
use super::terminal::Terminal;
use crate::print;
use lockgate_runner::driver::Halt;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use tokio::process::Command;

/// Feedback longer than this is cut off.
const LONGEST: u64 = 64 * 1024;

/// The editor that the person likes.
pub(super) fn chosen() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// Opens the line in an editor. Only what was written there and is not empty changes it; says what came of it.
pub(super) async fn open(terminal: &mut Terminal, line: &mut Line, halt: Option<&Halt>) {
    let Some(editor) = chosen() else {
        say("No editor is set: name one in VISUAL or EDITOR.");
        return;
    };
    match edited(terminal, &editor, line.text(), halt).await {
        Ok(Some(text)) => {
            line.set(&text);
            say("Taken from the editor; Enter sends it.");
        }
        Ok(None) => say("Nothing was changed in the editor."),
        Err(error) => say(&format!("The editor gave nothing: {}.", crate::neutral::line(&error))),
    }
}

fn say(text: &str) {
    print::terminal(&format!("\r\x1b[K{text}\n"));
}

async fn edited(terminal: &mut Terminal, editor: &str, text: &str, halt: Option<&Halt>) -> Result<Option<String>, String> {
    let told = |error: std::io::Error| error.to_string();
    // A file that only its owner can read.
    let mut file = tempfile::Builder::new().prefix("lockgate-feedback-").suffix(".md").tempfile().map_err(told)?;
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(told)?;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$@\""), "sh"]).arg(file.path());
    let screen = terminal.open().map_err(told)?;
    command.stdin(Stdio::from(screen.try_clone().map_err(told)?));
    command.stdout(Stdio::from(screen.try_clone().map_err(told)?)).stderr(Stdio::from(screen));
    let ended = terminal.lend(&mut command, Vec::new(), halt).await.map_err(told)?;
    if !ended.success() {
        return Err(format!("it ended with {ended}"));
    }
    // Read by its name: many editors put a new file in its place.
    let mut written = Vec::new();
    std::fs::File::open(file.path()).and_then(|file| file.take(LONGEST).read_to_end(&mut written)).map_err(told)?;
    let written = String::from_utf8_lossy(&written);
    let written = written.trim_end();
    Ok((!written.is_empty() && written != text.trim_end()).then(|| written.to_owned()))
}
