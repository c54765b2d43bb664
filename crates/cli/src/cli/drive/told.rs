//! What `drive` tells about the runs, a line for each thing that matters to somebody who was not there.

use crate::print::{self, WARNING, styled};
use crate::view::WorktreeView;
use crate::{moment, neutral};
use lockgate_engine::id::RunId;
use lockgate_engine::time::Timestamp;
use serde::Serialize;
use std::time::Duration;

/// Something that became of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum What {
    /// It is driven from now on.
    GoesOn,
    /// It waits for a person.
    Waiting,
    /// It was stopped in the middle.
    Interrupted,
    /// It could not be driven.
    NotDriven {
        error: String,
        /// After how long it is tried again; absent when it is given up here.
        #[serde(skip_serializing_if = "Option::is_none")]
        again_in_ms: Option<u64>,
    },
    /// A task failed.
    TaskFailed { task: String, error: String },
    /// It has ended.
    Ended { status: &'static str },
    /// It left a worktree.
    Worktree { worktree: WorktreeView },
    /// The summary of a plan was written.
    Summary { path: String },
    /// The summary of a plan could not be written.
    NoSummary { error: String },
}

#[derive(Serialize)]
struct Line<'t> {
    at: Timestamp,
    run: &'t RunId,
    #[serde(flatten)]
    what: &'t What,
}

/// Tells people, and whoever reads JSON besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Telling {
    pub(super) json: bool,
}

impl Telling {
    pub(super) fn tell(self, at: Timestamp, run: &RunId, what: &What) {
        print::say(format_args!("{at} run {run}: {}", what.words()));
        if self.json {
            print::json_lines(&[Line { at, run, what }]);
        }
    }
}

impl What {
    fn words(&self) -> String {
        match self {
            Self::GoesOn => "goes on".to_owned(),
            Self::Waiting => "waits for a person".to_owned(),
            Self::Interrupted => "is interrupted; its state is saved".to_owned(),
            Self::NotDriven { error, again_in_ms } => {
                let again = match again_in_ms {
                    Some(pause) => format!("it is tried again in {}", moment::duration(Duration::from_millis(*pause))),
                    None => "it is given up here; `lockgate drive` tries it again".to_owned(),
                };
                format!("{} {}; {again}", styled(WARNING, "could not be driven:"), neutral::line(error))
            }
            Self::TaskFailed { task, error } => neutral::line(&format!("{task} failed: {error}")).into_owned(),
            Self::Ended { status } => (*status).to_owned(),
            Self::Worktree { worktree } => format!("worktree {}", worktree.line()),
            Self::Summary { path } => neutral::line(&format!("summary: {path}")).into_owned(),
            Self::NoSummary { error } => neutral::line(error).into_owned(),
        }
    }
}
