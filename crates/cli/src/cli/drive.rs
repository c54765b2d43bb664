//! `lockgate drive`: drive all runs that were left to the background, side by side.

mod told;

use crate::authority::{Authority, Decision};
use crate::background::Turn;
use crate::code::Code;
use crate::drive;
use crate::exit::Exit;
use crate::trouble::Trouble;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Entry;
use lockgate_engine::time::parse_duration;
use lockgate_runner::config::MOST_RUNS_AT_ONCE;
use lockgate_runner::driver::{DriveError, Halt, Listener, Paused};
use lockgate_runner::fleet::{Fleet, Until, Watcher};
use lockgate_runner::notifications::{Kind, Notification, Reporter, StepOutcome};
use lockgate_runner::root::{Root, Step};
use lockgate_runner::world::{Clock, SystemClock, World};
use lockgate_store::StoreError;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use told::{Telling, What};

/// Without another word, a process that was not begun for the background ends as soon as nothing can go on.
const LOOKS_AROUND: Duration = Duration::from_millis(200);

/// How often it is looked whether the root is still where it was.
const LOOK_AT_ROOT: Duration = Duration::from_secs(1);

/// Drives all runs that were begun or resumed with --detach, side by side, until none of them can go on
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Stays when nothing can go on, and waits for answers and new runs
    #[arg(long, conflicts_with = "idle")]
    stay: bool,
    /// Stays for so long when nothing can go on, for example 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    idle: Option<Duration>,
    /// How many runs go on side by side at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS_AT_ONCE)))]
    at_once: Option<u32>,
    /// Prints what becomes of the runs as JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Begun by `--detach`: leaves the terminal that it was begun at
    #[arg(long, hide = true)]
    in_background: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        let decision = Decision::about_project("drive runs");
        if self.in_background { Authority::Background(decision) } else { Authority::OutsideTasks(decision) }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    if arguments.in_background {
        // It fails only for the leader of a group, which what was begun by another process is not.
        let _ = rustix::process::setsid();
    }
    let project = crate::open::open(root)?;
    let unusable = |error: std::io::Error| {
        Trouble::new(Code::Unwritable, format!("{} cannot be used: {error}", project.root.folder().display()))
    };
    let mut turn = match Turn::take(&project.root).map_err(unusable)? {
        Ok(turn) => turn,
        Err(_) if arguments.in_background => return Ok(Exit::Done),
        Err(pid) => {
            let message = format!("process {pid} drives the detached runs of {} already", project.root.dir().display());
            return Err(Trouble::new(Code::DrivenElsewhere, message).help("`lockgate runs` shows what they do"));
        }
    };
    let halt = drive::make_ready()?;
    let moved = tokio::spawn(until_moved(project.root.clone(), halt.clone()));
    let settings = &project.config.background;
    let idle = match (arguments.stay, arguments.idle) {
        (true, _) => None,
        (false, Some(idle)) => Some(idle),
        (false, None) if arguments.in_background => Some(settings.stay),
        (false, None) => Some(LOOKS_AROUND),
    };
    let until = Until { idle, at_once: arguments.at_once.unwrap_or(settings.at_once.get()) as usize };
    let writing = Writing::default();
    let telling = Telling { json: arguments.json };
    let teller = Teller { root: project.root.clone(), world: project.world.clone(), writing: writing.clone(), telling };
    let mut fleet = Fleet::new(project.world.clone(), Box::new(teller));
    loop {
        match fleet.drive(until, &halt).await {
            Err(StoreError::Gone(_)) => return Err(root_moved(&project.root)),
            driven => driven?,
        }
        let written = std::mem::take(&mut *writing.lock().unwrap_or_else(PoisonError::into_inner));
        for written in written {
            // One that panicked has said so itself.
            let _ = written.await;
        }
        turn.give_back().map_err(unusable)?;
        if halt.is_halted() || !fleet.is_wanted().await? {
            break;
        }
        // A run was left after the last look and before the turn was given back; whoever left it relied on this process.
        match Turn::take(&project.root).map_err(unusable)? {
            Ok(again) => turn = again,
            Err(_) => break,
        }
    }
    if moved.is_finished() {
        return Err(root_moved(&project.root));
    }
    Ok(if halt.is_halted() { Exit::by_signal(halt.signal()) } else { Exit::Done })
}

fn root_moved(root: &Root) -> Trouble {
    let message = format!("{} is no longer where it was, so nothing is driven there any more", root.dir().display());
    Trouble::new(Code::RootMoved, message).help("`lockgate drive` goes on where it is now")
}

/// Ends, and halts the driver, when something else or nothing stands where the state lay.
async fn until_moved(root: Root, halt: Halt) {
    let identity = || root.folder().metadata().map(|metadata| (metadata.dev(), metadata.ino())).ok();
    let first = identity();
    while identity() == first {
        tokio::time::sleep(LOOK_AT_ROOT).await;
    }
    halt.halt("the root was moved");
}

/// Tells what becomes of the runs.
struct Teller {
    root: Root,
    world: World,
    writing: Writing,
    telling: Telling,
}

impl Watcher for Teller {
    fn listener(&mut self, run: &RunId) -> Box<dyn Listener> {
        self.telling.tell(SystemClock.now(), run, &What::GoesOn);
        let (root, world) = (self.root.clone(), self.world.clone());
        let (writing, telling) = (self.writing.clone(), self.telling);
        Box::new(Ends { root, world, writing, telling, reporter: Reporter::default() })
    }

    fn paused(&mut self, run: &RunId, paused: &Paused) {
        let what = match paused {
            Paused::Waiting => What::Waiting,
            Paused::Interrupted => What::Interrupted,
            // How it ended was told when it did.
            Paused::Ended => return,
        };
        self.telling.tell(SystemClock.now(), run, &what);
    }

    fn failed(&mut self, run: &RunId, error: &DriveError, again_in: Option<Duration>) {
        let again_in_ms = again_in.map(|pause| u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        self.telling.tell(SystemClock.now(), run, &What::NotDriven { error: error.to_string(), again_in_ms });
    }

    fn is_ours(&self, run: &RunId) -> bool {
        self.root.run_folder(run).is_dir()
    }
}

/// Tells how a run ended, and what it left in worktrees and beside plans.
struct Ends {
    root: Root,
    world: World,
    writing: Writing,
    telling: Telling,
    reporter: Reporter,
}

/// Summaries of plans that are being written.
type Writing = Arc<Mutex<Vec<JoinHandle<()>>>>;

impl Ends {
    fn write_summaries(&self, run: &Run) {
        if run.workflow.plans.is_empty() {
            return;
        }
        let (world, root, run, telling) = (self.world.clone(), self.root.clone(), run.clone(), self.telling);
        let written = tokio::spawn(async move {
            for written in lockgate::plans::write_summaries(&world, &root, &run).await {
                let what = written.map_or_else(|error| What::NoSummary { error }, |path| What::Summary { path });
                telling.tell(SystemClock.now(), &run.id, &what);
            }
        });
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        writing.retain(|earlier| !earlier.is_finished());
        writing.push(written);
    }
}

impl Listener for Ends {
    fn committed(&mut self, run: &Run, entries: &[Entry]) {
        for Notification { at, kind, .. } in self.reporter.report(run, entries) {
            if let Kind::StepEnded { step: Step::Task(key), outcome: StepOutcome::Failed(failure), .. } = kind {
                let what = What::TaskFailed { task: key.address(), error: failure.message.clone() };
                self.telling.tell(at, &run.id, &what);
            } else if let Kind::RunEnded(_) = kind {
                self.telling.tell(at, &run.id, &What::Ended { status: run.status().word() });
                for worktree in lockgate::worktrees::settle(&self.root, run).unwrap_or_default() {
                    self.telling.tell(at, &run.id, &What::Worktree { worktree });
                }
                self.write_summaries(run);
            }
        }
    }
}
