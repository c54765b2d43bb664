//! Records what happened in a dry run, step by step, from the notifications of its run.

use super::step::{DryRunAnswer, DryRunHold, DryRunOutcome, DryRunWork, RehearsedDiff, Step, StepKind};
use super::stubs::{Position, StubCall};
use crate::notifications::{AgentQuery, Answer, GapCheck, Kind, Note, Notification, PhaseEnd, Skip, StepOutcome, Warning};
use crate::root::Step as Executed;
use lockgate_engine::hold::{Choice, Hold};
use lockgate_engine::id::{HoldId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::event::{HoldOpened, PlannedTask, Requester};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Transcript {
    pub(super) path: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) holds: Vec<DryRunHold>,
    /// The holds by id, with their options.
    ids: Vec<(HoldId, Vec<Choice>)>,
    /// The work of planned tasks that are not in the definition.
    called: BTreeMap<String, DryRunWork>,
    /// The step of each started attempt.
    started: BTreeMap<(String, u32, u32), usize>,
}

impl Transcript {
    pub(super) fn take_in(&mut self, run: &Run, notifications: &[Notification<'_>]) {
        for notification in notifications {
            self.take(run, notification);
        }
    }

    fn take(&mut self, run: &Run, notification: &Notification<'_>) {
        match &notification.kind {
            Kind::PhaseStarted { phase, iteration, feedback } => {
                self.path.push(phase.to_string());
                let detail = feedback.map(str::to_owned);
                self.steps.push(Step { iteration: Some(*iteration), detail, ..of(StepKind::Phase, phase) });
            }
            Kind::PhaseEnded { phase, end } => match end {
                PhaseEnd::Completed { .. } => {}
                PhaseEnd::Repeated { target, feedback, .. } => {
                    self.steps.push(Step { detail: feedback.map(str::to_owned), ..of(StepKind::Repeat, target) });
                }
                PhaseEnd::Skipped => self.steps.push(of(StepKind::SkippedPhase, phase)),
            },
            Kind::TasksPlanned { phase, tasks, .. } => self.plan(phase.as_str(), tasks),
            Kind::StepStarted { step, attempt, .. } => {
                let started = match step {
                    Executed::Task(key) => Step { work: self.work(run, key), ..of(StepKind::Task, &key.phase) },
                    Executed::Gate { phase, .. } => of(StepKind::Gate, phase),
                };
                self.start(step.address(), step.iteration(), *attempt, started);
            }
            Kind::StepEnded { step, attempt, outcome, .. } => self.ended(*step, *attempt, *outcome),
            Kind::StepSkipped { step, skip } => self.skipped(run, *step, *skip),
            Kind::AgentQuery { by, query } => match query {
                AgentQuery::Started => self.agent_query(by),
                AgentQuery::Answered { .. } => {}
            },
            Kind::GapCheck(check) => self.gap_check(*check),
            Kind::HoldOpened(opened) => self.open(opened),
            Kind::HoldAnswered { answer, .. } => {
                let given = notification.actor.is_some_and(|actor| actor.channel == Channel::Preset);
                self.answer(answer, given);
            }
            Kind::Note(note) => self.note(*note),
            Kind::Warning(warning) => match warning {
                Warning::ConditionFailed { phase, iteration, error } => {
                    let (outcome, detail) = (Some(DryRunOutcome::Error), Some((*error).to_owned()));
                    self.steps.push(Step { iteration: Some(*iteration), outcome, detail, ..of(StepKind::Condition, phase) });
                }
                Warning::AttemptRefused(_) => {}
            },
            Kind::RunStarted { .. }
            | Kind::RunResumed
            | Kind::RunInterrupted
            | Kind::RunEnded(_)
            | Kind::StepRetry { .. }
            | Kind::ReworkRequested { .. }
            | Kind::AnswerChanged(_)
            | Kind::HoldReopened { .. }
            | Kind::HoldVoided { .. }
            | Kind::Recorded { .. } => {}
        }
    }

    fn ended(&mut self, executed: Executed<'_>, attempt: u32, outcome: StepOutcome<'_>) {
        if let (StepOutcome::FannedOut { tasks }, Executed::Task(key)) = (outcome, executed) {
            self.plan(key.phase.as_str(), tasks);
        }
        let outputs = outcome.outputs().iter().map(|file| file.path.clone()).collect();
        let (came, detail) = match outcome {
            StepOutcome::Done { .. } => {
                let step = self.at(executed, attempt);
                // A fanned-out task ends when its items do, but the number of items is more informative.
                step.outcome = step.outcome.or(Some(DryRunOutcome::Done));
                step.outputs = outputs;
                return;
            }
            StepOutcome::Passed => (DryRunOutcome::Passed, None),
            StepOutcome::Repeated { .. } => (DryRunOutcome::Again, Some("its `until` condition is not met yet".to_owned())),
            StepOutcome::FannedOut { tasks } => (DryRunOutcome::FannedOut, Some(tasks.len().to_string())),
            StepOutcome::Failed(failure) => (DryRunOutcome::Failed, Some(failure.message.clone())),
            StepOutcome::Stopped { reason } => (DryRunOutcome::Stopped, Some(reason.to_owned())),
            StepOutcome::HandedOver(_) | StepOutcome::Interrupted => return,
        };
        let step = self.at(executed, attempt);
        (step.outcome, step.detail, step.outputs) = (Some(came), detail, outputs);
    }

    /// Handles a task or gate that did not succeed, for a reason other than an attempt.
    fn skipped(&mut self, run: &Run, executed: Executed<'_>, skip: Skip<'_>) {
        let (outcome, detail) = match skip {
            Skip::CountsAsDone { reason } => (DryRunOutcome::CountsAsDone, Some(reason)),
            Skip::Omitted { reason } => (DryRunOutcome::Omitted, Some(reason)),
            Skip::Tolerated => (DryRunOutcome::Tolerated, None),
            Skip::Waived { reason, .. } => (DryRunOutcome::CountsAsPassed, reason),
        };
        let step = match executed {
            Executed::Task(key) => Step { work: self.work(run, key), ..of(StepKind::Task, &key.phase) },
            Executed::Gate { phase, .. } => of(StepKind::Gate, phase),
        };
        let (address, iteration) = (Some(executed.address()), Some(executed.iteration()));
        let detail = detail.map(str::to_owned);
        self.steps.push(Step { address, iteration, outcome: Some(outcome), detail, ..step });
    }

    fn gap_check(&mut self, check: GapCheck<'_>) {
        let (phase, iteration, outcome, detail) = match check {
            GapCheck::Ended(checked) => {
                self.plan(checked.phase.as_str(), &checked.agents);
                let lines: Vec<&str> = checked.message.iter().chain(&checked.gaps).map(String::as_str).collect();
                let detail = Some(lines.join("; ")).filter(|lines| !lines.is_empty());
                (&checked.phase, checked.iteration, checked.action.map_or(DryRunOutcome::Whole, DryRunOutcome::Gaps), detail)
            }
            GapCheck::Waived { phase, iteration } => (phase, iteration, DryRunOutcome::CountsAsWhole, None),
        };
        let (iteration, outcome) = (Some(iteration), Some(outcome));
        self.steps.push(Step { iteration, outcome, detail, ..of(StepKind::GapCheck, phase) });
    }

    fn note(&mut self, note: Note<'_>) {
        match note {
            Note::CheckpointSkipped { phase, iteration } => {
                let (iteration, outcome) = (Some(iteration), Some(DryRunOutcome::NotMet));
                self.steps.push(Step { iteration, outcome, ..of(StepKind::Condition, phase) });
            }
            Note::PhasesSkipListed { phases } => {
                let names: Vec<&str> = phases.iter().map(|phase| phase.as_str()).collect();
                self.steps.push(Step { kind: StepKind::SkipList, detail: Some(names.join(", ")), ..Step::default() });
            }
            Note::Finalized { file } => {
                self.steps.push(Step { kind: StepKind::Finalization, outputs: vec![file.path.clone()], ..Step::default() });
            }
            Note::CheckPassed
            | Note::DeadlinePassed { .. }
            | Note::Reminder { .. }
            | Note::BudgetRaised { .. }
            | Note::Pipeline(_)
            | Note::Team(_)
            | Note::AgentChanged { .. }
            | Note::DefinitionAccepted
            | Note::Rewound(_) => {}
        }
    }

    fn plan(&mut self, phase: &str, tasks: &[PlannedTask]) {
        for task in tasks {
            if let Some(spec) = &task.spec {
                self.called.insert(format!("{phase}/{}", task.task), DryRunWork::of(&spec.work));
            }
        }
    }

    fn work(&self, run: &Run, key: &TaskKey) -> Option<DryRunWork> {
        let declared = run.workflow.phase(key.phase.as_str()).and_then(|phase| phase.task(key.task.as_str()));
        match declared {
            Some(task) if key.item.is_none() && task.for_each.is_some() => Some(DryRunWork::ForEach),
            Some(task) => Some(DryRunWork::of(&task.work)),
            None => self.called.get(&format!("{}/{}", key.phase, key.task)).copied(),
        }
    }

    fn start(&mut self, address: String, iteration: u32, attempt: u32, step: Step) {
        self.started.insert((address.clone(), iteration, attempt), self.steps.len());
        self.steps.push(Step { address: Some(address), iteration: Some(iteration), attempt: Some(attempt), ..step });
    }

    /// The step of an attempt; a new one if none has started.
    fn at(&mut self, executed: Executed<'_>, attempt: u32) -> &mut Step {
        let address = executed.address();
        let known = self.started.get(&(address.clone(), executed.iteration(), attempt)).copied();
        let at = known.unwrap_or_else(|| {
            self.steps.push(Step { kind: StepKind::Task, address: Some(address), ..Step::default() });
            self.steps.len() - 1
        });
        &mut self.steps[at]
    }

    fn agent_query(&mut self, requester: &Requester) {
        let (address, phase, iteration) = match requester {
            Requester::Task(key) => (key.address(), &key.phase, key.iteration),
            Requester::Gaps { phase, iteration } => (format!("{phase}/{}", lockgate_engine::hold::GAP_CHECK), phase, *iteration),
        };
        let asked = |step: &&Step| {
            step.kind == StepKind::AgentQuery && step.address.as_deref() == Some(&address) && step.iteration == Some(iteration)
        };
        // The number of this query.
        let attempt = Some(self.steps.iter().filter(asked).count() as u32 + 1);
        self.steps.push(Step { address: Some(address), iteration: Some(iteration), attempt, ..of(StepKind::AgentQuery, phase) });
    }

    fn open(&mut self, opened: &HoldOpened) {
        let phase = opened.scope.phase();
        let (kind, hold) = (StepKind::Hold, Some(self.holds.len()));
        self.steps.push(Step { kind, hold, phase: phase.map(ToString::to_string), ..Step::default() });
        self.holds.push(DryRunHold {
            kind: opened.kind,
            phase: phase.map(ToString::to_string),
            addresses: opened.scope.addresses(),
            prompt: opened.prompt.clone(),
            notes: opened.notes.clone(),
            files: opened.files.iter().map(|file| file.path.clone()).collect(),
            options: opened.options.iter().map(|choice| choice.label.clone()).collect(),
            answer: None,
            diff: opened.diff.as_ref().map(|diff| RehearsedDiff {
                since: diff.since.text().to_owned(),
                paths: diff.paths.clone(),
                title: diff.title(),
            }),
        });
        self.ids.push((opened.hold.clone(), opened.options.clone()));
    }

    fn answer(&mut self, answer: &Answer<'_>, given: bool) {
        let Some(at) = self.ids.iter().position(|(known, _)| known == answer.hold) else { return };
        let Some(choice) = self.ids[at].1.iter().find(|choice| choice.id == *answer.option) else { return };
        let (option, action) = (choice.label.clone(), choice.action.as_str());
        let feedback = answer.feedback.map(str::to_owned);
        self.holds[at].answer = Some(DryRunAnswer { option, action, feedback, given });
    }

    /// Adds the calls to stubs to their steps.
    pub(super) fn fill(&mut self, stub_calls: Vec<(Position, StubCall)>, in_words: &BTreeMap<String, String>) {
        for (at, stub_call) in stub_calls {
            let stub_call = match (stub_call, in_words.get(&at.address)) {
                (StubCall::Command { shell, .. }, Some(words)) => StubCall::Command { command: words.clone(), shell },
                (stub_call, _) => stub_call,
            };
            let round = at.address.strip_suffix("-until").map(|task| (task.to_owned(), at.iteration, at.attempt));
            if let (Some(step), StubCall::Command { command, .. }) =
                (round.and_then(|round| self.started.get(&round)), &stub_call)
            {
                self.steps[*step].until = Some(command.clone());
                continue;
            }
            let thought = at.address.rsplit_once("-thinks-").and_then(|(address, number)| {
                let number = number.parse().ok()?;
                self.steps.iter().position(|step| {
                    step.kind == StepKind::AgentQuery
                        && step.address.as_deref() == Some(address)
                        && (step.iteration, step.attempt) == (Some(at.iteration), Some(number))
                })
            });
            let started = self.started.get(&(at.address, at.iteration, at.attempt)).copied();
            let Some(step) = started.or(thought).map(|place| &mut self.steps[place]) else { continue };
            match stub_call {
                StubCall::Command { command, shell } => (step.command, step.shell) = (Some(command), Some(shell)),
                StubCall::Prompt { agent, prompt } => (step.agent, step.prompt) = (agent, Some(prompt)),
                StubCall::Script => step.detail = step.detail.take().or(Some("not evaluated: it has a stub".into())),
            }
        }
    }
}

/// Descriptions of checks that Lockgate generated itself, in the words of the plan, by address. Their shell code would be
/// meaningless to people.
pub(super) fn in_words(run: &Run) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for phase in run.workflow.phases.iter().filter(|_| !run.workflow.plans.is_empty()) {
        for task in &phase.tasks {
            let checks = task.until.as_ref().map(|until| until.checks.join(" && ")).filter(|checks| !checks.is_empty());
            words.extend(checks.map(|checks| (format!("{}/{}-until", phase.id, task.id), checks)));
        }
        for gate in phase.gates.iter().filter(|gate| gate.title.is_some()) {
            words.insert(format!("{}/{}", phase.id, gate.id), gate.title().to_owned());
        }
    }
    words
}

fn of(kind: StepKind, phase: &lockgate_engine::id::PhaseId) -> Step {
    Step { kind, phase: Some(phase.to_string()), ..Step::default() }
}

/// The name of a hold in answers and messages.
pub(super) fn name(hold: &Hold) -> String {
    let addresses = hold.scope.addresses();
    addresses.first().cloned().or_else(|| hold.scope.phase().map(ToString::to_string)).unwrap_or_else(|| "the run".to_owned())
}
