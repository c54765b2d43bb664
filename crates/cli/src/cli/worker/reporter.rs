//! Report `drive` tells about the runs, a line for each thing that matters to somebody who was not there.

use crate::print::{self, WARNING, styled};
use lockgate::worker::{Observer, Report};
use lockgate::{human_time, sanitize};
use lockgate_engine::id::RunId;
use lockgate_engine::time::Timestamp;
use lockgate_store::StoreError;
use serde::Serialize;
use std::time::Duration;

#[derive(Serialize)]
struct Line<'t> {
    at: Timestamp,
    run: &'t RunId,
    #[serde(flatten)]
    what: &'t Report,
}

/// Tells people, and whoever reads JSON besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerReporter {
    pub(super) json: bool,
}

impl Observer for WorkerReporter {
    fn report(&self, run: &RunId, at: Timestamp, what: &Report) {
        print::say(format_args!("{at} run {run}: {}", words(what)));
        if self.json {
            print::json_lines(&[Line { at, run, what }]);
        }
    }

    fn changes_are_late(&self, at: Timestamp, warning: &str) {
        print::warn(format_args!("{at} {}", sanitize::line(warning)));
    }

    fn store_failed(&self, at: Timestamp, error: &StoreError, again_in: Duration) {
        let error = error.to_string();
        let again = human_time::duration(again_in);
        print::warn(format_args!("{at} the database cannot be used: {}; trying again in {again}", sanitize::line(&error)));
    }
}

fn words(report: &Report) -> String {
    match report {
        Report::Started => "goes on".to_owned(),
        Report::Waiting => "waits for a person".to_owned(),
        Report::Interrupted => "is interrupted; its state is saved".to_owned(),
        Report::NotDriven { error, retry_in_ms } => {
            let again = match retry_in_ms {
                Some(pause) => format!("it is tried again in {}", human_time::duration(Duration::from_millis(*pause))),
                None => "it is given up here; `lockgate worker` tries it again".to_owned(),
            };
            format!("{} {}; {again}", styled(WARNING, "could not be driven:"), sanitize::line(error))
        }
        Report::TaskFailed { task, error } => sanitize::line(&format!("{task} failed: {error}")).into_owned(),
        Report::Ended { status } => status.as_str().to_owned(),
        Report::Worktree { worktree } => format!("worktree {}", worktree.line()),
        Report::Summary { path } => sanitize::line(&format!("summary: {path}")).into_owned(),
        Report::SummaryFailed { error } => sanitize::line(error).into_owned(),
        Report::NoWorktrees { error } => sanitize::line(&format!("its worktrees cannot be listed: {error}")).into_owned(),
    }
}
