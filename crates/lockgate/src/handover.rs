//! The blocks of the checkpoint protocol: one that tells the caller where a run waits, and one with which an agent continues.

use crate::error::Error;
use crate::project::Project;
use crate::view::{DiffView, HoldView};
use lockgate_engine::hold::{Hold, HoldKind, Topic, offered_text, option_ids};
use lockgate_engine::id::{RunId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{Entry, Event};
use lockgate_engine::run::handover::{CompletedTask, CurrentTask, Handover, HandoverKind, HandoverStatus};
use lockgate_engine::run::state::Decision;
use lockgate_engine::spec::workflow::Phase;
use lockgate_engine::time::Timestamp;
use lockgate_formats::continuation::{Answered, Continuation};
use lockgate_runner::load::load;
use std::collections::BTreeMap;

/// How many commits to read per page.
const COMMITS: usize = 1000;

/// The finished tasks of a run, according to its history.
#[derive(Default)]
pub struct Done {
    by_address: BTreeMap<String, (Option<String>, Vec<String>)>,
}

impl Done {
    /// Reads the history and the state of a run.
    pub async fn of(project: &Project, run: &RunId) -> Result<(Self, Run), Error> {
        let state = load(project.store(), run).await?;
        let mut done = Self::default();
        let mut after = 0;
        while after < state.version {
            let commits = project.store().commits(run, after, COMMITS).await?;
            let Some(last) = commits.last() else { break };
            after = last.version;
            for sealed in commits.iter().filter(|sealed| sealed.version <= state.version) {
                sealed.open()?.entries.iter().for_each(|entry| done.take(entry));
            }
        }
        Ok((done, state))
    }

    fn take(&mut self, entry: &Entry) {
        if let Event::TaskFinished { key, outputs, commit, .. } = &entry.event {
            let files = outputs.iter().map(|file| file.path.clone()).collect();
            self.by_address.insert(address(key), (commit.clone(), files));
        }
        if let Event::ReworkRequested { keys, stale, .. } = &entry.event {
            keys.iter().chain(stale).for_each(|key| drop(self.by_address.remove(&address(key))));
        }
    }

    /// The finished tasks, numbered in workflow order.
    fn completed(&self, run: &Run) -> Vec<CompletedTask> {
        let mut completed = Vec::new();
        for (number, phase, task) in numbered(run) {
            let Some((commit, files)) = self.by_address.get(&format!("{}/{}", phase.id, task)) else { continue };
            let name = phase.task(task).map_or(task, |task| task.title()).to_owned();
            completed.push(CompletedTask { number: number.to_string(), name, commit: commit.clone(), files: files.clone() });
        }
        completed
    }
}

fn address(key: &TaskKey) -> String {
    format!("{}/{}", key.phase, key.task)
}

/// All tasks of a workflow with their numbers.
fn numbered(run: &Run) -> impl Iterator<Item = (usize, &Phase, &str)> {
    let tasks = run.workflow.phases.iter().flat_map(|phase| phase.tasks.iter().map(move |task| (phase, task.id.as_str())));
    tasks.enumerate().map(|(index, (phase, task))| (index + 1, phase, task))
}

/// The number and name of the task that a hold or decision concerns, or those of its phase.
fn current(run: &Run, hold: Option<&Hold>, decision: Option<&Decision>) -> (String, String) {
    let addresses = hold.map(|hold| hold.scope.addresses()).unwrap_or_default();
    let asked = addresses.first().cloned().or_else(|| decision.and_then(|decision| decision.task.as_ref()).map(address));
    let found = asked.and_then(|asked| numbered(run).find(|(_, phase, task)| format!("{}/{task}", phase.id) == asked));
    if let Some((number, phase, task)) = found {
        return (number.to_string(), phase.task(task).map_or(task, |task| task.title()).to_owned());
    }
    let phase = hold.and_then(|hold| hold.scope.phase()).or(decision.and_then(|decision| decision.phase.as_ref()));
    let before = |phase: &str| numbered(run).take_while(|(_, known, _)| known.id.as_str() != phase).count();
    match phase.and_then(|id| run.workflow.phase(id.as_str())) {
        Some(phase) => ((before(phase.id.as_str()) + phase.tasks.len()).to_string(), phase.title().to_owned()),
        None => (String::new(), run.workflow.name.clone()),
    }
}

/// The block that describes the oldest open hold of a run.
pub fn handover(done: &Done, run: &Run, now: Timestamp) -> Option<Handover> {
    let hold = run.open_holds().into_iter().next()?;
    let (number, name) = current(run, Some(hold), None);
    let (kind, status) = match hold.kind {
        HoldKind::Verify => (HandoverKind::Verify, HandoverStatus::AwaitingVerification),
        HoldKind::Decision
        | HoldKind::Checkpoint
        | HoldKind::Gaps
        | HoldKind::Budget
        | HoldKind::Handover
        | HoldKind::Escalation
        | HoldKind::Conflict => (HandoverKind::Decision, HandoverStatus::AwaitingDecision),
        HoldKind::Action | HoldKind::Authentication | HoldKind::Interrupted | HoldKind::Failed => {
            (HandoverKind::Action, HandoverStatus::Blocked)
        }
    };
    let (counted, total) = run.progress();
    let mut completed = done.completed(run);
    // An agent that paused within its task lists its own subtasks after the finished tasks of the run.
    if let Some(Topic::Handover(inner)) = hold.question.as_ref().map(|question| &question.topic) {
        completed.extend(
            inner.completed.iter().map(|task| CompletedTask { number: format!("{number}.{}", task.number), ..task.clone() }),
        );
    }
    let options: Vec<&str> = hold.options.iter().map(|choice| choice.id.as_str()).collect();
    let details = match (&hold.question, kind) {
        (Some(asked), _) => asked.details(),
        (None, HandoverKind::Decision) => format!("{}\n\n{}", hold.prompt.trim_end(), offered_text(&hold.options)),
        (None, HandoverKind::Verify | HandoverKind::Action) => hold.prompt.clone(),
    };
    let change = hold.diff.as_deref().map(DiffView::of).filter(|diff| diff.error.is_none());
    let change = change.map(|diff| format!("{}: {} (digest {})", diff.title, diff.totals(), diff.digest.unwrap_or_default()));
    let notes: String = change.iter().chain(&hold.notes).map(|note| format!("\n{note}")).collect();
    let awaiting = hold.question.as_ref().map_or_else(|| format!("One of: {}", options.join(", ")), |asked| asked.awaiting());
    let view = HoldView::of(hold);
    let until = view.until.as_ref().map(|until| format!("\n\nDeadline: {}", until.words(now))).unwrap_or_default();
    let how = if view.is_overdue(now) {
        "The deadline has passed, so answers are no longer accepted. Apply it with:"
    } else {
        "Answer with one of:"
    };
    let commands = view.next_commands(run.id.as_str(), false, now).join("\n");
    let awaiting = format!("{awaiting}{until}\n\n{how}\n{commands}");
    Some(Handover {
        kind,
        plan: run.feature.clone().unwrap_or_else(|| run.workflow.name.clone()),
        done: counted,
        total,
        completed,
        current: CurrentTask { number, name, status, blocked_by: crate::phrases::first_line(&hold.prompt) },
        details: format!("{}{notes}", details.trim_end()),
        awaiting,
        // The details already list the options.
        options: Vec::new(),
    })
}

/// The block with which an agent continues after the latest answer.
pub fn continuation(done: &Done, run: &Run) -> Option<Continuation> {
    let decision = run.decisions.iter().rfind(|decision| !decision.void && decision.checkpoint)?;
    let (number, name) = current(run, None, Some(decision));
    let answered = match decision.kind {
        Some(HoldKind::Verify) if decision.option.as_str() == option_ids::ISSUES => Answered::IssuesFound,
        Some(HoldKind::Verify) => Answered::Approved,
        Some(HoldKind::Action | HoldKind::Authentication) => Answered::Acted,
        Some(
            HoldKind::Checkpoint
            | HoldKind::Interrupted
            | HoldKind::Failed
            | HoldKind::Decision
            | HoldKind::Gaps
            | HoldKind::Budget
            | HoldKind::Handover
            | HoldKind::Escalation
            | HoldKind::Conflict,
        )
        | None => Answered::Decided,
    };
    let feedback = decision.feedback.as_deref().filter(|feedback| !feedback.is_empty());
    let response = match feedback {
        Some(feedback) => format!("{} ({feedback})", decision.option),
        None => decision.option.to_string(),
    };
    Some(Continuation { completed: done.completed(run), number, name, response, answered })
}
