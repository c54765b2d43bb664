//! A hold as a person sees it before answering: the question, what must be said with it, the files, the options.

use crate::neutral;
use crate::print::{STRONG, WARNING, styled};
use crate::trouble::Trouble;
use crate::view::{self, HoldView};
use lockgate_engine::hold::{Hold, HoldKind};
use lockgate_engine::run::Run;
use lockgate_store::Store;

/// The whole question as text, with the files as they were when it was opened.
pub(crate) async fn shown(run: &Run, hold: &Hold, store: &dyn Store) -> Result<String, Trouble> {
    let view = HoldView::with_previews(hold, store).await?;
    let mut text = format!("\n{}\n", styled(STRONG, title(run, hold)));
    match &hold.asked {
        Some(asked) => text += &format!("\n{}\n", neutral::lines(&asked.text())),
        None => text += &format!("{}\n", neutral::lines(&hold.prompt)),
    }
    for note in &hold.notes {
        text += &format!("{} {}\n", styled(WARNING, "note:"), view::hanging(note, "      "));
    }
    for file in &view.files {
        text += &format!("\n{}", view::file_text(file, "  "));
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
        HoldKind::Gaps => "Gaps",
        HoldKind::Budget => "Budget",
        HoldKind::Verify => "Verification",
        HoldKind::Decision => "Decision",
        HoldKind::Action => "Action",
        HoldKind::Authentication => "Authentication",
        HoldKind::Handover => "Handover",
    };
    let phase = hold.scope.phase().map(|id| run.workflow.phase(id.as_str()).map_or(id.as_str(), |phase| phase.title()));
    let phase = phase.map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    neutral::line(&format!("{what}{phase} (run {}, hold {}@{})", run.id, hold.id, hold.revision)).into_owned()
}
