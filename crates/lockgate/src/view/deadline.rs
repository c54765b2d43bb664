//! The deadline of a hold and its consequence.

use crate::human_time;
use lockgate_engine::hold::Hold;
use lockgate_engine::id::OptionId;
use lockgate_engine::spec::workflow::OnDeadline;
use lockgate_engine::time::Timestamp;
use serde::Serialize;
use std::time::Duration;

/// A deadline and its consequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    at: Timestamp,
    then: OnDeadline,
    /// The label of the automatic answer.
    label: Option<String>,
    escalated: bool,
}

/// The consequence of a deadline, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct OnDeadlineView {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    option: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

impl Deadline {
    /// The deadline of a hold, if it has one.
    pub fn of(hold: &Hold) -> Option<Self> {
        let due = hold.terms.deadline.as_ref()?;
        let label = |option: &OptionId| hold.choice(option).map(|choice| choice.label.clone());
        Some(Self::new(due.at, due.then.clone(), hold.is_escalated(), label))
    }

    /// Creates a deadline. `label` returns the label of an option.
    pub(super) fn new(at: Timestamp, then: OnDeadline, escalated: bool, label: impl Fn(&OptionId) -> Option<String>) -> Self {
        let label = match &then {
            OnDeadline::Answer(option) => Some(label(option).unwrap_or_else(|| option.to_string())),
            OnDeadline::Escalate(_) | OnDeadline::Abort => None,
        };
        Self { at, then, label, escalated }
    }

    /// Whether the deadline has passed and decides the hold, even if it has not fired yet: an answer would fire it first and be
    /// refused.
    pub(super) fn decides(&self, now: Timestamp) -> bool {
        match self.then {
            OnDeadline::Answer(_) | OnDeadline::Abort => self.at <= now,
            OnDeadline::Escalate(_) => false,
        }
    }

    /// Whether the run can continue after the deadline.
    pub(super) fn continues(&self) -> bool {
        self.then != OnDeadline::Abort
    }

    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// The consequence, as JSON.
    pub(super) fn view(&self) -> OnDeadlineView {
        let (option, to) = match &self.then {
            OnDeadline::Answer(option) => (Some(option.to_string()), None),
            OnDeadline::Escalate(to) => (None, to.clone()),
            OnDeadline::Abort => (None, None),
        };
        OnDeadlineView { action: self.then.as_str(), option, to }
    }

    /// Describes what happens and when.
    pub fn words(&self, now: Timestamp) -> String {
        let at = self.at;
        if self.escalated {
            return format!("escalated{}, overdue since {at}", to(&self.then));
        }
        let what = match &self.then {
            OnDeadline::Answer(option) => format!("answered with {:?}", self.label.as_deref().unwrap_or(option.as_str())),
            then @ OnDeadline::Escalate(_) => format!("escalates{}", to(then)),
            OnDeadline::Abort => "the run aborts".to_owned(),
        };
        if at <= now {
            return format!("past its deadline of {at}: {what} when the next command touches the run");
        }
        let left = human_time::duration(Duration::from_secs(at.since(now).as_millis().div_ceil(1000) as u64));
        format!("{what} in {left} unless someone answers (deadline {at})")
    }
}

fn to(then: &OnDeadline) -> String {
    match then {
        OnDeadline::Escalate(Some(whom)) => format!(" to {whom}"),
        OnDeadline::Escalate(None) | OnDeadline::Answer(_) | OnDeadline::Abort => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(then: OnDeadline, escalated: bool, now: i64) -> String {
        let deadline = Deadline::new(Timestamp::from_millis(300_000), then, escalated, |_| Some("Go".to_owned()));
        deadline.words(Timestamp::from_millis(now))
    }

    #[test]
    fn a_deadline_shows_its_consequence_and_time() {
        let at = Timestamp::from_millis(300_000);
        let answer = OnDeadline::Answer(OptionId::from("go"));
        assert_eq!(
            words(answer.clone(), false, 60_000),
            format!("answered with \"Go\" in 4m 0s unless someone answers (deadline {at})")
        );
        assert_eq!(
            words(OnDeadline::Escalate(Some("ops".into())), false, 299_500),
            format!("escalates to ops in 1.0 s unless someone answers (deadline {at})")
        );
        assert_eq!(words(OnDeadline::Abort, false, 0), format!("the run aborts in 5m 0s unless someone answers (deadline {at})"));
        assert_eq!(
            words(answer, false, 400_000),
            format!("past its deadline of {at}: answered with \"Go\" when the next command touches the run")
        );
        assert_eq!(
            words(OnDeadline::Escalate(Some("ops".into())), true, 400_000),
            format!("escalated to ops, overdue since {at}")
        );
    }
}
