//! Describes the events of a history in one sentence each.

use crate::phrases::{again, asker, first_line, used};
use crate::{human_time, sanitize};
use lockgate_engine::hold::{Choice, Due};
use lockgate_engine::id::{HoldId, PhaseId, TaskKey};
use lockgate_engine::plural::counted;
use lockgate_engine::run::event::{AttemptReason, ConditionOutcome, DiffBase, Entry, Event, Failure, HoldOpened};
use lockgate_engine::run::pipeline::PipelineEvent;
use lockgate_engine::run::team::TeamEvent;
use lockgate_engine::spec::workflow::OnDeadline;
use lockgate_engine::time::Timestamp;
use std::collections::BTreeMap;

/// How many names a sentence lists.
const LISTED: usize = 8;

/// Describes a history event by event. It remembers start times and option labels from earlier events.
#[derive(Debug, Default)]
pub struct Describer {
    began: BTreeMap<String, Timestamp>,
    options: BTreeMap<HoldId, Vec<Choice>>,
}

impl Describer {
    /// Describes the next event in one line, which is safe to print to a terminal.
    pub fn render(&mut self, entry: &Entry) -> String {
        sanitize::line(&self.description(entry)).into_owned()
    }

    fn description(&mut self, entry: &Entry) -> String {
        let at = entry.at;
        match &entry.event {
            Event::Created(created) => {
                let about = created.feature.as_deref().map(|feature| format!(" for {feature:?}")).unwrap_or_default();
                let from = created.files.first().map(|file| format!(" from {}", file.path)).unwrap_or_default();
                format!("the run started{about}{from}")
            }
            Event::AnswersPreset { presets } => {
                let given = presets.iter().map(|preset| format!("{}={}", preset.selector, preset.option));
                format!("answers were preset: {}", listed(given))
            }
            Event::Resumed { .. } => "a process took over the run and resumed it".to_owned(),
            Event::Interrupted { signal } => format!("the process that drove the run was stopped ({signal})"),
            Event::PhaseSkipped { phase } => format!("phase {phase} was skipped"),
            Event::PhaseStarted { phase, iteration, feedback } => {
                let again = if *iteration > 1 { format!(" (execution {iteration})") } else { String::new() };
                format!("phase {phase} started{again}{}", with_feedback(feedback.as_deref()))
            }
            Event::TasksPlanned { phase, tasks, .. } => {
                let names = tasks.iter().map(|task| match &task.item {
                    None => task.task.to_string(),
                    Some(item) => format!("{}[{item}]", task.task),
                });
                format!("phase {phase} has these tasks: {}", listed(names))
            }
            Event::TaskStarted { key, attempt, reason, .. } => self.started(key, at, *attempt, *reason),
            Event::TaskFinished { key, outputs, agent, commit, .. } => {
                let commit = commit.as_deref().map(|commit| format!(", committed as {commit}")).unwrap_or_default();
                let left = outputs.iter().map(|output| output.path.clone());
                let left = if outputs.is_empty() { String::new() } else { format!(", wrote {}", listed(left)) };
                let used = agent.as_deref().map(used).unwrap_or_default();
                format!("task {} finished in {}{used}{left}{commit}", key.address(), self.took(&key.address(), at))
            }
            Event::TaskRepeated { key, .. } => {
                let took = self.took(&key.address(), at);
                format!("task {} finished in {took} and runs again: its `until` condition is not met yet", key.address())
            }
            Event::TaskFannedOut { key, tasks, .. } => {
                let names = tasks.iter().map(|task| task.item.clone().unwrap_or_else(|| task.task.to_string()));
                format!("task {} fanned out into {}: {}", key.address(), counted(tasks.len(), "task"), listed(names))
            }
            Event::TaskAdmitted { key } => format!("the condition of task {} is met", key.address()),
            Event::TaskOmitted { key, reason, .. } => format!("task {} was left out: {reason}", key.address()),
            Event::FailureTolerated { key } => format!("the run continues without task {}, which failed", key.address()),
            Event::AgentQueryStarted { requester, .. } => format!("the script of {} asks an agent", asker(requester)),
            Event::AgentQueryAnswered { requester, agent, .. } => {
                let used = agent.as_deref().map(used).unwrap_or_default();
                format!("an agent answered the script of {}{used}", asker(requester))
            }
            Event::GapsChecked(checked) => match checked.action {
                None => format!("the gap check of phase {} found no gaps", checked.phase),
                Some(action) => {
                    let gaps = listed(
                        checked.message.iter().chain(&checked.gaps).map(|gap| first_line(gap)).collect::<Vec<_>>().into_iter(),
                    );
                    format!("the gap check of phase {} found gaps ({}): {gaps}", checked.phase, action.as_str())
                }
            },
            Event::GapsWaived { phase, .. } => format!("the gaps of phase {phase} were waived by a person"),
            Event::BudgetRaised { scope } => format!("the budget of {} was raised by as much again", scope.title()),
            Event::TasksBlocked { keys, hold } => {
                format!("{} wait for the answer to hold {hold}", listed(keys.iter().map(TaskKey::address)))
            }
            Event::Finalized { file } => format!("finalization wrote {}", file.path),
            Event::Pipeline(pipeline_event) => of_pipeline(pipeline_event),
            Event::Team(team_event) => of_team(team_event),
            Event::DiffBaseRecorded { phase, base, .. } => match base {
                DiffBase::Tree { tree, .. } => {
                    format!(
                        "the files at the start of phase {phase} were recorded as git tree {}",
                        tree.get(..12).unwrap_or(tree)
                    )
                }
                DiffBase::Missing(why) => format!("the files at the start of phase {phase} could not be recorded: {why}"),
            },
            Event::AgentChanged { agent } => format!("the agent is now {agent}, regardless of the configuration"),
            Event::DefinitionAccepted { files, .. } => {
                format!("a changed definition was accepted: {}", listed(files.iter().map(|file| file.path.clone())))
            }
            Event::TaskFailed { key, failure, .. } => {
                let address = key.address();
                format!("task {address} failed after {}: {}", self.took(&address, at), why(failure))
            }
            Event::RetryScheduled { key, due, .. } => format!("task {} will be retried at {due}", key.address()),
            Event::RetryDue { key } => format!("the backoff of task {} is over", key.address()),
            Event::SessionNamed { key, session, .. } => format!("the agent of task {} works in session {session}", key.address()),
            Event::TaskInterrupted { key, .. } => format!("task {} was interrupted", key.address()),
            Event::TaskStopped { key, reason, .. } => format!("task {} was stopped, because {reason}", key.address()),
            Event::TaskSkipped { key, reason } => format!("task {} counts as done: {reason}", key.address()),
            Event::GateStarted { phase, gate, attempt, .. } => {
                let address = format!("{phase}/{gate}");
                let again = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
                let description = format!("gate {address} started{again}");
                self.began.insert(address, at);
                description
            }
            Event::GatePassed { phase, gate, .. } => {
                let address = format!("{phase}/{gate}");
                format!("gate {address} passed in {}", self.took(&address, at))
            }
            Event::GateFailed { phase, gate, failure, .. } => {
                let address = format!("{phase}/{gate}");
                format!("gate {address} failed after {}: {}", self.took(&address, at), why(failure))
            }
            Event::GateWaived { phase, gate, reason, .. } => {
                let reason = reason.as_deref().map(|reason| format!(": {}", first_line(reason))).unwrap_or_default();
                let who = waived_by(entry);
                format!("gate {phase}/{gate} counts as passed{who}{reason}")
            }
            Event::RetryRequested { key } => format!("a retry of task {} was requested", key.address()),
            Event::GateRetryRequested { phase, gate, .. } => format!("a retry of gate {phase}/{gate} was requested"),
            Event::ConditionEvaluated { phase, outcome, .. } => match outcome {
                ConditionOutcome::True => format!("the checkpoint condition of phase {phase} is met"),
                ConditionOutcome::False => format!("the checkpoint condition of phase {phase} is not met"),
                ConditionOutcome::Error(error) => {
                    format!("the checkpoint condition of phase {phase} failed: {}", first_line(error))
                }
            },
            Event::HoldOpened(opened) => self.opened(opened),
            Event::Answered { hold, option, feedback, revision } => {
                let choices = self.options.get(hold).into_iter().flatten();
                let label = choices.into_iter().find(|choice| choice.id == *option).map(|choice| choice.label.as_str());
                let label = label.unwrap_or(option.as_str());
                format!("hold {hold}@{revision} was answered {label:?}{}", with_feedback(feedback.as_deref()))
            }
            Event::HoldReopened { hold, revision, differences, by_check, deadline, .. } => {
                let changed = listed(differences.iter().map(|difference| first_line(difference)));
                let why = if *by_check { "its check failed" } else { "the shown content has changed" };
                let until = until(deadline.as_deref());
                format!("hold {hold}@{revision} was reopened, because {why}: {changed}{until}")
            }
            Event::HoldSettled { hold } => format!("the answer to hold {hold} took effect"),
            Event::HoldVoided { hold, reason } => format!("hold {hold} was voided: {reason}"),
            Event::AttemptRefused(refused) => format!("an attempt to {} was refused: {}", refused.what, refused.reason),
            Event::PhaseCompleted { phase, .. } => format!("phase {phase} is complete"),
            Event::PhaseRepeated { from, target, feedback, by_failure, gaps, .. } => {
                let why = match (*gaps, *by_failure) {
                    (true, _) => ", because its work has gaps",
                    (false, true) => ", because it failed",
                    (false, false) => "",
                };
                format!("the run returns from phase {from} to phase {target}{why}{}", with_feedback(feedback.as_deref()))
            }
            Event::PhasesSkipListed { phases } => {
                format!("phases to skip: {}", listed(phases.iter().map(PhaseId::to_string)))
            }
            Event::Failed { message } => format!("the run failed: {}", first_line(message)),
            Event::Aborted { hold } => format!("the run was aborted at hold {hold}"),
            Event::Cancelled { reason } => {
                let reason = reason.as_deref().map(|reason| format!(": {}", first_line(reason))).unwrap_or_default();
                format!("the run was cancelled{reason}")
            }
            Event::Completed => "the run is complete".to_owned(),
            Event::HandedOver { key, handover, .. } => format!(
                "the agent of task {} reached a checkpoint at its task {} ({}), {}/{} done",
                key.address(),
                handover.current.number,
                first_line(&handover.current.name),
                handover.done,
                handover.total
            ),
            Event::CheckPassed { hold } => format!("the check of hold {hold} passed"),
            Event::ReworkRequested { keys, issues, stale, .. } => {
                let again: Vec<String> = keys.iter().chain(stale).map(TaskKey::address).collect();
                let verb = if again.len() == 1 { "runs" } else { "run" };
                let names = listed(again.into_iter());
                format!("issues were found, so {names} {verb} again: {}", first_line(issues))
            }
            Event::DeadlinePassed { hold, then } => {
                format!("no one answered hold {hold} in time: {}", at_deadline(then))
            }
            Event::Reminded { hold, number, .. } => format!("reminder {number} of hold {hold}"),
            Event::AnswerChanged { hold, option, feedback } => {
                format!("the answer to hold {hold} was changed to {:?}{}", option.as_str(), with_feedback(feedback.as_deref()))
            }
        }
    }

    fn started(&mut self, key: &TaskKey, at: Timestamp, attempt: u32, reason: AttemptReason) -> String {
        self.began.insert(key.address(), at);
        format!("task {} started{}", key.address(), again(reason, attempt))
    }

    fn opened(&mut self, opened: &HoldOpened) -> String {
        self.options.insert(opened.hold.clone(), opened.options.clone());
        let place = opened.scope.phase().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
        let until = until(opened.terms.deadline.as_ref());
        format!("hold {}@1 ({}{place}) asks: {}{until}", opened.hold, opened.kind.as_str(), first_line(&opened.prompt))
    }

    fn took(&mut self, address: &str, at: Timestamp) -> String {
        self.began.remove(address).map_or_else(|| "an unknown time".to_owned(), |began| human_time::duration(at.since(began)))
    }
}

/// The deadline of a hold and its consequence.
fn until(due: Option<&Due>) -> String {
    due.map(|due| format!("; if no one answers by {}: {}", due.at, at_deadline(&due.then))).unwrap_or_default()
}

/// Describes what happens when a deadline passes without an answer.
pub fn at_deadline(then: &OnDeadline) -> String {
    match then {
        OnDeadline::Answer(option) => format!("answered with {:?}", option.as_str()),
        OnDeadline::Escalate(Some(whom)) => format!("escalated to {whom}"),
        OnDeadline::Escalate(None) => "escalated".to_owned(),
        OnDeadline::Abort => "the run aborts".to_owned(),
    }
}

/// Who waived a gate. A gate that had passed before its run was imported was waived by no one.
fn waived_by(entry: &Entry) -> &'static str {
    match (&entry.event, &entry.actor) {
        (Event::GateWaived { reason: Some(_), .. }, None) => "",
        (_, Some(_) | None) => ", because a person said so",
    }
}

/// Describes an event of a pipeline.
pub fn of_pipeline(pipeline_event: &PipelineEvent) -> String {
    match pipeline_event {
        PipelineEvent::Reviewed(review) => {
            let (verdict, attempt) = (review.verdict.as_str(), review.attempt);
            let why = review.override_reason.as_deref().map(|why| format!(": {}", first_line(why))).unwrap_or_default();
            format!("the review says {verdict} (attempt {attempt}, {} P0, {} P1){why}", review.p0, review.p1)
        }
        PipelineEvent::Noted(notes) => {
            let fixes = notes.key_fixes.iter().chain(&notes.eslint_fixes).map(|fix| format!("{}: {}", fix.file, fix.change));
            let all: Vec<String> = fixes.chain(notes.cleanup_done.iter().cloned()).map(|note| first_line(&note)).collect();
            format!("noted: {}", listed(all.into_iter()))
        }
        PipelineEvent::ArtifactsFound { key, paths, .. } if paths.is_empty() => format!("{} produced no files", key.task),
        PipelineEvent::ArtifactsFound { key, paths, .. } => format!("{} produced {}", key.task, listed(paths.iter().cloned())),
    }
}

/// Describes an event of the team.
pub fn of_team(team_event: &TeamEvent) -> String {
    match team_event {
        TeamEvent::MessageSent(message) => {
            let to = message.to.as_deref().map(|to| format!(" to {to}")).unwrap_or_default();
            let (from, kind, id) = (message.from.name(), message.kind.as_str(), &message.id);
            format!("{from} sent {kind} {id}{to}: {}", first_line(&message.summary))
        }
        TeamEvent::MessagesDelivered { key, messages, .. } => {
            format!("the prompt of {} includes {}", key.address(), counted(messages.len(), "message"))
        }
        TeamEvent::MessageAcknowledged { message, by } => format!("{by} acknowledged {message}"),
        TeamEvent::HandedOff { key, to, .. } => format!("task {} was handed to {to}", key.address()),
        TeamEvent::ConflictOpened(conflict) => {
            format!("conflict {} between {}: {}", conflict.id, conflict.participants.join(", "), first_line(&conflict.topic))
        }
        TeamEvent::Voted { conflict, vote } => {
            let veto = vote.veto.map(|veto| format!(" with a {} veto", veto.as_str())).unwrap_or_default();
            format!("{} voted for {:?} in round {} of {conflict}{veto}", vote.by, vote.choice, vote.round)
        }
        TeamEvent::RoundStarted { conflict, round } => format!("round {round} of conflict {conflict} started"),
        TeamEvent::ConflictEscalated { conflict, hold, reason } => {
            format!("a person decides conflict {conflict} in hold {hold}, because {}", first_line(reason))
        }
        TeamEvent::ConflictResolved { conflict, resolution } => {
            format!("conflict {conflict} was resolved: {}", first_line(&resolution.choice))
        }
        TeamEvent::KnowledgeCaptured(entry) => format!("{} captured {}", entry.by.name(), entry.id),
        TeamEvent::KnowledgeInjected { key, ids, .. } => {
            format!("the prompts of {} include {} of knowledge", key.address(), counted(ids.len(), "item"))
        }
    }
}

fn why(failure: &Failure) -> String {
    first_line(&failure.message)
}

fn with_feedback(feedback: Option<&str>) -> String {
    let feedback = feedback.filter(|feedback| !feedback.is_empty());
    feedback.map(|feedback| format!(", with feedback: {}", first_line(feedback))).unwrap_or_default()
}

fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let mut names: Vec<String> = names.take(LISTED).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}
