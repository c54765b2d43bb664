//! What happens when a timer fires: the end of a retry's backoff, the reminder or the deadline of a hold.

use super::void_others;
use crate::hold::{Hold, HoldState};
use crate::id::{IdSource, TaskKey, TimerId};
use crate::run::event::Event;
use crate::run::state::Run;
use crate::spec::workflow::OnDeadline;
use crate::time::Timestamp;

/// A backoff ended, or a timer of a hold fired. Earlier answers keep their effect.
pub(super) fn timer_due(run: &Run, timer: &TimerId, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    if run.end.is_some() {
        return Vec::new();
    }
    if let Some(key) = backoff_of(run, timer) {
        return vec![Event::RetryDue { key }];
    }
    let open = run.holds.values().filter(|hold| hold.state == HoldState::Open);
    for hold in open {
        let due = hold.terms.deadline.as_ref().filter(|due| due.timer == *timer && !due.over && due.at <= at);
        if let Some(due) = due {
            return deadline_passed(run, hold, &due.then);
        }
        let remind = hold.terms.remind.as_ref().filter(|remind| remind.timer == *timer && remind.at <= at);
        if let Some(remind) = remind {
            let (timer, next) = (TimerId::new(ids.next_id()), at.plus(remind.every));
            return vec![Event::Reminded { hold: hold.id.clone(), number: remind.sent + 1, timer, next }];
        }
    }
    Vec::new()
}

/// The events of the next deadline that has passed by now.
pub(super) fn next_deadline(run: &Run, at: Timestamp) -> Option<Vec<Event>> {
    if run.end.is_some() {
        return None;
    }
    let open = run.holds.values().filter(|hold| hold.state == HoldState::Open);
    let due = open.filter_map(|hold| Some((hold, hold.terms.deadline.as_ref().filter(|due| !due.over && due.at <= at)?)));
    let (hold, due) = due.min_by_key(|(_, due)| due.at)?;
    Some(deadline_passed(run, hold, &due.then))
}

/// The task whose backoff a timer ends. The caller is trusted that the timer fired, whatever the wall clock says, because that
/// may have been set back since.
fn backoff_of(run: &Run, timer: &TimerId) -> Option<TaskKey> {
    let phase = run.current.as_ref()?;
    let mut waiting = phase.running();
    let index = waiting.find(|index| phase.tasks[*index].state.next_try().is_some_and(|(known, _)| known == timer))?;
    Some(phase.key(index))
}

fn deadline_passed(run: &Run, hold: &Hold, then: &OnDeadline) -> Vec<Event> {
    let mut events = vec![Event::DeadlinePassed { hold: hold.id.clone(), then: then.clone() }];
    match then {
        OnDeadline::Escalate(_) => {}
        OnDeadline::Answer(option) => {
            let (hold, revision) = (hold.id.clone(), hold.revision);
            events.push(Event::Answered { hold, option: option.clone(), feedback: None, revision });
        }
        OnDeadline::Abort => {
            events.extend(void_others(run, None, "no one answered in time, which ends the run"));
            events.push(Event::Aborted { hold: hold.id.clone() });
        }
    }
    events
}
