//! A hold as a person sees it before answering: the question, what must be said with it, the files, the options.

use crate::print::{FAINT, STRONG, WARNING, styled};
use crate::trouble::Trouble;
use crate::{neutral, view};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{Hold, HoldKind};
use lockgate_engine::run::Run;
use lockgate_runner::files::preview;
use lockgate_store::Store;

/// How many lines of each file are shown.
const LINES: usize = 12;

/// The whole question as text, with the files as they were when it was opened.
pub(crate) async fn shown(run: &Run, hold: &Hold, store: &dyn Store) -> Result<String, Trouble> {
    let digests: Vec<Digest> = hold.files.iter().filter_map(|file| file.seen.digest()).collect();
    let kept = if digests.is_empty() { Vec::new() } else { store.values(&digests).await? };
    let bytes = |digest: Option<Digest>| {
        let at = digests.iter().position(|known| Some(*known) == digest)?;
        kept.get(at)?.as_deref()
    };
    let mut text = format!("\n{}\n", styled(STRONG, title(run, hold)));
    text += &format!("{}\n", neutral::lines(&hold.prompt));
    for note in &hold.notes {
        let note = neutral::lines(note);
        let mut lines = note.lines();
        text += &format!("{} {}\n", styled(WARNING, "note:"), lines.next().unwrap_or_default());
        text.extend(lines.map(|line| format!("      {line}\n")));
    }
    for file in &hold.files {
        let shown = preview(file, bytes(file.seen.digest()), LINES);
        text += &format!("\n  {} ({})\n", styled(STRONG, neutral::line(&file.path)), neutral::line(&shown.size));
        text.extend(
            shown.lines.iter().map(|line| format!("  {} {}\n", styled(FAINT, "│"), neutral::line(&line.replace('\t', "    ")))),
        );
        if shown.more > 0 {
            text += &format!("  {} {}\n", styled(FAINT, "│"), styled(FAINT, format_args!("… and {} more lines", shown.more)));
        }
    }
    text.push('\n');
    for (at, choice) in hold.options.iter().enumerate() {
        text += &format!("  {}\n", neutral::line(&view::option_line(at, choice)));
    }
    Ok(text)
}

fn title(run: &Run, hold: &Hold) -> String {
    let what = match hold.kind {
        HoldKind::Checkpoint => "Checkpoint",
        HoldKind::Interrupted => "Interrupted",
        HoldKind::Failed => "Failed",
    };
    let phase = hold.scope.phase().map(|id| run.workflow.phase(id.as_str()).map_or(id.as_str(), |phase| phase.title()));
    let phase = phase.map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    neutral::line(&format!("{what}{phase} (run {}, hold {}@{})", run.id, hold.id, hold.revision)).into_owned()
}
