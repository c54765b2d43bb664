//! Delivers a notice by running the configured command, which reads it as JSON from stdin.
//!
//! The command is not a task, but it is marked like one, so that nothing it starts can answer, approve or cancel anything.
//! Otherwise anyone who can edit the settings could let a script decide in place of a person.

use super::{Deliver, NotDelivered};
use crate::config::NotifyCommand;
use crate::identity::TASK_VARIABLE;
use crate::process::{self, Ended, Grace, Job, LogLimits, Stop};
use crate::root::Root;
use crate::secret::Masks;
use futures::future::BoxFuture;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::outbox::{Notice, NoticeId};
use lockgate_engine::spec::workflow::Shell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

/// The name of the command where a task's name would appear: in refusals, and in [`TASK_VARIABLE`].
const NAME: &str = "notify.command";

/// How many lines of a command's output are logged, and how long each may be.
const MOST_LINES: usize = 50;
const LONGEST_LINE: usize = 500;

/// How long it may take to stop a command that timed out, and to record that.
const ENDING: Duration = Duration::from_secs(10);

/// Renders a notice as JSON.
pub type Render = dyn Fn(&NoticeId, &Notice) -> String + Send + Sync;

/// Withholds secrets from the command, and masks them in its output.
pub(crate) trait Withhold: Send + Sync {
    /// The environment variables with secrets of a run, and the masks for those whose values this process knows.
    fn withhold(&self, run: &Run) -> BoxFuture<'static, (Vec<String>, Arc<Masks>)>;
}

/// The configured command.
pub(crate) struct CommandChannel {
    pub(crate) root: Root,
    pub(crate) command: NotifyCommand,
    pub(crate) shell: Option<Shell>,
    pub(crate) render: Arc<Render>,
    pub(crate) secrets: Box<dyn Withhold>,
}

impl Deliver for CommandChannel {
    fn is_ours(&self, run: &RunId) -> bool {
        self.root.run_dir(run).is_dir()
    }

    fn deliver(&self, run: &Run, id: &NoticeId, notice: &Notice) -> BoxFuture<'static, Result<(), NotDelivered>> {
        let (json, withheld) = ((self.render)(id, notice), self.secrets.withhold(run));
        let (lock, dir) = (self.root.notice_lock(id), self.root.dir().to_path_buf());
        let (command, shell, id) = (self.command.clone(), self.shell.clone(), id.clone());
        Box::pin(async move {
            let (mut remove_env, masks) = withheld.await;
            // Lockgate itself may have been started inside a task.
            remove_env.push("LOCKGATE_PHASE".to_owned());
            prepare(&lock)?;
            let job = Job {
                command: command.run,
                shell,
                dir,
                env: vec![
                    (TASK_VARIABLE.to_owned(), NAME.to_owned()),
                    ("LOCKGATE_RUN".to_owned(), id.run.to_string()),
                    ("LOCKGATE_NOTICE".to_owned(), id.to_string()),
                ],
                remove_env,
                stdin: Some(format!("{}\n", masks.mask_text(&json)).into_bytes()),
                timeout: Some(command.timeout),
                idle_timeout: None,
                grace: Grace::default(),
                lock: lock.clone(),
                // Its output goes to the log of this process.
                log: PathBuf::from("/dev/null"),
                masks,
                limits: LogLimits { head: 0, tail: 0 },
            };
            let ended = process::run(job, Stop::new(), &mut logged_lines()).await;
            if ended.survivors.is_empty() {
                process::remove_lock(&lock);
            }
            outcome(&ended)
        })
    }

    fn patience(&self) -> Duration {
        self.command.timeout + ENDING
    }
}

fn prepare(lock: &std::path::Path) -> Result<(), NotDelivered> {
    let Some(path) = lock.parent() else { return Ok(()) };
    std::fs::create_dir_all(path).map_err(|error| NotDelivered::Directory { path: path.to_path_buf(), error })
}

fn logged_lines() -> impl FnMut(&str) + Send {
    let mut count = 0;
    move |line: &str| {
        count += 1;
        if count <= MOST_LINES {
            let line = &line[..line.floor_char_boundary(LONGEST_LINE)];
            debug!(?line, "the command printed");
        } else if count == MOST_LINES + 1 {
            debug!("the command prints more lines, which are not logged");
        }
    }
}

fn outcome(ended: &Ended) -> Result<(), NotDelivered> {
    let Some((_, why)) = crate::perform::explain(ended) else { return Ok(()) };
    let last = ended.tail.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let last = &last[..last.floor_char_boundary(LONGEST_LINE)];
    Err(NotDelivered::Command(if last.is_empty() { why } else { format!("{why}: {last}") }))
}
