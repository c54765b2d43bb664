//! What happens while a run is driven, told as plain lines; at a terminal the tree of what is under way stands below them.

use crate::live::Live;
use crate::print::{self, ERROR, FAINT, GOOD, STRONG, WARNING, styled};
use crate::run_text::{hanging, tail_text};
use crate::{moment, neutral, notice, pipeline, sentence};
use lockgate::phrases::{again, asker, by, first_line, used};
use lockgate_engine::hold::Hold;
use lockgate_engine::id::{HoldId, PhaseId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::{ConditionOutcome, Entry, Event, Failure};
use lockgate_engine::run::state::TaskState;
use lockgate_engine::time::Timestamp;
use lockgate_engine::words::counted;
use lockgate_runner::config::Notify;
use lockgate_runner::driver::Listener;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Tells what happens.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    began: BTreeMap<String, Timestamp>,
    holds: BTreeMap<HoldId, Hold>,
    live: Option<Live>,
    /// Whether a tree shows what is under way.
    beside_a_tree: bool,
    notify: Option<Notify>,
}

impl Listener for Progress {
    fn committed(&mut self, run: &Run, entries: &[Entry]) {
        let text = self.told(run, entries);
        match &self.live {
            Some(live) => live.heard(run, entries, &text),
            None if !text.is_empty() => print::talk(&text),
            None => {}
        }
        if let Some(notify) = self.notify {
            notice::of_new_holds(notify, run, entries);
        }
    }

    fn not_written(&mut self, why: &str) {
        print::warn(format_args!(
            "{}; the run itself is kept, and the next command that looks at it writes the file",
            neutral::line(why)
        ));
    }

    fn put_aside(&mut self, path: &Path) {
        pipeline::tell_put_aside(path);
    }
}

impl Progress {
    /// Tells somebody at a terminal with a tree and notices, and everybody else with plain lines. Must be called inside the runtime.
    pub(crate) fn new(json: bool, notify: Notify) -> Self {
        let live = if json { None } else { Live::begin() };
        let notify = (!json && print::talk_is_seen()).then_some(notify);
        Self { beside_a_tree: live.is_some(), live, notify, ..Self::default() }
    }

    /// Tells what is told beside a tree.
    #[cfg(test)]
    pub(crate) fn beside_a_tree() -> Self {
        Self { beside_a_tree: true, ..Self::default() }
    }

    /// The live part, where there is one.
    pub(crate) fn live(&self) -> Option<&Live> {
        self.live.as_ref()
    }

    /// Takes in what happened before, so that it is known when things began; tells nothing of it.
    pub(crate) fn recall(&mut self, run: &Run, entries: &[Entry]) {
        self.told(run, entries);
        for (index, task) in run.current.iter().flat_map(|phase| phase.tasks.iter().enumerate()) {
            if let (Some(phase), TaskState::Running, Some(since)) = (&run.current, &task.state, task.since) {
                self.began.insert(phase.key(index).address(), since);
            }
        }
    }

    /// What happened, as plain lines.
    pub(crate) fn told(&mut self, run: &Run, entries: &[Entry]) -> String {
        let mut text = String::new();
        for entry in entries {
            self.tell(&mut text, run, entry);
        }
        for hold in run.holds.values() {
            self.holds.entry(hold.id.clone()).or_insert_with(|| hold.clone());
        }
        text
    }

    fn tell(&mut self, text: &mut String, run: &Run, entry: &Entry) {
        let at = entry.at;
        match &entry.event {
            Event::Created(_) => {
                let about = run.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
                let name = format!("{}{about}", run.workflow.name);
                line(text, format_args!("run {}: {}", styled(STRONG, &run.id), neutral::line(&name)));
            }
            Event::Resumed { .. } => line(text, format_args!("run {} goes on", styled(STRONG, &run.id))),
            Event::PresetsGiven { .. } | Event::TasksPlanned { .. } | Event::Interrupted { .. } => {}
            Event::PhaseSkipped { phase } => line(text, format_args!("phase {}: {}", name(phase), styled(FAINT, "skipped"))),
            Event::PhaseStarted { phase, iteration, feedback } => {
                let again = if *iteration > 1 { format!(" (execution {iteration})") } else { String::new() };
                line(text, format_args!("phase {}{again}", styled(STRONG, name(phase))));
                if let Some(feedback) = feedback {
                    indented(text, "feedback: ", feedback);
                }
            }
            Event::TaskStarted { key, attempt, reason, .. } => {
                self.began.insert(key.address(), at);
                let why = again(*reason, *attempt);
                // The tree shows what is under way.
                if self.beside_a_tree && why.is_empty() {
                    return;
                }
                line(text, format_args!("  {} {}{why}", address(key), styled(FAINT, "started")));
            }
            Event::TaskFinished { key, agent, .. } => {
                let took = self.took(&key.address(), at);
                let used = agent.as_deref().map(used).unwrap_or_default();
                line(text, format_args!("  {} {} in {took}{used}", address(key), styled(GOOD, "done")));
            }
            Event::TaskRepeated { key, .. } => {
                let took = self.took(&key.address(), at);
                line(text, format_args!("  {} done in {took}, and once more: its `until` does not hold yet", address(key)));
            }
            Event::TaskSpread { key, tasks, .. } => {
                line(text, format_args!("  {} becomes {}", address(key), counted(tasks.len(), "task")));
            }
            Event::TaskAdmitted { .. } | Event::TasksHeld { .. } | Event::RetryDue { .. } | Event::SessionNamed { .. } => {}
            Event::TaskLeftOut { key, reason, .. } => {
                let word = styled(FAINT, "left out:");
                line(text, format_args!("  {} {word} {}", address(key), neutral::line(reason)));
            }
            Event::FailureTolerated { key } => {
                line(text, format_args!("  {} {}", address(key), styled(WARNING, "failed, and the run goes on without it")));
            }
            Event::ThinkingBegan { thinker, .. } => {
                line(text, format_args!("  {} {}", neutral::line(&asker(thinker)), styled(FAINT, "asks an agent")));
            }
            Event::Thought { thinker, agent, .. } => {
                let used = agent.as_deref().map(used).unwrap_or_default();
                line(text, format_args!("  {} {}{used}", neutral::line(&asker(thinker)), styled(FAINT, "has its answer")));
            }
            Event::GapsChecked(checked) => {
                let word = match checked.action {
                    None => styled(GOOD, "finds the work whole").to_string(),
                    Some(action) => styled(WARNING, format_args!("finds gaps: {}", action.word())).to_string(),
                };
                line(text, format_args!("  gap check of {} {word}", name(&checked.phase)));
                checked.message.iter().chain(&checked.gaps).for_each(|told| indented(text, "", told));
            }
            Event::GapsWaived { phase, .. } => {
                let word = styled(WARNING, format_args!("counts as passed{}", sentence::waived_by(entry)));
                line(text, format_args!("  gap check of {} {word}", name(phase)));
            }
            Event::BudgetRaised { scope } => {
                line(text, format_args!("  the budget of {} is raised by as much again", neutral::line(&scope.title())));
            }
            Event::Finalized { file } => line(text, format_args!("  wrote {}", neutral::line(&file.path))),
            Event::Pipeline(fact) => line(text, format_args!("  {}", neutral::line(&sentence::of_pipeline(fact)))),
            Event::AgentChanged { agent } => line(text, format_args!("the agent is now {}", neutral::line(agent))),
            Event::DefinitionAccepted { .. } => line(text, format_args!("the changed definition was accepted")),
            Event::TaskFailed { key, failure, .. } => {
                let took = self.took(&key.address(), at);
                failed(text, &key.address(), &took, failure);
            }
            Event::RetryScheduled { key, due, .. } => {
                let pause = moment::duration(due.since(at));
                line(text, format_args!("  {} is tried again in {pause}", address(key)));
            }
            Event::TaskInterrupted { key, .. } => {
                line(text, format_args!("  {} {}", address(key), styled(WARNING, "was cut off")))
            }
            Event::TaskStopped { key, reason, .. } => {
                line(text, format_args!("  {} {}: {}", address(key), styled(WARNING, "is ended"), neutral::line(reason)));
            }
            Event::TaskSkipped { key, reason } => {
                let word = styled(WARNING, "counts as done:");
                line(text, format_args!("  {} {word} {}", address(key), neutral::line(reason)));
            }
            Event::RetryAsked { key } => line(text, format_args!("  {} is to be tried again", address(key))),
            Event::GateRetryAsked { gate, .. } => {
                line(text, format_args!("  gate {} is to be tried again", neutral::line(gate.as_str())));
            }
            Event::GateStarted { phase, gate, .. } => {
                self.began.insert(format!("{phase}/{gate}"), at);
            }
            Event::GatePassed { phase, gate, .. } => {
                let took = self.took(&format!("{phase}/{gate}"), at);
                let gate = neutral::line(gate.as_str());
                line(text, format_args!("  gate {gate} {} in {took}", styled(GOOD, "passed")));
            }
            Event::GateFailed { phase, gate, failure, .. } => {
                let took = self.took(&format!("{phase}/{gate}"), at);
                failed(text, &format!("gate {gate}"), &took, failure);
            }
            Event::GateWaived { gate, reason, .. } => {
                let gate = neutral::line(gate.as_str());
                let word = styled(WARNING, format_args!("counts as passed{}", sentence::waived_by(entry)));
                let why = reason.as_deref().map(|reason| format!(": {}", neutral::line(reason))).unwrap_or_default();
                line(text, format_args!("  gate {gate} {word}{why}"));
            }
            Event::ConditionEvaluated { phase, outcome, .. } => match outcome {
                ConditionOutcome::True => {}
                ConditionOutcome::False => {
                    line(
                        text,
                        format_args!(
                            "  checkpoint of {} {}",
                            name(phase),
                            styled(FAINT, "passed over: its condition is not met")
                        ),
                    );
                }
                ConditionOutcome::Error(error) => {
                    let warning = styled(WARNING, "warning:");
                    line(
                        text,
                        format_args!(
                            "{warning} the condition of {}'s checkpoint failed: {}",
                            name(phase),
                            hanging(error, "    ")
                        ),
                    );
                }
            },
            Event::HoldOpened(opened) => {
                let question = first_line(&opened.prompt);
                line(text, format_args!("  hold {}: {question}", styled(STRONG, format_args!("{}@1", opened.hold))));
            }
            Event::Answered { hold, option, feedback, .. } => {
                let known = run.holds.get(hold).or_else(|| self.holds.get(hold));
                let choice = known.and_then(|hold| hold.choice(option));
                let decided = run.decisions.iter().rev().find(|decision| decision.hold == *hold);
                let label =
                    choice.map(|choice| choice.label.as_str()).or_else(|| decided.map(|decision| decision.label.as_str()));
                *text += &answered(label.unwrap_or(option.as_str()), entry.actor.as_deref(), feedback.as_deref());
            }
            Event::HoldReopened { hold, revision, differences, by_check, .. } => {
                let hold = styled(STRONG, format_args!("{hold}@{revision}"));
                let why = if *by_check { "its check failed" } else { "what was shown has changed" };
                line(text, format_args!("  {} {hold}", styled(WARNING, format_args!("{why}, so the hold is open again:"))));
                differences.iter().for_each(|difference| indented(text, "", difference));
            }
            Event::HoldSettled { .. } | Event::PhaseCompleted { .. } => {}
            Event::HandedOver { key, handover, .. } => {
                let took = self.took(&key.address(), at);
                let word = styled(WARNING, "reached a checkpoint");
                let progress = format!("{}/{} tasks complete", handover.done, handover.total);
                line(text, format_args!("  {} {word} after {took}, {progress}", address(key)));
            }
            Event::CheckPassed { .. } => line(text, format_args!("  {}", styled(GOOD, "its check passed"))),
            Event::RedoAsked { keys, issues, stale, .. } => {
                for key in keys {
                    line(text, format_args!("  {} {}", address(key), styled(WARNING, "is done again, with the issues found")));
                }
                for key in stale {
                    line(text, format_args!("  {} {}", address(key), styled(WARNING, "depends on it and follows again")));
                }
                indented(text, "issues: ", issues);
            }
            Event::DeadlinePassed { hold, then } => {
                let word = styled(WARNING, "nobody answered in time:");
                line(text, format_args!("  hold {hold}: {word} {}", neutral::line(&sentence::at_deadline(then))));
            }
            Event::Reminded { hold, .. } => line(text, format_args!("  hold {hold} {}", styled(WARNING, "still waits"))),
            Event::AnswerChanged { hold, option, .. } => {
                let (option, by) = (neutral::line(option.as_str()), by(entry.actor.as_deref()));
                line(text, format_args!("  the answer to hold {hold} is now {option:?}, by {by}"));
            }
            Event::HoldVoided { hold, reason } => {
                line(text, format_args!("  hold {hold} no longer matters: {}", neutral::line(reason)))
            }
            Event::AttemptRefused(refused) => {
                let warning = styled(WARNING, "warning:");
                line(
                    text,
                    format_args!(
                        "{warning} somebody tried to {}: {}",
                        neutral::line(&refused.what),
                        neutral::line(&refused.reason)
                    ),
                );
            }
            Event::PhaseRepeated { target, by_itself, .. } => {
                let why = if *by_itself { ", because it failed" } else { "" };
                line(text, format_args!("back to phase {}{why}", name(target)));
            }
            Event::PhasesSkipListed { phases } => {
                let names: Vec<String> = phases.iter().map(name).collect();
                line(text, format_args!("  to be skipped: {}", names.join(", ")));
            }
            // How it ended is told by whoever drove it.
            Event::Failed { .. } | Event::Aborted { .. } | Event::Cancelled { .. } | Event::Completed => {}
        }
    }

    fn took(&mut self, address: &str, at: Timestamp) -> String {
        let began = self.began.remove(address);
        moment::duration(began.map_or(Duration::ZERO, |began| at.since(began)))
    }
}

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{what}");
}

fn indented(text: &mut String, label: &str, what: &str) {
    let what = neutral::lines(what);
    for (at, what) in what.lines().enumerate() {
        let label = if at == 0 { label } else { "" };
        line(text, format_args!("    {label}{what}"));
    }
}

fn failed(text: &mut String, what: &str, took: &str, failure: &Failure) {
    let word = styled(ERROR, "failed");
    line(text, format_args!("  {} {word} after {took}: {}", neutral::line(what), hanging(&failure.message, "    ")));
    *text += &tail_text(&failure.tail, "    ");
}

/// That a hold was answered, as plain lines.
pub(crate) fn answered(label: &str, actor: Option<&Actor>, feedback: Option<&str>) -> String {
    let mut text = String::new();
    let label = neutral::line(label).into_owned();
    line(&mut text, format_args!("  answered {} by {}", styled(GOOD, format_args!("{label:?}")), by(actor)));
    if let Some(feedback) = feedback.filter(|feedback| !feedback.is_empty()) {
        indented(&mut text, "feedback: ", feedback);
    }
    text
}

fn name(phase: &PhaseId) -> String {
    neutral::line(phase.as_str()).into_owned()
}

fn address(key: &TaskKey) -> String {
    neutral::line(&key.address()).into_owned()
}
