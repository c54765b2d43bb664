//! The rules of a run, each stated as a claim about a small workflow.

mod agents;
mod answer_change_consequences;
mod answer_changes;
mod answers;
mod automatic_answers;
mod budgets;
mod conditions;
mod context;
mod definition_changes;
mod definitions;
mod fail_fast;
mod failures;
mod fan_out;
mod finalization;
mod forks;
mod gaps;
mod gate_retries;
mod gates;
mod handovers;
mod hold_index;
mod late_outcomes;
mod lookup;
mod notices;
mod overrides;
mod pending_reads;
mod phases;
mod pipeline_reviews;
mod pipelines;
mod policy;
mod questions;
mod rechecks;
mod recoveries;
mod recovery;
mod rewinds;
mod rework;
mod rework_details;
mod sessions;
mod shown_diffs;
mod snapshots;
mod stored_history;
mod team_conflicts;
mod team_knowledge;
mod team_messages;

use crate::digest::Digest;
use crate::hold::{Action, Choice, Hold};
use crate::id::{DriverId, GateId, HoldId, OptionId, PhaseId, RunId, TaskId, TaskKey};
use crate::run::command::{
    Actor, AnswerChange, Caller, Channel, Command, CommandKind, Create, Credential, Envelope, GapsFound, Presentation,
    TaskOutcome, TerminalRule,
};
use crate::run::effect::Effect;
use crate::run::event::{
    ConditionOutcome, Created, DiffBase, Entry, Event, Failure, FailureKind, Origin, OutputFile, PresetAnswer,
};
use crate::run::pipeline::PipelineCommand;
use crate::run::{Refusal, Run, create, fire_deadlines, handle};
use crate::spec::workflow::*;
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn task(id: &str, needs: &[&str]) -> Task {
    let needs = needs.iter().map(|need| TaskId::from(*need)).collect();
    Task { needs, ..Task::new(TaskId::from(id), Work::Pass) }
}

pub(super) fn phase(id: &str, tasks: Vec<Task>) -> Phase {
    Phase { tasks, ..Phase::new(PhaseId::from(id)) }
}

pub(super) fn gate(id: &str) -> Gate {
    Gate::new(GateId::from(id), "true".into())
}

pub(super) fn choice(label: &str, action: Action) -> Choice {
    Choice { with_feedback: true, ..Choice::plain(&label.to_lowercase(), label, action) }
}

pub(super) fn checkpoint(options: Vec<Choice>) -> Option<Checkpoint> {
    Some(Checkpoint {
        condition: None,
        on_condition_error: OnConditionError::Show,
        prompt: "Go on?".into(),
        show_files: Vec::new(),
        show_diff: None,
        options,
        question: None,
        waits: Default::default(),
    })
}

pub(super) fn condition() -> Option<Script> {
    Some(Script { source: "true".into(), reads: Reads::Parts(BTreeSet::new()), line: 0 })
}

pub(super) fn workflow(phases: Vec<Phase>) -> Workflow {
    Workflow { name: "test".into(), phases, ..Workflow::default() }
}

pub(super) fn person() -> Actor {
    Actor {
        credential: Credential::Person,
        name: "ada".into(),
        channel: Channel::Command,
        terminal: true,
        inside_task: None,
        uid: Some(1000),
    }
}

/// A run under test. Commands get increasing timestamps, and all events are kept.
pub(super) struct Harness {
    pub(super) run: Run,
    pub(super) entries: Vec<Entry>,
    pub(super) now: i64,
}

impl Harness {
    pub(super) fn new(workflow: Workflow) -> Self {
        Self::with_presets(workflow, Vec::new())
    }

    pub(super) fn with_presets(workflow: Workflow, presets: Vec<PresetAnswer>) -> Self {
        let created = Created {
            feature: Some("login".into()),
            flags: vec!["backend".into()],
            ..Created::new(RunId::from("run00000"), Digest::of(b"definition"), "out".into(), DriverId::from("driver-1"))
        };
        let body = Create { created, presets };
        let (run, entries) = create(&envelope(person(), 0, true), &body, Arc::new(workflow)).unwrap();
        Self { run, entries, now: 0 }
    }

    pub(super) fn tell(&mut self, actor: Actor, body: CommandKind, driving: bool) -> Result<Vec<Event>, Refusal> {
        self.now += 1000;
        let command = command(actor, body, self.now, driving);
        let fired = fire_deadlines(&mut self.run, command.envelope.at);
        self.entries.extend(fired.iter().cloned());
        let entries = handle(&mut self.run, &command)?;
        self.entries.extend(entries.iter().cloned());
        survives_json(&self.run);
        Ok(fired.into_iter().chain(entries).map(|entry| entry.event).collect())
    }

    pub(super) fn outcome(&mut self, body: CommandKind) -> Vec<Event> {
        self.tell(Actor::driver(), body, true).unwrap()
    }

    /// Performs all pending effects successfully, until only a person can move the run.
    pub(super) fn work(&mut self) {
        while let Some(effect) = self.run.pending().into_iter().next() {
            self.perform(&effect);
        }
    }

    pub(super) fn perform(&mut self, effect: &Effect) -> Vec<Event> {
        let body = match effect.clone() {
            Effect::Task { key, attempt } => {
                let question = self.run.declared(&key).and_then(|task| task.checkpoint()?.question.clone());
                let outcome = match question {
                    Some(question) => TaskOutcome::Asks(Box::new(Presentation {
                        question: Some(question),
                        automatic: true,
                        ..Presentation::default()
                    })),
                    None => TaskOutcome::Finished { result: None, outputs: Vec::new() },
                };
                CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }
            }
            Effect::Gate { phase, iteration, gate, attempt } => {
                CommandKind::GateEnded { phase, iteration, gate, attempt, failure: None }
            }
            Effect::Evaluate { phase, iteration } => {
                CommandKind::ConditionEvaluated { phase, iteration, outcome: ConditionOutcome::True }
            }
            Effect::Show { phase, iteration } => {
                let checkpoint = self.run.workflow.phase(phase.as_str()).and_then(|phase| phase.checkpoint.as_ref());
                let question = checkpoint.and_then(|checkpoint| checkpoint.question.clone());
                let shown = Presentation { prompt: "Go on?".into(), question, ..Default::default() };
                CommandKind::Shown { phase, iteration, shown: Box::new(shown) }
            }
            Effect::DiffBase { phase, iteration } => {
                CommandKind::DiffBaseRecorded { phase, iteration, base: DiffBase::Missing("not tried".into()) }
            }
            Effect::Recheck { hold, revision } => {
                let Hold { files, diff, .. } = self.run.holds[&hold].clone();
                CommandKind::Rechecked { hold, revision, files, diff, differences: Vec::new() }
            }
            Effect::Check { hold, revision } => CommandKind::Checked { hold, revision, failure: None },
            Effect::When { key } => CommandKind::WhenEvaluated { key, outcome: ConditionOutcome::True },
            Effect::Gaps { phase, iteration, round } => {
                let found = GapsFound::Whole { status: "complete".into(), message: None };
                CommandKind::GapsChecked { phase, iteration, round, found }
            }
            Effect::QueryAgent { requester, .. } => {
                CommandKind::AgentQueryAnswered { requester, text: Ok(StoredValue::Inline("\"thought\"".into())), agent: None }
            }
            Effect::Finalize => {
                let file = OutputFile { path: "final.md".into(), digest: Digest::of(b"x"), bytes: 1, stored: false };
                CommandKind::Finalized { made: Ok(file) }
            }
            Effect::Artifacts { key } => {
                CommandKind::Pipeline(Box::new(PipelineCommand::ArtifactsFound { key, paths: Vec::new(), missing: Vec::new() }))
            }
            Effect::Wake { timer, due, .. } => {
                self.now = self.now.max(due.as_millis());
                CommandKind::TimerDue { timer }
            }
        };
        let events = self.outcome(body);
        assert!(!self.run.pending().contains(effect), "{effect:?} would be performed forever");
        events
    }

    /// Ends the backoff of a task.
    pub(super) fn wake(&mut self, task: &str) -> Vec<Event> {
        let tasks = self.run.current.iter().flat_map(|phase| &phase.tasks);
        let mut backoffs = tasks.filter(|known| known.task.as_str() == task).filter_map(|task| task.state.next_try());
        let (timer, due) = backoffs.next().expect("the task is backing off");
        let wakes = |effect: &Effect| matches!(effect, Effect::Wake { timer: known, .. } if known == timer);
        let wake = self.run.pending().into_iter().find(wakes).expect("the backoff has a timer");
        assert!(due.as_millis() >= self.now, "it is not over yet");
        self.perform(&wake)
    }

    pub(super) fn fail(&mut self, address: &str) -> Vec<Event> {
        let effects = self.run.pending();
        let found = effects.iter().find_map(|effect| match effect {
            Effect::Task { key, attempt } if key.address() == address => Some((key.clone(), *attempt)),
            _ => None,
        });
        let (key, attempt) = found.expect("the task is running");
        self.outcome(CommandKind::TaskEnded { key, attempt, outcome: TaskOutcome::Failed(broken()), agent: None, commit: None })
    }

    pub(super) fn hold(&self) -> &Hold {
        let open = self.run.open_holds();
        assert_eq!(open.len(), 1, "one hold is open");
        open[0]
    }

    pub(super) fn answer(&mut self, option: &str, feedback: Option<&str>) -> Vec<Event> {
        let body = self.answer_body(option, feedback);
        self.tell(person(), body, true).unwrap()
    }

    pub(super) fn answer_body(&self, option: &str, feedback: Option<&str>) -> CommandKind {
        let hold = self.hold();
        CommandKind::Answer {
            hold: hold.id.clone(),
            revision: Some(hold.revision),
            option: option.into(),
            feedback: feedback.map(Into::into),
        }
    }

    /// Answers the open hold of one task.
    pub(super) fn answer_task(&mut self, address: &str, option: &str, feedback: Option<&str>) -> Vec<Event> {
        let body = self.answer_task_body(address, option, feedback);
        self.tell(person(), body, true).unwrap()
    }

    /// Records an answer to the open hold of one task while no process drives the run.
    pub(super) fn record_answer(&mut self, address: &str, option: &str, feedback: Option<&str>) {
        let body = self.answer_task_body(address, option, feedback);
        self.tell(person(), body, false).unwrap();
    }

    fn answer_task_body(&self, address: &str, option: &str, feedback: Option<&str>) -> CommandKind {
        let open = self.run.open_holds();
        let asked = open.iter().find(|hold| hold.scope.addresses() == [address]).expect("its question is open");
        let (hold, revision, feedback) = (asked.id.clone(), Some(asked.revision), feedback.map(Into::into));
        CommandKind::Answer { hold, revision, option: option.into(), feedback }
    }

    /// Another process takes over the run.
    pub(super) fn take_over(&mut self) -> Vec<Event> {
        self.tell(person(), CommandKind::TakeOver { driver: DriverId::from("d2"), detached: false }, true).unwrap()
    }

    /// The addresses of the tasks that open holds ask about.
    pub(super) fn asked(&self) -> Vec<String> {
        let mut asked: Vec<String> = self.run.open_holds().iter().flat_map(|hold| hold.scope.addresses()).collect();
        asked.sort();
        asked
    }

    /// The effect of a running task.
    pub(super) fn effect_of(&self, address: &str) -> Effect {
        let is_meant = |effect: &Effect| matches!(effect, Effect::Task { key, .. } if key.address() == address);
        self.run.pending().into_iter().find(is_meant).expect("the task runs")
    }

    pub(super) fn started(&self) -> Vec<String> {
        let started = self.entries.iter().filter_map(|entry| match &entry.event {
            Event::TaskStarted { key, .. } => Some(key.address()),
            _ => None,
        });
        started.collect()
    }

    pub(super) fn has(&self, test: impl Fn(&Event) -> bool) -> bool {
        self.entries.iter().any(|entry| test(&entry.event))
    }
}

/// Snapshots contain states as JSON or YAML, so every state must be the same when it is read back from there.
fn survives_json(run: &Run) {
    // The largest fan-outs would take too long, and have nothing that smaller ones do not have.
    if run.current.as_ref().is_some_and(|phase| phase.tasks.len() > 200) {
        return;
    }
    let text = serde_json::to_string(&serde_json::to_value(run).unwrap()).unwrap();
    let mut read: Run = serde_json::from_str(&text).unwrap();
    read.attach(run.workflow.clone()).unwrap();
    let uncommitted = Run { touched: run.touched.clone(), offered: run.offered.clone(), ..read };
    assert!(uncommitted == *run, "{text}");
}

/// The failure of a finalization.
pub(super) fn no_space() -> Failure {
    Failure { kind: FailureKind::Output, message: "no space left".into(), tail: String::new() }
}

pub(super) fn broken() -> Failure {
    Failure { kind: FailureKind::Exit(1), message: "it broke".into(), tail: "line".into() }
}

pub(super) fn key(phase: &str, iteration: u32, task: &str) -> TaskKey {
    TaskKey { phase: PhaseId::from(phase), iteration, task: TaskId::from(task), item: None }
}

pub(super) fn hold_id(text: &str) -> HoldId {
    HoldId::from(text)
}

fn command(actor: Actor, kind: CommandKind, at: i64, driving: bool) -> Command {
    Command { envelope: envelope(actor, at, driving), kind }
}

/// An envelope in a project that requires a terminal.
fn envelope(actor: Actor, at: i64, driving: bool) -> Envelope {
    let caller = Caller::new(actor, TerminalRule::Required);
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&at.to_le_bytes());
    Envelope { id: None, caller, at: Timestamp::from_millis(at), seed, driving }
}
