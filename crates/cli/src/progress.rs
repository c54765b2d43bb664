//! Reports the progress of a driven run: plain lines, and at a terminal the tree of running tasks below them.

mod lines;

pub(crate) use lines::answered;

use crate::live::Live;
use crate::{notify, pipeline, print};
use lockgate::sanitize;
use lockgate_engine::plural::counted;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::Entry;
use lockgate_runner::config::Notify;
use lockgate_runner::driver::Listener;
use lockgate_runner::notifications::{Notification, Reporter};
use std::path::Path;

/// Reports the progress of a run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    reporter: Reporter,
    live: Option<Live>,
    /// Whether a tree shows the running tasks.
    with_tree: bool,
    notify: Option<Notify>,
}

impl Listener for Progress {
    fn committed(&mut self, run: &Run, entries: &[Entry]) {
        let notifications = self.reporter.report(run, entries);
        let text = self.lines(run, &notifications);
        match &self.live {
            Some(live) => live.heard(run, &notifications, &text),
            None if !text.is_empty() => print::talk(&text),
            None => {}
        }
        if let Some(notify) = self.notify {
            notify::of_new_holds(notify, run, &notifications);
        }
    }

    fn write_failed(&mut self, why: &str) {
        print::warn(format_args!(
            "{}; the run is not affected, and the next command that reads it writes the file",
            sanitize::line(why)
        ));
    }

    fn snapshots_failed(&mut self, why: &str) {
        let why = sanitize::line(why);
        print::warn(format_args!("snapshots could not be written: {why}; the run is not affected, and resuming it writes them"));
    }

    fn snapshots_removed(&mut self, count: usize) {
        let what = counted(count as u64, "older snapshot");
        print::note(format_args!("removed {what}, because all together exceed `checkpoint.storage.max_size_mb`"));
    }

    fn moved_aside(&mut self, path: &Path) {
        pipeline::warn_unreadable(path);
    }
}

impl Progress {
    /// Reports with a tree and notifications at a terminal, and with plain lines elsewhere. Must be called inside the runtime.
    pub(crate) fn new(json: bool, notify: Notify) -> Self {
        let live = if json { None } else { Live::begin() };
        let notify = (!json && print::stderr_is_terminal()).then_some(notify);
        Self { with_tree: live.is_some(), live, notify, ..Self::default() }
    }

    /// Reports the lines that are printed above a tree.
    pub(crate) fn with_tree() -> Self {
        Self { with_tree: true, ..Self::default() }
    }

    pub(crate) fn live(&self) -> Option<&Live> {
        self.live.as_ref()
    }

    /// Takes start times from earlier events without reporting them.
    pub(crate) fn recall(&mut self, run: &Run, entries: &[Entry]) {
        self.reporter.recall(run, entries);
    }

    /// Renders events as plain lines.
    pub(crate) fn rendered(&mut self, run: &Run, entries: &[Entry]) -> String {
        let notifications = self.reporter.report(run, entries);
        self.lines(run, &notifications)
    }

    fn lines(&self, run: &Run, notifications: &[Notification<'_>]) -> String {
        let mut text = String::new();
        for notification in notifications {
            lines::write(&mut text, run, notification, self.with_tree);
        }
        text
    }
}
