//! Notices: messages to people, as JSON, for the channels under `notify` in the settings.

#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::phrases::first_line;
use crate::project::Project;
use crate::sanitize;
use crate::view::{AnswerView, HoldView, WhoView, resume_command, shell_word};
use lockgate_engine::run::Status;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::run::outbox::{Notice, NoticeId, NoticeKind};
use lockgate_engine::time::Timestamp;
use serde::Serialize;
use std::path::Path;

/// The message that a channel delivers.
#[derive(Clone, Debug, Serialize)]
pub struct NoticeView {
    /// Identifies the notice. It stays the same if the notice is delivered again.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: OpenEnum<NoticeKind>,
    pub at: Timestamp,
    pub run: String,
    pub workflow: String,
    pub feature: Option<String>,
    /// The status of the run after the event.
    pub status: OpenEnum<Status>,
    pub phase: Option<String>,
    /// The directory of the project.
    pub root: String,
    /// The notice in one line, for people.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
    /// Changes in the content of a reopened hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// Why the run failed or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Commands to answer or resume the run, which work in any directory of this machine.
    pub commands: Vec<String>,
}

impl NoticeView {
    /// Creates the view of a notice. `root` is the project's directory.
    pub fn of(id: &NoticeId, notice: &Notice, root: &Path) -> Self {
        let Notice { kind, at, workflow, feature, status, phase, hold, answer, differences, reason } = notice.clone();
        let hold = hold.map(HoldView::listed);
        let answer = answer.map(|answer| AnswerView {
            option: answer.option.to_string(),
            label: answer.label,
            feedback: answer.feedback,
            by: WhoView::of(&answer.actor),
            at,
        });
        let commands = match status.known() {
            Some(Status::Failed) => vec![resume_command(id.run.as_str(), None)],
            Some(Status::Running | Status::Waiting | Status::Aborted | Status::Cancelled | Status::Complete) | None => {
                hold.as_ref().map(|hold| hold.commands()).unwrap_or_default()
            }
        };
        let mut view = Self {
            id: id.to_string(),
            kind,
            at,
            run: id.run.to_string(),
            workflow,
            feature,
            status,
            phase: phase.map(|phase| phase.to_string()),
            root: root.display().to_string(),
            text: String::new(),
            hold,
            answer,
            differences,
            reason,
            commands: commands.into_iter().map(|command| anywhere(&command, root)).collect(),
        };
        view.text = view.one_line();
        view
    }

    /// The JSON text that a channel delivers, on a single line.
    pub fn json(&self) -> String {
        sanitize::json(serde_json::to_string(self).expect("notices always have a JSON form"))
    }

    fn one_line(&self) -> String {
        let feature = self.feature.as_deref().map(|feature| format!(" ({})", sanitize::line(feature))).unwrap_or_default();
        let run = format!("{}{feature}", sanitize::line(&self.workflow));
        let prompt = self.hold.as_ref().map(|hold| first_line(&hold.prompt)).unwrap_or_default();
        let Some(kind) = self.kind.known() else { return run };
        match kind {
            NoticeKind::HoldOpened => format!("{run} waits: {prompt}"),
            NoticeKind::HoldReopened => format!("{run} waits again: {prompt}"),
            NoticeKind::HoldReminder => format!("{run} still waits: {prompt}"),
            NoticeKind::HoldEscalated => format!("{run} is overdue: {prompt}"),
            NoticeKind::HoldAnswered => {
                let answer = self
                    .answer
                    .as_ref()
                    .map(|answer| format!(" with {:?} by {}", sanitize::line(&answer.label), sanitize::line(&answer.by.name)));
                format!("{run} was answered{}: {prompt}", answer.unwrap_or_default())
            }
            NoticeKind::RunEnded => {
                let reason = self.reason.as_deref().map(|reason| format!(": {}", first_line(reason))).unwrap_or_default();
                let ended = match self.status.known() {
                    Some(Status::Complete) => "is complete",
                    Some(Status::Failed) => "failed",
                    Some(Status::Aborted) => "was aborted",
                    Some(Status::Cancelled) => "was cancelled",
                    Some(Status::Running | Status::Waiting) | None => "has ended",
                };
                format!("{run} {ended}{reason}")
            }
        }
    }
}

/// Adds `--root`, so that the command works in any directory.
fn anywhere(command: &str, root: &Path) -> String {
    let root = shell_word(&root.display().to_string());
    command.replacen("lockgate ", &format!("lockgate --root {root} "), 1)
}

impl Project {
    /// Waits until each notice that is due has been attempted once, but no longer than one delivery may take. Call it before your
    /// program exits; the next process delivers the rest.
    pub async fn settle_notices(&self) {
        if let Some(courier) = self.runtime.perform.courier() {
            courier.settle().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_engine::hold::{HoldKind, HoldState};
    use lockgate_engine::id::{HoldId, OptionId, RunId};
    use lockgate_engine::run::command::{Actor, Channel};
    use lockgate_engine::run::index::HoldRow;
    use lockgate_engine::run::outbox::NoticeAnswer;

    fn view(kind: NoticeKind, status: Status, change: impl FnOnce(&mut Notice)) -> NoticeView {
        let shown = r#"{"phase":"build","tasks":[],"prompt":"Ship it?\nNow","notes":[],"files":[],
            "options":[{"id":"go","label":"Go","with_feedback":false}]}"#;
        let hold = HoldRow {
            hold: HoldId::new("k3x"),
            run: RunId::new("d12cbewf"),
            kind: HoldKind::Checkpoint.into(),
            state: HoldState::Open,
            revision: 2,
            since: Timestamp::from_millis(0),
            shown: shown.to_owned(),
        };
        let mut notice = Notice {
            kind: kind.into(),
            at: Timestamp::from_millis(0),
            workflow: "release".into(),
            feature: Some("login".into()),
            status: status.into(),
            phase: None,
            hold: Some(hold),
            answer: None,
            differences: Vec::new(),
            reason: None,
        };
        change(&mut notice);
        NoticeView::of(&NoticeId { run: RunId::new("d12cbewf"), seq: 17 }, &notice, Path::new("/my project"))
    }

    #[test]
    fn a_notice_has_a_stable_id_and_commands_that_work_anywhere() {
        let view = view(NoticeKind::HoldOpened, Status::Waiting, |_| ());
        assert_eq!((view.id.as_str(), view.text.as_str()), ("d12cbewf-17", "release (login) waits: Ship it? …"));
        assert_eq!(view.commands[0], "lockgate --root '/my project' answer k3x@2 Go");
        let json: serde_json::Value = serde_json::from_str(&view.json()).unwrap();
        assert_eq!((&json["type"], &json["hold"]["prompt"]), (&"hold_opened".into(), &"Ship it?\nNow".into()));
    }

    #[test]
    fn the_text_says_what_happened() {
        let text = |kind, status, change: fn(&mut Notice)| view(kind, status, change).text;
        let answered = |notice: &mut Notice| {
            let actor = Actor::automatic("ada", Channel::Command);
            notice.answer = Some(NoticeAnswer { option: OptionId::new("go"), label: "Go".into(), feedback: None, actor });
        };
        assert_eq!(
            text(NoticeKind::HoldAnswered, Status::Running, answered),
            "release (login) was answered with \"Go\" by ada: Ship it? …"
        );
        let failed = |notice: &mut Notice| (notice.hold, notice.reason) = (None, Some("it broke".into()));
        assert_eq!(text(NoticeKind::RunEnded, Status::Failed, failed), "release (login) failed: it broke");
        assert_eq!(text(NoticeKind::HoldEscalated, Status::Waiting, |_| ()), "release (login) is overdue: Ship it? …");
    }

    #[test]
    fn a_failed_run_is_resumed_and_other_ends_need_no_command() {
        let no_hold = |notice: &mut Notice| notice.hold = None;
        let failed = view(NoticeKind::RunEnded, Status::Failed, no_hold);
        assert_eq!(failed.commands, ["lockgate --root '/my project' resume d12cbewf"]);
        assert!(view(NoticeKind::RunEnded, Status::Complete, no_hold).commands.is_empty());
    }
}
