//! Prints one line for every notable event of the runs that a worker drives.

use crate::memory;
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

/// Prints messages for people, and JSON on request.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerReporter {
    pub(super) json: bool,
}

impl Observer for WorkerReporter {
    fn report(&self, run: &RunId, at: Timestamp, what: &Report) {
        print::say(format_args!("{} run {run}: {}", human_time::local(at), words(what)));
        if self.json {
            print::json_lines(&[Line { at, run, what }]);
        }
    }

    fn idle(&self) {
        memory::release_unused();
    }

    fn changes_are_late(&self, at: Timestamp, warning: &str) {
        print::warn(format_args!("{} {}", human_time::local(at), sanitize::line(warning)));
    }

    fn store_failed(&self, at: Timestamp, error: &StoreError, again_in: Duration) {
        let error = error.to_string();
        let again = human_time::duration(again_in);
        let (at, error) = (human_time::local(at), sanitize::line(&error).into_owned());
        print::warn(format_args!("{at} the database cannot be used: {error}; retrying in {again}"));
    }
}

fn words(report: &Report) -> String {
    match report {
        Report::Started => "continues".to_owned(),
        Report::Waiting => "waits for a person".to_owned(),
        Report::Interrupted => "is interrupted; its state is saved".to_owned(),
        Report::NotDriven { error, retry_in_ms } => {
            let again = match retry_in_ms {
                Some(pause) => format!("retrying in {}", human_time::duration(Duration::from_millis(*pause))),
                None => "this worker gives up; retry with `lockgate worker`".to_owned(),
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
