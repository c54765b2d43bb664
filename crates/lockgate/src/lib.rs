//! Runs workflows of agents and commands, stops them where people decide, and never loses a step.
//!
//! This crate is Lockgate without its command line: it prints nothing, asks nothing at a terminal, and returns typed errors with the
//! codes that `docs/errors/` explains. The program `lockgate` is built on it, and the two can work on the same project at the same time:
//! what one starts, the other can drive, show and answer.
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
//! // Open the project, and drive its runs in the background of this process.
//! let project = Project::open_or_create(dir, Options::default())?;
//! let worker = Worker::start(&project, 8, Arc::new(()));
//!
//! // Start a run, and wait until it asks.
//! let ada = project.person("ada");
//! let run = project.start(&dir.join("release.yaml"), Start::default(), ada.clone()).await?;
//! let hold = project.next_hold(&run).await?.expect("the run asks before it ships");
//!
//! // Answer, and the run continues where it stopped.
//! project.answer(&hold, Answer::new("Ship").seen(hold.revision), ada).await?;
//! assert_eq!(project.wait(&run).await?, RunStatus::Complete);
//!
//! worker.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | [`project`], [`authority`] | open a project; who calls, and who may decide |
//! | [`workflow_file`], [`validate`], [`start`], [`inputs`], [`preset_answers`] | from a workflow file to a run |
//! | [`worker`], [`background`], [`resume`], [`wait`] | drive runs, continue them, wait for them |
//! | [`answer`], [`change`], [`step`], [`cancel`], [`deadlines`] | what people, and the clock, decide about a run |
//! | [`select`] | the run, hold or task that a name means |
//! | [`lists`], [`why`] | all runs, all that waits for a person, and what a run waits for |
//! | [`run_status`], [`view`], [`summary`], [`graph`] | what a run looks like |
//! | [`history`], [`describe`], [`notifications`], [`logs`] | what happened in it, and what its tasks printed |
//! | [`notice`] | what people are told through the channels of the settings |
//! | [`pipeline`], [`plan_summaries`], [`handover`] | what pipelines, plans and agents' checkpoints add |
//! | [`definition`] | workflow files that changed since a run started |
//! | [`dry_run`], [`cases`] | dry runs, and tests of workflows |
//! | [`worktrees`], [`garbage`], [`gc`] | what runs leave behind |
//! | [`backup`], [`verify`] | copies of the database, and whether it is as it was written |
//! | [`script_worker`] | the processes that evaluate scripts |
//! | [`error`], [`code`], [`error_pages`] | what can go wrong |
//! | [`engine`], [`formats`], [`runner`], [`store`] | the crates below, whose types appear in signatures |
//! | [`phrases`], [`human_time`], [`sanitize`] | wording that views share; text that cannot control a terminal |

#![warn(missing_docs)]

pub mod answer;
pub mod authority;
pub mod background;
pub mod backup;
pub mod cancel;
pub mod cases;
pub mod change;
pub mod code;
pub mod deadlines;
pub mod definition;
pub mod describe;
pub mod dry_run;
pub mod error;
pub mod error_pages;
pub mod garbage;
pub mod gc;
pub mod graph;
pub mod handover;
pub mod history;
pub mod human_time;
pub mod inputs;
pub mod lists;
pub mod logs;
pub mod notice;
pub mod phrases;
pub mod pipeline;
pub mod plan_summaries;
pub mod preset_answers;
pub mod project;
pub mod resume;
pub mod run_status;
pub mod sanitize;
pub mod script_worker;
pub mod select;
mod show;
pub mod start;
pub mod step;
pub mod summary;
pub mod validate;
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
