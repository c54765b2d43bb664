//! Runs workflows of agents and commands, stops them where people decide, and never loses a step.
//!
//! This crate is Lockgate without its command line. It prints nothing, never prompts, and returns typed errors whose codes are
//! explained in `docs/errors/`. The `lockgate` program is built on it, and your program and `lockgate` can work on the same
//! project at the same time: each can drive, show and answer the runs that the other started.
//!
//! ```
//! use lockgate::answer::Answer;
//! use lockgate::project::{Options, Project};
//! use lockgate::start::Start;
//! use lockgate::view::RunStatus;
//! use lockgate::worker::Worker;
//! use std::sync::Arc;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! std::fs::write(dir.join("release.yaml"), "
//! name: release
//! phases:
//!   - id: build
//!     tasks:
//!       - { id: compile, run: echo compiled }
//!     checkpoint:
//!       prompt: Ship it?
//!       options:
//!         - { label: Ship, on_select: { action: continue } }
//!         - { label: Stop, on_select: { action: abort } }
//!   - id: ship
//!     tasks:
//!       - { id: upload, run: echo shipped }
//! ")?;
//!
//! // Open the project and drive its runs in the background of this process.
//! let project = Project::open_or_create(dir, Options::default())?;
//! let worker = Worker::start(&project, 8, Arc::new(()));
//!
//! // Start a run and wait for its first question.
//! let ada = project.person("ada");
//! let run = project.start(&dir.join("release.yaml"), Start::default(), ada.clone()).await?;
//! let hold = project.next_hold(&run).await?.expect("the run asks before it ships");
//!
//! // Answer it, and the run continues.
//! project.answer(&hold, Answer::new("Ship").seen(hold.revision), ada).await?;
//! assert_eq!(project.wait(&run).await?, RunStatus::Complete);
//!
//! worker.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | [`project`], [`authority`] | opening a project; callers and what they may decide |
//! | [`workflow_file`], [`validate`], [`start`], [`inputs`], [`issue`], [`preset_answers`] | reading a workflow file and starting a run |
//! | [`worker`], [`background`], [`resume`], [`wait`] | driving, resuming and awaiting runs |
//! | [`answer`], [`change`], [`step`], [`cancel`], [`deadlines`] | decisions about a run, by people and by timers |
//! | [`select`] | resolving the name of a run, hold or task |
//! | [`lists`], [`why`] | lists of runs and open holds; the reason why a run waits |
//! | [`run_status`], [`view`], [`summary`], [`graph`] | the state of a run, as JSON, Markdown and diagrams |
//! | [`history`], [`describe`], [`notifications`], [`logs`] | events of a run, and the output of its tasks |
//! | [`notice`] | notifications of people through configured channels |
//! | [`pipeline`], [`plan_summaries`], [`handover`] | pipelines, plans and checkpoints of agents |
//! | [`team`] | messages, conflicts and knowledge of agents |
//! | [`definition`] | detecting workflow files that changed after a run started |
//! | [`dry_run`], [`test_files`] | dry runs and workflow tests |
//! | [`removal`], [`retention`] | removing finished runs, on request and after the time that the settings keep them |
//! | [`worktrees`], [`gc`] | worktrees and garbage collection |
//! | [`snapshots`], [`verdict`], [`recovery`] | files from which a run can resume or be rebuilt; whether it can; doing so |
//! | [`backup`], [`verify`] | backups and integrity checks of the database |
//! | [`script_worker`] | processes that evaluate scripts |
//! | [`error`], [`code`], [`error_pages`] | errors, their codes and their documentation |
//! | [`engine`], [`formats`], [`runner`], [`store`] | the underlying crates, whose types appear in signatures |
//! | [`phrases`], [`human_time`], [`sanitize`] | shared wording, and text that is safe to print to a terminal |

#![warn(missing_docs)]

pub mod answer;
pub mod authority;
pub mod background;
pub mod backup;
pub mod cancel;
pub mod change;
pub mod code;
pub mod deadlines;
pub mod definition;
pub mod describe;
pub mod dry_run;
pub mod error;
pub mod error_pages;
pub mod gc;
pub mod graph;
pub mod handover;
pub mod history;
pub mod human_time;
pub mod inputs;
pub mod issue;
pub mod lists;
pub mod logs;
pub mod notice;
pub mod phrases;
pub mod pipeline;
pub mod plan_summaries;
pub mod preset_answers;
pub mod project;
pub mod recovery;
pub mod removal;
pub mod resume;
pub mod retention;
pub mod run_status;
pub mod sanitize;
pub mod script_worker;
pub mod select;
mod show;
pub mod snapshots;
pub mod start;
pub mod step;
pub mod summary;
pub mod team;
pub mod test_files;
pub mod validate;
pub mod verdict;
pub mod verify;
pub mod view;
pub mod wait;
pub mod why;
pub mod worker;
pub mod workflow_file;
pub mod worktrees;

pub use error::Error;
pub use lockgate_engine as engine;
pub use lockgate_formats as formats;
pub use lockgate_runner as runner;
pub use lockgate_runner::notifications;
pub use lockgate_store as store;
pub use project::Project;
