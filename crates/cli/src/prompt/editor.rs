//! Feedback written in the editor that the person likes.

use super::line::Line;
use super::terminal::Terminal;
use lockgate_runner::driver::Halt;
use std::io::{Read as _, Write as _};
use std::process::{ExitStatus, Stdio};
use tokio::process::Command;

/// Feedback longer than this is cut off.
const LONGEST: u64 = 64 * 1024;

/// The editor that the person likes.
pub(super) fn chosen() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// Opens the line in an editor. Only what was written there and is not empty changes it; gives what came of it, in words.
pub(super) async fn open(terminal: &mut Terminal, line: &mut Line, halt: Option<&Halt>) -> String {
    let Some(editor) = chosen() else { return "No editor is set: name one in VISUAL or EDITOR.".to_owned() };
    match edited(terminal, &editor, line.text(), halt).await {
        Ok(Some(text)) => {
            line.set(&text);
            "Taken from the editor; Enter sends it.".to_owned()
        }
        Ok(None) => "Nothing was changed in the editor.".to_owned(),
        Err(error) => format!("The editor gave nothing: {}.", lockgate::sanitize::line(&error.to_string())),
    }
}

/// Why an editor gave nothing.
#[derive(Debug, thiserror::Error)]
enum EditorError {
    /// The file, the terminal or the program cannot be used.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It failed, or the person gave up.
    #[error("it ended with {0}")]
    Failed(ExitStatus),
}

async fn edited(terminal: &mut Terminal, editor: &str, text: &str, halt: Option<&Halt>) -> Result<Option<String>, EditorError> {
    // A file that only its owner can read.
    let mut file = tempfile::Builder::new().prefix("lockgate-feedback-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes()).and_then(|()| file.flush())?;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$@\""), "sh"]).arg(file.path());
    let screen = terminal.open()?;
    command.stdin(Stdio::from(screen.try_clone()?));
    command.stdout(Stdio::from(screen.try_clone()?)).stderr(Stdio::from(screen));
    let ended = terminal.lend(&mut command, Vec::new(), halt).await?;
    if !ended.success() {
        return Err(EditorError::Failed(ended));
    }
    // Read by its name: many editors put a new file in its place.
    let mut written = Vec::new();
    std::fs::File::open(file.path()).and_then(|file| file.take(LONGEST).read_to_end(&mut written))?;
    let written = String::from_utf8_lossy(&written);
    let written = written.trim_end();
    Ok((!written.is_empty() && written != text.trim_end()).then(|| written.to_owned()))
}
