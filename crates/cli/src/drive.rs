//! Drives a run from the command line until it ends, is stopped, or waits for a person who is not at this terminal.

mod asker;

use self::asker::{AskOutcome, Asker};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print::{self, ERROR, GOOD, HELP, STRONG, WARNING, styled};
use crate::run_text::{hanging, shown_text};
use crate::{live, plan_summaries, signals, worktrees};
use lockgate::definition::is_fault_of_definition;
use lockgate::sanitize;
use lockgate::view::{Aborted, HoldView, RunView, run_command};
use lockgate::worker::adopt_orphans;
use lockgate_engine::run::Run;
use lockgate_engine::run::state::End;
use lockgate_runner::driver::HoldTimer;
use lockgate_runner::driver::{DriveError, Driver, Halt, HaltReason, Paused, fire_due, next_hold_timer};
use lockgate_runner::runtime::{Clock as _, Runtime, SystemClock};
use std::pin::{Pin, pin};

/// Prepares this process to drive runs: it listens for signals, stops after the session timeout, and adopts orphaned task processes.
/// Must be called inside the runtime.
pub(crate) fn make_ready(project: &Project) -> Result<Halt, CommandError> {
    let halt = Halt::default();
    signals::listen(&halt)?;
    if let Some(timeout) = project.config().checkpoint.session_timeout {
        halt.halt_after(timeout, live::ending);
    }
    if let Err(error) = adopt_orphans() {
        print::warn(format_args!("cannot adopt processes that tasks leave running: {error}"));
    }
    Ok(halt)
}

/// Drives a run until nothing more can be done here, and reports how it ended. At a terminal, it asks about each hold as soon as it
/// opens, while everything else continues.
pub(crate) async fn drive(project: &Project, mut driver: Driver, halt: &Halt, json: bool) -> Result<Exit, CommandError> {
    let asks = !json && print::is_interactive();
    let mut asker = Asker::of(project, &driver);
    let future: Option<Questions<'_>> = if asks { Some(Box::pin(asker.ask_all(halt))) } else { None };
    let mut asking = Asking { future, over: AskOutcome::NoOneThere, error: None };
    let stopped = drive_and_ask(&mut driver, &mut asking, halt).await;
    // Another process may continue the run while this one still prints.
    driver.release().await;
    let (over, error) = asking.close();
    asker.print_unanswered(driver.run());
    let exit = match stopped {
        Err(error) => {
            let error = CommandError::from(error);
            error.report();
            if error.exit() == Exit::Failed {
                next_command("after fixing the cause, continue", &format!("lockgate resume {}", driver.run().id));
            }
            return Err(error.reported());
        }
        Ok(Paused::Ended) => {
            let exit = ended(project, driver.run()).await?;
            worktrees::report(project.root(), driver.run());
            plan_summaries::print_summaries(project, driver.run()).await;
            exit
        }
        Ok(Paused::Interrupted) => {
            print_stopped(driver.run(), halt.reason());
            Exit::halted(halt.reason())
        }
        Ok(Paused::Waiting) => match (error, over) {
            (Some(error), _) => return Err(error),
            (None, AskOutcome::NoOneThere) => waiting(driver.run()),
            (None, AskOutcome::Interrupted) => {
                print_stopped(driver.run(), Some(HaltReason::Interrupt));
                Exit::Interrupted
            }
            (None, AskOutcome::Halted) => {
                print_stopped(driver.run(), halt.reason());
                Exit::halted(halt.reason())
            }
        },
    };
    unused_answers(driver.run());
    if json {
        print::json(&RunView::of(driver.run(), None, project).await?);
    }
    Ok(exit)
}

/// Asks about one hold after another.
type Questions<'a> = Pin<Box<dyn Future<Output = Result<AskOutcome, CommandError>> + 'a>>;

/// The prompt for open holds that runs alongside the driver, and its outcome.
struct Asking<'a> {
    /// None once no one is asked any more.
    future: Option<Questions<'a>>,
    over: AskOutcome,
    error: Option<CommandError>,
}

impl Asking<'_> {
    /// Waits until no one is asked any more.
    async fn ended(&mut self) {
        let Some(future) = &mut self.future else { return std::future::pending().await };
        match future.await {
            Ok(over) => self.over = over,
            Err(error) => self.error = Some(error),
        }
        self.future = None;
    }

    /// Removes an open question from the terminal, and returns the outcome.
    fn close(self) -> (AskOutcome, Option<CommandError>) {
        (self.over, self.error)
    }
}

/// Drives and asks concurrently. While only answers are missing, it stays as long as a person can be asked.
async fn drive_and_ask(driver: &mut Driver, asking: &mut Asking<'_>, halt: &Halt) -> Result<Paused, DriveError> {
    let runtime = driver.runtime().clone();
    loop {
        let marker = runtime.store.changes_of(&driver.run().id);
        match drive_asked(driver, asking, halt).await? {
            Paused::Waiting if asking.future.is_some() && !driver.run().open_holds().is_empty() => {}
            paused @ (Paused::Waiting | Paused::Ended | Paused::Interrupted) => return Ok(paused),
        }
        let run = driver.run();
        tokio::select! {
            () = asking.ended() => match asking.over {
                AskOutcome::NoOneThere => {}
                AskOutcome::Interrupted | AskOutcome::Halted => return Ok(Paused::Waiting),
            },
            changed = runtime.store.run_changed(&run.id, marker, Some(run.version)) => {
                changed?;
            }
            () = next_timer(&runtime, run) => {
                let fired = fire_due(&runtime, |due| *due == run.id).await?;
                if fired.iter().any(|fired| fired.kind == HoldTimer::Remind) {
                    live::write_now("\x07");
                }
            }
        }
    }
}

/// Drives until nothing more can be done. Ctrl+C at a question stops the run like the signal.
async fn drive_asked(driver: &mut Driver, asking: &mut Asking<'_>, halt: &Halt) -> Result<Paused, DriveError> {
    let mut driving = pin!(driver.drive(halt));
    loop {
        tokio::select! {
            paused = &mut driving => return paused,
            () = asking.ended() => {
                if asking.over == AskOutcome::Interrupted {
                    halt.halt(HaltReason::Interrupt);
                    live::ending();
                }
            }
        }
    }
}

/// Completes when a deadline or reminder of an open hold is due; never if no timer is set.
async fn next_timer(runtime: &Runtime, run: &Run) {
    match next_hold_timer(run) {
        Some(next) => runtime.clock.sleep_until(next, None).await,
        None => std::future::pending().await,
    }
}

/// Reports how a run ended.
pub(crate) async fn ended(project: &Project, run: &Run) -> Result<Exit, CommandError> {
    let status = run.status();
    let id = styled(STRONG, &run.id);
    match &run.end {
        Some(End::Complete) => {
            print::say(format_args!("run {id} is {}", styled(GOOD, "complete")));
            if has_outputs(project, run) {
                print::say(format_args!("  outputs: {}", sanitize::line(&run.output_dir)));
            }
        }
        Some(End::Failed(message)) => {
            print::say(format_args!("run {id} {}: {}", styled(ERROR, "failed"), hanging(message, "    ")));
            // A pipeline must be confirmed as fixed. Without a terminal, the flag does that.
            let fixed = if run.pipeline.is_some() { " --fixed" } else { "" };
            next_command("fix the cause, then continue", &format!("lockgate resume {}{fixed}", run.id));
            if let (true, Some(file)) = (is_fault_of_definition(run), run.files.first()) {
                let new = run_command(&file.path, run.feature.as_deref());
                let file = sanitize::line(&file.path);
                print::say(format_args!(
                    "  if you change {file}: the run keeps its original definition, unless you accept the changed file when you resume it"
                ));
                next_command("start a new run", &sanitize::line(&new));
            }
        }
        Some(End::Aborted) => {
            let why = Aborted::of(project.store(), run).await?.map(|aborted| aborted.words()).unwrap_or_default();
            print::say(format_args!("run {id} was {}{why}", styled(ERROR, "aborted")));
        }
        Some(End::Cancelled) => print::say(format_args!("run {id} was {}", styled(ERROR, "cancelled"))),
        None => {}
    }
    Ok(Exit::of(status))
}

/// Whether a run left something in its output directory.
fn has_outputs(project: &Project, run: &Run) -> bool {
    let dir = project.root().dir().join(&run.output_dir);
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

/// Reports the open holds of a run, and the commands that answer them.
pub(crate) fn waiting(run: &Run) -> Exit {
    for hold in run.open_holds() {
        let view = HoldView::of(hold);
        let location = view.phase.as_deref().map(|phase| format!(" in phase {}", sanitize::line(phase))).unwrap_or_default();
        let name = styled(STRONG, format_args!("{}@{}", hold.id, hold.revision));
        print::say(format_args!("run {} {} for a person: hold {name}{location}", run.id, styled(WARNING, "waits")));
        let mut text = String::new();
        text.extend(sanitize::lines(view.question()).lines().map(|line| format!("    {line}\n")));
        let now = SystemClock.now();
        text.extend(crate::run_text::deadline_line(&view, now).map(|line| format!("    {line}\n")));
        text += &shown_text(&view, "    ");
        print::talk(&text);
        print::say(if view.is_overdue(now) { "  its deadline has passed; apply it with" } else { "  answer it with one of" });
        for command in view.next_commands(run.id.as_str(), !run.detached, now) {
            print::say(format_args!("    {}", styled(HELP, sanitize::line(&command))));
        }
    }
    if run.waits_for_review() {
        print::say(format_args!(
            "run {} {} for a review; it starts only after a review permits it",
            run.id,
            styled(WARNING, "waits")
        ));
        next_command("file it", &format!("lockgate pipeline review {} --verdict ship --p0 0 --p1 0", run.id));
    }
    next_command("see details", &format!("lockgate why {}", run.id));
    Exit::Waiting
}

/// Reports that a run was interrupted, and how to continue it.
pub(crate) fn print_stopped(run: &Run, reason: Option<HaltReason>) {
    let why = match reason {
        Some(HaltReason::SessionTimeout) => " by the session timeout",
        Some(
            HaltReason::Interrupt
            | HaltReason::Terminate
            | HaltReason::HangUp
            | HaltReason::Stopped
            | HaltReason::RootMoved
            | HaltReason::Endless,
        )
        | None => "",
    };
    let interrupted = styled(WARNING, "interrupted");
    print::say(format_args!("run {} was {interrupted}{why}; its state is saved", styled(STRONG, &run.id)));
    let command = if run.detached { "lockgate worker".to_owned() } else { format!("lockgate resume {}", run.id) };
    next_command("continue", &command);
}

fn next_command(what: &str, command: &str) {
    print::say(format_args!("  {what}: {}", styled(HELP, command)));
}

fn unused_answers(run: &Run) {
    for given in &run.presets {
        let answer = format!("{}={}", given.preset.selector, given.preset.option);
        let so_far = if run.end.is_some() { "" } else { " yet" };
        print::warn(format_args!("the answer {:?} given in advance was not used{so_far}", sanitize::line(&answer)));
    }
}
