//! Holds: the question, what may be answered, the files that it is about, and the answer once there is one.

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

/// A question that waits, or that has its answer and is being settled.
#[derive(Clone, Debug, Serialize)]
pub struct HoldView {
    pub id: String,
    pub kind: OpenEnum<HoldKind>,
    pub phase: Option<String>,
    /// The addresses of the tasks or the gate that it is about.
    pub tasks: Vec<String>,
    pub state: HoldState,
    pub prompt: String,
    pub notes: Vec<String>,
    pub options: Vec<OptionView>,
    pub files: Vec<FileView>,
    /// The git change that the answer is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<DiffView>,
    pub revision: u32,
    pub since: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
    /// What was answered when the same question was asked before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_answer: Option<AnswerView>,
    /// The whole question as people see it, where it is more than the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the run waits for it.
    pub blocking: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_deadline: Option<OnDeadlineView>,
    /// Whether its deadline passed, and it is told louder.
    pub escalated: bool,
    /// What stops the run here, where none of the options does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<OptionView>,
    /// Its deadline, for people.
    #[serde(skip)]
    pub until: Option<Deadline>,
}

/// What the row of a hold keeps for lists.
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

/// Something that may be answered.
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

/// What was answered, and has not taken effect yet.
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
    /// The user of the operating system, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    pub credential: Credential,
    #[serde(rename = "channel")]
    pub channel: Channel,
}

impl WhoView {
    /// An actor, as JSON shows it.
    pub fn of(actor: &Actor) -> Self {
        Self { name: actor.name.clone(), uid: actor.uid, credential: actor.credential, channel: actor.channel }
    }
}

/// A file that a decision is about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileView {
    pub path: String,
    pub digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Its size and first lines as they were when the hold opened, for people.
    #[serde(skip)]
    pub preview: Option<Preview>,
}

impl HoldView {
    /// What was answered to it, by whom and when.
    pub fn answered(&self) -> Option<String> {
        self.answer.as_ref().map(AnswerView::words)
    }

    /// What was answered when the same question was asked before.
    pub fn answered_before(&self) -> Option<String> {
        self.previous_answer.as_ref().map(|answer| format!("when this was asked before, it was {}", answer.words()))
    }

    /// What a hold looks like, without what is in its files.
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

    /// What a hold looks like, as far as its row knows.
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
            // What no run waits for is answered in the commit that opens it.
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

    /// What happens at its deadline, as a line for people, where it waits and has one.
    pub fn deadline_line(&self, now: Timestamp) -> Option<String> {
        let until = self.until.as_ref().filter(|_| self.is_open())?;
        Some(sanitize::line(&until.words(now)).into_owned())
    }

    /// What a hold looks like, with the first lines of its files as they were when it was opened.
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

    /// Whether it still waits although its deadline has passed, which decides in place of any answer.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.is_open() && self.until.as_ref().is_some_and(|until| until.decides(now))
    }

    /// The commands that move its run: those that answer it or, where it is overdue, the one that fires its deadline.
    pub fn next_commands(&self, run: &str, resume: bool, now: Timestamp) -> Vec<String> {
        let continues = self.until.as_ref().is_some_and(Deadline::continues);
        match self.is_overdue(now) {
            true if resume && continues => vec![resume_command(run, None)],
            true => vec![lockgate(["tick"])],
            false => self.commands(resume),
        }
    }

    /// The commands that answer it, one for each option; none where it has its answer.
    pub fn commands(&self, resume: bool) -> Vec<String> {
        if !self.is_open() {
            return Vec::new();
        }
        let command = |(at, option): (usize, &OptionView)| {
            // Questions with a form of their own are answered by the words that they name.
            let name = if self.text.is_some() { &option.id } else { &option.label };
            answer_command(&self.id, self.revision, (at, name), option.with_feedback, resume)
        };
        let mut commands: Vec<String> = self.options.iter().enumerate().map(command).collect();
        // By its id: it has no number.
        commands.extend(self.stop.iter().map(|stop| answer_command(&self.id, self.revision, (0, &stop.id), false, resume)));
        commands
    }
}

/// The patch of the git change that a hold shows, where it is kept.
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

    /// What stops the run at any hold.
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
    /// What was answered, by whom and when, for people.
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

/// An option in a list: with its id where that is more than its label in another form.
pub fn option_line(at: usize, choice: &Choice) -> String {
    let asks = if choice.with_feedback { " (with feedback)" } else { "" };
    let words = |text: &str| text.to_lowercase().replace(|sign: char| !sign.is_alphanumeric(), "");
    match words(choice.id.as_str()) == words(&choice.label) {
        true => format!("{}. {}{asks}", at + 1, choice.label),
        false => format!("{}. {}: {}{asks}", at + 1, choice.id, choice.label),
    }
}
