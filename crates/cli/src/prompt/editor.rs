//! Writes feedback in the person's editor.

use super::line::Line;
use super::terminal::Terminal;
use lockgate_runner::driver::Halt;
use std::io::{Read as _, Write as _};
use std::process::{ExitStatus, Stdio};
use tokio::process::Command;

/// Longer feedback is truncated.
const LONGEST: u64 = 64 * 1024;

/// The person's editor.
pub(super) fn chosen() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    set("VISUAL").or_else(|| set("EDITOR"))
}

/// Opens the line in an editor, and returns a message about the result. An empty or unchanged text leaves the line as it is.
pub(super) async fn open(terminal: &mut Terminal, line: &mut Line, halt: Option<&Halt>) -> String {
    let Some(editor) = chosen() else { return "No editor is set: name one in VISUAL or EDITOR.".to_owned() };
    match edited(terminal, &editor, line.text(), halt).await {
        Ok(Some(text)) => {
            line.set(&text);
            "Copied from the editor; press Enter to send it.".to_owned()
        }
        Ok(None) => "Nothing was changed in the editor.".to_owned(),
        Err(error) => format!("The editor failed: {}.", lockgate::sanitize::line(&error.to_string())),
    }
}

#[derive(Debug, thiserror::Error)]
enum EditorError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The program failed, or the person discarded the text.
    #[error("it ended with {0}")]
    Failed(ExitStatus),
}

async fn edited(terminal: &mut Terminal, editor: &str, text: &str, halt: Option<&Halt>) -> Result<Option<String>, EditorError> {
    // Only its owner can read a temporary file.
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
    // Reopened by path, because many editors replace the file.
    let mut written = Vec::new();
    std::fs::File::open(file.path()).and_then(|file| file.take(LONGEST).read_to_end(&mut written))?;
    let written = String::from_utf8_lossy(&written);
    let written = written.trim_end();
    Ok((!written.is_empty() && written != text.trim_end()).then(|| written.to_owned()))
}
