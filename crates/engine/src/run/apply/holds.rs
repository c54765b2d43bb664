//! Applying events about holds.

use super::ApplyError;
use crate::hold::{Action, Answer, Due, Hold, HoldKind, HoldState, PresentedFile, Remind, Scope, ShownDiff, Topic};
use crate::id::{HoldId, TaskKey, TimerId};
use crate::run::command::Channel;
use crate::run::event::{AttemptReason, HoldOpened};
use crate::run::handover::{CompletedTask, Handover};
use crate::run::index::TimerKind;
use crate::run::phase::Response;
use crate::run::state::{Decision, NewTimer, Run, Superseded, TaskState, skip_list_of};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;

impl Run {
    pub(super) fn hold_opened(&mut self, opened: &HoldOpened, at: Timestamp) -> Result<(), ApplyError> {
        self.refer_to_files(&opened.files, opened.diff.as_deref());
        match &opened.scope {
            Scope::Run => {}
            Scope::Phase { .. } => self.current_phase_mut()?.checkpoint.hold = Some(opened.hold.clone()),
            Scope::Tasks(keys) => {
                let phase = self.current_phase_mut()?;
                for key in keys {
                    let index = phase.find(key).ok_or_else(|| ApplyError(format!("unknown task {}", key.address())))?;
                    phase.tasks[index].hold = Some(opened.hold.clone());
                }
                match opened.kind {
                    HoldKind::Budget
                    | HoldKind::Verify
                    | HoldKind::Decision
                    | HoldKind::Action
                    | HoldKind::Checkpoint
                    | HoldKind::Authentication
                    | HoldKind::Handover => self.held(keys, &opened.hold, at)?,
                    HoldKind::Interrupted | HoldKind::Failed | HoldKind::Gaps | HoldKind::Escalation | HoldKind::Conflict => {}
                }
            }
            Scope::Gaps { .. } => self.current_phase_mut()?.gap.hold = Some(opened.hold.clone()),
            Scope::Gate { gate, .. } => self.gate(gate.as_str(), |gate| {
                gate.hold = Some(opened.hold.clone());
                gate.state.clone()
            })?,
        }
        self.touched.holds.push(opened.hold.clone());
        let hold = Hold {
            id: opened.hold.clone(),
            kind: opened.kind,
            scope: opened.scope.clone(),
            prompt: opened.prompt.clone(),
            notes: opened.notes.clone(),
            files: opened.files.clone(),
            options: opened.options.clone(),
            blocking: opened.blocking,
            quorum: opened.quorum,
            revision: 1,
            state: HoldState::Open,
            answers: Vec::new(),
            opened_at: at,
            since: at,
            question: opened.question.clone(),
            terms: opened.terms.clone(),
            previous: opened.previous.clone(),
            diff: opened.diff.clone(),
        };
        self.add_timers(&hold);
        self.holds.insert(opened.hold.clone(), hold);
        Ok(())
    }

    pub(super) fn close(&mut self, hold: &HoldId, state: HoldState) -> Result<Hold, ApplyError> {
        let mut hold = self.holds.remove(hold).ok_or_else(|| ApplyError(format!("hold {hold} is not open")))?;
        hold.state = state;
        self.remove_timers(&hold);
        self.touched.closed.push(hold.clone());
        Ok(hold)
    }

    fn refer_to_files(&mut self, files: &[PresentedFile], diff: Option<&ShownDiff>) {
        let kept = files.iter().filter(|file| file.not_kept.is_none());
        self.touched.referenced_values.extend(kept.filter_map(|file| file.seen.digest()));
        self.touched.referenced_values.extend(diff.and_then(|diff| diff.change()?.text));
    }

    fn preset_used(&mut self, hold: &HoldId) {
        let Some(hold) = self.holds.get(hold) else { return };
        if let Some(index) = self.presets.iter().position(|given| hold.is_selected_by(&given.preset.selector)) {
            self.presets.remove(index);
        }
    }

    pub(super) fn answered(&mut self, hold: &HoldId, answer: Answer) -> Result<(), ApplyError> {
        if answer.actor.channel == Channel::Preset {
            self.preset_used(hold);
        }
        if let Some(kind) = self.hold(hold)?.kind.policy() {
            match answer.actor.channel {
                Channel::Policy => self.consecutive_automatic.add(kind),
                Channel::Prompt | Channel::Command | Channel::Program | Channel::Preset => self.consecutive_automatic.reset(kind),
                Channel::Driver | Channel::Default | Channel::Deadline => {}
            }
        }
        let hold = self.hold(hold)?;
        hold.answers.push(answer);
        hold.state = HoldState::Checking;
        hold.terms.checked = false;
        let hold = hold.clone();
        self.remove_timers(&hold);
        self.touched.holds.push(hold.id);
        Ok(())
    }

    pub(super) fn hold_reopened(
        &mut self,
        (hold, revision): (&HoldId, u32),
        (files, diff): (&[PresentedFile], Option<&ShownDiff>),
        differences: &[String],
        (deadline, remind): (Option<&Due>, Option<&Remind>),
        at: Timestamp,
    ) -> Result<(), ApplyError> {
        self.refer_to_files(files, diff);
        let condition = self.current.as_ref().and_then(|phase| phase.checkpoint.condition_note());
        let hold = self.hold(hold)?;
        hold.revision = revision;
        hold.files = files.to_vec();
        hold.diff = diff.cloned().map(Box::new);
        hold.notes = condition.into_iter().chain(differences.iter().cloned()).collect();
        hold.answers.clear();
        hold.state = HoldState::Open;
        // No default and no policy answers a reopened hold, so the run waits for it.
        hold.blocking = true;
        hold.since = at;
        hold.terms.deadline = deadline.cloned().or(hold.terms.deadline.take());
        hold.terms.remind = remind.cloned().or(hold.terms.remind.take());
        let hold = hold.clone();
        self.add_timers(&hold);
        self.touched.holds.push(hold.id);
        Ok(())
    }

    pub(super) fn hold_settled(&mut self, hold: &HoldId, at: Timestamp) -> Result<(), ApplyError> {
        let hold = self.close(hold, HoldState::Settled)?;
        match hold.chosen().map(|choice| &choice.action) {
            Some(Action::Rerun) => self.again(&hold, at)?,
            Some(Action::RerunRest) => {
                self.again(&hold, at)?;
                self.unverified = false;
            }
            Some(Action::RaiseBudget(_)) => self.release_tasks(&hold.id, at)?,
            Some(Action::Continue | Action::Redo(_) | Action::Fail) => self.no_longer_asked(&hold.id),
            Some(Action::RepeatPhase(_) | Action::SkipPhases(_) | Action::Abort | Action::CountAsDone | Action::Reply) | None => {
            }
        }
        if hold.found_issues() && matches!(hold.scope, Scope::Phase { .. }) {
            self.phase_issues = self.phase_issues.saturating_add(1);
        }
        self.count_automatic_repeats(&hold);
        self.decisions.extend(decision(&hold));
        Ok(())
    }

    /// Counts automatic answers that repeat a phase, until a person answers the same question or the phase is done.
    fn count_automatic_repeats(&mut self, hold: &Hold) {
        let (Scope::Phase { phase, .. }, Some(answer)) = (&hold.scope, hold.answers.last()) else { return };
        if !answer.actor.channel.is_automatic() {
            self.automatic_repeats.remove(phase);
        } else if hold.chosen().is_some_and(|choice| choice.action.repeats()) {
            let count = self.automatic_repeats.entry(phase.clone()).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Adds an agent's completed work to that of the agents before it.
    pub(super) fn handed_over(&mut self, key: &TaskKey, handover: &Handover, at: Timestamp) -> Result<(), ApplyError> {
        self.task(key, at, |task| {
            let exchange = task.exchange_mut();
            let mut all = handover.clone();
            let before = exchange.handover.take().map(|before| before.completed).unwrap_or_default();
            let known = |done: &CompletedTask| all.completed.iter().any(|new| new.number == done.number && new.name == done.name);
            let mut completed: Vec<CompletedTask> = before.into_iter().filter(|done| !known(done)).collect();
            completed.append(&mut all.completed);
            all.completed = completed;
            exchange.handover = Some(Box::new(all));
            exchange.response = None;
            TaskState::Blocked
        })
    }

    pub(super) fn deadline_passed(&mut self, hold: &HoldId) -> Result<(), ApplyError> {
        let hold = self.hold(hold)?;
        let Some(due) = &mut hold.terms.deadline else { return Err(ApplyError(format!("hold {} has no deadline", hold.id))) };
        due.over = true;
        let (timer, id) = (due.timer.clone(), hold.id.clone());
        self.touched.timers_removed.push(timer);
        self.touched.holds.push(id);
        Ok(())
    }

    pub(super) fn reminded(&mut self, hold: &HoldId, number: u32, timer: &TimerId, next: Timestamp) -> Result<(), ApplyError> {
        let hold = self.hold(hold)?;
        let Some(remind) = &mut hold.terms.remind else { return Err(ApplyError(format!("hold {} has no reminders", hold.id))) };
        let before = std::mem::replace(&mut remind.timer, timer.clone());
        remind.at = next;
        remind.sent = number;
        let hold = hold.clone();
        self.touched.timers_removed.push(before);
        self.add_timers(&hold);
        Ok(())
    }

    /// A person changed an automatic answer: all answers since no longer count.
    pub(super) fn answer_changed(&mut self, hold: &HoldId, answer: Answer) -> Result<(), ApplyError> {
        let at = self.decisions.iter().position(|decision| decision.hold == *hold && !decision.void);
        let at = at.ok_or_else(|| ApplyError(format!("hold {hold} was never answered")))?;
        let changeable = self.decisions[at].changeable.clone();
        let mut changed = *changeable.ok_or_else(|| ApplyError(format!("the answer to hold {hold} is final")))?;
        for decision in self.decisions[at..].iter_mut().filter(|decision| !decision.void) {
            decision.void = true;
            decision.superseded = Some(Superseded { by: hold.clone(), at: answer.at });
        }
        self.skip_list = skip_list_of(&self.decisions[..at]);
        if let Scope::Tasks(keys) = &changed.scope
            && let Some(key) = keys.first().cloned()
        {
            let result = said(&changed, &answer);
            self.record_result(&key, Some(&result), &[], answer.at);
        }
        changed.answers = vec![answer];
        self.decisions.extend(decision(&changed));
        Ok(())
    }

    /// Sets the timers of an open hold.
    pub(in crate::run) fn add_timers(&mut self, hold: &Hold) {
        let target = hold.id.to_string();
        if let Some(due) = hold.terms.deadline.as_ref().filter(|due| !due.over) {
            let timer = due.timer.clone();
            self.touched.timers_removed.retain(|gone| *gone != timer);
            self.touched.timers.push(NewTimer { timer, due: due.at, kind: TimerKind::Deadline, target: target.clone() });
        }
        if let Some(remind) = &hold.terms.remind {
            let timer = remind.timer.clone();
            self.touched.timers_removed.retain(|gone| *gone != timer);
            self.touched.timers.push(NewTimer { timer, due: remind.at, kind: TimerKind::Remind, target });
        }
    }

    pub(super) fn remove_timers(&mut self, hold: &Hold) {
        let deadline = hold.terms.deadline.as_ref().filter(|due| !due.over).map(|due| due.timer.clone());
        let remind = hold.terms.remind.as_ref().map(|remind| remind.timer.clone());
        self.touched.timers_removed.extend(deadline.into_iter().chain(remind));
    }

    /// Allows new questions about the subject of a hold.
    pub(super) fn no_longer_asked(&mut self, hold: &HoldId) {
        let Some(phase) = &mut self.current else { return };
        let tasks = phase.tasks.iter_mut().map(|task| &mut task.hold);
        let gates = phase.gates.iter_mut().map(|gate| &mut gate.hold);
        tasks
            .chain(gates)
            .chain(Some(&mut phase.gap.hold))
            .filter(|asked| asked.as_ref() == Some(hold))
            .for_each(|asked| *asked = None);
    }

    /// Requests another attempt of the subject of a hold. It starts when its turn comes.
    fn again(&mut self, hold: &Hold, at: Timestamp) -> Result<(), ApplyError> {
        let by_agent = hold.kind == HoldKind::Handover
            || matches!(hold.question.as_ref().map(|asked| &asked.topic), Some(Topic::Handover(_)));
        let reason = match (by_agent, hold.kind == HoldKind::Authentication) {
            (true, _) => Some(AttemptReason::Answered),
            (false, true) => Some(AttemptReason::Auth),
            (false, false) => None,
        };
        let confirms = self.unverified && hold.kind == HoldKind::Interrupted;
        match &hold.scope {
            Scope::Run | Scope::Phase { .. } | Scope::Gaps { .. } => Ok(()),
            Scope::Tasks(keys) => keys.iter().try_for_each(|key| {
                self.task(key, at, |task| {
                    match (reason, &task.state) {
                        (Some(reason), _) => task.next_reason = reason,
                        (None, TaskState::Failed(_)) => task.next_reason = AttemptReason::Retry,
                        (None, _) => {}
                    }
                    task.hold = None;
                    task.confirmed |= confirms;
                    if by_agent {
                        let exchange = task.exchange_mut();
                        exchange.unchecked = hold.kind == HoldKind::Handover;
                        if !exchange.unchecked {
                            exchange.response = response(hold);
                        }
                    }
                    TaskState::Waiting
                })
            }),
            Scope::Gate { gate, .. } => self.reset_gate(gate.as_str()),
        }
    }

    pub(super) fn hold(&mut self, hold: &HoldId) -> Result<&mut Hold, ApplyError> {
        self.holds.get_mut(hold).ok_or_else(|| ApplyError(format!("hold {hold} is not open")))
    }
}

/// A person's response at an agent's checkpoint.
fn response(hold: &Hold) -> Option<Response> {
    let (answer, choice) = (hold.answers.last()?, hold.chosen()?);
    let words = answer.feedback.as_deref().map(str::trim).filter(|words| !words.is_empty());
    let issues = choice.requires_feedback && hold.kind == HoldKind::Verify;
    // The agent may have named its option without an id. The generated id alone would tell it nothing.
    let is_decision = hold.kind == HoldKind::Decision && !choice.requires_feedback && choice.label != choice.id.as_str();
    let chosen = if is_decision { format!("{}: {}", choice.id, choice.label) } else { choice.id.to_string() };
    let text = match (words, choice.requires_feedback) {
        (Some(words), true) => words.to_owned(),
        (Some(words), false) => format!("{chosen} ({words})"),
        (None, _) => chosen,
    };
    Some(Response { text, issues })
}

/// The result of a question, as later tasks see it.
pub(in crate::run) fn said(hold: &Hold, answer: &Answer) -> StoredValue {
    let choice = hold.choice(&answer.option);
    let mut said = serde_json::json!({"option": answer.option, "label": choice.map(|choice| &choice.label)});
    if let Some(feedback) = answer.feedback.as_ref().filter(|feedback| !feedback.is_empty()) {
        said["feedback"] = feedback.as_str().into();
    }
    StoredValue::Inline(said.to_string())
}

fn decision(hold: &Hold) -> Option<Decision> {
    let answer = hold.answers.last()?;
    let choice = hold.chosen()?;
    let (target, skipped) = match &choice.action {
        Action::RepeatPhase(target) => (Some(target.clone()), Vec::new()),
        Action::SkipPhases(phases) => (None, phases.clone()),
        Action::Continue
        | Action::Abort
        | Action::Rerun
        | Action::CountAsDone
        | Action::RaiseBudget(_)
        | Action::Redo(_)
        | Action::Fail
        | Action::RerunRest
        | Action::Reply => (None, Vec::new()),
    };
    Some(Decision {
        hold: hold.id.clone(),
        checkpoint: hold.kind.is_declared(),
        phase: hold.scope.phase().cloned(),
        option: choice.id.clone(),
        label: choice.label.clone(),
        action: choice.action.as_str().to_owned(),
        target,
        skipped,
        feedback: answer.feedback.clone(),
        revision: hold.revision,
        actor: answer.actor.clone(),
        at: answer.at,
        number: hold.options.iter().position(|known| known.id == choice.id).map_or(0, |index| index + 1),
        kind: Some(hold.kind),
        task: match &hold.scope {
            Scope::Tasks(keys) => keys.first().cloned(),
            Scope::Run | Scope::Phase { .. } | Scope::Gate { .. } | Scope::Gaps { .. } => None,
        },
        changeable: answer.actor.channel.is_automatic().then(|| Box::new(hold.clone())),
        void: false,
        superseded: None,
        restores: choice.restores.clone(),
        diff: hold.diff.as_ref().and_then(|diff| diff.approved()).map(Box::new),
    })
}
