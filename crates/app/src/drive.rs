//! Driving a run from the command line: until it ends, waits for somebody who is not here, or is stopped.

use crate::exit::Exit;
use crate::open::Project;
use crate::print::{self, ERROR, GOOD, HELP, STRONG, WARNING, styled};
use crate::prompt::{self, About, Asked, Line};
use crate::trouble::Trouble;
use crate::view::{HoldView, RunView, hanging, run_command, shown_text};
use crate::{live, neutral, plans, progress, signals, worktrees};
use lockgate_engine::hold::Hold;
use lockgate_engine::id::HoldId;
use lockgate_engine::run::command::{Body, Way};
use lockgate_engine::run::event::FailureKind;
use lockgate_engine::run::refusal::may_decide;
use lockgate_engine::run::state::End;
use lockgate_engine::run::{Refusal, Run};
use lockgate_runner::driver::{DriveError, Driver, Halt, Paused, fire_due, next_moment};
use lockgate_runner::load::load;
use lockgate_runner::process::{become_subreaper, keep_reaping};
use lockgate_runner::world::World;

/// Makes ready to drive: signals are heard, and what tasks leave behind comes to this process. Must be called inside the runtime.
pub(crate) fn make_ready() -> Result<Halt, Trouble> {
    let halt = Halt::default();
    signals::listen(&halt)?;
    if let Err(error) = become_subreaper() {
        print::warn(format_args!("what tasks leave behind cannot be adopted: {error}"));
    }
    tokio::spawn(keep_reaping());
    Ok(halt)
}

/// Drives a run until there is nothing more to do here, tells how it ended, and gives how the program ends.
pub(crate) async fn drive(project: &Project, mut driver: Driver, halt: &Halt, json: bool) -> Result<Exit, Trouble> {
    let mut here = Here { project, asks: !json && print::somebody_is_there(), draft: None };
    let exit = loop {
        let paused = match driver.drive(halt).await {
            Ok(paused) => paused,
            Err(error) => {
                let trouble = Trouble::from(error);
                trouble.tell();
                if trouble.exit() == Exit::Failed {
                    next_command("when that is mended, go on", &format!("lockgate resume {}", driver.run().id));
                }
                return Err(trouble.told());
            }
        };
        match paused {
            Paused::Ended => {
                let exit = ended(driver.run());
                worktrees::tell(&project.root, driver.run());
                plans::tell_summaries(project, driver.run()).await;
                break exit;
            }
            Paused::Interrupted => {
                told_to_stop(driver.run());
                break Exit::by_signal(halt.signal());
            }
            Paused::Waiting => match here.ask(&mut driver, halt).await? {
                None => {}
                Some(exit) => break exit,
            },
        }
    };
    unused_answers(driver.run());
    if json {
        print::json(&RunView::of(driver.run(), None, project).await?);
    }
    Ok(exit)
}

/// Who can be asked from this process.
struct Here<'p> {
    project: &'p Project,
    asks: bool,
    /// Feedback for a hold that was not sent, or that came too late.
    draft: Option<(HoldId, Line)>,
}

impl Here<'_> {
    /// Asks the person at the terminal about the hold that waits longest; gives how the program ends when there is nobody to ask.
    async fn ask(&mut self, driver: &mut Driver, halt: &Halt) -> Result<Option<Exit>, Trouble> {
        let Some(hold) = driver.run().open_holds().first().map(|hold| (*hold).clone()) else {
            return Ok(Some(waiting(driver.run())));
        };
        if !self.asks {
            return Ok(Some(waiting(driver.run())));
        }
        let actor = self.project.actor(Way::Prompt);
        if let Err(refusal) = may_decide(&actor, self.project.require_terminal(), "answer a hold") {
            Trouble::from(refusal).tell();
            return Ok(Some(waiting(driver.run())));
        }
        let _hidden = live::hide();
        let about = About::of(driver.run(), &hold, self.project.store()).await?;
        about.show();
        let moments = tokio::spawn(watch_moments(driver.world().clone(), driver.run().clone()));
        // The same hold may be asked again, because its files have changed; what was written for it is still there then.
        let draft = self.draft.take().filter(|(of, _)| *of == hold.id);
        let (_, draft) = self.draft.insert(draft.unwrap_or_else(|| (hold.id.clone(), Line::default())));
        let asked = prompt::ask(&about, draft, halt).await;
        moments.abort();
        match asked? {
            Asked::Chose { option, feedback } => {
                let body =
                    Body::Answer { hold: hold.id.clone(), revision: Some(hold.revision), option: option.to_string(), feedback };
                match driver.submit(actor, body, self.project.require_terminal()).await {
                    Ok(()) => {}
                    // Somebody was quicker, or the question has changed meanwhile: it is shown as it is now.
                    Err(DriveError::Refused(
                        refusal @ (Refusal::AlreadyAnswered { .. }
                        | Refusal::AnswerConflicts { .. }
                        | Refusal::StaleRevision { .. }
                        | Refusal::RunEnded { .. }
                        | Refusal::NoSuchHold { .. }),
                    )) => {
                        print::note(neutral::line(&refusal.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                }
                Ok(None)
            }
            Asked::Elsewhere => {
                // What follows from it comes with the next round of driving; who answered is told first.
                let now = load(self.project.store(), &driver.run().id).await?;
                print::note(answered_elsewhere(&now, &hold));
                Ok(None)
            }
            Asked::NobodyThere => {
                self.asks = false;
                Ok(Some(waiting(driver.run())))
            }
            Asked::Interrupted => {
                told_to_stop(driver.run());
                Ok(Some(Exit::Interrupted))
            }
            Asked::Halted => {
                told_to_stop(driver.run());
                Ok(Some(Exit::by_signal(halt.signal())))
            }
        }
    }
}

/// Fires the deadlines and reminders of a run while somebody is asked; a question that is answered by that closes.
async fn watch_moments(world: World, mut run: Run) {
    while let Some(next) = next_moment(&run) {
        world.clock.sleep_until(next).await;
        match fire_due(&world, |due| *due == run.id).await {
            Ok(fired) => {
                if fired.iter().any(|fired| fired.kind == "remind") {
                    print::terminal("\x07");
                }
                match load(&*world.store, &run.id).await {
                    Ok(now) => run = now,
                    Err(_) => return,
                }
            }
            Err(_) => return,
        }
    }
}

/// What became of a hold while it was being asked here.
fn answered_elsewhere(run: &Run, asked: &Hold) -> String {
    let said = |hold: &HoldId, label: &str, by: String, at: String| {
        format!("hold {hold} was answered elsewhere: {:?} by {by} at {at}", neutral::line(label))
    };
    if let Some(hold) = run.holds.get(&asked.id) {
        if let Some(answer) = hold.answers.last() {
            let label = hold.options.iter().find(|choice| choice.id == answer.option).map_or("", |choice| choice.label.as_str());
            return said(&asked.id, label, progress::by(Some(&answer.actor)), answer.at.to_string());
        }
        if hold.revision != asked.revision {
            return format!("hold {} was opened again, because what it shows has changed", asked.id);
        }
    }
    match run.decisions.iter().rev().find(|decision| decision.hold == asked.id) {
        Some(decision) => said(&asked.id, &decision.label, progress::by(Some(&decision.actor)), decision.at.to_string()),
        None => format!("hold {} no longer waits", asked.id),
    }
}

/// Tells how a run ended.
pub(crate) fn ended(run: &Run) -> Exit {
    let status = run.status();
    let id = styled(STRONG, &run.id);
    match &run.end {
        Some(End::Complete) => print::say(format_args!("run {id} is {}", styled(GOOD, "complete"))),
        Some(End::Failed(message)) => {
            print::say(format_args!("run {id} {}: {}", styled(ERROR, "failed"), hanging(message, "    ")));
            // Of a pipeline it is asked whether it is mended, and where nobody can be asked this says so.
            let fixed = if run.pipeline.is_some() { " --fixed" } else { "" };
            next_command("mend it, then go on", &format!("lockgate resume {}{fixed}", run.id));
            if let (true, Some(file)) = (lies_in_the_workflow(run), run.files.first()) {
                let new = run_command(&file.path, run.feature.as_deref());
                let file = neutral::line(&file.path);
                print::say(format_args!(
                    "  if {file} itself must be mended: this run keeps to what it began with, unless the changed file is accepted then"
                ));
                next_command("begin a new one", &neutral::line(&new));
            }
        }
        Some(End::Aborted) => {
            let decision = run.decisions.last();
            let by = decision.map(|decision| format!(" by {}", progress::by(Some(&decision.actor)))).unwrap_or_default();
            print::say(format_args!("run {id} was {}{by}", styled(ERROR, "aborted")));
        }
        Some(End::Cancelled) => print::say(format_args!("run {id} was {}", styled(ERROR, "cancelled"))),
        None => {}
    }
    Exit::of(status)
}

/// Whether something failed that only another workflow file would mend: a script, a template, or outputs that are not there.
fn lies_in_the_workflow(run: &Run) -> bool {
    let tasks = run.current.iter().flat_map(|phase| &phase.tasks).filter_map(|task| task.state.failure());
    let gates = run.current.iter().flat_map(|phase| &phase.gates).filter_map(|gate| gate.state.failure());
    tasks.chain(gates).any(|failure| match failure.kind {
        FailureKind::Script | FailureKind::Start | FailureKind::Output | FailureKind::Condition => true,
        FailureKind::Exit(_)
        | FailureKind::Signal(_)
        | FailureKind::Timeout
        | FailureKind::Interrupted
        | FailureKind::Agent
        | FailureKind::Budget
        | FailureKind::Idle
        | FailureKind::Until
        | FailureKind::Items
        | FailureKind::Issues
        | FailureKind::Authentication
        | FailureKind::Stopped => false,
    })
}

/// Tells what a run waits for, and how to answer from somewhere else.
pub(crate) fn waiting(run: &Run) -> Exit {
    for hold in run.open_holds() {
        let view = HoldView::of(hold);
        let place = view.phase.as_deref().map(|phase| format!(" in phase {}", neutral::line(phase))).unwrap_or_default();
        let name = styled(STRONG, format_args!("{}@{}", hold.id, hold.revision));
        print::say(format_args!("run {} {} for a person: hold {name}{place}", run.id, styled(WARNING, "waits")));
        let mut text = String::new();
        text.extend(neutral::lines(view.question()).lines().map(|line| format!("    {line}\n")));
        text += &shown_text(&view, "    ");
        print::talk(&text);
        print::say("  answer it with one of");
        for command in view.commands(!run.detached) {
            print::say(format_args!("    {}", styled(HELP, neutral::line(&command))));
        }
    }
    if run.waits_for_review() {
        print::say(format_args!("run {} {} for a review that lets it begin", run.id, styled(WARNING, "waits")));
        next_command("file it", &format!("lockgate review {} --verdict ship --p0 0 --p1 0", run.id));
    }
    next_command("look at it", &format!("lockgate why {}", run.id));
    Exit::Waiting
}

/// Tells that a run was stopped in the middle, and how to go on.
pub(crate) fn told_to_stop(run: &Run) {
    print::say(format_args!("run {} was {}; its state is saved", styled(STRONG, &run.id), styled(WARNING, "interrupted")));
    let on = if run.detached { "lockgate drive".to_owned() } else { format!("lockgate resume {}", run.id) };
    next_command("go on", &on);
}

fn next_command(what: &str, command: &str) {
    print::say(format_args!("  {what}: {}", styled(HELP, command)));
}

fn unused_answers(run: &Run) {
    for given in &run.presets {
        let answer = format!("{}={}", given.preset.selector, given.preset.option);
        let so_far = if run.end.is_some() { "" } else { " yet" };
        print::warn(format_args!("the answer {:?} given in advance was not used{so_far}", neutral::line(&answer)));
    }
}
