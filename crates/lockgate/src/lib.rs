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
//! | [`project`] | open a project; who calls |
//! | [`workflow_file`], [`start`], [`inputs`], [`preset_answers`] | from a workflow file to a run |
//! | [`worker`], [`resume`], [`wait`] | drive runs, continue them, wait for them |
//! | [`answer`], [`step`], [`cancel`] | what people decide about a run |
//! | [`select`] | the run, hold or task that a name means |
//! | [`run_status`], [`view`], [`summary`], [`graph`], [`describe`], [`notifications`] | what a run looks like and what happens to it |
//! | [`notice`] | what people are told through the channels of the settings |
//! | [`pipeline`], [`plan_summaries`], [`handover`] | what pipelines, plans and agents' checkpoints add |
//! | [`definition`] | workflow files that changed since a run started |
//! | [`dry_run`] | dry runs |
//! | [`worktrees`], [`garbage`] | what runs leave behind |
//! | [`script_worker`] | the processes that evaluate scripts |
//! | [`error`], [`code`] | what can go wrong |
//! | [`phrases`], [`human_time`], [`sanitize`] | wording that views share; text that cannot control a terminal |

pub mod answer;
pub mod cancel;
pub mod code;
pub mod definition;
pub mod describe;
pub mod dry_run;
pub mod error;
pub mod garbage;
pub mod graph;
pub mod handover;
pub mod human_time;
pub mod inputs;
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
pub mod start;
pub mod step;
pub mod summary;
pub mod view;
pub mod wait;
pub mod worker;
pub mod workflow_file;
pub mod worktrees;

pub use error::Error;
pub use lockgate_engine as engine;
pub use lockgate_runner::notifications;
pub use lockgate_store as store;
pub use project::Project;
