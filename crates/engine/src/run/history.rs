//! Conversions between the state and its stored forms: sealing and reading commits, the materialized state, the definition.

use crate::digest::Digest;
use crate::hold::{Choice, Hold, PresentedFile, ShownDiff};
use crate::id::{OptionId, PhaseId, TimerId};
use crate::messagepack;
use crate::run::apply::ApplyError;
use crate::run::event::{Created, Entry, Event, Origin};
use crate::run::hash_chain::{Commit, CommitError, SealedCommit};
use crate::run::index::{HoldRow, IndexRows, RunRow, TimerKind, TimerRow};
use crate::run::outbox::Subscriptions;
use crate::run::state::{Listed, Run, Status};
use crate::spec::workflow::{OnDeadline, Workflow};
use crate::time::Timestamp;
use serde::Serialize;
use std::sync::Arc;

/// The format version of materialized states and definitions that this release writes.
pub const STATE_FORMAT: u8 = 1;

/// The id of the timer that marks a detached run that could continue.
pub const DRIVE_TIMER: &str = "drive";

/// Observes the states within a commit: called before each entry is applied and, without an entry, after the last one, with the
/// number of the last applied event.
pub type Observe<'a> = dyn FnMut(&Run, Option<&Entry>, u64) + Send + 'a;

/// Why a history cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The events contradict each other.
    #[error(transparent)]
    ApplyError(#[from] ApplyError),
    #[error("the history does not start with the creation of the run")]
    NoBeginning,
    /// A definition that was accepted later must be offered first, with [`Run::offer`].
    #[error("the accepted definition {0} was not provided")]
    DefinitionNeeded(Digest),
    /// The state from which a run starts must be passed to [`Run::first_from`]; one to which it goes back must be offered first,
    /// with [`Run::offer_state`].
    #[error("the state {0} from which the run continues was not provided")]
    StateNeeded(Digest),
    #[error("the stored {what} cannot be read: {detail}")]
    Unreadable { what: &'static str, detail: String },
}

/// The event that starts a history.
pub fn created(first: &SealedCommit) -> Result<(Created, Timestamp), HistoryError> {
    match first.open()?.entries.into_iter().next() {
        Some(Entry { at, event: Event::Created(created), .. }) => Ok((*created, at)),
        Some(_) | None => Err(HistoryError::NoBeginning),
    }
}

impl Run {
    /// Seals events that were already applied into a commit. Returns its stored form and the index rows to write with it.
    pub fn seal(&mut self, entries: Vec<Entry>) -> (Commit, SealedCommit, IndexRows) {
        let commit = Commit { first_seq: self.next_seq, entries };
        let sealed = commit.seal(&self.id, self.version + 1, self.head);
        let rows = self.committed(&commit, &sealed);
        (commit, sealed, rows)
    }

    /// The same, with the notices that are subscribed to.
    pub fn seal_notifying(&mut self, entries: Vec<Entry>, subscriptions: &Subscriptions) -> (Commit, SealedCommit, IndexRows) {
        let outbox = if subscriptions.is_empty() { Vec::new() } else { self.outbox_rows(&entries, subscriptions) };
        let (commit, sealed, rows) = self.seal(entries);
        (commit, sealed, IndexRows { outbox, ..rows })
    }

    /// The state after the first commit of a history.
    pub fn first(sealed: &SealedCommit, workflow: Arc<Workflow>) -> Result<(Self, IndexRows), HistoryError> {
        Self::first_from(sealed, workflow, None)
    }

    /// The same for a run that continues from the state of another one.
    pub fn first_from(
        sealed: &SealedCommit,
        workflow: Arc<Workflow>,
        base: Option<Self>,
    ) -> Result<(Self, IndexRows), HistoryError> {
        Self::first_observed(sealed, workflow, base, &mut |_, _, _| {})
    }

    /// The same, observed.
    pub fn first_observed(
        sealed: &SealedCommit,
        workflow: Arc<Workflow>,
        base: Option<Self>,
        observe: &mut Observe<'_>,
    ) -> Result<(Self, IndexRows), HistoryError> {
        let (created, at) = created(sealed)?;
        let mut run = match (&created.origin, base) {
            (Origin::Forked(forked), None) => return Err(HistoryError::StateNeeded(forked.state)),
            (Origin::Forked(_), Some(base)) => Self::forked(&created, workflow, base, at),
            (Origin::Recovered(from), None) => return Err(HistoryError::StateNeeded(from.state)),
            (Origin::Recovered(from), Some(base)) => Self::recovered(&created, from, workflow, base, at)?,
            (Origin::New | Origin::Imported(_), _) => Self::start(&created, workflow, at),
        };
        let commit = sealed.open()?;
        run.apply_observed(&commit, 1, observe)?;
        let rows = run.committed(&commit, sealed);
        Ok((run, rows))
    }

    /// Applies a stored commit to the state. Returns the index rows that were stored with it.
    pub fn apply_commit(&mut self, sealed: &SealedCommit) -> Result<IndexRows, HistoryError> {
        self.apply_commit_observed(sealed, &mut |_, _, _| {})
    }

    /// The same, observed.
    pub fn apply_commit_observed(&mut self, sealed: &SealedCommit, observe: &mut Observe<'_>) -> Result<IndexRows, HistoryError> {
        let commit = sealed.open()?;
        // Checked before anything is applied, so that the caller can fetch the definition and start over.
        if let Some(definition) = commit.entries.iter().find_map(|entry| self.lacks_definition(&entry.event)) {
            return Err(HistoryError::DefinitionNeeded(definition));
        }
        if let Some(state) = commit.entries.iter().find_map(|entry| self.lacks_state(&entry.event)) {
            return Err(HistoryError::StateNeeded(state));
        }
        self.apply_observed(&commit, 0, observe)?;
        Ok(self.committed(&commit, sealed))
    }

    fn apply_observed(&mut self, commit: &Commit, from: usize, observe: &mut Observe<'_>) -> Result<(), HistoryError> {
        let seq = |index: usize| commit.first_seq.saturating_add(index as u64).saturating_sub(1);
        for (index, entry) in commit.entries.iter().enumerate().skip(from) {
            observe(self, Some(entry), seq(index));
            self.apply(entry)?;
        }
        observe(self, None, seq(commit.entries.len()));
        Ok(())
    }

    fn lacks_definition(&self, event: &Event) -> Option<Digest> {
        let Event::DefinitionAccepted { definition, .. } = event else { return None };
        let at_hand = self.offered.as_ref().is_some_and(|(offered, _)| offered == definition);
        (!at_hand).then_some(*definition)
    }

    fn lacks_state(&self, event: &Event) -> Option<Digest> {
        let Event::Rewound(rewound) = event else { return None };
        let at_hand = self.offered_state.as_ref().is_some_and(|(offered, _)| *offered == rewound.state);
        (!at_hand).then_some(rewound.state)
    }

    fn committed(&mut self, commit: &Commit, sealed: &SealedCommit) -> IndexRows {
        self.version = sealed.version;
        self.head = sealed.hash;
        // Our own numbers never overflow, but reading a damaged history must not panic.
        self.next_seq = commit.first_seq.saturating_add(commit.entries.len() as u64);
        let at = commit.entries.last().map_or(self.listed.changed_at, |entry| entry.at);
        self.index_rows(at)
    }

    fn index_rows(&mut self, at: Timestamp) -> IndexRows {
        let touched = std::mem::take(&mut self.touched);
        let (status, phase) = (self.status(), self.current.as_ref().map(|phase| phase.id.clone()));
        let changed = self.version == 1 || status != self.listed.status || phase != self.listed.phase;
        if changed {
            self.listed = Listed { status, phase, changed_at: at, ..self.listed };
        }
        let wanted = self.detached && status == Status::Running;
        let was_wanted = std::mem::replace(&mut self.listed.wanted, wanted);
        let open = touched.holds.iter().filter_map(|hold| self.holds.get(hold));
        let mut timers_removed = touched.timers_removed;
        if was_wanted && !wanted {
            timers_removed.push(TimerId::new(DRIVE_TIMER));
        }
        IndexRows {
            run: changed.then(|| self.run_row()),
            holds: open.chain(&touched.closed).map(|hold| self.hold_row(hold)).collect(),
            timers: touched
                .timers
                .iter()
                .filter(|new| !timers_removed.contains(&new.timer))
                .map(|new| TimerRow {
                    timer: new.timer.clone(),
                    run: self.id.clone(),
                    due: new.due,
                    kind: new.kind.into(),
                    target: new.target.clone(),
                })
                .chain((wanted && !was_wanted).then(|| self.wants_driver()))
                .collect(),
            timers_removed,
            referenced_values: touched.referenced_values,
            outbox: Vec::new(),
        }
    }

    /// Asks for a background driver. The timer is always due, so it sorts before all others.
    fn wants_driver(&self) -> TimerRow {
        TimerRow {
            timer: TimerId::new(DRIVE_TIMER),
            run: self.id.clone(),
            due: Timestamp::from_millis(0),
            kind: TimerKind::Drive.into(),
            target: self.id.to_string(),
        }
    }

    fn run_row(&self) -> RunRow {
        RunRow {
            run: self.id.clone(),
            kind: self.kind.into(),
            workflow: self.workflow.name.clone(),
            feature: self.feature.clone(),
            status: self.listed.status.into(),
            phase: self.listed.phase.as_ref().map(ToString::to_string),
            created_at: self.started_at,
            changed_at: self.listed.changed_at,
            parent: self.parent.clone(),
        }
    }

    pub(in crate::run) fn hold_row(&self, hold: &Hold) -> HoldRow {
        HoldRow {
            hold: hold.id.clone(),
            run: self.id.clone(),
            kind: hold.kind.into(),
            state: hold.state,
            revision: hold.revision,
            since: hold.since,
            shown: hold_shown(hold),
        }
    }

    /// The materialized state, to be stored next to the history.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }

    /// Reads a materialized state. Its definition is a stored value, and must be added with [`Run::attach`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HistoryError> {
        from_bytes(bytes, "state")
    }

    /// Adds the definition to a materialized state that was read.
    pub fn attach(&mut self, workflow: Arc<Workflow>) -> Result<(), HistoryError> {
        if let Some(phase) = &mut self.current {
            let declared = workflow.phases.get(phase.position);
            phase.look_up(declared.ok_or_else(|| ApplyError("the current phase is not in the definition".into()))?);
        }
        self.workflow = workflow;
        Ok(())
    }
}

impl Workflow {
    /// The stored form of a definition.
    pub fn to_bytes(&self) -> Vec<u8> {
        to_bytes(self)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HistoryError> {
        from_bytes(bytes, "definition")
    }
}

/// The part of a hold that lists show, so that they do not have to read its run.
#[derive(Serialize)]
struct Shown<'h> {
    phase: Option<&'h PhaseId>,
    tasks: Vec<String>,
    prompt: &'h str,
    notes: &'h [String],
    options: Vec<ShownOption<'h>>,
    files: Vec<ShownPath<'h>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_deadline: Option<&'h OnDeadline>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    escalated: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    can_stop: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<&'h ShownDiff>,
}

#[derive(Serialize)]
struct ShownOption<'h> {
    id: &'h OptionId,
    label: &'h str,
    with_feedback: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pros: Option<&'h str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cons: Option<&'h str>,
}

#[derive(Serialize)]
struct ShownPath<'h> {
    path: &'h str,
    digest: Option<Digest>,
    size_bytes: Option<u64>,
}

impl<'h> ShownOption<'h> {
    fn of(choice: &'h Choice) -> Self {
        Self {
            id: &choice.id,
            label: &choice.label,
            with_feedback: choice.with_feedback,
            pros: choice.pros.as_deref(),
            cons: choice.cons.as_deref(),
        }
    }
}

impl<'h> ShownPath<'h> {
    fn of(file: &'h PresentedFile) -> Self {
        Self { path: &file.path, digest: file.seen.digest(), size_bytes: file.seen.bytes() }
    }
}

fn hold_shown(hold: &Hold) -> String {
    let shown = Shown {
        phase: hold.scope.phase(),
        tasks: hold.scope.addresses(),
        prompt: &hold.prompt,
        notes: &hold.notes,
        options: hold.options.iter().map(ShownOption::of).collect(),
        files: hold.files.iter().map(ShownPath::of).collect(),
        text: hold.question.as_ref().map(|asked| asked.text()),
        deadline: hold.terms.deadline.as_ref().map(|due| due.at),
        on_deadline: hold.terms.deadline.as_ref().map(|due| &due.then),
        escalated: hold.is_escalated(),
        can_stop: hold.stop().is_some(),
        diff: hold.diff.as_deref(),
    };
    serde_json::to_string(&shown).expect("a hold always serializes to JSON")
}

fn to_bytes(value: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = vec![STATE_FORMAT];
    rmp_serde::encode::write(&mut bytes, value).expect("states and definitions always serialize");
    bytes
}

fn from_bytes<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &'static str) -> Result<T, HistoryError> {
    let unreadable = |detail: String| HistoryError::Unreadable { what, detail };
    match bytes.split_first() {
        Some((&STATE_FORMAT, rest)) => messagepack::from_slice(rest).map_err(|error| unreadable(error.to_string())),
        Some((format, _)) => Err(unreadable(format!("it has format {format}, but this release reads {STATE_FORMAT}"))),
        None => Err(unreadable("it is empty".into())),
    }
}
