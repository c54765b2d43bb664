//! What people do during a plan: they answer, sometimes too late, change answers, skip and retry.

use super::execute::person;
use super::runtime::Outside;
use lockgate_engine::hold::{Action, Choice, Hold};
use lockgate_engine::id::StepKey;
use lockgate_engine::run::command::{AnswerChange, CommandKind};
use lockgate_engine::run::{Refusal, Run};
use lockgate_engine::spec::workflow::OnDeadline;
use lockgate_runner::driver::{DriveError, Driver, fire_due, submit};
use lockgate_runner::runtime::Runtime;
use lockgate_store::{MemoryStore, Store};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

/// From this version on, people only do what brings the run to its end.
const PATIENCE: u64 = 35;

/// The run waits for people, and one of them acts.
pub(super) async fn turn(driver: &mut Driver, outside: &Outside) -> Result<(), DriveError> {
    let run = driver.run();
    let asked = outside.turns.lock().unwrap().asks();
    let mut random = SmallRng::seed_from_u64(outside.plan.seed.wrapping_mul(1_000_003).wrapping_add(asked));
    let playful = run.version < PATIENCE;
    let holds = run.open_holds();
    let hold = holds[random.random_range(0..holds.len())].clone();
    let mood = random.random_range(0..12);
    if mood < 2
        && playful
        && let Some(command) = changed_answer(run, &mut random)
    {
        return may_be_refused(driver, command).await;
    }
    if mood == 2
        && playful
        && let Some(command) = about_a_task(run, &mut random)
    {
        return may_be_refused(driver, command).await;
    }
    if (3..6).contains(&mood)
        && let Some(due) = hold.terms.deadline.as_ref().filter(|due| !due.over)
    {
        outside.pass_until(due.at);
        return match random.random_range(0..3) {
            // No process fires the deadline; the next command finds that it has passed.
            0 => Ok(()),
            1 => fire_due(driver.runtime(), |_| true).await.map(drop),
            _ => late(driver, outside, &hold).await,
        };
    }
    if mood == 6
        && let Some(remind) = &hold.terms.remind
    {
        outside.pass_until(remind.at);
        fire_due(driver.runtime(), |_| true).await?;
    }
    answer(driver, outside, &hold, playful, &mut random).await
}

/// An answer after its deadline: it is refused unless the deadline only notifies people.
async fn late(driver: &mut Driver, outside: &Outside, hold: &Hold) -> Result<(), DriveError> {
    let option = onward(&hold.options).id.to_string();
    let command = CommandKind::Answer {
        hold: hold.id.clone(),
        revision: Some(hold.revision),
        option: option.clone(),
        feedback: Some("late".into()),
    };
    let then = hold.terms.deadline.as_ref().map(|due| due.then.clone());
    match (driver.submit(person(), command).await, then) {
        (Ok(()), Some(OnDeadline::Escalate(_))) => {
            outside.watch.lock().unwrap().confirmed.push((hold.id.clone(), hold.revision, option));
            Ok(())
        }
        (Err(DriveError::Refused(_)), _) => {
            outside.watch.lock().unwrap().late += 1;
            Ok(())
        }
        (Err(error), _) => Err(error),
        (Ok(()), then) => panic!("a late answer is refused; the deadline was {then:?}"),
    }
}

/// A person answers, sometimes after the shown file was changed, or at another process.
async fn answer(
    driver: &mut Driver,
    outside: &Outside,
    hold: &Hold,
    playful: bool,
    random: &mut SmallRng,
) -> Result<(), DriveError> {
    if random.random_range(0..5) == 0 && hold.revision == 1 {
        outside.file.lock().unwrap().push(b'!');
    }
    let choice = if playful { any(&hold.options, random) } else { onward(&hold.options) };
    let option = choice.id.to_string();
    let feedback = (choice.requires_feedback || choice.with_feedback).then(|| "again".to_owned());
    let command = CommandKind::Answer { hold: hold.id.clone(), revision: Some(hold.revision), option: option.clone(), feedback };
    let elsewhere = random.random_range(0..3) == 0;
    if elsewhere {
        // A person answers at another process; this one sees it at its next check, or collides with it.
        let another = outside.store.lock().unwrap().as_ref().map(MemoryStore::another_process);
        let store: Arc<dyn Store> = Arc::new(another.expect("a process lives"));
        let runtime = Runtime { store, ..driver.runtime().clone() };
        if !answered(submit(&runtime, &driver.run().id, person(), command.clone()).await.map(drop))? {
            return Ok(());
        }
    }
    if (!elsewhere || random.random()) && !answered(driver.submit(person(), command).await)? {
        return Ok(());
    }
    outside.watch.lock().unwrap().confirmed.push((hold.id.clone(), hold.revision, option));
    Ok(())
}

/// Whether an answer is recorded: this one, or the same one before it. A deadline may have passed first.
fn answered(submitted: Result<(), DriveError>) -> Result<bool, DriveError> {
    match submitted {
        Ok(()) | Err(DriveError::Refused(Refusal::AlreadyAnswered { .. })) => Ok(true),
        Err(DriveError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Any valid option; rarely one that ends the run.
fn any<'o>(options: &'o [Choice], random: &mut SmallRng) -> &'o Choice {
    let choice = &options[random.random_range(0..options.len())];
    if choice.action == Action::Abort && random.random_range(0..6) > 0 { onward(options) } else { choice }
}

/// The option that ends the run soonest.
fn onward(options: &[Choice]) -> &Choice {
    let rank = |choice: &&Choice| match choice.action {
        Action::Continue => 0,
        Action::CountAsDone => 1,
        Action::RaiseBudget(_) | Action::SkipPhases(_) => 2,
        Action::Rerun | Action::RerunRest => 3,
        Action::RepeatPhase(_) | Action::Redo(_) | Action::Fail | Action::Abort => 4,
    };
    options.iter().min_by_key(rank).expect("something can be answered")
}

/// A different answer instead of one that no person gave.
fn changed_answer(run: &Run, random: &mut SmallRng) -> Option<CommandKind> {
    let given: Vec<_> = run.decisions.iter().filter(|decision| !decision.void).collect();
    let given: Vec<_> = given.into_iter().filter_map(|decision| Some((decision, decision.changeable.as_deref()?))).collect();
    let (decision, question) = given.get(random.random_range(0..given.len().max(1)))?;
    let option = question.options[random.random_range(0..question.options.len())].id.to_string();
    Some(CommandKind::ChangeAnswer(AnswerChange { hold: decision.hold.clone(), option, feedback: Some("changed".into()) }))
}

/// Retries a task of the current phase, or skips it.
fn about_a_task(run: &Run, random: &mut SmallRng) -> Option<CommandKind> {
    let phase = run.current.as_ref()?;
    let step = StepKey::Task(phase.key(random.random_range(0..phase.tasks.len())));
    Some(match random.random() {
        true => CommandKind::RetryTask { step, cut_off: None },
        false => CommandKind::SkipTask { step, reason: "enough".into(), cut_off: None },
    })
}

async fn may_be_refused(driver: &mut Driver, command: CommandKind) -> Result<(), DriveError> {
    match driver.submit(person(), command).await {
        Ok(()) | Err(DriveError::Refused(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
