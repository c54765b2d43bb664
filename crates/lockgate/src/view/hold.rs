//! Holds: the question, its options, the files that it shows, and its answer.

use super::command::{answer_command, lockgate, resume_command};
use super::deadline::{Deadline, OnDeadlineView};
use super::diff::DiffView;
use crate::error::Error;
use crate::phrases;
use crate::sanitize;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::HoldKind;
use lockgate_engine::hold::HoldState;
use lockgate_engine::hold::{Answer, Choice, Hold, PresentedFile, ShownDiff};
use lockgate_engine::id::OptionId;
use lockgate_engine::run::command::{Actor, Channel, Credential};
use lockgate_engine::run::index::HoldRow;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::spec::workflow::OnDeadline;
use lockgate_engine::time::Timestamp;
use lockgate_runner::files::{Preview, preview};
use lockgate_store::Store;
use serde::{Deserialize, Serialize};

/// How many lines of each file are shown.
const LINES: usize = 12;

/// A hold that is open, or whose answer has not taken effect yet.
#[derive(Clone, Debug, Serialize)]
pub struct HoldView {
    pub id: String,
    pub kind: OpenEnum<HoldKind>,
    pub phase: Option<String>,
    /// The addresses of the tasks or the gate that it concerns.
    pub tasks: Vec<String>,
    pub state: HoldState,
    pub prompt: String,
    pub notes: Vec<String>,
    pub options: Vec<OptionView>,
    pub files: Vec<FileView>,
    /// The git change that the answer is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<DiffView>,
    pub revision: u32,
    pub since: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
    /// The answer to the previous revision of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_answer: Option<AnswerView>,
    /// The full question, if it is more than the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the run waits for the answer.
    pub blocking: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_deadline: Option<OnDeadlineView>,
    /// Whether the deadline has passed and the hold was escalated.
    pub escalated: bool,
    /// The option that stops the run, if the regular options do not include one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<OptionView>,
    /// The deadline, for people.
    #[serde(skip)]
    pub until: Option<Deadline>,
}

/// The content that the row of a hold stores for lists.
#[derive(Default, Deserialize)]
struct Shown {
    phase: Option<String>,
    tasks: Vec<String>,
    prompt: String,
    notes: Vec<String>,
    options: Vec<OptionView>,
    files: Vec<FileView>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    deadline: Option<Timestamp>,
    #[serde(default)]
    on_deadline: Option<OnDeadline>,
    #[serde(default)]
    escalated: bool,
    #[serde(default)]
    can_stop: bool,
    #[serde(default)]
    diff: Option<ShownDiff>,
}

/// An option of a hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OptionView {
    pub id: String,
    pub label: String,
    pub with_feedback: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pros: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cons: Option<String>,
}

/// An answer that has not taken effect yet.
#[derive(Clone, Debug, Serialize)]
pub struct AnswerView {
    pub option: String,
    pub label: String,
    pub feedback: Option<String>,
    pub by: WhoView,
    pub at: Timestamp,
}

/// Who did something, and through which channel.
#[derive(Clone, Debug, Serialize)]
pub struct WhoView {
    pub name: String,
    /// The user id in the operating system, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    pub credential: Credential,
    #[serde(rename = "channel")]
    pub channel: Channel,
}

impl WhoView {
    /// Creates the view of an actor.
    pub fn of(actor: &Actor) -> Self {
        Self { name: actor.name.clone(), uid: actor.uid, credential: actor.credential, channel: actor.channel }
    }
}

/// A file that a hold shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileView {
    pub path: String,
    pub digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The size and first lines of the file when the hold opened.
    #[serde(skip)]
    pub preview: Option<Preview>,
}

impl HoldView {
    /// The answer, who gave it and when.
    pub fn answered(&self) -> Option<String> {
        self.answer.as_ref().map(AnswerView::words)
    }

    /// The answer to the previous revision of the question.
    pub fn answered_before(&self) -> Option<String> {
        self.previous_answer.as_ref().map(|answer| format!("previously {}", answer.words()))
    }

    /// Creates the view of a hold, without the contents of its files.
    pub fn of(hold: &Hold) -> Self {
        let until = Deadline::of(hold);
        Self {
            id: hold.id.to_string(),
            kind: hold.kind.into(),
            phase: hold.scope.phase().map(ToString::to_string),
            tasks: hold.scope.addresses(),
            state: hold.state,
            prompt: hold.prompt.clone(),
            notes: hold.notes.clone(),
            options: hold.options.iter().map(OptionView::of).collect(),
            files: hold.files.iter().map(FileView::of).collect(),
            diff: hold.diff.as_deref().map(DiffView::of),
            revision: hold.revision,
            since: hold.since,
            answer: hold.answers.last().map(|answer| AnswerView::of(hold, answer)),
            previous_answer: hold.previous.as_deref().map(|answer| AnswerView::of(hold, answer)),
            text: hold.question.as_ref().map(|asked| asked.text()),
            blocking: hold.blocking,
            deadline: until.as_ref().map(Deadline::at),
            on_deadline: until.as_ref().map(Deadline::view),
            escalated: hold.is_escalated(),
            stop: hold.stop().map(OptionView::of),
            until,
        }
    }

    /// Creates the view of a hold from its row.
    pub fn listed(row: HoldRow) -> Self {
        let shown: Shown = serde_json::from_str(&row.shown).unwrap_or_default();
        let label =
            |id: &OptionId| shown.options.iter().find(|option| option.id == id.as_str()).map(|option| option.label.clone());
        let due = shown.deadline.zip(shown.on_deadline.clone());
        let until = due.map(|(at, then)| Deadline::new(at, then, shown.escalated, label));
        Self {
            id: row.hold.to_string(),
            kind: row.kind,
            phase: shown.phase,
            tasks: shown.tasks,
            state: row.state,
            prompt: shown.prompt,
            notes: shown.notes,
            options: shown.options,
            files: shown.files,
            diff: shown.diff.as_ref().map(DiffView::of),
            revision: row.revision,
            since: row.since,
            answer: None,
            previous_answer: None,
            text: shown.text,
            // A hold that blocks no run is answered by the same commit that opens it.
            blocking: true,
            deadline: shown.deadline,
            on_deadline: until.as_ref().map(Deadline::view),
            escalated: shown.escalated,
            stop: shown.can_stop.then(OptionView::stop),
            until,
        }
    }

    /// The question as people see it.
    pub fn question(&self) -> &str {
        self.text.as_deref().unwrap_or(&self.prompt)
    }

    /// Describes the deadline of an open hold, if it has one.
    pub fn deadline_line(&self, now: Timestamp) -> Option<String> {
        let until = self.until.as_ref().filter(|_| self.is_open())?;
        Some(sanitize::line(&until.words(now)).into_owned())
    }

    /// Creates the view of a hold, with the first lines of its files when it opened.
    pub async fn with_previews(hold: &Hold, store: &dyn Store) -> Result<Self, Error> {
        let mut view = Self::of(hold);
        let digests: Vec<Digest> = hold.files.iter().filter_map(|file| file.seen.digest()).collect();
        let kept = if digests.is_empty() { Vec::new() } else { store.values(&digests).await? };
        let bytes = |digest: Option<Digest>| {
            let at = digests.iter().position(|known| Some(*known) == digest)?;
            kept.get(at)?.as_deref()
        };
        for (file, shown) in view.files.iter_mut().zip(&hold.files) {
            file.preview = Some(preview(shown, bytes(shown.seen.digest()), LINES));
        }
        if let Some(diff) = &mut view.diff {
            diff.text = patch(hold, store).await?;
        }
        Ok(view)
    }

    /// Whether it shows files or a git change.
    pub fn shows_content(&self) -> bool {
        !self.files.is_empty() || self.diff.is_some()
    }

    /// Whether it waits for an answer.
    pub fn is_open(&self) -> bool {
        self.state == HoldState::Open
    }

    /// Whether it is still open although its deadline has passed and decides it instead of an answer.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.is_open() && self.until.as_ref().is_some_and(|until| until.decides(now))
    }

    /// The commands that move the run on: those that answer the hold or, if it is overdue, the one that fires its deadline.
    /// Resuming an `undriven` run fires it too.
    pub fn next_commands(&self, run: &str, undriven: bool, now: Timestamp) -> Vec<String> {
        let continues = self.until.as_ref().is_some_and(Deadline::continues);
        match self.is_overdue(now) {
            true if undriven && continues => vec![resume_command(run, None)],
            true => vec![lockgate(["tick"])],
            false => self.commands(),
        }
    }

    /// The commands that answer the hold, one per option. Empty if it is answered.
    pub fn commands(&self) -> Vec<String> {
        if !self.is_open() {
            return Vec::new();
        }
        let command = |(at, option): (usize, &OptionView)| {
            // Questions with their own format are answered by option id.
            let name = if self.text.is_some() { &option.id } else { &option.label };
            answer_command(&self.id, self.revision, (at, name), option.with_feedback)
        };
        let mut commands: Vec<String> = self.options.iter().enumerate().map(command).collect();
        // The stop option has no number, so it is selected by id.
        commands.extend(self.stop.iter().map(|stop| answer_command(&self.id, self.revision, (0, &stop.id), false)));
        commands
    }
}

/// The patch of the git change that a hold shows, if it is stored.
pub async fn patch(hold: &Hold, store: &dyn Store) -> Result<Option<String>, Error> {
    let Some(digest) = hold.diff.as_ref().and_then(|diff| diff.change()?.text) else { return Ok(None) };
    let kept = store.values(&[digest]).await?.into_iter().next().flatten();
    Ok(kept.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

impl OptionView {
    fn of(choice: &Choice) -> Self {
        Self {
            id: choice.id.to_string(),
            label: choice.label.clone(),
            with_feedback: choice.with_feedback,
            pros: choice.pros.clone(),
            cons: choice.cons.clone(),
        }
    }

    /// The option that stops the run at any hold.
    fn stop() -> Self {
        Self::of(Hold::stop_choice())
    }
}

impl FileView {
    fn of(file: &PresentedFile) -> Self {
        Self {
            path: file.path.clone(),
            digest: file.seen.digest().map(|digest| digest.to_string()),
            size_bytes: file.seen.bytes(),
            preview: None,
        }
    }
}

impl AnswerView {
    /// Describes the answer, who gave it and when.
    fn words(&self) -> String {
        let by = phrases::by_channel(&self.by.name, self.by.channel);
        let feedback = self.feedback.as_deref().filter(|feedback| !feedback.is_empty());
        let feedback = feedback.map(|feedback| format!(" (feedback: {})", phrases::first_line(feedback))).unwrap_or_default();
        format!("answered {:?}{feedback} by {by} at {}", sanitize::line(&self.label), self.at)
    }

    fn of(hold: &Hold, answer: &Answer) -> Self {
        let choice = hold.choice(&answer.option);
        Self {
            option: answer.option.to_string(),
            label: choice.map_or_else(|| answer.option.to_string(), |choice| choice.label.clone()),
            feedback: answer.feedback.clone(),
            by: WhoView::of(&answer.actor),
            at: answer.at,
        }
    }
}

/// An option in a list. Shows the id only if it is not just the label in another form.
pub fn option_line(at: usize, choice: &Choice) -> String {
    let asks = if choice.with_feedback { " (with feedback)" } else { "" };
    let words = |text: &str| text.to_lowercase().replace(|sign: char| !sign.is_alphanumeric(), "");
    match words(choice.id.as_str()) == words(&choice.label) {
        true => format!("{}. {}{asks}", at + 1, choice.label),
        false => format!("{}. {}: {}{asks}", at + 1, choice.id, choice.label),
    }
}
